// Texts: plotly's markup of bold, coloured and broken lines, as pieces that become nodes; nothing is read as HTML.
const FAMILY = "system-ui, sans-serif";
const ENTITIES = { "&lt;": "<", "&gt;": ">", "&amp;": "&", "&#36;": "$", "&quot;": '"', "&#x27;": "'", "&#39;": "'" };
const MARKUP = /<br>|<(\/?)(b|span)(?: style='color:(#[0-9a-f]{6})')?>/gi;
const LINE_HEIGHT = 1.3;

const unescaped = (text) => text.replace(/&(?:lt|gt|amp|quot|#36|#39|#x27);/g, (entity) => ENTITIES[entity]);

// Lines of pieces, each with its text, whether it is bold, and its colour.
function piecesOf(markup) {
  const lines = [[]];
  let bold = false;
  let colour = null;
  let from = 0;
  const add = (end) => { if (end > from) lines.at(-1).push({ text: unescaped(markup.slice(from, end)), bold, colour }); };
  for (const found of markup.matchAll(MARKUP)) {
    add(found.index);
    from = found.index + found[0].length;
    const [tag, closing, name, colourOf] = found;
    if (tag.toLowerCase() === "<br>") lines.push([]);
    else if (name.toLowerCase() === "b") bold = !closing;
    else colour = closing ? null : colourOf ?? null;
  }
  add(markup.length);
  return lines;
}

const plainText = (markup) => piecesOf(markup).map((line) => line.map((piece) => piece.text).join("")).join("\n");

const ruler = document.createElement("canvas").getContext("2d");
const widthOfLine = (line, size) => line.reduce((sum, { text, bold }) => {
  ruler.font = `${bold ? 600 : 400} ${size}px ${FAMILY}`;
  return sum + ruler.measureText(text).width;
}, 0);
const widthOf = (markup, size) => Math.max(0, ...piecesOf(markup).map((line) => widthOfLine(line, size)));

// The text within a width, with an ellipsis if it is cut; nothing if not even a few letters fit.
function fitted(text, size, width) {
  if (widthOf(text, size) <= width) return text;
  const line = [{ text: plainText(text).replace(/\n/g, " "), bold: false }];
  const letters = [...line[0].text];
  let count = Math.floor(letters.length * width / (widthOfLine(line, size) || 1));
  const cut = (n) => `${letters.slice(0, n).join("").trimEnd()}…`;
  while (count > 2 && widthOfLine([{ text: cut(count), bold: false }], size) > width) count -= 1;
  return count > 2 ? cut(count).replace(/[&<>$]/g, (c) => Object.keys(ENTITIES).find((e) => ENTITIES[e] === c)) : "";
}

const SVG = "http://www.w3.org/2000/svg";
function node(name, attributes = {}, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  return made;
}

// A text of one or more lines at a point; `across` and `down` say which part of the text is there.
function textNode(markup, x, y, { size, colour, across = "start", down = "middle" }) {
  const lines = piecesOf(markup);
  const step = size * LINE_HEIGHT;
  const above = { top: 0, middle: lines.length / 2, bottom: lines.length }[down] * step;
  const made = node("text", { "font-size": size, fill: colour, "text-anchor": across });
  lines.forEach((line, at) => {
    // Where the letters of a line stand in its height.
    const row = node("tspan", { x, y: (y - above + step * at + step / 2 + size * 0.35).toFixed(1) });
    line.forEach(({ text, bold, colour: own }) => {
      row.append(node("tspan", { ...(bold && { "font-weight": 600 }), ...(own && { fill: own }) }, text));
    });
    made.append(row);
  });
  return made;
}
