// Draws the figures in the colours of the surroundings, and makes the tables sortable and searchable.
"use strict";
(() => {
  const PRINTED = 690; // pixels between the margins of a sheet of A4 or letter
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const places = [...document.querySelectorAll("figure.plot > div")];
  const darkness = matchMedia("(prefers-color-scheme: dark)");

  // A figure that is folded away has no width: it is drawn when it opens.
  const draw = (isDark, width, within = document) => figures.forEach((figure, at) => {
    const place = places[at];
    if (!within.contains(place) || !(width || place.clientWidth)) return;
    try {
      drawFigure(place, figure, { width: width || place.clientWidth, isDark });
    } catch (error) {
      place.textContent = `This figure could not be drawn: ${error.message}`;
    }
  });

  const value = (row, at) => {
    const cell = row.cells[at];
    if (cell.classList.contains("none")) return null;
    return cell.dataset.order === undefined ? cell.textContent.trim().toLowerCase() : Number(cell.dataset.order);
  };
  // Numbers before texts; cells without a value come last in either order.
  const compared = (a, b) => (typeof a === typeof b
    ? (typeof a === "number" ? a - b : a.localeCompare(b, undefined, { numeric: true }))
    : (typeof a === "number" ? -1 : 1));
  const sort = (table, at, descending) => {
    const rows = [...table.tBodies[0].rows].map((row) => [value(row, at), row]);
    rows.sort(([a], [b]) => (a === null || b === null ? (a === null) - (b === null) : compared(a, b) * (descending ? -1 : 1)));
    table.tBodies[0].append(...rows.map(([, row]) => row));
    [...table.tHead.rows[0].cells].forEach((head, place) => {
      if (place === at) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  };
  const sortable = (table) => [...table.tHead.rows[0].cells].forEach((head, at) => {
    const button = make("button", { type: "button", title: "Sort by this column" });
    head.dataset.title = head.textContent; // for print: a button is missing where a head is repeated
    button.append(...head.childNodes);
    button.addEventListener("click", () => {
      const sorted = head.getAttribute("aria-sort");
      // For numbers the largest is wanted first.
      sort(table, at, sorted ? sorted === "ascending" : head.classList.contains("number"));
    });
    head.append(button);
  });
  // Of a long table the first rows, and a button for the others; the style sheet knows how many.
  const FIRST = 20;
  const unfold = (table) => {
    table.classList.remove("folded");
    table.closest(".cs-tabled").querySelector(".unfold")?.remove();
  };
  const foldable = (table, count) => {
    const button = make("button", { type: "button", class: "unfold" }, `Show all ${count} rows`);
    button.dataset.more = `${count - FIRST} more in the page`; // for print
    button.addEventListener("click", () => unfold(table));
    table.classList.add("folded");
    table.closest(".cs-scroll").after(button);
  };
  const searchable = (table) => {
    const rows = [...table.tBodies[0].rows].map((row) => [row, row.textContent.toLowerCase()]);
    const label = make("label", { class: "search" }, `Search ${rows.length} rows`);
    const box = make("input", { type: "search", placeholder: "words, or click a value" });
    const count = make("span", { role: "status" });
    label.append(box, count);
    box.addEventListener("input", () => {
      const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      if (words.length) unfold(table);
      let left = 0;
      rows.forEach(([row, text]) => {
        row.hidden = !words.every((word) => text.includes(word));
        left += !row.hidden;
      });
      count.textContent = words.length ? ` ${left} of ${rows.length} rows` : "";
    });
    // A click on a value searches for it as well.
    table.tBodies[0].addEventListener("click", ({ target }) => {
      const cell = target.closest("td.word");
      if (!cell || String(getSelection())) return;
      box.value = `${box.value} ${cell.textContent}`.trim();
      box.dispatchEvent(new Event("input"));
    });
    table.closest(".cs-tabled").querySelector(".cs-bar").append(label);
  };
  document.querySelectorAll(".cs-tabled table").forEach((table) => {
    const rows = table.tBodies[0].rows.length;
    if (rows > 1) sortable(table);
    if (rows > 7) searchable(table);
    if (rows > FIRST) foldable(table, rows);
  });

  addEventListener("beforeprint", () => draw(false, PRINTED));
  addEventListener("afterprint", () => draw(darkness.matches, 0));
  darkness.addEventListener("change", () => draw(darkness.matches, 0));
  let wide = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === wide) return;
    wide = innerWidth;
    draw(darkness.matches, 0);
  });
  draw(darkness.matches, 0);

  // What is folded opens for a link to what is in it, one after another, or all at once.
  const folded = [...document.querySelectorAll("main details")];
  const opens = (hash) => {
    const target = hash && document.getElementById(decodeURIComponent(hash.slice(1)));
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    if (target) target.scrollIntoView();
  };
  folded.forEach((one) => one.addEventListener("toggle", () => { if (one.open) draw(darkness.matches, 0, one); }));
  const all = make("button", { type: "button", class: "unfold" }, "Open all");
  all.addEventListener("click", () => folded.forEach((one) => { one.open = true; }));
  document.querySelector("nav").append(all);
  document.querySelectorAll("a[href^='#']").forEach((link) => link.addEventListener("click", () => setTimeout(() => opens(link.hash))));
  addEventListener("hashchange", () => opens(location.hash));
  opens(location.hash);
  document.documentElement.dataset.drawn = "yes";
})();
