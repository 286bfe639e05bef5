/**
 * The neuron view for print: queries, lines, weights, vectors, sums, and the step to the weights.
 */

import { COLORS } from "../../ui/theme.js";
import { shortened } from "../../ui/fonts.js";
import { LEGEND, legendShapes } from "./legend.js";
import { linkShapes } from "./queries.js";
import { stripShapes } from "./strips.js";
import { softmaxShapes, sumShapes } from "./sums.js";
import { columnsOf, PITCH, signed, sizesOf, SUM } from "./table.js";

/**
 * @import { Scene, Shape } from "../../draw/scene.js"
 * @import { Rows } from "./table.js"
 */

const ROOM = 1280; // as on a screen of this width
const WORD = 110;
const FIGURE = 70;
const GAP = 14;
const HEADING = 76; // pixels that the name of a strip takes
const TOP = 34;
const PLOT = { width: 420, height: 210 };

/** @param {Rows} shown @returns {Scene} */
export function neuronScene(shown) {
  const rows = { ...shown, sizes: sizesOf(shown.head.dim, 3, ROOM, 0, false) };
  const { head, parts, order, theme, query, sizes, most } = rows;
  const ink = COLORS[theme];
  const strip = Math.max(sizes.cell * head.dim, HEADING);
  const columns = columnsOf(rows);
  const vectorX = WORD + 6;
  const linkX = vectorX + sizes.own * head.dim + 6;
  const keyWord = linkX + sizes.link + WORD;
  const weightX = keyWord + 8;
  const keyX = weightX + 138;
  const productX = keyX + strip + GAP;
  const sumX = productX + strip + GAP;
  const figuresX = sumX + SUM;
  const bodyY = TOP + PITCH + 8;
  /** @param {[number, number]} at @param {string} text @param {object} [more] @returns {Shape} */
  const write = (at, text, more = {}) => ({
    kind: "text",
    at,
    text,
    size: 12,
    color: ink.ink,
    ...more,
  });
  const vector = head.query.subarray(query * head.dim, (query + 1) * head.dim);
  const faint = { color: ink.faint, size: 11 };
  const right = { ...faint, anchor: "end" };
  const mono = { mono: true, size: 11, anchor: "end" };
  const queries = { pitch: PITCH, tall: sizes.tall, cell: sizes.own };
  /** @type {Shape[]} */
  const shapes = [
    write([vectorX, 16], "queries", faint),
    write([weightX, 16], "weight", faint),
    write([keyX, 16], "key", faint),
    write([productX, 16], "query × key", faint),
    write([sumX, 16], "adding up", faint),
    ...columns.map(({ title }, i) => write([figuresX + (i + 1) * FIGURE, 16], title, right)),
    write([keyWord, TOP + PITCH / 2], shortened(rows.queries[query], 16), {
      anchor: "end",
      bold: true,
    }),
    ...stripShapes(vector, order, sizes, [keyX, TOP], theme, most.vectors),
    write([productX, TOP + PITCH / 2], "← its query", faint),
    ...stripShapes(head.query, order, queries, [vectorX, bodyY], theme, most.vectors),
    ...linkShapes(rows, [linkX, bodyY]),
    ...stripShapes(head.key, order, sizes, [keyX, bodyY], theme, most.vectors),
    ...stripShapes(parts.products, order, sizes, [productX, bodyY], theme, most.products),
    ...sumShapes(rows, [sumX, bodyY], SUM),
  ];
  rows.queries.forEach((label, at) =>
    shapes.push(
      write([WORD, bodyY + (at + 0.5) * PITCH], shortened(label, 16), {
        anchor: "end",
        bold: at === query,
      }),
    ),
  );
  rows.labels.forEach((label, key) => {
    const y = bodyY + (key + 0.5) * PITCH;
    shapes.push(write([keyWord, y], shortened(label, 16), { anchor: "end" }));
    shapes.push({
      kind: "cells",
      boxes: [weightX, y - 5, 80 * parts.weights[key], 10],
      color: ink.positive,
      alpha: 1,
    });
    shapes.push(write([weightX + 128, y], parts.weights[key].toFixed(4), mono));
    columns.forEach(({ value }, i) =>
      shapes.push(write([figuresX + (i + 1) * FIGURE, y], value(key), mono)),
    );
  });
  const endY = bodyY + Math.max(rows.labels.length, rows.queries.length) * PITCH;
  const width = figuresX + columns.length * FIGURE + 16;
  if (head.sink !== null) {
    const y = bodyY + (rows.labels.length + 0.5) * PITCH;
    shapes.push(
      write([keyWord, y], "learned sink", right),
      write([weightX + 128, y], parts.sink.toFixed(4), mono),
      write([width - 16, y], signed(head.sink), mono),
    );
  }
  const plotY = endY + PITCH + 20;
  shapes.push(
    ...softmaxShapes(rows, { x: 0, y: plotY, ...PLOT }, null),
    write([44, plotY - 8], "from score to weight: e^score / Σ e^score", faint),
    ...legendShapes("query, key", most.vectors, [PLOT.width + 30, plotY + 10], theme),
    ...legendShapes(
      "query × key",
      most.products,
      [PLOT.width + 30, plotY + 10 + LEGEND.height],
      theme,
    ),
  );
  return { width, height: plotY + PLOT.height + 8, paper: ink.paper, shapes };
}
