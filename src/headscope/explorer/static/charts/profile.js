/** One bar a layer, in line with the rows of the heatmap beside it. */

import { across, at, marker } from "./axes.js";
import { canvasOf } from "./figure.js";
import { s } from "../shell/dom.js";
import { finite, withError } from "../shell/format.js";
import { ink } from "../shell/look.js";

/**
 * @typedef {import("../types.js").Profile} Profile
 *
 * @param {Profile} profile
 * @param {number[]} layers
 * @param {{pitch: number, top: number, width: number, baseline: number | null, label: string}} options
 * @returns {SVGSVGElement}
 */
export function layerProfile(profile, layers, { pitch, top, width, baseline, label }) {
  const bottom = top + pitch * layers.length;
  const known = finite([...profile.values, baseline]);
  const x = { low: Math.min(0, ...known), high: (Math.max(0, ...known) || 1) * 1.08, from: 30, to: width - 14 };
  const bars = layers.map((layer, i) => bar(profile, i, layer, x, top + i * pitch, pitch));
  const line = baseline === null ? "" : marker(x, baseline, top - 4, bottom + 2, ink().mark);
  const attributes = canvasOf(width, bottom + 54, { role: "img", "aria-label": label });
  return s("svg", attributes, across(x, top, bottom, "", 4), ...bars, line);
}

/** @param {Profile} profile @param {number} i @param {number} layer @param {import("./axes.js").Scale} x @param {number} y @param {number} pitch */
function bar(profile, i, layer, x, y, pitch) {
  const value = profile.values[i];
  const error = profile.errors?.[i] ?? null;
  const thick = Math.min(18, pitch * 0.6);
  const middle = y + pitch / 2;
  const name = s("text", { x: x.from - 8, y: middle, "text-anchor": "end", "dominant-baseline": "central", fill: ink().faint }, layer);
  if (value === null) return s("g", {}, name);
  const [zero, end] = [at(x, 0), at(x, value)];
  const box = s("rect", { x: Math.min(zero, end), y: middle - thick / 2, width: Math.abs(end - zero), height: thick, rx: 2, fill: ink().bar });
  const whisker = error === null ? "" : s("line", { x1: at(x, value - error), x2: at(x, value + error), y1: middle, y2: middle, stroke: ink().ink, "stroke-width": 1.5 });
  return s("g", {}, s("title", {}, `Layer ${layer}: ${withError(value, error)}`), name, box, whisker);
}
