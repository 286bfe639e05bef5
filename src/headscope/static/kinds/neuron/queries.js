/**
 * The tokens from which the neuron view takes its query, each with its query vector, and the lines
 * from the chosen one to the keys.
 */

import { lineWidth, opacity } from "../../draw/line.js";
import { headColor } from "../../ui/colors.js";
import { h } from "../../ui/dom.js";
import { sized } from "../../draw/pixels.js";
import { paintAll } from "../../draw/scene.js";
import { paintStrips } from "./strips.js";
import { placeInList } from "../../ui/roving.js";

/**
 * @import { Shape } from "../../draw/scene.js"
 * @import { Rows } from "./table.js"
 */

const VISIBLE = 1 / 255;

export class QueryList {
  /** @param {HTMLElement} parent @param {(query: number) => void} choose */
  constructor(parent, choose) {
    this.choose = choose;
    this.root = h("div", {
      class: "hs-query-list",
      role: "listbox",
      "aria-label": "Query token",
    });
    this.vectors = h("canvas", {
      class: "hs-query-vectors",
      "aria-hidden": "true",
      "data-strip": "queries",
    });
    this.lines = h("canvas", { class: "hs-query-lines", "aria-hidden": "true" });
    this.names = "";
    parent.append(
      h(
        "div",
        { class: "hs-query-side" },
        h("span", { class: "hs-faint" }, "queries"),
        this.root,
        this.vectors,
      ),
      this.lines,
    );
    this.root.addEventListener("click", (event) => {
      const found = event.target instanceof Element ? event.target.closest("[data-index]") : null;
      if (found instanceof HTMLElement) choose(Number(found.dataset.index));
    });
    this.root.addEventListener("keydown", (event) => this.onKey(event));
  }

  /** @param {Rows} rows */
  show(rows) {
    const { queries, query } = rows;
    if (this.names !== queries.join("\0")) {
      this.names = queries.join("\0");
      this.root.replaceChildren(...queries.map(option));
    }
    [...this.root.children].forEach((child, index) => {
      child.setAttribute("aria-selected", String(index === query));
      child.setAttribute("tabindex", index === query ? "0" : "-1");
    });
    const { sizes, head, order, theme, most } = rows;
    this.root.parentElement?.style.setProperty("--pitch", `${sizes.pitch}px`);
    if (sizes.own === 0) return;
    paintStrips(
      this.vectors,
      head.query,
      order,
      { ...sizes, cell: sizes.own },
      theme,
      most.vectors,
    );
    this.paintLines(rows);
  }

  /** @param {Rows} rows */
  paintLines(rows) {
    const { sizes, queries, labels } = rows;
    const height = Math.max(queries.length, labels.length) * sizes.pitch;
    paintAll(sized(this.lines, sizes.link, height), linkShapes(rows, [0, 0]));
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (!(event.target instanceof HTMLElement)) return;
    const at = Number(event.target.dataset.index);
    const next = placeInList(event, at, this.root.children.length);
    const found = next === null ? null : this.root.children[next];
    if (next === null || !(found instanceof HTMLElement)) return;
    event.preventDefault();
    this.choose(next);
    found.focus();
  }
}

/**
 * The weights as lines from the chosen query to every key.
 * @param {Rows} rows
 * @param {[number, number]} at
 * @returns {Shape[]}
 */
export function linkShapes({ parts, query, number, theme, sizes }, [left, top]) {
  const { pitch, link } = sizes;
  const middle = (/** @type {number} */ row) => top + (row + 0.5) * pitch;
  return [...parts.weights].flatMap((weight, key) =>
    opacity(weight) < VISIBLE
      ? []
      : [
          /** @type {Shape} */ ({
            kind: "curve",
            from: [left, middle(query)],
            to: [left + link, middle(key)],
            color: headColor(theme, number),
            alpha: opacity(weight),
            width: lineWidth(weight),
          }),
        ],
  );
}

/** @param {string} text @param {number} index @returns {HTMLElement} */
function option(text, index) {
  const made = h("div", {
    class: "hs-option",
    role: "option",
    dir: "auto",
    title: text,
    "data-index": String(index),
  });
  made.textContent = text;
  return made;
}
