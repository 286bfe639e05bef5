/**
 * The table of the neuron view: a row per key token, its weight first, then what it is made of.
 *
 * @typedef {object} Rows
 * @property {Head} head
 * @property {Parts} parts
 * @property {string} name  of the head: L5H1
 * @property {number} number  of the head within its layer
 * @property {number} query
 * @property {string[]} queries
 * @property {number[]} keys  the attended tokens as they are listed
 * @property {string[]} labels  of them
 * @property {number[]} order
 * @property {Theme} theme
 * @property {Sizes} sizes
 * @property {{vectors: number, products: number}} most  the magnitudes painted fully saturated
 *
 * @typedef {{pitch: number, tall: number, cell: number, own: number, link: number}} Sizes
 * cell: width of a neuron in the table; own: in the list of queries, 0 without it; link: width of
 * the lines
 * @typedef {{title: string, hint: string, value: (key: number) => string}} Column
 */

import { isTouched } from "../../ui/host.js";
import { h } from "../../ui/dom.js";
import { sized } from "../../draw/pixels.js";
import { paintAll } from "../../draw/scene.js";
import { paintStrips } from "./strips.js";
import { sumShapes } from "./sums.js";

/**
 * @import { Theme } from "../../ui/colors.js"
 * @import { Head, Parts } from "./neurons.js"
 */

export const PITCH = 22;
import { fixed, percent } from "../../ui/numbers.js";
export const SUM = 104; // width of the running sum
const FIXED = 376; // what stands beside the strips, without the steps
const STEP = 70; // a step's column of numbers
const WIDE = 860; // from here on the queries stand beside the keys
const MOST_LISTED = 64; // queries beside the keys; more are chosen from a menu

/**
 * @param {number} dim
 * @param {number} steps
 * @param {number} room
 * @param {number} queries
 * @param {boolean} [touched]
 * @returns {Sizes}
 */
export function sizesOf(dim, steps, room, queries, touched = isTouched()) {
  const beside = room >= WIDE && queries <= MOST_LISTED;
  const link = beside ? Math.max(56, Math.min(140, Math.round(room * 0.08))) : 0;
  const strips = Math.max(150, room - FIXED - steps * STEP - (beside ? 118 + link : 0));
  const cell = cellOf(dim, beside ? Math.max(96, Math.min(208, strips * 0.38)) : 132);
  return {
    pitch: touched && beside ? 40 : PITCH,
    tall: 15,
    cell,
    own: beside ? cellOf(dim, Math.max(48, Math.min(104, strips * 0.2))) : 0,
    link,
  };
}

/** @param {number} dim @param {number} width @returns {number} */
function cellOf(dim, width) {
  const wide = width / dim;
  return Math.max(0.5, Math.min(6, wide >= 1 ? Math.floor(wide) : wide));
}

/**
 * The steps a model has, as columns of numbers.
 * @param {Pick<Rows, "head" | "parts" | "query">} rows
 * @returns {Column[]}
 */
export function columnsOf({ head, parts, query }) {
  const { bias } = head;
  /** @type {Column[]} */
  const columns = [
    { title: "q·k", hint: "sum of the products", value: (key) => signed(parts.dots[key]) },
    {
      title: `× ${Number(head.scaling.toPrecision(4))}`,
      hint: "scaled",
      value: (key) => signed(parts.scaled[key]),
    },
  ];
  if (head.softcap !== null) {
    columns.push({
      title: `cap ${head.softcap}`,
      hint: "c · tanh(score / c)",
      value: (key) => signed(parts.capped[key]),
    });
  }
  if (bias)
    columns.push({
      title: biasTitle(head, query),
      hint: "added to the score before the softmax",
      value: (key) => added(bias(query, key)),
    });
  return columns;
}

/**
 * A bias that is nothing but zeros and −∞ is a mask.
 * @param {Head} head
 * @param {number} query
 * @returns {string}
 */
function biasTitle({ bias, keys }, query) {
  const values = Array.from({ length: keys }, (_, key) => (bias ? bias(query, key) : 0));
  return values.every((value) => value === 0 || value < -1e4) ? "+ mask" : "+ bias";
}

/** @param {number} value @returns {string} */
export function signed(value) {
  return fixed(value, Math.abs(value) >= 1000 ? 0 : Math.abs(value) >= 100 ? 1 : 3);
}

/** @param {number} bias @returns {string} */
function added(bias) {
  if (bias < -1e4) return "masked";
  return bias === 0 ? "0" : signed(bias);
}

