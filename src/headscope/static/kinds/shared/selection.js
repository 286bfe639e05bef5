/**
 * What is chosen and the spans there are: chosen tokens get a name here, spans are looked at or
 * removed.
 */

import { button, toggle } from "../../ui/controls.js";
import { h } from "../../ui/dom.js";
import { keysOf } from "./data.js";
import { parsePin, spanColor, spansOf, writePin, writeSpan } from "./spans.js";
import { wordGroups } from "./units.js";

/**
 * @import { Theme } from "../../ui/colors.js"
 * @import { Control } from "../../ui/controls.js"
 * @import { Data } from "./data.js"
 * @import { Span } from "./spans.js"
 * @import { Store } from "./state.js"
 */

const LONGEST_NAME = 40;

/**
 * @param {Data} data
 * @param {Store} store
 * @param {() => Theme} theme
 * @param {(adding: boolean) => void} onAdding  whether clicks add to what is chosen
 * @returns {Control & {name: () => boolean}}  `name` leads to the name of what is chosen, if it can
 *   have one
 */
export function selectionBar(data, store, theme, onAdding) {
  const listed = h("span", { class: "hs-spans", role: "group", "aria-label": "Spans" });
  const said = h("span", { class: "hs-chosen" });
  const input = h("input", {
    type: "text",
    maxlength: String(LONGEST_NAME),
    placeholder: "name",
    "aria-label": "Name of the span",
    size: "12",
    autocomplete: "off",
  });
  const make = button(
    "Make a span",
    "Keep the chosen tokens as a span with this name (Enter)",
    () => keep(),
  );
  let adding = false;
  const add = toggle(
    "Clicks add",
    () => adding,
    (on) => onAdding((adding = on)),
  );
  add.node.title = "A click adds a token to those chosen, as with Ctrl";
  const clear = button("Clear", "Choose nothing (Escape)", () => store.set({ pinned: null }));
  const form = h("span", { class: "hs-naming" }, said, input, make, add.node, clear);
  const node = h("div", { class: "hs-selection" }, listed, form);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") keep();
  });

  const tokens = () => chosenTokens(data, store);
  const keep = () => {
    const chosen = tokens();
    const name = freeName(input.value.trim(), store.state.spans);
    if (!chosen) return;
    store.set({ spans: [...store.state.spans, writeSpan({ name, tokens: chosen })], pinned: null });
    input.value = "";
  };
  const update = () => {
    const spans = spansOf(store.state.spans, keysOf(data.stack(store.state.stack)).labels.length);
    const shown = [
      ...generatedButton(data, store),
      ...spans.map((span, number) => spanChip(span, number, store, theme())),
    ];
    listed.replaceChildren(...shown);
    const pinned = tokens();
    const isSpan = spans.some((span) => String(span.tokens) === String(pinned)); // it has a name
    const chosen = isSpan ? null : pinned;
    form.hidden = !chosen;
    node.hidden = !chosen && shown.length === 0;
    said.textContent = chosen
      ? `${chosen.length} token${chosen.length === 1 ? "" : "s"} chosen`
      : "";
    add.update();
  };
  const name = () => {
    if (form.hidden) return false;
    input.focus();
    return true;
  };
  return { node, update, name };
}

/**
 * The chosen tokens that can be a span: those of the text that is looked at.
 * @param {Data} data
 * @param {Store} store
 * @returns {number[] | null}
 */
function chosenTokens(data, store) {
  const { state } = store;
  const stack = data.stack(state.stack);
  const side = keysOf(stack);
  const pin = parsePin(state.pinned, stack.queries.labels.length, side.labels.length);
  if (!pin || state.unit === "span" || (stack.keys && pin.side === "q")) return null;
  if (state.unit !== "word") return pin.indices;
  const words = wordGroups(side.wordOf);
  return pin.indices.flatMap((index) => words[index] ?? []);
}

/** @param {string} wanted @param {string[]} spans @returns {string} */
function freeName(wanted, spans) {
  const taken = new Set(spans.map((written) => written.slice(written.indexOf(" ") + 1)));
  const free = (/** @type {number} */ number) =>
    wanted && number === 1 ? wanted : `${wanted || "span"} ${number}`;
  let number = 1;
  while (taken.has(free(number))) number += 1;
  return free(number);
}

/**
 * Everything the model wrote, one click away.
 * @param {Data} data
 * @param {Store} store
 * @returns {HTMLElement[]}
 */
function generatedButton(data, store) {
  const stack = data.stack(store.state.stack);
  const { prompt } = data.header;
  const count = stack.queries.labels.length;
  if (
    prompt === null ||
    stack.name === "encoder" ||
    prompt >= count ||
    store.state.unit !== "token"
  )
    return [];
  const pinned = writePin({
    side: "q",
    indices: Array.from({ length: count - prompt }, (_, i) => prompt + i),
  });
  const isOn = store.state.pinned === pinned;
  const made = button("Generated tokens", "What the generated tokens look at, on average", () =>
    store.set({ pinned: isOn ? null : pinned }),
  );
  made.setAttribute("aria-pressed", String(isOn));
  made.classList.add("hs-suggestion");
  return [made];
}

/** @param {Span} span @param {number} number @param {Store} store @param {Theme} theme */
function spanChip(span, number, store, theme) {
  const pinned = writePin({ side: "q", indices: span.tokens });
  const isOn = store.state.unit === "token" && store.state.pinned === pinned;
  const look = button("", `What “${span.name}” looks at`, () =>
    store.set({ unit: "token", pinned: isOn ? null : pinned }),
  );
  look.append(h("bdi", {}, span.name));
  look.classList.add("hs-span");
  look.setAttribute("aria-pressed", String(isOn));
  look.style.setProperty("--chip", spanColor(theme, number));
  const drop = button("×", `Remove the span “${span.name}”`, () =>
    store.set({ spans: store.state.spans.filter((written) => written !== writeSpan(span)) }),
  );
  drop.setAttribute("aria-label", drop.title);
  drop.classList.add("hs-drop");
  return h("span", { class: "hs-span-chip" }, look, drop);
}
