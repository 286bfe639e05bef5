/**
 * Overview: one measure over all heads, its layers, its distribution, and its relation to another.
 */

import { ask } from "../explorer/api.js";
import { measureMenus, validSpec } from "../explorer/controls.js";
import { h } from "../ui/dom.js";
import { figure } from "../charts/figure.js";
import { counted, finite, number, withError } from "../ui/format.js";
import { gridRows, heatmap, lookUp } from "../charts/heatmap.js";
import { histogram } from "../charts/histogram.js";
import { ink } from "../explorer/look.js";
import { address, change, go } from "../explorer/place.js";
import { layerProfile } from "../charts/profile.js";
import { fold, pageTitle } from "./parts.js";

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
    const run = await ask("runs/{run}", slug);
    if (!run.measures.length) return { nodes: await withoutMeasures(run) };
    const spec = validSpec(run.measures, context.params.measure, firstMeasure(run));
    const picture = await ask("runs/{run}/measures/{spec}", slug, spec);
    return { nodes: page(context, run, picture, spec) };
  },
};

/**
 * A run of an older version is refused with the way to mend it.
 * @param {RunDetail} run
 * @returns {Promise<Node[]>}
 */
async function withoutMeasures(run) {
  await ask("runs/{run}/statements", run.slug);
  const note = h("p", { class: "note" }, "This run declares no measure of heads.");
  return [title(run), note, leftOut(run)].filter((node) => node !== null);
}

/** What portraits explain, where there are any. @param {RunDetail} run @returns {string} */
function firstMeasure(run) {
  return run.measures.some((one) => one.name === "explained") ? "explained" : run.first[0];
}

/**
 * @param {Context} context
 * @param {RunDetail} run
 * @param {Picture} picture
 * @param {string} spec
 * @returns {Node[]}
 */
function page(context, run, picture, spec) {
  const readout = h("p", { class: "readout", id: "readout" });
  const tell = (/** @type {string | null} */ name) =>
    readout.replaceChildren(...describe(picture, name));
  tell(null);
  const wide = context.room > 900;
  const side = wide ? 250 : context.room;
  const map = heatmap(picture, {
    label: `${picture.title}: layers by heads`,
    room: (wide ? context.room - side - 24 : context.room) - 34,
    onOpen: (name) => go("head", { run: run.slug, head: name }),
    onLook: tell,
  });
  const menus = measureMenus("measure", "Measure", run.measures, spec, (next) =>
    change({ measure: next }),
  );
  const grid = figure({
    title: picture.title,
    drawing: map.drawing,
    rows: () => gridRows(picture),
    caption: mapCaption(picture, readout),
    kind: "grow",
  });
  const profile = profileFigure(picture, map, side);
  return [
    title(run),
    h("div", { class: "controls" }, menus),
    h("div", { class: "split", "data-wide": String(wide) }, grid, profile),
    details(context, distribution(picture, context.room), against(run, spec)),
    leftOut(run),
  ].filter((node) => node !== null);
}

/**
 * What is folded until it is asked for; the address remembers it.
 * @param {Context} context
 * @param {Node[]} nodes
 */
function details({ params }, ...nodes) {
  const node = fold("Distribution", ...nodes);
  node.open = params.more !== undefined;
  node
    .querySelector("summary")
    ?.addEventListener("click", () =>
      change({ more: node.open ? null : "1" }, { replace: true, quiet: true }),
    );
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
  return pageTitle("Which heads?", h("p", { class: "faint" }, facts.join(" · ")));
}

/** @param {Picture} picture @param {string | null} name @returns {(Node | string)[]} */
function describe(picture, name) {
  const hint = "Point at a head for its value; click or Enter opens its card.";
  if (!name) return [hint];
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
  const { formula, reference, published } = picture;
  const source = reference ? ` (${reference})` : "";
  const value = published && published.value !== null ? `${published.value}, ` : "";
  return h(
    "div",
    {},
    readout,
    h("p", {}, parts.filter(Boolean).join(" ")),
    formula ? h("p", {}, h("span", { class: "formula" }, formula), source) : null,
    published && h("p", {}, `Published: ${value}${published.says} (${published.source}).`),
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
  const means = `Baseline ${number(baseline)}: ${picture.baseline?.means}.`;
  const line = baseline === null ? null : h("p", {}, h("span", { class: "swatch dash" }), means);
  const errors = picture.profile.errors ? "; lines are 95 % intervals" : "";
  const caption = h("div", {}, h("p", {}, `By layer, ${kind}${errors}.`), line);
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
    width: Math.min(900, room - 34),
    height: 300,
    label: `Distribution of ${picture.title}`,
    axis: picture.title,
  });
  const said =
    `${counted(values.length, "head")}: mean ${number(mean)} (dashed), standard deviation ` +
    `${number(spread)}, from ${number(Math.min(...values))} to ${number(Math.max(...values))}.`;
  const caption = h("p", {}, said);
  return figure({ title: "Distribution", drawing, rows: () => gridRows(picture), caption });
}

/** Where the measure stands against another. @param {RunDetail} run @param {string} spec */
function against(run, spec) {
  const href = address("finder", { run: run.slug, y: spec });
  return h("p", {}, h("a", { href }, "Against another measure"), ", head by head.");
}

/** @param {RunDetail} run */
function leftOut(run) {
  const items = Object.entries(run.left_out);
  if (!items.length) return null;
  const list = items.map(([name, reason]) => h("li", {}, h("strong", {}, name), `: ${reason}`));
  return h("section", { class: "left-out" }, h("h2", {}, "Left out"), h("ul", {}, ...list));
}
