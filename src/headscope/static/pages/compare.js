/** Compare: two runs side by side, what differs and by how much more than chance. */

import { askComparison, askDifference, askRun } from "../explorer/api.js";
import { measureMenus, menu, validSpec } from "../explorer/controls.js";
import { h } from "../ui/dom.js";
import { figure } from "../charts/figure.js";
import { headNames } from "../explorer/heads.js";
import { signed } from "../ui/format.js";
import { domainOf, gridRows, heatmap } from "../charts/heatmap.js";
import { intervals } from "../charts/intervals.js";
import { sentences } from "../explorer/messages.js";
import { address, change, go } from "../explorer/place.js";
import { fold } from "./fold.js";
import { pairOfMaps } from "./pairs.js";
import { whyNoPair } from "../explorer/top.js";
import { sortable } from "../charts/table.js";

/**
 * @import { Value } from "../charts/table.js"
 * @import { Context, Page } from "../explorer/main.js"
 * @import { Comparison, Difference, RunDetail, RunSummary as Run } from "../explorer/types.js"
 */

const MOST_INTERVALS = 20;

/** @type {Page} */
export const comparePage = {
  needsRun: false,
  fluid: true,
  async render(context) {
    const runs = context.session.runs.filter((one) => one.state === "complete");
    const title = h("div", { class: "title" }, h("h1", {}, "What changed?"));
    const closed = whyNoPair(context.session);
    if (closed)
      return {
        nodes: [
          title,
          h(
            "div",
            { class: "note" },
            sentences(`${closed} Open two: \`headscope serve RUN_A RUN_B\`.`),
          ),
        ],
      };
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
  const [found, run] = await Promise.all([askComparison(a, b), askRun(a)]);
  const relation = h("div", { class: "note" }, ...found.notes.map(sentences));
  const isIndexed = found.by.includes("index");
  const maps =
    first.described && second.described
      ? await pairOfMaps(a, b, isIndexed ? null : found.matches, context.room)
      : [];
  const parts = isIndexed
    ? await headWithHead(context, a, b, found, run)
    : [
        fold("Matched heads", matchesTable(context, found, a, b)),
        fold("Layers at the same depth", layersTable(context, found)),
        fold("Largest differences", largestTable(context, found, a, b, "Between matched heads")),
      ];
  return [relation, ...maps, ...parts];
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
  const picture = await askDifference(a, b, spec);
  const menus = measureMenus("measure", "Measure", measures, spec, (measure) =>
    change({ measure }),
  );
  const third = context.room > 900 ? (context.room - 48) / 3 : context.room;
  const domain = domainOf([...picture.first, ...picture.second]);
  return [
    h("div", { class: "controls" }, menus),
    h(
      "div",
      { class: "thirds" },
      map("first", a, picture, a, third, domain),
      map("second", b, picture, b, third, domain),
      map("difference", b, picture, "Difference, second − first", third, undefined),
    ),
    intervalFigure(picture, a, b, context.room),
    found.rows.length
      ? fold("Largest differences", largestTable(context, found, a, b, "Over all measures"))
      : largestTable(context, found, a, b, "Over all measures"),
  ];
}

/** @param {Context} context @param {Comparison} found @param {string} a @param {string} b */
function matchesTable(context, found, a, b) {
  const rows = found.matches.map((one) => [one.first, one.second, one.distance, one.chance]);
  const alone = found.alone.length ? ` Without a partner: ${found.alone.join(", ")}.` : "";
  return sortable({
    title: "Matched heads",
    rows,
    sort: "",
    onSort: () => {},
    kind: "tall",
    columns: [
      { name: "first", show: headLink(a) },
      { name: "second", show: headLink(b) },
      { name: "distance" },
      { name: "chance" },
    ],
    note:
      "Distance: root mean square difference of all shared measures, in standard deviations " +
      `over heads. Chance: share of the matches of strangers that are as near.${alone}`,
  });
}

/** @param {string} run @returns {(value: Value) => HTMLElement} */
function headLink(run) {
  return (value) => h("a", { href: address("head", { run, head: String(value) }) }, String(value));
}

/** @param {Context} context @param {Comparison} found */
function layersTable(context, found) {
  const rows = found.layers.map((one) => [
    one.first_at,
    one.second_at,
    one.title,
    one.first,
    one.second,
    one.difference,
    one.low,
    one.high,
    one.q,
  ]);
  return sortable({
    title: "Layers at the same depth",
    rows,
    sort: "",
    onSort: () => {},
    kind: "tall",
    columns: [
      { name: "first at" },
      { name: "second at" },
      { name: "measure" },
      { name: "first" },
      { name: "second" },
      { name: "difference", show: difference },
      { name: "low", show: difference },
      { name: "high", show: difference },
      { name: "q" },
    ],
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
  const grid = {
    layers: picture.layers,
    heads: picture.heads,
    values: picture[part],
    errors: null,
  };
  const unclear = domain ? undefined : unclearHeads(picture);
  const drawn = heatmap(grid, {
    label: `${title}: ${picture.title}`,
    room: room - 34,
    domain,
    dimmed: unclear && ((name) => unclear.has(name)),
    onOpen: (name) => go("head", { run, head: name }),
  });
  prefixIds(drawn.drawing, part);
  return figure({
    title,
    drawing: drawn.drawing,
    rows: () => gridRows(grid),
    caption: domain ? null : h("p", {}, "Hatched: the interval includes zero."),
  });
}

/**
 * Three maps on one page need their own ids.
 * @param {SVGSVGElement} drawing
 * @param {string} prefix
 */
function prefixIds(drawing, prefix) {
  for (const cell of drawing.querySelectorAll("[id]")) cell.id = `${prefix}-${cell.id}`;
}

/** @param {Difference} picture @returns {Set<string>} */
function unclearHeads(picture) {
  return new Set(
    each(picture)
      .filter((one) => one.low !== null && one.high !== null && one.low <= 0 && one.high >= 0)
      .map((one) => one.name),
  );
}

/**
 * @param {Difference} picture
 * @returns {{name: string, difference: number, low: number | null, high: number | null}[]}
 */
function each(picture) {
  const [differences, low, high] = [
    picture.difference.flat(),
    picture.low.flat(),
    picture.high.flat(),
  ];
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
  return figure({
    title: "Largest differences of heads",
    drawing,
    rows,
    caption: h("p", {}, caption),
  });
}

/** @param {Value} value @returns {string} */
const difference = (value) => (typeof value === "number" ? signed(value) : "–");

/**
 * @param {Context} context
 * @param {Comparison} found
 * @param {string} a
 * @param {string} b
 * @param {string} title
 */
function largestTable(context, found, a, b, title) {
  const rows = found.rows.map((one) => [
    one.first_at,
    one.second_at,
    one.title,
    one.first,
    one.second,
    one.difference,
    one.low,
    one.high,
    one.q,
    one.effect,
    one.spec,
  ]);
  if (!rows.length)
    return h(
      "div",
      { class: "note", id: "no-difference" },
      sentences("The two runs do not differ in any value."),
    );
  const measure = (/** @type {Value} */ value, /** @type {Value[]} */ row) =>
    h(
      "a",
      { href: address("compare", { run: context.params.run, a, b, measure: String(row[10]) }) },
      String(value),
    );
  return sortable({
    title,
    rows,
    sort: context.params.sort ?? "",
    onSort: (sort) => change({ sort }, { replace: true, quiet: true }),
    kind: "tall",
    columns: [
      { name: "head", show: headLink(a) },
      { name: "in second", show: headLink(b) },
      { name: "measure", show: measure },
      { name: "first" },
      { name: "second" },
      { name: "difference", show: difference },
      { name: "low", show: difference },
      { name: "high", show: difference },
      { name: "q" },
      { name: "effect", show: difference },
    ],
    note:
      "Effect: the difference in standard deviations over the heads of both runs; ordered by " +
      `how much of it the interval guarantees. ${found.clear.toLocaleString("en")} of ` +
      `${found.intervals.toLocaleString("en")} differences stand after correction for all of ` +
      "them (q < 0.05).",
  });
}
