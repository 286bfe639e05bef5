/** Straight axes with round numbers, shared by the figures that have them. */

import { BEFORE, line, MIDDLE, write } from "../draw/svg.js";
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
  const look = { ...MIDDLE, fill: faint };
  const marks = ticks(x.low, x.high, wanted).flatMap((value) => [
    line([at(x, value), top], [at(x, value), bottom], grid),
    write(at(x, value), bottom + 15, tickLabel(value), { ...look, "font-size": 11 }),
  ]);
  const name = write((x.from + x.to) / 2, bottom + 32, title, { ...look, "font-weight": 600 });
  return s("g", { "aria-hidden": "true" }, ...marks, title && name);
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
    line([left, at(y, value)], [right, at(y, value)], grid),
    write(left - 6, at(y, value), tickLabel(value), { ...BEFORE, fill: faint, "font-size": 11 }),
  ]);
  return s(
    "g",
    { "aria-hidden": "true" },
    ...marks,
    title && sideways(title, 12, (y.from + y.to) / 2),
  );
}

/** The name of what goes up. @param {string} title @param {number} x @param {number} y */
export function sideways(title, x, y) {
  const turned = { transform: `rotate(-90 ${x} ${y})`, "font-weight": 600 };
  return write(x, y, title, { ...MIDDLE, ...turned, fill: ink().faint });
}

/**
 * A dashed line at a value.
 * @param {Scale} x
 * @param {number} value
 * @param {number} top
 * @param {number} bottom
 * @param {string} color
 */
export function marker(x, value, top, bottom, color) {
  const look = { "stroke-width": 1.5, "stroke-dasharray": "4 3" };
  return line([at(x, value), top], [at(x, value), bottom], color, look);
}
