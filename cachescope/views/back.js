// A button that leads back to the pane that opened this one, with the focus on what opened it.
function render({ model, el }) {
  el.classList.add("cs");
  const button = make("button", { type: "button", class: "cs-button cs-back" });
  button.onclick = () => {
    model.set("asked", Date.now());
    model.save_changes();
    cameBack(el);
  };
  el.append(button);
  const draw = () => {
    button.textContent = `Back to ${model.get("to")}`;
    button.hidden = !model.get("to");
  };
  model.on("change:to", draw);
  draw();
  return () => model.off("change:to", draw);
}
export default { render };
