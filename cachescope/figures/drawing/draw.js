// Draws what the figures of cachescope consist of, as plotly would: bars, dots, cells and boxes, with axes and notes.

const treemapOf = (figure) => figure.data.find((trace) => trace.type === "treemap");

function treemapMarks(trace, layout, area, root) {
  return boxesOf(trace, area, root).map(({ i, isParent, opens, ...box }) => ({
    kind: "box",
    box,
    opens,
    fill: trace.marker.colors[i],
    opacity: 1,
    stroke: trace.marker.line.color,
    text: trace.labels[i],
    textColour: given(trace.textfont.color, i),
    hover: trace.hovertext[i],
    point: { x: null, y: null, label: trace.labels[i], curve: 0, index: i, data: trace.customdata[i] ?? null },
    id: isParent ? trace.ids[i] : null,
    parent: trace.parents[i],
  }));
}

function boxText({ box, text, textColour, opens }, size) {
  const { left, right, top, bottom } = box;
  if (bottom - top < size + 3) return null;
  const label = fitted(text, size, right - left - 8);
  return label ? textNode(label, left + 4, top + (opens ? 4 : 3), { size, colour: textColour, down: "top" }) : null;
}

function drawTreemap(svg, trace, layout, width, root) {
  const { margin, height } = layout;
  const area = { left: margin.l, right: width - margin.r, top: margin.t, bottom: height - margin.b };
  const marks = treemapMarks(trace, layout, area, root);
  svg.append(...marks.flatMap((mark) => [...shapeNodes([mark]), boxText(mark, trace.textfont.size)].filter(Boolean)));
  return marks;
}

// Each figure of a notebook has a copy of this script, and an id is looked up in the whole page.
const copy = Math.random().toString(36).slice(2);
let clips = 0;

function drawPlot(svg, figure, width, zoomed) {
  const { layout, data } = figure;
  const marks = [...cellMarks(data), ...barMarks(data, layout), ...dotMarks(data)];
  const { scales, area } = scalesOf(layout, marks, width, zoomed);
  svg.append(...axisNodes(layout, scales, area));
  const shown = placed(marks, scales);
  const groups = new Map();
  for (const mark of shown) {
    if (!groups.has(mark.axes.x)) groups.set(mark.axes.x, []);
    groups.get(mark.axes.x).push(mark);
  }
  const panels = [];
  for (const [name, { axis, from, to }] of Object.entries(scales)) {
    if (name[0] !== "x" || axis.visible === false) continue;
    const own = groups.get(name) ?? [];
    if (own.some(({ kind }) => kind !== "cell") && !(axis.tickvals && axis.type !== "log")) panels.push({ name, left: from, right: to, top: area.top, bottom: area.bottom });
  }
  for (const [name, own] of groups) {
    const { from, to } = scales[name];
    const clip = `cachescope-clip-${copy}-${(clips += 1)}`;
    const room = zoomed[name] ? 0 : 8;
    const path = node("clipPath", { id: clip });
    path.append(node("rect", { x: n(from - room), y: area.top - 8, width: n(to - from + 2 * room), height: n(area.bottom - area.top + 16) }));
    const group = node("g", { "clip-path": `url(#${clip})` });
    group.append(...shapeNodes(own));
    svg.append(path, group);
    const inside = { left: from, right: to };
    svg.append(...own.filter(({ text }) => text).map((mark) => barText(mark, inside)).filter(Boolean));
  }
  svg.append(...legendNodes(figure, width), ...annotationNodes(layout, scales, area, width));
  const isIn = ({ box }) => Object.entries(zoomed).every(([name]) => box.right >= scales[name].from && box.left <= scales[name].to);
  return { marks: shown.filter(isIn), panels, scales };
}

// A figure comes with its differences in the dark: places and values.
function inTheDark(figure) {
  const made = structuredClone(figure);
  for (const [path, value] of figure.dark) path.slice(0, -1).reduce((at, name) => at[name], made)[path.at(-1)] = value;
  return made;
}

// Draw a figure into a place of the page, as wide as `width`; what was drawn there before goes.
//
// `onClick` gets the point of a mark: x, y, label, curve, index, and data, plotly's customdata.
// Dragging over a scale of amounts or time zooms, a double click shows all again; Shift with the arrow keys and Enter,
// and Escape, do the same. A box of a treemap opens.
// `zoomed` is the range of the first axis to begin with, and `onZoom` gets each further one: null where all is shown.
function drawFigure(place, light, { width, isDark = false, onClick = null, zoomed = null, onZoom = null } = {}) {
  const figure = isDark ? inTheDark(light) : light;
  const { layout } = figure;
  const state = { zoomed: zoomed ? { x: zoomed } : {}, root: null };
  place.style.position = "relative";
  const redraw = () => {
    const hadFocus = place.contains(document.activeElement);
    const svg = node("svg", { width, height: layout.height, viewBox: `0 0 ${width} ${layout.height}`, tabindex: 0, class: "cs-drawing",
      role: "group", "aria-roledescription": "figure, arrow keys go through its marks", "font-family": FAMILY });
    Object.assign(svg.style, { display: "block", whiteSpace: "pre" });
    const treemap = treemapOf(figure);
    const drawn = treemap ? { marks: drawTreemap(svg, treemap, layout, width, state.root), panels: [] } : drawPlot(svg, figure, width, state.zoomed);
    if (drawn.panels.length) {
      svg.setAttribute("aria-roledescription",
        "figure, arrow keys go through its marks; Shift with them and Enter zooms, Escape shows all again");
    }
    place.replaceChildren(svg);
    pointing(place, svg, layout, {
      ...drawn,
      onClick: (point) => {
        const mark = treemap ? drawn.marks.find((one) => one.point.index === point.index) : null;
        if (mark?.id) {
          state.root = mark.id === state.root ? mark.parent || null : mark.id;
          redraw();
        }
        onClick?.(point);
      },
      onZoom: drawn.panels.length ? (panel, to) => {
        if (!panel && !Object.keys(state.zoomed).length) return;
        state.zoomed = panel ? { ...state.zoomed, [panel.name]: to.map(drawn.scales[panel.name].valueAt) } : {};
        redraw();
        onZoom?.(state.zoomed.x ?? null);
      } : null,
    });
    if (hadFocus) svg.focus();
  };
  redraw();
}
