/** The colour of a head. */

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
