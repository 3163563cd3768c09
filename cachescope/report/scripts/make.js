// Elements of the page. Texts go in as textContent only.
const make = (name, attributes = {}, text = "") => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text) node.textContent = text;
  return node;
};

// A box to tick with its label; `onToggle` gets whether it is ticked now.
const tickBox = (name, label, { isTicked, isFixed, onToggle }) => {
  const made = make("label", isTicked ? {} : { class: "cs-off" });
  const input = make("input", { type: "checkbox" });
  input.checked = isTicked;
  input.disabled = isFixed;
  input.dataset.name = name;
  input.onchange = () => onToggle(input.checked);
  made.append(input, make("span", {}, label));
  return made;
};
