/** Compare: two runs side by side, what differs and by how much more than chance. */

import { ask } from "../explorer/api.js";
import { measureMenus, menu, validSpec } from "../explorer/controls.js";
import { h } from "../ui/dom.js";
import { figure } from "../charts/figure.js";
import { headNames } from "../explorer/heads.js";
import { signed } from "../ui/format.js";
import { domainOf, gridRows, heatmap } from "../charts/heatmap.js";
import { intervals } from "../charts/intervals.js";
import { sentences } from "../explorer/messages.js";
import { address, change, go } from "../explorer/place.js";
import { fold, headLink, pageTitle, summaryLine } from "./parts.js";
import { pairOfMaps } from "./pairs.js";
import { whyNoPair } from "../explorer/top.js";
import { sortable } from "../charts/table.js";

/**
 * @import { Column, Value } from "../charts/table.js"
 * @import { Interval } from "../charts/intervals.js"
 * @import { Context, Page } from "../explorer/main.js"
 * @import { Comparison, Difference, DifferenceRow, RunDetail, RunSummary as Run } from "../explorer/types.js"
 */

const MOST_INTERVALS = 20;

/** @type {Page} */
export const comparePage = {
  needsRun: false,
  fluid: true,
  async render(context) {
    const runs = context.session.runs.filter((one) => one.state === "complete");
    const title = pageTitle("What changed?");
    const closed = whyNoPair(context.session);
    if (closed) {
      const how = sentences(`${closed} Open two: \`headscope serve RUN_A RUN_B\`.`);
      return { nodes: [title, h("div", { class: "note" }, how)] };
    }
    const partners = (/** @type {Run} */ run) =>
      runs
        .filter((one) => one.study === run.study && one.slug !== run.slug)
        .sort((x, y) => likeness(run, y) - likeness(run, x));
    const paired = runs.filter((one) => partners(one).length);
    const alike = (/** @type {Run} */ run) => likeness(run, partners(run)[0]);
    const a =
      paired.find((one) => one.slug === context.params.a) ??
      paired.find((one) => one.slug === context.run?.slug && alike(one) > 1) ??
      [...paired].sort((x, y) => alike(y) - alike(x))[0];
    const b = partners(a).find((one) => one.slug === context.params.b) ?? partners(a)[0];
    const choose = h(
      "div",
      { class: "controls" },
      runMenu("a", "First", paired, a.slug),
      runMenu("b", "Second", partners(a), b.slug),
    );
    return { nodes: [title, choose, ...(await body(context, a, b))] };
  },
};

/**
 * How much two runs belong together: of one model, or at least of one shape.
 * @param {Run} a
 * @param {Run} b
 */
function likeness(a, b) {
  if (a.model === b.model) return 2;
  return a.layers.length === b.layers.length && a.heads.length === b.heads.length ? 1 : 0;
}

/** @param {string} id @param {string} label @param {Run[]} runs @param {string} value */
function runMenu(id, label, runs, value) {
  const options = runs.map((one) => ({
    value: one.slug,
    text: `${one.slug} (${[one.study, one.model].filter(Boolean).join(", ")})`,
  }));
  return menu({ id, label, options, value, onChange: (next) => change({ [id]: next }) });
}

/** @param {Context} context @param {Run} first @param {Run} second @returns {Promise<Node[]>} */
async function body(context, first, second) {
  const [a, b] = [first.slug, second.slug];
  const [found, run] = await Promise.all([ask("compare/{a}/{b}", a, b), ask("runs/{run}", a)]);
  const [how, ...notes] = found.notes;
  const isIndexed = found.by.includes("index");
  const maps =
    first.described && second.described
      ? await pairOfMaps(a, b, isIndexed ? null : found.matches, context.room)
      : { said: "", nodes: [] };
  const method = h("div", { class: "caption" }, ...notes.map(sentences));
  const parts = isIndexed
    ? await headWithHead(context, a, b, found, run)
    : [
        fold("Matched heads", matchesTable(found, a, b)),
        fold("Layers at the same depth", layersTable(found)),
        fold("Largest differences", largestTable(context, found, a, b, "Between matched heads")),
      ];
  return [summaryLine(`${how} ${maps.said}`), ...maps.nodes, method, ...parts];
}

/**
 * @param {Context} context
 * @param {string} a
 * @param {string} b
 * @param {Comparison} found
 * @param {RunDetail} run
 * @returns {Promise<Node[]>}
 */
async function headWithHead(context, a, b, found, run) {
  const measures = run.measures.filter((one) => found.measures.includes(one.name));
  const first = run.described ? "explained" : found.rows[0]?.spec;
  const spec = validSpec(measures, context.params.measure ?? first, measures[0].name);
  const picture = await ask("compare/{a}/{b}/{spec}", a, b, spec);
  const menus = measureMenus("measure", "Measure", measures, spec, (measure) =>
    change({ measure }),
  );
  const third = context.room > 900 ? (context.room - 48) / 3 : context.room;
  const domain = domainOf([...picture.first, ...picture.second]);
  const maps = [
    map("first", a, picture, a, third, domain),
    map("second", b, picture, b, third, domain),
    map("difference", b, picture, "Difference, second − first", third, undefined),
  ];
  const largest = largestTable(context, found, a, b, "Over all measures");
  return [
    h("div", { class: "controls" }, menus),
    h("div", { class: "thirds" }, ...maps),
    intervalFigure(picture, a, b, context.room),
    found.rows.length ? fold("Largest differences", largest) : largest,
  ];
}

