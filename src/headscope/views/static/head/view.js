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

import { controlBar } from "../core/bar.js";
import { headColor } from "../core/colors.js";
import { chips, element } from "../core/controls.js";
import { hideControls, layerControl, massControl, pairControl, percent, settingControl, stackControl, weightsControl, windowControls } from "../core/filters.js";
import { nameHead, nameLayer } from "../core/heads.js";
import { format } from "./shapes.js";
import { Stage } from "./stage.js";
import { drawingOf, isShown, massTo } from "../core/units.js";
import { hiddenControl, worthControl } from "../core/worth.js";

const TOLD = 3; // tokens, or heads, that the readout names

/**
 * @param {HTMLElement} root
 * @param {Data} data
 * @param {Store} store
 * @param {() => Theme} theme
 * @returns {View}
 */
export function headView(root, data, store, theme) {
  const hide = hideControls(data, store);
  const hidden = hiddenControl(store);
  const heads = headChips(data, store, theme);
  const worth = worthControl(data, store, () => store.state, ({ layer, head }) => store.set({ layer, heads: [head], pinned: null }));
  const first = [stackControl(data, store), layerControl(data, store), ...windowControls(data, store), heads];
  const rest = [massControl(store), ...hide.controls, settingControl(store, "unit"), pairControl(data, store), weightsControl(data, store), settingControl(store, "direction")];
  const controls = [...first, ...rest, worth, hidden];
  const readout = element("p", { class: "hs-readout", role: "status" });
  const frame = element("div", { class: "hs-frame" });
  root.append(controlBar(first, rest), worth.node, hidden.node, readout, frame);

  /** @type {Drawing | null} */
  let drawing = null;
  const stage = new Stage(
    frame,
    (pin) => store.set({ pinned: pin && drawing && pinName(pin, drawing) }),
    (focus) => drawing && readout.replaceChildren(...describe(drawing, focus, nameOf(store.state))),
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
    hidden.say(`${percent(hiddenMass(drawing))} of the attention shown here goes there.`);
    const look = lookOf(data, stack, state, drawing, theme());
    stage.show({ drawing, look, direction: state.direction, mass: state.mass, pin: pinFrom(state.pinned, drawing) });
  };
  return { update, scene: () => stage.scene(), lines: () => stage.drawn, title: () => titleOf(data, store.state), remove: () => stage.remove() };
}

/** @param {Data} data @param {Store} store @param {() => Theme} theme */
function headChips(data, store, theme) {
  return chips(
    "Heads",
    () => data.stack(store.state.stack).heads,
    () => store.state.heads,
    (numbers) => store.set({ heads: numbers }),
    (head) => headColor(theme(), head),
  );
}

/** @param {Drawing} drawing @returns {number} share of the shown tokens' attention that goes to hidden ones */
function hiddenMass(drawing) {
  return massTo(drawing, (key) => !drawing.keys.kept[key]);
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

/** How the readout names a head. @param {State} state @returns {(head: number) => string} */
export function nameOf(state) {
  return (head) => (state.weights === "rollout" ? `rollout up to ${nameLayer(state.layer)}` : nameHead(state.layer, head));
}

/** @param {Data} data @param {State} state @returns {string} */
function titleOf(data, state) {
  const heads = state.weights === "rollout" ? "rollout" : `heads ${state.heads.join(", ")}`;
  return `${data.header.model} · layer ${state.layer} · ${heads}`;
}

/**
 * What is under the pointer, in words; the head stands beside every number.
 * @param {Drawing} drawing
 * @param {Focus} focus
 * @param {(head: number) => string} nameOf
 * @returns {(Node | string)[]}
 */
export function describe(drawing, focus, nameOf) {
  if (drawing.heads.length === 0) return ["No head is shown. Turn one on above."];
  if (!focus.pin) return [overviewNote(focus)];
  if (focus.pair) return describePair(drawing, focus.pin, focus.pair, nameOf);
  return describeToken(drawing, focus.pin, nameOf);
}

/** @param {Focus} focus @returns {string} */
function overviewNote({ drawn, total }) {
  const hint = "Point at a token for its weights, click to pin it.";
  if (drawn === total) return `${total.toLocaleString("en")} lines. ${hint}`;
  return `The strongest ${drawn.toLocaleString("en")} of ${total.toLocaleString("en")} lines. ${hint}`;
}

/** @param {Drawing} drawing @param {Pin} pin @param {(head: number) => string} nameOf @returns {(Node | string)[]} */
function describeToken(drawing, pin, nameOf) {
  const isQuery = pin.side === "q";
  const units = isQuery ? drawing.queries : drawing.keys;
  const others = isQuery ? drawing.keys : drawing.queries;
  const name = bold(units.labels[pin.index]);
  const place = units.first + pin.index;
  const told = strongest(drawing, pin).flatMap(({ head, other, weight }, i) => [
    i ? " · " : "", number(`${nameOf(head)} ${format(weight)}`), isQuery ? " to " : " from ", bold(others.labels[other]),
  ]);
  const hidden = isQuery ? massTo(drawing, (key) => !drawing.keys.kept[key], pin.index) : 0;
  const rest = hidden > 0 ? ` · ${percent(hidden)} of it to hidden tokens` : "";
  return [name, isQuery ? ` (${place}) looks at these tokens: ` : ` (${place}) as seen from every token: `, ...told, rest];
}

/** The strongest lines of a token. @param {Drawing} drawing @param {Pin} pin @returns {{head: number, other: number, weight: number}[]} */
function strongest(drawing, pin) {
  const shown = (/** @type {number} */ other) => (pin.side === "q" ? isShown(drawing, pin.index, other) : isShown(drawing, other, pin.index));
  /** @type {{head: number, other: number, weight: number}[]} */
  const best = [];
  const columns = drawing.keys.labels.length;
  const others = (pin.side === "q" ? drawing.keys : drawing.queries).labels.length;
  drawing.weights.forEach((values, place) => {
    for (let other = 0; other < others; other++) {
      const weight = values[pin.side === "q" ? pin.index * columns + other : other * columns + pin.index];
      if (weight <= (best.length < TOLD ? 0 : best[TOLD - 1].weight) || !shown(other)) continue;
      best.push({ head: drawing.heads[place], other, weight });
      best.sort((a, b) => b.weight - a.weight).splice(TOLD);
    }
  });
  return best;
}

/** @param {Drawing} drawing @param {Pin} pin @param {Pin} other @param {(head: number) => string} nameOf @returns {(Node | string)[]} */
function describePair(drawing, pin, other, nameOf) {
  const query = pin.side === "q" ? pin.index : other.index;
  const key = pin.side === "k" ? pin.index : other.index;
  const columns = drawing.keys.labels.length;
  const each = drawing.heads.map((head, place) => `${nameOf(head)} ${format(drawing.weights[place][query * columns + key])}`);
  return [bold(drawing.queries.labels[query]), " → ", bold(drawing.keys.labels[key]), "  ", number(each.join("  "))];
}

/** @param {string} text @returns {HTMLElement} */
function number(text) {
  return element("span", { class: "hs-number" }, text);
}

/** @param {string} text @returns {HTMLElement} */
export function bold(text) {
  const made = element("bdi", { class: "hs-name" });
  made.textContent = text;
  return made;
}
