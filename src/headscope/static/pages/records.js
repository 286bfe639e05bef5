/** What a run keeps of a head besides numbers: tokens, examples, maps, and what the head writes. */

import { countedBins } from "../charts/histogram.js";
import { figure } from "../charts/figure.js";
import { numberIn, sortable } from "../charts/table.js";
import { visible } from "../charts/tokens.js";
import { menu } from "../explorer/controls.js";
import { h } from "../ui/dom.js";
import { number } from "../ui/format.js";
import { sentences } from "../explorer/messages.js";
import { change } from "../explorer/place.js";
import { bandSection } from "./bands.js";
import { halfOf, section } from "./parts.js";
import { mapSection } from "./tokenmap.js";

/**
 * @import { Value } from "../charts/table.js"
 * @import { HeadRecords, Histogram, WrittenToken } from "../explorer/types.js"
 */

const ORDERS = { lift: "Share beside their frequency", mass: "Share of attention" };

/**
 * @param {string} run
 * @param {HeadRecords} head
 * @param {Record<string, string>} params
 * @param {number} room
 * @returns {HTMLElement[]}
 */
export function recordSections(run, head, params, room) {
  const parts = [
    tops(head, params),
    head.bands.length ? bandSection(run, head, params.band) : null,
    mapSection(run, head, params, room),
    writes(head),
  ];
  return parts.flatMap((part) => part ?? []);
}

/** @param {Histogram[]} found @param {number} room @returns {HTMLElement | null} */
export function histogramPair(found, room) {
  const known = found.filter((one) => one.bins.length);
  if (!known.length) return null;
  const figures = known.map((one) =>
    figure({
      title: one.title,
      drawing: countedBins(one, { width: halfOf(room), height: 240 }),
      rows: () => [
        ["from", "to", "value", "margin of error"],
        ...one.bins.map((bin) => [bin.low, bin.high, bin.value, bin.error]),
      ],
      caption: one.meaning ? h("p", {}, one.meaning) : null,
    }),
  );
  return h("div", { class: "pair" }, ...figures);
}

/**
 * @param {HeadRecords} head
 * @param {Record<string, string>} params
 * @returns {HTMLElement | null}
 */
function tops({ tops: all }, params) {
  if (!all.length) return null;
  const by = params.by === "mass" ? "mass" : "lift";
  const order = menu({
    id: "by",
    label: "Tokens by",
    value: by,
    options: Object.entries(ORDERS).map(([value, text]) => ({ value, text })),
    onChange: (next) => change({ by: next }, { replace: true }),
  });
  const tables = [
    { side: "query", title: "Tokens it looks from" },
    { side: "key", title: "Tokens it looks at" },
  ].map(({ side, title }) => {
    const found = all.find((one) => one.side === side && one.by === by);
    return sortable({
      title,
      kind: "short",
      rows: (found?.tokens ?? []).map((one) => [one.token, one.share, one.lift, one.count]),
      columns: [
        { name: "token", show: token },
        { name: "share", show: places },
        { name: "lift", show: places },
        { name: "count" },
      ],
    });
  });
  const means =
    "Share: of the head’s attention. Lift: that share beside what even attention would give " +
    "the token. Count: how often it occurs.";
  return h(
    "section",
    { id: "tops" },
    h("div", { class: "controls" }, order),
    h("div", { class: "pair" }, ...tables),
    h("p", { class: "caption under" }, means),
  );
}

/** @param {Value} value */
function token(value) {
  return h("code", {}, visible(String(value)));
}

/** @param {Value} value @returns {string} */
const places = (value) => number(numberIn(value));

/** @param {HeadRecords} head @returns {HTMLElement} */
function writes({ raises, lowers, no_writes: why }) {
  if (why) return section("What it writes", { id: "writes" }, sentences(why));
  const table = (/** @type {string} */ title, /** @type {WrittenToken[]} */ rows) =>
    sortable({
      title,
      kind: "short",
      rows: rows.map((one) => [one.token, one.logit]),
      columns: [
        { name: "token", show: token },
        { name: "logit", show: places },
      ],
    });
  const tables = [
    table("Tokens its output raises", raises),
    table("Tokens its output lowers", lowers),
  ];
  const means =
    "The head’s output, through the final norm, on the unembedding: which tokens it makes " +
    "more and less likely.";
  const below = h("p", { class: "caption under" }, means);
  return h("section", { id: "writes" }, h("div", { class: "pair" }, ...tables), below);
}
