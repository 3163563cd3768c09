// Numbers as cachescope.wording writes them: halves become even.
const wording = (() => {
  const fixed = (value, digits) => new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits, roundingMode: "halfEven", useGrouping: false }).format(value);
  const twoUnits = (large, ofLarge, small, ofSmall) => `${large} ${ofLarge}${small ? ` ${small} ${ofSmall}` : ""}`;
  const percent = (share) => {
    if (share === null) return "–";
    const text = `${fixed(100 * share, 0)} %`;
    if (text === "0 %" && share > 0) return "<1 %";
    return text === "100 %" && share < 1 ? ">99 %" : text;
  };
  const duration = (ns) => {
    if (ns < 999500000) return `${fixed(ns / 1e6, 0)} ms`;
    if (ns < 59950000000) return `${fixed(ns / 1e9, 1)} s`;
    const seconds = Number(fixed(ns / 1e9, 0));
    if (seconds < 3600) return twoUnits(Math.floor(seconds / 60), "min", seconds % 60, "s");
    const minutes = Number(fixed(ns / 60e9, 0));
    return twoUnits(Math.floor(minutes / 60), "h", minutes % 60, "min");
  };
  return { percent, duration };
})();
