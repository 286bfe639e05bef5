/** Light and dark: the chosen theme, its colours, and the colour scales of the figures. */

import { colorOfRole, mixed } from "../ui/colors.js";
import { COLORS, DIVERGING, GROUPS, SEQUENTIAL } from "../ui/theme.js";

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
  return colorOfRole(theme(), group);
}

/** @param {string[]} stops @param {number} share @returns {string} */
function between(stops, share) {
  const at = Math.min(1, Math.max(0, share)) * (stops.length - 1);
  const low = Math.min(stops.length - 2, Math.floor(at));
  return mixed(stops[low], stops[low + 1], at - low);
}
