/** The controls that several views share, each bound to one name of the state. */

import { button, choice, segments, slider, toggle } from "../../ui/controls.js";
import { keysOf } from "./data.js";
import { SETTINGS } from "./settings.js";
import { isPair, massTo } from "./units.js";
import { lastWindow, spanOf } from "./window.js";

/**
 * @import { Control } from "../../ui/controls.js"
 * @import { Data } from "./data.js"
 * @import { State } from "./settings.js"
 * @import { Store } from "./state.js"
 * @import { Drawing } from "./units.js"
 */

const STACKS = {
  self: "Self-attention",
  encoder: "Encoder",
  decoder: "Decoder",
  cross: "Decoder → encoder",
};
import { percent } from "../../ui/numbers.js";

/**
 * The choices of a setting and their names on screen.
 * @param {keyof State} name
 * @returns {{value: string, text: string}[]}
 */
export function options(name) {
  return Object.entries(SETTINGS[name].choices).map(([value, text]) => ({ value, text }));
}

/**
 * The choices of a setting side by side.
 * @param {Store} store
 * @param {keyof State} name
 * @param {(value: string) => string | undefined} [blocked]  why a choice cannot be made
 * @returns {Control}
 */
export function settingControl(store, name, blocked) {
  const made = segments(
    SETTINGS[name].title,
    options(name),
    () => String(store.state[name]),
    (value) => store.set({ [name]: value }),
    blocked,
  );
  made.node.title = SETTINGS[name].meaning;
  return made;
}

/** @param {Data} data @param {Store} store @returns {Control} */
export function stackControl(data, store) {
  const offered = data.header.stacks.map(({ name }) => ({
    value: name,
    text: STACKS[/** @type {"self"} */ (name)] ?? name,
  }));
  return choice(
    "Attention",
    () => offered,
    () => store.state.stack,
    (stack) => store.set({ stack }),
  );
}

/**
 * One layer, or one head.
 * @param {Data} data
 * @param {Store} store
 * @param {"layer" | "head"} name
 * @returns {Control}
 */
export function numberControl(data, store, name) {
  const numbers = () =>
    data
      .stack(store.state.stack)
      [`${name}s`].map((number) => ({ value: String(number), text: String(number) }));
  return choice(
    SETTINGS[name].title,
    numbers,
    () => String(store.state[name]),
    (number) => store.set({ [name]: Number(number) }),
  );
}

/**
 * Which tokens of a long input are shown. The keys follow the queries where both are the same text.
 * @param {Data} data
 * @param {Store} store
 * @returns {Control[]}
 */
export function windowControls(data, store) {
  const stack = () => data.stack(store.state.stack);
  const queries = windowControl(
    "Attending tokens",
    data,
    () => stack().queries.labels.length,
    () => store.state.window[0],
    (at) => store.set({ window: [at, stack().keys ? store.state.window[1] : at] }),
  );
  const keys = windowControl(
    "Attended tokens",
    data,
    () => keysOf(stack()).labels.length,
    () => store.state.window[1],
    (at) => store.set({ window: [store.state.window[0], at] }),
  );
  return [queries, keys];
}

/**
 * @param {string} name
 * @param {Data} data
 * @param {() => number} length
 * @param {() => number} read
 * @param {(at: number) => void} write
 * @returns {Control}
 */
function windowControl(name, data, length, read, write) {
  const tile = data.header.tile ?? 1;
  const last = () => (data.header.tile === null ? 0 : lastWindow(length(), tile));
  const offered = () =>
    Array.from({ length: last() + 1 }, (_, at) => {
      const { start, end } = spanOf(length(), at, tile);
      return { value: String(at), text: `${start}–${end - 1}` };
    });
  const made = choice(
    name,
    offered,
    () => String(read()),
    (value) => write(Number(value)),
  );
  const step = (
    /** @type {string} */ sign,
    /** @type {string} */ said,
    /** @type {number} */ by,
  ) => {
    const one = button(sign, `${name}: ${said}`, () => write(read() + by));
    one.setAttribute("aria-label", one.title);
    return one;
  };
  const [back, on] = [step("‹", "earlier ones", -1), step("›", "later ones", 1)];
  made.node.append(back, on);
  const update = made.update;
  made.update = () => {
    update();
    back.disabled = read() <= 0;
    on.disabled = read() >= last();
  };
  return made;
}

