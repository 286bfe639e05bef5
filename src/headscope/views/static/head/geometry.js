/**
 * Where tokens, lines and numbers go. Everything is laid out along two axes: `along` the tokens and
 * in `depth` from the attending to the attended side; the layout only decides which axis is which.
 *
 * @typedef {import("../core/units.js").Drawing} Drawing
 *
 * @typedef {object} Geometry
 * @property {boolean} vertical
 * @property {boolean} flipped  horizontal layout of a right-to-left script
 * @property {number} pitch
 * @property {number} size  font size
 * @property {number} margin  room before the first token, for the headings of the numbers
 * @property {number} numbers  depth of the numbers beside each side
 * @property {number} label  depth of the labels
 * @property {number} span  depth of the lines
 * @property {number} length  along
 * @property {number} depth
 * @property {number} width
 * @property {number} height
 */

const COLUMN = 46;
const GAP = 8;

/**
 * @param {Drawing} drawing
 * @param {string} direction
 * @param {number} room  pixels across the page
 * @param {(text: string, size: number) => number} measure
 * @returns {Geometry}
 */
export function geometryOf(drawing, direction, room, measure) {
  const count = Math.max(drawing.queries.labels.length, drawing.keys.labels.length);
  const vertical = direction === "vertical";
  const pitch = count <= 48 ? 23 : count <= 160 ? 19 : 16;
  const size = pitch >= 23 ? 13 : pitch >= 19 ? 12 : 11;
  const numbers = numberColumns(drawing.heads.length, vertical) * COLUMN + GAP;
  const label = labelDepth(drawing, size, measure);
  const free = vertical ? room - 2 * (numbers + label + GAP) : 260;
  const span = Math.max(160, Math.min(420, free));
  const margin = pitch * 1.5;
  const length = margin + count * pitch + pitch / 2;
  const depth = 2 * (numbers + label + GAP) + span;
  const flipped = !vertical && drawing.queries.rtl;
  const [width, height] = vertical ? [depth, length] : [length, depth];
  return { vertical, flipped, pitch, size, margin, numbers, label, span, length, depth, width, height };
}

/**
 * A number for each head where there is room, else their mean and largest.
 * @param {number} heads
 * @param {boolean} vertical
 * @returns {number}
 */
export function numberColumns(heads, vertical) {
  const most = vertical ? 4 : 2;
  return heads <= most ? Math.max(1, heads) : 2;
}

/** @param {Drawing} drawing @param {number} size @param {(text: string, size: number) => number} measure */
function labelDepth(drawing, size, measure) {
  let widest = 56;
  for (const text of new Set([...drawing.queries.labels, ...drawing.keys.labels])) {
    widest = Math.max(widest, text.length > 40 ? 180 : measure(text, size) + 14);
    if (widest >= 180) return 180;
  }
  return Math.ceil(widest);
}

/** @param {Geometry} g @param {number} along @param {number} depth @returns {[number, number]} */
export function place(g, along, depth) {
  if (g.vertical) return [depth, along];
  return [g.flipped ? g.length - along : along, depth];
}

/** @param {Geometry} g @param {number} index @returns {number} middle of a token along the axis */
export function middle(g, index) {
  return g.margin + (index + 0.5) * g.pitch;
}

/**
 * Heads side by side across a token, so that lines of the same pair stay apart.
 * @param {Geometry} g
 * @param {number} place
 * @param {number} heads
 * @returns {number}
 */
export function headShift(g, place, heads) {
  const spread = Math.min(g.pitch * 0.6, 2.5 * (heads - 1));
  return heads < 2 ? 0 : spread * (place / (heads - 1) - 0.5);
}

/** @param {Geometry} g @param {"q" | "k"} side @returns {number} depth at which the side's lines end */
export function lineEnd(g, side) {
  const start = g.numbers + g.label + GAP;
  return side === "q" ? start : start + g.span;
}

/** @param {Geometry} g @param {"q" | "k"} side @returns {number} depth at which the side's labels begin */
export function labelStart(g, side) {
  return side === "q" ? g.numbers : g.numbers + g.label + 2 * GAP + g.span;
}

/**
 * @param {Geometry} g
 * @param {"q" | "k"} side
 * @param {number} index
 * @returns {{left: number, top: number, width: number, height: number}}
 */
export function labelBox(g, side, index) {
  const along = g.margin + index * g.pitch;
  const start = labelStart(g, side);
  if (g.vertical) return { left: start, top: along, width: g.label, height: g.pitch };
  const left = g.flipped ? g.length - along - g.pitch : along;
  return { left, top: start, width: g.pitch, height: g.label };
}

/**
 * Right edge (vertical) or middle (horizontal) of a number beside a side's label.
 * @param {Geometry} g
 * @param {"q" | "k"} side
 * @param {number} index
 * @param {number} column
 * @returns {[number, number]}
 */
export function numberAt(g, side, index, column) {
  const start = side === "q" ? 0 : labelStart(g, "k") + g.label;
  const inset = g.vertical ? COLUMN - 4 : COLUMN / 2;
  return place(g, middle(g, index), start + column * COLUMN + inset);
}
