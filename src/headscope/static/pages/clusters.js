/** Clusters: heads that attend alike lie close together. */

import { ask } from "../explorer/api.js";
import { measureMenus, menu, validSpec } from "../explorer/controls.js";
import { h } from "../ui/dom.js";
import { figure } from "../charts/figure.js";
import { number, plain } from "../ui/format.js";
import { byLayer, byMeasure, legendItem } from "../charts/coloring.js";
import { UNNAMED, roleColor } from "../explorer/look.js";
import { withoutName } from "../explorer/heads.js";
import { change, go } from "../explorer/place.js";
import { scatter } from "../charts/scatter.js";
import { pageTitle } from "./parts.js";

/**
 * @import { Coloring as HeadColoring } from "../charts/coloring.js"
 * @import { Context, Page } from "../explorer/main.js"
 * @import { Clusters, MappedHead as Head, RunDetail } from "../explorer/types.js"
 */

/**
 * @typedef {HeadColoring & {shape?: (head: Head) => number, hollow?: (head: Head) => boolean}}
 *   Coloring
 *   hollow: heads without a behaviour of their own
 */

/** @type {Page} */
export const clustersPage = {
  needsRun: true,
  fluid: true,
  async render(context) {
    const slug = context.run?.slug ?? "";
    const [run, map] = await Promise.all([
      ask("runs/{run}", slug),
      ask("runs/{run}/clusters", slug),
    ]);
    const by = ["layer", "behaviour", "measure"].includes(context.params.color)
      ? context.params.color
      : map.behaviours.length
        ? "behaviour"
        : "layer";
    const spec = validSpec(run.measures, context.params.measure, "entropy");
    const coloring =
      by === "layer"
        ? byLayer(run.layers)
        : by === "behaviour"
          ? byBehaviour(map)
          : byMeasure(await ask("runs/{run}/measures/{spec}", slug, spec));
    return { nodes: page(context, run, map, by, spec, coloring) };
  },
};

/**
 * @param {Context} context
 * @param {RunDetail} run
 * @param {Clusters} map
 * @param {string} by
 * @param {string} spec
 * @param {Coloring} coloring
 * @returns {Node[]}
 */
function page(context, run, map, by, spec, coloring) {
  const readout = h("p", { class: "readout" });
  const tell = (/** @type {string | null} */ name) => {
    const head = map.heads.find((one) => one.name === name);
    readout.replaceChildren(
      ...(head
        ? [
            h("strong", {}, head.name),
            head.behaviour ? h("span", { class: "faint" }, `  ${plain(head.behaviour)}`) : "",
            head.looks ? h("span", {}, `  ${withoutName(head.name, head.looks)}`) : "",
          ]
        : ["Point at a head for its name; click or Enter opens its card."]),
    );
  };
  tell(null);
  const points = map.heads.flatMap((head) => {
    const { name, x, y } = head;
    const look = {
      color: coloring.color(head),
      shape: coloring.shape?.(head),
      hollow: coloring.hollow?.(head),
    };
    return x === null || y === null ? [] : [{ name, x, y, ...look }];
  });
  const width = context.room - 34;
  const drawing = scatter(points, {
    width,
    height: Math.min(560, Math.max(360, width * 0.62)),
    label: "Heads by likeness",
    bare: true,
    named: true,
    onOpen: (name) => go("head", { run: run.slug, head: name }),
    onLook: tell,
  });
  const rows = () => [
    ["name", "x", "y", "behaviour"],
    ...map.heads.map((one) => [one.name, one.x, one.y, one.behaviour]),
  ];
  const stress = map.stress === null ? "" : ` Normalised stress ${number(map.stress)}.`;
  const means =
    "Distances approximate the Jensen–Shannon divergence between heads (metric MDS); the " +
    `axes have no meaning of their own.${stress}`;
  const caption = h("div", {}, readout, h("p", {}, means));
  const options = [
    { value: "behaviour", text: "Behaviour" },
    { value: "layer", text: "Layer" },
    { value: "measure", text: "A measure" },
  ].filter((one) => one.value !== "behaviour" || map.behaviours.length);
  const colors = menu({
    id: "color",
    label: "Colour",
    options,
    value: by,
    onChange: (color) => change({ color }),
  });
  const measures = measureMenus("measure", "Measure", run.measures, spec, (measure) =>
    change({ measure }),
  );
  return [
    pageTitle("Which heads are alike?"),
    h("div", { class: "controls" }, colors, by === "measure" && measures),
    coloring.legend,
    figure({ title: "Heads by likeness", drawing, rows, caption }),
  ];
}

/** @param {Clusters} map @returns {Coloring} */
function byBehaviour(map) {
  const named = new Map(map.behaviours.map((one) => [one.name, one]));
  const look = (/** @type {Head} */ head) => named.get(head.behaviour ?? "");
  // A colour for each group of behaviours, a shape within it: the same in every run.
  const shapeAt = (/** @type {{number: number} | undefined} */ one) => (one?.number ?? 0) % 5;
  const items = map.behaviours.map((one) =>
    legendItem(roleColor(one.group), shapeAt(one), plain(one.name), one.group === UNNAMED),
  );
  return {
    color: (head) => roleColor(look(/** @type {Head} */ (head))?.group ?? UNNAMED),
    shape: (head) => shapeAt(look(head)),
    hollow: (head) => (look(head)?.group ?? UNNAMED) === UNNAMED,
    legend: h("p", { class: "legend" }, ...items),
  };
}
