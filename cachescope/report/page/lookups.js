// The lookups of a page: filtered, sorted and folded here, shown by the table of the notebook, and each says why it missed.
const SEARCHED = ["cache", "compile_id", "function", "cache_key", "outcome", "verdict", "reason"];
const FILTERS = { run: "Run", rank: "Rank", cache: "Cache", outcome: "Outcome", cause: "Cause" };
const TIME = "time_taken_ns";
const SHORT_KEY = 8;
const NOTHING = "No lookup has all of these. Clear the filters to see them again.";

// What `showTable` asks for; a notebook has it from its kernel.
class LookupsModel extends Model {
  constructor(data, onChoose) {
    super({
      label: "lookups", columns: data.heads, sort: [TIME, false], page: 0, page_size: 20, selected: null, chosen: [], opens: true,
      folded: [], summaries: [], empty: NOTHING,
    });
    this.data = data;
    this.onChoose = onChoose;
    this.count = data.above.length;
    this.open = new Set();
    this.filters = {};
    this.places = new Map(Array.from({ length: this.count }, (_, at) => [Number(this.text("lookup", at)), at]));
    this.filter({});
  }

  text(name, at) {
    const { texts, codes } = this.data.columns[name];
    return codes[at] < 0 ? "" : texts[codes[at]];
  }
  save_changes() {
    if (this.changed === "folded") this.toggle(this.places.get(this.values.folded[0]));
    this.show();
    if (this.changed === "chosen") this.onChoose(this.values.selected);
  }
  toggle(at) { if (!this.open.delete(at)) this.open.add(at); }

  filter(filters) {
    this.filters = filters;
    this.values.page = 0;
    this.show();
  }

  passing() {
    const { columns } = this.data;
    const tests = [];
    for (const [name, value] of Object.entries(this.filters)) {
      if (name !== "text") {
        const code = columns[name].texts.indexOf(value);
        tests.push((at) => columns[name].codes[at] === code);
      } else if (value) {
        // Each distinct text once.
        const sought = value.toLowerCase();
        const found = SEARCHED.filter((one) => columns[one]).map((one) => [columns[one].codes, columns[one].texts.map((text) => text.toLowerCase().includes(sought))]);
        tests.push((at) => found.some(([codes, has]) => has[codes[at]]));
      }
    }
    return Array.from({ length: this.count }, (_, at) => at).filter((at) => tests.every((test) => test(at)));
  }

  // The compile time of what is folded below each; not known where that of a miss is not.
  timesBelow(below) {
    const sums = new Map();
    for (const at of below) {
      const above = this.data.above[at];
      const [sum, known] = sums.get(above) ?? [0, true];
      const time = this.data.times[at];
      sums.set(above, [sum + (time ?? 0), known && (time !== null || this.text("outcome", at) === "hit"), time !== null || sums.get(above)?.[2]]);
    }
    return new Map([...sums].flatMap(([at, [sum, known, any]]) => (known && any ? [[at, sum]] : [])));
  }

  show() {
    const { data } = this;
    const passing = this.passing();
    const seen = new Set(passing);
    const isBelow = (at) => data.above[at] >= 0 && seen.has(data.above[at]);
    const below = passing.filter(isBelow);
    const times = this.timesBelow(below);
    const [by, up] = this.values.sort;
    const rank = (at) => {
      if (by === TIME) return data.times[at] ?? times.get(at) ?? null;
      const code = data.columns[by].codes[at];
      return code < 0 ? null : code;
    };
    // Rows without a value come last either way.
    const compared = (a, b) => (rank(a) === null) - (rank(b) === null) || (rank(a) - rank(b)) * (up ? 1 : -1) || a - b;
    const of = new Map();
    for (const at of below.sort(compared)) of.set(data.above[at], [...(of.get(data.above[at]) ?? []), at]);
    const top = passing.filter((at) => !isBelow(at)).sort(compared);
    const rows = top.flatMap((at) => [at, ...(this.open.has(at) ? of.get(at) ?? [] : [])]);
    const { page, page_size } = this.values;
    const shown = rows.slice(page * page_size, (page + 1) * page_size);
    Object.assign(this.values, {
      passing: passing.length,
      total: rows.length,
      ids: shown.map((at) => Number(this.text("lookup", at))),
      rows: shown.map((at) => data.heads.map(({ name }) => this.cell(name, at, times))),
      folds: shown.map((at) => ({ level: isBelow(at) ? 2 : 1, below: of.get(at)?.length ?? 0, is_open: this.open.has(at) })),
    });
    this.tell("rows");
  }

