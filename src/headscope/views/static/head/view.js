/**
 * The head view: one layer, a line per pair of tokens and head.
 *
 * @typedef {import("../core/data.js").Data} Data
 * @typedef {import("../core/data.js").Stack} Stack
 * @typedef {import("../core/state.js").Store} Store
 * @typedef {import("../core/state.js").State} State
 * @typedef {import("./stage.js").Focus} Focus
 * @typedef {import("../core/units.js").Drawing} Drawing
 * @typedef {import("./shapes.js").Look} Look
 * @typedef {import("./shapes.js").Pin} Pin
 * @typedef {import("../core/colors.js").Theme} Theme
 * @typedef {import("../app.js").View} View
 */

import { headColor } from "../core/colors.js";
import { chips, element } from "../core/controls.js";
import { hideControls, layerControl, massControl, pairControl, percent, settingControl, stackControl, weightsControl, windowControls } from "../core/filters.js";
import { nameWithinLayer } from "../core/heads.js";
import { format } from "./shapes.js";
import { Stage } from "./stage.js";
import { drawingOf, massTo } from "../core/units.js";

/**
 * @param {HTMLElement} root
 * @param {Data} data
 * @param {Store} store
 * @param {() => Theme} theme
 * @returns {View}
 */
export function headView(root, data, store, theme) {
  const hide = hideControls(data, store);
  const heads = chips(
    "Heads",
    () => data.stack(store.state.stack).heads,
    () => store.state.heads,
    (numbers) => store.set({ heads: numbers }),
    (head) => headColor(theme(), head),
  );
  const controls = [
    stackControl(data, store), layerControl(data, store), ...windowControls(data, store), weightsControl(data, store), settingControl(store, "unit"), settingControl(store, "direction"),
    massControl(store), ...hide.controls, pairControl(data, store), heads,
  ];
  const bar = element("div", { class: "hs-bar" }, ...controls.map(({ node }) => node));
  const readout = element("p", { class: "hs-readout", role: "status" });
  const frame = element("div", { class: "hs-frame" });
  root.append(bar, readout, frame);

  /** @type {Drawing | null} */
  let drawing = null;
  const stage = new Stage(
    frame,
    (pin) => store.set({ pinned: pin && drawing && pinName(pin, drawing) }),
    (focus) => drawing && readout.replaceChildren(...describe(drawing, focus)),
  );

  const update = async () => {
    for (const control of controls) control.update();
    const state = store.state;
    const stack = data.stack(state.stack);
    const layer = await data.weights(stack, state.weights, state.layer, state.window);
    if (state !== store.state) return;
    const rollout = state.weights === "rollout";
    heads.node.toggleAttribute("inert", rollout);
    drawing = drawingOf(stack, layer, state, rollout ? layer.heads : state.heads);
    hide.showMass(drawing);
    const look = lookOf(data, stack, state, drawing, theme());
    stage.show({ drawing, look, direction: state.direction, mass: state.mass, pin: pinFrom(state.pinned, drawing) });
  };
  return { update, scene: () => stage.scene(), lines: () => stage.drawn, title: () => titleOf(data, store.state), remove: () => stage.remove() };
}

/** @param {Data} data @param {Stack} stack @param {State} state @param {Drawing} drawing @param {Theme} theme @returns {Look} */
export function lookOf(data, stack, state, drawing, theme) {
  const begins = stack.name === "encoder" ? null : data.header.prompt;
  const unit = begins === null ? -1 : drawing.queries.members.findIndex((tokens) => drawing.queries.start + tokens[0] >= begins);
  return { theme, prompt: unit > 0 ? unit : null, crossing: stack.name === "cross" };
}

/** The pinned token's place in the drawing, null where it lies outside. @param {string | null} pinned @param {Drawing} drawing @returns {Pin | null} */
export function pinFrom(pinned, drawing) {
  if (!pinned) return null;
  const side = /** @type {"q" | "k"} */ (pinned[0]);
  const { first, labels } = side === "q" ? drawing.queries : drawing.keys;
  const index = Number(pinned.slice(1)) - first;
  return index >= 0 && index < labels.length ? { side, index } : null;
}

/** @param {Pin} pin @param {Drawing} drawing @returns {string} */
export function pinName({ side, index }, drawing) {
  return `${side}${index + (side === "q" ? drawing.queries : drawing.keys).first}`;
}

/** @param {Data} data @param {State} state @returns {string} */
function titleOf(data, state) {
  const heads = state.weights === "rollout" ? "rollout" : `heads ${state.heads.join(", ")}`;
  return `${data.header.model} · layer ${state.layer} · ${heads}`;
}

/**
 * What is under the pointer, in words.
 * @param {Drawing} drawing
 * @param {Focus} focus
 * @returns {(Node | string)[]}
 */
export function describe(drawing, focus) {
  if (drawing.heads.length === 0) return ["No head is shown. Turn one on above."];
  if (!focus.pin) return [overviewNote(focus)];
  if (focus.pair) return describePair(drawing, focus.pin, focus.pair);
  return describeToken(drawing, focus.pin);
}

/** @param {Focus} focus @returns {string} */
function overviewNote({ drawn, total }) {
  const hint = "Point at a token for its weights, click to pin it.";
  if (drawn === total) return `${total.toLocaleString("en")} lines. ${hint}`;
  return `The strongest ${drawn.toLocaleString("en")} of ${total.toLocaleString("en")} lines. ${hint}`;
}

/** @param {Drawing} drawing @param {Pin} pin @returns {(Node | string)[]} */
function describeToken(drawing, pin) {
  const isQuery = pin.side === "q";
  const units = isQuery ? drawing.queries : drawing.keys;
  const name = bold(units.labels[pin.index]);
  const place = units.first + pin.index;
  if (!isQuery) return [name, ` (${place}) as seen from every token`];
  const hidden = massTo(drawing, (key) => !drawing.keys.kept[key], pin.index);
  const rest = hidden > 0 ? ` · ${percent(hidden)} of it to hidden tokens` : "";
  return [name, ` (${place}) looks at these tokens${rest}`];
}

/** @param {Drawing} drawing @param {Pin} pin @param {Pin} other @returns {(Node | string)[]} */
function describePair(drawing, pin, other) {
  const query = pin.side === "q" ? pin.index : other.index;
  const key = pin.side === "k" ? pin.index : other.index;
  const columns = drawing.keys.labels.length;
  const each = drawing.heads.map((head, place) => `${nameWithinLayer(head)} ${format(drawing.weights[place][query * columns + key])}`);
  const numbers = element("span", { class: "hs-number" }, each.join("  "));
  return [bold(drawing.queries.labels[query]), " → ", bold(drawing.keys.labels[key]), "  ", numbers];
}

/** @param {string} text @returns {HTMLElement} */
export function bold(text) {
  const made = element("bdi", { class: "hs-name" });
  made.textContent = text;
  return made;
}
