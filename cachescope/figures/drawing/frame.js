// What is around the plot: axes, grid, legend, annotations.
const axisKeys = (layout, letter) => Object.keys(layout).filter((key) => new RegExp(`^${letter}axis[0-9]*$`).test(key));
const LEGEND_LINE = 16;
const LEGEND_MARK = 11;
const TICK_GAP = 5;

const tickSize = (axis) => axis.tickfont?.size ?? 12;

// The lowest and highest value on each axis.
function extentsOf(marks, layout) {
  const extents = {};
  for (const mark of marks) {
    for (const letter of ["x", "y"]) {
      const name = mark.axes[letter];
      const own = (extents[name] ??= { lowest: Infinity, highest: -Infinity, hasPoints: false, hasBars: false });
      const type = layout[`${letter}axis${name.slice(1)}`]?.type;
      for (const value of mark[letter]) {
        const number = numberOf(type, value);
        own.lowest = Math.min(own.lowest, number);
        own.highest = Math.max(own.highest, number);
      }
      own.hasPoints ||= mark.kind === "dot";
      own.hasBars ||= mark.kind === "bar" && (letter === "x") === mark.lying && type !== "log";
    }
  }
  return extents;
}

// Scales of all axes within the margins, which grow for the labels of rows.
function scalesOf(layout, marks, width, zoomed) {
  const extents = extentsOf(marks, layout);
  const none = { lowest: Infinity, highest: -Infinity };
  const range = (letter, key) => {
    const name = letter + key.slice(5);
    return zoomed[name] ?? rangeOf(layout[key], extents[name] ?? none);
  };
  const margin = { ...layout.margin };
  for (const key of axisKeys(layout, "y")) {
    const axis = layout[key];
    if (!axis.automargin) continue;
    const longest = Math.max(0, ...ticksOf(axis, range("y", key)).map(({ text }) => widthOf(text, tickSize(axis))));
    margin.l = Math.max(margin.l, Math.min(longest + (axis.ticklabelstandoff ?? 0) + TICK_GAP, width * 0.45));
  }
  const area = { left: margin.l, right: Math.max(margin.l + 20, width - margin.r), top: margin.t, bottom: layout.height - margin.b };
  const [wide, high] = [area.right - area.left, area.bottom - area.top];
  const scales = {};
  const add = (letter, key, from, to) => {
    scales[letter + key.slice(5)] = scaleOf(layout[key], range(letter, key), from, to);
  };
  for (const key of axisKeys(layout, "x")) {
    const [from, to] = layout[key].domain ?? [0, 1];
    add("x", key, area.left + from * wide, area.left + to * wide);
  }
  for (const key of axisKeys(layout, "y")) {
    const [from, to] = layout[key].domain ?? [0, 1];
    add("y", key, area.bottom - from * high, area.bottom - to * high);
  }
  return { scales, area };
}

// Of how many ticks one has a label, so that no two labels meet: an amount that is cut says another one.
function ticksPerLabel(ticks, size) {
  const widths = ticks.map(({ text }) => widthOf(text, size));
  const meet = (a, b) => b < ticks.length && Math.abs(ticks[b].at - ticks[a].at) < (widths[a] + widths[b]) / 2 + 4;
  for (let every = 1; every < ticks.length; every += 1) {
    if (!ticks.some((tick, at) => at % every === 0 && meet(at, at + every))) return every;
  }
  return ticks.length;
}

const linesFitted = (text, size, room) => text.split("<br>").map((line) => fitted(line, size, room)).join("<br>");

