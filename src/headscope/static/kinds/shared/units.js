/**
 * Rows and columns of a drawing: tokens or words, some of them hidden.
 *
 * @typedef {object} Units
 * @property {string[]} labels
 * @property {number[][]} members  token indices of each unit
 * @property {boolean[]} special
 * @property {number[]} segments
 * @property {Uint8Array} kept  0 where hidden or filtered out
 * @property {Uint8Array} hidden  1 where hidden
 * @property {boolean} bySpan
 * @property {number} start  the first token, of all tokens of the side
 * @property {number} first  number of the first unit, of all units of the side
 *
 * @typedef {object} Drawing
 * @property {Units} queries
 * @property {Units} keys
 * @property {number[]} heads
 * @property {Float32Array[]} weights  one query × key matrix per head
 * @property {string} pair
 * @property {number} reference  the weight drawn fully opaque: 1, or the largest where weights are
 *   norms
 */

import { columnFactors, keysOf } from "./data.js";
import { ownerOf, spansOf } from "./spans.js";

/**
 * @import { LayerWeights, Side, Stack } from "./data.js"
 * @import { State } from "./settings.js"
 */

/**
 * The units of some tokens of a side; members are counted from the first of these tokens.
 * @param {Side} side
 * @param {State} state
 * @param {number} start
 * @param {number} count
 * @param {{bySpan: boolean, within: string | null}} how  whether spans are of this side, and which
 *   of them is shown
 * @returns {Units}
 */
function unitsOf(side, state, start, count, how) {
  const bySpan = state.unit === "span" && how.bySpan;
  const isWord = state.unit === "word";
  const wordOf = side.wordOf.slice(start, start + count);
  const hiddenToken = wordOf.map((_, token) => isHidden(side, state.hide, start + token));
  const spans = spansOf(state.spans, side.labels.length);
  const groups = bySpan
    ? spanGroups(
        spans.map(({ name }) => name),
        ownerOf(spans, start, count),
        hiddenToken,
      )
    : null;
  const members = groups
    ? groups.members
    : isWord
      ? wordGroups(wordOf)
      : wordOf.map((_, token) => [token]);
  const labels = groups
    ? groups.labels
    : members.map(([token]) =>
        isWord && wordOf[token] >= 0 ? side.words[wordOf[token]] : side.labels[start + token],
      );
  const special = members.map((group) => group.every((token) => side.special[start + token] === 1));
  const segments = members.map(([token]) => side.segments[start + token]);
  const first = bySpan ? 0 : isWord ? wordGroups(side.wordOf.slice(0, start)).length : start;
  const hidden = Uint8Array.from(members, (group, i) =>
    (i === 0 && start === 0 && state.hide.includes("first")) ||
    group.every((token) => hiddenToken[token])
      ? 1
      : 0,
  );
  const wanted =
    how.within === null ? null : new Set(spans.find(({ name }) => name === how.within)?.tokens);
  const kept = hidden.map((one, i) =>
    one || (wanted && !wanted.has(start + members[i][0])) ? 0 : 1,
  );
  return { labels, members, special, segments, kept, hidden, bySpan, start, first };
}

/** @param {Side} side @param {string[]} hide @param {number} token */
function isHidden(side, hide, token) {
  return (
    (hide.includes("special") && side.special[token] === 1) ||
    (hide.includes("first") && token === 0)
  );
}

/**
 * The tokens of each span; all others are one unit, and so are hidden ones, and that one is hidden.
 * @param {string[]} names
 * @param {Int32Array} owner
 * @param {boolean[]} hidden
 * @returns {{members: number[][], labels: string[]}}
 */
function spanGroups(names, owner, hidden) {
  /** @type {Map<string, number[]>} */
  const groups = new Map();
  owner.forEach((number, token) => {
    const name = hidden[token] ? "hidden" : number >= 0 ? names[number] : "everything else";
    const group = groups.get(name);
    if (group) group.push(token);
    else groups.set(name, [token]);
  });
  return { members: [...groups.values()], labels: [...groups.keys()] };
}

