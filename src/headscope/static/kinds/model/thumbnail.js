/** One head as a thumbnail: lines from left to right, or a matrix with a row per query. */

import { lineWidth, opacity, THUMBNAIL } from "../../draw/line.js";
import { pixelCanvas } from "../../draw/pixels.js";
import { rgb } from "../../ui/colors.js";
import { cutoffs, overviewLines } from "../shared/lines.js";
import { isShown } from "../shared/units.js";
import { percent } from "../../ui/numbers.js";
import { COLORS } from "../../ui/theme.js";

/**
 * @import { Theme } from "../../ui/colors.js"
 * @import { Shape } from "../../draw/scene.js"
 * @import { Drawing, Units } from "../shared/units.js"
 */

const MOST_BINS = { lines: 28, matrix: 64 };
const LEVELS = 16;
const SEEN = 0.15; // opacity: fainter lines are hardly seen
const MOSTLY = 0.5; // of the attention: what is hidden is the reason that nothing is seen
const REASON = 9; // pixels

/**
 * A drawing small enough for a thumbnail: neighbouring tokens of long texts share a bin, summed
 * over keys and averaged over queries. What is hidden is left out.
 * @param {Drawing} drawing  of one head
 * @param {"lines" | "matrix"} kind
 * @returns {Drawing}
 */
export function binned(drawing, kind) {
  const queries = bins(drawing.queries, MOST_BINS[kind]);
  const keys = bins(drawing.keys, MOST_BINS[kind]);
  const rows = drawing.queries.labels.length;
  const columns = drawing.keys.labels.length;
  const width = keys.labels.length;
  const weights = drawing.weights.map((values) => {
    const small = new Float32Array(queries.labels.length * width);
    for (let query = 0; query < rows; query++) {
      const row = binOf(query, rows, queries.labels.length);
      const share = 1 / queries.members[row].length;
      for (let key = 0; key < columns; key++) {
        const weight = values[query * columns + key];
        if (weight > 0 && isShown(drawing, query, key))
          small[row * width + binOf(key, columns, width)] += weight * share;
      }
    }
    return small;
  });
  return { ...drawing, queries, keys, weights, pair: "all" };
}

/** @param {number} index @param {number} count @param {number} size @returns {number} */
function binOf(index, count, size) {
  return Math.floor((index * size) / count);
}

/** @param {Units} units @param {number} most @returns {Units} */
function bins(units, most) {
  const count = units.labels.length;
  const size = Math.min(count, most);
  /** @type {number[][]} */
  const members = Array.from({ length: size }, () => []);
  for (let i = 0; i < count; i++) members[binOf(i, count, size)].push(i);
  const none = members.map(() => false);
  return {
    ...units,
    labels: members.map(() => ""),
    members,
    special: none,
    segments: members.map(() => 0),
    kept: new Uint8Array(size).fill(1),
    hidden: new Uint8Array(size),
  };
}

/**
 * @param {Drawing} small  a binned drawing
 * @param {"lines" | "matrix"} kind
 * @param {{x: number, y: number, size: number}} box
 * @param {string} color
 * @param {number} mass
 * @returns {Shape[]}
 */
export function thumbnailShapes(small, kind, box, color, mass) {
  return kind === "lines" ? lineShapes(small, box, color, mass) : matrixShapes(small, box, color);
}

/** Whether a reader would see nothing. @param {Drawing} small */
export function isBlank({ weights, reference }) {
  return weights.every((values) => values.every((weight) => opacity(weight / reference) < SEEN));
}

/**
 * The matrix on a canvas of this size: one picture is faster than a box for every weight.
 * @param {CanvasRenderingContext2D} pen
 * @param {Drawing} small
 * @param {number} size
 * @param {string} color
 */
export function paintMatrix(pen, small, size, color) {
  const ink = rgb(color);
  const [rows, columns] = [small.queries.labels.length, small.keys.labels.length];
  pen.imageSmoothingEnabled = false;
  for (const values of small.weights) {
    const alphaOf = (/** @type {number} */ place) => opacity(values[place] / small.reference);
    const pixels = pixelCanvas(columns, rows, (place) => [...ink, 255 * alphaOf(place)]);
    pen.drawImage(pixels, 0, 0, size, size);
  }
}

/**
 * Why nothing is seen.
 * @param {number} hidden  share of the attention that goes to hidden tokens
 * @param {{x: number, y: number, size: number}} box
 * @param {Theme} theme
 * @returns {Shape[]}
 */
export function reasonShapes(hidden, { x, y, size }, theme) {
  const words = hidden >= MOSTLY ? [percent(hidden, 0), "hidden"] : ["nothing", "to show"];
  return words.map((text, i) => ({
    kind: "text",
    at: [x + size / 2, y + size / 2 + (i - 0.5) * (REASON + 2)],
    text,
    size: REASON,
    color: COLORS[theme].faint,
    anchor: "middle",
  }));
}

/**
 * @param {Drawing} small
 * @param {{x: number, y: number, size: number}} box
 * @param {string} color
 * @param {number} mass
 * @returns {Shape[]}
 */
function lineShapes(small, { x, y, size }, color, mass) {
  const inset = size * 0.1;
  const down = size - 2 * inset;
  const [rows, columns] = [small.queries.labels.length, small.keys.labels.length];
  return overviewLines(small, cutoffs(small, mass)).lines.map(({ query, key, weight }) => {
    const strength = weight / small.reference;
    return {
      kind: "curve",
      from: [x + inset, y + inset + (down * (query + 0.5)) / rows],
      to: [x + size - inset, y + inset + (down * (key + 0.5)) / columns],
      color,
      alpha: opacity(strength),
      width: THUMBNAIL * lineWidth(strength),
    };
  });
}

/**
 * @param {Drawing} small
 * @param {{x: number, y: number, size: number}} box
 * @param {string} color
 * @returns {Shape[]}
 */
function matrixShapes(small, { x, y, size }, color) {
  const [rows, columns] = [small.queries.labels.length, small.keys.labels.length];
  const [tall, wide] = [size / rows, size / columns];
  /** @type {number[][]} */
  const levels = Array.from({ length: LEVELS + 1 }, () => []);
  for (const values of small.weights) {
    values.forEach((weight, at) => {
      const level = Math.round(opacity(weight / small.reference) * LEVELS);
      levels[level].push(
        x + (at % columns) * wide,
        y + Math.floor(at / columns) * tall,
        wide,
        tall,
      );
    });
  }
  return levels
    .slice(1)
    .map((boxes, level) => ({ kind: "cells", boxes, color, alpha: (level + 1) / LEVELS }));
}
