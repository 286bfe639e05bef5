/** Head card: everything the run knows about one head, and the sentences that show it. */

import { askCard, askRecords, askRun } from "../shell/api.js";
import { labelBars } from "../charts/bars.js";
import { h } from "../shell/dom.js";
import { figure } from "../charts/figure.js";
import { PLUS_MINUS, headNames, number, ordinal, plain, withError } from "../shell/format.js";
import { menu } from "../shell/controls.js";
import { address, change } from "../shell/place.js";
import { exemplarSection } from "./exemplars.js";
import { histogramPair, recordSections } from "./records.js";
import { shareBox } from "./share.js";
import { numberIn, sortable } from "../charts/table.js";

/**
 * @typedef {import("../shell/main.js").Context} Context
 * @typedef {import("../types.js").RunDetail} RunDetail
 * @typedef {import("../types.js").Card} Card
 */

const MOST_BARS = 14;

/** @type {import("../shell/main.js").Page} */
export const headPage = {
  needsRun: true,
  async render(context) {
    const slug = context.run?.slug ?? "";
    const run = await askRun(slug);
    const name = context.params.head || headNames(run)[0];
    const [card, records] = await Promise.all([askCard(slug, name), run.records ? askRecords(slug, name) : null]);
    const examples = exemplarSection(context, card);
    const kept = records ? recordSections(slug, records, context.params, context.room) : [];
    const nodes = [
      title(run, card), summary(run, card),
      h("div", { class: "split top-aligned", "data-wide": String(context.room > 900) }, measures(run, card, context), nearest(run, card)),
      histogramPair(card.histograms, context.room), ...kept,
      kept.length && !card.exemplars.length && !context.session.model.name ? null : examples.node,
      h("div", { class: "pair" }, ...card.groups.map((group) => bars(group, context.room))),
    ];
    return { nodes: nodes.flatMap((node) => node ?? []), ready: examples.ready, leave: examples.leave };
  },
};

/** @param {RunDetail} run @param {Card} card */
function title(run, card) {
  const all = headNames(run);
  const place = all.indexOf(card.name);
  const step = (/** @type {number} */ by, /** @type {string} */ id, /** @type {string} */ text, /** @type {string} */ label) =>
    h("button", { type: "button", class: "button", id, "aria-label": label, disabled: !all[place + by], click: () => change({ head: all[place + by], exemplar: null, text: null }) }, text);
  const chooser = menu({ id: "head", label: "Head", options: all.map((name) => ({ value: name, text: name })), value: card.name, onChange: (name) => change({ head: name, exemplar: null, text: null }) });
  const badge = card.behaviour ? h("span", { class: "badge" }, plain(card.behaviour)) : null;
  return h("div", { class: "title" }, h("h1", {}, `Head ${card.name}`), badge, h("span", { class: "space" }), h("div", { class: "controls bare" }, step(-1, "previous", "‹", "Previous head"), chooser, step(1, "next", "›", "Next head"), shareBox(run.slug, card.name)));
}

/** What the run says of the head: its best rank, the tables that name it, why it was chosen. @param {RunDetail} run @param {Card} card */
function summary(run, card) {
  const ranked = card.measures.flatMap((one) => (one.rank === null ? [] : [{ ...one, rank: one.rank }]));
  const best = ranked.sort((a, b) => a.rank - b.rank)[0];
  const first = best ? [`Ranks ${ordinal(best.rank)} of ${best.of} heads in `, h("a", { href: address("overview", { run: run.slug, measure: best.spec }) }, inSentence(best.title)), `: ${number(best.value)}. `] : [];
  const named = card.mentions.length ? ["Named in the ", h("a", { href: address("tables", { run: run.slug }) }, "tables"), `: ${mentions(card)}. `] : [];
  const looks = card.looks ? h("p", { class: "lead" }, h("strong", {}, card.looks.sentence), card.looks.share === null ? "" : `; accounts for ${Math.round(100 * card.looks.share)} % of its attention`) : null;
  return h("div", {}, looks, h("p", { class: "lead" }, ...first, ...named, ...card.choices.map((one) => `${one.why[0].toUpperCase()}${one.why.slice(1).replace(/\.$/, "")}. `)));
}

