/**
 * Which lines are drawn: of every row the strongest that together hold the wanted mass.
 *
 * @typedef {object} Line
 * @property {number} head  head number
 * @property {number} query
 * @property {number} key
 * @property {number} weight
 */

import { isShown } from "./units.js";

/** @import { Drawing } from "./units.js" */

/** A screenful of lines beyond this is fog, and takes long to draw. */
const MOST_LINES = 12000;
const BINS = 16384;

/**
 * The smallest weight kept in each row of each head.
 * @param {Drawing} drawing
 * @param {number} mass
 * @returns {Float32Array[]}
 */
export function cutoffs(drawing, mass) {
  return drawing.weights.map((values) => rowCutoffs(drawing, values, mass));
}

/**
 * @param {Drawing} drawing
 * @param {Float32Array[]} cuts
 * @returns {{lines: Line[], total: number}} strongest last, at most MOST_LINES of `total`
 */
export function overviewLines(drawing, cuts) {
  const counts = new Uint32Array(BINS + 1);
  let total = 0;
  eachKept(drawing, cuts, (_head, _query, _key, weight) => {
    counts[bin(weight / drawing.reference)] += 1;
    total += 1;
  });
  const lowest = lowestBin(counts, MOST_LINES);
  /** @type {Line[]} */
  const lines = [];
  eachKept(drawing, cuts, (place, query, key, weight) => {
    if (bin(weight / drawing.reference) >= lowest)
      lines.push({ head: drawing.heads[place], query, key, weight });
  });
  lines.sort((a, b) => a.weight - b.weight);
  return { lines: lines.slice(-MOST_LINES), total };
}

/**
 * All lines of one token.
 * @param {Drawing} drawing
 * @param {Float32Array[]} cuts
 * @param {"q" | "k"} side
 * @param {number} index
 * @returns {Line[]}
 */
export function tokenLines(drawing, cuts, side, index) {
  const columns = drawing.keys.labels.length;
  const others = side === "q" ? columns : drawing.queries.labels.length;
  /** @type {Line[]} */
  const lines = [];
  drawing.weights.forEach((values, place) => {
    for (let other = 0; other < others; other++) {
      const query = side === "q" ? index : other;
      const key = side === "q" ? other : index;
      const weight = values[query * columns + key];
      if (weight > 0 && weight >= cuts[place][query] && isShown(drawing, query, key))
        lines.push({ head: drawing.heads[place], query, key, weight });
    }
  });
  return lines;
}

/**
 * The smallest weight kept in each row; ties with it are kept too.
 * @param {Drawing} drawing
 * @param {Float32Array} values
 * @param {number} mass
 * @returns {Float32Array}
 */
function rowCutoffs(drawing, values, mass) {
  const columns = drawing.keys.labels.length;
  const cuts = new Float32Array(drawing.queries.labels.length);
  if (mass >= 1) return cuts;
  const row = new Float32Array(columns);
  for (let query = 0; query < cuts.length; query++) {
    let total = 0;
    let count = 0;
    for (let key = 0; key < columns; key++) {
      const weight = values[query * columns + key];
      if (weight <= 0 || !isShown(drawing, query, key)) continue;
      total += weight;
      row[count++] = weight;
    }
    cuts[query] = cutoff(row.subarray(0, count), mass * total);
  }
  return cuts;
}

const COARSE = 128;
const coarse = new Float64Array(COARSE + 1);

/**
 * The weight at which the largest ones together reach `wanted`. Only the bin where that happens is
 * sorted: sorting whole rows took most of the time of a long text.
 * @param {Float32Array} weights
 * @param {number} wanted
 * @returns {number}
 */
function cutoff(weights, wanted) {
  let most = 0;
  for (const weight of weights) most = Math.max(most, weight);
  const step = COARSE / Math.sqrt(most);
  coarse.fill(0);
  for (const weight of weights) coarse[Math.floor(Math.sqrt(weight) * step)] += weight;
  let sum = 0;
  let bin = COARSE;
  while (bin > 0 && sum + coarse[bin] < wanted - 1e-9) sum += coarse[bin--];
  const inside = weights.filter((weight) => Math.floor(Math.sqrt(weight) * step) === bin).sort();
  for (let i = inside.length - 1; i >= 0; i--) {
    sum += inside[i];
    if (sum >= wanted - 1e-9) return inside[i];
  }
  return 0;
}

/**
 * @param {Drawing} drawing
 * @param {Float32Array[]} cuts
 * @param {(place: number, query: number, key: number, weight: number) => void} visit
 */
function eachKept(drawing, cuts, visit) {
  const columns = drawing.keys.labels.length;
  drawing.weights.forEach((values, place) => {
    for (let query = 0; query < drawing.queries.labels.length; query++) {
      const cut = cuts[place][query];
      for (let key = 0; key < columns; key++) {
        const weight = values[query * columns + key];
        if (weight > 0 && weight >= cut && isShown(drawing, query, key))
          visit(place, query, key, weight);
      }
    }
  });
}

/**
 * Bins by the square root: in long texts nearly all weights are small.
 * @param {number} weight
 * @returns {number}
 */
function bin(weight) {
  return Math.min(BINS, Math.floor(Math.sqrt(weight) * BINS));
}

/** @param {Uint32Array} counts @param {number} most @returns {number} */
function lowestBin(counts, most) {
  let sum = 0;
  for (let at = counts.length - 1; at >= 0; at--) {
    sum += counts[at];
    if (sum >= most) return at;
  }
  return 0;
}
