/**
 * One head in a frame of another page: no bar, what it looks at, its numbers, its surest examples.
 */

import { sortable } from "../charts/table.js";
import { askCard, askPortrait, askRecords, askRun } from "../explorer/api.js";
import { h } from "../ui/dom.js";
import { headNames } from "../explorer/heads.js";
import { PLUS_MINUS, withError } from "../ui/format.js";
import { address } from "../explorer/place.js";
import { fold } from "./fold.js";
import { portraitParts } from "./portrait.js";
import { bandSection } from "./bands.js";
import { histogramPair } from "./records.js";
import { exemplarLines } from "./exemplars.js";

/**
 * @import { Page } from "../explorer/main.js"
 * @import { Card } from "../explorer/types.js"
 */

const MOST = 8; // measures, those in which the head ranks highest

/** @type {Page} */
export const embedPage = {
  needsRun: true,
  async render({ run: chosen, params, room }) {
    const slug = chosen?.slug ?? "";
    const run = await askRun(slug);
    const name = params.head || headNames(run)[0];
    const [card, records, portrait] = await Promise.all([
      askCard(slug, name),
      run.records ? askRecords(slug, name) : null,
      run.described ? askPortrait(slug, name) : null,
    ]);
    const whole = h(
      "a",
      { href: address("head", { run: slug, head: card.name }), target: "_blank", rel: "noopener" },
      "Open in the explorer",
    );
    const about = [run.model, run.study].filter(Boolean).join(" · ");
    const title = h(
      "div",
      { class: "title" },
      h("h1", {}, `Head ${card.name}`),
      h("p", { class: "faint" }, about),
      h("span", { class: "space" }),
      whole,
    );
    const evidence = portrait && h("section", {}, ...portraitParts(portrait, room));
    const looks =
      card.looks && !portrait ? h("p", { class: "lead" }, h("strong", {}, card.looks)) : null;
    const sentences = exemplarLines(card);
    const nodes = [
      title,
      evidence ?? looks,
      portrait ? fold("Where it ranks highest", measures(card)) : measures(card),
      histogramPair(card.histograms, room),
      records?.bands.length ? bandSection(slug, records, params.band) : null,
      sentences.node,
    ];
    return { nodes: nodes.flatMap((node) => node ?? []), ready: sentences.ready };
  },
};

/** @param {Card} card */
function measures(card) {
  const known = card.measures
    .filter((one) => one.rank !== null)
    .sort((a, b) => Number(a.rank) - Number(b.rank))
    .slice(0, MOST);
  const rows = known.map((one) => [one.title, one.value, one.rank, one.error, one.of]);
  return sortable({
    title: "Where it ranks highest",
    rows,
    sort: "",
    onSort: () => {},
    columns: [
      { name: "measure" },
      {
        name: "value",
        numeric: true,
        show: (value, row) => withError(Number(value), row[3] === null ? null : Number(row[3])),
      },
      { name: "rank", numeric: true, show: (value, row) => `${value} / ${row[4]}` },
    ],
    note: `Rank 1 is the largest value of all heads; ${PLUS_MINUS}.`,
  });
}
