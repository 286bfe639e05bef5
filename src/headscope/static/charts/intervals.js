/** Differences as points with their intervals, one row a head, largest first. */

import { BEFORE, line, write } from "../draw/svg.js";
import { across, at, extent } from "./axes.js";
import { canvasOf } from "./figure.js";
import { s } from "../ui/dom.js";
import { finite, signed } from "../ui/format.js";
import { ink } from "../explorer/look.js";

const ROW = 20;

/**
 * @typedef {{name: string, difference: number, low: number | null, high: number | null}} Interval
 *
 * @param {Interval[]} heads
 * @param {{width: number, label: string, axis: string}} options
 * @returns {SVGSVGElement}
 */
export function intervals(heads, { width, label, axis }) {
  const { ink: dark, faint, accent, paper } = ink();
  const values = finite(heads.flatMap(({ difference, low, high }) => [difference, low, high]));
  const [least, most] = extent([0, ...values]);
  const x = { low: least, high: most, from: 64, to: width - 62 };
  const bottom = heads.length * ROW + 8;
  const rows = heads.map(({ name, difference, low, high }, i) => {
    const y = 8 + (i + 0.5) * ROW;
    const isKnown = low !== null && high !== null;
    const isClear = isKnown && (low > 0 || high < 0);
    const stroke = isClear ? accent : faint;
    const range = isKnown ? ` (${signed(low)} to ${signed(high)})` : "";
    const fill = isClear ? stroke : paper;
    return s(
      "g",
      {},
      s("title", {}, `${name}: ${signed(difference)}${range}`),
      write(54, y, name, { ...BEFORE, fill: dark }),
      isKnown && line([at(x, low), y], [at(x, high), y], stroke, { "stroke-width": 2 }),
      s("circle", { cx: at(x, difference), cy: y, r: 4, fill, stroke, "stroke-width": 1.5 }),
      write(width - 2, y, signed(difference), { ...BEFORE, fill: dark, "font-size": 11.5 }),
    );
  });
  return s(
    "svg",
    canvasOf(width, bottom + 42, { role: "img", "aria-label": label }),
    across(x, 4, bottom, axis),
    line([at(x, 0), 4], [at(x, 0), bottom], faint),
    ...rows,
  );
}
