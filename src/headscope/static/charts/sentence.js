/** An exemplar: the sentence on one line, an arc from the attending to the attended token. */

import { arc, lineWidth, pathOf } from "../draw/line.js";
import { canvasOf } from "./figure.js";
import { s } from "../ui/dom.js";
import { textWidth } from "../ui/fonts.js";
import { number } from "../ui/format.js";
import { ink } from "../explorer/look.js";

/** @import { Exemplar } from "../explorer/types.js" */

const SIZE = 14;
const SPACE = 4.5;
const LONGEST = 24;
const EDGE = 6; // room at both ends
const BASE = 40; // where arcs stand on the words

/** @param {string} text @returns {string} */
function cut(text) {
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}

/**
 * Pieces side by side as the text reads, the pair marked, an arc between the two.
 * @param {Exemplar} exemplar
 * @returns {{drawing: SVGSVGElement, middle: number}}  `middle`: where the arc is
 */
export function sentenceArc({ pieces, spaces, rtl, query, key, weight }) {
  const words = pieces.map(cut);
  const { ink: dark, faint, mark } = ink();
  const looks = words.map(
    (_, i) =>
      /** @type {Record<string, string | number>} */ (
        i === query
          ? { "font-weight": 700, fill: dark }
          : i === key
            ? { "font-style": "italic", "font-weight": 600, fill: mark }
            : { fill: faint }
      ),
  );
  const { places, width } = line(words, spaces, looks, rtl);
  const [from, to] = [places[query], places[key]];
  const texts = words.map((word, i) =>
    s(
      "text",
      { x: places[i], y: BASE + 14, "text-anchor": "middle", "font-size": SIZE, ...looks[i] },
      word,
    ),
  );
  const said = `${words[query]} attends to ${words[key]} with weight ${number(weight)}`;
  const drawing = s(
    "svg",
    canvasOf(width, BASE + 24, { class: "sentence", role: "img", "aria-label": said }),
    ...arrow(from, to, weight),
    ...texts,
  );
  return { drawing, middle: (from + to) / 2 };
}

/**
 * The middle of every word, and the width of all.
 * @param {string[]} words
 * @param {boolean[]} spaces
 * @param {Record<string, string | number>[]} looks
 * @param {boolean} rtl
 */
function line(words, spaces, looks, rtl) {
  let x = EDGE;
  const middles = words.map((word, i) => {
    const wide = textWidth(
      word,
      SIZE,
      `${looks[i]["font-style"] ?? ""} ${looks[i]["font-weight"] ?? 400}`,
    );
    const start = x + (spaces[i] ? SPACE : 0);
    x = start + wide;
    return start + wide / 2;
  });
  const width = x + EDGE;
  return { places: rtl ? middles.map((middle) => width - middle) : middles, width };
}

/** @param {number} from @param {number} to @param {number} weight */
function arrow(from, to, weight) {
  const { accent } = ink();
  const points = arc(from, to, BASE);
  const tip = points[3][0];
  return [
    s("path", {
      d: pathOf(points),
      fill: "none",
      stroke: accent,
      "stroke-width": lineWidth(weight),
    }),
    s("path", {
      d: `M${tip - 4} ${BASE - 6}L${tip} ${BASE}L${tip + 4} ${BASE - 6}`,
      fill: "none",
      stroke: accent,
      "stroke-width": 1.5,
    }),
  ];
}
