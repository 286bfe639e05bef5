/** Numbers as they are written everywhere: a true minus, a space before the sign of per cent. */

export const MINUS = "\u2212";

/** @param {number} value @param {number} places @returns {string} */
export function fixed(value, places) {
  return value.toFixed(places).replace("-", MINUS);
}

/** @param {number} share @param {number} [places] @returns {string} */
export function percent(share, places = 1) {
  return `${fixed(100 * share, places)} %`;
}
