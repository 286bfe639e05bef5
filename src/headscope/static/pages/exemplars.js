/** The sentences in which a head is surest; one of them opened in the head view and edited. */

import { h } from "../ui/dom.js";
import { saveButton } from "../charts/figure.js";
import { saveDrawing, saveRows } from "../charts/export.js";
import { number } from "../ui/format.js";
import { change, here } from "../explorer/place.js";
import { sentences } from "../explorer/messages.js";
import { sentenceArc } from "../charts/sentence.js";
import { EXAMPLE, ViewHost } from "./viewhost.js";

/**
 * @import { Header } from "../kinds/shared/data.js"
 * @import { Context } from "../explorer/main.js"
 * @import { Card, Exemplar, ModelFacts } from "../explorer/types.js"
 */

const NO_MODEL = "No model is loaded; start `headscope serve` with --model to see every weight.";
const PAUSE = 450; // milliseconds without a key before a typed text is traced

/**
 * @param {Context} context
 * @param {Card} card
 * @returns {{node: HTMLElement, ready: () => void, leave: () => void}}
 */
export function exemplarSection(context, card) {
  const open = h("div", { class: "opened", id: "opened" });
  const state = { host: /** @type {ViewHost | null} */ (null) };
  const rows = card.exemplars.map((one, i) => row(one, i, () => choose(i)));
  const choose = (/** @type {number} */ i) => {
    change({ exemplar: String(i), text: null }, { quiet: true });
    show(i, card.exemplars[i].text);
    open.scrollIntoView({ block: "nearest" });
  };
  const show = (/** @type {number | null} */ i, /** @type {string} */ text) => {
    rows.forEach((one, j) =>
      one.querySelector("button")?.setAttribute("aria-pressed", String(j === i)),
    );
    state.host?.leave();
    state.host = fillOpened(open, context, card, i === null ? null : card.exemplars[i], text);
  };
  const all = () => [
    ["rank", "weight", "attending", "attended", "text"],
    ...card.exemplars.map((one, i) => [
      i + 1,
      one.weight,
      one.tokens[one.query],
      one.tokens[one.key],
      one.text,
    ]),
  ];
  const bar = h(
    "div",
    { class: "figure-bar" },
    h("h2", {}, "Exemplar sentences"),
    h("span", { class: "space" }),
    saveButton("CSV", "Download the exemplars as CSV", () =>
      saveRows(all(), `exemplars ${card.name}`),
    ),
  );
  const empty = rows.length
    ? null
    : h("p", { class: "faint" }, "This run kept no exemplars for the head.");
  const hint = h(
    "p",
    { class: "caption" },
    "The attending token is bold, the attended one italic; the number is the weight. Click a " +
      "sentence to open it.",
  );
  const node = h(
    "section",
    { class: "figure" },
    bar,
    empty,
    h("ol", { class: "exemplars" }, ...rows),
    rows.length ? hint : null,
    open,
  );
  const ready = () => {
    rows.forEach(scrollToArc);
    const { exemplar, text } = here().params;
    const i = exemplar === undefined || !card.exemplars[Number(exemplar)] ? null : Number(exemplar);
    if (i !== null || text) show(i, text ?? card.exemplars[/** @type {number} */ (i)].text);
    else if (!rows.length && context.session.model.name) show(null, EXAMPLE);
  };
  return { node, ready, leave: () => state.host?.leave() };
}

/**
 * The sentences alone, where nothing can be opened.
 * @param {Card} card
 * @returns {{node: HTMLElement | null, ready: () => void}}
 */
export function exemplarLines(card) {
  const lines = card.exemplars.map((one) => {
    const { drawing, middle } = sentenceArc(one);
    return h(
      "li",
      {},
      h(
        "span",
        { class: "exemplar" },
        h("span", { class: "weight" }, number(one.weight)),
        h(
          "span",
          {
            class: "line",
            "data-middle": middle,
            tabindex: 0,
            role: "group",
            "aria-label": one.text,
          },
          drawing,
        ),
      ),
    );
  });
  const node = h(
    "section",
    { class: "figure" },
    h("div", { class: "figure-bar" }, h("h2", {}, "Exemplar sentences")),
    h("ol", { class: "exemplars" }, ...lines),
  );
  return { node: lines.length ? node : null, ready: () => lines.forEach(scrollToArc) };
}

/** @param {Exemplar} one @param {number} i @param {() => void} act */
function row(one, i, act) {
  const { drawing, middle } = sentenceArc(one);
  const button = h(
    "button",
    { type: "button", class: "exemplar", id: `exemplar-${i}`, "aria-pressed": "false", click: act },
    h("span", { class: "weight" }, number(one.weight)),
    h("span", { class: "line", "data-middle": middle }, drawing),
  );
  return h(
    "li",
    {},
    button,
    saveButton("SVG", `Download exemplar ${i + 1} as SVG`, () =>
      saveDrawing(drawing, `exemplar ${i + 1}`),
    ),
  );
}

/** @param {HTMLElement} item */
function scrollToArc(item) {
  const line = item.querySelector(".line");
  if (line instanceof HTMLElement)
    line.scrollLeft = Number(line.dataset.middle) - line.clientWidth / 2;
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
  const { model } = context.session;
  if (model.state === "none" || model.state === "failed") {
    open.replaceChildren(withoutModel(model));
    return null;
  }
  const status = h("p", { class: "status", role: "status" });
  const area = h("textarea", {
    id: "text",
    rows: 2,
    spellcheck: "false",
    maxlength: context.session.limits.text,
  });
  area.value = text;
  const place = h("div", { class: "view" });
  const host = new ViewHost(place, (said, wrong) => {
    status.textContent = said;
    status.classList.toggle("wrong", wrong);
  });
  // The pair is where the run found it only if the loaded model cuts the text into the same tokens.
  const start = (/** @type {Header} */ header) =>
    one && String(header.stacks[0].queries.labels) === String(one.labels)
      ? { pinned: `q${one.query}` }
      : {};
  const trace = () =>
    void host.show(
      { text: area.value, kind: "head", layer: card.layer, head: card.head },
      { start },
    );
  area.addEventListener(
    "input",
    later(() => {
      change({ text: area.value }, { quiet: true, replace: true });
      trace();
    }),
  );
  open.replaceChildren(
    h(
      "div",
      { class: "control stacked" },
      h("label", { for: "text" }, "Edit the text and see the head change"),
      area,
    ),
    status,
    place,
  );
  trace();
  return host;
}

/** @param {ModelFacts} model @returns {HTMLElement} why nothing can be opened */
function withoutModel(model) {
  const why =
    model.state === "failed"
      ? `The model ${model.name} could not be loaded: ${model.reason}`
      : (model.reason ?? NO_MODEL);
  return h("div", { class: "note" }, sentences(why));
}

/** @param {() => void} act @returns {() => void} */
function later(act) {
  let timer = 0;
  return () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(act, PAUSE);
  };
}
