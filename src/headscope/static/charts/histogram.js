/**
 * How a measure is distributed over the heads, and how something is distributed within one head.
 */

import { box, MIDDLE, write } from "../draw/svg.js";
import { across, at, extent, marker, upward } from "./axes.js";
import { canvasOf } from "./figure.js";
import { s } from "../ui/dom.js";
import { tickLabel, withError } from "../ui/format.js";
import { ink } from "../explorer/look.js";

/**
 * @import { Bin, Histogram } from "../explorer/types.js"
 * @import { Scale } from "./axes.js"
 */

/** @typedef {{from: number, to: number, count: number}} Range */

const [TOP, BELOW] = [12, 46]; // pixels above the highest bar, and for the axis

/** @param {number[]} values @returns {Range[]} */
function binsOf(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  if (!(high > low)) return [{ from: low - 0.5, to: low + 0.5, count: values.length }];
  const count = Math.max(5, Math.min(24, Math.ceil(Math.sqrt(values.length) * 1.5)));
  const edge = (/** @type {number} */ i) => low + ((high - low) * i) / count;
  const bins = Array.from({ length: count }, (_, i) => ({
    from: edge(i),
    to: edge(i + 1),
    count: 0,
  }));
  for (const value of values)
    bins[Math.min(count - 1, Math.floor(((value - low) / (high - low)) * count))].count += 1;
  return bins;
}

/** @param {number} most @param {number} height @returns {Scale} */
function upTo(most, height) {
  return { low: 0, high: most, from: height - BELOW, to: TOP };
}

/**
 * @param {Scale} y
 * @param {number} value
 * @param {number} left
 * @param {number} right
 * @param {string} said
 */
function bar(y, value, left, right, said) {
  const top = at(y, value);
  const size = /** @type {[number, number]} */ ([
    Math.max(1, right - left - 1),
    Math.max(0, y.from - top),
  ]);
  return box([left, top], size, ink().bar, { rx: 1, class: "bin" }, s("title", {}, said));
}

/**
 * @param {number[]} values
 * @param {{value: number, color: string}[]} markers
 * @param {{width: number, height: number, label: string, axis: string}} options
 * @returns {SVGSVGElement}
 */
export function histogram(values, markers, { width, height, label, axis }) {
  const bins = binsOf(values);
  const ends = [bins[0].from, bins[bins.length - 1].to];
  const [low, high] = extent([...ends, ...markers.map(({ value }) => value)]);
  const x = { low, high, from: 46, to: width - 12 };
  const y = upTo(Math.max(...bins.map(({ count }) => count)) * 1.1, height);
  const bars = bins.map(({ from, to, count }) => {
    const said = `${count} heads from ${from.toPrecision(3)} to ${to.toPrecision(3)}`;
    return bar(y, count, at(x, from), at(x, to), said);
  });
  return s(
    "svg",
    canvasOf(width, height, { role: "img", "aria-label": label }),
    upward(y, x.from, x.to, "Heads", true),
    across(x, y.from, y.from, axis),
    ...bars,
    ...markers.map(({ value, color }) => marker(x, value, y.to, y.from, color)),
  );
}

/**
 * Bins that a run has counted; those that double are drawn equally wide.
 * @param {Histogram} counted
 * @param {{width: number, height: number}} options
 * @returns {SVGSVGElement}
 */
export function countedBins({ title, axis, bins }, { width, height }) {
  const last = bins[bins.length - 1];
  const doubles = bins.length > 2 && last.low === 2 * bins[bins.length - 2].low;
  const [low, high] = doubles ? [0, bins.length] : [bins[0].low, last.high];
  const x = { low, high, from: 60, to: width - 12 };
  const y = upTo(Math.max(...bins.map(({ value }) => value)) * 1.08 || 1, height);
  const bars = bins.map((bin, i) => {
    const [left, right] = doubles ? [i, i + 1] : [bin.low, bin.high];
    const said = `${range(bin, doubles)}: ${withError(bin.value, bin.error)}`;
    return bar(y, bin.value, at(x, left), at(x, right), said);
  });
  return s(
    "svg",
    canvasOf(width, height, { role: "img", "aria-label": title }),
    upward(y, x.from, x.to, "Share"),
    doubles ? lowerEnds(bins, x, y, axis) : across(x, y.from, y.from, axis),
    ...bars,
  );
}

/** @param {Bin[]} bins @param {Scale} x @param {Scale} y @param {string} axis */
function lowerEnds(bins, x, y, axis) {
  const look = { ...MIDDLE, fill: ink().faint };
  const every = Math.ceil(bins.length / Math.max(4, Math.floor((x.to - x.from + 8) / 44)));
  const names = bins.map(
    ({ low }, i) =>
      i % every === 0 &&
      write(at(x, i + 0.5), y.from + 15, tickLabel(low), { ...look, "font-size": 11 }),
  );
  const below = { ...look, "font-weight": 600 };
  const name = write((x.from + x.to) / 2, y.from + 32, `${axis}, from`, below);
  return s("g", { "aria-hidden": "true" }, ...names, name);
}

/** @param {Bin} bin @param {boolean} whole @returns {string} 4–7, or 0.2 to 0.25 */
function range({ low, high }, whole) {
  if (!whole) return `${tickLabel(low)} to ${tickLabel(Number(high.toPrecision(6)))}`;
  return high - low <= 1 ? tickLabel(low) : `${tickLabel(low)}–${tickLabel(high - 1)}`;
}
