/** The head view: one layer, a line per pair of tokens and head. */

import { headColor } from "../../ui/colors.js";
import { chips } from "../../ui/controls.js";
import { h } from "../../ui/dom.js";
import { caveats } from "../shared/caveats.js";
import { isSummary, keysOf } from "../shared/data.js";
import {
  hideControls,
  massControl,
  numberControl,
  pairControl,
  settingControl,
  spanControls,
  stackControl,
  summaryControl,
  unitControl,
  weightsControl,
  windowControls,
} from "../shared/filters.js";
import { nameHead, nameLayer } from "../../ui/heads.js";
import { percent } from "../../ui/numbers.js";
import { selectionBar } from "../shared/selection.js";
import { SETTINGS } from "../shared/settings.js";
import { ownerOf, parsePin, ranges, spanColor, spansOf, writePin } from "../shared/spans.js";
import { format, isShownWith, weightBetween, weightsBetween } from "./shapes.js";
import { Stage } from "./stage.js";
import { TextStage } from "./text.js";
import { drawingOf, massTo } from "../shared/units.js";
import { aboutLine, hiddenControl, worthControl } from "../shared/worth.js";

/**
 * @import { View } from "../../entry/app.js"
 * @import { Theme } from "../../ui/colors.js"
 * @import { Control } from "../../ui/controls.js"
 * @import { Data, Stack } from "../shared/data.js"
 * @import { Pin } from "../shared/spans.js"
 * @import { State } from "../shared/settings.js"
 * @import { Store } from "../shared/state.js"
 * @import { Drawing, Units } from "../shared/units.js"
 * @import { Look, Run } from "./shapes.js"
 * @import { Focus } from "./stage.js"
 */

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
  const worth = worthControl(
    data,
    store,
    () => (isSummary(store.state) ? { layer: -1, heads: [] } : store.state),
    ({ layer, head }) => store.set({ layer, heads: [head], pinned: null, summary: "each" }),
  );
  const readout = h("p", { class: "hs-readout", role: "status" });
  const frame = h("div", { class: "hs-frame" });
  /** @type {Drawing | null} */
  let drawing = null;
  const onPin = (/** @type {Pin | null} */ pin) =>
    store.set({ pinned: pin && drawing && pinName(pin, drawing) });
  /** @type {Focus | null} */
  let focused = null;
  const onFocus = (/** @type {Focus} */ focus) => {
    focused = focus;
    if (drawing) readout.replaceChildren(...describe(drawing, focus, nameOf(store.state)));
  };
  const stage = new Stage(frame, onPin, onFocus);
  const text = new TextStage(frame, onPin, onFocus);
  const first = [
    stackControl(data, store),
    layersControl(data, store),
    ...windowControls(data, store),
    heads,
  ];
  const rest = [
    summaryControl(data, store),
    ...spanControls(store),
    massControl(store),
    ...hide.controls,
    unitControl(store),
    pairControl(data, store),
    weightsControl(data, store),
    settingControl(store, "layout"),
    text.turn,
  ];
  const selection = selectionBar(
    data,
    store,
    theme,
    (adding) => (stage.selecting.adding = text.selecting.adding = adding),
  );
  root.append(aboutLine(worth, hidden), readout, frame, selection.node);

  root.addEventListener("keydown", (event) => {
    if (
      event.key.toLowerCase() === "s" &&
      event.target instanceof Element &&
      event.target.matches(".hs-token") &&
      !event.ctrlKey &&
      !event.metaKey &&
      selection.name()
    )
      event.preventDefault();
  });

  const update = async () => {
    for (const control of [worth, hidden, selection]) control.update();
    const state = store.state;
    const stack = data.stack(state.stack);
    const layer = await data.shown(stack, state);
    if (state !== store.state) return;
    heads.node.toggleAttribute("inert", state.weights === "rollout");
    drawing = drawingOf(
      stack,
      layer,
      state,
      state.weights === "rollout" || isSummary(state) ? layer.heads : state.heads,
    );
    hide.showMass(drawing);
    hidden.say(`${percent(hiddenMass(drawing))} of the attention shown here goes there.`);
    const look = lookOf(data, stack, state, drawing, theme());
    const isText = state.layout === "text";
    stage.root.hidden = isText;
    text.root.hidden = !isText;
    text.turn.node.hidden = !isText || stack.keys !== null;
    const picture = {
      drawing,
      look,
      mass: state.mass,
      pin: pinFrom(state.pinned, drawing),
    };
    if (isText) text.show({ ...picture, stack, layer });
    else stage.show(picture);
  };
  const shown = () => (store.state.layout === "text" ? text : stage);
  const remove = () => [stage, text].forEach((one) => one.remove());
  return {
    first,
    rest,
    update,
    scene: () => shown().scene(),
    caveats: () => {
      const lines = store.state.layout === "text" ? null : focused;
      return drawing ? caveats(store.state, hiddenMass(drawing), lines) : [];
    },
    lines: () => shown().drawn,
    title: () => titleOf(data, store.state),
    remove,
  };
}

