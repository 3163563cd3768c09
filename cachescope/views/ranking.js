// The fields that would help most, in groups by safety; a tick says that they count. Texts go in as textContent only.
function render({ model, el }) {
  el.classList.add("cs");
  const box = make("div", { class: "cs-ranking" });
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", model.get("label"));
  el.append(box);

  const toggle = (fields, counts) => {
    const mine = new Set(fields);
    const off = model.get("off").filter((name) => !mine.has(name));
    model.set("off", counts ? off : [...off, ...fields]);
    model.save_changes();
  };
  const line = (row, off) => {
    // A field is out by itself or with the whole form that it is part of.
    const fixed = row.fields.every((_, at) => off.has(row.forms[at]));
    const counts = !row.fields.every((name, at) => off.has(name) || off.has(row.forms[at]));
    const place = make("div", { class: "cs-rank" });
    const label = tickBox(row.label, row.label, { isTicked: counts, isFixed: fixed, onToggle: (isTicked) => toggle(row.fields, isTicked) });
    const bar = make("span", { class: row.later ? "cs-share cs-later" : "cs-share" });
    bar.setAttribute("aria-hidden", "true");
    bar.append(make("span"));
    bar.firstChild.style.width = `${100 * row.share}%`;
    place.append(label, make("span", { class: "cs-saves" }, row.saves), bar, make("span", { class: "cs-faint" }, row.note));
    return place;
  };
  const draw = () => {
    const focused = box.contains(document.activeElement) ? document.activeElement.dataset.name : null;
    const off = new Set(model.get("off"));
    const parts = [];
    for (const group of model.get("groups")) parts.push(make("h4", {}, group.title), ...group.rows.map((row) => line(row, off)));
    for (const note of model.get("notes")) parts.push(make("p", { class: "cs-faint" }, note));
    box.replaceChildren(...parts);
    if (focused !== null) [...box.querySelectorAll("input")].find((one) => one.dataset.name === focused)?.focus();
  };
  model.on("change:off", draw);
  draw();
  return () => model.off("change:off", draw);
}
export default { render };
