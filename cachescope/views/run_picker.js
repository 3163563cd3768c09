// Runs, and which of them are compared: each has a cell for A and one for B, and a click on the row picks one of the two.
// Nothing scrolls within: the newest are shown, and those that are picked. Texts go in as textContent only.
const SIDES = ["A", "B"];
const MOST = 300;
const FEW = 12;

function render({ model, el }) {
  el.classList.add("cs");
  const search = make("input", { type: "search", class: "cs-search", placeholder: "Search runs", "aria-label": "Search the runs" });
  const scroll = make("div", { class: "cs-scroll cs-runs" });
  const table = make("table", { class: "cs-table cs-rows", "aria-label": model.get("label") });
  const head = make("thead");
  const body = make("tbody");
  table.append(head, body);
  scroll.append(table);
  const more = make("div", { class: "cs-faint", role: "status" });
  const every = make("button", { type: "button", class: "cs-button", "aria-expanded": "false" });
  el.append(search, scroll, more, every);
  let isWhole = false;
  let shown = [];
  // Where the last pick was: Shift reaches from there.
  let from = 0;
  // The button that Tab stops at, by row and place; arrows go on from there.
  let stop = [0, 0];
  // Jobs whose ranks are shown, or hidden, by hand.
  const opened = new Map();

  const first = (row) => row.runs[0];
  const isJob = (row) => row.runs.length > 1;
  const pickedOf = (runs, side) => runs.filter((run) => model.get("sides")[side].includes(run)).length;
  const isOpen = (job) => {
    const isPart = [0, 1].some((side) => pickedOf(job, side) > 0 && pickedOf(job, side) < job.length);
    return opened.get(job[0]) ?? isPart;
  };

  const pick = (side, at, event) => {
    const rows = event.shiftKey ? shown.slice(Math.min(from, at), Math.max(from, at) + 1) : [shown[at]];
    const runs = [...new Set(rows.flatMap((row) => row.runs))];
    from = at;
    // The time makes picking the same again a change.
    model.set("picked", [SIDES[side], runs, event.shiftKey || event.ctrlKey || event.metaKey, Date.now()]);
    model.save_changes();
  };

  const isPicked = (row) => [0, 1].some((side) => pickedOf(row.runs, side) > 0);
  // A is what B is compared with: what is below B in the list began before it.
  const sideOf = (at) => Number(at <= shown.findIndex((row) => pickedOf(row.runs, 1) === row.runs.length));

  const picker = (row, at, side) => {
    const count = pickedOf(row.runs, side);
    const state = count === 0 ? "false" : count === row.runs.length ? "true" : "mixed";
    const button = make("button", { type: "button", class: "cs-pick", "aria-pressed": state,
      "aria-label": `${SIDES[side]}: ${row.cells.join(", ")}` }, SIDES[side]);
    button.onclick = (event) => pick(side, at, event);
    return button;
  };

  const opener = (row, text) => {
    const open = isOpen(row.runs);
    const button = make("button", { type: "button", class: "cs-opener", "aria-expanded": String(open) }, `${open ? "▾" : "▸"} ${text}`);
    button.onclick = () => { opened.set(first(row), !open); draw(); };
    return button;
  };

  const line = (row, at) => {
    const made = make("tr", row.job ? { class: "cs-of" } : {});
    made.classList.toggle("cs-picked", isPicked(row));
    const parts = [picker(row, at, 0), picker(row, at, 1), isJob(row) ? opener(row, row.cells[0]) : row.cells[0], ...row.cells.slice(1)];
    parts.forEach((part, place) => {
      const cell = make("td", place < 2 ? { class: "cs-pick-cell" } : {});
      cell.append(part);
      made.append(cell);
    });
    made.onclick = (event) => { if (!event.target.closest("button")) pick(sideOf(at), at, event); };
    // Shift picks several; it does not mark their texts.
    made.onmousedown = (event) => { if (event.shiftKey) event.preventDefault(); };
    made.querySelectorAll("button").forEach((button, place) => {
      button.tabIndex = at === stop[0] && place === stop[1] ? 0 : -1;
      button.onfocus = () => { stop = [at, place]; };
    });
    return made;
  };

  const draw = () => {
    const had = body.contains(document.activeElement);
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = model.get("rows");
    const all = rows.filter((row) => words.length ? words.every((word) => row.cells.join(" ").toLowerCase().includes(word))
      : !row.job || isOpen(row.job));
    const most = words.length || isWhole ? MOST : FEW;
    shown = all.filter((row, at) => at < most || isPicked(row));
    stop[0] = Math.min(stop[0], Math.max(0, shown.length - 1));
    if (stop[1] > 1 && !(shown[stop[0]] && isJob(shown[stop[0]]))) stop[1] = 1;
    const top = make("tr");
    top.append(...[...SIDES, ...model.get("columns")].map((name) => make("th", { scope: "col" }, name)));
    head.replaceChildren(top);
    body.replaceChildren(...shown.map(line));
    const left = all.length - shown.length;
    const few = isWhole || words.length;
    more.textContent = few && left ? `… and ${left.toLocaleString("en")} older: search for them` : all.length ? "" : "No run has this.";
    every.hidden = Boolean(words.length) || all.length <= FEW;
    every.textContent = isWhole ? "Show the newest" : `Show ${Math.min(left, MOST).toLocaleString("en")} older`;
    every.setAttribute("aria-expanded", String(isWhole));
    search.hidden = rows.length < FEW;
    if (had) body.querySelector("button[tabindex='0']")?.focus();
  };

  body.onkeydown = (event) => {
    const step = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step) {
      // A button is pressed by these itself, but Ctrl and Shift are then lost.
      if (event.key !== "Enter" && event.key !== " ") return;
      if (stop[1] < 2) pick(stop[1], stop[0], event);
      else event.target.click();
    } else {
      const buttons = (at) => [...(body.rows[at]?.querySelectorAll("button") ?? [])];
      const row = Math.min(shown.length - 1, Math.max(0, stop[0] + step[0]));
      const next = buttons(row)[Math.min(buttons(row).length - 1, Math.max(0, stop[1] + step[1]))];
      event.target.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    }
    // Jupyter has commands of its own on these keys.
    event.preventDefault();
    event.stopPropagation();
  };
  every.onclick = () => { isWhole = !isWhole; from = 0; draw(); };
  search.oninput = () => { from = 0; draw(); };
  search.onkeydown = (event) => event.stopPropagation();

  const names = ["columns", "rows", "sides"];
  for (const name of names) model.on(`change:${name}`, draw);
  draw();
  return () => { for (const name of names) model.off(`change:${name}`, draw); };
}
export default { render };
