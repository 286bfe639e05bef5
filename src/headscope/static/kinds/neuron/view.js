/** The neuron view: how query and keys of one head make the weights of one token. */

import { choice } from "../../ui/controls.js";
import { h } from "../../ui/dom.js";
import { sized } from "../../draw/pixels.js";
import { keysOf } from "../shared/data.js";
import { numberControl, settingControl, stackControl } from "../shared/filters.js";
import { nameHead } from "../../ui/heads.js";
import { cutoffs, tokenLines } from "../shared/lines.js";
import { paintAll } from "../../draw/scene.js";
import { LEGEND, legendShapes } from "./legend.js";
import { keyOrder, loadHead, neuronOrder, takeApart, withKeys } from "./neurons.js";
import { neuronScene } from "./scene.js";
import { largest } from "./strips.js";
import { softmaxShapes } from "./sums.js";
import { columnsOf, NeuronTable, sizesOf } from "./table.js";
import { QueryList } from "./queries.js";
import { drawingOf } from "../shared/units.js";
import { aboutLine, worthControl } from "../shared/worth.js";

/**
 * @import { View } from "../../entry/app.js"
 * @import { Theme } from "../../ui/colors.js"
 * @import { Data, Stack } from "../shared/data.js"
 * @import { Line } from "../shared/lines.js"
 * @import { State } from "../shared/settings.js"
 * @import { Store } from "../shared/state.js"
 * @import { Rows } from "./table.js"
 */

const PLOT = { width: 420, height: 210 };

/**
 * @param {HTMLElement} root
 * @param {Data} data
 * @param {Store} store
 * @param {() => Theme} theme
 * @returns {View}
 */
export function neuronView(root, data, store, theme) {
  const { first, rest } = neuronControls(data, store);
  const readout = h("p", { class: "hs-readout", role: "status" });
  const body = h("div", { class: "hs-neuron-view" });
  const steps = h("div", { class: "hs-neuron-steps" });
  const shown = () => ({ layer: store.state.layer, heads: [store.state.head] });
  const worth = worthControl(data, store, shown, ({ layer, head }) => store.set({ layer, head }));
  root.append(aboutLine(worth), readout, body, steps);
  const list = new QueryList(body, (query) => store.set({ pinned: `q${query}` }));
  const table = new NeuronTable(
    h("div", {
      class: "hs-neuron-scroll",
      tabindex: "0",
      role: "region",
      "aria-label": "Weights and what they are made of",
    }),
    (key) => plotSoftmax(steps, table.current(), key),
  );
  if (table.root.parentElement) body.append(table.root.parentElement);
  /** @type {Line[]} */
  let lines = [];

  const update = async () => {
    worth.update();
    const state = store.state;
    const stack = data.stack(state.stack);
    const weights = await data.weights(stack, "raw", state.layer, state.window);
    if (state !== store.state) return;
    const query = queryOf(stack, state);
    const room = body.clientWidth || root.clientWidth;
    const rows = await rowsOf(data, stack, state, query, theme(), room);
    if (state !== store.state) return;
    body.classList.toggle("hs-beside", rows.sizes.own > 0);
    list.show(rows);
    table.show(rows);
    fillSteps(steps, rows);
    const all = { unit: "token", pair: "all", hide: [], attending: null, attended: null };
    const drawing = drawingOf(stack, weights, { ...state, ...all }, [state.head]);
    lines = tokenLines(drawing, cutoffs(drawing, state.mass), "q", query);
    readout.replaceChildren(note(rows, drawing.weights[0]));
  };
  return {
    first,
    rest,
    update,
    caveats: () => [],
    scene: () => neuronScene(table.current()),
    lines: () => lines,
    title: () =>
      `${data.header.model} · layer ${store.state.layer} · head ${store.state.head} · neurons`,
    remove: () => {},
  };
}

