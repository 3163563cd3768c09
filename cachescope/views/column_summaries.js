// What a column holds, drawn above its rows. Texts go in as textContent only.
const drawing = (name, attributes = {}) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
};

const box = (x, width, height, said, colour, faint) => {
  const made = drawing("rect", { x, y: 16 - height, width, height, fill: colour || "currentColor", "fill-opacity": colour ? 1 : faint });
  const title = drawing("title");
  title.textContent = said;
  made.append(title);
  return made;
};

function shares(parts, rows) {
  let x = 0;
  return parts.map(([name, count, colour], i) => {
    const width = (100 * count) / rows;
    const made = box(x, Math.max(width - 1, 0.5), 8, `${name}: ${count.toLocaleString("en")}`, colour, 0.7 / (1 + i) + 0.1);
    x += width;
    return made;
  });
}

function bars(counts) {
  const most = Math.max(...counts);
  const width = 100 / counts.length;
  return counts.map((count, i) => box(i * width, width - 1, count ? Math.max(1, (16 * count) / most) : 0, count.toLocaleString("en"), "", 0.6));
}

function summary(of, label) {
  const made = make("div", { class: "cs-summary" });
  const drawn = of.parts.length ? shares(of.parts, of.rows) : bars(of.bars);
  if (drawn.length) {
    const picture = drawing("svg", { viewBox: "0 0 100 16", preserveAspectRatio: "none", role: "img", "aria-label": `${label}: ${of.said}` });
    picture.append(...drawn);
    made.append(picture);
  }
  made.append(make("span", of.said ? { title: of.said } : {}, of.text));
  return made;
}
