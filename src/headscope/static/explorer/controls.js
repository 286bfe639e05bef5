/** Menus and buttons. Every control has an id, so that the focus survives a redraw. */

import { h } from "../ui/dom.js";
import { plain } from "../ui/format.js";

/**
 * @import { Attributes, Child } from "../ui/dom.js"
 * @import { MeasureEntry as Measure } from "./types.js"
 */

/** @param {Child} text @param {Attributes} about  with what a click does */
export function button(text, about) {
  return h("button", { type: "button", class: "button", ...about }, text);
}

/**
 * A few choices side by side.
 * @param {string} name  of the inputs, with which their ids begin
 * @param {string} legend  what is chosen, for those who cannot see it
 * @param {Record<string, string>} options  names on screen by value
 * @param {string} chosen
 * @param {(value: string) => void} onChange
 * @returns {HTMLFieldSetElement}
 */
export function segments(name, legend, options, chosen, onChange) {
  const inputs = Object.entries(options).map(([value, text]) => {
    const id = `${name}-${value}`;
    const about = { type: "radio", name, id, value, checked: value === chosen };
    const input = h("input", { ...about, change: () => onChange(value) });
    return h("span", { class: "segment" }, input, h("label", { for: id }, text));
  });
  return h("fieldset", { class: "segments" }, h("legend", { class: "hidden" }, legend), ...inputs);
}

/**
 * @param {object} parts
 * @param {string} parts.id
 * @param {string} parts.label
 * @param {{value: string, text: string}[]} parts.options
 * @param {string} parts.value
 * @param {(value: string) => void} parts.onChange
 * @param {string} [parts.title]
 * @returns {HTMLElement}
 */
export function menu({ id, label, options, value, onChange, title }) {
  const made = options.map((one) =>
    h("option", { value: one.value, selected: one.value === value }, one.text),
  );
  const select = h("select", { id, title }, ...made);
  select.addEventListener("change", () => onChange(select.value));
  return h("div", { class: "control" }, h("label", { for: id }, label), select);
}

/**
 * The measure and a label for each of its further dimensions.
 * @param {string} id
 * @param {string} label
 * @param {Measure[]} measures
 * @param {string} spec
 * @param {(spec: string) => void} onChange
 * @returns {HTMLElement}
 */
export function measureMenus(id, label, measures, spec, onChange) {
  const [name, ...labels] = spec.split("~");
  const chosen = measures.find((one) => one.name === name) ?? measures[0];
  const first = menu({
    id,
    label,
    value: chosen.name,
    options: measures.map((one) => ({ value: one.name, text: one.title })),
    onChange: (next) => onChange(defaultSpec(measures, next)),
  });
  const others = chosen.axes.map((axis, i) =>
    menu({
      id: `${id}-${axis.name}`,
      label: axis.title,
      value: labels[i] ?? axis.labels[0],
      options: axis.labels.map((one) => ({ value: one, text: plain(one) })),
      onChange: (next) =>
        onChange([chosen.name, ...labels.map((old, j) => (j === i ? next : old))].join("~")),
    }),
  );
  return h("div", { class: "controls-group" }, first, ...others);
}

/** @param {Measure[]} measures @param {string} name @returns {string} */
export function defaultSpec(measures, name) {
  const found = measures.find((one) => one.name === name) ?? measures[0];
  return [found.name, ...found.axes.map(preferred)].join("~");
}

/** The label a reader looks for first. @param {{labels: string[]}} axis @returns {string} */
function preferred({ labels }) {
  return ["NOUN", "either", "all", "nsubj", "sep"].find((one) => labels.includes(one)) ?? labels[0];
}

/**
 * @param {Measure[]} measures
 * @param {string | undefined} spec
 * @param {string} otherwise
 * @returns {string} a spec that the run has
 */
export function validSpec(measures, spec, otherwise) {
  const [name, ...labels] = (spec ?? "").split("~");
  const found = measures.find((one) => one.name === name);
  if (!found) return defaultSpec(measures, otherwise);
  const fits =
    labels.length === found.axes.length &&
    found.axes.every((axis, i) => axis.labels.includes(labels[i]));
  return fits ? /** @type {string} */ (spec) : defaultSpec(measures, name);
}
