// A treemap: boxes within boxes, as large as their values.
const HEAD = 19;
const PAD = 2;

function childrenOf(trace) {
  const children = new Map();
  trace.parents.forEach((parent, i) => { if (!children.has(parent)) children.set(parent, []); children.get(parent).push(i); });
  // What stands for many files comes last, however large it is.
  const isRest = (i) => trace.ids[i].endsWith(" rest");
  for (const list of children.values()) list.sort((a, b) => isRest(a) - isRest(b) || trace.values[b] - trace.values[a]);
  return children;
}

// Squarified (Bruls, Huizing and van Wijk, 2000): rows along the shorter side, each as long as its boxes stay square.
function squarified(values, { left, top, right, bottom }) {
  const placed = [];
  let [x, y] = [left, top];
  let rest = values.reduce((sum, value) => sum + value, 0);
  const worst = (row, sum, side, scale) => {
    const thick = sum * scale / side;
    return Math.max(...[row[0], row.at(-1)].map((v) => Math.max(v * scale / thick / thick, thick * thick / (v * scale))));
  };
  for (let from = 0; from < values.length && rest > 0;) {
    const [wide, high] = [right - x, bottom - y];
    if (wide <= 0 || high <= 0) break;
    const side = Math.min(wide, high);
    const scale = wide * high / rest;
    let to = from + 1;
    let sum = values[from];
    while (to < values.length && values[to] > 0
      && worst(values.slice(from, to + 1), sum + values[to], side, scale) <= worst(values.slice(from, to), sum, side, scale)) {
      sum += values[to];
      to += 1;
    }
    const thick = sum * scale / side;
    let along = wide >= high ? y : x;
    for (let i = from; i < to; i += 1) {
      const length = values[i] / (sum || 1) * side;
      placed.push(wide >= high ? { left: x, top: along, right: x + thick, bottom: along + length }
        : { left: along, top: y, right: along + length, bottom: y + thick });
      along += length;
    }
    if (wide >= high) x += thick; else y += thick;
    rest -= sum;
    from = to;
  }
  return placed;
}

// Boxes in pixels from the chosen one down; the chosen one itself is the first.
function boxesOf(trace, area, chosen) {
  const children = childrenOf(trace);
  const boxes = [];
  const place = (i, room, depth) => {
    const inner = children.get(trace.ids[i]) ?? [];
    const opens = inner.length > 0 && depth < (trace.maxdepth ?? 99) - 1 && room.bottom - room.top > HEAD + 8 && room.right - room.left > 16;
    boxes.push({ i, ...room, opens, isParent: inner.length > 0 });
    if (!opens) return;
    const within = { left: room.left + PAD, top: room.top + HEAD, right: room.right - PAD, bottom: room.bottom - PAD };
    const known = inner.filter((child) => trace.values[child] > 0);
    squarified(known.map((child) => trace.values[child]), within).forEach((box, at) => {
      place(known[at], { left: box.left + PAD / 2, top: box.top + PAD / 2, right: box.right - PAD / 2, bottom: box.bottom - PAD / 2 }, depth + 1);
    });
  };
  const root = chosen === null ? trace.parents.indexOf("") : trace.ids.indexOf(chosen);
  place(root, area, 0);
  return boxes.filter((box) => box.right - box.left > 0.3 && box.bottom - box.top > 0.3);
}
