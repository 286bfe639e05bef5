/**
 * The sheet of thumbnails. What is on screen is drawn first, the rest layer by layer in between.
 *
 * @typedef {{first: number, special: number, hidden: number}} Shares
 * @typedef {{cell: Cell, node: HTMLButtonElement, canvas: HTMLCanvasElement, small: Drawing |
 *   null, hidden: number}} Thumb  hidden: share of the attention that goes to hidden tokens
 */

import { colorOfRole, headColor } from "../../ui/colors.js";
import { penOf } from "../../draw/pixels.js";
import { isTouched } from "../../ui/host.js";
import { h } from "../../ui/dom.js";
import { isSummary } from "../shared/data.js";
import { nameHead, nameLayer, nameWithinLayer } from "../../ui/heads.js";
import { cellRows, shownRows, same } from "./grid.js";
import { paintAll } from "../../draw/scene.js";
import { binned, isBlank, paintMatrix, reasonShapes, thumbnailShapes } from "./thumbnail.js";
import { drawingOf, massTo } from "../shared/units.js";
import { placeInRows } from "../../ui/roving.js";

/**
 * @import { Theme } from "../../ui/colors.js"
 * @import { Data } from "../shared/data.js"
 * @import { Store } from "../shared/state.js"
 * @import { Shape } from "../../draw/scene.js"
 * @import { Drawing } from "../shared/units.js"
 * @import { Cell } from "./grid.js"
 */

const GAP = 6;
const LABEL = 44;
const TOUCHED = 40; // smallest thumbnail for a finger
const PATIENCE = 100; // milliseconds until what is found is painted; twice as many for the next
const RANKED = 82; // wide enough for L11H11 and a score

export class Sheet {
  /**
   * @param {HTMLElement} parent
   * @param {Data} data
   * @param {Store} store
   * @param {() => void} onOpen  a head was clicked
   */
  constructor(parent, data, store, onOpen) {
    this.onOpen = onOpen;
    this.data = data;
    this.store = store;
    this.root = h("div", { class: "hs-sheet", role: "grid", "aria-label": "Heads" });
    parent.append(this.root);
    /** @type {Cell[][]} */
    this.rows = [];
    /** @type {Thumb[]} */
    this.thumbs = [];
    /** Thumbnails that are found and not yet painted. @type {Thumb[]} */
    this.unpainted = [];
    this.size = 80;
    this.drawnSize = 80;
    this.columns = 1;
    /** @type {Theme} */
    this.theme = "light";
    this.round = 0;
    this.visible = Promise.resolve();
    this.finished = Promise.resolve();
    /**
     * Shares of attention that go to first, special and hidden tokens, one entry per head.
     * @type {Shares[]}
     */
    this.shares = [];
    this.root.addEventListener("click", (event) => this.open(event.target));
    this.root.addEventListener("keydown", (event) => this.onKey(event));
  }

  /** @param {Theme} theme */
  build(theme) {
    const { state } = this.store;
    this.theme = theme;
    this.rows = cellRows(this.data.stack(state.stack), state);
    this.setSize();
    this.drawnSize = this.size;
    this.thumbs = [];
    this.unpainted = [];
    this.shares = [];
    const isRanked = state.ranked && state.order !== "number";
    this.root.classList.toggle("hs-ranked", isRanked);
    this.root.replaceChildren(...(isRanked ? this.rankedNodes() : this.gridNodes()));
    if (this.thumbs.length === 0)
      this.root.append(h("p", { class: "hs-empty" }, "No layer or no head is chosen."));
    this.mark();
    this.draw(++this.round);
  }

  setSize() {
    const { ranked } = this.store.state;
    const widest = Math.max(1, ...this.rows.map((row) => row.length));
    const room = this.root.clientWidth;
    const least = isTouched() ? TOUCHED : 28;
    this.size = ranked
      ? RANKED
      : Math.max(
          least,
          Math.min(room > 1800 ? 140 : 96, Math.floor((room - LABEL) / widest) - GAP),
        );
    this.columns = ranked ? Math.max(1, Math.floor((room + GAP) / (this.size + GAP))) : widest;
    this.root.style.setProperty("--thumb", `${this.size}px`);
    this.root.style.setProperty("--columns", String(this.columns));
  }

