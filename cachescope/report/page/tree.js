// What counts in a key, as a tree of check boxes with a search box. Texts go in as textContent only.
// Its model is anywidget's, or one that a page without a kernel has in its place.
const MOST = 60;
function showTree({ model, el }) {
  el.classList.add("cs");
  const box = make("div", { class: "cs-tree" });
  const search = make("input", { type: "search", class: "cs-search", placeholder: "Search fields", "aria-label": "Search the fields of the keys" });
  const list = make("div", { role: "group", "aria-label": "What counts in a key" });
  box.append(search, list);
  el.append(box);
  const opened = new Set();

  const toggle = (name, counts) => {
    const off = model.get("off").filter((one) => one !== name);
    model.set("off", counts ? off : [...off, name]);
    model.save_changes();
  };
  const line = (node, counts, fixed) => {
    const made = make("label", counts ? {} : { class: "cs-off" });
    const input = make("input", { type: "checkbox", "data-name": node.name });
    input.checked = counts;
    input.disabled = fixed;
    input.onchange = () => toggle(node.name, input.checked);
    made.append(input, make("span", {}, node.label));
    return made;
  };
  // What leaving it out saves, what is known about that, and what a replay without it says.
  const beside = (node, off) => {
    const parts = [];
    if (node.saves) parts.push(make("span", { class: "cs-saves" }, node.saves));
    if (node.note) parts.push(make("span", { class: "cs-faint" }, node.note));
    const told = off.has(node.name) ? [["cs-error", node.warnings], ["cs-faint", off.size > 1 ? [] : node.causes]] : [];
    for (const [kind, texts] of told) parts.push(...texts.map((text) => make("div", { class: `cs-told ${kind}` }, text)));
    return parts;
  };
  const leaf = (node, formOff, off) => {
    const place = make("div", { class: "cs-leaf" });
    place.append(line(node, !formOff && !off.has(node.name), formOff));
    place.append(...beside(node, off));
    return place;
  };
  const leaves = (fields, formOff, off) => {
    const nodes = fields.slice(0, MOST).map((f) => leaf(f, formOff, off));
    if (fields.length > MOST) nodes.push(make("div", { class: "cs-leaf cs-faint" }, `… and ${fields.length - MOST} more: search for one`));
    return nodes;
  };
  // Fields behind one line, which stays open when all is drawn again.
  const folded = (name, what, fields, formOff, off) => {
    if (!fields.length) return [];
    const more = make("details");
    more.open = opened.has(name);
    const line = make("summary", { class: "cs-faint" }, `${fields.length} ${fields.length === 1 ? "field" : "fields"}, ${what}`);
    const fill = () => more.replaceChildren(line, ...leaves(fields, formOff, off));
    more.append(line);
    if (more.open) fill();
    more.ontoggle = () => {
      if (more.open === opened.has(name)) return;
      if (more.open) { opened.add(name); fill(); } else opened.delete(name);
    };
    return [more];
  };
  const draw = () => {
    const focused = document.activeElement?.dataset?.name;
    const off = new Set(model.get("off"));
    const wanted = search.value.trim().toLowerCase();
    const parts = [];
    let section = null;
    for (const group of model.get("groups")) {
      // What may help is listed at once, the rest are folded or found by name: a config has six hundred fields.
      const named = wanted && group.label.toLowerCase().includes(wanted);
      const found = group.fields.filter((f) => named || (wanted ? `${f.name} ${f.label}`.toLowerCase().includes(wanted) : (f.varies && !f.idle) || off.has(f.name)));
      if (wanted && !found.length && !named) continue;
      if (group.section !== section) parts.push(make("h4", {}, (section = group.section)));
      const formOff = group.is_form && off.has(group.name);
      const place = make("div", { class: "cs-form" });
      if (group.is_form) {
        place.append(line(group, !formOff, false), ...beside(group, off));
      }
      const shown = leaves(found, formOff, off);
      if (!wanted) {
        const rest = group.fields.filter((f) => !found.includes(f));
        shown.push(...folded(`${group.name} idle`, "saving nothing alone", rest.filter((f) => f.idle), formOff, off),
          ...folded(`${group.name} same`, "the same everywhere", rest.filter((f) => !f.idle), formOff, off));
      }
      place.append(...shown);
      parts.push(place);
    }
    if (!parts.length) parts.push(make("p", { class: "cs-faint" }, wanted ? "No field has this in its name." : "No hash details were recorded, so no field is known."));
    list.replaceChildren(...parts);
    if (focused) [...list.querySelectorAll("input")].find((one) => one.dataset.name === focused)?.focus();
  };
  search.oninput = draw;
  // Jupyter has commands of its own on plain letters.
  box.onkeydown = (event) => event.stopPropagation();
  model.on("change:off", draw);
  draw();
  return () => model.off("change:off", draw);
}
