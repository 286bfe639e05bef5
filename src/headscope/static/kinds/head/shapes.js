/**
 * The head view as shapes: lines, labels, numbers and marks, for the canvas and for print.
 *
 * @typedef {object} Look
 * @property {Theme} theme
 * @property {number | null} prompt  unit at which generated text begins
 * @property {boolean} crossing  queries and keys are different sequences
 * @property {{q: Run[], k: Run[]}} runs  neighbours that belong to one span
 *
 * @typedef {{from: number, to: number, name: string, color: string}} Run  units from `from` up to,
 *   not with, `to`
 */

import { lineWidth, opacity } from "../../draw/line.js";
import { headColor } from "../../ui/colors.js";
import { shortened } from "../../ui/fonts.js";
import { nameWithinLayer } from "../../ui/heads.js";
import { COLORS } from "../../ui/theme.js";
import { cellBox, headShift, labelStart, lineEnd, middle, NAME, numberAt } from "./geometry.js";
import { isShown } from "../shared/units.js";

/**
 * @import { Theme } from "../../ui/colors.js"
 * @import { Line } from "../shared/lines.js"
 * @import { Curve, Shape } from "../../draw/scene.js"
 * @import { Pin } from "../shared/spans.js"
 * @import { Drawing, Units } from "../shared/units.js"
 * @import { Geometry } from "./geometry.js"
 */

const LEAST_NAME = 44; // pixels for the name of a span

/**
 * @param {Line} line
 * @param {Drawing} drawing
 * @param {Geometry} g
 * @param {Look} look
 * @param {number} sharing  heads whose lines lie over each other; 1 keeps them apart
 * @returns {Curve}
 */
export function curveOf(line, drawing, g, look, sharing) {
  const strength = line.weight / drawing.reference;
  const shift =
    sharing > 1 ? 0 : headShift(g, drawing.heads.indexOf(line.head), drawing.heads.length);
  return {
    kind: "curve",
    from: [lineEnd(g, "q"), middle(g, line.query) + shift],
    to: [lineEnd(g, "k"), middle(g, line.key) + shift],
    color: headColor(look.theme, line.head),
    alpha: opacity(strength, sharing),
    width: lineWidth(strength),
  };
}

/**
 * The weight of one head between the pinned units and another: of several attending ones the mean,
 * of several attended ones the sum.
 * @param {Float32Array} values
 * @param {number} columns
 * @param {Pin} pin
 * @param {number} other
 * @returns {number}
 */
export function weightBetween(values, columns, { side, indices }, other) {
  const isQuery = side === "q";
  let sum = 0;
  for (const index of indices)
    sum += values[isQuery ? index * columns + other : other * columns + index];
  return isQuery ? sum / indices.length : sum;
}

/**
 * The same of every head.
 * @param {Drawing} drawing
 * @param {Pin} pin
 * @param {number} other
 * @returns {number[]}
 */
export function weightsBetween(drawing, pin, other) {
  return drawing.weights.map((values) =>
    weightBetween(values, drawing.keys.labels.length, pin, other),
  );
}

/**
 * Whether any of the pinned units may be drawn with another.
 * @param {Drawing} drawing
 * @param {Pin} pin
 * @param {number} other
 * @returns {boolean}
 */
export function isShownWith(drawing, { side, indices }, other) {
  return indices.some((index) =>
    side === "q" ? isShown(drawing, index, other) : isShown(drawing, other, index),
  );
}

/**
 * Beside each token a number for every head under its name; of many heads a cell for each and the
 * largest.
 * @param {Drawing} drawing
 * @param {Pin} pin
 * @param {Geometry} g
 * @param {Look} look
 * @param {(y: number) => boolean} [seen]  whether a token there is on screen
 * @returns {Shape[]}
 */
export function numberShapes(drawing, pin, g, look, seen = () => true) {
  const side = pin.side === "q" ? "k" : "q";
  const shown = (/** @type {number} */ other) => isShownWith(drawing, pin, other);
  const others = Array.from(
    { length: (side === "k" ? drawing.keys : drawing.queries).labels.length },
    (_, other) => other,
  );
  const rows = others
    .filter((other) => seen(middle(g, other)) && shown(other))
    .map((other) => ({ other, row: weightsBetween(drawing, pin, other) }));
  return g.columns
    ? everyNumber(drawing, rows, side, g, look)
    : largestNumbers(drawing, rows, side, g, look);
}

/** @typedef {{row: number[], other: number}[]} Weighed */

/**
 * @param {Drawing} drawing
 * @param {Weighed} rows
 * @param {"q" | "k"} side
 * @param {Geometry} g
 * @param {Look} look
 * @returns {Shape[]}
 */
function everyNumber(drawing, rows, side, g, look) {
  const headings = drawing.heads.map((head, column) =>
    numberText(
      g,
      numberAt(g, side, -0.9, column),
      nameWithinLayer(head),
      headColor(look.theme, head),
      true,
    ),
  );
  const numbers = rows.flatMap(({ row, other }) =>
    row.map((weight, column) =>
      numberText(
        g,
        numberAt(g, side, other, column),
        format(weight),
        inkOf(weight, drawing, look),
        false,
      ),
    ),
  );
  return [...headings, ...numbers];
}

/**
 * @param {Drawing} drawing
 * @param {Weighed} rows
 * @param {"q" | "k"} side
 * @param {Geometry} g
 * @param {Look} look
 * @returns {Shape[]}
 */