  /** @returns {HTMLElement[]} */
  gridNodes() {
    const byNumber = this.store.state.order === "number";
    const headings = byNumber && this.rows.length > 0 ? [this.headings()] : [];
    const lines = this.rows.map((row) => {
      const line = h("div", { class: "hs-sheet-row", role: "row" });
      line.append(
        h(
          "span",
          { class: "hs-row-name", role: "rowheader" },
          row.length > 0 ? nameLayer(row[0].layer) : "",
        ),
      );
      line.append(...row.map((cell) => this.thumb(cell, byNumber ? "" : caption(cell, false))));
      return line;
    });
    return [...headings, ...lines];
  }

  /** @returns {HTMLElement} */
  headings() {
    const line = h(
      "div",
      { class: "hs-sheet-row hs-headings", role: "row" },
      h("span", { class: "hs-row-name" }),
    );
    const names =
      this.store.state.weights === "rollout"
        ? ["all"]
        : this.rows[0].map(({ head }) => nameWithinLayer(head));
    line.append(...names.map((name) => h("span", { role: "columnheader" }, name)));
    return line;
  }

  /** @returns {HTMLElement[]} */
  rankedNodes() {
    return this.rows[0].map((cell) => this.thumb(cell, caption(cell, true)));
  }

  /** @param {Cell} cell @param {string} text @returns {HTMLElement} */
  thumb(cell, text) {
    const canvas = h("canvas", { "aria-hidden": "true" });
    const sharp = Math.max(1, window.devicePixelRatio || 1);
    canvas.width = canvas.height = Math.round(this.size * sharp);
    const role = this.role(cell)?.[0];
    const label = role ? `${name(cell)}: ${role}` : name(cell);
    const node = h(
      "button",
      {
        type: "button",
        class: "hs-thumb",
        role: "gridcell",
        "aria-label": label,
        title: label,
        tabindex: "-1",
      },
      canvas,
    );
    for (const line of [text, role])
      if (line) node.append(h("span", { class: "hs-caption" }, line));
    this.thumbs.push({ cell, node, canvas, small: null, hidden: 0 });
    return node;
  }

  /**
   * Make room for the enlarged head, or take it back; the pictures only shrink, so they stay as
   * they are.
   */
  fit() {
    this.setSize();
    if (this.size > this.drawnSize && this.thumbs.length) this.build(this.theme);
  }

  /** Show which thumbnail is the current one. */
  mark() {
    const enlarged = this.store.state.enlarged && !isSummary(this.store.state);
    const current = this.thumbs.find(({ cell }) => same(cell, this.current())) ?? this.thumbs[0];
    for (const thumb of this.thumbs) {
      thumb.node.tabIndex = thumb === current ? 0 : -1;
      thumb.node.setAttribute("aria-selected", String(enlarged && thumb === current));
    }
  }

  /** The current cell; rollout has one for each layer. */
  current() {
    const { layer, head, weights } = this.store.state;
    return { layer, head: weights === "rollout" ? 0 : head };
  }

  /** @param {number} round */
  draw(round) {
    this.visible = this.drawWhile(round, true);
    this.finished = this.visible.then(() => this.drawWhile(round, false));
  }

  /** @param {number} round @param {boolean} onlyVisible */
  async drawWhile(round, onlyVisible) {
    let [painted, patience] = [performance.now(), PATIENCE];
    for (;;) {
      const next = this.nextLayer(onlyVisible);
      if (round !== this.round) return;
      if (next === null || performance.now() - painted > patience) {
        this.paintNew();
        [painted, patience] = [performance.now(), 2 * patience];
      }
      if (next === null) return;
      await this.drawLayer(next, round);
      // A frame for the page to scroll and answer in.
      if (!onlyVisible) await new Promise((done) => setTimeout(done));
    }
  }

  /**
   * Paint what is found, seldom: whenever one canvas has changed, the browser puts all of them
   * together again.
   */
  paintNew() {
    for (const thumb of this.unpainted.splice(0)) this.paint(thumb);
  }

  /** @param {boolean} onlyVisible @returns {number | null} */
  nextLayer(onlyVisible) {
    const waiting = this.thumbs.filter(({ small }) => small === null);
    const seen = waiting.find(({ node }) => isOnScreen(node));
    return (seen ?? (onlyVisible ? undefined : waiting[0]))?.cell.layer ?? null;
  }