/** @param {Card} card @returns {string} */
function mentions(card) {
  const tables = [...new Set(card.mentions.map((one) => one.table))];
  const rows = (/** @type {string} */ table) => [...new Set(card.mentions.filter((one) => one.table === table).map((one) => one.row))].join(", ");
  return tables.map((table) => `${inSentence(table)} (${rows(table)})`).join("; ");
}

/** @param {string} title @returns {string} with a small first letter, as inside a sentence */
function inSentence(title) {
  return title[0].toLowerCase() + title.slice(1);
}

/** @param {RunDetail} run @param {Card} card @param {Context} context */
function measures(run, card, context) {
  const rows = card.measures.map((one) => [one.title, one.value, one.rank, one.mean, one.baseline?.value ?? null, one.spec, one.error, one.of]);
  return sortable({
    title: "Measures", kind: "grow", sort: context.params.sort ?? "", onSort: (sort) => change({ sort }, { replace: true, quiet: true }), rows,
    columns: [
      { name: "measure", show: (value, row) => h("a", { href: address("overview", { run: run.slug, measure: String(row[5]) }) }, String(value)) },
      { name: "value", numeric: true, show: (value, row) => withError(numberIn(value), numberIn(row[6])) },
      { name: "rank", numeric: true, show: (value, row) => rank(numberIn(value), Number(row[7])) },
      { name: "mean of heads", numeric: true },
      { name: "baseline", numeric: true },
    ],
    note: `Rank 1 is the largest value of all heads; ${PLUS_MINUS}.`,
  });
}

/** @param {number | null} value @param {number} of */
function rank(value, of) {
  if (value === null) return "–";
  const share = of > 1 ? 1 - (value - 1) / (of - 1) : 1;
  const meter = h("span", { class: "meter", "aria-hidden": "true" }, h("span", {}));
  /** @type {HTMLElement} */ (meter.firstChild).style.width = `${100 * share}%`;
  return h("span", { class: "rank" }, meter, h("span", { class: "of" }, `${value} / ${of}`));
}

/** @param {RunDetail} run @param {Card} card */
function nearest(run, card) {
  const items = card.nearest.heads.map((one) => h("li", {}, h("a", { href: address("head", { run: run.slug, head: one.name }) }, one.name), h("span", { class: "faint" }, number(one.distance))));
  return h("section", { class: "figure side" }, h("div", { class: "figure-bar" }, h("h2", {}, "Nearest heads")), items.length ? h("ol", { class: "nearest" }, ...items) : h("p", {}, "None."), h("p", { class: "caption" }, `By ${card.nearest.basis}.`));
}

/** @param {import("../types.js").Group} group @param {number} room */
function bars(group, room) {
  const inOrder = group.bars.every((one) => Number.isFinite(Number(one.label))); // of numbers, such as depths
  const ordered = inOrder ? group.bars : [...group.bars].sort((a, b) => b.value - a.value);
  const frequent = ordered.filter((one) => !one.rare);
  const shown = frequent.slice(0, MOST_BARS);
  const width = Math.min(640, room > 900 ? room / 2 - 46 : room - 34);
  const drawing = shown.length ? labelBars(shown, { width, label: group.title }) : null;
  if (!drawing) return h("section", { class: "figure" }, h("h2", {}, group.title), h("p", {}, "No value."));
  const rows = () => [[group.axis, "value", "margin of error", "rank", "of", "baseline"], ...ordered.map((one) => [one.label, one.value, one.error, one.rank, one.of, one.baseline?.value ?? null])];
  const names = [...new Set(shown.flatMap((one) => (one.baseline ? [one.baseline.means] : [])))];
  const tick = names.length ? [h("span", { class: "swatch tick" }), names.length > 1 ? "each one’s best baseline" : names[0], ". "] : [];
  const rare = ordered.length - frequent.length;
  const left = [shown.length < frequent.length ? `the ${MOST_BARS} largest are shown` : "", rare ? `${rare} with fewer than ${group.enough} words are left out` : ""].filter(Boolean).join(", ");
  const more = left ? `Of ${ordered.length}, ${left}; the CSV has all. ` : "";
  return figure({ title: group.title, drawing, rows, caption: h("p", {}, ...tick, more, "# is the rank among heads.") });
}