/**
 * One layer, or in a summary the layers that are put together.
 * @param {Data} data
 * @param {Store} store
 * @returns {Control}
 */
function layersControl(data, store) {
  const one = numberControl(data, store, "layer");
  const several = chips(
    "Layers",
    () => data.stack(store.state.stack).layers,
    () => store.state.layers,
    (layers) => store.set({ layers }),
    () => null,
  );
  const node = h("div", { class: "hs-either" }, one.node);
  const update = () => {
    const shown = isSummary(store.state) ? several : one;
    shown.update();
    if (node.firstChild !== shown.node) node.replaceChildren(shown.node);
  };
  return { node, update };
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

/**
 * @param {Drawing} drawing
 * @returns {number} share of the shown tokens' attention that goes to hidden ones
 */
function hiddenMass(drawing) {
  return massTo(drawing, (key) => drawing.keys.hidden[key] === 1);
}

/**
 * @param {Data} data
 * @param {Stack} stack
 * @param {State} state
 * @param {Drawing} drawing
 * @param {Theme} theme
 * @returns {Look}
 */
export function lookOf(data, stack, state, drawing, theme) {
  const begins = stack.name === "encoder" ? null : data.header.prompt;
  const unit =
    begins === null
      ? -1
      : drawing.queries.members.findIndex((tokens) => drawing.queries.start + tokens[0] >= begins);
  const crossing = stack.name === "cross";
  const runs = {
    q: stack.keys ? [] : runsOf(drawing.queries, state, stack.queries.labels.length, theme),
    k: runsOf(drawing.keys, state, keysOf(stack).labels.length, theme),
  };
  return { theme, prompt: unit > 0 && !drawing.queries.bySpan ? unit : null, crossing, runs };
}

/**
 * Neighbours that belong to one span.
 * @param {Units} units
 * @param {State} state
 * @param {number} tokens
 * @param {Theme} theme
 * @returns {Run[]}
 */
function runsOf({ members, start, bySpan }, state, tokens, theme) {
  const spans = spansOf(state.spans, tokens);
  if (!spans.length) return [];
  const owner = ownerOf(
    spans,
    start,
    members.reduce((most, group) => Math.max(most, group[group.length - 1] + 1), 0),
  );
  /** @type {Run[]} */
  const runs = [];
  let before = -1;
  members.forEach(([token], unit) => {
    const number = owner[token];
    if (number >= 0 && number === before) runs[runs.length - 1].to = unit + 1;
    else if (number >= 0)
      runs.push({
        from: unit,
        to: unit + 1,
        name: bySpan ? "" : spans[number].name,
        color: spanColor(theme, number),
      });
    before = number;
  });
  return runs;
}

/**
 * The pinned tokens that are in the drawing, by their place there.
 * @param {string | null} pinned
 * @param {Drawing} drawing
 * @returns {Pin | null}
 */
export function pinFrom(pinned, drawing) {
  const pin = parsePin(pinned, Infinity, Infinity);
  if (!pin) return null;
  const { first, labels } = pin.side === "q" ? drawing.queries : drawing.keys;
  const indices = pin.indices
    .map((index) => index - first)
    .filter((index) => index >= 0 && index < labels.length);
  return indices.length ? { side: pin.side, indices } : null;
}

/** @param {Pin} pin @param {Drawing} drawing @returns {string} */
export function pinName({ side, indices }, drawing) {
  const { first } = side === "q" ? drawing.queries : drawing.keys;
  return writePin({ side, indices: indices.map((index) => index + first) });
}

/** How the readout names a head. @param {State} state @returns {(head: number) => string} */
export function nameOf(state) {
  if (state.weights === "rollout") return () => `rollout up to ${nameLayer(state.layer)}`;
  return isSummary(state) ? () => state.summary : (head) => nameHead(state.layer, head);
}

/** What a summary puts together. @param {State} state @returns {string} */
export function summaryName({ summary, layers, heads }) {
  const some = (/** @type {string} */ name, /** @type {number[]} */ numbers) => {
    const listed = ranges(numbers).replaceAll("+", ", ").replaceAll("-", "–");
    return `${name}${numbers.length === 1 ? "" : "s"} ${listed}`;
  };
  return `${SETTINGS.summary.choices[summary]} of ${some("layer", layers)}, ${some("head", heads)}`;
}

/** @param {Data} data @param {State} state @returns {string} */
function titleOf(data, state) {
  if (isSummary(state)) return `${data.header.model} · ${summaryName(state)}`;
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
  const hint = "Point at a token for its weights, click to pin it, drag to choose several.";
  if (drawn === total) return `${total.toLocaleString("en")} lines. ${hint}`;
  return (
    `The strongest ${drawn.toLocaleString("en")} of ${total.toLocaleString("en")} lines. ` +
    `${hint}`
  );
}

/**
 * @param {Drawing} drawing
 * @param {Pin} pin
 * @param {(head: number) => string} nameOf
 * @returns {(Node | string)[]}
 */
function describeToken(drawing, pin, nameOf) {
  const isQuery = pin.side === "q";
  const others = isQuery ? drawing.keys : drawing.queries;
  const told = strongest(drawing, pin).flatMap(({ head, other, weight }, i) => [
    i ? " · " : "",
    number(`${nameOf(head)} ${format(weight)}`),
    isQuery ? " to " : " from ",
    bold(others.labels[other]),
  ]);
  const hidden = isQuery
    ? massTo(drawing, (key) => drawing.keys.hidden[key] === 1, pin.indices)
    : 0;
  const rest = hidden > 0 ? ` · ${percent(hidden)} of it to hidden tokens` : "";
  return [...named(drawing, pin), ...told, rest];
}

/**
 * Whose attention is told.
 * @param {Drawing} drawing
 * @param {Pin} pin
 * @returns {(Node | string)[]}
 */
function named(drawing, { side, indices }) {
  const units = side === "q" ? drawing.queries : drawing.keys;
  const [index] = indices;
  const isOne = indices.length === 1;
  const who = isOne
    ? [bold(units.labels[index]), ` (${units.first + index})`]
    : [
        bold(units.labels[index]),
        " … ",
        bold(units.labels[indices[indices.length - 1]]),
        ` (${indices.length})`,
      ];
  if (side === "q")
    return [...who, isOne ? " looks at these tokens: " : " look on average at these tokens: "];
  return [...who, isOne ? " as seen from every token: " : " together as seen from every token: "];
}

/**
 * The strongest of what is pinned.
 * @param {Drawing} drawing
 * @param {Pin} pin
 * @returns {{head: number, other: number, weight: number}[]}
 */
function strongest(drawing, pin) {
  /** @type {{head: number, other: number, weight: number}[]} */
  const best = [];
  const others = (pin.side === "q" ? drawing.keys : drawing.queries).labels.length;
  const columns = drawing.keys.labels.length;
  drawing.weights.forEach((values, place) => {
    for (let other = 0; other < others; other++) {
      const weight = weightBetween(values, columns, pin, other);
      if (
        weight <= (best.length < TOLD ? 0 : best[TOLD - 1].weight) ||
        !isShownWith(drawing, pin, other)
      )
        continue;
      best.push({ head: drawing.heads[place], other, weight });
      best.sort((a, b) => b.weight - a.weight).splice(TOLD);
    }
  });
  return best;
}

/**
 * @param {Drawing} drawing
 * @param {Pin} pin
 * @param {Pin} other
 * @param {(head: number) => string} nameOf
 * @returns {(Node | string)[]}
 */
function describePair(drawing, pin, other, nameOf) {
  const each = weightsBetween(drawing, pin, other.indices[0]).map(
    (weight, place) => `${nameOf(drawing.heads[place])} ${format(weight)}`,
  );
  const pinned =
    pin.indices.length === 1
      ? bold((pin.side === "q" ? drawing.queries : drawing.keys).labels[pin.indices[0]])
      : `${pin.indices.length} chosen`;
  const [query, key] =
    pin.side === "q"
      ? [pinned, bold(drawing.keys.labels[other.indices[0]])]
      : [bold(drawing.queries.labels[other.indices[0]]), pinned];
  return [query, " → ", key, "  ", number(each.join("  "))];
}

/** @param {string} text @returns {HTMLElement} */
function number(text) {
  return h("span", { class: "hs-number" }, text);
}

/** @param {string} text @returns {HTMLElement} */
export function bold(text) {
  const made = h("bdi", { class: "hs-name" });
  made.textContent = text;
  return made;
}
