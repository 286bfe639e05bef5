/**
 * The name of a head: L4H11 is head 11 of layer 4, both counted from 0; as headscope/head.py writes
 * it.
 */

/** @param {number} layer @param {number} head @returns {string} */
export function nameHead(layer, head) {
  return `${nameLayer(layer)}${nameWithinLayer(head)}`;
}

/** @param {number} layer @returns {string} */
export function nameLayer(layer) {
  return `L${layer}`;
}

/** @param {number} head @returns {string} */
export function nameWithinLayer(head) {
  return `H${head}`;
}
