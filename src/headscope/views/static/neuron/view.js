/**
 * The neuron view: how query and keys of one head make the weights of one token.
 *
 * @typedef {import("../core/data.js").Data} Data
 * @typedef {import("../core/data.js").Stack} Stack
 * @typedef {import("../core/state.js").Store} Store
 * @typedef {import("../core/state.js").State} State
 * @typedef {import("../core/colors.js").Theme} Theme
 * @typedef {import("../app.js").View} View
 * @typedef {import("./table.js").Rows} Rows
 */

import { element, segments } from "../core/controls.js";
import { keysOf } from "../core/data.js";
import { headControl, layerControl, settingControl, stackControl } from "../core/filters.js";
import { describe, lookOf } from "../head/view.js";
import { loadHead, neuronOrder, takeApart } from "./neurons.js";
import { neuronScene } from "./scene.js";
import { NeuronTable } from "./table.js";
import { QueryList } from "./queries.js";
import { Stage } from "../head/stage.js";
import { drawingOf } from "../core/units.js";

/**
 * @param {HTMLElement} root
 * @param {Data} data
 * @param {Store} store
 * @param {() => Theme} theme
 * @returns {View}
 */
export function neuronView(root, data, store, theme) {
  const controls = neuronControls(data, store);
  const readout = element("p", { class: "hs-readout", role: "status" });
  const body = element("div", { class: "hs-neuron-view" });
  const frame = element("div", { class: "hs-frame" });
  root.append(element("div", { class: "hs-bar" }, ...controls.map(({ node }) => node)), readout, body, frame);
  const choose = (/** @type {number} */ query) => store.set({ pinned: `q${query}` });
  const list = new QueryList(body, choose);
  const table = new NeuronTable(body);
  /** @type {import("../core/units.js").Drawing | null} */
  let drawing = null;
  const stage = new Stage(
    frame,
    (pin) => pin?.side === "q" && choose(pin.index),
    (focus) => drawing && !store.state.expanded && readout.replaceChildren(...describe(drawing, focus)),
  );

  const update = async () => {
    for (const control of controls) control.update();
    const state = store.state;
    const stack = data.stack(state.stack);
    const weights = await data.weights(stack, "raw", state.layer, state.window);
    if (state !== store.state) return;
    const query = queryOf(stack, state);
    body.hidden = !state.expanded;
    frame.hidden = state.expanded;
    drawing = drawingOf(stack, weights, { ...state, unit: "token", pair: "all", hide: [] }, [state.head]);
    if (!state.expanded) {
      const look = lookOf(data, stack, state, drawing, theme());
      stage.show({ drawing, look, direction: "vertical", mass: state.mass, pin: { side: "q", index: query } });
      return;
    }
    const rows = await rowsOf(data, stack, state, query, theme());
    if (state !== store.state) return;
    list.show(stack.queries.labels, query);
    table.show(rows);
    readout.replaceChildren(note(rows, drawing.weights[0]));
  };
  return {
    update,
    scene: () => (store.state.expanded ? neuronScene(table.current()) : stage.scene()),
    lines: () => (store.state.expanded ? [] : stage.drawn),
    title: () => `${data.header.model} · layer ${store.state.layer} · head ${store.state.head} · neurons`,
    remove: () => stage.remove(),
  };
}

/** @param {Data} data @param {Store} store */
function neuronControls(data, store) {
  const shapes = [
    { value: "true", text: "Expanded" },
    { value: "false", text: "Collapsed" },
  ];
  return [
    stackControl(data, store),
    layerControl(data, store),
    headControl(data, store),
    settingControl(store, "neurons"),
    segments("Vectors", shapes, () => String(store.state.expanded), (value) => store.set({ expanded: value === "true" })),
  ];
}

/** The pinned query token, or the last one that is not special. @param {Stack} stack @param {State} state */
function queryOf(stack, state) {
  if (state.pinned?.startsWith("q")) return Number(state.pinned.slice(1));
  return Math.max(0, stack.queries.special.lastIndexOf(0));
}

/** @param {Data} data @param {Stack} stack @param {State} state @param {number} query @param {Theme} theme @returns {Promise<Rows>} */
async function rowsOf(data, stack, state, query, theme) {
  const head = await loadHead(data, stack, state.layer, state.head);
  const parts = takeApart(head, query);
  const order = neuronOrder(parts, head.dim, state.neurons);
  return { head, parts, query, queryLabel: stack.queries.labels[query], labels: keysOf(stack).labels, order, theme };
}

/** @param {Rows} rows @param {Float32Array} recorded  query × key @returns {string} */
function note({ head, parts, query }, recorded) {
  const difference = parts.weights.reduce((most, weight, key) => Math.max(most, Math.abs(weight - recorded[query * head.keys + key])), 0);
  const shared = head.sharing.length > 1 ? ` Heads ${head.sharing.join(", ")} share these keys.` : "";
  const words = difference < 0.005 ? "" : " The model does something here that these steps do not show.";
  return `Computed here from query and keys; the recorded weights differ by at most ${difference.toExponential(0)}.${words}${shared}`;
}
