export default { render: showTable };
