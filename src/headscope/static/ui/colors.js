/** The colour of a head, and how a weight becomes a line. */

import { HEADS } from "./theme.js";

/** @typedef {"light" | "dark"} Theme */

/** @param {Theme} theme @param {number} head @returns {string} */
export function headColor(theme, head) {
  const colors = HEADS[theme];
  return colors[head % colors.length];
}

/** @param {string} hex @returns {[number, number, number]} */
export function rgb(hex) {
  const value = parseInt(hex.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/**
 * Opacity of a line. Of one head the square root keeps weak lines visible; where several heads lie
 * over each other it is the weight divided by their number, so that only what they share gets
 * strong.
 * @param {number} weight
 * @param {number} [heads]
 * @returns {number}
 */
export function opacity(weight, heads = 1) {
  const share = Math.min(1, Math.max(0, weight));
  return heads > 1 ? share / heads : Math.sqrt(share);
}

/** @param {number} weight @returns {number} width of a line in pixels */
export function lineWidth(weight) {
  return 0.6 + 2.4 * Math.min(1, Math.max(0, weight));
}
