/**
 * The model view: every layer and head as a thumbnail, one of them enlarged on demand.
 *
 * @typedef {import("../core/data.js").Data} Data
 * @typedef {import("../core/data.js").Stack} Stack
 * @typedef {import("../core/state.js").Store} Store
 * @typedef {import("../core/state.js").State} State
 * @typedef {import("../core/units.js").Drawing} Drawing
 * @typedef {import("../core/colors.js").Theme} Theme
 * @typedef {import("../app.js").View} View
 */

import { button, chips, choice, element, toggle } from "../core/controls.js";
import { hideControls, massControl, pairControl, settingControl, stackControl, weightsControl, windowControls } from "../core/filters.js";
import { Enlarged } from "./enlarged.js";
import { modelScene } from "./scene.js";
import { Sheet } from "./sheet.js";
import { drawingOf } from "../core/units.js";

/**
 * @param {HTMLElement} root
 * @param {Data} data
 * @param {Store} store
 * @param {() => Theme} theme
 * @returns {View}
 */
export function modelView(root, data, store, theme) {
  const hide = hideControls(data, store);
  const controls = [...modelControls(data, store), ...hide.controls, ...numberControls(data, store)];
  const bar = element("div", { class: "hs-bar" }, ...controls.map(({ node }) => node));
  const body = element("div", { class: "hs-model-body" });
  root.append(bar, body);
  const sheet = new Sheet(body, data, store);
  const enlarged = new Enlarged(body, data, store);
  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && store.state.enlarged) store.set({ enlarged: false });
  });

  let drawnWith = "";
  const update = async () => {
    for (const control of controls) control.update();
    const state = store.state;
    body.classList.toggle("hs-split", state.enlarged);
    sheet.mark();
    const wanted = JSON.stringify([gridState(state), theme(), body.clientWidth]);
    if (wanted !== drawnWith) {
      drawnWith = wanted;
      sheet.build(theme());
    }
    await Promise.all([sheet.visible, enlarged.update(theme())]);
    const stack = data.stack(state.stack);
    if (state === store.state) hide.showMass(drawingOf(stack, await data.weights(stack, state.weights, state.layer, state.window), state, stack.heads));
  };
  return {
    update,
    finished: () => sheet.finished,
    scene: () => modelScene(sheet, store.state.enlarged ? enlarged.scene() : null, theme()),
    lines: () => (store.state.enlarged ? enlarged.lines() : []),
    title: () => `${data.header.model} · model view`,
    remove: () => enlarged.stage.remove(),
  };
}

/** What the thumbnails depend on. @param {State} state */
function gridState(state) {
  const { layer, head, pinned, theme, enlarged, direction, expanded, neurons, ...rest } = state;
  return rest;
}

/** @param {Data} data @param {Store} store */
function modelControls(data, store) {
  return [
    stackControl(data, store),
    ...windowControls(data, store),
    weightsControl(data, store),
    settingControl(store, "thumbnail"),
    settingControl(store, "unit"),
    massControl(store),
    pairControl(data, store),
    ...orderControls(data, store),
  ];
}

/** @param {Data} data @param {Store} store */
function orderControls(data, store) {
  const names = () => ["number", ...Object.keys(data.stack(store.state.stack).scores)].map((name) => ({ value: name, text: name }));
  const order = choice("Order by", names, () => store.state.order, (value) => store.set({ order: value }));
  const turn = button("", "Turn the order round", () => store.set({ ascending: !store.state.ascending }));
  order.node.append(turn);
  const update = order.update;
  order.update = () => {
    update();
    turn.hidden = store.state.order === "number";
    turn.textContent = store.state.ascending ? "low first" : "high first";
  };
  const ranked = toggle("Across layers", () => store.state.ranked, (on) => store.set({ ranked: on }));
  const follow = ranked.update;
  ranked.update = () => {
    follow();
    ranked.node.hidden = store.state.order === "number";
  };
  return [order, ranked];
}

/** @param {Data} data @param {Store} store */
function numberControls(data, store) {
  const stack = () => data.stack(store.state.stack);
  return [
    chips("Layers", () => stack().layers, () => store.state.layers, (layers) => store.set({ layers }), () => null),
    chips("Heads", () => stack().heads, () => store.state.heads, (heads) => store.set({ heads }), () => null),
  ];
}
