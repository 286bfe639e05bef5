/** The sentences in which a head is surest; one of them opened in the head view and edited. */

import { h } from "../ui/dom.js";
import { saveButton } from "../charts/figure.js";
import { saveDrawing, saveRows } from "../charts/export.js";
import { number } from "../ui/format.js";
import { change, here } from "../explorer/place.js";
import { sentences } from "../explorer/messages.js";
import { exampleArcs } from "../charts/arcs.js";
import { shortened } from "../ui/fonts.js";
import { section } from "./parts.js";
import { EXAMPLE, field, ViewHost } from "./viewhost.js";

/**
 * @import { Header } from "../kinds/shared/data.js"
 * @import { Context } from "../explorer/main.js"
 * @import { Card, Exemplar } from "../explorer/types.js"
 */

const NO_MODEL = "No model is loaded; start `headscope serve` with --model to see every weight.";
const LONGEST = 24; // characters of a word
const PAUSE = 450; // milliseconds without a key before a typed text is traced

/**
 * @param {Context} context
 * @param {Card} card
 * @param {string} [group]  of the head's name
 * @returns {{node: HTMLElement, ready: () => void, leave: () => void}}
 */
export function exemplarSection(context, card, group) {
  const { exemplars } = card;
  const open = h("div", { class: "opened", id: "opened" });
  /** @type {ViewHost | null} */
  let host = null;
  const choose = (/** @type {number} */ i) => {
    change({ exemplar: String(i), text: null }, { quiet: true });
    show(i, exemplars[i].text);
    open.scrollIntoView({ block: "nearest" });
  };
  const show = (/** @type {number | null} */ i, /** @type {string} */ text) => {
    rows.forEach((row, j) =>
      row.querySelector("button")?.setAttribute("aria-pressed", String(j === i)),
    );
    host?.leave();
    host = fillOpened(open, context, card, i === null ? null : exemplars[i], text);
  };
  const rows = exemplars.map((one, i) => {
    const drawing = drawn(one, group);
    const name = `exemplar ${i + 1}`;
    const act = { type: "button", "aria-pressed": "false", click: () => choose(i) };
    return h(
      "li",
      {},
      h("button", { ...act, class: "exemplar", id: `exemplar-${i}` }, ...drawing.parts),
      saveButton("SVG", `Download ${name} as SVG`, () => saveDrawing(drawing.arcs, name)),
    );
  });
  const all = exemplars.map(({ weight, tokens, query, key, text }, i) => [
    ...[i + 1, weight, tokens[query], tokens[key], text],
  ]);
  const headings = ["rank", "weight", "attending", "attended", "text"];
  const save = saveButton("CSV", "Download the exemplars as CSV", () =>
    saveRows([headings, ...all], `exemplars ${card.name}`),
  );
  const empty = h("p", { class: "faint" }, "This run kept no exemplars for the head.");
  const hint =
    "The number is the weight from the word that looks to the word that it looks at (dot). Click a sentence to open it.";
  const list = h("ol", { class: "exemplars" }, ...rows);
  const parts = rows.length ? [list, h("p", { class: "caption" }, hint)] : [empty];
  const ready = () => {
    const { exemplar, text } = here().params;
    const i = exemplars[Number(exemplar)] ? Number(exemplar) : null;
    if (i !== null || text) show(i, text ?? exemplars[/** @type {number} */ (i)].text);
    else if (!rows.length && context.session.model.name) show(null, EXAMPLE);
  };
  const node = section("Exemplar sentences", { save: rows.length ? [save] : [] }, ...parts, open);
  return { node, ready, leave: () => host?.leave() };
}

/** The sentences alone, where nothing can be opened. @param {Card} card @param {string} [group] */
export function exemplarLines({ exemplars }, group) {
  if (!exemplars.length) return null;
  const lines = exemplars.map((one) => {
    const { parts, line } = drawn(one, group);
    for (const [name, value] of [
      ["tabindex", "0"],
      ["role", "group"],
      ["aria-label", one.text],
    ])
      line.setAttribute(name, value);
    return h("li", {}, h("span", { class: "exemplar" }, ...parts));
  });
  return section("Exemplar sentences", {}, h("ol", { class: "exemplars" }, ...lines));
}

/** A sentence with its weight and one arc, scrolled to it. @param {Exemplar} one @param {string} [group] */
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
  return { arcs, line, parts: [h("span", { class: "weight" }, number(weight)), line] };
}

/**
 * @param {HTMLElement} open
 * @param {Context} context
 * @param {Card} card
 * @param {Exemplar | null} one
 * @param {string} text
 * @returns {ViewHost | null}
 */
function fillOpened(open, context, card, one, text) {
  const { model, limits } = context.session;
  if (model.state === "none" || model.state === "failed") {
    const why =
      model.state === "failed"
        ? `The model ${model.name} could not be loaded: ${model.reason}`
        : (model.reason ?? NO_MODEL);
    open.replaceChildren(h("div", { class: "note" }, sentences(why)));
    return null;
  }
  const { node, area } = field(
    "text",
    "Edit the text and see the head change",
    2,
    text,
    limits.text,
  );
  const host = new ViewHost({ class: "view" });
  // The pair is where the run found it only if the loaded model cuts the text into the same tokens.
  const start = (/** @type {Header} */ header) =>
    one && String(header.stacks[0].queries.labels) === String(one.labels)
      ? { pinned: `q${one.query}` }
      : {};
  const trace = () => {
    const request = /** @type {const} */ ({ kind: "head", layer: card.layer, head: card.head });
    void host.show({ text: area.value, ...request }, { start });
  };
  let timer = 0;
  area.addEventListener("input", () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => {
      change({ text: area.value }, { quiet: true, replace: true });
      trace();
    }, PAUSE);
  });
  open.replaceChildren(node, host.status, host.el);
  trace();
  return host;
}
