/**
 * An input as running text whose tokens show, when they are looked at, where the head goes from
 * there.
 */

import { h } from "../ui/dom.js";
import { number } from "../ui/format.js";
import { placeInList } from "../ui/roving.js";

/** @import { InputText } from "../explorer/types.js" */

/** @typedef {{token: number, weight: number}} Edge */

const MOST = 4; // edges that are told in words
let count = 0;

/** @param {string} token @returns {string} with what cannot be seen made visible */
export function visible(token) {
  return (
    token
      .replaceAll("\n", "⏎")
      .replaceAll("\t", "⇥")
      .replace(/^ +| +$/g, (spaces) => "␣".repeat(spaces.length)) || "∅"
  );
}

/**
 * Where every token looks, and who looks at it. Rows are lists of key, weight in thousandths.
 * @param {number} length
 * @param {number[][]} rows
 * @returns {{to: Edge[][], from: Edge[][]}}
 */
function edgesOf(length, rows) {
  /** @type {Edge[][][]} */
  const [to, from] = [0, 1].map(() => Array.from({ length }, () => []));
  rows.forEach((row, query) => {
    for (let i = 0; i + 1 < row.length; i += 2) {
      const [key, weight] = [row[i], row[i + 1] / 1000];
      to[query]?.push({ token: key, weight });
      from[key]?.push({ token: query, weight });
    }
  });
  for (const edges of from) edges.sort((a, b) => b.weight - a.weight);
  return { to, from };
}

/**
 * Tokens side by side; one of them is looked at: by the pointer, by the arrow keys, or pinned by a
 * click.
 * @param {InputText} input
 * @param {number[][]} rows
 * @param {{label: string, start: number}} options  start: the token that is looked at first
 * @returns {{node: HTMLElement, ready: () => void}}
 */
export function tokenText(input, rows, { label, start }) {
  const id = `tokens-${++count}`;
  const { to, from } = edgesOf(input.tokens.length, rows);
  const spans = input.tokens.map((token, i) =>
    h(
      "span",
      {
        class: "token",
        role: "option",
        id: `${id}-${i}`,
        "data-token": i,
        "aria-selected": "false",
      },
      visibleIn(input.pieces ? token.replace(/^##(?=.)/, "") : token),
    ),
  );
  const parts = spans.flatMap((span, i) => [
    ...(input.pieces && i && /^(?!##)[^.,;:!?)]/.test(input.tokens[i]) ? [" "] : []),
    span,
    ...(/[\n⏎]$/.test(input.tokens[i]) ? [h("br")] : []),
  ]);
  const text = h(
    "div",
    {
      class: "token-text",
      role: "listbox",
      tabindex: 0,
      "aria-label": label,
      dir: input.rtl ? "rtl" : "ltr",
    },
    ...parts,
  );
  const told = h("p", { class: "readout", role: "status" });
  let pinned = Math.max(0, Math.min(start, spans.length - 1));
  const look = (/** @type {number} */ i) => {
    for (const span of spans)
      (span.removeAttribute("data-to"),
        span.removeAttribute("data-from"),
        span.removeAttribute("style"),
        span.setAttribute("aria-selected", "false"));
    mark(spans, to[i], "to");
    mark(spans, from[i], "from");
    spans[i]?.setAttribute("aria-selected", "true");
    text.setAttribute("aria-activedescendant", `${id}-${i}`);
    told.replaceChildren(...inWords(input.tokens, i, to[i], from[i]));
  };
  const at = (/** @type {Event} */ event) =>
    event.target instanceof HTMLElement && event.target.dataset.token !== undefined
      ? Number(event.target.dataset.token)
      : null;
  text.addEventListener("pointerover", (event) => look(at(event) ?? pinned));
  text.addEventListener("pointerleave", () => look(pinned));
  text.addEventListener("click", (event) => look((pinned = at(event) ?? pinned)));
  text.addEventListener("keydown", (event) => {
    const place = placeInList(event, pinned, spans.length, input.rtl);
    if (place === null) return;
    event.preventDefault();
    if (spans[place]) look((pinned = place));
    spans[pinned].scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  const ready = () => {
    text.scrollTop = (spans[pinned]?.offsetTop ?? 0) - text.clientHeight / 2;
  };
  if (spans.length) look(pinned);
  return { node: h("div", { class: "tokens" }, text, told), ready };
}

/**
 * @param {string} token
 * @returns {string} as it reads in a text; a line's end is marked, and ends the line
 */
function visibleIn(token) {
  return token.replaceAll("\n", "⏎").replaceAll("\t", "⇥") || "∅";
}

/** @param {HTMLElement[]} spans @param {Edge[]} edges @param {"to" | "from"} way */
function mark(spans, edges, way) {
  for (const { token, weight } of edges) {
    spans[token]?.setAttribute(`data-${way}`, "");
    spans[token]?.style.setProperty(`--${way}`, `${Math.round(12 + 88 * weight)}%`);
  }
}

/**
 * @param {string[]} tokens
 * @param {number} i
 * @param {Edge[]} to
 * @param {Edge[]} from
 * @returns {(Node | string)[]}
 */
function inWords(tokens, i, to, from) {
  const list = (/** @type {Edge[]} */ edges) =>
    edges
      .slice(0, MOST)
      .map((one) => `${visible(tokens[one.token] ?? "")} ${number(one.weight)}`)
      .join(", ") + (edges.length > MOST ? ", …" : "");
  const parts = [
    h("strong", {}, visible(tokens[i])),
    h("span", { class: "faint" }, `  token ${i}  `),
  ];
  if (to.length) parts.push(h("span", { class: "looks-to" }, "looks at "), h("span", {}, list(to)));
  if (from.length)
    parts.push(
      h("span", { class: "looks-from" }, `${to.length ? "; " : ""}is looked at by `),
      h("span", {}, list(from)),
    );
  if (!to.length && !from.length)
    parts.push(h("span", { class: "faint" }, "no weight large enough is kept"));
  return parts;
}
