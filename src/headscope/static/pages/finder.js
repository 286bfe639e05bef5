/** Find heads: those whose measures lie where the visitor wants them, as points and as a table. */

import { byLayer, byMeasure } from "../charts/coloring.js";
import { figure } from "../charts/figure.js";
import { lookUp } from "../charts/heatmap.js";
import { relation } from "../charts/relation.js";
import { scatter } from "../charts/scatter.js";
import { sortable } from "../charts/table.js";
import { askHeads, askPicture, askRun } from "../explorer/api.js";
import { measureMenus, menu } from "../explorer/controls.js";
import { h } from "../ui/dom.js";
import { PLUS_MINUS, counted, plain, withError } from "../ui/format.js";
import { withoutName } from "../explorer/heads.js";
import { address, change, go } from "../explorer/place.js";
import { addFilter, filterRows } from "./filters.js";
import { keeps, readQuestion, writeFilters, writeSpecs } from "./question.js";

/**
 * @import { Value } from "../charts/table.js"
 * @import { Page } from "../explorer/main.js"
 * @import { HeadEntry as Head, Picture, RunDetail } from "../explorer/types.js"
 * @import { Filter, Question } from "./question.js"
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
    const [run, { heads }] = await Promise.all([askRun(slug), askHeads(slug)]);
    if (!run.measures.length)
      return {
        nodes: [
          title(run),
          h(
            "p",
            { class: "note" },
            "This run declares no measure of heads, so there is nothing to choose them by.",
          ),
        ],
      };
    const asked = readQuestion(context.params, run.measures);
    const specs = [
      ...new Set([
        asked.x,
        asked.y,
        ...(asked.color === "layer" ? [] : [asked.color]),
        ...asked.columns,
        ...asked.filters.map((one) => one.spec),
      ]),
    ];
    const pictures = await Promise.all(specs.map((spec) => askPicture(slug, spec)));
    const found = {
      run,
      heads,
      asked,
      room: context.room,
      pictures: new Map(specs.map((spec, i) => [spec, pictures[i]])),
    };
    return { nodes: page(found) };
  },
};

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
  const add = h(
    "button",
    { type: "button", class: "button", id: "add-filter", click: () => change(addFilter(found)) },
    "Add a condition",
  );
  const clear = h(
    "button",
    {
      type: "button",
      class: "button",
      id: "clear-filters",
      click: () => change({ where: null, q: null }),
    },
    "Clear",
  );
  draw();
  const bar = h(
    "div",
    { class: "controls" },
    h("div", { class: "control" }, h("label", { for: "q" }, "Search"), search),
    add,
    clear,
  );
  return [
    title(run),
    h("section", { class: "figure", "aria-label": "Conditions" }, bar, ...filters),
    results,
  ];
}

/** @param {RunDetail} run */
function title(run) {
  return h(
    "div",
    { class: "title" },
    h("h1", {}, "Which head does that?"),
    h("p", { class: "faint" }, [run.study, run.model].filter(Boolean).join(" · ")),
  );
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
        keeps(filter, lookUp(/** @type {Picture} */ (pictures.get(filter.spec)), one.name).value),
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
  if (!kept.length)
    return [
      count,
      h("p", { class: "note" }, "No head fits all of it. Loosen a condition, or clear them."),
    ];
  const nodes = [count, table(found, kept)];
  return kept.length > 1 ? [...nodes, plane(found, kept)] : nodes;
}

