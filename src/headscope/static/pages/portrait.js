/** What shows a head's portrait: its sentence, examples, mean attention, and what it does not say. */

import { exampleArcs } from "../charts/arcs.js";
import { barPlaces, roleInk } from "../charts/headmap.js";
import { ask } from "../explorer/api.js";
import { withoutName } from "../explorer/heads.js";
import { h, s } from "../ui/dom.js";
import { percent } from "../ui/format.js";

/**
 * @import { Child } from "../ui/dom.js"
 * @import { ExplainedShare, HeadCell, HeadPortrait, Surprise } from "../explorer/types.js"
 */

const SIDE = 16; // tokens of the mean matrix
const [NULLS, NAMED, OTHER] = [0, 1, 2];
const SHOWN = 0.015; // explained share from which a part is named below the bar
const TALL = 72; // pixels of the highest bar
const MARKS = /^[.,;:!?]/;
const GROUP_NAMES = { sink: "resting place", "word class": "word class", token: "kind of token" };

/**
 * The sentence of a head without its name, its numbers set apart, and what it says of explained
 * shares.
 * @param {HeadCell} cell
 */
export function sentenceOf(cell) {
  const said = withoutName(cell.name, cell.sentence);
  const tail = /[.] (?=[^.]* (?:explains?|has no name yet)|That explains|Nothing measured)/.exec(
    said,
  );
  const first = tail ? said.slice(0, tail.index + 1) : said;
  const text = (first[0] ?? "").toUpperCase() + first.slice(1);
  const parts = text.split(/(\([^)]*\d[^)]*\))/);
  return [
    h("p", { class: "say" }, ...parts.map((part, i) => (i % 2 ? h("span", {}, part) : part))),
    tail ? h("p", { class: "tail" }, said.slice(tail.index + 2)) : null,
  ];
}

/** @param {HeadCell} cell @returns {HTMLElement} the short name of a head in its colour */
export function roleBadge(cell) {
  return h(
    "span",
    { class: "badge role", "data-group": cell.group, style: `--c: ${roleInk(cell.group)}` },
    cell.role,
  );
}

/**
 * Everything above the fold of a head's card.
 * @param {HeadPortrait} portrait
 * @param {number} room
 * @returns {Node[]}
 */
export function portraitParts(portrait, room) {
  const { cell, examples, surprises } = portrait;
  const examplesPart = examples.length
    ? part(
        "Examples",
        ...examples.map((example) => exampleArcs(example, cell.group, room)),
        note(
          "From the word that looks to the word that it looks at (dot). Colour: what the name says.",
        ),
      )
    : null;
  const parts = [
    ...sentenceOf(cell),
    cell.cost ? h("p", { class: "cost" }, cell.cost) : null,
    examplesPart,
    part("Mean attention", h("div", { class: "pattern" }, matrix(portrait), profile(portrait))),
    explained(portrait),
    surprises.length && cell.explained !== null
      ? part(
          "What surprises the portrait",
          h("ul", { class: "surprises" }, ...surprises.map(surprise)),
          note("The underlined word looks at the shaded one, far more than the portrait expects."),
        )
      : null,
  ];
  return parts.flatMap((node) => node ?? []);
}

/** @param {string} title @param {Child[]} children */
function part(title, ...children) {
  return h("section", { class: "part" }, h("h3", {}, title), ...children);
}

/** @param {string} text */
function note(text) {
  return h("p", { class: "caption" }, text);
}

/**
 * Mean weights between tokens, in the inks of the bars: queries down, keys across.
 * @param {HeadPortrait} portrait
 */
function matrix({ cell, matrix: levels, causal, nulls }) {
  const inks = [roleInk("sink"), roleInk(cell.group), "var(--role-even)"];
  const size = SIDE * SIDE;
  const squares = Array.from({ length: size }, (_, place) => {
    const shares = [NULLS, NAMED, OTHER].map((ink) => (levels[ink * size + place] / 255) ** 2);
    const total = shares[NULLS] + shares[NAMED] + shares[OTHER];
    if (total < 0.002) return null;
    const mixed = shares[NAMED] / total;
    const other = inks[shares[NULLS] > shares[OTHER] ? NULLS : OTHER];
    return s("rect", {
      x: place % SIDE,
      y: Math.floor(place / SIDE),
      width: 1.02,
      height: 1.02,
      style: `fill: color-mix(in oklab, ${inks[NAMED]} ${Math.round(100 * mixed)}%, ${other})`,
      opacity: Math.min(1, 1.15 * Math.sqrt(total)).toFixed(2),
    });
  });
  const ends = causal ? `the first ${SIDE} tokens` : `the first and the last ${SIDE / 2} tokens`;
  const label = `Mean attention between ${ends}${nulls[0] ? `, from ${nulls[0]}` : ""}`;
  return s(
    "svg",
    { class: "matrix", viewBox: `0 0 ${SIDE} ${SIDE}`, role: "img", "aria-label": label },
    s("title", {}, `${label}: queries down, keys across`),
    ...squares,
  );
}

/**
 * Mean weight by place as bars.
 * @param {HeadPortrait} portrait
 */
