// A table that shows one page of rows, sorts by its heads, folds rows and opens one. Texts go in as textContent only.
const plain = (n) => n.toLocaleString("en");
const PAGES = { First: () => 0, Previous: (p) => p - 1, Next: (p) => p + 1, Last: (_, last) => last };

function showTable({ model, el }) {
  el.classList.add("cs");
  const scroll = make("div", { class: "cs-scroll cs-page" });
  const table = make("table", { class: "cs-table cs-rows", "aria-label": model.get("label") });
  const head = make("thead");
  const body = make("tbody");
  table.append(head, body);
  scroll.append(table);
  const pager = make("div", { class: "cs-pager" });
  el.append(scroll, pager);

  const set = (values) => {
    for (const [name, value] of Object.entries(values)) model.set(name, value);
    model.save_changes();
  };
  // The time makes opening the same row again a change.
  const now = (id) => [id, Date.now()];
  const rowOf = (id) => body.querySelector(`tr[data-id="${id}"]`);
  const open = (id) => {
    if (!model.get("opens")) return;
    opened(el, () => rowOf(id));
    set({ selected: id, chosen: now(id) });
  };

  const heads = () => {
    const focused = head.contains(document.activeElement) ? document.activeElement.dataset.sort : null;
    const [by, up] = model.get("sort");
    const row = make("tr");
    for (const { name, label, number, sortable } of model.get("columns")) {
      const cell = make("th", { scope: "col", class: `cs-at-${name} ${number ? "cs-number" : ""}` });
      if (sortable) {
        cell.setAttribute("aria-sort", by !== name ? "none" : up ? "ascending" : "descending");
        const arrow = by !== name ? "" : up ? "\u00a0▲" : "\u00a0▼";
        const button = make("button", { type: "button", "data-sort": name, "aria-label": `Sort by ${label}` }, label + arrow);
        button.onclick = () => set({ sort: [name, by === name ? !up : true], page: 0 });
        cell.append(button);
      } else cell.textContent = label;
      row.append(cell);
    }
    head.replaceChildren(row, ...sums());
    if (focused) [...head.querySelectorAll("button")].find((b) => b.dataset.sort === focused)?.focus();
  };

  const sums = () => {
    const summaries = model.get("summaries");
    if (!summaries.length) return [];
    const row = make("tr", { class: "cs-held" });
    model.get("columns").forEach(({ name, label }, i) => {
      const cell = make("td", { class: `cs-at-${name}` });
      if (summaries[i]) cell.append(summary(summaries[i], label));
      row.append(cell);
    });
    return [row];
  };

  // A name can be broken where its parts meet: one too long for its line would be cut whole.
  const broken = (node, text) => {
    text.split(/(?<=[[._/])(?=[A-Za-z]{2})/).forEach((part, i) => node.append(...(i ? [make("wbr"), part] : [part])));
    return node;
  };
  // An amount stays with its unit.
  const unbroken = (text) => text.replace(/(\d) (?=(?:ms|s|min|h|k?B|MB|GB|%)(?![A-Za-z]))/g, "$1\u00a0");
  const cellOf = (text, { name, number, wide, fills, colours }) => {
    const kind = number ? "cs-number" : wide ? "cs-wide" : fills ? "cs-fill" : "";
    const cell = make("td", { class: `cs-at-${name} ${kind}` }, fills || wide ? "" : text);
    if (fills) cell.append(broken(make("div", { class: "cs-clamp" }), unbroken(text)));
    else if (wide) broken(cell, unbroken(text));
    if (Object.hasOwn(colours, text)) {
      const mark = make("span", { class: "cs-mark", "aria-hidden": "true" });
      mark.style.background = colours[text];
      cell.prepend(mark);
    }
    if (text.length > 24) cell.title = text;
    return cell;
  };

  const foldOf = (id, { below, is_open }) => {
    const label = `${below} ${below === 1 ? "lookup" : "lookups"} below lookup ${id}`;
    const made = make("button", { type: "button", class: "cs-fold", tabindex: "-1", title: label, "aria-expanded": String(is_open), "aria-label": label },
      is_open ? "▾" : "▸");
    made.onclick = (event) => { event.stopPropagation(); set({ folded: now(id) }); };
    return made;
  };

  const rowsOf = () => {
    const [columns, ids, folds] = [model.get("columns"), model.get("ids"), model.get("folds")];
    const selected = model.get("selected");
    return model.get("rows").map((cells, i) => {
      const row = make("tr", { "data-id": ids[i], tabindex: "-1" });
      if (model.get("opens")) row.setAttribute("aria-selected", String(ids[i] === selected));
      row.append(...cells.map((text, c) => cellOf(text, columns[c])));
      const fold = folds[i];
      if (fold) row.setAttribute("aria-level", fold.level);
      if (fold?.level === 2) row.className = "cs-below";
      if (fold?.below) {
        row.setAttribute("aria-expanded", String(fold.is_open));
        row.firstChild.prepend(foldOf(ids[i], fold));
      }
      row.onclick = () => open(ids[i]);
      return row;
    });
  };

  const rows = () => {
    // What had the focus keeps it, though it is drawn anew.
    const focused = body.contains(document.activeElement) ? document.activeElement.closest("tr")?.dataset.id : null;
    const nodes = rowsOf();
    const columns = model.get("columns");
    if (!nodes.length) {
      const row = make("tr");
      row.append(make("td", { colspan: String(columns.length), class: "cs-faint" }, model.get("empty")));
      nodes.push(row);
    }
    body.replaceChildren(...nodes);
    const first = rowOf(focused ?? model.get("selected")) ?? body.querySelector("tr[data-id]");
    if (first) first.tabIndex = 0;
    if (focused !== null) first?.focus();
    const begin = model.get("page") * model.get("page_size");
    table.setAttribute("role", model.get("folds").length ? "treegrid" : model.get("opens") ? "grid" : "table");
    table.classList.toggle("cs-opens", model.get("opens"));
    table.setAttribute("aria-rowcount", String(model.get("total") + head.rows.length));
    nodes.forEach((row, i) => row.setAttribute("aria-rowindex", String(begin + i + 1 + head.rows.length)));
    page(begin, model.get("ids").length);
  };

  const said = make("span", { role: "status", "aria-live": "polite" });
  const last = () => Math.max(0, Math.ceil(model.get("total") / model.get("page_size")) - 1);
  const button = (text, label, act) => {
    const made = make("button", { type: "button", class: "cs-button", "aria-label": label }, text);
    made.onclick = act;
    return made;
  };
  const turns = Object.entries(PAGES).map(([name, to]) => button(name, `${name} page of ${model.get("label")}`,
    () => set({ page: Math.min(last(), Math.max(0, to(model.get("page"), last()))) })));
  const ask = (copy, all) => () => model.send({ copy, all });
  const copies = [button("Copy page", `Copy this page of ${model.get("label")}`, ask("tsv", false)),
    button("Copy all", `Copy all ${model.get("label")}`, ask("tsv", true)),
    button("CSV", `Keep all ${model.get("label")} as a CSV file`, ask("csv", true))];
  const done = make("span", { role: "status", "aria-live": "polite" });
  const exports = make("span", { class: "cs-exports" });
  exports.append(done, ...copies);
  pager.append(said, ...turns, exports);

  const page = (begin, count) => {
    const total = model.get("total");
    const few = total <= model.get("page_size");
    said.textContent = !total ? "" : few ? `${plain(total)} ${total === 1 ? "row" : "rows"}`
      : `${plain(begin + 1)}–${plain(begin + count)} of ${plain(total)}`;
    const here = model.get("page");
    turns.forEach((one, i) => {
      one.hidden = few;
      one.disabled = i < 2 ? here === 0 : here >= last();
    });
    exports.hidden = !total;
    copies[0].hidden = few;
    done.textContent = "";
  };

  const copied = async (message, buffers) => {
    if (!message.copied) return;
    const text = new TextDecoder().decode(buffers[0]);
    const rows = text.split("\n").length - 2;
    const count = `${plain(rows)} ${rows === 1 ? "row" : "rows"}`;
    try {
      if (message.copied === "csv") toFile(text, `${model.get("label")}.csv`);
      else await toClipboard(text);
      done.textContent = message.copied === "csv" ? `${count} kept` : `${count} copied`;
    } catch (error) { done.textContent = `Not copied: ${error.message}`; }
  };

  const step = (row, by) => {
    const next = by > 0 ? row.nextElementSibling : row.previousElementSibling;
    next?.focus();
  };
  const keys = {
    ArrowDown: (row) => step(row, 1),
    ArrowUp: (row) => step(row, -1),
    ArrowRight: (row) => row.ariaExpanded === "false" && set({ folded: now(Number(row.dataset.id)) }),
    ArrowLeft: (row) => row.ariaExpanded === "true" && set({ folded: now(Number(row.dataset.id)) }),
    Enter: (row) => open(Number(row.dataset.id)),
    " ": (row) => open(Number(row.dataset.id)),
  };
  let held = null;
  body.addEventListener("focusin", ({ target }) => {
    // Tab leads to the one row that had the focus last.
    const row = target.closest("tr");
    for (const other of body.querySelectorAll("tr[tabindex='0']")) other.tabIndex = -1;
    row.tabIndex = 0;
    held = row.dataset.id;
  });
  body.onkeydown = (event) => {
    const row = event.target.closest("tr[data-id]");
    if (!row || event.target !== row || !Object.hasOwn(keys, event.key)) return;
    keys[event.key](row);
    // Jupyter has commands of its own on these keys.
    event.preventDefault();
    event.stopPropagation();
  };

  const all = () => { heads(); rows(); };
  // One message may change several of them: drawn once.
  let waiting = false;
  const soon = () => {
    if (waiting) return;
    waiting = true;
    queueMicrotask(() => { waiting = false; all(); });
  };
  const on = { "msg:custom": copied };
  for (const name of ["columns", "sort", "rows", "ids", "selected", "total", "folds", "summaries"]) on[`change:${name}`] = soon;
  for (const [name, act] of Object.entries(on)) model.on(name, act);
  all();
  const leave = keepsFocus(body, (home) => {
    const again = home.querySelector(`table[aria-label=${JSON.stringify(model.get("label"))}]`);
    return again?.querySelector(`tr[data-id="${held}"]`) ?? again?.querySelector("tr[tabindex='0']");
  });
  return () => {
    leave();
    for (const [name, act] of Object.entries(on)) model.off(name, act);
  };
}
export default { render: showTable };
