// What to fix first: a card for each cause. Texts go in as textContent only.
function render({ model, el }) {
  el.classList.add("cs");
  // The time makes opening the same one again a change.
  const open = (pane, id) => { model.set("opened", [pane, id, Date.now()]); model.save_changes(); };

  const changed = ([name, change]) => {
    const line = make("li");
    if (name) line.append(make("code", {}, name), " ");
    line.append(change);
    return line;
  };

  const item = (card) => {
    const made = make("li", { class: "cs-work" });
    const title = make("div", { class: "cs-work-title" });
    const opens = make("button", { type: "button", class: "cs-link", "aria-label": `Why: ${card.title}` }, card.title);
    opens.dataset.cause = card.cause;
    opens.onclick = () => {
      opened(el, () => el.querySelector(`[data-cause="${card.cause}"]`));
      open("Why", card.lookup);
    };
    title.append(opens, make("span", { class: "cs-faint" }, card.cost));
    made.append(title);
    const changes = make("ul");
    changes.append(...card.changes.map(changed));
    if (card.changes.length) made.append(changes);
    made.append(make("div", { class: "cs-faint" }, card.where), ...card.lines.map((line) => make("div", { class: "cs-set" }, line)));
    if (card.advice) made.append(make("div", {}, card.advice));
    const lookups = make("button", { type: "button", class: "cs-button", "aria-label": `Lookups of ${card.title}` }, "Its lookups");
    lookups.onclick = () => open("Lookups", card.cause);
    made.append(lookups);
    return made;
  };

  const list = (cards, label) => {
    const made = make("ol", { class: "cs-worklist", "aria-label": label });
    made.append(...cards.map(item));
    return made;
  };

  const draw = () => {
    const { first, later, later_title, apart, apart_title, notes } = model.get("cards");
    const parts = [];
    if (first.length) parts.push(list(first, "what to fix first, the costliest on top"));
    if (later.length) {
      const folded = make("details");
      const rest = list(later, "what to fix besides");
      rest.start = first.length + 1;
      folded.append(make("summary", {}, later_title), rest);
      parts.push(folded);
    }
    if (apart.length) parts.push(make("h4", {}, apart_title), list(apart, apart_title));
    parts.push(...notes.map((note) => make("p", { class: "cs-faint" }, note)));
    el.replaceChildren(...parts);
  };
  model.on("change:cards", draw);
  draw();
}
export default { render };
