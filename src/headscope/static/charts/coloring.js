/** What the colour of a head's point says: its layer, or the size of a measure. */

import { mark } from "../draw/svg.js";
import { h, s } from "../ui/dom.js";
import { number } from "../ui/format.js";
import { ink, sequential } from "../explorer/look.js";
import { canvasOf } from "./figure.js";
import { byName, colorOf, domainOf } from "./heatmap.js";

/** @import { Picture } from "../explorer/types.js" */

/** @typedef {{color: (head: {name: string, layer: number}) => string, legend: Node}} Coloring */

/** @param {number[]} layers @returns {Coloring} */
export function byLayer(layers) {
  const color = (/** @type {number} */ layer) =>
    sequential(0.25 + (0.75 * layers.indexOf(layer)) / Math.max(1, layers.length - 1));
  const items = layers.map((layer) => legendItem(color(layer), 0, `Layer ${layer}`));
  return { color: (head) => color(head.layer), legend: h("p", { class: "legend" }, ...items) };
}

/** @param {Picture} picture @returns {Coloring} */
export function byMeasure(picture) {
  const values = byName(picture);
  const domain = domainOf(picture.values);
  const color = (/** @type {{name: string}} */ head) => {
    const value = values.get(head.name) ?? null;
    return value === null ? ink().none : colorOf(value, domain);
  };
  const items = [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const value = domain[0] + share * (domain[1] - domain[0]);
    return legendItem(colorOf(value, domain), 0, number(value));
  });
  return { color, legend: h("p", { class: "legend" }, h("strong", {}, picture.title), ...items) };
}

/** @param {string} color @param {number} kind @param {string} text @param {boolean} [hollow] */
export function legendItem(color, kind, text, hollow = false) {
  const look = hollow
    ? { fill: ink().paper, stroke: color, "stroke-width": 1.5 }
    : { fill: color, stroke: ink().faint, "stroke-width": 0.75 };
  const sample = s(
    "svg",
    { ...canvasOf(14, 14), "aria-hidden": "true" },
    mark(kind, [7, 7], 5, look),
  );
  return h("span", { class: "legend-item" }, sample, text);
}
