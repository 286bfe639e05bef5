/**
 * The table of the neuron view: a row per key token, from its vector to its weight.
 *
 * @typedef {import("./neurons.js").Head} Head
 * @typedef {import("./neurons.js").Parts} Parts
 * @typedef {import("../core/units.js").Units} Units
 * @typedef {import("../core/colors.js").Theme} Theme
 *
 * @typedef {object} Rows
 * @property {Head} head
 * @property {Parts} parts
 * @property {number} query
 * @property {string} queryLabel
 * @property {string[]} labels
 * @property {number[]} order
 * @property {Theme} theme
 *
 * @typedef {{title: string, hint: string, value: (key: number) => string}} Column
 */

import { element } from "../core/controls.js";
import { paintStrips } from "./strips.js";

export const PITCH = 22;
export const STRIP = 15;

/** @param {number} dim @returns {{pitch: number, tall: number, cell: number}} */
export function stripSize(dim) {
  return { pitch: PITCH, tall: STRIP, cell: Math.max(1, Math.min(6, Math.floor(208 / dim))) };
}

/** The steps a model has, as columns of numbers. @param {Rows} rows @returns {Column[]} */
export function columnsOf({ head, parts, query }) {
  const { bias } = head;
  /** @type {Column[]} */
  const columns = [
    { title: "q·k", hint: "sum of the products", value: (key) => signed(parts.dots[key]) },
    { title: `× ${Number(head.scaling.toPrecision(4))}`, hint: "scaled", value: (key) => signed(parts.scaled[key]) },
  ];
  if (head.softcap !== null) {
    columns.push({ title: `cap ${head.softcap}`, hint: "c · tanh(score / c)", value: (key) => signed(parts.capped[key]) });
  }
  if (bias) columns.push({ title: biasTitle(head, query), hint: "added to the score before the softmax", value: (key) => added(bias(query, key)) });
  return columns;
}

/** A bias that is nothing but zeros and −∞ is a mask. @param {Head} head @param {number} query @returns {string} */
function biasTitle({ bias, keys }, query) {
  const values = Array.from({ length: keys }, (_, key) => (bias ? bias(query, key) : 0));
  return values.every((value) => value === 0 || value < -1e4) ? "+ mask" : "+ bias";
}

/** @param {number} value @returns {string} */
export function signed(value) {
  return value.toFixed(Math.abs(value) >= 1000 ? 0 : Math.abs(value) >= 100 ? 1 : 3).replace("-", "−");
}

/** @param {number} bias @returns {string} */
function added(bias) {
  if (bias < -1e4) return "masked";
  return bias === 0 ? "0" : signed(bias);
}

export class NeuronTable {
  /** @param {HTMLElement} parent */
  constructor(parent) {
    this.root = element("div", { class: "hs-neurons", role: "table", "aria-label": "From query and keys to weights" });
    parent.append(this.root);
    /** @type {Rows | null} */
    this.rows = null;
    /** @type {number | null} */
    this.neuron = null;
    this.shareHeading = element("span", { class: "hs-cell hs-share", role: "columnheader", title: "Point at a vector: what one neuron adds to each score, and its share" });
    /** @type {HTMLElement[]} */
    this.shareCells = [];
    /** @type {HTMLElement[]} */
    this.cursors = [];
  }

  /** @param {Rows} rows */
  show(rows) {
    this.rows = rows;
    const columns = columnsOf(rows);
    const size = stripSize(rows.head.dim);
    this.root.style.setProperty("--strip", `${size.cell * rows.head.dim}px`);
    this.shareCells = [];
    const lines = rows.labels.map((label, key) => this.line(label, key, columns));
    const body = element("div", { class: "hs-neuron-body", role: "rowgroup" }, ...lines);
    this.root.replaceChildren(this.heading(columns), this.queryLine(columns), body, ...this.totals(columns));
    body.append(this.strip("key", rows.head.key, "hs-strip-key"), this.strip("product", rows.parts.products, "hs-strip-product"));
    this.setNeuron(null);
  }

  /** @param {Column[]} columns @returns {HTMLElement} */
  heading(columns) {
    const names = ["", "key", "query × key"].map((text) => element("span", { class: "hs-cell", role: "columnheader" }, text));
    names[0].classList.add("hs-word");
    names[1].classList.add("hs-strip");
    names[2].classList.add("hs-strip");
    const numbers = columns.map(({ title, hint }) => element("span", { class: "hs-cell hs-figure", role: "columnheader", title: hint }, title));
    const weight = element("span", { class: "hs-cell hs-weight", role: "columnheader" }, "softmax → weight");
    return element("div", { class: "hs-neuron-row hs-heading", role: "row" }, ...names, this.shareHeading, ...numbers, weight);
  }

