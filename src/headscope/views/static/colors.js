/** Colours: one per head, and blue–orange for positive and negative numbers. */

/** @typedef {"light" | "dark"} Theme */

/** @param {{light: string[], dark: string[]}} palette @param {Theme} theme @param {number} head @returns {string} */
export function headColor(palette, theme, head) {
  const colors = palette[theme];
  return colors[head % colors.length];
}

/** @type {Record<Theme, {ink: string, faint: string, paper: string, rule: string, blue: string, orange: string}>} */
export const INK = {
  light: { ink: "#1c2128", faint: "#646d78", paper: "#ffffff", rule: "#d5dae0", blue: "#1f6fd6", orange: "#d9740b" },
  dark: { ink: "#e4e8ee", faint: "#98a2ae", paper: "#14181d", rule: "#333b45", blue: "#5aa5ff", orange: "#ffa043" },
};

/** @param {string} hex @returns {[number, number, number]} */
export function rgb(hex) {
  const value = parseInt(hex.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/**
 * Opacity of a line: the square root keeps weak lines visible.
 * @param {number} weight
 * @returns {number}
 */
export function opacity(weight) {
  return Math.sqrt(Math.min(1, Math.max(0, weight)));
}

/** @param {number} weight @returns {number} width of a line in pixels */
export function lineWidth(weight) {
  return 0.6 + 2.4 * Math.min(1, Math.max(0, weight));
}