function axisNodes(layout, scales, area) {
  const made = [];
  let ends = -Infinity;
  for (const [name, { axis, from, to, ticks }] of Object.entries(scales)) {
    if (axis.visible === false) continue;
    const across = name[0] === "x";
    const look = { size: tickSize(axis), colour: layout.font.color };
    const isAmount = axis.type === "date" || axis.showgrid !== false;
    const every = across && isAmount ? ticksPerLabel(ticks, look.size) : 1;
    // Labels of columns do not reach into each other.
    const room = isAmount ? Infinity : ticks.length > 1 ? Math.abs(ticks[1].at - ticks[0].at) - 4 : Math.abs(to - from) - 4;
    for (const [place, { at, text }] of ticks.entries()) {
      if (axis.showgrid !== false) {
        const [x, y] = across ? [[at, at], [area.top, area.bottom]] : [[area.left, area.right], [at, at]];
        made.push(node("line", { x1: n(x[0]), x2: n(x[1]), y1: n(y[0]), y2: n(y[1]), stroke: axis.gridcolor ?? "rgba(128,128,128,0.25)", "shape-rendering": "crispEdges" }));
      }
      if (place % every) continue;
      const label = across ? linesFitted(text, look.size, room) : "";
      // Nor is one cut by the edge of the figure.
      if (across && at + widthOf(label, look.size) / 2 > area.right + layout.margin.r) continue;
      if (across && !isAmount) {
        // Nor into those of the block before.
        const half = widthOf(label, look.size) / 2;
        if (at - half < ends + 4) continue;
        ends = at + half;
      }
      made.push(across ? textNode(label, n(at), area.bottom + TICK_GAP, { ...look, across: "middle", down: "top" })
        : textNode(fitted(text, look.size, area.left - TICK_GAP), area.left - (axis.ticklabelstandoff ?? TICK_GAP), n(at), { ...look, across: "end" }));
    }
    const title = axis.title?.text;
    if (!title) continue;
    const font = { size: axis.title.font?.size ?? 12, colour: layout.font.color, across: "middle" };
    if (across) {
      const lines = Math.max(1, ...ticks.map(({ text }) => piecesOf(text).length));
      const y = area.bottom + TICK_GAP + lines * tickSize(axis) * LINE_HEIGHT + (axis.title.standoff ?? 4);
      made.push(textNode(title, (from + to) / 2, y, { ...font, down: "top" }));
    } else {
      const turned = textNode(title, 0, 0, { ...font, down: "top" });
      turned.setAttribute("transform", `translate(2 ${n((from + to) / 2)}) rotate(-90)`);
      made.push(turned);
    }
  }
  return made;
}

// One item for each name, in the order of the traces; on as many lines as it takes.
function legendNodes(figure, width) {
  const { layout, data } = figure;
  const items = data.filter((trace) => trace.name && trace.showlegend !== false && trace.type !== "heatmap");
  const names = new Set();
  const unique = items.filter(({ name, legendgroup }) => { const key = legendgroup ?? name; return !names.has(key) && names.add(key); });
  const size = layout.font.size;
  let [x, y] = [0, 10];
  return unique.flatMap((trace) => {
    const wide = LEGEND_MARK + 6 + widthOf(trace.name, size) + 18;
    if (x > 0 && x + wide - 18 > width) [x, y] = [0, y + LEGEND_LINE];
    const left = x;
    x += wide;
    const symbol = trace.type === "scatter" && !Array.isArray(trace.marker.symbol) ? trace.marker.symbol ?? "circle" : trace.type === "bar" ? "square" : "circle";
    const box = { left, right: left + LEGEND_MARK, top: y - LEGEND_MARK / 2, bottom: y + LEGEND_MARK / 2 };
    const colour = Array.isArray(trace.marker.color) ? trace.marker.color[0] : trace.marker.color;
    return [node("path", { d: outline({ kind: "dot", symbol, box }), fill: colour }), textNode(trace.name, left + LEGEND_MARK + 6, y, { size, colour: layout.font.color })];
  });
}

const ACROSS = { left: "start", center: "middle", right: "end" };

function annotationNodes(layout, scales, area, width) {
  return (layout.annotations ?? []).map((one) => {
    const place = (letter) => {
      const ref = one[`${letter}ref`] ?? letter;
      const [name, isDomain] = ref.split(" ");
      const value = one[letter];
      const [from, to] = ref === "paper" ? (letter === "x" ? [area.left, area.right] : [area.bottom, area.top])
        : isDomain ? [scales[name].from, scales[name].to] : [];
      return from === undefined ? scales[name].pixel(value) : from + value * (to - from);
    };
    const size = one.font?.size ?? layout.font.size;
    const across = ACROSS[one.xanchor ?? "center"];
    const wanted = place("x") + (one.xshift ?? 0);
    // A note that is too long for its place begins further left.
    const x = across === "start" ? Math.max(Math.min(wanted, 2), Math.min(wanted, width - widthOf(one.text, size) - 2)) : wanted;
    const text = across === "start" ? linesFitted(one.text, size, Math.max(40, width - x)) : one.text;
    return textNode(text, x, place("y") - (one.yshift ?? 0), { size, colour: one.font?.color ?? layout.font.color, across, down: one.yanchor ?? "middle" });
  });
}
