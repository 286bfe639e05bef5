/** The colours of heads and of their roles. */

import { COLORS, HEADS } from "./theme.js";

/** @typedef {"light" | "dark"} Theme */

/** @param {Theme} theme @param {number} head @returns {string} */
export function headColor(theme, head) {
  const colors = HEADS[theme];
  return colors[head % colors.length];
}

/** @param {Theme} theme @param {string} group  as theme.py names it @returns {string} */
export function roleColor(theme, group) {
  const name = group.replace(/(?:^| )(\w)/g, (_, letter) => letter.toUpperCase());
  return COLORS[theme][/** @type {"roleSink"} */ (`role${name}`)];
}

/** @param {string} hex @returns {[number, number, number]} */
export function rgb(hex) {
  const value = parseInt(hex.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}
