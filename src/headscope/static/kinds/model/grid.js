/**
 * The order of the thumbnails: rows of one layer each, or one ranking across all layers.
 *
 * @typedef {{layer: number, head: number, score: number | null}} Cell
 */

/**
 * @import { Stack } from "../shared/data.js"
 * @import { State } from "../shared/settings.js"
 */

/**
 * @param {Stack} stack
 * @param {State} state
 * @returns {Cell[][]}  one row per layer; a single row when ranked across layers
 */
export function cellRows(stack, state) {
  const heads = state.weights === "rollout" ? stack.sets.rollout.heads : state.heads;
  const rows = state.layers.map((layer) =>
    ordered(
      heads.map((head) => ({ layer, head, score: scoreOf(stack, state, layer, head) })),
      state,
    ),
  );
  return state.ranked && state.order !== "number" ? [ordered(rows.flat(), state)] : rows;
}

/**
 * @param {Stack} stack
 * @param {State} state
 * @param {number} layer
 * @param {number} head
 * @returns {number | null}
 */
function scoreOf(stack, state, layer, head) {
  const table = stack.scores[state.order];
  if (!table || state.weights === "rollout") return null;
  return table[stack.layers.indexOf(layer)][stack.heads.indexOf(head)];
}

/** @param {Cell[]} cells @param {State} state @returns {Cell[]} */
function ordered(cells, state) {
  if (state.order === "number" || state.weights === "rollout") return cells;
  const sign = state.ascending ? 1 : -1;
  return [...cells].sort((a, b) => {
    if (a.score === null || b.score === null)
      return Number(a.score === null) - Number(b.score === null);
    return sign * (a.score - b.score) || a.layer - b.layer || a.head - b.head;
  });
}

/**
 * The rows as they are seen: a ranking has no rows of its own.
 * @param {Cell[][]} rows
 * @param {number} columns  thumbnails side by side when ranked, else 0
 * @returns {Cell[][]}
 */
export function shownRows(rows, columns) {
  const ranked = rows.length === 1 && columns > 0 && rows[0].length > columns;
  return ranked ? chunks(rows[0], columns) : rows;
}

/** @template T @param {T[]} items @param {number} size @returns {T[][]} */
function chunks(items, size) {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) =>
    items.slice(i * size, (i + 1) * size),
  );
}

/** @param {{layer: number, head: number}} a @param {{layer: number, head: number}} b */
export function same(a, b) {
  return a.layer === b.layer && a.head === b.head;
}
