/** What a page shows on demand. */

import { h } from "../ui/dom.js";

/** @param {string} name @param {Node[]} nodes @returns {HTMLDetailsElement} */
export function fold(name, ...nodes) {
  return h("details", { class: "fold" }, h("summary", {}, name), ...nodes);
}
