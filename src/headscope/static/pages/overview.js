/**
 * Overview: one measure over all heads, its layers, its distribution, and its relation to another.
 */

import { askPicture, askRun, askStatements } from "../explorer/api.js";
import { measureMenus, validSpec } from "../explorer/controls.js";
import { h } from "../ui/dom.js";
import { figure } from "../charts/figure.js";
import { headIn, headNames } from "../explorer/heads.js";
import { counted, finite, number, withError } from "../ui/format.js";
import { byName, gridRows, heatmap, lookUp } from "../charts/heatmap.js";
import { histogram } from "../charts/histogram.js";
import { ink } from "../explorer/look.js";
import { address, change, go, here } from "../explorer/place.js";
import { layerProfile } from "../charts/profile.js";
import { scatter } from "../charts/scatter.js";
import { fold } from "./fold.js";
import { relation } from "../charts/relation.js";

/**
 * @import { Heatmap } from "../charts/heatmap.js"
 * @import { Context, Page } from "../explorer/main.js"
 * @import { Picture, RunDetail } from "../explorer/types.js"
 */

/** @type {Page} */
export const overviewPage = {
  needsRun: true,
  fluid: true,
  async render(context) {
    const slug = context.run?.slug ?? "";
    const run = await askRun(slug);
    if (!run.measures.length) return { nodes: await withoutMeasures(run) };
    const spec = validSpec(run.measures, context.params.measure, firstMeasure(run.measures));
    const other = validSpec(
      run.measures,
      context.params.other,
      spec === "entropy" ? "distance" : "entropy",
    );
    const [picture, second] = await Promise.all([askPicture(slug, spec), askPicture(slug, other)]);
    return { nodes: page(context, run, picture, second, spec, other) };
  },
};

/**
 * A run of an older version is refused with the way to mend it.
 * @param {RunDetail} run
 * @returns {Promise<Node[]>}
 */
async function withoutMeasures(run) {
  await askStatements(run.slug);
  return [
    title(run),
    h("p", { class: "note" }, "This run declares no measure of heads."),
    leftOut(run),
  ].filter((node) => node !== null);
}

/** @param {{name: string}[]} measures @returns {string} */
function firstMeasure(measures) {
  return (
    ["explained", "dependency_alignment", "entropy"].find((name) =>
      measures.some((one) => one.name === name),
    ) ?? measures[0]?.name
  );
}

/**
 * @param {Context} context
 * @param {RunDetail} run
 * @param {Picture} picture
 * @param {Picture} second
 * @param {string} spec
 * @param {string} other
 * @returns {Node[]}
 */
function page(context, run, picture, second, spec, other) {
  const selected = selectedHeads(context);
  const readout = h("p", { class: "readout", id: "readout" });
  const tell = (/** @type {string | null} */ name) =>
    readout.replaceChildren(...describe(picture, name));
  tell(null);
  const wide = context.room > 900;
  const side = wide ? 250 : context.room;
  const map = heatmap(picture, {
    label: `${picture.title}: layers by heads`,
    room: (wide ? context.room - side - 24 : context.room) - 34,
    selected,
    onOpen: (name) => go("head", { run: run.slug, head: name }),
    onToggle: (name) => select(toggled(selected, name)),
    onLook: tell,
  });
  const menus = measureMenus("measure", "Measure", run.measures, spec, (next) =>
    change({ measure: next }),
  );
  return [
    title(run),
    h("div", { class: "controls" }, menus),
    h(
      "div",
      { class: "split", "data-wide": String(wide) },
      figure({
        title: picture.title,
        drawing: map.drawing,
        rows: () => gridRows(picture),
        caption: mapCaption(picture, readout),
        kind: "grow",
      }),
      profileFigure(picture, map, side),
    ),
    selectionBar(selected, picture),
    details(
      context,
      distribution(picture, context.room),
      against(context, run, picture, second, other, selected),
    ),
    leftOut(run),
  ].filter((node) => node !== null);
}