/** @param {Found} found @param {Head[]} kept */
function plane(found, kept) {
  const { run, asked, pictures } = found;
  const [x, y] = [picture(found, asked.x), picture(found, asked.y)];
  const coloring =
    asked.color === "layer" ? byLayer(run.layers) : byMeasure(picture(found, asked.color));
  const points = kept.flatMap((one) => {
    const [a, b] = [lookUp(x, one.name), lookUp(y, one.name)];
    return a.value === null || b.value === null
      ? []
      : [
          {
            name: one.name,
            x: a.value,
            y: b.value,
            dx: a.error,
            dy: b.error,
            color: coloring.color(one),
          },
        ];
  });
  points.sort((a, b) => a.x - b.x); // the arrows go from left to right
  const readout = h("p", { class: "readout", id: "readout" });
  const specs = [asked.x, asked.y, ...(asked.color === "layer" ? [] : [asked.color])];
  const tell = (/** @type {string | null} */ name) =>
    readout.replaceChildren(
      ...describe(
        found,
        kept.find((one) => one.name === name),
        specs,
      ),
    );
  tell(null);
  const width = found.room - 34;
  const drawing = scatter(points, {
    width,
    height: Math.min(520, Math.max(340, width * 0.5)),
    label: `${y.title} against ${x.title}`,
    xTitle: x.title,
    yTitle: y.title,
    selected: new Set(),
    onOpen: (name) => go("head", { run: run.slug, head: name }),
    onLook: tell,
    onBrush: (names, box) =>
      names.length &&
      change({
        where: writeFilters([...asked.filters, ...inBox(asked.x, box.x), ...inBox(asked.y, box.y)]),
      }),
  });
  const rows = () => [
    ["name", ...specs.flatMap((spec) => [spec, `${spec} margin of error`])],
    ...points.map((one) => [
      one.name,
      ...specs.flatMap((spec) => cells(/** @type {Picture} */ (pictures.get(spec)), one.name)),
    ]),
  ];
  const missing = kept.length - points.length;
  const caption = h(
    "div",
    {},
    readout,
    coloring.legend,
    h(
      "p",
      {},
      h("strong", { id: "correlation" }, relation(points)),
      ` over ${counted(points.length, "head")}. Drag a rectangle to keep the heads ` +
        `inside.${missing ? ` ${counted(missing, "head")} without a value.` : ""}`,
    ),
  );
  return figure({ title: "Heads by measures", drawing, rows, caption, extra: axes(found) });
}

/** @param {Found} found @param {string} spec @returns {Picture} */
function picture({ pictures }, spec) {
  return /** @type {Picture} */ (pictures.get(spec));
}

/** @param {Picture} one @param {string} name @returns {(number | null)[]} */
function cells(one, name) {
  const { value, error } = lookUp(one, name);
  return [value, error];
}

/** @param {string} spec @param {number[]} range @returns {Filter[]} */
function inBox(spec, [low, high]) {
  return [
    { spec, sign: ">=", value: Number(low.toPrecision(4)) },
    { spec, sign: "<=", value: Number(high.toPrecision(4)) },
  ];
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
  return h(
    "div",
    { class: "controls bare" },
    measureMenus("x", "Across", run.measures, asked.x, (x) => change({ x })),
    measureMenus("y", "Up", run.measures, asked.y, (y) => change({ y })),
    asked.color === "layer"
      ? colors
      : h(
          "div",
          { class: "controls-group" },
          colors,
          measureMenus("color", "of", run.measures, asked.color, (color) => change({ color })),
        ),
  );
}

/**
 * @param {Found} found
 * @param {Head | undefined} head
 * @param {string[]} specs
 * @returns {(Node | string)[]}
 */
function describe(found, head, specs) {
  if (!head)
    return [
      "Point at a head for its values and half of their 95 % intervals; click or Enter opens " +
        "its card, arrows go from head to head.",
    ];
  const values = specs.map((spec) => {
    const one = picture(found, spec);
    const { value, error } = lookUp(one, head.name);
    return h("span", {}, h("span", { class: "faint" }, `  ${one.title} `), withError(value, error));
  });
  const looks = head.looks
    ? `  ${withoutName(head.name, head.looks)}`
    : head.behaviour
      ? `  ${plain(head.behaviour)}`
      : "";
  return [h("strong", {}, head.name), ...values, h("span", { class: "faint" }, looks)];
}

/** @param {Found} found @param {Head[]} kept */
function table(found, kept) {
  const { run, asked } = found;
  const columns = asked.columns.map((spec) => picture(found, spec));
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
  return h(
    "div",
    {},
    chooser(found),
    sortable({
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
        {
          name: "head",
          show: (name) =>
            h("a", { href: address("head", { run: run.slug, head: String(name) }) }, String(name)),
        },
        ...(looks ? [{ name: "looks at" }] : []),
        ...columns.map(value),
      ],
      note: `${PLUS_MINUS}. Click a heading to sort; the CSV has every head that fits.`,
    }),
  );
}

/** Which measures are columns. @param {Found} found */
function chooser({ run, asked }) {
  const drop = (/** @type {string} */ spec) =>
    change({ columns: writeSpecs(asked.columns.filter((one) => one !== spec)) });
  const chips = asked.columns.map((spec) =>
    h(
      "button",
      {
        type: "button",
        class: "chip",
        id: `drop-${spec}`,
        "aria-label": `Remove the column ${spec}`,
        disabled: asked.columns.length === 1,
        click: () => drop(spec),
      },
      plain(spec.replaceAll("~", ": ")),
      " ×",
    ),
  );
  const more = measureMenus("column", "Add a column", run.measures, asked.column, (column) =>
    change({ column, columns: writeSpecs([...new Set([...asked.columns, column])]) }),
  );
  return h("div", { class: "selection" }, more, ...chips);
}
