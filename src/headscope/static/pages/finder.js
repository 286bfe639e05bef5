/** Find heads: those whose measures lie where the visitor wants them, as points and as a table. */

import { byLayer, byMeasure } from "../charts/coloring.js";
import { figure } from "../charts/figure.js";
import { lookUp } from "../charts/heatmap.js";
import { relation } from "../charts/relation.js";
import { scatter } from "../charts/scatter.js";
import { sortable } from "../charts/table.js";
import { ask } from "../explorer/api.js";
import { button, measureMenus, menu } from "../explorer/controls.js";
import { h } from "../ui/dom.js";
import { PLUS_MINUS, counted, plain, withError } from "../ui/format.js";
import { withoutName } from "../explorer/heads.js";
import { change, go } from "../explorer/place.js";
import { addFilter, filterRows } from "./filters.js";
import { headLink, pageTitle } from "./parts.js";
import { keeps, readQuestion } from "./question.js";

/**
 * @import { Value } from "../charts/table.js"
 * @import { Page } from "../explorer/main.js"
 * @import { HeadEntry as Head, Picture, RunDetail } from "../explorer/types.js"
 * @import { Question } from "./question.js"
 */

/**
 * @typedef {{run: RunDetail, heads: Head[], pictures: Map<string, Picture>, asked: Question, room:
 *   number}} Found
 */

const MOST_ROWS = 200; // of the table; the file has all

/** @type {Page} */
export const finderPage = {
  needsRun: true,
  fluid: true,
  async render(context) {
    const slug = context.run?.slug ?? "";
    const [run, { heads }] = await Promise.all([
      ask("runs/{run}", slug),
      ask("runs/{run}/heads", slug),
    ]);
    if (!run.measures.length) {
      const why = "This run declares no measure of heads, so there is nothing to choose them by.";
      return { nodes: [title(run), h("p", { class: "note" }, why)] };
    }
    const asked = readQuestion(context.params, run.measures, run.first);
    const filtered = asked.filters.map((filter) => filter.spec);
    const specs = [...new Set([...axesOf(asked), ...filtered])];
    const pictures = await Promise.all(
      specs.map((spec) => ask("runs/{run}/measures/{spec}", slug, spec)),
    );
    const bySpec = new Map(specs.map((spec, i) => [spec, pictures[i]]));
    return { nodes: page({ run, heads, asked, room: context.room, pictures: bySpec }) };
  },
};

/** The measures of the plane, and of its colours. @param {Question} asked */
function axesOf({ x, y, color }) {
  return color === "layer" ? [x, y] : [x, y, color];
}

/** @param {Found} found @returns {Node[]} */
function page(found) {
  const { run, asked } = found;
  const results = h("div", { id: "found" });
  const draw = () => {
    results.replaceChildren(...shown(found, matching(found)));
    clear.disabled = !asked.filters.length && !asked.q;
  };
  const search = h("input", {
    id: "q",
    type: "search",
    value: asked.q,
    placeholder: "L4H2, previous token …",
    autocomplete: "off",
    spellcheck: "false",
  });
  search.addEventListener("input", () => {
    asked.q = search.value;
    change({ q: search.value }, { replace: true, quiet: true });
    draw();
  });
  const filters = filterRows(found, draw);
  const more = () => change(addFilter(found));
  const add = button("Add a condition", { id: "add-filter", click: more });
  const drop = () => change({ where: null, q: null });
  const clear = button("Clear", { id: "clear-filters", click: drop });
  draw();
  const label = h("label", { for: "q" }, "Search");
  const bar = h(
    "div",
    { class: "controls" },
    h("div", { class: "control" }, label, search),
    add,
    clear,
  );
  const conditions = { class: "figure", "aria-label": "Conditions" };
  return [title(run), h("section", conditions, bar, ...filters), results];
}

/** @param {RunDetail} run */
function title(run) {
  const about = [run.study, run.model].filter(Boolean).join(" · ");
  return pageTitle("Which head does that?", h("p", { class: "faint" }, about));
}

/** The heads that the search and all conditions keep. @param {Found} found @returns {Head[]} */
function matching({ heads, asked, pictures }) {
  const words = asked.q.toLowerCase().split(/\s+/).filter(Boolean);
  const says = (/** @type {Head} */ one) =>
    `${one.name} ${one.behaviour ?? ""} ${one.looks ?? ""} ${one.tokens.join(" ")}`.toLowerCase();
  const named = (/** @type {Head} */ one, /** @type {string} */ word) =>
    /^l\d+h\d+$/.test(word) ? one.name.toLowerCase() === word : says(one).includes(word);
  return heads.filter(
    (one) =>
      words.every((word) => named(one, word)) &&
      asked.filters.every((filter) =>
        keeps(filter, lookUp(picture(pictures, filter.spec), one.name).value),
      ),
  );
}

/** @param {Found} found @param {Head[]} kept @returns {Node[]} */
function shown(found, kept) {
  const count = h(
    "p",
    { class: "lead", role: "status", id: "count" },
    h("strong", {}, `${kept.length} of ${counted(found.heads.length, "head")}`),
    found.asked.filters.length || found.asked.q ? " fit." : ".",
  );
  const none = "No head fits all of it. Loosen a condition, or clear them.";
  if (!kept.length) return [count, h("p", { class: "note" }, none)];
  const nodes = [count, table(found, kept)];
  return kept.length > 1 ? [...nodes, plane(found, kept)] : nodes;
}

