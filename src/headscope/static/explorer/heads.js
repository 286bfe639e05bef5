/** Heads of a run, by their names. */

import { nameHead } from "../ui/heads.js";

/**
 * @param {{layers: number[], heads: number[]}} grid
 * @returns {string[]} every head, by the numbers its layers have
 */
export function headNames({ layers, heads }) {
  return layers.flatMap((layer) => heads.map((head) => nameHead(layer, head)));
}

/**
 * @param {string} text
 * @returns {string | null} the head that a text begins with: L7H9 (paper 8-10)
 */
export function headIn(text) {
  return /^L\d+H\d+(?= \(|$)/.exec(text)?.[0] ?? null;
}

/**
 * A sentence about a head without its name: "looks at the previous token". Its numbers keep their
 * signs at the end of a line.
 * @param {string} name
 * @param {string} sentence
 */
export function withoutName(name, sentence) {
  return sentence.slice(name.length).replace(/^:? /, "").replaceAll(" %", "\u202f%");
}
