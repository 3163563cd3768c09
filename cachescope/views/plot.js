// Draws a plotly figure. plotly.js comes from the kernel, once per page, and nothing from the network.
const HOME = Symbol.for("cachescope.plotly");
const LEFT = Symbol.for("cachescope.left");

// Rejected with LEFT if the view that asked is removed before the answer, and its listener with it: ask again.
function plotly(model, leaving) {
  globalThis[HOME] ??= new Promise((resolve, reject) => {
    let answered = false;
    leaving.addEventListener("abort", () => {
      if (answered) return;
      delete globalThis[HOME];
      reject(LEFT);
    });
    const take = async (message, buffers) => {
      if (!message?.plotly) return;
      answered = true;
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

// One figure at a time, each painted before the next begins: otherwise a page of figures would freeze until the last.
const TURN = Symbol.for("cachescope.turn");
const inTurn = (act) => {
  const mine = (globalThis[TURN] ?? Promise.resolve()).then(act);
  globalThis[TURN] = mine.catch(() => {}).then(() => new Promise((next) => setTimeout(next)));
  return mine;
};

const isDark = () => document.body.dataset.jpThemeLight === "false"
  || (!("jpThemeLight" in document.body.dataset) && document.body.dataset.vscodeThemeKind?.includes("dark") === true);

function render({ model, el }) {
  el.classList.add("cs");
  const box = document.createElement("div");
  box.className = "cs-plot";
  box.setAttribute("role", "figure");
  box.setAttribute("aria-label", model.get("label"));
  box.append(Object.assign(document.createElement("p"), { className: "cs-faint", textContent: "The figure is being drawn …" }));
  el.append(box);
  let Plotly = null;
  let gone = false;
  const leaving = new AbortController();

  const theme = () => {
    const dark = isDark();
    if (model.get("dark") === dark) return;
    model.set("dark", dark);
    model.save_changes();
  };
  const draw = async () => {
    const text = model.get("figure");
    if (!text) return;
    const figure = JSON.parse(text);
    // Reserve the height: what is below must not move.
    if (figure.layout.height) box.style.height = `${figure.layout.height}px`;
    while (!Plotly) {
      try { Plotly = await plotly(model, leaving.signal); } catch (error) { if (error !== LEFT || gone) throw error; }
    }
    await inTurn(() => put(text, figure));
  };
  const put = async (text, figure) => {
    if (gone || text !== model.get("figure")) return;
    figure.layout.autosize = false;
    figure.layout.width = width;
    if (!box.dataset.live) box.replaceChildren();
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

  // Drawn when it comes near the visible part of the page, and again when its width changes.
  let width = 0;
  let near = false;
  const sized = new ResizeObserver(() => {
    const now = Math.round(box.clientWidth);
    if (!now || now === width) return;
    width = now;
    if (box.dataset.live) Plotly.relayout(box, { width });
  });
  const seen = new IntersectionObserver((all) => {
    if (!all.some((one) => one.isIntersecting)) return;
    seen.disconnect();
    near = true;
    width = Math.round(box.clientWidth);
    sized.observe(box);
    // The library travels while the kernel makes the figure.
    plotly(model, leaving.signal).catch(() => {});
    theme();
    drawn();
  }, { rootMargin: "400px" });
  seen.observe(box);
  const changed = () => { if (near) drawn(); };
  const themed = new MutationObserver(() => { if (near) theme(); });
  themed.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-vscode-theme-kind"] });
  model.on("change:figure", changed);
  return () => {
    gone = true;
    leaving.abort();
    seen.disconnect();
    sized.disconnect();
    themed.disconnect();
    model.off("change:figure", changed);
    if (Plotly) Plotly.purge(box);
  };
}
export default { render };
