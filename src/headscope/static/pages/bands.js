/** Examples of a head, from inputs in which it hardly moves to those in which it is surest. */

import { saveRows } from "../charts/export.js";
import { saveButton } from "../charts/figure.js";
import { tokenText } from "../charts/tokens.js";
import { ask } from "../explorer/api.js";
import { h } from "../ui/dom.js";
import { number } from "../ui/format.js";
import { change } from "../explorer/place.js";
import { segments } from "../explorer/controls.js";
import { section } from "./parts.js";

/** @import { Band, Example, HeadRecords } from "../explorer/types.js" */

/**
 * @param {string} run
 * @param {HeadRecords} head
 * @param {string | undefined} chosen  the band in the address
 * @returns {HTMLElement}
 */
export function bandSection(run, { name, bands }, chosen) {
  const place = h("div", { class: "examples", "aria-live": "off" });
  let turn = 0;
  const show = async (/** @type {Band} */ band) => {
    const mine = ++turn;
    const made = await Promise.all(band.examples.map((one, i) => example(run, one, i)));
    if (mine !== turn) return;
    place.replaceChildren(...made.map((one) => one.node));
    for (const one of made) one.ready();
  };
  const first = bands.find((one) => one.name === chosen) ?? bands[bands.length - 1];
  const choice = segments(
    "band",
    "Band of the head’s largest weight, from low to high",
    Object.fromEntries(bands.map((band) => [`${band.name}`, band.name])),
    first.name,
    (band) => {
      change({ band }, { replace: true, quiet: true });
      void show(/** @type {Band} */ (bands.find((one) => one.name === band)));
    },
  );
  const extra = h(
    "span",
    {},
    h("span", { class: "faint", "aria-hidden": "true" }, "Band "),
    choice,
  );
  const save = saveButton("CSV", `Download the examples of ${name} as CSV`, () =>
    saveRows(rowsOf(bands), `examples ${name}`),
  );
  const hint = h(
    "p",
    { class: "caption" },
    "Inputs lie in five bands of equal frequency by the head’s largest weight in them; “top” " +
      "are the very largest. Point at a token, or use the arrow keys: ",
    h("span", { class: "looks-to" }, "where it looks"),
    " is shaded, ",
    h("span", { class: "looks-from" }, "who looks at it"),
    " underlined; a click keeps it.",
  );
  void show(first);
  return section("Examples", { id: "bands", extra, save: [save] }, place, hint);
}

/**
 * @param {string} run
 * @param {Example} one
 * @param {number} i
 * @returns {Promise<{node: HTMLElement, ready: () => void}>}
 */
async function example(run, one, i) {
  const input = await ask("runs/{run}/inputs/{input}", run, String(one.input));
  const text = tokenText(input, one.rows, {
    label: `Example ${i + 1}: ${input.document}, from token ${input.start}`,
    start: surest(one.rows),
  });
  const from = `  ${input.document}, tokens ${input.start}–${input.start + input.tokens.length - 1}`;
  const peak = h("strong", {}, number(one.peak));
  const about = h("p", { class: "example-about" }, peak, h("span", { class: "faint" }, from));
  return { node: h("div", { class: "example" }, about, text.node), ready: text.ready };
}

/**
 * The query with the largest weight, the first token left out on both sides.
 * @param {number[][]} rows
 * @returns {number}
 */
function surest(rows) {
  let [best, most] = [0, -1];
  rows.forEach((row, query) => {
    for (let i = 0; i + 1 < row.length; i += 2)
      if (query > 0 && row[i] > 0 && row[i + 1] > most) [best, most] = [query, row[i + 1]];
  });
  return best;
}

/** @param {Band[]} bands */
function rowsOf(bands) {
  const lines = bands.flatMap((band) =>
    band.examples.flatMap((one) =>
      one.rows.flatMap((row, query) =>
        row.flatMap((key, i) =>
          i % 2 ? [] : [[band.name, one.peak, one.input, query, key, row[i + 1] / 1000]],
        ),
      ),
    ),
  );
  return [["band", "peak", "input", "query", "key", "weight"], ...lines];
}
