/**
 * Pictures of the two steps that numbers alone do not show: how the products add up to a score, and
 * how the softmax turns scores into weights.
 */

import { COLORS } from "../../ui/theme.js";
import { fixed } from "../../ui/numbers.js";
import { shortened } from "../../ui/fonts.js";

/**
 * @import { Shape } from "../../draw/scene.js"
 * @import { Rows } from "./table.js"
 */

const HIDDEN = -1e4; // scores below are masked
const NAMED = 5; // keys that are named beside their dot
const PALE = 0.3; // of what is masked

/**
 * Every product as a step up or down from where the one before it ended; the last ends at the
 * score. All rows share one scale.
 * @param {Rows} rows
 * @param {[number, number]} at
 * @param {number} width
 * @returns {Shape[]}
 */
export function sumShapes({ head, parts, order, theme, sizes, labels }, [left, top], width) {
  const ink = COLORS[theme];
  const { pitch } = sizes;
  const sums = labels.map((_, key) => runningSum(parts.products, order, key, head.scaling));
  const low = sums.flat().reduce((least, sum) => Math.min(least, sum), 0);
  const high = sums.flat().reduce((most, sum) => Math.max(most, sum), 0);
  const step = width / order.length;
  const y = (/** @type {number} */ value, /** @type {number} */ key) =>
    top + key * pitch + 3 + ((high - value) / (high - low || 1)) * (pitch - 6);
  /** @type {Record<"up" | "down" | "paleUp" | "paleDown" | "ends", number[]>} */
  const boxes = { up: [], down: [], paleUp: [], paleDown: [], ends: [] };
  /** @type {Shape[]} */
  const zero = [];
  sums.forEach((sum, key) => {
    const masked = parts.scores[key] < HIDDEN;
    zero.push(rule([left, y(0, key)], [left + width, y(0, key)], ink.rule));
    sum.forEach((value, i) => {
      const before = i === 0 ? 0 : sum[i - 1];
      const into =
        value >= before ? (masked ? boxes.paleUp : boxes.up) : masked ? boxes.paleDown : boxes.down;
      into.push(
        left + i * step,
        Math.min(y(before, key), y(value, key)),
        step,
        Math.max(1.5, Math.abs(y(before, key) - y(value, key))),
      );
    });
    if (!masked) boxes.ends.push(left + width - 3, y(sum[sum.length - 1], key) - 1.5, 5, 3);
  });
  return [
    ...zero,
    { kind: "cells", boxes: boxes.paleUp, color: ink.positive, alpha: PALE },
    { kind: "cells", boxes: boxes.paleDown, color: ink.negative, alpha: PALE },
    { kind: "cells", boxes: boxes.up, color: ink.positive, alpha: 1 },
    { kind: "cells", boxes: boxes.down, color: ink.negative, alpha: 1 },
    { kind: "cells", boxes: boxes.ends, color: ink.ink, alpha: 1 },
  ];
}

/**
 * @param {[number, number]} from
 * @param {[number, number]} to
 * @param {string} color
 * @returns {Shape}
 */
function rule(from, to, color, dashed = false) {
  return { kind: "rule", from, to, color, dashed };
}

/**
 * @param {Float64Array} products
 * @param {number[]} order
 * @param {number} key
 * @param {number} scaling
 * @returns {number[]}
 */
function runningSum(products, order, key, scaling) {
  let sum = 0;
  return order.map((neuron) => (sum += products[key * order.length + neuron] * scaling));
}

/**
 * Weight against score: every key lies on the curve e^score / Σ e^score; up from its score, across
 * to its weight.
 * @param {Rows} rows
 * @param {{x: number, y: number, width: number, height: number}} box
 * @param {number | null} marked  the key whose way is drawn; without one the strongest
 * @returns {Shape[]}
 */
export function softmaxShapes(rows, box, marked) {
  const { parts, head, theme, labels } = rows;
  const ink = COLORS[theme];
  const dots = labels.map((label, key) => ({
    label,
    score: parts.scores[key],
    weight: parts.weights[key],
    key,
  }));
  if (head.sink !== null)
    dots.push({ label: "learned sink", score: head.sink, weight: parts.sink, key: -1 });
  const seen = dots.filter(({ score }) => score > HIDDEN).sort((a, b) => b.weight - a.weight);
  if (seen.length === 0) return [];
  const { x, y } = scalesOf(seen, box);
  const strongest = seen.find(({ key }) => key === marked) ?? seen[0];
  return [
    ...axes(seen, x, y, box, ink),
    ...curve(seen[0], x, y, ink),
    ...way(strongest, x, y, box, ink),
    ...named(seen, strongest, x, y, box, ink),
  ];
}

/** @typedef {{label: string, score: number, weight: number, key: number}} Dot */
/** @typedef {{low: number, high: number, at: (value: number) => number}} Axis */
/** @typedef {(typeof COLORS)["light"]} Ink */

