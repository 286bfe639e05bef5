/** Head card: what shows where a head looks, then everything that the run measured about it. */

import { ask } from "../explorer/api.js";
import { labelBars } from "../charts/bars.js";
import { h } from "../ui/dom.js";
import { figure } from "../charts/figure.js";
import { headNames } from "../explorer/heads.js";
import { PLUS_MINUS, number, ordinal, plain, withError } from "../ui/format.js";
import { button, menu } from "../explorer/controls.js";
import { address, change } from "../explorer/place.js";
import { roleInk } from "../charts/headmap.js";
import { feeds } from "./feeds.js";
import { exemplarSection, opener } from "./exemplars.js";
import { fold, halfOf, headLink, pageTitle, section } from "./parts.js";
import { portraitParts, roleBadge } from "./portrait.js";
import { histogramPair, recordSections } from "./records.js";
import { shareBox } from "./share.js";
import { numberIn, sortable } from "../charts/table.js";

/**
 * @import { Context, Page } from "../explorer/main.js"
 * @import { Attributes } from "../ui/dom.js"
 * @import { Card, Group, HeadPortrait, Line, RunDetail } from "../explorer/types.js"
 */

const MOST_BARS = 14;

/** @type {Page} */
export const headPage = {
  needsRun: true,
  async render(context) {
    const slug = context.run?.slug ?? "";
    const run = await ask("runs/{run}", slug);
    const name = context.params.head || headNames(run)[0];
    const [card, records, portrait] = await Promise.all([
      ask("runs/{run}/heads/{head}", slug, name),
      run.records ? ask("runs/{run}/records/{head}", slug, name) : null,
      run.described ? ask("runs/{run}/portraits/{head}", slug, name) : null,
    ]);
    const kept = records ? recordSections(slug, records, context.params, context.room) : [];
    const wide = String(context.room > 900);
    const table = measureTable(slug, card.measures, {
      title: "Measures",
      kind: "grow",
      sort: context.params.sort,
      onSort: (sort) => change({ sort }, { replace: true, quiet: true }),
    });
    const beside = h("div", {}, feeds(run, card), nearest(run, card));
    const numbers = h("div", { class: "split top-aligned", "data-wide": wide }, table, beside);
    const groups = card.groups.map((group) => bars(group, context.room));
    const measured = [numbers, h("div", { class: "pair" }, ...groups)];
    const nodes = [
      title(run, card, portrait),
      portrait ? evidence(portrait, context.room) : null,
      ...(portrait ? [] : [summary(run, card), ...measured]),
      ...kept,
      exemplarSection(card, portrait?.cell.group, opener(context.session, context.run, card)),
      histogramPair(card.histograms, context.room),
      portrait ? fold("All measures", summary(run, card), ...measured) : null,
    ];
    return { nodes: nodes.flatMap((node) => node ?? []) };
  },
};

/**
 * What shows the portrait, in two columns where there is room.
 * @param {HeadPortrait} portrait
 * @param {number} room
 */
function evidence(portrait, room) {
  const wide = room > 900;
  const parts = portraitParts(portrait, wide ? (room - 80) / 2 : room - 36);
  const style = `--c: ${roleInk(portrait.cell.group)}`;
  return h("section", { class: "figure evidence", "data-wide": String(wide), style }, ...parts);
}

/** @param {RunDetail} run @param {Card} card @param {HeadPortrait | null} portrait */
function title(run, card, portrait) {
  const all = headNames(run);
  const open = (/** @type {string} */ name) => change({ head: name });
  const step = (/** @type {number} */ by) => {
    const [id, text] = by < 0 ? ["previous", "‹"] : ["next", "›"];
    const next = all[all.indexOf(card.name) + by];
    const label = `${by < 0 ? "Previous" : "Next"} head`;
    return button(text, { id, "aria-label": label, disabled: !next, click: () => open(next) });
  };
  const chooser = menu({
    id: "head",
    label: "Head",
    options: all.map((name) => ({ value: name, text: name })),
    value: card.name,
    onChange: open,
  });
  const name = card.behaviour && h("span", { class: "badge" }, plain(card.behaviour));
  const share = shareBox(run.slug, card.name);
  const controls = h("div", { class: "controls bare" }, step(-1), chooser, step(1), share);
  const badge = portrait ? roleBadge(portrait.cell) : name;
  return pageTitle(`Head ${card.name}`, badge, h("span", { class: "space" }), controls);
}

