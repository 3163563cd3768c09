// Draws a plotly figure. plotly.js comes from the kernel, once per page, and nothing from the network.
const HOME = Symbol.for("cachescope.plotly");

function plotly(model) {
  globalThis[HOME] ??= new Promise((resolve, reject) => {
    const take = async (message, buffers) => {
      if (!message?.plotly) return;
      model.off("msg:custom", take);
      const source = new TextDecoder().decode(buffers[0]);
      // The bundle looks for a module to put itself into; give it one, whatever else the page has.
      const text = `const module = { exports: {} };\n${source}\nexport default module.exports;`;
      const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
      try { resolve((await import(url)).default); } catch (error) { delete globalThis[HOME]; reject(error); }
      URL.revokeObjectURL(url);
    };
    model.on("msg:custom", take);
    model.send({ ask: "plotly" });
  });
  return globalThis[HOME];
}

const isDark = () => document.body.dataset.jpThemeLight === "false"
  || (!("jpThemeLight" in document.body.dataset) && document.body.dataset.vscodeThemeKind?.includes("dark") === true);

function render({ model, el }) {
  el.classList.add("cs");
  const box = document.createElement("div");
  box.className = "cs-plot";
  box.setAttribute("role", "figure");
  box.setAttribute("aria-label", model.get("label"));
  el.append(box);
  let Plotly = null;
  let gone = false;

  const theme = () => {
    const dark = isDark();
    if (model.get("dark") === dark) return;
    model.set("dark", dark);
    model.save_changes();
  };
  const draw = async () => {
    const text = model.get("figure");
    if (!text) return;
    Plotly ??= await plotly(model);
    if (gone || text !== model.get("figure")) return;
    const figure = JSON.parse(text);
    figure.layout.autosize = false;
    figure.layout.width = width;
    if (figure.layout.height) box.style.height = `${figure.layout.height}px`;
    await Plotly.react(box, figure.data, figure.layout, { displaylogo: false, responsive: false, displayModeBar: false });
    if (box.dataset.live) return;
    box.dataset.live = "yes";
    box.on("plotly_click", (event) => {
      const point = event.points?.[0];
      if (!point) return;
      const { x, y, label, curveNumber } = point;
      const index = point.pointNumber ?? point.pointIndex ?? null;
      const plain = (value) => (value === undefined ? null : value);
      const clicked = { x: plain(x), y: plain(y), label: plain(label), curve: curveNumber, index: plain(index), data: plain(point.customdata) };
      model.set("clicked", { ...clicked, at: Date.now() });
      model.save_changes();
    });
  };
  const drawn = () => draw().catch((error) => { box.textContent = `The figure could not be drawn: ${error.message}`; });

  // A pane that is not shown has no width: drawn when it gets one, and again when it changes.
  let width = 0;
  const sized = new ResizeObserver(() => {
    const now = Math.round(box.clientWidth);
    if (!now || now === width) return;
    const first = !width;
    width = now;
    // The library travels while the kernel makes the figure.
    if (first) { plotly(model).catch(() => {}); theme(); drawn(); } else if (box.dataset.live) Plotly.relayout(box, { width });
  });
  sized.observe(box);
  const changed = () => { if (width) drawn(); };
  const themed = new MutationObserver(() => { if (width) theme(); });
  themed.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-vscode-theme-kind"] });
  model.on("change:figure", changed);
  return () => {
    gone = true;
    sized.disconnect();
    themed.disconnect();
    model.off("change:figure", changed);
    if (Plotly) Plotly.purge(box);
  };
}
export default { render };