/**
 * @param {Dot[]} dots  the strongest first
 * @param {{x: number, y: number, width: number, height: number}} box
 * @returns {{x: Axis, y: Axis}}
 */
function scalesOf(dots, box) {
  const scores = dots.map(({ score }) => score);
  const [low, high] = [Math.min(...scores) - 0.4, Math.max(...scores) + 0.4];
  const most = Math.min(1, dots[0].weight * 1.15);
  const [left, right, bottom, top] = [
    box.x + 44,
    box.x + box.width - 10,
    box.y + box.height - 34,
    box.y + 18,
  ];
  return {
    x: { low, high, at: (value) => left + ((value - low) / (high - low)) * (right - left) },
    y: { low: 0, high: most, at: (value) => bottom - (value / most) * (bottom - top) },
  };
}

/**
 * @param {Dot[]} dots
 * @param {Axis} x
 * @param {Axis} y
 * @param {{x: number, y: number, width: number, height: number}} box
 * @param {Ink} ink
 * @returns {Shape[]}
 */
function axes(dots, x, y, box, ink) {
  const faint = { size: 11, color: ink.faint };
  const [bottom, left] = [y.at(0), x.at(x.low)];
  const ends = [dots.reduce((a, b) => Math.min(a, b.score), Infinity), dots[0].score];
  return [
    rule([left, bottom], [x.at(x.high), bottom], ink.faint),
    rule([left, bottom], [left, y.at(y.high)], ink.faint),
    {
      kind: "text",
      at: [(left + x.at(x.high)) / 2, bottom + 26],
      text: "score",
      anchor: "middle",
      ...faint,
    },
    {
      kind: "text",
      at: [box.x + 7, (bottom + y.at(y.high)) / 2],
      text: "weight",
      anchor: "middle",
      ...faint,
      turn: -90,
    },
    .../** @type {Shape[]} */ (
      ends.map((score) => ({
        kind: "text",
        at: [x.at(score), bottom + 11],
        text: fixed(score, 1),
        anchor: "middle",
        mono: true,
        ...faint,
      }))
    ),
  ];
}

/** @param {Dot} strongest @param {Axis} x @param {Axis} y @param {Ink} ink @returns {Shape[]} */
function curve(strongest, x, y, ink) {
  const steps = 60;
  const weight = (/** @type {number} */ score) =>
    strongest.weight * Math.exp(score - strongest.score);
  const points = Array.from(
    { length: steps + 1 },
    (_, i) => x.low + ((x.high - x.low) * i) / steps,
  ).filter((score) => weight(score) <= y.high);
  return points.slice(1).map((score, i) => ({
    kind: "rule",
    from: [x.at(points[i]), y.at(weight(points[i]))],
    to: [x.at(score), y.at(weight(score))],
    color: ink.accent,
    dashed: false,
  }));
}

/**
 * Up from the score, across to the weight.
 * @param {Dot} dot
 * @param {Axis} x
 * @param {Axis} y
 * @param {{x: number, y: number, width: number, height: number}} box
 * @param {Ink} ink
 * @returns {Shape[]}
 */
function way(dot, x, y, box, ink) {
  const [across, up] = [x.at(dot.score), y.at(dot.weight)];
  return [
    rule([across, y.at(0)], [across, up], ink.mark, true),
    rule([across, up], [x.at(x.low), up], ink.mark, true),
    {
      kind: "text",
      at: [x.at(x.low) - 4, up],
      text: dot.weight.toFixed(2),
      size: 11,
      color: ink.mark,
      anchor: "end",
      mono: true,
    },
  ];
}

/**
 * The dots, and the names of the strongest; names keep apart.
 * @param {Dot[]} dots
 * @param {Dot} strongest
 * @param {Axis} x
 * @param {Axis} y
 * @param {{x: number, y: number, width: number, height: number}} box
 * @param {Ink} ink
 * @returns {Shape[]}
 */
function named(dots, strongest, x, y, box, ink) {
  const chosen = [...new Set([strongest, ...dots.slice(0, NAMED)])].sort(
    (a, b) => b.weight - a.weight,
  );
  let free = -Infinity;
  /** @type {Shape[]} */
  const names = chosen.map((dot) => {
    const at = Math.max(free, y.at(dot.weight) - 6);
    free = at + 13;
    return {
      kind: "text",
      at: [x.at(dot.score) - 8, at],
      text: `${shortened(dot.label, 14)} ${dot.weight.toFixed(2)}`,
      size: 11,
      color: dot === strongest ? ink.mark : ink.ink,
      anchor: "end",
    };
  });
  const boxes = dots.flatMap(({ score, weight }) => [x.at(score) - 3, y.at(weight) - 3, 6, 6]);
  return [
    { kind: "cells", boxes, color: ink.positive, alpha: 0.75 },
    ...names.filter((shape) => shape.kind === "text" && shape.at[1] < y.at(0) - 2),
  ];
}
