/** The sentences in which a head is surest; where a model reads texts, they open in its views. */

import { h } from "../ui/dom.js";
import { saveButton } from "../charts/figure.js";
import { saveRows } from "../charts/export.js";
import { number } from "../ui/format.js";
import { go } from "../explorer/place.js";
import { exampleArcs } from "../charts/arcs.js";
import { shortened } from "../ui/fonts.js";
import { section } from "./parts.js";

/**
 * @import { RunSummary, Session } from "../explorer/types.js"
 * @import { Card, Exemplar } from "../explorer/types.js"
 */

const LONGEST = 24; // characters of a word

/**
 * @param {Card} card
 * @param {string} [group]  of the head's name
 * @param {(one: Exemplar) => void} [open]  where a sentence can be opened
 * @returns {HTMLElement | null}
 */
export function exemplarSection({ name, exemplars }, group, open) {
  if (!exemplars.length) return null;
  const rows = exemplars.map((one, i) => {
    const line = drawn(one, group);
    const parts = [h("span", { class: "weight" }, number(one.weight)), line];
    const act = { type: "button", class: "exemplar", id: `exemplar-${i}` };
    if (open) return h("li", {}, h("button", { ...act, click: () => open(one) }, ...parts));
    line.setAttribute("tabindex", "0"); // it is scrolled
    line.setAttribute("role", "group");
    line.setAttribute("aria-label", one.text);
    return h("li", {}, h("span", { class: "exemplar" }, ...parts));
  });
  const all = exemplars.map(({ weight, tokens, query, key, text }, i) => [
    ...[i + 1, weight, tokens[query], tokens[key], text],
  ]);
  const headings = ["rank", "weight", "attending", "attended", "text"];
  const save = saveButton("CSV", "Download the exemplars as CSV", () =>
    saveRows([headings, ...all], `exemplars ${name}`),
  );
  const hint =
    "The number is the weight from the word that looks to the word that it looks at (dot)." +
    (open ? " Click a sentence to open it." : "");
  const list = h("ol", { class: "exemplars" }, ...rows);
  return section("Exemplar sentences", { save: [save] }, list, h("p", { class: "caption" }, hint));
}

/**
 * Opens a sentence in the head view of the loaded model; nothing where there is none.
 * @param {Session} session
 * @param {RunSummary | null} run
 * @param {Card} card
 */
export function opener({ model }, run, { layer, head }) {
  if (model.state === "none" || model.state === "failed") return undefined;
  return (/** @type {Exemplar} */ { text, query }) => {
    /** @type {Record<string, string>} */
    const state = { layer: String(layer), heads: String(head), hide: "" };
    // Another model may cut the text into other tokens.
    if (run?.model === model.name) state.pinned = `q${query}`;
    if (model.encoder_decoder) state.stack = "encoder";
    const generate = model.encoder_decoder ? "0" : null;
    go("text", { run: run?.slug, text, generate }, { hash: `#${new URLSearchParams(state)}` });
  };
}

/** A sentence with one arc, scrolled to it. @param {Exemplar} one @param {string} [group] */
function drawn({ pieces, spaces, rtl, query, key, weight }, group = "unnamed") {
  const example = {
    tokens: pieces.map((piece) => shortened(piece, LONGEST)),
    begins: spaces,
    after_gap: [],
    arcs: [[query, key, weight, 1]],
    null: [],
    same: [],
    rtl,
  };
  const arcs = exampleArcs(example, group);
  const line = h("span", { class: "line" }, arcs);
  new ResizeObserver((_, watch) => {
    watch.disconnect(); // the reader scrolls from here on
    line.scrollLeft = Number(arcs.dataset.middle) - line.clientWidth / 2;
  }).observe(line);
  return line;
}