/** @param {Found} found @param {Head[]} kept */
function plane(found, kept) {
  const { run, asked, pictures } = found;
  const shown = axesOf(asked).map((spec) => picture(pictures, spec));
  const [x, y, colors] = shown;
  const coloring = colors ? byMeasure(colors) : byLayer(run.layers);
  const points = kept.flatMap((head) => {
    const [a, b] = [lookUp(x, head.name), lookUp(y, head.name)];
    if (a.value === null || b.value === null) return [];
    const place = { x: a.value, y: b.value, dx: a.error, dy: b.error };
    return [{ name: head.name, ...place, color: coloring.color(head) }];
  });
  points.sort((a, b) => a.x - b.x); // the arrows go from left to right
  const readout = h("p", { class: "readout", id: "readout" });
  const tell = (/** @type {string | null} */ name) => {
    const head = kept.find((other) => other.name === name);
    readout.replaceChildren(...describe(head, shown));
  };
  tell(null);
  const width = found.room - 34;
  const drawing = scatter(points, {
    width,
    height: Math.min(520, Math.max(340, width * 0.5)),
    label: `${y.title} against ${x.title}`,
    xTitle: x.title,
    yTitle: y.title,
    onOpen: (name) => go("head", { run: run.slug, head: name }),
    onLook: tell,
  });
  const cells = (/** @type {string} */ name) =>
    shown.map((one) => lookUp(one, name)).flatMap(({ value, error }) => [value, error]);
  const rows = () => [
    ["name", ...shown.flatMap(({ spec }) => [spec, `${spec} margin of error`])],
    ...points.map(({ name }) => [name, ...cells(name)]),
  ];
  const missing = kept.length - points.length;
  const means = ` over ${counted(points.length, "head")}.${
    missing ? ` ${counted(missing, "head")} without a value.` : ""
  }`;
  const r = h("strong", { id: "correlation" }, relation(points));
  const caption = h("div", {}, readout, coloring.legend, h("p", {}, r, means));
  return figure({ title: "Heads by measures", drawing, rows, caption, extra: axes(found) });
}

/** @param {Map<string, Picture>} pictures @param {string} spec @returns {Picture} */
function picture(pictures, spec) {
  return /** @type {Picture} */ (pictures.get(spec));
}

/** @param {Found} found */
function axes({ run, asked }) {
  const colors = menu({
    id: "color-by",
    label: "Colour",
    value: asked.color === "layer" ? "layer" : "measure",
    options: [
      { value: "layer", text: "Layer" },
      { value: "measure", text: "A measure" },
    ],
    onChange: (next) => change({ color: next === "layer" ? null : asked.y }),
  });
  const of = measureMenus("color", "of", run.measures, asked.color, (color) => change({ color }));
  return h(
    "div",
    { class: "controls bare" },
    measureMenus("x", "Across", run.measures, asked.x, (x) => change({ x })),
    measureMenus("y", "Up", run.measures, asked.y, (y) => change({ y })),
    asked.color === "layer" ? colors : h("div", { class: "controls-group" }, colors, of),
  );
}

/** @param {Head | undefined} head @param {Picture[]} shown @returns {(Node | string)[]} */
function describe(head, shown) {
  const hint =
    "Point at a head for its values and half of their 95 % intervals; click or Enter opens " +
    "its card, arrows go from head to head.";
  if (!head) return [hint];
  const values = shown.map((one) => {
    const { value, error } = lookUp(one, head.name);
    return h("span", {}, h("span", { class: "faint" }, `  ${one.title} `), withError(value, error));
  });
  const looks = head.looks ? withoutName(head.name, head.looks) : plain(head.behaviour ?? "");
  return [h("strong", {}, head.name), ...values, h("span", { class: "faint" }, `  ${looks}`)];
}

/** The heads with every measure that is asked for. @param {Found} found @param {Head[]} kept */
function table(found, kept) {
  const { run, asked } = found;
  const columns = [...found.pictures.values()];
  const looks = found.heads.some((one) => one.looks);
  const rows = kept.map((one) => [
    one.name,
    ...(looks ? [one.looks && withoutName(one.name, one.looks)] : []),
    ...columns.map((each) => lookUp(each, one.name).value),
  ]);
  const value = (/** @type {Picture} */ one) => ({
    name: one.spec,
    title: one.title,
    numeric: true,
    show: (/** @type {Value} */ _, /** @type {Value[]} */ row) => {
      const { value, error } = lookUp(one, String(row[0]));
      return withError(value, error);
    },
  });
  return sortable({
    title: "Heads",
    rows,
    most: MOST_ROWS,
    kind: "tall",
    sort: asked.sort,
    onSort: (sort) => {
      asked.sort = sort;
      change({ sort }, { replace: true, quiet: true });
    },
    columns: [
      { name: "head", show: (name) => headLink(run.slug, String(name)) },
      ...(looks ? [{ name: "looks at" }] : []),
      ...columns.map(value),
    ],
    note: `${PLUS_MINUS}. Click a heading to sort; the CSV has every head that fits.`,
  });
}
