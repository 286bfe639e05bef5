/**
 * How a measure is distributed over the heads, and how something is distributed within one head.
 */

import { across, at, extent, marker, upward } from "./axes.js";
import { canvasOf } from "./figure.js";
import { s } from "../ui/dom.js";
import { tickLabel, withError } from "../ui/format.js";
import { ink } from "../explorer/look.js";

/** @import { Bin, Histogram } from "../explorer/types.js" */

/** @typedef {{from: number, to: number, count: number}} Range */

/** @param {number[]} values @returns {Range[]} */
export function binsOf(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  if (!(high > low)) return [{ from: low - 0.5, to: low + 0.5, count: values.length }];
  const count = Math.max(5, Math.min(24, Math.ceil(Math.sqrt(values.length) * 1.5)));
  const bins = Array.from({ length: count }, (_, i) => ({
    from: low + ((high - low) * i) / count,
    to: low + ((high - low) * (i + 1)) / count,
    count: 0,
  }));
  for (const value of values)
    bins[Math.min(count - 1, Math.floor(((value - low) / (high - low)) * count))].count += 1;
  return bins;
}

/**
 * @param {number[]} values
 * @param {{value: number, color: string}[]} markers
 * @param {{width: number, height: number, label: string, axis: string}} options
 * @returns {SVGSVGElement}
 */
export function histogram(values, markers, { width, height, label, axis }) {
  const bins = binsOf(values);
  const [low, high] = extent([
    bins[0].from,
    bins[bins.length - 1].to,
    ...markers.map((one) => one.value),
  ]);
  const x = { low, high, from: 46, to: width - 12 };
  const y = {
    low: 0,
    high: Math.max(...bins.map((bin) => bin.count)) * 1.1,
    from: height - 46,
    to: 12,
  };
  const bars = bins.map((bin) => {
    const left = at(x, bin.from);
    const wide = Math.max(1, at(x, bin.to) - left - 1);
    const said = `${bin.count} heads from ${bin.from.toPrecision(3)} to ${bin.to.toPrecision(3)}`;
    return s(
      "rect",
      {
        x: left,
        y: at(y, bin.count),
        width: wide,
        height: at(y, 0) - at(y, bin.count),
        fill: ink().bar,
        rx: 1,
      },
      s("title", {}, said),
    );
  });
  const lines = markers.map((one) => marker(x, one.value, 12, height - 46, one.color));
  const attributes = canvasOf(width, height, { role: "img", "aria-label": label });
  return s(
    "svg",
    attributes,
    upward(y, x.from, x.to, "Heads", true),
    across(x, height - 46, height - 46, axis),
    ...bars,
    ...lines,
  );
}

/**
 * Bins that a run has counted; those that double are drawn equally wide.
 * @param {Histogram} found
 * @param {{width: number, height: number}} options
 * @returns {SVGSVGElement}
 */
export function countedBins({ title, axis, bins }, { width, height }) {
  const [before, last] = [bins[bins.length - 2] ?? bins[0], bins[bins.length - 1]];
  const doubles = bins.length > 2 && last.low === 2 * before.low;
  const x = doubles
    ? { low: 0, high: bins.length, from: 60, to: width - 12 }
    : { low: bins[0].low, high: last.high, from: 60, to: width - 12 };
  const y = {
    low: 0,
    high: Math.max(...bins.map((bin) => bin.value)) * 1.08 || 1,
    from: height - 46,
    to: 12,
  };
  const bars = bins.map((bin, i) => {
    const [left, right] = doubles ? [at(x, i), at(x, i + 1)] : [at(x, bin.low), at(x, bin.high)];
    const said = `${range(bin, doubles)}: ${withError(bin.value, bin.error)}`;
    return s(
      "rect",
      {
        class: "bin",
        x: left,
        y: at(y, bin.value),
        width: Math.max(1, right - left - 1),
        height: Math.max(0, at(y, 0) - at(y, bin.value)),
        fill: ink().bar,
        rx: 1,
      },
      s("title", {}, said),
    );
  });
  const every = Math.ceil(bins.length / Math.max(4, Math.floor((width - 64) / 44)));
  const names = doubles
    ? bins.map((bin, i) =>
        i % every
          ? ""
          : s(
              "text",
              {
                x: at(x, i + 0.5),
                y: height - 31,
                "text-anchor": "middle",
                fill: ink().faint,
                "font-size": 11,
              },
              tickLabel(bin.low),
            ),
      )
    : [];
  const below = s(
    "text",
    {
      x: (x.from + x.to) / 2,
      y: height - 14,
      "text-anchor": "middle",
      fill: ink().faint,
      "font-weight": 600,
    },
    `${axis}, from`,
  );
  const ruler = doubles
    ? [s("g", { "aria-hidden": "true" }, ...names, below)]
    : [across(x, height - 46, height - 46, axis)];
  return s(
    "svg",
    canvasOf(width, height, { role: "img", "aria-label": title }),
    upward(y, x.from, x.to, "Share"),
    ...ruler,
    ...bars,
  );
}

/** @param {Bin} bin @param {boolean} whole @returns {string} 4–7, or 0.2 to 0.25 */
function range({ low, high }, whole) {
  if (!whole) return `${tickLabel(low)} to ${tickLabel(Number(high.toPrecision(6)))}`;
  return high - low <= 1 ? tickLabel(low) : `${tickLabel(low)}–${tickLabel(high - 1)}`;
}
