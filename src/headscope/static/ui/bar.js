/** The controls of a view in two steps: what is asked first in sight, the rest under “More”. */

import { element } from "./controls.js";

/** @import { Control } from "./controls.js" */

/** @param {Control[]} first @param {Control[]} rest @returns {HTMLElement} */
export function controlBar(first, rest) {
  const more = element("details", { class: "hs-more" }, element("summary", {}, "More"));
  more.append(element("div", { class: "hs-more-controls" }, ...rest.map(({ node }) => node)));
  return element("div", { class: "hs-bar" }, ...first.map(({ node }) => node), more);
}

/** Whether fingers point here: what can be touched is then larger. @returns {boolean} */
export function isTouched() {
  return window.matchMedia("(pointer: coarse)").matches;
}
