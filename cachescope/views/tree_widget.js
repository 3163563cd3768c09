export default { render: showTree };