export class NeuronTable {
  /**
   * @param {HTMLElement} parent
   * @param {(key: number | null) => void} onKey  the row that is pointed at
   */
  constructor(parent, onKey) {
    this.root = h("div", {
      class: "hs-neurons",
      role: "table",
      "aria-label": "From query and keys to weights",
    });
    parent.append(this.root);
    /** @type {Rows | null} */
    this.rows = null;
    /** @type {number | null} */
    this.neuron = null;
    this.shareHeading = h("span", {
      class: "hs-cell hs-share",
      role: "columnheader",
      title:
        "The products added up, neuron by neuron. Point at a vector: what one neuron adds to " +
        "each score, and its share",
    });
    /** @type {HTMLElement[]} */
    this.shareCells = [];
    this.root.addEventListener("pointerover", (event) => onKey(keyAt(event.target)));
    this.root.addEventListener("pointerleave", () => onKey(null));
  }

  /** @param {Rows} rows */
  show(rows) {
    this.rows = rows;
    const columns = columnsOf(rows);
    const { cell, pitch } = rows.sizes;
    this.root.style.setProperty("--strip", `${cell * rows.head.dim}px`);
    this.root.style.setProperty("--pitch", `${pitch}px`);
    this.shareCells = [];
    const lines = rows.labels.map((label, key) => this.line(label, key, columns));
    const body = h("div", { class: "hs-neuron-body", role: "rowgroup" }, ...lines);
    this.root.replaceChildren(
      this.heading(columns),
      this.queryLine(),
      body,
      ...this.totals(columns),
    );
    body.append(
      this.strip("key", rows.head.key, "hs-strip-key"),
      this.strip("product", rows.parts.products, "hs-strip-product"),
      this.sums(),
    );
    this.setNeuron(null);
  }

  /** @param {Column[]} columns @returns {HTMLElement} */
  heading(columns) {
    const names = ["", "weight", "key", "query × key"].map((text) =>
      h("span", { class: "hs-cell", role: "columnheader" }, text),
    );
    names[0].classList.add("hs-word");
    names[1].classList.add("hs-weight");
    names[1].title = "softmax of the scores";
    const numbers = columns.map(({ title, hint }) =>
      h("span", { class: "hs-cell hs-figure", role: "columnheader", title: hint }, title),
    );
    return h(
      "div",
      { class: "hs-neuron-row hs-heading", role: "row" },
      ...names,
      this.shareHeading,
      ...numbers,
    );
  }

  /** @returns {HTMLElement} */
  queryLine() {
    const { head, query, queries, order } = this.current();
    const cell = h("span", { class: "hs-cell", role: "cell" });
    cell.append(
      this.strip(
        "query",
        head.query.subarray(query * order.length, (query + 1) * order.length),
        "",
      ),
    );
    const caption = h("span", { class: "hs-cell hs-faint", role: "cell" }, "← its query");
    return h(
      "div",
      { class: "hs-neuron-row hs-query", role: "row" },
      wordCell(queries[query]),
      h("span", { class: "hs-cell hs-weight hs-faint", role: "cell" }, "looks at …"),
      cell,
      caption,
    );
  }

  /** @param {string} label @param {number} key @param {Column[]} columns @returns {HTMLElement} */
  line(label, key, columns) {
    const { parts, keys, query } = this.current();
    const share = h("span", { class: "hs-cell hs-share hs-number", role: "cell" });
    this.shareCells.push(share);
    const numbers = columns.map(({ value }) =>
      h("span", { class: "hs-cell hs-figure hs-number", role: "cell" }, value(key)),
    );
    const row = h(
      "div",
      {
        class: "hs-neuron-row",
        role: "row",
        "data-key": String(key),
        "data-weight": `${query} ${keys[key]}`,
      },
      wordCell(label),
      weightCell(parts.weights[key]),
      space(),
      space(),
      share,
      ...numbers,
    );
    if (parts.scores[key] < -1e4) row.classList.add("hs-masked");
    return row;
  }

  /** The sink, if there is one, and the sum. @param {Column[]} columns @returns {HTMLElement[]} */
  totals(columns) {
    const { head, parts } = this.current();
    const sum = parts.weights.reduce((a, b) => a + b, 0);
    const lines = [];
    if (head.sink !== null)
      lines.push(totalLine("learned sink", columns, signed(head.sink), parts.sink));
    lines.push(
      totalLine(head.sink === null ? "sum" : "sum with sink", columns, "", sum + parts.sink),
    );
    return lines;
  }