/** @param {Comparison} found @param {string} a @param {string} b */
function matchesTable(found, a, b) {
  const alone = found.alone.length ? ` Without a partner: ${found.alone.join(", ")}.` : "";
  return sortable({
    title: "Matched heads",
    rows: found.matches.map((match) => [match.first, match.second, match.distance, match.chance]),
    kind: "tall",
    columns: [
      { name: "first", show: (name) => headLink(a, String(name)) },
      { name: "second", show: (name) => headLink(b, String(name)) },
      { name: "distance" },
      { name: "chance" },
    ],
    note:
      "Distance: root mean square difference of all shared measures, in standard deviations " +
      `over heads. Chance: share of the matches of strangers that are as near.${alone}`,
  });
}

/** A difference with its sign. @param {Value} value @returns {string} */
const show = (value) => (typeof value === "number" ? signed(value) : "–");

/** @type {Column[]} */
const VALUES = [
  { name: "first" },
  { name: "second" },
  { name: "difference", show },
  { name: "low", show },
  { name: "high", show },
  { name: "q" },
];

/** What `VALUES` are of. @param {DifferenceRow} row @returns {Value[]} */
function valuesOf({ first, second, difference, low, high, q }) {
  return [first, second, difference, low, high, q];
}

/** @param {Comparison} found */
function layersTable({ layers }) {
  return sortable({
    title: "Layers at the same depth",
    rows: layers.map((row) => [row.first_at, row.second_at, row.title, ...valuesOf(row)]),
    kind: "tall",
    columns: [{ name: "first at" }, { name: "second at" }, { name: "measure" }, ...VALUES],
    note: "Pooled over the heads of each layer; between layers by a straight line.",
  });
}

/**
 * @param {"first" | "second" | "difference"} part
 * @param {string} run  whose cards the cells open
 * @param {Difference} picture
 * @param {string} title
 * @param {number} room
 * @param {[number, number] | undefined} domain
 */
function map(part, run, picture, title, room, domain) {
  const { layers, heads } = picture;
  const grid = { layers, heads, values: picture[part] };
  const unclear = domain ? new Set() : unclearHeads(picture);
  const { drawing } = heatmap(grid, {
    label: `${title}: ${picture.title}`,
    prefix: `${part}-`,
    room: room - 34,
    domain,
    dimmed: (name) => unclear.has(name),
    onOpen: (name) => go("head", { run, head: name }),
  });
  const caption = domain ? null : h("p", {}, "Hatched: the interval includes zero.");
  return figure({ title, drawing, rows: () => gridRows(grid), caption });
}

/** @param {Difference} picture @returns {Set<string>} */
function unclearHeads(picture) {
  return new Set(
    each(picture)
      .filter((one) => one.low !== null && one.high !== null && one.low <= 0 && one.high >= 0)
      .map((one) => one.name),
  );
}

/** @param {Difference} picture @returns {Interval[]} */
function each(picture) {
  const [differences, low, high] = [picture.difference, picture.low, picture.high].map((grid) =>
    grid.flat(),
  );
  return headNames(picture).flatMap((name, i) => {
    const difference = differences[i];
    return difference === null ? [] : [{ name, difference, low: low[i], high: high[i] }];
  });
}

/** @param {Difference} picture @param {string} a @param {string} b @param {number} room */
function intervalFigure(picture, a, b, room) {
  const all = each(picture).sort((x, y) => Math.abs(y.difference) - Math.abs(x.difference));
  const width = Math.min(900, room - 34);
  const drawing = intervals(all.slice(0, MOST_INTERVALS), {
    width,
    label: `Largest differences in ${picture.title}`,
    axis: `${b} − ${a}`,
  });
  const rows = () => [
    ["name", "difference", "low", "high"],
    ...all.map((one) => [one.name, one.difference, one.low, one.high]),
  ];
  const caption =
    `${Math.round(100 * picture.confidence)} % intervals, from leaving out one group of ` +
    "documents at a time.";
  const title = "Largest differences of heads";
  return figure({ title, drawing, rows, caption: h("p", {}, caption) });
}

/**
 * @param {Context} context
 * @param {Comparison} found
 * @param {string} a
 * @param {string} b
 * @param {string} title
 */
function largestTable(context, found, a, b, title) {
  if (!found.rows.length) {
    const none = sentences("The two runs do not differ in any value.");
    return h("div", { class: "note", id: "no-difference" }, none);
  }
  const measure = (/** @type {Value} */ value, /** @type {Value[]} */ row) => {
    const spec = String(row[row.length - 1]);
    const href = address("compare", { run: context.params.run, a, b, measure: spec });
    return h("a", { href }, String(value));
  };
  return sortable({
    title,
    rows: found.rows.map((row) => [
      ...[row.first_at, row.second_at, row.title, ...valuesOf(row), row.effect, row.spec],
    ]),
    sort: context.params.sort,
    onSort: (sort) => change({ sort }, { replace: true, quiet: true }),
    kind: "tall",
    columns: [
      { name: "head", show: (name) => headLink(a, String(name)) },
      { name: "in second", show: (name) => headLink(b, String(name)) },
      { name: "measure", show: measure },
      ...VALUES,
      { name: "effect", show },
    ],
    note:
      "Effect: the difference in standard deviations over the heads of both runs; ordered by " +
      `how much of it the interval guarantees. ${found.clear.toLocaleString("en")} of ` +
      `${found.intervals.toLocaleString("en")} differences stand after correction for all of ` +
      "them (q < 0.05).",
  });
}