function largestNumbers(drawing, rows, side, g, look) {
  /** @type {Shape[]} */
  const shapes = [
    numberText(g, numberAt(g, side, -0.9, 0), "largest", COLORS[look.theme].faint, true),
  ];
  for (const { row, other } of rows) {
    const best = row.indexOf(Math.max(...row));
    if (row[best] === 0) continue;
    shapes.push(
      numberText(
        g,
        numberAt(g, side, other, 0),
        `${nameWithinLayer(drawing.heads[best])} ${format(row[best])}`,
        inkOf(row[best], drawing, look),
        false,
      ),
    );
    if (g.cell)
      row.forEach((weight, at) =>
        shapes.push({
          kind: "cells",
          boxes: cellBox(g, side, other, at),
          color: headColor(look.theme, drawing.heads[at]),
          alpha: Math.min(1, weight / drawing.reference),
        }),
      );
  }
  return shapes;
}

/** @param {number} weight @param {Drawing} drawing @param {Look} look @returns {string} */
function inkOf(weight, drawing, look) {
  return weight / drawing.reference < 0.01 ? COLORS[look.theme].faint : COLORS[look.theme].ink;
}

/**
 * @param {Geometry} g
 * @param {[number, number]} at
 * @param {string} text
 * @param {string} color
 * @param {boolean} bold
 * @returns {Shape}
 */
function numberText(g, at, text, color, bold) {
  return { kind: "text", at, text, size: g.size - 1, color, anchor: "end", mono: true, bold };
}

/** @param {number} weight @returns {string} */
export function format(weight) {
  if (weight === 0) return "0";
  return weight.toFixed(weight >= 100 ? 0 : weight >= 10 ? 1 : weight >= 1.0005 ? 2 : 3);
}

/**
 * Labels as text shapes, for print only: on screen they are elements.
 * @param {Drawing} drawing
 * @param {Geometry} g
 * @param {Look} look
 * @returns {Shape[]}
 */
export function labelShapes(drawing, g, look) {
  return [...sideLabels("q", drawing.queries, g, look), ...sideLabels("k", drawing.keys, g, look)];
}

/**
 * @param {"q" | "k"} side
 * @param {Units} units
 * @param {Geometry} g
 * @param {Look} look
 * @returns {Shape[]}
 */
function sideLabels(side, units, g, look) {
  const ink = COLORS[look.theme];
  const nearLines = side === "q" ? labelStart(g, "q") + g.label - 4 : labelStart(g, "k") + 4;
  return units.labels.map((text, index) => ({
    kind: "text",
    at: [nearLines, middle(g, index)],
    text: shortened(text, Math.floor(g.label / (g.size * 0.55))),
    size: g.size,
    color: units.kept[index] ? ink.ink : ink.rule,
    anchor: side === "q" ? "end" : "start",
  }));
}

/**
 * Where generated text or the second sentence begins, and the spans.
 * @param {Drawing} drawing
 * @param {Geometry} g
 * @param {Look} look
 * @param {boolean} named  whether there is room for the names of spans beside the attending tokens
 * @returns {Shape[]}
 */
export function markShapes(drawing, g, look, named) {
  const spans = [...runShapes("q", g, look, named), ...runShapes("k", g, look, false)];
  const [before, after] = look.runs.q.length ? ["", ""] : ["prompt", "generated"];
  const shapes =
    look.prompt === null
      ? spans
      : [...spans, ...boundary(g, look, look.prompt, before, after, true)];
  if (look.crossing) return shapes;
  const change = drawing.queries.segments.findIndex(
    (segment, i) => i > 0 && segment !== drawing.queries.segments[i - 1] && segment === 1,
  );
  return change < 0 ? shapes : [...shapes, ...boundary(g, look, change, "A", "B", false)];
}

/**
 * A bar along the tokens of each span, between labels and lines.
 * @param {"q" | "k"} side
 * @param {Geometry} g
 * @param {Look} look
 * @param {boolean} named
 * @returns {Shape[]}
 */
function runShapes(side, g, look, named) {
  const depth = side === "q" ? lineEnd(g, "q") - 6 : lineEnd(g, "k") + 3;
  return look.runs[side].flatMap(({ from, to, name, color }) => {
    const box = [depth, g.margin + from * g.pitch + 1, 3, (to - from) * g.pitch - 2];
    /** @type {Shape[]} */
    const shapes = [{ kind: "cells", boxes: box, color, alpha: 1 }];
    if (named && name && g.numbers >= LEAST_NAME) {
      shapes.push({
        kind: "text",
        at: [4, middle(g, from)],
        text: shortened(name, Math.floor((g.numbers - 8) / (NAME * 0.52))),
        size: NAME,
        color,
        bold: true,
      });
    }
    return shapes;
  });
}

/**
 * @param {Geometry} g
 * @param {Look} look
 * @param {number} index
 * @param {string} before
 * @param {string} after
 * @param {boolean} dashed
 * @returns {Shape[]}
 */
function boundary(g, look, index, before, after, dashed) {
  const ink = COLORS[look.theme];
  const y = g.margin + index * g.pitch;
  const end = look.crossing ? lineEnd(g, "q") : g.width;
  /** @param {string} text @param {number} shift @returns {Shape} */
  const name = (text, shift) => ({
    kind: "text",
    at: [4, y + shift],
    text,
    size: 10,
    color: ink.faint,
  });
  return [
    { kind: "rule", from: [0, y], to: [end, y], color: ink.rule, dashed },
    name(before, -7),
    name(after, 8),
  ];
}
