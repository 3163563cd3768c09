// Draws a figure when it is near the visible part of the page. What draws it, drawFigure, stands above: see plot.py.
const isDark = () => document.body.dataset.jpThemeLight === "false"
  || (!("jpThemeLight" in document.body.dataset) && document.body.dataset.vscodeThemeKind?.includes("dark") === true);

function render({ model, el }) {
  el.classList.add("cs");
  const box = make("div", { class: "cs-plot", role: "figure", "aria-label": model.get("label") });
  box.append(make("p", { class: "cs-faint" }, "The figure is being drawn …"));
  el.append(box);
  let width = 0;
  let near = false;

  const clicked = (point) => { model.set("clicked", { ...point, at: Date.now() }); model.save_changes(); };
  const zoomed = (range) => { model.set("zoomed", range ?? []); model.save_changes(); };
  const draw = () => {
    const text = model.get("figure");
    if (!near || !width || !text) return;
    try {
      const figure = JSON.parse(text);
      // Reserve the height: what is below must not move.
      box.style.height = `${figure.layout.height}px`;
      const range = model.get("zoomed");
      drawFigure(box, figure, { width, isDark: isDark(), onClick: clicked, zoomed: range.length ? range : null, onZoom: zoomed });
    } catch (error) {
      box.textContent = `The figure could not be drawn: ${error.message}`;
    }
  };

  const sized = new ResizeObserver(() => {
    const now = Math.round(box.clientWidth);
    if (!now || now === width) return;
    width = now;
    draw();
  });
  const seen = new IntersectionObserver((all) => {
    if (!all.some((one) => one.isIntersecting)) return;
    seen.disconnect();
    near = true;
    width = Math.round(box.clientWidth);
    sized.observe(box);
    if (!model.get("seen")) { model.set("seen", true); model.save_changes(); }
    draw();
  }, { rootMargin: "400px" });
  seen.observe(box);
  const themed = new MutationObserver(draw);
  themed.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-vscode-theme-kind"] });
  // What the page itself zoomed is drawn already.
  const zoomedOut = () => {
    if (model.get("zoomed").length) return;
    draw();
    // The button that cleared the span goes: who is at the keyboard stays at the figure.
    const { activeElement } = document;
    if (activeElement === document.body || activeElement?.closest(".cs-span")) box.querySelector("svg")?.focus({ preventScroll: true });
  };
  model.on("change:figure", draw);
  model.on("change:zoomed", zoomedOut);
  return () => {
    seen.disconnect();
    sized.disconnect();
    themed.disconnect();
    model.off("change:figure", draw);
    model.off("change:zoomed", zoomedOut);
  };
}
export default { render };
