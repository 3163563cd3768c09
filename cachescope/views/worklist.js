// What to fix first: one item for each cause. Texts go in as textContent only.
// What to do about further causes is folded away: figures stand below.
const OPEN = 5;

function render({ model, el }) {
  el.classList.add("cs");
  // The time makes opening the same one again a change.
  const open = (pane, id) => { model.set("opened", [pane, id, Date.now()]); model.save_changes(); };
  const button = (pane, id, text, label) => {
    const made = make("button", { type: "button", class: "cs-button", "aria-label": label }, text);
    made.onclick = () => open(pane, id);
    return made;
  };

  const changed = ([name, change]) => {
    const line = make("li");
    if (name) line.append(make("code", {}, name), " ");
    line.append(change);
    return line;
  };

  const item = (work, place) => {
    const made = make("li", { class: "cs-work" });
    const title = make("div", { class: "cs-work-title" });
    const opens = make("button", { type: "button", class: "cs-link", "aria-label": `Why: ${work.title}` }, work.title);
    opens.dataset.cause = work.cause;
    opens.onclick = () => {
      opened(el, () => el.querySelector(`[data-cause="${work.cause}"]`));
      open("Why", work.lookup);
    };
    title.append(opens, make("span", { class: "cs-faint" }, work.cost));
    made.append(title);
    const body = make(place < OPEN ? "div" : "details");
    if (place >= OPEN) body.append(make("summary", { class: "cs-faint", "aria-label": `What to do: ${work.title}` }, "What to do"));
    const changes = make("ul");
    changes.append(...work.changes.map(changed));
    if (work.changes.length) body.append(changes);
    body.append(make("div", { class: "cs-faint" }, work.where), ...work.lines.map((line) => make("div", { class: "cs-set" }, line)));
    if (work.advice) body.append(make("div", {}, work.advice));
    body.append(button("Lookups", work.cause, "Its lookups", `Lookups of ${work.title}`));
    made.append(body);
    return made;
  };

  const draw = () => {
    const { works, apart, apart_title, notes } = model.get("worklist");
    const parts = [];
    const list = (of, label) => {
      const made = make("ol", { class: "cs-worklist", "aria-label": label });
      made.append(...of.map(item));
      return made;
    };
    if (works.length) parts.push(list(works, model.get("label")));
    if (apart.length) parts.push(make("h4", {}, apart_title), list(apart, apart_title));
    parts.push(...notes.map((note) => make("p", { class: "cs-faint" }, note)));
    el.replaceChildren(...parts);
  };
  model.on("change:worklist", draw);
  draw();
}
export default { render };
