/**
 * The head view as shapes: lines, labels, numbers and marks, for the canvas and for print.
 *
 * @typedef {import("../core/units.js").Drawing} Drawing
 * @typedef {import("../core/units.js").Units} Units
 * @typedef {import("../core/lines.js").Line} Line
 * @typedef {import("./geometry.js").Geometry} Geometry
 * @typedef {import("../core/scene.js").Shape} Shape
 * @typedef {import("../core/scene.js").Curve} Curve
 * @typedef {import("../core/colors.js").Theme} Theme
 *
 * @typedef {object} Look
 * @property {Theme} theme
 * @property {number | null} prompt  unit at which generated text begins
 * @property {boolean} crossing  queries and keys are different sequences
 *
 * @typedef {{side: "q" | "k", index: number}} Pin
 */

import { headColor, lineWidth, opacity } from "../core/colors.js";
import { nameWithinLayer } from "../core/heads.js";
import { COLORS } from "../core/theme.js";
import { headShift, labelStart, lineEnd, middle, numberAt, numberColumns, place } from "./geometry.js";
import { isShown } from "../core/units.js";

/** @param {Line} line @param {Drawing} drawing @param {Geometry} g @param {Look} look @returns {Curve} */
export function curveOf(line, drawing, g, look) {
  const strength = line.weight / drawing.reference;
  const shift = headShift(g, drawing.heads.indexOf(line.head), drawing.heads.length);
  return {
    kind: "curve",
    from: place(g, middle(g, line.query) + shift, lineEnd(g, "q")),
    to: place(g, middle(g, line.key) + shift, lineEnd(g, "k")),
    across: g.vertical,
    color: headColor(look.theme, line.head),
    alpha: opacity(strength),
    width: lineWidth(strength),
  };
}

/**
 * The numbers beside the tokens on the other side of the pinned one.
 * @param {Drawing} drawing
 * @param {Pin} pin
 * @param {boolean} vertical
 * @returns {{headings: string[], heads: (number | null)[], rows: number[][]}}
 */
export function numbersOf(drawing, pin, vertical) {
  const columns = drawing.keys.labels.length;
  const others = pin.side === "q" ? columns : drawing.queries.labels.length;
  /** @param {Float32Array} values @param {number} other */
  const at = (values, other) => values[pin.side === "q" ? pin.index * columns + other : other * columns + pin.index];
  const few = drawing.heads.length <= numberColumns(drawing.heads.length, vertical);
  const rows = Array.from({ length: others }, (_, other) => {
    const each = drawing.weights.map((values) => at(values, other));
    return few ? each : [each.reduce((sum, one) => sum + one, 0) / each.length, Math.max(...each)];
  });
  const headings = few ? drawing.heads.map(nameWithinLayer) : ["mean", "max"];
  return { headings, heads: few ? drawing.heads : [null, null], rows };
}

/** @param {Drawing} drawing @param {Pin} pin @param {Geometry} g @param {Look} look @returns {Shape[]} */
export function numberShapes(drawing, pin, g, look) {
  const { headings, heads, rows } = numbersOf(drawing, pin, g.vertical);
  const side = pin.side === "q" ? "k" : "q";
  const ink = COLORS[look.theme];
  /** @type {Shape[]} */
  const shapes = [];
  headings.forEach((text, column) => {
    const head = heads[column];
    const color = head === null ? ink.faint : headColor(look.theme, head);
    shapes.push(numberText(g, numberAt(g, side, -0.9, column), text, color, true));
  });
  rows.forEach((row, other) => {
    if (!(side === "k" ? isShown(drawing, pin.index, other) : isShown(drawing, other, pin.index))) return;
    row.forEach((weight, column) => {
      const color = weight / drawing.reference < 0.01 ? ink.faint : ink.ink;
      shapes.push(numberText(g, numberAt(g, side, other, column), format(weight), color, false));
    });
  });
  return shapes;
}

/** @param {Geometry} g @param {[number, number]} at @param {string} text @param {string} color @param {boolean} bold @returns {Shape} */
function numberText(g, at, text, color, bold) {
  const turned = !g.vertical;
  return { kind: "text", at, text, size: g.size - 1, color, anchor: turned ? "middle" : "end", turn: turned ? -90 : 0, mono: true, bold };
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

/** @param {"q" | "k"} side @param {Units} units @param {Geometry} g @param {Look} look @returns {Shape[]} */
function sideLabels(side, units, g, look) {
  const ink = COLORS[look.theme];
  const nearLines = side === "q" ? labelStart(g, "q") + g.label - 4 : labelStart(g, "k") + 4;
  return units.labels.map((text, index) => ({
    kind: "text",
    at: place(g, middle(g, index), nearLines),
    text: shortened(text, Math.floor(g.label / (g.size * 0.55))),
    size: g.size,
    color: units.kept[index] ? ink.ink : ink.rule,
    anchor: (side === "q") === g.vertical ? "end" : "start",
    turn: g.vertical ? 0 : -90,
  }));
}

/** @param {string} text @param {number} most @returns {string} */
export function shortened(text, most) {
  const chars = Array.from(text);
  return chars.length <= most ? text : `${chars.slice(0, most - 1).join("")}…`;
}

/** @param {Drawing} drawing @param {Geometry} g @param {Look} look @returns {Shape[]} */
export function markShapes(drawing, g, look) {
  const shapes = look.prompt === null ? [] : boundary(g, look, look.prompt, "prompt", "generated", true);
  if (look.crossing) return shapes;
  const change = drawing.queries.segments.findIndex((segment, i) => i > 0 && segment !== drawing.queries.segments[i - 1] && segment === 1);
  return change < 0 ? shapes : [...shapes, ...boundary(g, look, change, "A", "B", false)];
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
  const along = g.margin + index * g.pitch;
  const end = look.crossing ? lineEnd(g, "q") : g.depth;
  const turn = g.vertical ? 0 : -90;
  /** @param {string} text @param {number} shift @returns {Shape} */
  const name = (text, shift) => ({ kind: "text", at: place(g, along + shift, 4), text, size: 10, color: ink.faint, turn, anchor: g.vertical ? "start" : "end" });
  return [
    { kind: "rule", from: place(g, along, 0), to: place(g, along, end), color: ink.rule, dashed },
    name(before, -7),
    name(after, 8),
  ];
}
