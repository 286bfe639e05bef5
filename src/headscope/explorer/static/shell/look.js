/** Light and dark: the chosen theme, its colours, and the colour scales of the figures. */

import { COLORS, DIVERGING, GROUPS, ON_COLOR, SEQUENTIAL } from "../../../views/static/core/theme.js";

const KEY = "headscope-theme";
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");

/** @typedef {"auto" | "light" | "dark"} Choice */

/** @type {Choice} */
let chosen = remembered();

/** A frame in a page of another host may not remember anything. @returns {Choice} */
function remembered() {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : "auto";
  } catch {
    return "auto";
  }
}

/** @returns {Choice} */
export function chosenTheme() {
  return chosen;
}

/** @param {Choice} choice */
export function chooseTheme(choice) {
  chosen = choice;
  try {
    localStorage.setItem(KEY, choice);
  } catch {
    // the choice holds until the page is left
  }
  applyTheme();
}

/** @returns {"light" | "dark"} */
export function theme() {
  const choice = chosenTheme();
  return choice === "auto" ? (prefersDark.matches ? "dark" : "light") : choice;
}

export function applyTheme() {
  document.documentElement.dataset.theme = theme();
}

/** @param {() => void} act */
export function onSystemTheme(act) {
  prefersDark.addEventListener("change", act);
}

/** The colours of the theme in force. */
export function ink() {
  return COLORS[theme()];
}

/** @param {number} share 0 to 1 @returns {string} */
export function sequential(share) {
  return between(SEQUENTIAL[theme()], share);
}

/** @param {number} share -1 to 1 @returns {string} */
export function diverging(share) {
  return between(DIVERGING[theme()], (share + 1) / 2);
}

/** @param {number} index @returns {string} */
export function kindColor(index) {
  const colors = GROUPS[theme()];
  return colors[index % colors.length];
}

/** The group of heads without a behaviour of their own. */
export const UNNAMED = "unnamed";

/** @param {string} group of what heads do @returns {string} */
export function roleColor(group) {
  const name = group.replace(/(?:^| )(.)/g, (_, letter) => letter.toUpperCase());
  return /** @type {Record<string, string>} */ (COLORS[theme()])[`role${name}`];
}

/** @param {string} color #rrggbb @returns {string} an ink that can be read on it */
export function inkOn(color) {
  return ON_COLOR.reduce((best, one) => (contrast(color, one) > contrast(color, best) ? one : best)); // one of them always reaches 4.5
}

/** @param {string[]} stops @param {number} share @returns {string} */
function between(stops, share) {
  const at = Math.min(1, Math.max(0, share)) * (stops.length - 1);
  const low = Math.min(stops.length - 2, Math.floor(at));
  const from = channels(stops[low]);
  const to = channels(stops[low + 1]);
  return `#${from.map((value, i) => hex(value + (to[i] - value) * (at - low))).join("")}`;
}

/** @param {string} color @returns {number[]} */
function channels(color) {
  return [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
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
  const [r, g, b] = channels(color).map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
