// Draws the figures of a page in the colours of its theme, and anew when the theme changes.
(() => {
  const isDark = () => {
    const theme = document.body.dataset.theme;
    return theme === "dark" || (theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  };
  const draw = () => {
    for (const place of document.querySelectorAll("[data-figure]")) {
      drawFigure(place, window.figures[place.dataset.figure], { width: place.clientWidth, isDark: isDark() });
    }
  };
  draw();
  addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  new MutationObserver(draw).observe(document.body, { attributeFilter: ["data-theme"] });
})();
