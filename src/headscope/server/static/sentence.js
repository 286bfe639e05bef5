/** An exemplar: the sentence on one line, an arc from the attending to the attended token. */

import { canvasOf } from "./figure.js";
import { s } from "./dom.js";
import { number } from "./format.js";
import { ink } from "./look.js";

/** @typedef {{labels: string[], query: number, key: number, weight: number}} Exemplar */

const SIZE = 14;
const GAP = 7;
const LONGEST = 24;

/** @type {CanvasRenderingContext2D | null} */
let ruler = null;

/** @param {string} text @returns {number} */
function widthOf(text) {
  ruler ??= document.createElement("canvas").getContext("2d");
  if (!ruler) return text.length * 7.5;
  ruler.font = `600 ${SIZE}px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif`;
  return ruler.measureText(text).width;
}

/** @param {string} text @returns {string} */
function cut(text) {
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}

/** @param {Exemplar} exemplar @returns {{drawing: SVGSVGElement, middle: number}}  `middle`: where the arc is */
export function sentenceArc({ labels, query, key, weight }) {
  const words = labels.map(cut);
  let x = 6;
  const places = words.map((word) => {
    const wide = widthOf(word);
    x += wide + GAP;
    return x - GAP - wide / 2;
  });
  const [from, to] = [places[query], places[key]];
  const rise = Math.min(34, 14 + Math.abs(from - to) * 0.12);
  const base = 40;
  const { ink: dark, faint, accent, mark } = ink();
  const middle = (from + to) / 2;
  const path = from === to ? `M${from - 7} ${base}C${from - 12} ${base - 26} ${from + 12} ${base - 26} ${from + 7} ${base}` : `M${from} ${base}C${from} ${base - rise * 1.33} ${to} ${base - rise * 1.33} ${to} ${base - 2}`;
  const tip = from === to ? from + 7 : to;
  const arc = [
    s("path", { d: path, fill: "none", stroke: accent, "stroke-width": 1 + 2 * weight }),
    s("path", { d: `M${tip - 4} ${base - 6}L${tip} ${base}L${tip + 4} ${base - 6}`, fill: "none", stroke: accent, "stroke-width": 1.5 }),
  ];
  const texts = words.map((word, i) => {
    const role = i === query ? { "font-weight": 700, fill: dark } : i === key ? { "font-style": "italic", "font-weight": 600, fill: mark } : { fill: faint };
    return s("text", { x: places[i], y: base + 14, "text-anchor": "middle", "font-size": SIZE, ...role }, word);
  });
  const said = `${words[query]} attends to ${words[key]} with weight ${number(weight)}`;
  return { drawing: s("svg", canvasOf(x + 6, base + 24, { class: "sentence", role: "img", "aria-label": said }), ...arc, ...texts), middle };
}

/** The same pair as two columns, for when nothing but the pair is known. @param {Exemplar} exemplar @returns {SVGSVGElement} */
export function pairDrawing({ labels, query, key, weight }) {
  const { ink: dark, faint, accent, mark } = ink();
  const words = labels.map(cut);
  const side = Math.max(60, ...words.map(widthOf)) + 16;
  const [pitch, span] = [23, 260];
  const y = (/** @type {number} */ i) => 30 + (i + 0.5) * pitch;
  const column = (/** @type {number} */ x, /** @type {"start" | "end"} */ anchor, /** @type {number} */ chosen, /** @type {Record<string, string | number>} */ look) =>
    words.map((word, i) => s("text", { x, y: y(i), "text-anchor": anchor, "dominant-baseline": "central", "font-size": 13, ...(i === chosen ? look : { fill: faint }) }, word));
  const [left, right] = [side, side + span];
  const line = `M${left + 6} ${y(query)}C${(left + right) / 2} ${y(query)} ${(left + right) / 2} ${y(key)} ${right - 6} ${y(key)}`;
  const heads = [["attending", left, "end"], ["attended", right, "start"]].map(([text, x, anchor]) => s("text", { x, y: 14, "text-anchor": anchor, fill: faint, "font-size": 11 }, text));
  const label = s("text", { x: (left + right) / 2, y: (y(query) + y(key)) / 2 - 8, "text-anchor": "middle", fill: dark, "font-size": 12 }, number(weight));
  const said = `${words[query]} attends to ${words[key]} with weight ${number(weight)}`;
  return s(
    "svg", canvasOf(right + side, y(words.length) + 4, { role: "img", "aria-label": said }), ...heads,
    ...column(left, "end", query, { fill: dark, "font-weight": 700 }), ...column(right, "start", key, { fill: mark, "font-weight": 600, "font-style": "italic" }),
    s("path", { d: line, fill: "none", stroke: accent, "stroke-width": 1 + 2 * weight }), label,
  );
}