/** @param {number[]} wordOf @returns {number[][]} */
export function wordGroups(wordOf) {
  /** @type {number[][]} */
  const groups = [];
  wordOf.forEach((word, token) => {
    const goesOn = token > 0 && word >= 0 && word === wordOf[token - 1];
    if (goesOn) groups[groups.length - 1].push(token);
    else groups.push([token]);
  });
  return groups;
}

/**
 * @param {Stack} stack
 * @param {LayerWeights} layer
 * @param {State} state
 * @param {number[]} heads  those to draw; for rollout there is one
 * @returns {Drawing}
 */
export function drawingOf(stack, layer, state, heads) {
  const same = stack.keys === null;
  const queries = unitsOf(stack.queries, state, layer.start[0], layer.rows, {
    bySpan: same,
    within: same ? state.attending : null,
  });
  const keys = unitsOf(keysOf(stack), state, layer.start[1], layer.columns, {
    bySpan: true,
    within: state.attended,
  });
  const present = heads.filter((head) => layer.heads.includes(head));
  const weights = present.map((head) => merged(layer, layer.heads.indexOf(head), queries, keys));
  return { queries, keys, heads: present, weights, pair: state.pair, reference: layer.reference };
}

/**
 * Weights between units: summed over the keys, averaged over the queries of a unit.
 * @param {LayerWeights} layer
 * @param {number} place
 * @param {Units} queries
 * @param {Units} keys
 * @returns {Float32Array}
 */
function merged(layer, place, queries, keys) {
  const { rows, columns, levels } = layer;
  const unitOf = unitOfToken(keys.members, columns);
  const factors = columnFactors(layer, place);
  const start = place * rows * columns;
  const width = keys.members.length;
  const values = new Float32Array(queries.members.length * width);
  queries.members.forEach((group, unit) => {
    for (const token of group) {
      const from = start + token * columns;
      const to = unit * width;
      for (let key = 0; key < columns; key++)
        values[to + unitOf[key]] += (levels[from + key] * factors[key]) / group.length;
    }
  });
  return values;
}

/** @param {number[][]} members @param {number} tokens @returns {Int32Array} */
function unitOfToken(members, tokens) {
  const unitOf = new Int32Array(tokens);
  members.forEach((group, unit) => group.forEach((token) => (unitOf[token] = unit)));
  return unitOf;
}

/**
 * Whether the pair of units may be drawn.
 * @param {Drawing} drawing
 * @param {number} query
 * @param {number} key
 */
export function isShown(drawing, query, key) {
  const { queries, keys, pair } = drawing;
  if (!queries.kept[query] || !keys.kept[key]) return false;
  if (pair === "all") return true;
  return (
    queries.segments[query] === "ab".indexOf(pair[0]) &&
    keys.segments[key] === "ab".indexOf(pair[1])
  );
}

/**
 * Mean share of attention that goes to the keys in `hidden`, over heads and kept queries.
 * @param {Drawing} drawing
 * @param {(key: number) => boolean} hidden
 * @param {number[] | null} [only]  some queries instead of all
 * @returns {number}
 */
export function massTo(drawing, hidden, only = null) {
  const columns = drawing.keys.labels.length;
  let sum = 0;
  let count = 0;
  for (const values of drawing.weights) {
    for (let query = 0; query < drawing.queries.labels.length; query++) {
      if (only === null ? !drawing.queries.kept[query] : !only.includes(query)) continue;
      let total = 0;
      let share = 0;
      for (let key = 0; key < columns; key++) {
        const weight = values[query * columns + key];
        total += weight;
        if (hidden(key)) share += weight;
      }
      if (total > 0) sum += share / total;
      count += 1;
    }
  }
  return count ? sum / count : 0;
}

/** @param {Side} side @returns {boolean} whether the side holds a sentence pair */
export function isPair(side) {
  return side.segments.includes(0) && side.segments.includes(1);
}
