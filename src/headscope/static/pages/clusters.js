/** Clusters: heads that attend alike lie close together. */

import { ask } from "../explorer/api.js";
import { h } from "../ui/dom.js";
import { figure } from "../charts/figure.js";
import { number, plain } from "../ui/format.js";
import { legendItem } from "../charts/coloring.js";
import { UNNAMED, roleColor } from "../explorer/look.js";
import { withoutName } from "../explorer/heads.js";
import { go } from "../explorer/place.js";
import { scatter } from "../charts/scatter.js";
import { pageTitle } from "./parts.js";

/**
 * @import { Page } from "../explorer/main.js"
 * @import { Clusters, MappedHead } from "../explorer/types.js"
 */

/** @type {Page} */
export const clustersPage = {
  needsRun: true,
  fluid: true,
  async render(context) {
    const slug = context.run?.slug ?? "";
    return { nodes: page(context.room, slug, await ask("runs/{run}/clusters", slug)) };
  },
};

/** @param {number} room @param {string} run @param {Clusters} map @returns {Node[]} */
function page(room, run, map) {
  const { look, legend } = byBehaviour(map);
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
    return x === null || y === null ? [] : [{ name, x, y, ...look(head) }];
  });
  const width = room - 34;
  const drawing = scatter(points, {
    width,
    height: Math.min(560, Math.max(360, width * 0.62)),
    label: "Heads by likeness",
    bare: true,
    named: true,
    onOpen: (name) => go("head", { run, head: name }),
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
  return [
    pageTitle("Which heads are alike?"),
    legend,
    figure({ title: "Heads by likeness", drawing, rows, caption }),
  ];
}

/**
 * A colour for each group of behaviours, a shape within it: the same in every run.
 * @param {Clusters} map
 */
function byBehaviour(map) {
  const named = new Map(map.behaviours.map((one) => [one.name, one]));
  const lookOf = ({ group = UNNAMED, number: at = 0 } = {}) => ({
    color: roleColor(group),
    shape: at % 5,
    hollow: group === UNNAMED,
  });
  const items = map.behaviours.map((one) => {
    const { color, shape, hollow } = lookOf(one);
    return legendItem(color, shape, plain(one.name), hollow);
  });
  return {
    look: (/** @type {MappedHead} */ head) => lookOf(named.get(head.behaviour ?? "")),
    legend: h("p", { class: "legend" }, ...items),
  };
}
