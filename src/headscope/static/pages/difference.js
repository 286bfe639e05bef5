/** What changes in a text without some heads, beside the same without others of their layers. */

import { heatmap } from "../charts/heatmap.js";
import { sortable } from "../charts/table.js";
import { askDifference } from "../explorer/api.js";
import { sentences } from "../explorer/messages.js";
import { diverging } from "../explorer/look.js";
import { h, s } from "../ui/dom.js";
import { percent } from "../ui/format.js";
import { halfOf, section } from "./parts.js";

/**
 * @import { TextRequest } from "../explorer/types.js"
 *
 * @typedef {object} NextToken
 * @property {string} token
 * @property {number} plain
 * @property {number} without
 * @property {number | null} control
 *
 * @typedef {object} Difference
 * @property {string} sentence
 * @property {string[]} without
 * @property {string[]} control  other heads of the same layers; none where there are too few
 * @property {number[]} layers
 * @property {number[][]} moved  share of its attention that each head gives to other tokens
 * @property {number[][] | null} control_moved
 * @property {string[]} tokens
 * @property {string} head  whose weights are here
 * @property {number[][]} plain  with all heads
 * @property {number[][]} change
 * @property {number[][] | null} control_change
 * @property {NextToken[]} next_tokens
 * @property {string | null} no_next_tokens
 */

const MOST = 8; // weights that are listed
const FAINT = 0.004; // changes below are not drawn

export class DifferenceHost {
  /** @param {number} room */
  constructor(room) {
    this.el = h("div", { id: "difference" });
    this.room = room;
    /** @type {AbortController | null} */
    this.waiting = null;
  }

  /** @param {TextRequest} request  of which the named heads are left out; none ends the picture */
  async show(request) {
    this.waiting?.abort();
    if (!request.without?.length) return this.el.replaceChildren();
    const mine = (this.waiting = new AbortController());
    this.el.setAttribute("aria-busy", "true");
    try {
      const difference = await askDifference(request, mine.signal);
      const [layer, head] = [...difference.head.matchAll(/\d+/g)].map(Number);
      const open = (/** @type {string} */ name) => {
        const [l, n] = [...name.matchAll(/\d+/g)].map(Number);
        void this.show({ ...request, layer: l, head: n });
      };
      this.el.replaceChildren(...parts(difference, this.room, [layer, head], open));
    } catch (error) {
      if (mine.signal.aborted) return;
      const text = sentences(error instanceof Error ? error.message : String(error));
      this.el.replaceChildren(h("div", { class: "note", role: "status" }, text));
    } finally {
      if (this.waiting === mine) this.el.removeAttribute("aria-busy");
    }
  }

  leave() {
    this.waiting?.abort();
  }
}

/**
 * @param {Difference} difference
 * @param {number} room
 * @param {number[]} chosen  layer and head whose weights are shown
 * @param {(name: string) => void} open
 */
function parts(difference, room, chosen, open) {
  const names = difference.without.join(", ");
  const others = `${difference.control.join(", ")}, for comparison`;
  const most = Math.max(...[difference.moved, difference.control_moved ?? []].flat(2), 0.01);
  const map = (/** @type {string} */ prefix, /** @type {number[][]} */ values) => {
    const heads = values[0].map((_, head) => head);
    const label = "Share of its attention that each head gives to other tokens; Enter shows it";
    const grid = { layers: difference.layers, heads, values };
    const look = { label, prefix, room: halfOf(room), onOpen: open };
    const selected = new Set([difference.head]);
    return heatmap(grid, { ...look, domain: [0, most], selected }).drawing;
  };
  const { moved, control_moved: control } = difference;
  return [
    h("p", { class: "lead" }, difference.sentence),
    h(
      "div",
      { class: "pair" },
      section(`Moved without ${names}`, {}, map("d-", moved)),
      control && section(`Moved without ${others}`, {}, map("c-", control)),
    ),
    h(
      "div",
      { class: "pair" },
      section(`${difference.head} without ${names}`, {}, matrix(difference, difference.change)),
      difference.control_change &&
        section(
          `${difference.head} without ${others}`,
          {},
          matrix(difference, difference.control_change),
        ),
    ),
    h("div", { class: "pair" }, weights(difference, chosen), nextTokens(difference)),
  ];
}

/**
 * How much higher or lower every weight is: queries down, keys across.
 * @param {Difference} difference
 * @param {number[][]} change
 */
function matrix({ tokens, head }, change) {
  const side = change[0].length;
  const squares = change.flatMap((row, y) =>
    row.map((value, x) => {
      if (Math.abs(value) < FAINT) return null;
      const said = `${tokens[y]} (${y}) at ${tokens[x]} (${x}): ${signed(value)}`;
      const place = { x, y, width: 1.02, height: 1.02 };
      return s("rect", { ...place, fill: diverging(value) }, s("title", {}, said));
    }),
  );
  const label = `Change of every weight of ${head}: queries down, keys across`;
  const about = { class: "change-matrix", viewBox: `0 0 ${side} ${change.length}`, role: "img" };
  const note = "Queries down, keys across; blue weights are higher without it, orange ones lower.";
  return h(
    "div",
    {},
    s("svg", { ...about, "aria-label": label }, ...squares),
    h("p", { class: "caption" }, note),
  );
}

/** @param {Difference} difference @param {number[]} chosen */
function weights({ tokens, head, plain, change, control_change: control }, chosen) {
  const rows = change.flatMap((row, query) =>
    row.map((value, key) => /** @type {const} */ ([query, key, value])),
  );
  const largest = rows.sort((a, b) => Math.abs(b[2]) - Math.abs(a[2])).slice(0, MOST);
  const columns = ["from", "at", "all heads", "without", ...(control ? ["comparison"] : [])];
  return sortable({
    title: `Weights of ${head} that change most`,
    columns: columns.map((name) => ({ name })),
    rows: largest.map(([query, key, value]) => {
      const weight = plain[query][key];
      const compared = control ? [round(weight + control[query][key])] : [];
      const ends = [`${tokens[query]} (${query})`, `${tokens[key]} (${key})`];
      return [...ends, round(weight), round(weight + value), ...compared];
    }),
  });
}

/** @param {Difference} difference */
function nextTokens({ next_tokens: tokens, no_next_tokens: reason, control }) {
  if (reason) return h("div", { class: "note" }, sentences(`Next token: ${reason}.`));
  const columns = ["token", "all heads", "without", ...(control.length ? ["comparison"] : [])];
  return sortable({
    title: "Probability of the next token",
    columns: columns.map((name) => ({ name })),
    rows: tokens.map((one) => [
      JSON.stringify(one.token),
      ...[one.plain, one.without, ...(one.control === null ? [] : [one.control])].map(round),
    ]),
  });
}

/** @param {number} value */
const round = (value) => Number(value.toFixed(3));

/** @param {number} value */
const signed = (value) => `${value < 0 ? "−" : "+"}${percent(Math.abs(value))}`;
