/** Parts that several pages are made of. */

import { figureBar } from "../charts/figure.js";
import { address } from "../explorer/place.js";
import { h } from "../ui/dom.js";

/** @import { Child } from "../ui/dom.js" */

const PLOT = 640; // pixels of a figure that has another beside it, at most

/** The name of a page, and what stands beside it. @param {string} name @param {Child[]} others */
export function pageTitle(name, ...others) {
  return h("div", { class: "title" }, h("h1", {}, name), ...others);
}

/** What a page found, in a sentence whose numbers stand out. @param {string} text */
export function summaryLine(text) {
  const parts = text.split(/(−?\d+(?:[.,]\d+)*(?: %)?)/);
  const words = parts.map((part, i) => (i % 2 ? h("strong", {}, part) : part));
  return h("p", { class: "summary-line" }, ...words);
}

/**
 * @param {string} title
 * @param {{save?: Node[], extra?: Child, id?: string, class?: string}} about  buttons, and controls
 *   beside the title
 * @param {Child[]} children
 */
export function section(title, { save = [], extra, ...about }, ...children) {
  return h("section", { class: "figure", ...about }, figureBar(title, save, extra), ...children);
}

/** What a page shows on demand. @param {string} name @param {Node[]} nodes */
export function fold(name, ...nodes) {
  return h("details", { class: "fold" }, h("summary", {}, name), ...nodes);
}

/** A head that leads to its card. @param {string} run @param {string} name */
export function headLink(run, name) {
  return h("a", { href: address("head", { run, head: name }) }, name);
}

/** Pixels of a figure that stands beside another where there is room. @param {number} room */
export function halfOf(room) {
  return Math.min(PLOT, room > 900 ? room / 2 - 46 : room - 34);
}
