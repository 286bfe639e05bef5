/** The shapes of figures that are SVG from the start. */

import { s } from "../ui/dom.js";

/**
 * @import { Attributes, Child } from "../ui/dom.js"
 * @import { Point } from "./line.js"
 */

/** How a text stands to its place. */
export const BEFORE = { "text-anchor": "end", "dominant-baseline": "central" };
export const MIDDLE = { "text-anchor": "middle" };

/** @param {number} x @param {number} y @param {Child} text @param {Attributes} [look] */
export function write(x, y, text, look = {}) {
  return s("text", { x, y, ...look }, text);
}

/** @param {Point} from @param {Point} to @param {string} stroke @param {Attributes} [look] */
export function line([x1, y1], [x2, y2], stroke, look = {}) {
  return s("line", { x1, y1, x2, y2, stroke, ...look });
}

/**
 * @param {Point} corner
 * @param {Point} size
 * @param {string} fill
 * @param {Attributes} [look]
 * @param {Child[]} children
 */
export function box([x, y], [width, height], fill, look = {}, ...children) {
  return s("rect", { x, y, width, height, fill, ...look }, ...children);
}

/**
 * @param {number} kind  0 circle, 1 square, 2 diamond, 3 triangle, 4 cross
 * @param {Point} middle
 * @param {number} r
 * @param {Attributes} look
 */
export function mark(kind, [x, y], r, look) {
  const path = (/** @type {string} */ d) => s("path", { d: `M${x} ${y}m${d}z`, ...look });
  const [a, b] = [r * 0.4, r * 1.1];
  if (kind === 1) return path(`${-0.9 * r} ${-0.9 * r}h${1.8 * r}v${1.8 * r}h${-1.8 * r}`);
  if (kind === 2)
    return path(
      `0 ${-1.25 * r}l${1.25 * r} ${1.25 * r}l${-1.25 * r} ${1.25 * r}l${-1.25 * r} ${-1.25 * r}`,
    );
  if (kind === 3) return path(`0 ${-1.2 * r}l${1.15 * r} ${2.1 * r}h${-2.3 * r}`);
  if (kind === 4)
    return path(
      `${-a} ${-b}h${2 * a}v${b - a}h${b - a}v${2 * a}h${a - b}v${b - a}` +
        `h${-2 * a}v${a - b}h${a - b}v${-2 * a}h${b - a}`,
    );
  return s("circle", { cx: x, cy: y, r, ...look });
}
