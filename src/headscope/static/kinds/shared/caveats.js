/** What a picture leaves out, in words that go along wherever the picture is taken. */

import { percent } from "../../ui/numbers.js";
import { SETTINGS } from "./settings.js";

/** @import { State } from "./settings.js" */

/**
 * The same sentences as in views/caveats.py.
 * @param {State} state
 * @param {number} hidden  share of the attention that goes to hidden tokens
 * @param {{drawn: number, total: number} | null} lines  null where none are drawn
 * @returns {string[]}
 */
export function caveats(state, hidden, lines) {
  /** @type {string[]} */
  const sentences = [];
  if (state.hide.length)
    sentences.push(
      `${hiddenNames(state.hide)} hidden: ${percent(hidden)} of the attention goes there.`,
    );
  if (state.attending !== null) sentences.push(`Only what “${state.attending}” looks at.`);
  if (state.attended !== null) sentences.push(`Only what looks at “${state.attended}”.`);
  if (state.pair !== "all") sentences.push(`Only ${SETTINGS.pair.choices[state.pair]}.`);
  if (lines && state.mass < 1)
    sentences.push(`Of every row the strongest lines that hold ${percent(state.mass, 0)} of it.`);
  if (lines && lines.drawn < lines.total)
    sentences.push(
      `The strongest ${lines.drawn.toLocaleString("en")} of ` +
        `${lines.total.toLocaleString("en")} lines.`,
    );
  return sentences;
}

/** @param {string[]} hide @returns {string} First token and special tokens */
export function hiddenNames(hide) {
  const names = hide.map((one) => SETTINGS.hide.choices[one].replace(/^Hide /, "")).join(" and ");
  return names.charAt(0).toUpperCase() + names.slice(1);
}
