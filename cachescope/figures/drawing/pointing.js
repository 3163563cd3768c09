// Pointing at marks, by mouse or keyboard: a text beside the mark, and clicks.
const NEAR = 3;
const LEAST_DRAG = 5;

const isAt = ({ left, right, top, bottom }, x, y) => {
  const aside = Math.max(0, NEAR - (right - left) / 2);
  return x >= left - aside && x <= right + aside && y >= top - 1 && y <= bottom + 1;
};

function hint(place, layout) {
  const box = document.createElement("div");
  box.setAttribute("role", "status");
  const { bgcolor, bordercolor, font } = layout.hoverlabel;
  Object.assign(box.style, { position: "absolute", pointerEvents: "none", zIndex: 5, display: "none", padding: "3px 7px", maxWidth: "46em",
    whiteSpace: "pre-wrap", overflowWrap: "anywhere", font: `${font.size}px/1.35 system-ui, sans-serif`, background: bgcolor, color: font.color,
    border: `1px solid ${bordercolor}`, borderRadius: "2px", textAlign: "left" });
  place.append(box);
  const hide = () => { box.style.display = "none"; };
  const show = (mark) => {
    if (!mark?.hover) { hide(); return; }
    box.textContent = plainText(mark.hover);
    Object.assign(box.style, { display: "block", left: "0", top: "0" });
    const [wide, high] = [box.offsetWidth, box.offsetHeight];
    const { left, right, top, bottom } = mark.box;
    const x = Math.min(Math.max(0, mark.x0 ?? (left + right) / 2 - wide / 2), Math.max(0, place.clientWidth - wide));
    const above = top - high - 6;
    Object.assign(box.style, { left: `${x}px`, top: `${above >= 0 ? above : bottom + 6}px` });
  };
  return { show, hide };
}

// The panel in which a drag zooms: one with a scale of amounts or time.
const panelAt = (panels, x, y) => panels.find(({ left, right, top, bottom }) => x >= left && x <= right && y >= top && y <= bottom);

const overlaps = (panel, box) =>
  box.right >= panel.left && box.left <= panel.right && box.bottom >= panel.top && box.top <= panel.bottom;

function pointing(place, svg, layout, { marks, panels, onClick, onZoom }) {
  const told = hint(place, layout);
  const at = (event) => { const { left, top } = svg.getBoundingClientRect(); return [event.clientX - left, event.clientY - top]; };
  const found = (x, y) => marks.findLast((mark) => mark.hover !== null && isAt(mark.box, x, y)) ?? null;
  const cover = (span) => {
    const { top, bottom } = span.panel;
    span.veil ??= svg.appendChild(node("rect", { y: top, height: bottom - top, fill: layout.font.color, "fill-opacity": 0.12 }));
    span.veil.setAttribute("x", span.to[0]);
    span.veil.setAttribute("width", span.to[1] - span.to[0]);
  };
  let drag = null;
  let chosen = -1;

  svg.addEventListener("pointermove", (event) => {
    const [x, y] = at(event);
    if (drag) {
      const [from, to] = [Math.min(drag.x, x), Math.max(drag.x, x)].map((v) => Math.min(Math.max(v, drag.panel.left), drag.panel.right));
      if (to - from < LEAST_DRAG) return;
      drag.to = [from, to];
      cover(drag);
      return;
    }
    const mark = found(x, y);
    svg.style.cursor = mark && onClick ? "pointer" : "";
    told.show(mark && { ...mark, x0: Math.max(0, x - 60) });
  });
  svg.addEventListener("pointerleave", () => { if (!drag) told.hide(); });
  svg.addEventListener("pointerdown", (event) => {
    const [x, y] = at(event);
    const panel = onZoom && event.button === 0 && panelAt(panels, x, y);
    if (!panel) return;
    drag = { x, panel, to: null, veil: null };
    svg.setPointerCapture(event.pointerId);
  });
  svg.addEventListener("pointerup", () => {
    const done = drag;
    drag = null;
    done?.veil?.remove();
    if (done?.to) onZoom(done.panel, done.to);
  });
  svg.addEventListener("pointercancel", () => { drag?.veil?.remove(); drag = null; });
  svg.addEventListener("click", (event) => {
    const mark = found(...at(event));
    if (mark && onClick) onClick(mark.point);
  });
  svg.addEventListener("dblclick", () => onZoom?.(null, null));

  // Marks in reading order: row by row, from left to right.
  const inOrder = marks.map((mark, i) => i).filter((i) => marks[i].hover)
    .sort((a, b) => marks[a].box.top - marks[b].box.top || marks[a].box.left - marks[b].box.left);
  // With Shift, arrow keys cover all marks from the first to this one, as a drag over them would.
  let keyed = null;
  const uncover = () => { keyed?.veil?.remove(); keyed = null; };
  const extend = (first) => {
    const boxes = inOrder.slice(Math.min(first, chosen), Math.max(first, chosen) + 1).map((i) => marks[i].box);
    const panel = keyed?.panel ?? panels.find((one) => overlaps(one, marks[inOrder[first]].box));
    if (!panel) return;
    const [left, right] = [Math.min(...boxes.map((box) => box.left)) - NEAR, Math.max(...boxes.map((box) => box.right)) + NEAR];
    keyed = { first, panel, veil: keyed?.veil, to: [left, right].map((v) => Math.min(Math.max(v, panel.left), panel.right)) };
    cover(keyed);
  };
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step && inOrder.length) {
      const before = Math.max(chosen, 0);
      chosen = Math.min(Math.max(chosen + step, 0), inOrder.length - 1);
      told.show(marks[inOrder[chosen]]);
      if (event.shiftKey && onZoom) extend(keyed?.first ?? before);
      else uncover();
    } else if (event.key === "Enter" && keyed) onZoom(keyed.panel, keyed.to);
    else if (event.key === "Enter" && chosen >= 0 && onClick) onClick(marks[inOrder[chosen]].point);
    else if (event.key === "Escape") {
      // First the span, then the zoom.
      if (keyed) uncover();
      else onZoom?.(null, null);
      told.hide();
    } else return;
    // Jupyter has commands of its own on these keys.
    event.preventDefault();
    event.stopPropagation();
  });
  svg.addEventListener("blur", () => { told.hide(); uncover(); });
}