  /**
   * @param {string} name
   * @param {ArrayLike<number>} values
   * @param {string} place
   * @returns {HTMLElement}
   */
  strip(name, values, place) {
    const { order, theme, sizes, most } = this.current();
    const canvas = h("canvas", { "aria-hidden": "true", "data-strip": name });
    const cursor = h("span", { class: "hs-cursor" });
    cursor.style.width = `${sizes.cell}px`;
    paintStrips(
      canvas,
      values,
      order,
      sizes,
      theme,
      name === "product" ? most.products : most.vectors,
    );
    const holder = h("div", { class: `hs-strip-holder ${place}` }, canvas, cursor);
    canvas.addEventListener("pointermove", (event) =>
      this.setNeuron(Math.floor(event.offsetX / sizes.cell)),
    );
    canvas.addEventListener("pointerleave", () => this.setNeuron(null));
    return holder;
  }

  /** The products added up from left to right. @returns {HTMLCanvasElement} */
  sums() {
    const rows = this.current();
    const canvas = h("canvas", {
      class: "hs-sums",
      "aria-hidden": "true",
      "data-strip": "sum",
    });
    const pen = sized(canvas, SUM, rows.labels.length * rows.sizes.pitch);
    paintAll(pen, sumShapes(rows, [0, 0], SUM));
    return canvas;
  }

  /** Show the share of one neuron in every score. @param {number | null} at  its place on screen */
  setNeuron(at) {
    const { order, parts, head, sizes } = this.current();
    const neuron = at === null || at < 0 || at >= order.length ? null : order[at];
    this.neuron = neuron;
    this.root.classList.toggle("hs-one-neuron", neuron !== null);
    this.shareHeading.textContent = neuron === null ? "adding up" : `neuron ${neuron}`;
    this.shareCells.forEach((cell, key) => {
      const product = neuron === null ? 0 : parts.products[key * order.length + neuron];
      cell.textContent =
        neuron === null
          ? ""
          : `${signed(product * head.scaling)} ${share(product, parts.dots[key]).padStart(6)}`;
    });
    for (const cursor of /** @type {NodeListOf<HTMLElement>} */ (
      this.root.querySelectorAll(".hs-cursor")
    )) {
      cursor.hidden = neuron === null;
      cursor.style.left = `${(at ?? 0) * sizes.cell}px`;
    }
  }

  /** @returns {Rows} */
  current() {
    if (!this.rows) throw new Error("Nothing is shown yet.");
    return this.rows;
  }
}

/** @param {EventTarget | null} target @returns {number | null} */
function keyAt(target) {
  const row = target instanceof Element ? target.closest("[data-key]") : null;
  return row instanceof HTMLElement ? Number(row.dataset.key) : null;
}

/** @returns {HTMLElement} */
function space() {
  return h("span", { class: "hs-cell", role: "cell" });
}

/** @param {string} text @returns {HTMLElement} */
function wordCell(text) {
  const word = h("span", {
    class: "hs-cell hs-word",
    role: "rowheader",
    dir: "auto",
    title: text,
  });
  word.textContent = text;
  return word;
}

/** @param {number} weight @returns {HTMLElement} */
function weightCell(weight) {
  const bar = h("span", { class: "hs-weight-bar" });
  bar.style.setProperty("--share", String(Math.min(1, weight)));
  return h(
    "span",
    { class: "hs-cell hs-weight", role: "cell" },
    bar,
    h("span", { class: "hs-number" }, weight.toFixed(4)),
  );
}

/**
 * @param {string} name
 * @param {Column[]} columns
 * @param {string} score
 * @param {number} weight
 * @returns {HTMLElement}
 */
function totalLine(name, columns, score, weight) {
  const blanks = columns.map((_, i) =>
    h(
      "span",
      { class: "hs-cell hs-figure hs-number", role: "cell" },
      i === columns.length - 1 ? score : "",
    ),
  );
  const gap = h("span", { class: "hs-cell hs-share", role: "cell" });
  return h(
    "div",
    { class: "hs-neuron-row hs-total", role: "row" },
    wordCell(name),
    weightCell(weight),
    space(),
    space(),
    gap,
    ...blanks,
  );
}

/** @param {number} product @param {number} dot @returns {string} */
function share(product, dot) {
  return dot === 0 ? "–" : percent(product / dot, 0);
}
