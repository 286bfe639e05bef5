/** One bar a layer, in line with the rows of the heatmap beside it. */

import { BEFORE, box, line, write } from "../draw/svg.js";
import { across, at, marker } from "./axes.js";
import { canvasOf } from "./figure.js";
import { s } from "../ui/dom.js";
import { finite, withError } from "../ui/format.js";
import { ink } from "../explorer/look.js";

/** @import { Profile } from "../explorer/types.js" */

/**
 * @param {Profile} profile
 * @param {number[]} layers
 * @param {{pitch: number, top: number, width: number, baseline: number | null, label: string}}
 *   options
 * @returns {SVGSVGElement}
 */
export function layerProfile(profile, layers, { pitch, top, width, baseline, label }) {
  const { ink: dark, faint, bar, mark } = ink();
  const bottom = top + pitch * layers.length;
  const values = finite([...profile.values, baseline, 0]);
  const x = {
    low: Math.min(...values),
    high: (Math.max(...values) || 1) * 1.08,
    from: 30,
    to: width - 14,
  };
  const thick = Math.min(18, pitch * 0.6);
  const rows = layers.map((layer, i) => {
    const value = profile.values[i];
    const error = profile.errors?.[i] ?? null;
    const y = top + (i + 0.5) * pitch;
    const name = write(x.from - 8, y, layer, { ...BEFORE, fill: faint });
    if (value === null) return s("g", {}, name);
    const [zero, end] = [at(x, 0), at(x, value)];
    const size = /** @type {[number, number]} */ ([Math.abs(end - zero), thick]);
    const [low, high] = [at(x, value - (error ?? 0)), at(x, value + (error ?? 0))];
    return s(
      "g",
      {},
      s("title", {}, `Layer ${layer}: ${withError(value, error)}`),
      name,
      box([Math.min(zero, end), y - thick / 2], size, bar, { rx: 2 }),
      error !== null && line([low, y], [high, y], dark, { "stroke-width": 1.5 }),
    );
  });
  const attributes = canvasOf(width, bottom + 54, { role: "img", "aria-label": label });
  const base = baseline !== null && marker(x, baseline, top - 4, bottom + 2, mark);
  return s("svg", attributes, across(x, top, bottom, "", 4), ...rows, base);
}
