/** What feeds a head: the earlier heads that make most of its choice. */

import { h } from "../ui/dom.js";
import { address } from "../explorer/place.js";

/** @import { Card, Feed, RunDetail } from "../explorer/types.js" */

const SIDES = { key: "which keys stand out", query: "what its queries look for" };

/** @param {RunDetail} run @param {Card} card */
export function feeds(run, card) {
  if (!card.feeds.length) return null;
  const lists = /** @type {const} */ (["key", "query"]).map((side) => {
    const heads = card.feeds.filter((feed) => feed.side === side);
    return heads.length ? [h("p", { class: "caption" }, SIDES[side]), list(run, heads)] : [];
  });
  return h(
    "section",
    { class: "figure side" },
    h("div", { class: "figure-bar" }, h("h2", {}, "Fed by")),
    ...lists.flat(),
    h("p", { class: "caption" }, "Share of the variance of its scores over the keys of a row."),
  );
}

/** @param {RunDetail} run @param {Feed[]} heads */
function list(run, heads) {
  const items = heads.map((feed) =>
    h(
      "li",
      {},
      h("a", { href: address("head", { run: run.slug, head: feed.name }) }, feed.name),
      h("span", { class: "faint" }, percent(feed)),
    ),
  );
  return h("ol", { class: "nearest" }, ...items);
}

/** @param {Feed} feed */
function percent({ share, margin }) {
  const value = `${(100 * share).toFixed(1)} %`;
  return margin === null ? value : `${value} ± ${(100 * margin).toFixed(1)} %`;
}
