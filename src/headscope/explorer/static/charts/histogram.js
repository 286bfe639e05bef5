/** How a measure is distributed over the heads. */

import { across, at, extent, marker, upward } from "./axes.js";
import { canvasOf } from "./figure.js";
import { s } from "../shell/dom.js";
import { ink } from "../shell/look.js";

/** @typedef {{from: number, to: number, count: number}} Bin */

/** @param {number[]} values @returns {Bin[]} */
export function binsOf(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  if (!(high > low)) return [{ from: low - 0.5, to: low + 0.5, count: values.length }];
  const count = Math.max(5, Math.min(24, Math.ceil(Math.sqrt(values.length) * 1.5)));
  const bins = Array.from({ length: count }, (_, i) => ({ from: low + ((high - low) * i) / count, to: low + ((high - low) * (i + 1)) / count, count: 0 }));
  for (const value of values) bins[Math.min(count - 1, Math.floor(((value - low) / (high - low)) * count))].count += 1;
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
  const [low, high] = extent([bins[0].from, bins[bins.length - 1].to, ...markers.map((one) => one.value)]);
  const x = { low, high, from: 46, to: width - 12 };
  const y = { low: 0, high: Math.max(...bins.map((bin) => bin.count)) * 1.1, from: height - 46, to: 12 };
  const bars = bins.map((bin) => {
    const left = at(x, bin.from);
    const wide = Math.max(1, at(x, bin.to) - left - 1);
    const said = `${bin.count} heads from ${bin.from.toPrecision(3)} to ${bin.to.toPrecision(3)}`;
    return s("rect", { x: left, y: at(y, bin.count), width: wide, height: at(y, 0) - at(y, bin.count), fill: ink().bar, rx: 1 }, s("title", {}, said));
  });
  const lines = markers.map((one) => marker(x, one.value, 12, height - 46, one.color));
  const attributes = canvasOf(width, height, { role: "img", "aria-label": label });
  return s("svg", attributes, upward(y, x.from, x.to, "Heads", true), across(x, height - 46, height - 46, axis), ...bars, ...lines);
}