  /** @param {number} layer @param {number} round */
  async drawLayer(layer, round) {
    const { state } = this.store;
    const stack = this.data.stack(state.stack);
    const weights = await this.data.weights(stack, state.weights, layer, state.window);
    if (round !== this.round) return;
    for (const thumb of this.thumbs) {
      if (thumb.cell.layer !== layer || thumb.small) continue;
      const drawing = drawingOf(stack, weights, state, [thumb.cell.head]);
      const shares = sharesOf(drawing);
      this.shares.push(shares);
      thumb.hidden = shares.hidden;
      thumb.small = binned(drawing, this.kind());
      this.unpainted.push(thumb);
    }
  }

  /** @param {Thumb} thumb */
  paint(thumb) {
    const pen = penOf(thumb.canvas);
    pen.scale(thumb.canvas.width / this.size, thumb.canvas.width / this.size);
    const isPicture = thumb.small && !isBlank(thumb.small) && this.kind() === "matrix";
    if (thumb.small && isPicture) paintMatrix(pen, thumb.small, this.size, this.color(thumb.cell));
    else paintAll(pen, this.shapes(thumb, 0, 0));
  }

  /** @param {Thumb} thumb @param {number} x @param {number} y @returns {Shape[]} */
  shapes({ small, cell, hidden }, x, y) {
    if (!small) return [];
    const box = { x, y, size: this.size };
    if (isBlank(small)) return reasonShapes(hidden, box, this.theme);
    const { mass } = this.store.state;
    return thumbnailShapes(small, this.kind(), box, this.color(cell), mass);
  }

  /** @returns {"lines" | "matrix"} */
  kind() {
    return /** @type {"lines" | "matrix"} */ (this.store.state.thumbnail);
  }

  /** Matrices have the colour of what the head does. @param {Cell} cell @returns {string} */
  color(cell) {
    const role = this.kind() === "matrix" ? this.role(cell) : null;
    return role ? colorOfRole(this.theme, role[1]) : headColor(this.theme, 0);
  }

  /**
   * The name of what a head does and its group; rollout is of no single head.
   * @param {Cell} cell
   * @returns {[string, string] | null}
   */
  role({ layer, head }) {
    const { stack: name, weights } = this.store.state;
    const stack = this.data.stack(name);
    if (weights === "rollout") return null;
    return stack.roles[stack.layers.indexOf(layer)]?.[stack.heads.indexOf(head)] ?? null;
  }

  /** @param {EventTarget | null} target */
  open(target) {
    const thumb = this.thumbs.find(({ node }) => target instanceof Node && node.contains(target));
    if (!thumb) return;
    this.store.set({
      layer: thumb.cell.layer,
      head: thumb.cell.head,
      enlarged: true,
      summary: "each",
    });
    this.onOpen();
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const rows = shownRows(this.rows, this.store.state.ranked ? this.columns : 0);
    const next = placeInRows(event, rows, (cell) => same(cell, this.current()));
    if (!next) return;
    event.preventDefault();
    this.store.set({ layer: next.layer, head: next.head });
    this.thumbs.find(({ cell }) => same(cell, next))?.node.focus();
  }
}

/** @param {Drawing} drawing @returns {Shares} */
function sharesOf(drawing) {
  const { special, hidden } = drawing.keys;
  return {
    first: massTo(drawing, (key) => key === 0),
    special: special.includes(true) ? massTo(drawing, (key) => special[key]) : 0,
    hidden: hidden.includes(1) ? massTo(drawing, (key) => hidden[key] === 1) : 0,
  };
}

/** @param {Cell} cell @param {boolean} withLayer @returns {string} */
function caption(cell, withLayer) {
  const score = cell.score === null ? "" : ` ${cell.score.toPrecision(3)}`;
  return `${withLayer ? nameHead(cell.layer, cell.head) : nameWithinLayer(cell.head)}${score}`;
}

/** @param {Cell} cell @returns {string} */
function name(cell) {
  return `Layer ${cell.layer}, head ${cell.head}${cell.score === null ? "" : `: ${cell.score}`}`;
}

/** @param {HTMLElement} node @returns {boolean} */
function isOnScreen(node) {
  const { top, bottom } = node.getBoundingClientRect();
  return bottom > 0 && top < window.innerHeight;
}
