/** The controls of a view in two steps: what is asked first in sight, the rest under “More”. */

import { h } from "./dom.js";

/** @import { Control } from "./controls.js" */

/** @param {Control[]} first @param {Control[]} rest @returns {HTMLElement} */
export function controlBar(first, rest) {
  const more = h("details", { class: "hs-more" }, h("summary", {}, "More"));
  more.append(h("div", { class: "hs-more-controls" }, ...rest.map(({ node }) => node)));
  return h("div", { class: "hs-bar" }, ...first.map(({ node }) => node), more);
}

/** Whether fingers point here: what can be touched is then larger. @returns {boolean} */
export function isTouched() {
  return window.matchMedia("(pointer: coarse)").matches;
}
