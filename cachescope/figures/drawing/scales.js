// Axes: from values to pixels, and the ticks between.
const LINEAR_STEPS = [1, 2, 2.5, 5, 10];
const SECOND = 1000;
const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400]
  .map((seconds) => seconds * SECOND);
const DAY = TIME_STEPS.at(-1);
const MINUTE = 60;
const HOUR = 60 * MINUTE;

const numberOf = (type, value) => {
  if (value === null || value === undefined) return null;
  if (type === "date") return typeof value === "number" ? value : Date.parse(`${value}Z`);
  return type === "log" ? Math.log10(value) : value;
};

// The range of an axis that sets none: room beside marks, and none below zero for amounts.
function rangeOf(axis, extent) {
  if (axis.range) return axis.range.map((value) => (axis.type === "date" ? numberOf("date", value) : value));
  let [low, high] = extent.lowest > extent.highest ? [0, 1] : [extent.lowest, extent.highest];
  if (axis.type !== "date" && (axis.rangemode === "tozero" || extent.hasBars)) low = Math.min(low, 0);
  const room = (high - low || 1) * 0.04;
  return [low === 0 && !extent.hasPoints ? 0 : low - room, high + room];
}

// Seconds as texts say them: from a minute on in minutes, from an hour on in hours.
function durationText(seconds) {
  const two = (large, small, names) => `${large} ${names[0]}${small ? ` ${small} ${names[1]}` : ""}`;
  if (seconds < MINUTE) return `${seconds} s`;
  if (seconds < HOUR) return two(Math.floor(seconds / MINUTE), seconds % MINUTE, ["min", "s"]);
  return two(Math.floor(seconds / HOUR), Math.floor((seconds % HOUR) / MINUTE), ["h", "min"]);
}

function durationTicks([low, high], axis) {
  const wanted = (high - low) / Math.max(1, axis.nticks ?? 6);
  const step = TIME_STEPS.map((ms) => ms / SECOND).find((s) => s >= wanted) ?? Math.ceil(wanted / (DAY / SECOND)) * (DAY / SECOND);
  const ticks = [];
  for (let value = Math.ceil(low / step) * step; value <= high; value += step) ticks.push({ value, text: durationText(value) });
  return ticks;
}

function linearTicks([low, high], axis) {
  const wanted = (high - low) / Math.max(1, axis.nticks ?? 6);
  const power = 10 ** Math.floor(Math.log10(wanted || 1));
  const step = axis.dtick ?? LINEAR_STEPS.map((s) => s * power).find((s) => s >= wanted * 0.999);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9) + (`${step / power}` === "2.5" ? 1 : 0));
  const at = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i += 1) at.push(i * step || 0);
  const whole = axis.tickformat === ",d";
  return at.filter((value) => !whole || Math.abs(value - Math.round(value)) < 1e-9).map((value) => ({
    value,
    text: `${value.toLocaleString("en", { minimumFractionDigits: whole ? 0 : digits, maximumFractionDigits: whole ? 0 : digits })}${axis.ticksuffix ?? ""}`,
  }));
}

function dateTicks([low, high], axis) {
  const wanted = (high - low) / Math.max(1, axis.nticks ?? 6);
  const step = TIME_STEPS.find((s) => s >= wanted) ?? Math.ceil(wanted / DAY) * DAY;
  let day = "";
  const ticks = [];
  for (let value = Math.ceil(low / step) * step; value <= high; value += step) {
    const moment = new Date(value).toISOString();
    const clock = moment.slice(11, step < 60 * SECOND ? 19 : 16);
    const date = moment.slice(0, 10);
    ticks.push({ value, text: step >= DAY ? date : date === day ? clock : `${clock}<br>${date}` });
    day = date;
  }
  return ticks;
}

function ticksOf(axis, range) {
  if (axis.visible === false) return [];
  const [low, high] = [Math.min(...range), Math.max(...range)];
  if (axis.tickvals) {
    return axis.tickvals.map((value, i) => ({ value: numberOf(axis.type, value), text: axis.ticktext[i] }))
      .filter(({ value }) => value >= low && value <= high);
  }
  if (axis.type === "date") return dateTicks([low, high], axis);
  // Below a second a step has a fraction, which texts do not have.
  const isLong = axis.ticksuffix === " s" && high > MINUTE && high - low > (axis.nticks ?? 6);
  return isLong ? durationTicks([low, high], axis) : linearTicks([low, high], axis);
}

// An axis laid out between two pixels.
function scaleOf(axis, range, from, to) {
  const [low, high] = range;
  const perUnit = (to - from) / (high - low || 1);
  return {
    axis,
    range,
    from,
    to,
    pixel: (value) => from + (numberOf(axis.type, value) - low) * perUnit,
    valueAt: (pixel) => low + (pixel - from) / perUnit,
    ticks: ticksOf(axis, range).map((tick) => ({ ...tick, at: from + (tick.value - low) * perUnit })),
  };
}