/** @param {Data} data @param {Store} store @returns {Control} */
export function weightsControl(data, store) {
  const why = (/** @type {string} */ value) => data.stack(store.state.stack).missing[value];
  return settingControl(store, "weights", why);
}

/** @param {Store} store @returns {Control} */
export function massControl(store) {
  const whole = (/** @type {number} */ mass) => percent(mass, 0);
  const made = slider(
    SETTINGS.mass.title,
    { min: 0.05, max: 1, step: 0.01 },
    () => store.state.mass,
    (mass) => store.set({ mass }),
    whole,
  );
  made.node.title = SETTINGS.mass.meaning;
  return made;
}

/** Tokens, words, or spans where there are any. @param {Store} store @returns {Control} */
export function unitControl(store) {
  const why = (/** @type {string} */ value) =>
    value === "span" && store.state.spans.length === 0
      ? "There are no spans: choose tokens and name them."
      : undefined;
  return settingControl(store, "unit", why);
}

/**
 * Each head, or mean or maximum of several; a summary begins with all heads of the shown layer.
 * @param {Data} data
 * @param {Store} store
 * @returns {Control}
 */
export function summaryControl(data, store) {
  const { title, meaning } = SETTINGS.summary;
  const write = (/** @type {string} */ summary) => {
    const stack = data.stack(store.state.stack);
    const isNew = store.state.summary === "each" && summary !== "each";
    if (data.header.kind === "head")
      store.set(isNew ? { summary, heads: stack.heads, layers: [store.state.layer] } : { summary });
    else store.set({ summary, enlarged: true });
  };
  const made = segments(
    title,
    options("summary"),
    () => store.state.summary,
    write,
    () =>
      store.state.weights === "rollout" ? "Rollout already puts all heads together." : undefined,
  );
  made.node.title = meaning;
  return made;
}

/** Which span looks, and which is looked at. @param {Store} store @returns {Control[]} */
export function spanControls(store) {
  const offered = () => {
    const names = store.state.spans.map((written) => written.slice(written.indexOf(" ") + 1));
    return names.length
      ? [{ value: "", text: "everything" }, ...names.map((name) => ({ value: name, text: name }))]
      : [];
  };
  return /** @type {const} */ (["attending", "attended"]).map((side) => {
    const made = choice(
      SETTINGS[side].title,
      offered,
      () => store.state[side] ?? "",
      (name) => store.set({ [side]: name || null }),
    );
    made.node.title = SETTINGS[side].meaning;
    return made;
  });
}

/** @param {Data} data @param {Store} store @returns {Control} */
export function pairControl(data, store) {
  const offered = () => {
    const stack = data.stack(store.state.stack);
    return isPair(stack.queries) && isPair(keysOf(stack)) ? options("pair") : [];
  };
  return choice(
    SETTINGS.pair.title,
    offered,
    () => store.state.pair,
    (pair) => store.set({ pair }),
  );
}

/**
 * Hide the first or the special tokens, with the mass that goes to them written beside it.
 * @param {Data} data
 * @param {Store} store
 * @returns {{controls: Control[], showMass: (drawing: Drawing) => void, showShares: (toFirst:
 *   string, toSpecial: string) => void}}
 */
export function hideControls(data, store) {
  const [first, special] = options("hide").map(({ value, text }) => hideToggle(store, value, text));
  const update = special.update;
  special.update = () => {
    update();
    special.node.hidden = !keysOf(data.stack(store.state.stack)).special.includes(1);
  };
  const showShares = (/** @type {string} */ toFirst, /** @type {string} */ toSpecial) => {
    first.note.textContent = toFirst;
    special.note.textContent = toSpecial;
  };
  const showMass = (/** @type {Drawing} */ drawing) => {
    if (drawing.keys.bySpan) showShares("", "");
    else
      showShares(
        percent(massTo(drawing, (key) => key === 0)),
        percent(massTo(drawing, (key) => drawing.keys.special[key])),
      );
  };
  return { controls: [first, special], showMass, showShares };
}

/** @param {Store} store @param {string} what @param {string} name */
function hideToggle(store, what, name) {
  const write = (/** @type {boolean} */ on) => {
    const others = store.state.hide.filter((one) => one !== what);
    store.set({ hide: on ? [...others, what] : others });
  };
  const made = toggle(name, () => store.state.hide.includes(what), write);
  made.note.title = "Share of the shown tokens' attention that goes there";
  return made;
}
