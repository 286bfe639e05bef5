/**
 * The neuron view for print.
 *
 * @typedef {import("./table.js").Rows} Rows
 * @typedef {import("../core/scene.js").Scene} Scene
 * @typedef {import("../core/scene.js").Shape} Shape
 */

import { COLORS } from "../core/theme.js";
import { shortened } from "../head/shapes.js";
import { columnsOf, PITCH, signed, stripSize } from "./table.js";
import { stripShapes } from "./strips.js";

const WORD = 130;
const FIGURE = 74;
const GAP = 16;
const TOP = 34;

/** @param {Rows} rows @returns {Scene} */
export function neuronScene(rows) {
  const { head, parts, order, theme, query } = rows;
  const ink = COLORS[theme];
  const size = stripSize(head.dim);
  const strip = size.cell * head.dim;
  const columns = columnsOf(rows);
  const [keyX, productX] = [WORD + GAP, WORD + 2 * GAP + strip];
  const figuresX = productX + strip;
  const weightX = figuresX + (columns.length + 1) * FIGURE;
  const bodyY = TOP + PITCH + 10;
  /** @param {[number, number]} at @param {string} text @param {object} [more] @returns {Shape} */
  const write = (at, text, more = {}) => ({ kind: "text", at, text, size: 12, color: ink.ink, ...more });
  const vector = head.query.subarray(query * head.dim, (query + 1) * head.dim);
  const faint = { color: ink.faint, size: 11 };
  /** @type {Shape[]} */
  const shapes = [
    write([keyX, 16], "key", faint), write([productX, 16], "query × key", faint),
    ...columns.map(({ title }, i) => write([figuresX + (i + 1) * FIGURE, 16], title, { ...faint, anchor: "end" })),
    write([weightX, 16], "weight", { ...faint, anchor: "end" }),
    write([WORD, TOP + PITCH / 2], shortened(rows.queryLabel, 20), { anchor: "end", bold: true }),
    ...stripShapes(vector, order, size, [keyX, TOP], theme),
    write([productX, TOP + PITCH / 2], "← query", faint),
    ...stripShapes(head.key, order, size, [keyX, bodyY], theme),
    ...stripShapes(parts.products, order, size, [productX, bodyY], theme),
  ];
  const mono = { mono: true, size: 11, anchor: "end" };
  rows.labels.forEach((label, key) => {
    const y = bodyY + (key + 0.5) * PITCH;
    shapes.push(write([WORD, y], shortened(label, 20), { anchor: "end" }));
    columns.forEach(({ value }, i) => shapes.push(write([figuresX + (i + 1) * FIGURE, y], value(key), mono)));
    shapes.push(write([weightX, y], parts.weights[key].toFixed(4), mono));
    shapes.push({ kind: "cells", boxes: [weightX + 8, y - 5, 90 * parts.weights[key], 10], color: ink.positive, alpha: 1 });
  });
  const endY = bodyY + rows.labels.length * PITCH;
  if (head.sink !== null) {
    shapes.push(write([WORD, endY + PITCH / 2], "learned sink", { ...faint, anchor: "end" }));
    shapes.push(write([weightX - FIGURE, endY + PITCH / 2], signed(head.sink), mono), write([weightX, endY + PITCH / 2], parts.sink.toFixed(4), mono));
  }
  return { width: weightX + 110, height: endY + PITCH + 12, paper: ink.paper, shapes };
}