function profile({ cell, causal, nulls }) {
  const places = barPlaces(causal);
  const itself = 9;
  const weights = places.map((place) => cell.bars.map((bars) => bars[place] / 1000));
  const totals = weights.map((shares) => shares[NULLS] + shares[NAMED] + shares[OTHER]);
  const most = Math.max(0.12, ...totals);
  const [width, base, gap] = [250, 92, causal ? 14 : 8];
  const wide = (width - gap * (causal ? 1 : 2)) / places.length;
  const left = (/** @type {number} */ place) =>
    place * wide + (place ? gap : 0) + (place > 17 ? gap : 0);
  const inks = ["nulls", "named", "other"];
  const bars = places.flatMap((place, at) => {
    let y = base;
    return [NAMED, NULLS, OTHER].map((ink) => {
      const height = (weights[at][ink] / most) * TALL;
      y -= height;
      return height > 0.2
        ? s("rect", { class: inks[ink], x: left(place), y, width: wide - 1, height })
        : null;
    });
  });
  /** @type {[number, string][]} */
  const labels = causal
    ? [[0, "first"], [1, "−8"], [5, "−4"], [itself, "itself"]]
    : [[0, nulls[0] ?? "first"], [5, "−4"], [itself, "0"], [13, "+4"], [18, nulls[1] ?? "last"]]; // prettier-ignore
  const texts = labels.map(([place, text]) => {
    const isEnd = place === places.length - 1;
    const x = place === 0 ? 0 : isEnd ? width : left(place) + wide / 2;
    const anchor = place === 0 ? "start" : isEnd ? "end" : "middle";
    return s("text", { x, y: base + 14, "text-anchor": anchor }, text);
  });
  const top = totals.indexOf(Math.max(...totals));
  const x = Math.min(width - 14, Math.max(14, left(top) + wide / 2));
  const said = `${percent(totals[top])} of its weight at ${top === 0 ? (nulls[0] ?? "the first token") : top === 18 ? (nulls[1] ?? "the last token") : top === itself ? "the token itself" : `offset ${top - itself}`}`;
  return s(
    "svg",
    {
      class: "profile",
      viewBox: `0 0 ${width} ${base + 18}`,
      style: `--c: ${roleInk(cell.group)}`,
      "data-group": cell.group,
      role: "img",
      "aria-label": `Mean weight by place; the most is ${said}`,
    },
    ...bars.filter((bar) => bar !== null),
    s("path", { class: "line", d: `M0 ${base + 0.5}H${width}` }),
    s(
      "text",
      { class: "most", x, y: base - (totals[top] / most) * TALL - 5, "text-anchor": "middle" },
      percent(totals[top]),
    ),
    ...texts,
  );
}

/** @param {HeadPortrait} portrait */
function explained({ cell, parts, nulls }) {
  if (cell.explained === null || !parts.length) return null;
  const rest = parts.filter((one) => one.share_of_rest !== null);
  const hasSink = parts.some((one) => one.group === "sink" && one.share >= 0.2);
  const names = { ...GROUP_NAMES, sink: nulls.join(", ") || "first token" };
  return part(
    "How much of its attention is explained, on unseen text",
    stack(parts, (one) => one.share, names),
    hasSink && note(`Without what ${nullWords(nulls)} get${nulls.length > 1 ? "" : "s"}`),
    hasSink && stack(rest, (one) => one.share_of_rest ?? 0, names),
  );
}

/** @param {string[]} nulls */
function nullWords(nulls) {
  return nulls.map((name) => (name === "first token" ? "the first token" : name)).join(" and ");
}

/**
 * Shares side by side; hatched is what nothing explains.
 * @param {ExplainedShare[]} parts
 * @param {(one: ExplainedShare) => number} share
 * @param {Record<string, string>} names
 */
function stack(parts, share, names) {
  const shown = parts.filter((one) => share(one) > 0);
  const left = Math.max(0, 1 - shown.reduce((sum, one) => sum + share(one), 0));
  const name = (/** @type {ExplainedShare} */ one) => names[one.group] ?? one.group;
  const bars = shown.map((one) =>
    h("i", {
      style: `width: ${(100 * share(one)).toFixed(1)}%; background: ${roleInk(one.group)}`,
      title: `${name(one)} ${percent(share(one))}`,
    }),
  );
  const entries = shown
    .filter((one) => share(one) >= SHOWN)
    .map((one) =>
      h("span", {}, swatch(roleInk(one.group)), `${name(one)} ${Math.round(100 * share(one))}`),
    );
  const none = h("span", { class: "left" }, swatch(null), `no name yet ${Math.round(100 * left)}`);
  return h(
    "div",
    { class: "explained" },
    h("div", { class: "stack", "aria-hidden": "true" }, ...bars),
    h("p", { class: "stack-key" }, ...entries, none),
  );
}

/** @param {string | null} ink */
function swatch(ink) {
  return h("i", { "aria-hidden": "true", style: ink ? `background: ${ink}` : null });
}

/** @param {Surprise} one */
function surprise({ tokens, begins, goes_before, goes_on, query, key, weight, expected }) {
  const words = tokens.flatMap((token, place) => {
    const space = place && begins[place] && !MARKS.test(token) ? " " : "";
    const kind = place === key ? "key" : place === query ? "query" : null;
    return [space, kind ? h("span", { class: kind }, token) : token];
  });
  return h(
    "li",
    {},
    h("span", { class: "context" }, goes_before ? "… " : "", ...words, goes_on ? " …" : ""),
    h(
      "span",
      { class: "value" },
      h("strong", {}, percent(weight)),
      `, expected ${percent(expected)}`,
    ),
  );
}

/**
 * What shows a head in a few words and one example, for a hint beside it.
 * @param {string} run
 * @param {HeadCell} cell
 * @param {number} room
 * @returns {Promise<Node[]>}
 */
export async function hintOf(run, cell, room) {
  const [said] = sentenceOf(cell);
  const { examples } = await ask("runs/{run}/portraits/{head}", run, cell.name);
  const first = examples.length ? exampleArcs(examples[0], cell.group, room) : null;
  return [h("p", {}, h("strong", {}, cell.name), " ", said?.textContent), first].flatMap(
    (node) => node ?? [],
  );
}
