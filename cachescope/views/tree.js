// What counts in a key, as a tree of check boxes with a search box. Texts go in as textContent only.
const MOST = 60;
function render({ model, el }) {
  el.classList.add("cs");
  const box = make("div", { class: "cs-tree" });
  const search = make("input");
  search.type = "search";
  search.placeholder = "Search fields";
  search.setAttribute("aria-label", "Search the fields of the keys");
  const list = make("div");
  list.setAttribute("role", "group");
  list.setAttribute("aria-label", "What counts in a key");
  box.append(search, list);
  el.append(box);
  const opened = new Set();

  const toggle = (name, counts) => {
    const off = model.get("off").filter((one) => one !== name);
    model.set("off", counts ? off : [...off, name]);
    model.save_changes();
  };
  const line = (node, counts, fixed) => tickBox(node.name, node.label,
    { isTicked: counts, isFixed: fixed, onToggle: (isTicked) => toggle(node.name, isTicked) });
  const leaf = (node, formOff, off) => {
    const place = make("div", { class: "cs-leaf" });
    place.append(line(node, !formOff && !off.has(node.name), formOff));
    if (node.saves) place.append(make("span", { class: "cs-saves" }, node.saves));
    if (node.note) place.append(make("span", { class: "cs-faint" }, node.note));
    return place;
  };
  const draw = () => {
    const focused = document.activeElement?.dataset?.name;
    const off = new Set(model.get("off"));
    const wanted = search.value.trim().toLowerCase();
    const parts = [];
    let section = null;
    for (const group of model.get("groups")) {
      // Varying fields are listed at once, the rest are found by name: a config has six hundred fields.
      const found = group.fields.filter((f) => (wanted ? f.name.toLowerCase().includes(wanted) : f.varies || off.has(f.name)));
      const named = wanted && group.label.toLowerCase().includes(wanted);
      if (wanted && !found.length && !named) continue;
      if (group.section !== section) parts.push(make("h4", {}, (section = group.section)));
      const formOff = group.is_form && off.has(group.name);
      const place = make("div", { class: "cs-form" });
      if (group.is_form) {
        place.append(line(group, !formOff, false));
        if (group.saves) place.append(make("span", { class: "cs-saves" }, group.saves));
        if (group.note) place.append(make("span", { class: "cs-faint" }, group.note));
      }
      const shown = found.slice(0, MOST).map((f) => leaf(f, formOff, off));
      if (found.length > MOST) shown.push(make("div", { class: "cs-leaf cs-faint" }, `… and ${found.length - MOST} more: search for one`));
      const rest = group.fields.length - found.length;
      if (!wanted && rest > 0) {
        const more = make("details");
        more.open = opened.has(group.name);
        const same = make("summary", { class: "cs-faint" }, `${rest} ${rest === 1 ? "field" : "fields"}, the same everywhere`);
        const fill = () => {
          const others = group.fields.filter((f) => !found.includes(f));
          const nodes = others.slice(0, MOST).map((f) => leaf(f, formOff, off));
          if (others.length > MOST) nodes.push(make("div", { class: "cs-leaf cs-faint" }, `… and ${others.length - MOST} more: search for one`));
          more.replaceChildren(same, ...nodes);
        };
        more.append(same);
        if (more.open) fill();
        more.ontoggle = () => {
          if (more.open === opened.has(group.name)) return;
          if (more.open) { opened.add(group.name); fill(); } else opened.delete(group.name);
        };
        shown.push(more);
      }
      place.append(...shown);
      parts.push(place);
    }
    if (!parts.length) parts.push(make("p", { class: "cs-faint" }, wanted ? "No field has this in its name." : model.get("empty")));
    list.replaceChildren(...parts);
    if (focused) [...list.querySelectorAll("input")].find((one) => one.dataset.name === focused)?.focus();
  };
  search.oninput = draw;
  // Jupyter has commands of its own on plain letters.
  box.onkeydown = (event) => event.stopPropagation();
  model.on("change:off", draw);
  model.on("change:groups", draw);
  draw();
  return () => { model.off("change:off", draw); model.off("change:groups", draw); };
}
export default { render };
