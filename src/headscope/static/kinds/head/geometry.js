/**
 * Where tokens, lines and numbers of the head view go: attending tokens left, attended ones right.
 *
 * @typedef {object} Geometry
 * @property {number} pitch
 * @property {number} size  font size
 * @property {number} margin  room above the first token, for the headings of the numbers
 * @property {number} numbers  width of the numbers beside each side
 * @property {number} columns  numbers side by side, one for each head; 0 where only the largest is
 *   written
 * @property {number} cell  width of a head's cell beside the largest number; 0 without cells
 * @property {number} label  width of the labels
 * @property {number} span  width of the lines
 * @property {number} width
 * @property {number} height
 */

import { textWidth } from "../../ui/fonts.js";

/** @import { Drawing } from "../shared/units.js" */

const COLUMN = 46;
const GAP = 8;
const LARGEST = 78; // "H11 0.123"
const LARGE = 1800; // pixels from which on everything is drawn larger
const NARROW = 560;
export const NAME = 11; // size of the names of spans

/**
 * @param {Drawing} drawing
 * @param {number} room  pixels across the page
 * @param {boolean} touched  by fingers, which need room
 * @param {string[]} names  of spans, which stand beside the tokens where there is room
 * @returns {Geometry}
 */
export function geometryOf(drawing, room, touched, names) {
  const count = Math.max(drawing.queries.labels.length, drawing.keys.labels.length);
  const close = Math.round(
    (count <= 48 ? 23 : count <= 160 ? 19 : 16) * (room >= LARGE ? 1.25 : 1),
  );
  const pitch = touched ? Math.max(close, count <= 160 ? 40 : 28) : close;
  const size = close >= 28 ? 16 : close >= 23 ? 13 : close >= 19 ? 12 : 11;
  const label = labelWidth(drawing, size, Math.max(96, room * 0.3));
  const least = room < NARROW ? 56 : 160;
  const beside = (room - least) / 2 - label - GAP;
  const { columns, cell, ...needed } = numberRoom(drawing.heads.length, beside);
  const widest = Math.max(0, ...names.map((name) => Math.ceil(textWidth(name, NAME)) + 14));
  const numbers = needed.numbers && Math.max(needed.numbers, Math.min(widest, 140, beside));
  const free = room - 2 * (numbers + label + GAP);
  const span = Math.max(least, Math.min(room >= LARGE ? 640 : 420, free));
  const margin = pitch * 1.5;
  const width = 2 * (numbers + label + GAP) + span;
  const height = margin + count * pitch + pitch / 2;
  return { pitch, size, margin, numbers, columns, cell, label, span, width, height };
}

/**
 * A number for each head where there is room, else a cell for each and the largest as a number;
 * where there is no room at all the largest is written over the lines.
 * @param {number} heads
 * @param {number} room
 * @returns {{columns: number, cell: number, numbers: number}}
 */
function numberRoom(heads, room) {
  const columns = Math.max(1, heads);
  if (columns <= 4 && columns * COLUMN + GAP <= room)
    return { columns, cell: 0, numbers: columns * COLUMN + GAP };
  if (LARGEST + GAP > room) return { columns: columns === 1 ? 1 : 0, cell: 0, numbers: 0 };
  const cell = Math.min(8, Math.floor((room - LARGEST - GAP) / heads));
  const shown = cell >= 3 ? cell : 0;
  return { columns: 0, cell: shown, numbers: LARGEST + shown * heads + GAP };
}

/**
 * @param {Drawing} drawing
 * @param {number} size
 * @param {number} most
 */
function labelWidth(drawing, size, most) {
  const limit = Math.min(180, most);
  let widest = 40;
  for (const text of new Set([...drawing.queries.labels, ...drawing.keys.labels])) {
    widest = Math.max(widest, text.length > 60 ? limit : textWidth(text, size) + 14);
    if (widest >= limit) return Math.floor(limit);
  }
  return Math.ceil(widest);
}

/** @param {Geometry} g @param {number} index @returns {number} how far down a token's middle is */
export function middle(g, index) {
  return g.margin + (index + 0.5) * g.pitch;
}

/**
 * Heads one below the other within a token, so that lines of the same pair stay apart.
 * @param {Geometry} g
 * @param {number} place
 * @param {number} heads
 * @returns {number}
 */
export function headShift(g, place, heads) {
  const spread = Math.min(g.pitch * 0.6, 2.5 * (heads - 1));
  return heads < 2 ? 0 : spread * (place / (heads - 1) - 0.5);
}

/** @param {Geometry} g @param {"q" | "k"} side @returns {number} where the side's lines end */
export function lineEnd(g, side) {
  const start = g.numbers + g.label + GAP;
  return side === "q" ? start : start + g.span;
}

/** @param {Geometry} g @param {"q" | "k"} side @returns {number} where the side's labels begin */
export function labelStart(g, side) {
  return side === "q" ? g.numbers : g.numbers + g.label + 2 * GAP + g.span;
}

/**
 * The right edge of a number beside a side's label.
 * @param {Geometry} g
 * @param {"q" | "k"} side
 * @param {number} index
 * @param {number} column
 * @returns {[number, number]}
 */
export function numberAt(g, side, index, column) {
  const wide = g.columns ? COLUMN : LARGEST;
  if (g.numbers === 0)
    return [side === "q" ? lineEnd(g, "q") + wide : lineEnd(g, "k") - GAP, middle(g, index)];
  const start = side === "q" ? 0 : labelStart(g, "k") + g.label;
  return [start + column * COLUMN + wide - 4, middle(g, index)];
}

/**
 * Where the cell of a head begins, beside the largest number.
 * @param {Geometry} g
 * @param {"q" | "k"} side
 * @param {number} index
 * @param {number} head  its place among the drawn ones
 * @returns {number[]} x, y, width, height
 */
export function cellBox(g, side, index, head) {
  const start = (side === "q" ? 0 : labelStart(g, "k") + g.label) + LARGEST;
  const tall = Math.min(14, g.pitch - 6);
  return [start + head * g.cell, middle(g, index) - tall / 2, g.cell - 1, tall];
}