/**
 * Two figures that are folded until they are asked for; the address remembers it.
 * @param {Context} context
 * @param {Node[]} figures
 */
function details({ params }, ...figures) {
  const node = fold("Distribution, and a second measure", h("div", { class: "pair" }, ...figures));
  node.open = params.more !== undefined || params.other !== undefined;
  node.querySelector("summary")?.addEventListener("click", () => {
    const more = node.open ? null : "1";
    change({ more, ...(more ? {} : { other: null }) }, { replace: true, quiet: true });
  });
  return node;
}

/** @param {RunDetail} run */
function title(run) {
  const facts = [
    run.study,
    run.model,
    run.corpus && `on ${run.corpus}`,
    `${counted(run.layers.length, "layer")} × ${counted(run.heads.length, "head")}`,
  ].filter(Boolean);
  return h(
    "div",
    { class: "title" },
    h("h1", {}, "Which heads?"),
    h("p", { class: "faint" }, facts.join(" · ")),
  );
}

/** @param {Picture} picture @param {string | null} name @returns {(Node | string)[]} */
function describe(picture, name) {
  if (!name)
    return [
      "Point at a head for its value; click or Enter opens its card, Shift-click or Space " +
        "selects it.",
    ];
  const { value, error, rank, of } = lookUp(picture, name);
  if (value === null) return [h("strong", {}, name), " has no value."];
  return [
    h("strong", {}, name),
    `  ${withError(value, error)}`,
    h("span", { class: "faint" }, `  rank ${rank} of ${of}`),
  ];
}

/** @param {Picture} picture @param {HTMLElement} readout */
function mapCaption(picture, readout) {
  const parts = [
    picture.meaning,
    picture.unit && picture.unit !== "share" ? `In ${picture.unit}.` : "",
    picture.more ? `More: ${picture.more}.` : "",
  ];
  const formula = picture.formula
    ? h(
        "p",
        {},
        h("span", { class: "formula" }, picture.formula),
        picture.reference ? ` (${picture.reference})` : "",
      )
    : null;
  const published = picture.published;
  const paper = published
    ? `Published: ${published.value === null ? "" : `${published.value}, `}${published.says} ` +
      `(${published.source}).`
    : "";
  return h(
    "div",
    {},
    readout,
    h("p", {}, parts.filter(Boolean).join(" ")),
    formula,
    paper ? h("p", {}, h("span", { class: "swatch mark" }), paper) : null,
  );
}

/** @param {Picture} picture @param {Heatmap} map @param {number} width */
function profileFigure(picture, map, width) {
  const kind = picture.profile.pooled ? "pooled over heads" : "mean of heads";
  const baseline = picture.baseline?.value ?? null;
  const drawing = layerProfile(picture.profile, picture.layers, {
    pitch: map.pitch,
    top: map.top,
    width: Math.max(220, width - 34),
    baseline,
    label: `${picture.title} by layer, ${kind}`,
  });
  const rows = () => [
    ["layer", "value", "margin of error"],
    ...picture.layers.map((layer, i) => [
      layer,
      picture.profile.values[i],
      picture.profile.errors?.[i] ?? null,
    ]),
  ];
  const line = picture.baseline
    ? h(
        "p",
        {},
        h("span", { class: "swatch dash" }),
        `Baseline ${number(baseline)}: ${picture.baseline.means}.`,
      )
    : null;
  const caption = h(
    "div",
    {},
    h("p", {}, `By layer, ${kind}${picture.profile.errors ? "; lines are 95 % intervals" : ""}.`),
    line,
  );
  return figure({ title: "Layers", drawing, rows, caption });
}