  cell(name, at, times) {
    const text = this.text(name, at);
    if (name === "cache_key" && text) return `${text.slice(0, SHORT_KEY)}…`;
    return name === TIME && !text && times.has(at) ? `${wording.duration(times.get(at))} below` : text;
  }
}

const whyOf = (model, home) => {
  const place = make("div", { class: "cs why-lookup", role: "region", "aria-label": "Why one lookup missed" });
  place.hidden = true;
  const show = (lookup) => {
    const at = model.places.get(lookup);
    const said = (name) => model.text(name, at);
    const back = make("button", { type: "button", class: "cs-button cs-back" }, "Back to the lookups");
    back.onclick = () => { back.blur(); cameBack(home); };
    const parts = [back, make("p", { class: "cs-faint" }, `lookup ${lookup}, ${said("title")}`)];
    parts.push(make("b", {}, said("verdict") ? `${said("verdict")}: ${said("reason")}` : said("outcome")));
    if (said("evidence")) parts.push(make("p", { class: "cs-faint" }, said("evidence")));
    if (said("compared")) {
      const line = make("p", { class: "cs-faint" }, `compared with ${said("compared")} `);
      const baseline = Number(said("baseline_lookup"));
      if (said("baseline_lookup") && model.places.has(baseline)) {
        const to = make("button", { type: "button", class: "cs-link" }, `lookup ${baseline}`);
        to.onclick = () => show(baseline);
        line.append(to);
      }
      parts.push(line);
    }
    if (said("changed")) {
      const line = make("p", {}, "changed: ");
      line.append(make("code", {}, said("changed")));
      parts.push(line);
    }
    if (said("explained")) {
      const line = make("p");
      line.append(make("a", { href: `#cause-${said("explained")}` }, `Before and after, and what to do: ${said("explained")}. ${said("cause_summary")}`));
      parts.push(line);
    }
    place.replaceChildren(...parts);
    place.hidden = false;
    // Unlike in a notebook, what opened it stays in sight and would keep the focus.
    back.focus();
  };
  return { place, show };
};

// Boxes to choose one value of a column each, and one to search.
const filtersOf = (model, data) => {
  const bar = make("div", { class: "cs filters" });
  const count = make("span", { role: "status" });
  const clear = make("button", { type: "button", class: "cs-button" }, "Clear filters");
  const search = make("input", { type: "search", "aria-label": "Search lookups", placeholder: "key, compile, field, reason" });
  const boxes = [];
  const labelled = (text, box) => {
    const label = make("label", {}, text);
    label.append(box);
    bar.append(label);
  };
  const filter = () => {
    model.filter({ ...Object.fromEntries(boxes.filter(([, box]) => box.value).map(([name, box]) => [name, box.value])), text: search.value.trim() });
    const { passing } = model.values;
    const all = `${model.count.toLocaleString("en")} ${model.count === 1 ? "lookup" : "lookups"}`;
    count.textContent = passing < model.count ? `${passing.toLocaleString("en")} of ${all}` : all;
    clear.disabled = passing === model.count && !search.value && boxes.every(([, box]) => !box.value);
  };
  for (const [name, label] of Object.entries(FILTERS)) {
    const { texts, codes } = data.columns[name] ?? { texts: [] };
    if (texts.length < 2) continue;
    const said = name === "cause" ? (at) => model.text("cause_summary", codes.indexOf(at)) : (at) => texts[at];
    const box = make("select", { "aria-label": label });
    box.append(make("option", { value: "" }, "all"), ...texts.map((text, at) => make("option", { value: text }, said(at).slice(0, 80))));
    box.onchange = filter;
    boxes.push([name, box]);
    labelled(label, box);
  }
  search.oninput = filter;
  labelled("Search", search);
  clear.onclick = () => {
    for (const [, box] of boxes) box.value = "";
    search.value = "";
    filter();
    search.focus();
  };
  bar.append(count, clear);
  filter();
  return bar;
};

document.querySelectorAll(".lookups").forEach((home) => {
  const data = JSON.parse(home.querySelector("script").textContent);
  const model = new LookupsModel(data, (lookup) => why.show(lookup));
  const why = whyOf(model, home);
  const table = make("div");
  home.classList.add("cs-explorer");
  const hint = "Open a row to see why; Compile time is what a miss cost. ▸ shows the FX lookups below one of AOTAutograd.";
  home.append(filtersOf(model, data), make("p", { class: "cs-faint" }, hint), table, make("p", { class: "cs-faint" }, data.note), why.place);
  showTable({ model, el: table });
  home.hidden = false;
  home.parentElement.classList.add("has-lookups");
});
