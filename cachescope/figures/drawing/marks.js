// Traces with axes as marks: rectangles, dots and cells in values of their axes.
const given = (list, at) => (Array.isArray(list) ? list[at] : list);

const hovers = (trace) => trace.hoverinfo === "text";

function pointOf(trace, curve, index, data) {
  return { x: trace.x?.[index] ?? null, y: trace.y?.[index] ?? null, label: null, curve, index, data: data ?? null };
}

// Bars of one figure: those that are stacked begin where the one before at their place ended.
function barMarks(traces, layout) {
  const ends = new Map();
  const marks = [];
  traces.forEach((trace, curve) => {
    if (trace.type !== "bar") return;
    const lying = trace.orientation === "h";
    const axes = { x: trace.xaxis ?? "x", y: trace.yaxis ?? "y" };
    const [places, amounts] = lying ? [trace.y, trace.x] : [trace.x, trace.y];
    amounts.forEach((amount, i) => {
      if (amount === null || amount === undefined || places[i] === null) return;
      const key = `${axes.x} ${axes.y} ${places[i]}`;
      const base = trace.base?.[i] ?? (layout.barmode === "stack" ? ends.get(key) ?? 0 : 0);
      if (layout.barmode === "stack") ends.set(key, base + amount);
      const place = numberOf(layout[lying ? "yaxis" : `xaxis${axes.x.slice(1)}`]?.type, places[i]);
      const half = (given(trace.width, i) ?? 1 - (layout.bargap ?? 0.2)) / 2;
      const along = [base, base + amount];
      const aside = [place - half, place + half];
      const line = trace.marker.line ?? {};
      marks.push({
        kind: "bar",
        axes,
        lying,
        x: lying ? along : aside,
        y: lying ? aside : along,
        fill: given(trace.marker.color, i),
        opacity: trace.marker.opacity ?? 1,
        stroke: line.width ? given(line.color, i) : null,
        text: given(trace.text, i) || null,
        textAt: trace.textposition,
        textAnchor: trace.insidetextanchor ?? "end",
        textColour: trace.textfont?.color ?? layout.font.color,
        textSize: trace.textfont?.size ?? layout.font.size,
        hover: hovers(trace) ? given(trace.hovertext, i) : null,
        point: pointOf(trace, curve, i, trace.customdata?.[i]),
      });
    });
  });
  return marks;
}

function dotMarks(traces) {
  return traces.flatMap((trace, curve) => (trace.type !== "scatter" ? [] : trace.x.flatMap((x, i) => (x === null ? [] : [{
    kind: "dot",
    axes: { x: trace.xaxis ?? "x", y: trace.yaxis ?? "y" },
    x: [x, x],
    y: [trace.y[i], trace.y[i]],
    fill: given(trace.marker.color, i),
    opacity: 1,
    symbol: given(trace.marker.symbol, i) ?? "circle",
    size: given(trace.marker.size, i) ?? 6,
    hover: hovers(trace) ? given(trace.hovertext, i) : null,
    point: pointOf(trace, curve, i, trace.customdata?.[i]),
  }]))));
}

// The colour of a scale in steps: of the last step that begins at or before the value.
const stepColour = (scale, share) => scale.findLast(([from]) => from <= share + 1e-9)[1];

function cellMarks(traces) {
  return traces.flatMap((trace, curve) => (trace.type !== "heatmap" ? [] : trace.z.flatMap((row, y) => row.flatMap((z, x) => (
    z === null || z === undefined ? [] : [{
      kind: "cell",
      axes: { x: trace.xaxis ?? "x", y: trace.yaxis ?? "y" },
      x: [x - 0.5, x + 0.5],
      y: [y - 0.5, y + 0.5],
      gaps: [trace.xgap ?? 0, trace.ygap ?? 0],
      fill: stepColour(trace.colorscale, (z - trace.zmin) / (trace.zmax - trace.zmin)),
      opacity: 1,
      hover: hovers(trace) ? trace.text[y][x] : null,
      point: { x, y, label: null, curve, index: null, data: trace.customdata?.[y][x] ?? null },
    }])))));
}
