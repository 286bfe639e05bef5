/** The colours of heads and of their roles. */

import { COLORS, HEADS, ON_COLOR } from "./theme.js";

/** @typedef {"light" | "dark"} Theme */

/** @param {Theme} theme @param {number} head @returns {string} */
export function headColor(theme, head) {
  const colors = HEADS[theme];
  return colors[head % colors.length];
}

/** @param {Theme} theme @param {string} group  as theme.py names it @returns {string} */
export function colorOfRole(theme, group) {
  const name = group.replace(/(?:^| )(\w)/g, (_, letter) => letter.toUpperCase());
  return COLORS[theme][/** @type {"roleSink"} */ (`role${name}`)];
}

/** @param {string} hex @returns {[number, number, number]} */
export function rgb(hex) {
  const value = parseInt(hex.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/**
 * One colour laid over another.
 * @param {string} below
 * @param {string} above
 * @param {number} share  of the colour above
 * @returns {string}
 */
export function mixed(below, above, share) {
  const to = rgb(above);
  return `#${rgb(below)
    .map((value, i) => hex(value + (to[i] - value) * share))
    .join("")}`;
}

/** @param {string} color #rrggbb @returns {string} an ink that can be read on it */
export function inkOn(color) {
  return ON_COLOR.reduce((best, one) =>
    contrast(color, one) > contrast(color, best) ? one : best,
  ); // one of them always reaches 4.5
}

/** @param {number} value @returns {string} */
function hex(value) {
  return Math.round(value).toString(16).padStart(2, "0");
}

/** @param {string} a @param {string} b @returns {number} WCAG contrast ratio */
export function contrast(a, b) {
  const [dark, bright] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (bright + 0.05) / (dark + 0.05);
}

/** @param {string} color @returns {number} */
function luminance(color) {
  const [r, g, b] = rgb(color).map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
