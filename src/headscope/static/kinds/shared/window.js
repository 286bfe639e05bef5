/**
 * Long inputs are shown a window at a time: two tiles of tokens on each axis, moved tile by tile.
 *
 * @typedef {{start: number, end: number, size: number}} Span
 */

const SPAN = 2; // tiles of a window

/**
 * @param {number} length
 * @param {number} tile
 * @returns {number} the tile with which the last window begins
 */
export function lastWindow(length, tile) {
  return Math.max(0, Math.ceil(length / tile) - SPAN);
}

/** @param {number} length @param {number} window @param {number} tile @returns {Span} its tokens */
export function spanOf(length, window, tile) {
  const start = window * tile;
  const end = Math.min(start + SPAN * tile, length);
  return { start, end, size: end - start };
}

/** @param {Span} span @param {number} tile @returns {number[]} */
export function tileNumbers({ start, end }, tile) {
  const first = start / tile;
  return Array.from({ length: Math.ceil(end / tile) - first }, (_, i) => first + i);
}

/**
 * @param {unknown} window
 * @param {number[]} lengths  of queries and keys
 * @param {number | null} tile
 * @returns {number[]}
 */
export function validWindow(window, lengths, tile) {
  if (tile === null || !Array.isArray(window)) return [0, 0];
  return lengths.map((length, i) => {
    const wanted = Number.isInteger(window[i]) ? window[i] : 0;
    return Math.min(Math.max(0, wanted), lastWindow(length, tile));
  });
}