/** @param {Picture} picture @param {number} room */
function distribution(picture, room) {
  const values = finite(picture.values.flat());
  if (!values.length) return h("p", { class: "note" }, "No head has a value here.");
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const spread = Math.sqrt(
    values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length,
  );
  const markers = [{ value: mean, color: ink().ink }];
  if (picture.baseline) markers.push({ value: picture.baseline.value, color: ink().mark });
  const drawing = histogram(values, markers, {
    width: Math.min(640, room > 900 ? room / 2 - 46 : room - 34),
    height: 300,
    label: `Distribution of ${picture.title}`,
    axis: picture.title,
  });
  const caption = h(
    "p",
    {},
    `${counted(values.length, "head")}: mean ${number(mean)} (dashed), standard deviation ` +
      `${number(spread)}, from ${number(Math.min(...values))} to ` +
      `${number(Math.max(...values))}.`,
  );
  return figure({ title: "Distribution", drawing, rows: () => gridRows(picture), caption });
}

/**
 * @param {Context} context
 * @param {RunDetail} run
 * @param {Picture} picture
 * @param {Picture} second
 * @param {string} other
 * @param {Set<string>} selected
 */
function against(context, run, picture, second, other, selected) {
  const ys = byName(picture);
  const points = [...byName(second)].flatMap(([name, x]) => {
    const y = ys.get(name) ?? null;
    return x === null || y === null ? [] : [{ name, x, y }];
  });
  const width = Math.min(640, context.room > 900 ? context.room / 2 - 46 : context.room - 34);
  const drawing = scatter(points, {
    width,
    height: 300,
    label: `${picture.title} against ${second.title}`,
    xTitle: second.title,
    yTitle: picture.title,
    selected,
    onOpen: (name) => go("head", { run: run.slug, head: name }),
    onBrush: (names) => select(new Set(names)),
  });
  const caption = h(
    "p",
    {},
    h("strong", { id: "correlation" }, relation(points)),
    ` over ${counted(points.length, "head")}. Drag a rectangle to select heads.`,
  );
  const rows = () => [
    ["name", second.title, picture.title],
    ...points.map((one) => [one.name, one.x, one.y]),
  ];
  const menus = measureMenus("other", "Against", run.measures, other, (next) =>
    change({ other: next }),
  );
  return figure({ title: "Two measures", drawing, rows, caption, extra: menus });
}

/** @param {Context} context @returns {Set<string>} */
function selectedHeads({ params }) {
  return new Set((params.heads ?? "").split(",").filter((name) => headIn(name) === name));
}

/** @param {Set<string>} selected @param {string} name */
function toggled(selected, name) {
  const next = new Set(selected);
  if (!next.delete(name)) next.add(name);
  return next;
}

/** @param {Set<string>} names */
function select(names) {
  change({ heads: [...names].join(",") }, { replace: true });
}

/** @param {Set<string>} selected @param {Picture} picture */
function selectionBar(selected, picture) {
  const known = headNames(picture);
  const names = [...selected].filter((name) => known.includes(name));
  if (!names.length)
    return h("div", { class: "selection" }, h("span", { class: "faint" }, "No heads selected."));
  const most = 24;
  const chips = names
    .slice(0, most)
    .map((name) =>
      h(
        "a",
        { class: "chip", href: address("head", { ...here().params, head: name }) },
        name,
        h("span", { class: "faint" }, ` ${number(lookUp(picture, name).value)}`),
      ),
    );
  const rest =
    names.length > most ? h("span", { class: "faint" }, `and ${names.length - most} more`) : null;
  return h(
    "div",
    { class: "selection" },
    h("strong", {}, `${names.length} selected`),
    ...chips,
    rest,
    h(
      "button",
      { type: "button", class: "button small", id: "clear", click: () => select(new Set()) },
      "Clear",
    ),
  );
}

/** @param {RunDetail} run */
function leftOut(run) {
  const items = Object.entries(run.left_out);
  if (!items.length) return null;
  return h(
    "section",
    { class: "left-out" },
    h("h2", {}, "Left out"),
    h(
      "ul",
      {},
      ...items.map(([name, reason]) => h("li", {}, h("strong", {}, name), `: ${reason}`)),
    ),
  );
}
