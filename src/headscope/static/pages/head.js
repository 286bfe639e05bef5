/** Head card: what shows where a head looks, then everything that the run measured about it. */

import { askCard, askPortrait, askRecords, askRun } from "../explorer/api.js";
import { labelBars } from "../charts/bars.js";
import { h } from "../ui/dom.js";
import { figure } from "../charts/figure.js";
import { headNames } from "../explorer/heads.js";
import { PLUS_MINUS, number, ordinal, plain, withError } from "../ui/format.js";
import { menu } from "../explorer/controls.js";
import { address, change } from "../explorer/place.js";
import { roleInk } from "../charts/headmap.js";
import { feeds } from "./feeds.js";
import { exemplarSection } from "./exemplars.js";
import { fold } from "./fold.js";
import { portraitParts, roleBadge } from "./portrait.js";
import { histogramPair, recordSections } from "./records.js";
import { shareBox } from "./share.js";
import { numberIn, sortable } from "../charts/table.js";

/**
 * @import { Context, Page } from "../explorer/main.js"
 * @import { Card, Group, HeadPortrait, RunDetail } from "../explorer/types.js"
 */

const MOST_BARS = 14;

/** @type {Page} */
export const headPage = {
  needsRun: true,
  async render(context) {
    const slug = context.run?.slug ?? "";
    const run = await askRun(slug);
    const name = context.params.head || headNames(run)[0];
    const [card, records, portrait] = await Promise.all([
      askCard(slug, name),
      run.records ? askRecords(slug, name) : null,
      run.described ? askPortrait(slug, name) : null,
    ]);
    const examples = exemplarSection(context, card);
    const kept = records ? recordSections(slug, records, context.params, context.room) : [];
    const numbers = h(
      "div",
      { class: "split top-aligned", "data-wide": String(context.room > 900) },
      measures(run, card, context),
      h("div", {}, feeds(run, card), nearest(run, card)),
    );
    const groups = card.groups.map((group) => bars(group, context.room));
    const measured = [numbers, h("div", { class: "pair" }, ...groups)];
    const nodes = [
      title(run, card, portrait),
      portrait ? evidence(portrait, context.room) : null,
      ...(portrait ? [] : [summary(run, card), ...measured]),
      ...kept,
      card.exemplars.length || context.session.model.name ? examples.node : null,
      histogramPair(card.histograms, context.room),
      portrait ? fold("All measures", summary(run, card), ...measured) : null,
    ];
    return {
      nodes: nodes.flatMap((node) => node ?? []),
      ready: examples.ready,
      leave: examples.leave,
    };
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
  return h(
    "section",
    {
      class: "figure evidence",
      "data-wide": String(wide),
      style: `--c: ${roleInk(portrait.cell.group)}`,
    },
    ...parts,
  );
}

/** @param {RunDetail} run @param {Card} card @param {HeadPortrait | null} portrait */
function title(run, card, portrait) {
  const all = headNames(run);
  const place = all.indexOf(card.name);
  const step = (
    /** @type {number} */ by,
    /** @type {string} */ id,
    /** @type {string} */ text,
    /** @type {string} */ label,
  ) =>
    h(
      "button",
      {
        type: "button",
        class: "button",
        id,
        "aria-label": label,
        disabled: !all[place + by],
        click: () => change({ head: all[place + by], exemplar: null, text: null }),
      },
      text,
    );
  const chooser = menu({
    id: "head",
    label: "Head",
    options: all.map((name) => ({ value: name, text: name })),
    value: card.name,
    onChange: (name) => change({ head: name, exemplar: null, text: null }),
  });
  const badge = portrait
    ? roleBadge(portrait.cell)
    : card.behaviour && h("span", { class: "badge" }, plain(card.behaviour));
  return h(
    "div",
    { class: "title" },
    h("h1", {}, `Head ${card.name}`),
    badge,
    h("span", { class: "space" }),
    h(
      "div",
      { class: "controls bare" },
      step(-1, "previous", "‹", "Previous head"),
      chooser,
      step(1, "next", "›", "Next head"),
      shareBox(run.slug, card.name),
    ),
  );
}

/**
 * What the run says of the head: its best rank, the tables that name it, why it was chosen.
 * @param {RunDetail} run
 * @param {Card} card
 */
function summary(run, card) {
  const ranked = card.measures.flatMap((one) =>
    one.rank === null ? [] : [{ ...one, rank: one.rank }],
  );
  const best = ranked.sort((a, b) => a.rank - b.rank)[0];
  const first = best
    ? [
        `Ranks ${ordinal(best.rank)} of ${best.of} heads in `,
        h(
          "a",
          { href: address("overview", { run: run.slug, measure: best.spec }) },
          inSentence(best.title),
        ),
        `: ${number(best.value)}. `,
      ]
    : [];
  const named = card.mentions.length
    ? [
        "Named in the ",
        h("a", { href: address("findings", { run: run.slug }) }, "tables"),
        `: ${mentions(card)}. `,
      ]
    : [];
  const looks = card.looks ? h("p", { class: "lead" }, h("strong", {}, card.looks)) : null;
  return h(
    "div",
    {},
    looks,
    card.cost ? h("p", { class: "cost" }, card.cost) : null,
    h(
      "p",
      { class: "lead" },
      ...first,
      ...named,
      ...card.choices.map(
        (one) => `${one.why[0].toUpperCase()}${one.why.slice(1).replace(/\.$/, "")}. `,
      ),
    ),
  );
}

/** @param {Card} card @returns {string} */
function mentions(card) {
  const tables = [...new Set(card.mentions.map((one) => one.table))];
  const rows = (/** @type {string} */ table) =>
    [...new Set(card.mentions.filter((one) => one.table === table).map((one) => one.row))].join(
      ", ",
    );
  return tables.map((table) => `${inSentence(table)} (${rows(table)})`).join("; ");
}

/** @param {string} title @returns {string} with a small first letter, as inside a sentence */
function inSentence(title) {
  return title[0].toLowerCase() + title.slice(1);
}

/** @param {RunDetail} run @param {Card} card @param {Context} context */
function measures(run, card, context) {
  const rows = card.measures.map((one) => [
    one.title,
    one.value,
    one.rank,
    one.mean,
    one.baseline?.value ?? null,
    one.spec,
    one.error,
    one.of,
  ]);
  return sortable({
    title: "Measures",
    kind: "grow",
    sort: context.params.sort ?? "",
    onSort: (sort) => change({ sort }, { replace: true, quiet: true }),
    rows,
    columns: [
      {
        name: "measure",
        show: (value, row) =>
          h(
            "a",
            { href: address("overview", { run: run.slug, measure: String(row[5]) }) },
            String(value),
          ),
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
  const meter = h("span", { class: "meter", "aria-hidden": "true" }, h("span", {}));
  /** @type {HTMLElement} */ (meter.firstChild).style.width = `${100 * share}%`;
  return h("span", { class: "rank" }, meter, h("span", { class: "of" }, `${value} / ${of}`));
}

/** @param {RunDetail} run @param {Card} card */
function nearest(run, card) {
  const items = card.nearest.heads.map((one) =>
    h(
      "li",
      {},
      h("a", { href: address("head", { run: run.slug, head: one.name }) }, one.name),
      h("span", { class: "faint" }, number(one.distance)),
    ),
  );
  return h(
    "section",
    { class: "figure side" },
    h("div", { class: "figure-bar" }, h("h2", {}, "Nearest heads")),
    items.length ? h("ol", { class: "nearest" }, ...items) : h("p", {}, "None."),
    h("p", { class: "caption" }, `By ${card.nearest.basis}.`),
  );
}

/** @param {Group} group @param {number} room */
function bars(group, room) {
  // Labels that are numbers, such as depths, stay in their order.
  const inOrder = group.bars.every((one) => Number.isFinite(Number(one.label)));
  const ordered = inOrder ? group.bars : [...group.bars].sort((a, b) => b.value - a.value);
  const frequent = ordered.filter((one) => !one.rare);
  const shown = frequent.slice(0, MOST_BARS);
  const width = Math.min(640, room > 900 ? room / 2 - 46 : room - 34);
  const drawing = shown.length ? labelBars(shown, { width, label: group.title }) : null;
  if (!drawing)
    return h("section", { class: "figure" }, h("h2", {}, group.title), h("p", {}, "No value."));
  const rows = () => [
    [group.axis, "value", "margin of error", "rank", "of", "baseline"],
    ...ordered.map((one) => [
      one.label,
      one.value,
      one.error,
      one.rank,
      one.of,
      one.baseline?.value ?? null,
    ]),
  ];
  const names = [...new Set(shown.flatMap((one) => (one.baseline ? [one.baseline.means] : [])))];
  const tick = names.length
    ? [
        h("span", { class: "swatch tick" }),
        names.length > 1 ? "each one’s best baseline" : names[0],
        ". ",
      ]
    : [];
  const rare = ordered.length - frequent.length;
  const left = [
    shown.length < frequent.length ? `the ${MOST_BARS} largest are shown` : "",
    rare ? `${rare} with fewer than ${group.enough} words are left out` : "",
  ]
    .filter(Boolean)
    .join(", ");
  const more = left ? `Of ${ordered.length}, ${left}; the CSV has all. ` : "";
  return figure({
    title: group.title,
    drawing,
    rows,
    caption: h("p", {}, ...tick, more, "# is the rank among heads."),
  });
}
