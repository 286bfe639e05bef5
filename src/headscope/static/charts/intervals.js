/** Differences as points with their intervals, one row a head, largest first. */

import { across, at, extent } from "./axes.js";
import { canvasOf } from "./figure.js";
import { s } from "../ui/dom.js";
import { finite, signed } from "../ui/format.js";
import { ink } from "../explorer/look.js";

/** @import { Scale } from "./axes.js" */

const ROW = 20;

/**
 * @typedef {{name: string, difference: number, low: number | null, high: number | null}} Interval
 *
 * @param {Interval[]} rows
 * @param {{width: number, label: string, axis: string}} options
 * @returns {SVGSVGElement}
 */
export function intervals(rows, { width, label, axis }) {
  const [low, high] = extent(
    finite([0, ...rows.flatMap((one) => [one.difference, one.low, one.high])]),
  );
  const x = { low, high, from: 64, to: width - 62 };
  const bottom = rows.length * ROW + 8;
  const zero = s("line", { x1: at(x, 0), x2: at(x, 0), y1: 4, y2: bottom, stroke: ink().faint });
  const lines = rows.map((one, i) => line(one, x, 8 + (i + 0.5) * ROW, width));
  return s(
    "svg",
    canvasOf(width, bottom + 42, { role: "img", "aria-label": label }),
    across(x, 4, bottom, axis),
    zero,
    ...lines,
  );
}

/** @param {Interval} one @param {Scale} x @param {number} y @param {number} width */
function line(one, x, y, width) {
  const clear = one.low !== null && one.high !== null && (one.low > 0 || one.high < 0);
  const color = clear ? ink().accent : ink().faint;
  const reach =
    one.low === null || one.high === null
      ? ""
      : s("line", {
          x1: at(x, one.low),
          x2: at(x, one.high),
          y1: y,
          y2: y,
          stroke: color,
          "stroke-width": 2,
        });
  const range = one.low === null ? "" : ` (${signed(one.low)} to ${signed(one.high)})`;
  const said = `${one.name}: ${signed(one.difference)}${range}`;
  return s(
    "g",
    {},
    s("title", {}, said),
    s(
      "text",
      { x: 54, y, "text-anchor": "end", "dominant-baseline": "central", fill: ink().ink },
      one.name,
    ),
    reach,
    s("circle", {
      cx: at(x, one.difference),
      cy: y,
      r: 4,
      fill: clear ? color : ink().paper,
      stroke: color,
      "stroke-width": 1.5,
    }),
    s(
      "text",
      {
        x: width - 2,
        y,
        "text-anchor": "end",
        "dominant-baseline": "central",
        fill: ink().ink,
        "font-size": 11.5,
      },
      signed(one.difference),
    ),
  );
}
