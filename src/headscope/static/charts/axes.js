/** Straight axes with round numbers, shared by the figures that have them. */

import { s } from "../ui/dom.js";
import { tickLabel, ticks } from "../ui/format.js";
import { ink } from "../explorer/look.js";

/**
 * @typedef {{low: number, high: number, from: number, to: number}} Scale  values low to high lie
 *   from `from` to `to`
 */

/** @param {Scale} scale @param {number} value @returns {number} */
export function at(scale, value) {
  return (
    scale.from + ((value - scale.low) / (scale.high - scale.low || 1)) * (scale.to - scale.from)
  );
}

/** @param {Scale} scale @param {number} place @returns {number} */
export function valueAt(scale, place) {
  return scale.low + ((place - scale.from) / (scale.to - scale.from)) * (scale.high - scale.low);
}

/**
 * @param {number[]} values
 * @param {boolean} [zero]  include zero
 * @returns {[number, number]} with a little air
 */
export function extent(values, zero = false) {
  const low = Math.min(...values, ...(zero ? [0] : []));
  const high = Math.max(...values, ...(zero ? [0] : []));
  const air = (high - low || Math.abs(high) || 1) * 0.05;
  return [zero && low === 0 ? 0 : low - air, high + air];
}

/**
 * @param {Scale} x
 * @param {number} top
 * @param {number} bottom
 * @param {string} [title]
 * @param {number} [wanted]
 */
export function across(x, top, bottom, title = "", wanted = 5) {
  const { faint, grid } = ink();
  const marks = ticks(x.low, x.high, wanted).flatMap((value) => [
    s("line", { x1: at(x, value), x2: at(x, value), y1: top, y2: bottom, stroke: grid }),
    s(
      "text",
      { x: at(x, value), y: bottom + 15, "text-anchor": "middle", fill: faint, "font-size": 11 },
      tickLabel(value),
    ),
  ]);
  const name = title
    ? s(
        "text",
        {
          x: (x.from + x.to) / 2,
          y: bottom + 32,
          "text-anchor": "middle",
          fill: faint,
          "font-weight": 600,
        },
        title,
      )
    : "";
  return s("g", { "aria-hidden": "true" }, ...marks, name);
}

/**
 * @param {Scale} y
 * @param {number} left
 * @param {number} right
 * @param {string} [title]
 * @param {boolean} [whole]  of things that come in ones
 */
export function upward(y, left, right, title = "", whole = false) {
  const { faint, grid } = ink();
  const marks = ticks(y.low, y.high, 5, whole).flatMap((value) => [
    s("line", { x1: left, x2: right, y1: at(y, value), y2: at(y, value), stroke: grid }),
    s(
      "text",
      {
        x: left - 6,
        y: at(y, value),
        "text-anchor": "end",
        "dominant-baseline": "central",
        fill: faint,
        "font-size": 11,
      },
      tickLabel(value),
    ),
  ]);
  const middle = (y.from + y.to) / 2;
  const name = title
    ? s(
        "text",
        {
          x: 12,
          y: middle,
          "text-anchor": "middle",
          transform: `rotate(-90 12 ${middle})`,
          fill: faint,
          "font-weight": 600,
        },
        title,
      )
    : "";
  return s("g", { "aria-hidden": "true" }, ...marks, name);
}

/**
 * A dashed line at a value, with its name.
 * @param {Scale} x
 * @param {number} value
 * @param {number} top
 * @param {number} bottom
 * @param {string} color
 */
export function marker(x, value, top, bottom, color) {
  return s("line", {
    x1: at(x, value),
    x2: at(x, value),
    y1: top,
    y2: bottom,
    stroke: color,
    "stroke-width": 1.5,
    "stroke-dasharray": "4 3",
  });
}
