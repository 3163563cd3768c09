// A table that shows one page of rows, sorts by its heads and opens a row. Texts go in as textContent only.
const make = (name, attributes = {}, text = "") => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text) node.textContent = text;
  return node;
};

function render({ model, el }) {
  el.classList.add("cs");
  const scroll = make("div", { class: "cs-scroll cs-page" });
  const table = make("table", { class: "cs-table cs-rows" });
  const head = make("thead");
  const body = make("tbody");
  table.append(head, body);
  scroll.append(table);
  const pager = make("div", { class: "cs-pager" });
  const said = make("span", { role: "status", "aria-live": "polite" });
  const pages = { First: () => 0, Previous: (p) => p - 1, Next: (p) => p + 1, Last: (_, last) => last };
  const last = () => Math.max(0, Math.ceil(model.get("total") / model.get("page_size")) - 1);
  const buttons = Object.entries(pages).map(([name, to]) => {
    const button = make("button", { type: "button", class: "cs-button" }, name);
    button.setAttribute("aria-label", `${name} page of ${model.get("label")}`);
    button.onclick = () => set({ page: Math.min(last(), Math.max(0, to(model.get("page"), last()))) });
    return button;
  });
  pager.append(said, ...buttons);
  el.append(scroll, pager);

  const set = (values) => {
    for (const [name, value] of Object.entries(values)) model.set(name, value);
    model.save_changes();
  };
  // The time makes opening the same row again a change.
  const open = (id) => set({ selected: id, chosen: [id, Date.now()] });

  const heads = () => {
    const focused = document.activeElement?.dataset?.sort;
    const [by, up] = model.get("sort");
    const row = make("tr");
    for (const { name, label, number, sortable } of model.get("columns")) {
      const cell = make("th", { scope: "col", class: `cs-at-${name} ${number ? "cs-number" : ""}` });
      if (sortable) {
        cell.setAttribute("aria-sort", by !== name ? "none" : up ? "ascending" : "descending");
        const arrow = by !== name ? "" : up ? "\u00a0▲" : "\u00a0▼";
        const button = make("button", { type: "button", "data-sort": name }, label + arrow);
        button.setAttribute("aria-label", `Sort by ${label}`);
        button.onclick = () => set({ sort: [name, by === name ? !up : true], page: 0 });
        cell.append(button);
      } else cell.textContent = label;
      row.append(cell);
    }
    head.replaceChildren(row);
    if (focused) [...head.querySelectorAll("button")].find((b) => b.dataset.sort === focused)?.focus();
  };

  const rows = () => {
    const had = body.contains(document.activeElement);
    const columns = model.get("columns");
    const ids = model.get("ids");
    const selected = model.get("selected");
    const at = Math.max(0, ids.indexOf(selected));
    const nodes = model.get("rows").map((cells, i) => {
      const row = make("tr", { tabindex: i === at ? "0" : "-1", "aria-selected": String(ids[i] === selected) });
      row.dataset.id = ids[i];
      cells.forEach((text, c) => {
        const kind = columns[c].number ? "cs-number" : columns[c].wide ? "cs-wide" : columns[c].fills ? "cs-fill" : "";
        const cell = make("td", { class: `cs-at-${columns[c].name} ${kind}` }, columns[c].fills ? "" : text);
        if (columns[c].fills) cell.append(make("div", { class: "cs-clamp" }, text));
        if (text.length > 24) cell.title = text;
        row.append(cell);
      });
      row.onclick = () => open(ids[i]);
      return row;
    });
    if (!nodes.length) {
      const row = make("tr");
      row.append(make("td", { colspan: String(columns.length), class: "cs-faint" }, model.get("empty")));
      nodes.push(row);
    }
    body.replaceChildren(...nodes);
    if (had) nodes[at]?.focus();
    const first = model.get("page") * model.get("page_size");
    const total = model.get("total");
    const plain = (n) => n.toLocaleString("en");
    const few = total <= model.get("page_size");
    said.textContent = !total ? "" : few ? `${plain(total)} ${total === 1 ? "row" : "rows"}`
      : `${plain(first + 1)}–${plain(first + ids.length)} of ${plain(total)}`;
    const here = model.get("page");
    buttons.forEach((button, i) => {
      button.hidden = few;
      button.disabled = i < 2 ? here === 0 : here >= last();
    });
  };

  body.onkeydown = (event) => {
    const row = event.target.closest("tr[data-id]");
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!row) return;
    if (step) {
      const next = step > 0 ? row.nextElementSibling : row.previousElementSibling;
      if (next) { row.tabIndex = -1; next.tabIndex = 0; next.focus(); }
    } else if (event.key === "Enter" || event.key === " ") open(Number(row.dataset.id));
    else return;
    // Jupyter has commands of its own on these keys.
    event.preventDefault();
    event.stopPropagation();
  };

  const label = () => table.setAttribute("aria-label", model.get("label"));
  const on = { columns: () => { heads(); rows(); }, sort: heads, rows, ids: rows, selected: rows, total: rows, label };
  for (const [name, act] of Object.entries(on)) model.on(`change:${name}`, act);
  label();
  heads();
  rows();
  return () => { for (const [name, act] of Object.entries(on)) model.off(`change:${name}`, act); };
}
export default { render };