/**
 * What the run says of the head: its sentence, what the loss says without it, its best rank.
 * @param {RunDetail} run
 * @param {Card} card
 */
function summary(run, card) {
  const ranked = card.measures.filter((measure) => measure.rank !== null);
  const best = ranked.sort((a, b) => Number(a.rank) - Number(b.rank))[0];
  const first = best
    ? [
        `Ranks ${ordinal(Number(best.rank))} of ${best.of} heads in `,
        measureLink(run.slug, best.spec, inSentence(best.title)),
        `: ${number(best.value)}.`,
      ]
    : [];
  return h(
    "div",
    {},
    card.looks ? h("p", { class: "lead" }, h("strong", {}, card.looks)) : null,
    card.cost && !run.described ? h("p", { class: "cost" }, card.cost) : null,
    h("p", { class: "lead" }, ...first),
  );
}

/** @param {string} title @returns {string} with a small first letter, as inside a sentence */
function inSentence(title) {
  return title[0].toLowerCase() + title.slice(1);
}

/** @param {string} run @param {string} measure @param {string} text @param {Attributes} [about] */
function measureLink(run, measure, text, about) {
  return h("a", { href: address("overview", { run, measure }), ...about }, text);
}

/**
 * Measures of a head beside those of all.
 * @param {string} run
 * @param {Line[]} measures
 * @param {{title: string, kind?: string, sort?: string, onSort?: (sort: string) => void}} about
 * @param {Attributes} [link]  how a measure is opened
 */
export function measureTable(run, measures, about, link) {
  return sortable({
    ...about,
    rows: measures.map(({ title, value, rank, mean, baseline, spec, error, of }) => [
      ...[title, value, rank, mean, baseline?.value ?? null],
      ...[spec, error, of],
    ]),
    columns: [
      {
        name: "measure",
        show: (value, row) => measureLink(run, String(row[5]), String(value), link),
      },
      {
        name: "value",
        numeric: true,
        show: (value, row) => withError(numberIn(value), numberIn(row[6])),
      },
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
  const part = h("span", { style: `width: ${100 * share}%` });
  const meter = h("span", { class: "meter", "aria-hidden": "true" }, part);
  return h("span", { class: "rank" }, meter, h("span", { class: "of" }, `${value} / ${of}`));
}

/** @param {RunDetail} run @param {Card} card */
function nearest(run, card) {
  const items = card.nearest.heads.map(({ name, distance }) =>
    h("li", {}, headLink(run.slug, name), h("span", { class: "faint" }, number(distance))),
  );
  const list = items.length ? h("ol", { class: "nearest" }, ...items) : h("p", {}, "None.");
  const basis = h("p", { class: "caption" }, `By ${card.nearest.basis}.`);
  return section("Nearest heads", { class: "figure side" }, list, basis);
}

/** @param {Group} group @param {number} room */
function bars(group, room) {
  // Labels that are numbers, such as depths, stay in their order.
  const inOrder = group.bars.every((bar) => Number.isFinite(Number(bar.label)));
  const ordered = inOrder ? group.bars : [...group.bars].sort((a, b) => b.value - a.value);
  const frequent = ordered.filter((bar) => !bar.rare);
  const shown = frequent.slice(0, MOST_BARS);
  if (!shown.length) return section(group.title, {}, h("p", {}, "No value."));
  const names = new Set(shown.flatMap(({ baseline }) => (baseline ? [baseline.means] : [])));
  const [name] = names.size > 1 ? ["each one’s best baseline"] : names;
  const tick = name ? [h("span", { class: "swatch tick" }), `${name}. `] : [];
  const rare = ordered.length - frequent.length;
  const left = [
    shown.length < frequent.length ? `the ${MOST_BARS} largest are shown` : "",
    rare ? `${rare} with fewer than ${group.enough} words are left out` : "",
  ].filter(Boolean);
  const more = left.length ? `Of ${ordered.length}, ${left.join(", ")}; the CSV has all. ` : "";
  return figure({
    title: group.title,
    drawing: labelBars(shown, { width: halfOf(room), label: group.title }),
    rows: () => [
      [group.axis, "value", "margin of error", "rank", "of", "baseline"],
      ...ordered.map(({ label, value, error, rank, of, baseline }) => [
        ...[label, value, error, rank, of, baseline?.value ?? null],
      ]),
    ],
    caption: h("p", {}, ...tick, more, "# is the rank among heads."),
  });
}
