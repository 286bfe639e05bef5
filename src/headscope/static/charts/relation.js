/** How closely two measures go together over the heads that are shown. */

import { number } from "../ui/format.js";

const FEWEST = 3; // with two heads every r is ±1

/** @param {{x: number, y: number}[]} points @returns {string} Pearson's r in words */
export function relation(points) {
  const r = pearson(points);
  return r === null ? "r is undefined here" : `r = ${number(r)}`;
}

/** @param {{x: number, y: number}[]} points @returns {number | null} */
export function pearson(points) {
  const [xs, ys] = [
    centred(points.map((point) => point.x)),
    centred(points.map((point) => point.y)),
  ];
  const spread = Math.sqrt(product(xs, xs) * product(ys, ys));
  if (points.length < FEWEST || !(spread > 0)) return null;
  return Math.max(-1, Math.min(1, product(xs, ys) / spread));
}

/** @param {number[]} values */
function centred(values) {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return values.map((value) => value - mean);
}

/** @param {number[]} a @param {number[]} b */
function product(a, b) {
  return a.reduce((sum, value, i) => sum + value * b[i], 0);
}
