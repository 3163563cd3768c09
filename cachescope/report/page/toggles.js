// Leaves fields out of the keys, and shows at once what would have hit. Texts go in as textContent only.
document.querySelectorAll(".replay").forEach((place) => {
  const replay = replayOf(JSON.parse(place.querySelector("script").textContent));
  const boxes = [...place.querySelectorAll("input[type=checkbox]")];
  const [undo, reset] = place.querySelectorAll(".buttons button");
  const numbers = place.querySelector(".cs-numbers");
  const leftOut = place.querySelector("[role=status] > p");
  // "field 3", "form 0".
  const off = new Set();
  const past = [];

  const { percent, duration } = wording;
  const counted = (count) => count.toLocaleString("en");
  const moved = (before, after) => (before === after ? before : `${before} → ${after}`);
  const savedText = (found) => {
    if (!found.hits) return "nothing saved";
    return found.won ? `${duration(found.won)} saved` : "times not recorded";
  };
  const cells = ["Hit rate by count", "By compile time", "Would hit", "Undecided"].map((label) => {
    const [cell, head, told, number, note] = ["div", "dt", "dd", "b", "span"].map((name) => document.createElement(name));
    head.textContent = label;
    told.append(number, note);
    cell.append(head, told);
    numbers.append(cell);
    return (...texts) => { [number.textContent, note.textContent] = texts; };
  });

  const chosen = (kind) => [...off].filter((name) => name.startsWith(kind)).map((name) => Number(name.slice(kind.length)));
  const nameOf = (box) => (box.dataset.form === undefined ? `field ${box.dataset.field}` : `form ${box.dataset.form}`);
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
    boxes.forEach((box) => {
      box.disabled = off.has(`form ${box.dataset.of}`);
      box.checked = !box.disabled && !off.has(nameOf(box));
    });
    const names = new Set(boxes.filter((box) => off.has(nameOf(box))).map((box) => box.labels[0].textContent.trim()));
    const more = names.size > 1 ? ". What is said beside each is of it alone: together they may make more keys one." : "";
    leftOut.textContent = names.size ? `Without ${[...names].join(", ")}${more}` : "Everything counts, as recorded.";
    place.querySelectorAll("[data-when]").forEach((told) => {
      const isOff = off.has(nameOf(told.closest("li").querySelector("input")));
      told.hidden = !isOff || (told.dataset.when === "alone" && off.size > 1);
    });
    // A button that is disabled would lose the focus.
    undo.setAttribute("aria-disabled", !past.length);
    reset.setAttribute("aria-disabled", !off.size);
  };
  const become = (names) => { off.clear(); names.forEach((name) => off.add(name)); show(); };
  const choose = (names) => { past.push([...off]); become(names); };
  boxes.forEach((box) => box.addEventListener("change", () => {
    const others = [...off].filter((name) => name !== nameOf(box));
    choose(box.checked ? others : [...others, nameOf(box)]);
  }));
  undo.addEventListener("click", () => { if (past.length) become(past.pop()); });
  reset.addEventListener("click", () => { if (off.size) choose([]); });

  place.querySelector("input[type=search]")?.addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (one) => words.every((word) => one.querySelector("code").textContent.toLowerCase().includes(word));
    place.querySelectorAll(".replay > ul > li").forEach((form) => {
      const fields = [...form.querySelectorAll("li")];
      const isNamed = Boolean(form.querySelector(":scope > label")) && matches(form);
      fields.forEach((field) => { field.hidden = !isNamed && !matches(field); });
      form.hidden = words.length > 0 && !isNamed && fields.every((field) => field.hidden);
    });
  });
  place.hidden = false;
  show();
});
