// What is in the plot as nodes: one path for all neighbours of one look, so that thousands of marks stay a few nodes.
const NARROWEST = 0.8;
const SMALLEST_TEXT = 9;

// Marks in pixels. A bar of no width is still seen.
function placed(marks, scales) {
  return marks.map((mark) => {
    const [x0, x1] = mark.x.map((value) => scales[mark.axes.x].pixel(value));
    const [y0, y1] = mark.y.map((value) => scales[mark.axes.y].pixel(value));
    let [left, right] = [Math.min(x0, x1), Math.max(x0, x1)];
    let [top, bottom] = [Math.min(y0, y1), Math.max(y0, y1)];
    if (mark.kind === "cell") {
      [left, right] = [left + mark.gaps[0] / 2, Math.max(left + mark.gaps[0] / 2 + NARROWEST, right - mark.gaps[0] / 2)];
      [top, bottom] = [top + mark.gaps[1] / 2, bottom - mark.gaps[1] / 2];
    } else if (mark.kind === "dot") {
      const half = mark.size / 2;
      [left, right, top, bottom] = [left - half, right + half, top - half, bottom + half];
    } else if (right - left < NARROWEST) right = left + NARROWEST;
    return { ...mark, box: { left, right, top, bottom } };
  });
}

const n = (value) => Number(value.toFixed(2));

function outline({ kind, symbol, box }) {
  const { left, right, top, bottom } = box;
  const [wide, high] = [right - left, bottom - top];
  if (kind !== "dot" || symbol === "square") return `M${n(left)},${n(top)}h${n(wide)}v${n(high)}h${n(-wide)}Z`;
  const [middle, centre] = [n((left + right) / 2), n((top + bottom) / 2)];
  if (symbol === "diamond") return `M${middle},${n(top - 1)}L${n(right + 1)},${centre}L${middle},${n(bottom + 1)}L${n(left - 1)},${centre}Z`;
  const radius = n(wide / 2);
  return `M${n(left)},${centre}a${radius},${radius} 0 1,0 ${n(wide)},0a${radius},${radius} 0 1,0 ${n(-wide)},0Z`;
}

function shapeNodes(marks) {
  const made = [];
  let look = null;
  let parts = [];
  const end = () => {
    if (!parts.length) return;
    const [fill, opacity, stroke] = look;
    made.push(node("path", { class: "mark", d: parts.join(""), fill, ...(opacity < 1 && { "fill-opacity": opacity }), ...(stroke && { stroke, "stroke-width": 1 }) }));
    parts = [];
  };
  // Cells never lie on each other: those of one colour can be one path, wherever they are.
  const isGrid = marks.every(({ kind }) => kind === "cell");
  for (const mark of isGrid ? [...marks].sort((a, b) => (a.fill < b.fill ? -1 : Number(a.fill > b.fill))) : marks) {
    if (!look || look[0] !== mark.fill || look[1] !== mark.opacity || look[2] !== mark.stroke) {
      end();
      look = [mark.fill, mark.opacity, mark.stroke];
    }
    parts.push(outline(mark));
  }
  end();
  return made;
}

// A text inside of its bar, or to the right of it. A name (at the start of the bar) is cut to fit, a number is left out.
function barText(mark, clip) {
  const { left, right, top, bottom } = mark.box;
  const middle = (top + bottom) / 2;
  const look = { size: mark.textSize, colour: mark.textColour };
  if (mark.textAt === "outside") return textNode(mark.text, right + 4, middle, look);
  const [from, to] = [Math.max(left, clip.left), Math.min(right, clip.right)];
  const across = mark.textAnchor === "start" ? "start" : "middle";
  const room = to - from - 6;
  const size = [look.size, SMALLEST_TEXT].find((s) => (across === "start" || widthOf(mark.text, s) <= room) && s + 1 <= bottom - top);
  const text = size ? fitted(mark.text, size, room) : "";
  if (!text) return null;
  return textNode(text, across === "start" ? from + 3 : (from + to) / 2, middle, { ...look, size, across });
}
