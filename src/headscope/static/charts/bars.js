/**
 * Labels with a bar each, largest first, the baseline as a tick: what a head attends to and from.
 */

import { BEFORE, box, line, write } from "../draw/svg.js";
import { at } from "./axes.js";
import { canvasOf } from "./figure.js";
import { s } from "../ui/dom.js";
import { textWidth } from "../ui/fonts.js";
import { number, plain, withError } from "../ui/format.js";
import { ink } from "../explorer/look.js";

/** @import { LabelBar } from "../explorer/types.js" */

const ROW = 22;

/**
 * @param {LabelBar[]} bars
 * @param {{width: number, label: string}} options
 * @returns {SVGSVGElement}
 */
export function labelBars(bars, { width, label }) {
  const { ink: dark, faint, bar: fill, mark } = ink();
  const values = bars.flatMap((bar) => [bar.value, bar.baseline?.value ?? 0]);
  const widest = Math.max(...bars.map((bar) => textWidth(plain(bar.label), 12)));
  const x = {
    low: 0,
    high: Math.max(...values, 1e-12),
    from: Math.min(width * 0.6, 14 + widest),
    to: width - 92,
  };
  const isWhole = bars.every((bar) => Number.isInteger(bar.value));
  const rows = bars.map(({ label, value, error, rank, of, baseline }, i) => {
    const middle = (i + 0.5) * ROW + 4;
    const compared = baseline ? `; ${baseline.means} ${number(baseline.value)}` : "";
    const said = `${plain(label)}: ${withError(value, error)}, rank ${rank} of ${of}${compared}`;
    const size = Math.max(0.5, at(x, value) - x.from);
    const base = baseline && at(x, baseline.value);
    return s(
      "g",
      {},
      s("title", {}, said),
      write(x.from - 8, middle, plain(label), { ...BEFORE, fill: dark }),
      box([x.from, middle - 6], [size, 12], fill, { rx: 2 }),
      base && line([base, middle - 9], [base, middle + 9], mark, { "stroke-width": 2 }),
      write(width - 44, middle, isWhole ? value : number(value), {
        ...BEFORE,
        fill: dark,
        "font-size": 11.5,
      }),
      write(width - 2, middle, `#${rank}`, { ...BEFORE, fill: faint, "font-size": 11 }),
    );
  });
  const attributes = canvasOf(width, bars.length * ROW + 8, { role: "img", "aria-label": label });
  return s("svg", attributes, ...rows);
}