/** @param {Data} data @param {Store} store */
function neuronControls(data, store) {
  const stack = () => data.stack(store.state.stack);
  const tokens = () =>
    stack().queries.labels.map((text, index) => ({
      value: String(index),
      text: `${index} ${text}`,
    }));
  const query = choice(
    "From token",
    tokens,
    () => String(queryOf(stack(), store.state)),
    (index) => store.set({ pinned: `q${index}` }),
  );
  query.node.classList.add("hs-narrow");
  return {
    first: [
      stackControl(data, store),
      numberControl(data, store, "layer"),
      numberControl(data, store, "head"),
      query,
    ],
    rest: [settingControl(store, "sort"), settingControl(store, "neurons")],
  };
}

/**
 * The pinned query token, or the last one that is not special.
 * @param {Stack} stack
 * @param {State} state
 */
function queryOf(stack, state) {
  // The first of several.
  if (state.pinned?.startsWith("q")) return parseInt(state.pinned.slice(1), 10);
  return Math.max(0, stack.queries.special.lastIndexOf(0));
}

/**
 * @param {Data} data
 * @param {Stack} stack
 * @param {State} state
 * @param {number} query
 * @param {Theme} theme
 * @param {number} room
 * @returns {Promise<Rows>}
 */
async function rowsOf(data, stack, state, query, theme, room) {
  const loaded = await loadHead(data, stack, state.layer, state.head);
  const keys = keyOrder(takeApart(loaded, query), state.sort);
  const head = withKeys(loaded, keys);
  const parts = takeApart(head, query);
  const order = neuronOrder(parts, head.dim, state.neurons);
  const name = nameHead(state.layer, state.head);
  const most = {
    vectors: Math.max(largest(head.query), largest(head.key)),
    products: largest(parts.products),
  };
  return {
    head,
    parts,
    query,
    name,
    number: state.head,
    queries: stack.queries.labels,
    keys,
    labels: keys.map((key) => keysOf(stack).labels[key]),
    order,
    theme,
    most,
    sizes: sizesOf(
      head.dim,
      columnsOf({ head, parts, query }).length,
      room,
      stack.queries.labels.length,
    ),
  };
}

/** The legend, and the step from score to weight. @param {HTMLElement} steps @param {Rows} rows */
function fillSteps(steps, rows) {
  const { most, theme } = rows;
  const legend = h("canvas", {
    role: "img",
    "aria-label": "Blue is positive, orange negative; stronger is larger",
    class: "hs-legend",
  });
  paintAll(sized(legend, LEGEND.width, 2 * LEGEND.height), [
    ...legendShapes("query, key", most.vectors, [0, 4], theme),
    ...legendShapes("query × key", most.products, [0, 4 + LEGEND.height], theme),
  ]);
  const plot = h("canvas", {
    class: "hs-softmax",
    role: "img",
    "aria-label": "Weight against score: e to the score, divided by the sum over all keys",
  });
  const caption = h(
    "p",
    { class: "hs-faint" },
    "From score to weight, the softmax: e^score, divided by the sum of all of them. A score " +
      "larger by 1 means 2.7 times the weight.",
  );
  steps.replaceChildren(h("div", {}, plot, caption), h("div", {}, legend));
  plotSoftmax(steps, rows, null);
}

/** @param {HTMLElement} steps @param {Rows} rows @param {number | null} key  the one pointed at */
function plotSoftmax(steps, rows, key) {
  const plot = /** @type {HTMLCanvasElement | null} */ (steps.querySelector(".hs-softmax"));
  if (!plot) return;
  const pen = sized(plot, PLOT.width, PLOT.height);
  paintAll(pen, softmaxShapes(rows, { x: 0, y: 0, ...PLOT }, key));
}

/** @param {Rows} rows @param {Float32Array} recorded  query × key @returns {string} */
function note({ head, parts, query, name, keys }, recorded) {
  const difference = parts.weights.reduce(
    (most, weight, row) =>
      Math.max(most, Math.abs(weight - recorded[query * head.keys + keys[row]])),
    0,
  );
  const shared =
    head.sharing.length > 1 ? ` Heads ${head.sharing.join(", ")} share these keys.` : "";
  const words =
    difference < 0.005 ? "" : " The model does something here that these steps do not show.";
  return (
    `${name}, computed here from query and keys; the recorded weights differ by at most ` +
    `${difference.toExponential(0)}.${words}${shared}`
  );
}
