/** How closely two measures go together over the heads that are shown. */

import { number, probability } from "../ui/format.js";

const FEWEST = 3; // with two heads every r is ±1
const STEPS = 300;
const TINY = 1e-300;

/** @param {{x: number, y: number}[]} points @returns {string} Pearson's r and its p in words */
export function relation(points) {
  const { r, p } = pearson(points);
  return r === null ? "r is undefined here" : `r = ${number(r)}, ${probability(p)}`;
}

/** @param {{x: number, y: number}[]} points @returns {{r: number | null, p: number | null}} */
export function pearson(points) {
  const [xs, ys] = [centred(points.map((one) => one.x)), centred(points.map((one) => one.y))];
  const spread = Math.sqrt(product(xs, xs) * product(ys, ys));
  if (points.length < FEWEST || !(spread > 0)) return { r: null, p: null };
  const r = Math.max(-1, Math.min(1, product(xs, ys) / spread));
  // Student's t of n − 2 degrees of freedom, both sides
  return { r, p: incompleteBeta(1 - r * r, points.length / 2 - 1, 0.5) };
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

/**
 * The regularised incomplete beta function, by its continued fraction (Lentz).
 * @param {number} x
 * @param {number} a
 * @param {number} b
 * @returns {number}
 */
function incompleteBeta(x, a, b) {
  if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(1 - x, b, a);
  let [c, d] = [1, 1 / away(1 - ((a + b) * x) / (a + 1))];
  let sum = d;
  for (let m = 1; m < STEPS; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    const before = sum;
    for (const term of [even, odd]) {
      d = 1 / away(1 + term * d);
      c = away(1 + term / c);
      sum *= c * d;
    }
    if (Math.abs(sum - before) < 1e-14 * Math.abs(sum)) break;
  }
  return (
    (sum *
      Math.exp(
        a * Math.log(x) + b * Math.log1p(-x) + logGamma(a + b) - logGamma(a) - logGamma(b),
      )) /
    a
  );
}

/** @param {number} value @returns {number} never exactly zero */
function away(value) {
  return Math.abs(value) < TINY ? TINY : value;
}

/**
 * By Stirling's series, above 8 exact to the last digits; below by Γ(x + 1) = x Γ(x).
 * @param {number} x
 * @returns {number}
 */
function logGamma(x) {
  if (x < 8) return logGamma(x + 1) - Math.log(x);
  const y = 1 / (x * x);
  return (
    (x - 0.5) * Math.log(x) -
    x +
    0.5 * Math.log(2 * Math.PI) +
    (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y / 1188)))) / x
  );
}
