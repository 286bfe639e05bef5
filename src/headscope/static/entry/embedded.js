/**
 * What stands in script elements of a self-contained page: a header, and blocks that are decoded
 * when looked at.
 */

import { Data, fromBase64 } from "../kinds/shared/data.js";

/** @param {string} id @returns {string} */
export function embedded(id) {
  return document.getElementById(id)?.textContent ?? "";
}

/** @param {string} name  what the ids of its elements begin with @returns {Data} */
export function embeddedData(name) {
  const header = JSON.parse(embedded(`${name}-header`));
  return new Data(header, (indices) =>
    indices.map((index) => fromBase64(embedded(`${name}-block-${index}`))),
  );
}
