// Hears clicks on what opens another pane, in the blocks of an explorer.
function render({ model, el }) {
  const click = ({ target }) => {
    const at = target.closest("[data-opens]");
    const home = el.closest(".cs-explorer");
    if (!at || !home?.contains(at)) return;
    const [pane, id] = at.dataset.opens.split(" ");
    if (pane === "Back") cameBack(el);
    if (pane === "Why") opened(el, () => home.querySelector(`[data-opens="${at.dataset.opens}"]`));
    // The time makes opening the same one again a change.
    model.set("opened", [pane, Number(id), Date.now()]);
    model.save_changes();
  };
  document.addEventListener("click", click);
  return () => document.removeEventListener("click", click);
}
export default { render };