  /** @param {Column[]} columns @returns {HTMLElement} */
  queryLine(columns) {
    const { head, query, queryLabel, order } = this.current();
    const word = element("span", { class: "hs-cell hs-word", role: "rowheader", dir: "auto", title: queryLabel });
    word.textContent = queryLabel;
    const cell = element("span", { class: "hs-cell hs-strip", role: "cell" });
    cell.append(this.strip("query", head.query.subarray(query * order.length, (query + 1) * order.length), ""));
    const caption = element("span", { class: "hs-cell hs-strip hs-faint", role: "cell" }, "← query");
    return element("div", { class: "hs-neuron-row hs-query", role: "row" }, word, cell, caption);
  }

  /** @param {string} label @param {number} key @param {Column[]} columns @returns {HTMLElement} */
  line(label, key, columns) {
    const { parts } = this.current();
    const word = element("span", { class: "hs-cell hs-word", role: "rowheader", dir: "auto", title: label });
    word.textContent = label;
    const share = element("span", { class: "hs-cell hs-share hs-number", role: "cell" });
    this.shareCells.push(share);
    const numbers = columns.map(({ value }) => element("span", { class: "hs-cell hs-figure hs-number", role: "cell" }, value(key)));
    const row = element("div", { class: "hs-neuron-row", role: "row", "data-key": String(key) }, word, space(), space(), share, ...numbers, weightCell(parts.weights[key]));
    if (parts.scores[key] < -1e4) row.classList.add("hs-masked");
    return row;
  }

  /** The sink, if there is one, and the sum. @param {Column[]} columns @returns {HTMLElement[]} */
  totals(columns) {
    const { head, parts } = this.current();
    const sum = parts.weights.reduce((a, b) => a + b, 0);
    const lines = [];
    if (head.sink !== null) lines.push(totalLine("learned sink", columns, signed(head.sink), parts.sink));
    lines.push(totalLine(head.sink === null ? "sum" : "sum with sink", columns, "", sum + parts.sink));
    return lines;
  }

  /** @param {string} name @param {ArrayLike<number>} values @param {string} place @returns {HTMLElement} */
  strip(name, values, place) {
    const { order, theme } = this.current();
    const canvas = element("canvas", { "aria-hidden": "true", "data-strip": name });
    const cursor = element("span", { class: "hs-cursor" });
    const size = stripSize(order.length);
    cursor.style.width = `${size.cell}px`;
    paintStrips(canvas, values, order, size, theme);
    const holder = element("div", { class: `hs-strip-holder ${place}` }, canvas, cursor);
    canvas.addEventListener("pointermove", (event) => this.setNeuron(Math.floor(event.offsetX / size.cell)));
    canvas.addEventListener("pointerleave", () => this.setNeuron(null));
    return holder;
  }

  /** Show the share of one neuron in every score. @param {number | null} at  its place on screen */
  setNeuron(at) {
    const { order, parts, head } = this.current();
    const neuron = at === null || at < 0 || at >= order.length ? null : order[at];
    this.neuron = neuron;
    this.shareHeading.textContent = neuron === null ? "neuron" : `neuron ${neuron}`;
    this.shareCells.forEach((cell, key) => {
      const product = neuron === null ? 0 : parts.products[key * order.length + neuron];
      cell.textContent = neuron === null ? "" : `${signed(product * head.scaling)} ${share(product, parts.dots[key]).padStart(6)}`;
    });
    for (const cursor of /** @type {NodeListOf<HTMLElement>} */ (this.root.querySelectorAll(".hs-cursor"))) {
      cursor.hidden = neuron === null;
      cursor.style.left = `${(at ?? 0) * stripSize(order.length).cell}px`;
    }
  }

  /** @returns {Rows} */
  current() {
    if (!this.rows) throw new Error("Nothing is shown yet.");
    return this.rows;
  }
}

/** @returns {HTMLElement} */
function space() {
  return element("span", { class: "hs-cell hs-strip", role: "cell" });
}

/** @param {number} weight @returns {HTMLElement} */
function weightCell(weight) {
  const bar = element("span", { class: "hs-weight-bar" });
  bar.style.setProperty("--share", String(Math.min(1, weight)));
  return element("span", { class: "hs-cell hs-weight", role: "cell" }, bar, element("span", { class: "hs-number" }, weight.toFixed(4)));
}

/** @param {string} name @param {Column[]} columns @param {string} score @param {number} weight @returns {HTMLElement} */
function totalLine(name, columns, score, weight) {
  const blanks = columns.map((_, i) => element("span", { class: "hs-cell hs-figure hs-number", role: "cell" }, i === columns.length - 1 ? score : ""));
  const word = element("span", { class: "hs-cell hs-word", role: "rowheader" }, name);
  const gap = element("span", { class: "hs-cell hs-share", role: "cell" });
  return element("div", { class: "hs-neuron-row hs-total", role: "row" }, word, space(), space(), gap, ...blanks, weightCell(weight));
}

/** @param {number} product @param {number} dot @returns {string} */
function share(product, dot) {
  return dot === 0 ? "–" : `${((100 * product) / dot).toFixed(0).replace("-", "−")} %`;
}
