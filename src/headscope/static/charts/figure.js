/** The frame around every figure: title, what it says, and the buttons that take it home. */

import { saveDrawing, saveRows } from "./export.js";
import { button } from "../explorer/controls.js";
import { h } from "../ui/dom.js";
import { SANS } from "../ui/fonts.js";

/**
 * @import { Attributes, Child } from "../ui/dom.js"
 * @import { Rows } from "./export.js"
 */

/**
 * @param {object} parts
 * @param {string} parts.title
 * @param {SVGSVGElement} parts.drawing
 * @param {() => Rows} parts.rows  the numbers in the drawing
 * @param {Child} [parts.caption]
 * @param {Child} [parts.extra]  controls beside the title
 * @param {string} [parts.kind]  class that places the figure in its page
 * @returns {HTMLElement}
 */
export function figure({ title, drawing, rows, caption, extra, kind = "" }) {
  const save = [
    saveButton("SVG", `Download “${title}” as SVG`, () => saveDrawing(drawing, title)),
    saveButton("CSV", `Download the numbers of “${title}” as CSV`, () => saveRows(rows(), title)),
  ];
  const bar = figureBar(title, save, extra);
  const about = { class: "figure-body", tabindex: 0, role: "group", "aria-label": title };
  const below = caption ? h("figcaption", {}, caption) : null;
  return h("figure", { class: `figure ${kind}` }, bar, h("div", about, drawing), below);
}

/**
 * Title and controls to the left, buttons to the right: those never part.
 * @param {string} title
 * @param {Node[]} buttons
 * @param {Child} [extra]
 * @returns {HTMLElement}
 */
export function figureBar(title, buttons, extra) {
  const controls = extra ? h("div", { class: "figure-extra" }, extra) : null;
  const head = h("div", { class: "figure-head" }, h("h2", {}, title), controls);
  const save = buttons.length ? h("div", { class: "figure-save" }, ...buttons) : null;
  return h("div", { class: "figure-bar" }, head, save);
}

/** @param {string} text @param {string} label @param {() => void} act */
export function saveButton(text, label, act) {
  return button(text, { class: "button small", "aria-label": label, title: label, click: act });
}

/**
 * An empty drawing that scales down with the page.
 * @param {number} width
 * @param {number} height
 * @param {Attributes} [more]
 * @returns {Attributes}
 */
export function canvasOf(width, height, more = {}) {
  return {
    viewBox: `0 0 ${Math.ceil(width)} ${Math.ceil(height)}`,
    width: Math.ceil(width),
    height: Math.ceil(height),
    "font-family": SANS,
    "font-size": 12,
    ...more,
  };
}
