/** Compare: two runs side by side, what differs and by how much more than chance. */

import { ask } from "./api.js";
import { measureMenus, menu, validSpec } from "./controls.js";
import { h } from "./dom.js";
import { figure } from "./figure.js";
import { plain, signed } from "./format.js";
import { domainOf, gridRows, headName, heatmap } from "./heatmap.js";
import { intervals } from "./intervals.js";
import { sentences } from "./messages.js";
import { address, change, go } from "./place.js";
import { sortable } from "./table.js";

/** @typedef {import("./main.js").Context} Context */

const MOST_INTERVALS = 20;

/** @type {import("./main.js").Page} */
export const comparePage = {
  needsRun: false,
  fluid: true,
  async render(context) {
    const runs = context.session.runs.filter((one) => one.state === "complete");
    const title = h("div", { class: "title" }, h("h1", {}, "What changed?"));
    if (runs.length < 2) return { nodes: [title, h("div", { class: "note" }, sentences("Comparing needs two finished runs of one study: `headscope serve RUN_A RUN_B`."))] };
    const a = runs.find((one) => one.slug === context.params.a) ?? runs.find((one) => one.slug === context.run?.slug) ?? runs[0];
    const b = runs.find((one) => one.slug === context.params.b) ?? runs.find((one) => one.slug !== a.slug && one.study === a.study) ?? runs[1];
    const choose = h("div", { class: "controls" }, runMenu("a", "First", runs, a.slug), runMenu("b", "Second", runs, b.slug));
    return { nodes: [title, choose, ...(await body(context, a.slug, b.slug))] };
  },
};

/** @param {string} id @param {string} label @param {import("./main.js").RunSummary[]} runs @param {string} value */
function runMenu(id, label, runs, value) {
  const options = runs.map((one) => ({ value: one.slug, text: `${one.slug} (${[one.study, one.model].filter(Boolean).join(", ")})` }));
  return menu({ id, label, options, value, onChange: (next) => change({ [id]: next }) });
}

/** @param {Context} context @param {string} a @param {string} b @returns {Promise<Node[]>} */
async function body(context, a, b) {
  const [found, run] = await Promise.all([ask(["compare"], { a, b }), ask(["runs", a])]);
  const measures = run.measures.filter((/** @type {any} */ one) => found.measures.includes(one.name));
  const spec = validSpec(measures, context.params.measure ?? found.rows[0]?.spec, measures[0].name);
  const picture = await ask(["compare", spec], { a, b });
  const menus = measureMenus("measure", "Measure", measures, spec, (measure) => change({ measure }));
  const third = context.room > 900 ? (context.room - 48) / 3 : context.room;
  const domain = domainOf([...picture.first, ...picture.second]);
  return [
    h("div", { class: "controls" }, menus),
    h("div", { class: "thirds" },
      map("first", a, picture, a, third, domain),
      map("second", b, picture, b, third, domain),
      map("difference", b, picture, "Difference, second − first", third, undefined)),
    h("div", { class: "pair" }, intervalFigure(picture, a, b, context.room), largestTable(context, found, a, b)),
    h("div", { class: "caption" }, ...found.notes.map(sentences)),
  ];
}

/** @param {"first" | "second" | "difference"} part @param {string} run  whose cards the cells open @param {any} picture @param {string} title @param {number} room @param {[number, number] | undefined} domain */
function map(part, run, picture, title, room, domain) {
  const grid = { layers: picture.layers, heads: picture.heads, values: picture[part], errors: null };
  const unclear = domain ? undefined : unclearHeads(picture);
  const drawn = heatmap(grid, { label: `${title}: ${picture.title}`, room: room - 34, domain, dimmed: unclear && ((name) => unclear.has(name)), onOpen: (name) => go("head", { run, head: name }) });
  prefixIds(drawn.drawing, part);
  return figure({ title, drawing: drawn.drawing, rows: () => gridRows(grid), caption: domain ? null : h("p", {}, "Pale: the interval includes zero.") });
}

/** Three maps on one page need their own ids. @param {SVGSVGElement} drawing @param {string} prefix */
function prefixIds(drawing, prefix) {
  for (const cell of drawing.querySelectorAll("[id]")) cell.id = `${prefix}-${cell.id}`;
}

/** @param {any} picture @returns {Set<string>} */
function unclearHeads(picture) {
  return new Set(each(picture).filter((one) => one.low !== null && one.high !== null && one.low <= 0 && one.high >= 0).map((one) => one.name));
}

/** @param {any} picture @returns {{name: string, difference: number, low: number | null, high: number | null}[]} */
function each(picture) {
  const all = picture.layers.flatMap((/** @type {number} */ layer, /** @type {number} */ i) =>
    picture.heads.map((/** @type {number} */ head, /** @type {number} */ j) => ({ name: headName(layer, head), difference: picture.difference[i][j], low: picture.low[i][j], high: picture.high[i][j] })),
  );
  return all.filter((/** @type {any} */ one) => one.difference !== null);
}

/** @param {any} picture @param {string} a @param {string} b @param {number} room */
function intervalFigure(picture, a, b, room) {
  const all = each(picture).sort((x, y) => Math.abs(y.difference) - Math.abs(x.difference));
  const width = Math.min(640, room > 900 ? room / 2 - 46 : room - 34);
  const drawing = intervals(all.slice(0, MOST_INTERVALS), { width, label: `Largest differences in ${picture.title}`, axis: `${b} − ${a}` });
  const rows = () => [["name", "difference", "low", "high"], ...all.map((one) => [one.name, one.difference, one.low, one.high])];
  const caption = `${Math.round(100 * picture.confidence)} % intervals (b − a) ± 1.96·√(se² + se²): normal approximation, the runs taken as independent. Over the same texts they are not, and the intervals are wider than they need be.`;
  return figure({ title: "Largest differences of heads", drawing, rows, caption: h("p", {}, caption) });
}

/** @param {Context} context @param {any} found @param {string} a @param {string} b */
function largestTable(context, found, a, b) {
  const rows = found.rows.map((/** @type {any} */ one) => [one.head, [one.measure, ...one.at].map(plain).join(", "), one.first, one.second, one.difference, one.low, one.high, one.effect, one.spec]);
  const chance = Math.round(found.intervals * (1 - found.confidence));
  return sortable({
    title: "Over all measures", rows, sort: context.params.sort ?? "", onSort: (sort) => change({ sort }, { replace: true, quiet: true }), kind: "tall",
    columns: [
      { name: "head", show: (value) => h("a", { href: address("head", { run: b, head: value }) }, value) },
      { name: "measure", show: (value, row) => h("a", { href: address("compare", { run: context.params.run, a, b, measure: String(row[8]) }) }, value) },
      { name: "first" }, { name: "second" },
      { name: "difference", show: (value) => signed(value) }, { name: "low", show: (value) => signed(value) }, { name: "high", show: (value) => signed(value) }, { name: "effect", show: (value) => signed(value) },
    ],
    note: `Effect: the difference in standard deviations over the heads of both runs; ordered by how much of it the interval guarantees. ${found.clear.toLocaleString("en")} of ${found.intervals.toLocaleString("en")} intervals leave out zero; about ${chance.toLocaleString("en")} would by chance.`,
  });
}
