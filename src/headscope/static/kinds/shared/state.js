/** What a view shows: one flat object, the same names as in Python and in the URL. */

import { keysOf } from "./data.js";
import { keepHash } from "../../ui/host.js";
import { SETTINGS } from "./settings.js";
import { parsePin, spansOf, writePin, writeSpan } from "./spans.js";
import { validWindow } from "./window.js";

/**
 * @import { Header } from "./data.js"
 * @import { State } from "./settings.js"
 */

/** Holds the state, keeps it valid, and tells who listens what changed. */
export class Store {
  /** @param {Header} header */
  constructor(header) {
    this.header = header;
    this.initial = header.state;
    this.state = { ...header.state };
    /** @type {Set<(state: State, changed: Set<string>) => void>} */
    this.listeners = new Set();
  }

  /** @param {Partial<State>} patch */
  set(patch) {
    const next = valid({ ...this.state, ...patch }, this.state, this.header);
    const changed = changedKeys(this.state, next);
    if (changed.size === 0) return;
    this.state = next;
    for (const listener of [...this.listeners]) told(() => listener(next, changed));
  }

  /**
   * @param {(state: State, changed: Set<string>) => void} listener
   * @returns {() => void} stop listening
   */
  subscribe(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

/**
 * Who fails must not keep the others from hearing; the error still reaches the console.
 * @param {() => void} tell
 */
function told(tell) {
  try {
    tell();
  } catch (error) {
    reportError(error);
  }
}

/** @param {State} before @param {State} after @returns {Set<string>} */
function changedKeys(before, after) {
  const keys = /** @type {(keyof State)[]} */ (Object.keys(after));
  return new Set(keys.filter((key) => JSON.stringify(before[key]) !== JSON.stringify(after[key])));
}

/**
 * What does not fit the payload falls back to what was shown before: URLs are written by hand too.
 * @param {State} next
 * @param {State} before
 * @param {Header} header
 * @returns {State}
 */
function valid(next, before, header) {
  const stack = header.stacks.find((one) => one.name === next.stack) ?? header.stacks[0];
  const state = { ...next, stack: stack.name };
  if (!stack.layers.includes(state.layer)) state.layer = stack.layers[0];
  if (!stack.heads.includes(state.head)) state.head = stack.heads[0];
  state.layers = kept(next.layers, stack.layers);
  state.heads = kept(next.heads, stack.heads);
  for (const [key, { choices }] of Object.entries(SETTINGS)) {
    const field = /** @type {"unit"} */ (key);
    if (!(field in before)) continue; // a setting of another kind of view
    const isFree = Object.keys(choices).length === 0 || Array.isArray(before[field]);
    if (!isFree && !(state[field] in choices)) state[field] = before[field];
  }
  if (!(state.weights in stack.sets)) state.weights = "raw";
  if ("order" in state && state.order !== "number" && !(state.order in stack.scores))
    state.order = "number";
  if (!(state.mass > 0 && state.mass <= 1)) state.mass = before.mass;
  state.hide = Object.keys(SETTINGS.hide.choices).filter((name) => next.hide.includes(name));
  state.window = validWindow(
    next.window,
    [stack.queries.labels.length, keysOf(stack).labels.length],
    header.tile,
  );
  const tokens = keysOf(stack).labels.length;
  const other = header.stacks.find((one) => one.name === before.stack) ?? stack;
  const isOther =
    state.spans === before.spans && String(keysOf(other).labels) !== String(keysOf(stack).labels);
  const spans = isOther || !Array.isArray(next.spans) ? [] : spansOf(next.spans, tokens);
  state.spans = spans.map(writeSpan);
  for (const side of /** @type {const} */ (["attending", "attended"])) {
    if (!spans.some(({ name }) => name === state[side])) state[side] = null;
  }
  if (state.unit === "span" && spans.length === 0)
    state.unit = before.unit === "span" ? "token" : before.unit;
  // Spans are numbered within the window.
  const isOtherPart = state.unit === "span" && String(state.window) !== String(before.window);
  const moved = state.stack !== before.stack || state.unit !== before.unit || isOtherPart;
  const pin = parsePin(state.pinned, stack.queries.labels.length, tokens);
  state.pinned = (moved && state.pinned === before.pinned) || !pin ? null : writePin(pin);
  return state;
}

/** @param {number[]} wanted @param {number[]} available @returns {number[]} */
function kept(wanted, available) {
  const both = available.filter((number) => wanted.includes(number));
  return both.length > 0 || wanted.length === 0 ? both : available;
}

/**
 * What a reader changed that fits another text, too: no tokens, and not which attention there is.
 * @param {Store | undefined} store  of the text shown before
 * @returns {Partial<State>}
 */
export function carriedOver(store) {
  if (!store) return {};
  const { pinned, window, stack, ...settings } = changes(store.state, store.initial);
  return settings;
}

/** @param {State} state @param {State} initial @returns {Partial<State>} */
function changes(state, initial) {
  const names = /** @type {(keyof State)[]} */ ([...changedKeys(initial, state)]);
  return Object.fromEntries(names.map((name) => [name, state[name]]));
}

/** @param {State} state @param {State} initial @returns {string} */
export function toHash(state, initial) {
  const pairs = Object.entries(changes(state, initial)).map(([key, value]) => {
    const text = Array.isArray(value)
      ? value.map((one) => encodeURIComponent(one)).join()
      : String(value ?? "");
    return `${key}=${encodeURIComponent(text)}`;
  });
  return pairs.join("&");
}

/** @param {string} hash @param {State} initial @returns {Partial<State>} */
export function fromHash(hash, initial) {
  /** @type {Record<string, unknown>} */
  const patch = {};
  for (const [key, text] of new URLSearchParams(hash.replace(/^#/, ""))) {
    if (key in initial) patch[key] = parsed(text, initial[/** @type {keyof State} */ (key)]);
  }
  return /** @type {Partial<State>} */ (patch);
}

/** @param {string} text @param {unknown} example @returns {unknown} */
function parsed(text, example) {
  if (typeof example === "number") return Number(text);
  if (typeof example === "boolean") return text === "true";
  if (!Array.isArray(example)) return text === "" ? null : text;
  const parts = text === "" ? [] : text.split(",").map(decoded);
  return parts.every((part) => /^\d+$/.test(part)) ? parts.map(Number) : parts;
}

/** Parts of a list may hold commas of their own. @param {string} part @returns {string} */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/**
 * Keep the page's URL and the store in step.
 * @param {Store} store
 * @param {Window} window
 */
export function bindHash(store, window) {
  const read = () =>
    store.set({ ...store.initial, ...fromHash(window.location.hash, store.initial) });
  read();
  window.addEventListener("hashchange", read);
  store.subscribe((state) => keepHash(toHash(state, store.initial)));
}
