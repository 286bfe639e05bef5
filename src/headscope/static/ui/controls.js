/** The small parts controls are made of. Text only ever goes in as text. */

import { h } from "./dom.js";
import { placeInList } from "./roving.js";

/**
 * @typedef {{node: HTMLElement, update: () => void}} Control  `update` brings it in step with the
 *   state
 */

/**
 * @param {string} name
 * @param {() => {value: string, text: string}[]} options
 * @param {() => string} read
 * @param {(value: string) => void} write
 * @returns {Control}
 */
export function choice(name, options, read, write) {
  const select = h("select", { "aria-label": name });
  const node = h("label", { class: "hs-control" }, h("span", {}, name), select);
  select.addEventListener("change", () => write(select.value));
  let shown = "";
  const update = () => {
    const wanted = options();
    const key = JSON.stringify(wanted);
    if (key !== shown) {
      select.replaceChildren(...wanted.map(({ value, text }) => h("option", { value }, text)));
      shown = key;
    }
    select.value = read();
    node.hidden = wanted.length < 2;
  };
  return { node, update };
}

/**
 * A few choices side by side.
 * @param {string} name
 * @param {{value: string, text: string}[]} options
 * @param {() => string} read
 * @param {(value: string) => void} write
 * @param {(value: string) => string | undefined} [blocked]  why a choice cannot be made
 * @returns {Control}
 */
export function segments(name, options, read, write, blocked = () => undefined) {
  const group = h("div", { class: "hs-segments", role: "radiogroup", "aria-label": name });
  const buttons = options.map(({ value, text }) => {
    const button = h(
      "button",
      { type: "button", role: "radio", "aria-checked": "false", "data-value": value },
      text,
    );
    button.addEventListener("click", () => {
      if (!button.hasAttribute("aria-disabled")) write(value);
    });
    return button;
  });
  group.append(...buttons);
  group.addEventListener("keydown", (event) => moveAmong(buttons, event));
  const node = h("div", { class: "hs-control" }, h("span", {}, name), group);
  const update = () =>
    buttons.forEach((button) => showChoice(button, read(), blocked(button.dataset.value ?? "")));
  return { node, update };
}

/** @param {HTMLButtonElement} button @param {string} chosen @param {string | undefined} reason */
function showChoice(button, chosen, reason) {
  const on = button.dataset.value === chosen;
  button.setAttribute("aria-checked", String(on));
  button.tabIndex = on ? 0 : -1;
  button.title = reason ?? "";
  if (reason) button.setAttribute("aria-disabled", "true");
  else button.removeAttribute("aria-disabled");
}

/** @param {HTMLButtonElement[]} buttons @param {KeyboardEvent} event */
function moveAmong(buttons, event) {
  const free = buttons.filter((button) => !button.hasAttribute("aria-disabled"));
  const at = free.findIndex((button) => button === event.target);
  const place = placeInList(event, at, free.length);
  if (place === null) return;
  const next = free[(place + free.length) % free.length];
  next.focus();
  next.click();
  event.preventDefault();
  event.stopPropagation();
}

/**
 * @param {string} name
 * @param {() => boolean} read
 * @param {(on: boolean) => void} write
 * @returns {Control & {note: HTMLElement}}  `note` stands after the name
 */
export function toggle(name, read, write) {
  const box = h("input", { type: "checkbox" });
  const note = h("span", { class: "hs-number" });
  const node = h("label", { class: "hs-control hs-check" }, box, h("span", {}, name), note);
  box.addEventListener("change", () => write(box.checked));
  return { node, note, update: () => (box.checked = read()) };
}

/**
 * @param {string} name
 * @param {{min: number, max: number, step: number}} range
 * @param {() => number} read
 * @param {(value: number) => void} write
 * @param {(value: number) => string} text
 * @returns {Control}
 */
export function slider(name, range, read, write, text) {
  const input = h("input", {
    type: "range",
    "aria-label": name,
    min: String(range.min),
    max: String(range.max),
    step: String(range.step),
  });
  const shown = h("output", { class: "hs-number" });
  const node = h("label", { class: "hs-control" }, h("span", {}, name), input, shown);
  input.addEventListener("input", () => write(Number(input.value)));
  const update = () => {
    input.value = String(read());
    shown.textContent = text(read());
    input.setAttribute("aria-valuetext", text(read()));
  };
  return { node, update };
}

/**
 * @param {string} text
 * @param {string} title
 * @param {() => void} act
 * @returns {HTMLButtonElement}
 */
export function button(text, title, act) {
  const made = h("button", { type: "button", class: "hs-button", title }, text);
  made.addEventListener("click", act);
  return made;
}

/**
 * Numbered chips that toggle: a click turns one on or off, a double click or the key O leaves only
 * it.
 * @param {string} name  "Heads", "Layers"
 * @param {() => number[]} available
 * @param {() => number[]} read
 * @param {(numbers: number[]) => void} write
 * @param {(number: number) => string | null} color
 * @returns {Control}
 */
export function chips(name, available, read, write, color) {
  const row = h("div", { class: "hs-chips", role: "group", "aria-label": name });
  const all = button("All", `Show all ${name.toLowerCase()}`, () => write(available()));
  const none = button("None", `Hide all ${name.toLowerCase()}`, () => write([]));
  const node = h("div", { class: "hs-control hs-chip-row" }, h("span", {}, name), row, all, none);
  let shown = "";
  const update = () => {
    const wanted = available();
    if (shown !== wanted.join()) {
      row.replaceChildren(...wanted.map((number) => chip(name, number, read, write)));
      shown = wanted.join();
    }
    const on = read();
    for (const one of /** @type {HTMLElement[]} */ ([...row.children])) {
      const number = Number(one.dataset.number);
      one.setAttribute("aria-pressed", String(on.includes(number)));
      one.style.setProperty("--chip", color(number) ?? "var(--hs-accent)");
    }
    node.hidden = wanted.length < 2;
  };
  return { node, update };
}

/**
 * @param {string} name
 * @param {number} number
 * @param {() => number[]} read
 * @param {(numbers: number[]) => void} write
 */
function chip(name, number, read, write) {
  const one = name.replace(/s$/, "");
  const made = h(
    "button",
    {
      type: "button",
      class: "hs-chip",
      "data-number": String(number),
      "aria-label": `${one} ${number}`,
    },
    String(number),
  );
  made.title = `${one} ${number}: click to show or hide, double-click (or key O) for only this one`;
  made.addEventListener("click", () => {
    const on = read();
    write(on.includes(number) ? on.filter((other) => other !== number) : [...on, number]);
  });
  made.addEventListener("dblclick", () => write([number]));
  made.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() === "o") write([number]);
  });
  return made;
}
