/** What feeds a head: the earlier heads that make most of its choice. */

import { h } from "../ui/dom.js";
import { fixed } from "../ui/numbers.js";
import { headLink, section } from "./parts.js";

/** @import { Card, Feed, RunDetail } from "../explorer/types.js" */

const SIDES = { key: "which keys stand out", query: "what its queries look for" };

/** @param {RunDetail} run @param {Card} card */
export function feeds(run, card) {
  if (!card.feeds.length) return null;
  const lists = /** @type {const} */ (["key", "query"]).flatMap((side) => {
    const heads = card.feeds.filter((feed) => feed.side === side);
    const items = heads.map((feed) =>
      h("li", {}, headLink(run.slug, feed.name), h("span", { class: "faint" }, percent(feed))),
    );
    const name = h("p", { class: "caption" }, SIDES[side]);
    return heads.length ? [name, h("ol", { class: "nearest" }, ...items)] : [];
  });
  const means = "Share of the variance of its scores over the keys of a row.";
  return section("Fed by", { class: "figure side" }, ...lists, h("p", { class: "caption" }, means));
}

/** @param {Feed} feed */
function percent({ share, margin }) {
  const value = `${fixed(100 * share, 1)} %`;
  return margin === null ? value : `${value} ± ${fixed(100 * margin, 1)} %`;
}
