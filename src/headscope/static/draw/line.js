/**
 * How a weight becomes a line: its opacity, its width and its curve. Printed figures have the same
 * law in views/lines.py; a test compares the two.
 *
 * @typedef {[number, number]} Point
 */

/** Thumbnails are small, and so are their lines. */
export const THUMBNAIL = 0.6;

const HIGHEST = 34; // pixels of an arc

/**
 * Of one head the square root keeps weak lines visible; where several heads lie over each other it
 * is the weight divided by their number, so that only what they share gets strong.
 * @param {number} weight
 * @param {number} [heads]
 * @returns {number}
 */
export function opacity(weight, heads = 1) {
  const share = Math.min(1, Math.max(0, weight));
  return heads > 1 ? share / heads : Math.sqrt(share);
}

/** @param {number} weight @returns {number} in pixels */
export function lineWidth(weight) {
  return 0.6 + 2.4 * Math.min(1, Math.max(0, weight));
}

/**
 * The curve leaves and arrives straight across.
 * @param {{from: Point, to: Point}} ends
 * @returns {[Point, Point]} its control points
 */
export function controls({ from, to }) {
  const x = (from[0] + to[0]) / 2;
  return [
    [x, from[1]],
    [x, to[1]],
  ];
}

/**
 * The control points of an arc over words of one line; a word that looks at itself gets a loop.
 * @param {number} from
 * @param {number} to
 * @param {number} base  where the words are
 * @returns {Point[]}
 */
export function arc(from, to, base) {
  const rise = Math.min(HIGHEST, 14 + Math.abs(to - from) / 9);
  const [start, end] = from === to ? [from - 6, to + 6] : [from, to];
  const top = base - (4 * rise) / 3; // a curve rises to three quarters of its control points
  return [
    [start, base],
    [start, top],
    [end, top],
    [end, base],
  ];
}

/** @param {Point[]} points  two ends with two controls between them @returns {string} for SVG */
export function pathOf([from, first, second, to]) {
  return `M${from.join(" ")}C${first.join(" ")} ${second.join(" ")} ${to.join(" ")}`;
}
