/** An example of a portrait: words in a row, with arcs from the word that looks to the one it sees. */

import { arc, lineWidth, opacity, pathOf } from "../draw/line.js";
import { s } from "../ui/dom.js";
import { SANS, textWidth } from "../ui/fonts.js";
import { percent } from "../ui/format.js";
import { roleInk } from "./headmap.js";

/** @import { HeadExample } from "../explorer/types.js" */

const SIZE = 13.5;
const [SPACE, PIECE, MARK] = [7, 3, 2]; // before a word, a later piece, a mark
const MARKS = /^[.,;:!?'’)\]]/;
const BASE = 42; // where arcs stand on the words

/**
 * @param {HeadExample & {rtl?: boolean}} example
 * @param {string} group  of the head's name
 * @param {number} [room]  pixels that the example should fill
 * @returns {SVGSVGElement} whose data-middle is where its strongest arc is
 */
export function exampleArcs(example, group, room = 0) {
  const { tokens, begins, after_gap: gaps, arcs } = example;
  let x = 2;
  const words = tokens.map((token, place) => {
    const gap = place > 0 && gaps.includes(place);
    if (place) x += gap ? 22 : begins[place] ? (MARKS.test(token) ? MARK : SPACE) : PIECE;
    else if (gap) x += 16;
    const width = textWidth(token, SIZE, "400");
    const word = { token, x, width, middle: x + width / 2, gap };
    x += width;
    return word;
  });
  const end = x + 2;
  if (example.rtl)
    for (const word of words)
      [word.x, word.middle] = [end - word.x - word.width, end - word.middle];
  const inks = [roleInk("sink"), roleInk(group), "var(--role-even)"];
  const drawn = [...arcs]
    .sort((a, b) => a[2] - b[2])
    .map(([query, key, weight, ink]) => {
      const curve = pathOf(arc(words[query].middle, words[key].middle, BASE));
      const dot = words[key].middle;
      const strong = opacity(weight) * (ink === 1 ? 1 : 0.55);
      return s(
        "g",
        { opacity: strong.toFixed(2), stroke: inks[ink], fill: inks[ink] },
        s("path", { d: curve, fill: "none", "stroke-width": lineWidth(weight).toFixed(2) }),
        query === key ? null : s("circle", { cx: dot, cy: BASE, r: 2, stroke: "none" }),
      );
    });
  const texts = words.flatMap((word, place) => [
    s(
      "text",
      { x: word.x, y: BASE + 15, class: example.null.includes(place) ? "null" : null },
      word.token,
    ),
    word.gap ? s("text", { x: word.x - 16, y: BASE + 15, class: "null" }, "…") : null,
    !word.gap && place && !begins[place] && !MARKS.test(word.token)
      ? s("path", { class: "piece", d: `M${word.x - 1.5} ${BASE + 5}v12` })
      : null,
    example.same.includes(place)
      ? s("path", { d: `M${word.x} ${BASE + 19}h${word.width}`, stroke: roleInk(group) })
      : null,
  ]);
  const width = Math.ceil(Math.max(x + 4, room));
  const height = Math.ceil(BASE + 22);
  const strongest = [...arcs].sort((a, b) => b[2] - a[2])[0] ?? [0, 0];
  return s(
    "svg",
    {
      class: "arcs",
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      "data-middle": (words[strongest[0]].middle + words[strongest[1]].middle) / 2,
      style: `max-width: ${width}px`,
      "font-family": SANS,
      "font-size": SIZE,
      role: "img",
      "aria-label": `${textOf(example)} ${sayArcs(example)}`,
    },
    ...drawn,
    ...texts.filter((text) => text !== null),
  );
}

/** The words of an example as a text. @param {HeadExample} example */
function textOf({ tokens, begins, after_gap: gaps }) {
  return tokens
    .map((token, place) => {
      if (place && gaps.includes(place)) return ` … ${token}`;
      return place && begins[place] && !MARKS.test(token) ? ` ${token}` : token;
    })
    .join("");
}

/** The strongest arcs that the name is of. @param {HeadExample} example */
function sayArcs({ tokens, arcs }) {
  const named = arcs.filter(([, , , ink]) => ink === 1).slice(0, 3);
  return named
    .map(([query, key, weight]) => `${tokens[query]} to ${tokens[key]} ${percent(weight)}`)
    .join(", ");
}
