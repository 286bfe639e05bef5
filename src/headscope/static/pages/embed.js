/**
 * One head in a frame of another page: no bar, what it looks at, its numbers, its surest examples.
 */

import { ask } from "../explorer/api.js";
import { h } from "../ui/dom.js";
import { headNames } from "../explorer/heads.js";
import { address } from "../explorer/place.js";
import { measureTable } from "./head.js";
import { fold, pageTitle } from "./parts.js";
import { portraitParts } from "./portrait.js";
import { bandSection } from "./bands.js";
import { histogramPair } from "./records.js";
import { exemplarSection } from "./exemplars.js";

/** @import { Page } from "../explorer/main.js" */

const MOST = 8; // measures, those in which the head ranks highest
const OUTSIDE = { target: "_blank", rel: "noopener" };

/** @type {Page} */
export const embedPage = {
  needsRun: true,
  async render({ run: chosen, params, room }) {
    const slug = chosen?.slug ?? "";
    const run = await ask("runs/{run}", slug);
    const name = params.head || headNames(run)[0];
    const [card, records, portrait] = await Promise.all([
      ask("runs/{run}/heads/{head}", slug, name),
      run.records ? ask("runs/{run}/records/{head}", slug, name) : null,
      run.described ? ask("runs/{run}/portraits/{head}", slug, name) : null,
    ]);
    const href = address("head", { run: slug, head: card.name });
    const about = [run.model, run.study].filter(Boolean).join(" · ");
    const title = pageTitle(
      `Head ${card.name}`,
      h("p", { class: "faint" }, about),
      h("span", { class: "space" }),
      h("a", { href, ...OUTSIDE }, "Open in the explorer"),
    );
    const highest = card.measures
      .filter((measure) => measure.rank !== null)
      .sort((a, b) => Number(a.rank) - Number(b.rank))
      .slice(0, MOST);
    const table = measureTable(slug, highest, { title: "Where it ranks highest" }, OUTSIDE);
    const looks = card.looks && h("p", { class: "lead" }, h("strong", {}, card.looks));
    const nodes = [
      title,
      portrait ? h("section", {}, ...portraitParts(portrait, room)) : looks || null,
      portrait ? fold("Where it ranks highest", table) : table,
      histogramPair(card.histograms, room),
      records?.bands.length ? bandSection(slug, records, params.band) : null,
      exemplarSection(card, portrait?.cell.group),
    ];
    return { nodes: nodes.flatMap((node) => node ?? []) };
  },
};
