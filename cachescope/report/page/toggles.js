// Leaves fields out of the keys, and shows at once what would have hit. Texts go in as textContent only.
document.querySelectorAll(".replay").forEach((home) => {
  const { groups, codes } = JSON.parse(home.querySelector("script").textContent);
  const replay = replayOf(codes);
  const labels = new Map(groups.flatMap((group) => [group, ...group.fields]).map(({ name, label }) => [name, label]));
  // What a page without a kernel has in place of anywidget's model: all that changes is what is left out.
  const values = { groups, off: [] };
  const heard = [];
  const model = { get: (name) => values[name], set: (name, value) => { values[name] = value; }, on: (_, act) => heard.push(act),
    save_changes: () => heard.forEach((act) => act()) };
  const [undo, reset] = home.querySelectorAll(".buttons button");
  const leftOut = home.querySelector("[role=status] > p");
  const past = [];
  let now = [];

  const { percent, duration } = wording;
  const counted = (count) => count.toLocaleString("en");
  const moved = (before, after) => (before === after ? before : `${before} → ${after}`);
  const savedText = (found) => {
    if (!found.hits) return "nothing saved";
    return found.won ? `${duration(found.won)} saved` : "times not recorded";
  };
  const cells = ["Hit rate by count", "By compile time", "Would hit", "Undecided"].map((label) => {
    const [cell, told, number, note] = ["div", "dd", "b", "span"].map((name) => make(name));
    told.append(number, note);
    cell.append(make("dt", {}, label), told);
    home.querySelector(".cs-numbers").append(cell);
    return (...texts) => { [number.textContent, note.textContent] = texts; };
  });

  // What is left out is called "field 3" or "form 0".
  const chosen = (kind) => now.filter((name) => name.startsWith(kind)).map((name) => Number(name.slice(kind.length)));
  const show = () => {
    const { before } = replay;
    const found = replay.without(chosen("field "), chosen("form "));
    const after = replay.rates(found);
    const texts = [
      [moved(percent(before.hit_rate), percent(after.hit_rate)), `${moved(counted(before.hits), counted(after.hits))} of ${counted(before.lookups)} lookups`],
      [moved(percent(before.time_hit_rate), percent(after.time_hit_rate)), savedText(found)],
      [counted(found.hits), `of ${counted(before.misses)} misses`],
      [counted(found.undecided), found.undecided ? "no details of the key, or guards that no log has" : ""],
    ];
    cells.forEach((tell, at) => tell(...texts[at]));
    const more = now.length > 1 ? ". What is said beside each is of it alone: together they may make more keys one." : "";
    leftOut.textContent = now.length ? `Without ${now.map((name) => labels.get(name)).join(", ")}${more}` : "Everything counts, as recorded.";
    // A button that is disabled would lose the focus.
    undo.setAttribute("aria-disabled", !past.length);
    reset.setAttribute("aria-disabled", !now.length);
  };
  const become = (off) => { model.set("off", off); model.save_changes(); };
  model.on("change:off", () => { past.push(now); now = model.get("off"); show(); });
  undo.addEventListener("click", () => {
    if (!past.length) return;
    become(past.pop());
    past.pop(); // going back is no step to go back from
    show();
  });
  reset.addEventListener("click", () => { if (now.length) become([]); });

  const tree = make("div");
  home.append(tree);
  showTree({ model, el: tree });
  home.hidden = false;
  show();
});
