/**
 * Labels with a bar each, largest first, the baseline as a tick: what a head attends to and from.
 */

import { at } from "./axes.js";
import { canvasOf } from "./figure.js";
import { s } from "../ui/dom.js";
import { textWidth } from "../ui/fonts.js";
import { number, plain, withError } from "../ui/format.js";
import { ink } from "../explorer/look.js";

/**
 * @import { LabelBar as Line } from "../explorer/types.js"
 * @import { Scale } from "./axes.js"
 */

const ROW = 22;

/**
 * @param {Line[]} lines
 * @param {{width: number, label: string}} options
 * @returns {SVGSVGElement}
 */
export function labelBars(lines, { width, label }) {
  const most = Math.max(
    ...lines.map((line) => Math.max(line.value, line.baseline?.value ?? 0)),
    1e-12,
  );
  const widest = Math.max(...lines.map((line) => textWidth(plain(line.label), 12)));
  const x = { low: 0, high: most, from: Math.min(width * 0.6, 14 + widest), to: width - 92 };
  const whole = lines.every((line) => Number.isInteger(line.value));
  const rows = lines.map((line, i) =>
    row(line, x, i * ROW + 4, width, whole ? String(line.value) : number(line.value)),
  );
  return s(
    "svg",
    canvasOf(width, lines.length * ROW + 8, { role: "img", "aria-label": label }),
    ...rows,
  );
}

/**
 * @param {Line} line
 * @param {Scale} x
 * @param {number} y
 * @param {number} width
 * @param {string} shown
 */
function row(line, x, y, width, shown) {
  const { ink: dark, faint, bar, mark } = ink();
  const middle = y + ROW / 2;
  const name = s(
    "text",
    { x: x.from - 8, y: middle, "text-anchor": "end", "dominant-baseline": "central", fill: dark },
    plain(line.label),
  );
  const box = s("rect", {
    x: x.from,
    y: middle - 6,
    width: Math.max(0.5, at(x, line.value) - x.from),
    height: 12,
    rx: 2,
    fill: bar,
  });
  const value = s(
    "text",
    {
      x: width - 44,
      y: middle,
      "text-anchor": "end",
      "dominant-baseline": "central",
      fill: dark,
      "font-size": 11.5,
    },
    shown,
  );
  const rank = s(
    "text",
    {
      x: width - 2,
      y: middle,
      "text-anchor": "end",
      "dominant-baseline": "central",
      fill: faint,
      "font-size": 11,
    },
    `#${line.rank}`,
  );
  const tick = line.baseline
    ? s("line", {
        x1: at(x, line.baseline.value),
        x2: at(x, line.baseline.value),
        y1: middle - 9,
        y2: middle + 9,
        stroke: mark,
        "stroke-width": 2,
      })
    : "";
  const said =
    `${plain(line.label)}: ${withError(line.value, line.error)}, rank ${line.rank} of ` +
    `${line.of}${line.baseline ? `; ${line.baseline.means} ${number(line.baseline.value)}` : ""}`;
  return s("g", {}, s("title", {}, said), name, box, tick, value, rank);
}
