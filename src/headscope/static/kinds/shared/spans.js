/**
 * Named spans of tokens and sets of pinned tokens, written as in Python: "12-45 Document 1",
 * "q3-7+9".
 *
 * @typedef {{name: string, tokens: number[]}} Span  tokens ascend
 * @typedef {{side: "q" | "k", indices: number[]}} Pin  of tokens, or of units of a drawing; indices
 *   ascend
 */

import { GROUPS } from "../../ui/theme.js";

/** @import { Theme } from "../../ui/colors.js" */

/** @param {number[]} numbers  ascending @returns {string} neighbours as a range: "3-7+9" */
export function ranges(numbers) {
  /** @type {[number, number][]} */
  const runs = [];
  for (const number of numbers) {
    const last = runs[runs.length - 1];
    if (last && number === last[1] + 1) last[1] = number;
    else runs.push([number, number]);
  }
  return runs.map(([first, last]) => (last > first ? `${first}-${last}` : String(first))).join("+");
}

/**
 * @param {string} text
 * @param {number} count  of tokens
 * @returns {number[] | null} null for what is no set of these tokens
 */
function parseRanges(text, count) {
  /** @type {Set<number>} */
  const found = new Set();
  for (const part of text.split("+")) {
    const match = /^(\d+)(?:-(\d+))?$/.exec(part);
    if (!match) return null;
    const [first, last] = [Number(match[1]), Number(match[2] ?? match[1])];
    if (last < first || last >= count) return null;
    for (let number = first; number <= last; number++) found.add(number);
  }
  return [...found].sort((a, b) => a - b);
}

/** @param {string} text @param {number} count @returns {Span | null} */
function parseSpan(text, count) {
  const at = text.indexOf(" ");
  const tokens = at > 0 ? parseRanges(text.slice(0, at), count) : null;
  const name = text.slice(at + 1).trim();
  return tokens && name ? { name, tokens } : null;
}

/** @param {Span} span @returns {string} */
export function writeSpan({ name, tokens }) {
  return `${ranges(tokens)} ${name}`;
}

/**
 * Those that can be read, each name once.
 * @param {string[]} written
 * @param {number} count
 * @returns {Span[]}
 */
export function spansOf(written, count) {
  /** @type {Map<string, Span>} */
  const found = new Map();
  for (const text of written) {
    const span = parseSpan(text, count);
    if (span && !found.has(span.name)) found.set(span.name, span);
  }
  return [...found.values()];
}

/**
 * @param {string | null} pinned
 * @param {number} queries
 * @param {number} keys
 * @returns {Pin | null}
 */
export function parsePin(pinned, queries, keys) {
  const side = pinned?.[0];
  if (!pinned || (side !== "q" && side !== "k")) return null;
  const indices = parseRanges(pinned.slice(1), side === "q" ? queries : keys);
  return indices && { side, indices };
}

/** @param {Pin} pin @returns {string} */
export function writePin({ side, indices }) {
  return `${side}${ranges(indices)}`;
}

/** @param {Pin | null} a @param {Pin | null} b */
export function samePin(a, b) {
  return (
    a?.side === b?.side &&
    a?.indices.length === b?.indices.length &&
    (a?.indices ?? []).every((index, i) => index === b?.indices[i])
  );
}

/** @param {Theme} theme @param {number} number @returns {string} the colour of a span */
export function spanColor(theme, number) {
  return GROUPS[theme][number % GROUPS[theme].length];
}

/**
 * The span of each token: the shortest where spans lie within each other; -1 where there is none.
 * @param {Span[]} spans
 * @param {number} start
 * @param {number} count
 * @returns {Int32Array}
 */
export function ownerOf(spans, start, count) {
  const owner = new Int32Array(count).fill(-1);
  const order = spans
    .map((_, number) => number)
    .sort((a, b) => spans[b].tokens.length - spans[a].tokens.length);
  for (const number of order) {
    for (const token of spans[number].tokens)
      if (token >= start && token < start + count) owner[token - start] = number;
  }
  return owner;
}
