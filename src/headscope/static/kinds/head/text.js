/**
 * The head view as running text: the chosen tokens' attention as a shade behind every token that
 * gets it. Several heads are averaged, several chosen tokens too; without any it is the generated
 * tokens, or all.
 *
 * @typedef {Picture & {stack: Stack, layer: LayerWeights}} TextPicture
 */

import { opacity } from "../../draw/line.js";
import { headColor, inkOn, mixed, rgb } from "../../ui/colors.js";
import { textWidth } from "../../ui/fonts.js";
import { segments } from "../../ui/controls.js";
import { h } from "../../ui/dom.js";
import { keysOf } from "../shared/data.js";
import { COLORS } from "../../ui/theme.js";
import { Selecting } from "../shared/select.js";
import { samePin } from "../shared/spans.js";
import { isShown } from "../shared/units.js";
import { focusOne, stepOf } from "../../ui/roving.js";

/**
 * @import { LayerWeights, Side, Stack } from "../shared/data.js"
 * @import { Line } from "../shared/lines.js"
 * @import { Scene, Shape } from "../../draw/scene.js"
 * @import { Place } from "../shared/select.js"
 * @import { Pin } from "../shared/spans.js"
 * @import { Drawing, Units } from "../shared/units.js"
 * @import { Run } from "./shapes.js"
 * @import { Focus, Picture } from "./stage.js"
 */

const STRONGEST = 0.75; // opacity behind the largest weight
const FAINT = 0.15; // behind stronger shades words are black or white, whichever is read better
const PRINT = { width: 640, size: 13, line: 22, margin: 16 };

export class TextStage {
  /**
   * @param {HTMLElement} parent
   * @param {(pin: Pin | null) => void} onPin
   * @param {(focus: Focus) => void} onFocus
   */
  constructor(parent, onPin, onFocus) {
    this.onPin = onPin;
    this.onFocus = onFocus;
    /** Whether a token that is pointed at looks, or is looked at. @type {"q" | "k"} */
    this.asking = "q";
    this.turn = segments(
      "Shade",
      [
        { value: "q", text: "what they look at" },
        { value: "k", text: "what looks at them" },
      ],
      () => this.asking,
      (side) => this.ask(/** @type {"q" | "k"} */ (side)),
    );
    this.body = h("div", {});
    this.root = h("div", { class: "hs-text-stage" }, this.body);
    parent.append(this.root);
    /** @type {TextPicture | null} */
    this.picture = null;
    /** @type {Pin | null} */
    this.hover = null;
    /** @type {Record<"q" | "k", HTMLElement[]>} */
    this.tokens = { q: [], k: [] };
    /** @type {Line[]} */
    this.drawn = [];
    /** @type {Float64Array} */
    this.values = new Float64Array(0);
    this.selecting = new Selecting(this.body, {
      pinned: () => this.picture?.pin ?? null,
      onHover: (hover) => this.setHover(this.turned(hover)),
      onPin: (pin) => this.onPin(this.turned(pin)),
      next: (event, at) => nextPlace(event, at),
      focus: ({ side, index }) => this.focusToken(side, index),
    });
  }

  /** @param {TextPicture} picture */
  show(picture) {
    this.picture = picture;
    this.hover = null;
    if (picture.pin) this.asking = picture.pin.side;
    this.turn.update();
    this.place();
    this.shade();
  }

  /**
   * A text that looks at itself is written once; its tokens are asked for either side.
   * @param {Pin | null} pin
   * @returns {Pin | null}
   */
  turned(pin) {
    return pin && this.picture?.stack.keys === null ? { ...pin, side: this.asking } : pin;
  }

  /** @param {"q" | "k"} side */
  ask(side) {
    this.asking = side;
    const pin = this.picture?.pin;
    if (pin) this.onPin({ ...pin, side });
    this.turn.update();
    this.shade();
  }

  place() {
    const { drawing, stack, look } = this.current();
    const sides = /** @type {("q" | "k")[]} */ (stack.keys ? ["q", "k"] : ["q"]);
    const blocks = sides.map((side) => {
      const units = side === "q" ? drawing.queries : drawing.keys;
      const made = tokensOf(side === "q" ? stack.queries : keysOf(stack), units, look.runs[side]);
      this.tokens[side] = made.tokens;
      const name = stack.keys ? (side === "q" ? "Attending text" : "Attended text") : "Text";
      return h(
        "div",
        {
          class: "hs-text",
          role: "listbox",
          "aria-multiselectable": "true",
          "aria-label": name,
          "data-side": side,
          dir: "auto",
        },
        ...made.nodes,
      );
    });
    if (!stack.keys) this.tokens.k = this.tokens.q;
    this.body.replaceChildren(...blocks);
  }

  /**
   * Whose attention is shown: of the token pointed at, of those chosen, of the generated ones, of
   * all.
   * @returns {Pin}
   */
  active() {
    const { pin, drawing, look } = this.current();
    const found = pin ?? this.hover;
    if (found) return found;
    const units = this.asking === "q" ? drawing.queries : drawing.keys;
    const from = this.asking === "q" ? (look.prompt ?? 0) : 0;
    const indices = units.labels
      .map((_, index) => index)
      .filter((index) => index >= from && units.kept[index]);
    return { side: this.asking, indices };
  }

  shade() {
    const { drawing, look, pin } = this.current();
    const active = this.active();
    const others = active.side === "q" ? drawing.keys : drawing.queries;
    this.values = attentionOn(drawing, active);
    const most = Math.max(...this.values, 1e-12);
    const color = headColor(look.theme, drawing.heads.length === 1 ? drawing.heads[0] : 0);
    const unitOf = unitOfTokens(others);
    for (const side of /** @type {("q" | "k")[]} */ (["q", "k"])) {
      const isShaded = this.tokens.q === this.tokens.k || side !== active.side;
      this.tokens[side].forEach((token, i) => {
        const value = isShaded ? this.values[unitOf[i]] : 0;
        const share = STRONGEST * opacity(value / most);
        const [red, green, blue] = rgb(color);
        token.style.backgroundColor =
          value > 0 ? `rgba(${red},${green},${blue},${share.toFixed(3)})` : "";
        token.style.color =
          share > FAINT ? inkOn(mixed(COLORS[look.theme].paper, color, share)) : "";
      });
    }
    this.mark(pin, this.hover);
    const told = pin ?? this.hover;
    this.onFocus({
      pin: told ?? (active.indices.length ? active : null),
      pair: null,
      drawn: 0,
      total: 0,
    });
  }

  /** @param {Pin | null} pin @param {Pin | null} hover */
  mark(pin, hover) {
    for (const side of /** @type {("q" | "k")[]} */ (
      this.tokens.q === this.tokens.k ? ["q"] : ["q", "k"]
    )) {
      const isOwn = (/** @type {Pin | null} */ one) =>
        one && (this.tokens.q === this.tokens.k || one.side === side);
      const [chosen, pointed] = [pin, hover].map((one) => new Set(isOwn(one) ? one?.indices : []));
      for (const token of this.tokens[side]) {
        const index = Number(token.dataset.index);
        token.setAttribute("aria-selected", String(chosen.has(index)));
        token.classList.toggle("hs-active", pointed.has(index));
      }
    }
  }

  /** @param {Pin | null} hover */
  setHover(hover) {
    if (!this.picture || samePin(hover, this.hover)) return;
    this.hover = hover;
    this.shade();
  }

  /** @param {"q" | "k"} side @param {number} index @returns {boolean} */
  focusToken(side, index) {
    const next = this.tokens[side].find((token) => Number(token.dataset.index) === index);
    if (!next) return false;
    focusOne(this.body.querySelectorAll(".hs-token[tabindex='0']"), next);
    return true;
  }

  /** The text with its shades, for print. @returns {Scene} */
  scene() {
    const { drawing, look, stack } = this.current();
    const active = this.active();
    const units = active.side === "q" ? drawing.keys : drawing.queries;
    const side = active.side === "q" ? keysOf(stack) : stack.queries;
    const most = Math.max(...this.values, 1e-12);
    const color = headColor(look.theme, drawing.heads.length === 1 ? drawing.heads[0] : 0);
    const unitOf = unitOfTokens(units);
    /** @type {Shape[]} */
    const shapes = [];
    const { width, size, line, margin } = PRINT;
    let [x, y] = [margin, margin + line / 2];
    unitOf.forEach((unit, token) => {
      const label = side.labels[units.start + token];
      const gap = side.gaps[units.start + token];
      const wide = textWidth(label, size);
      const after = token > 0 && side.labels[units.start + token - 1].endsWith("⏎");
      x += gap === 1 ? 4 : 0;
      if (token > 0 && (gap === 2 || after || x + wide > width - margin))
        [x, y] = [margin, y + line];
      const alpha = STRONGEST * opacity(this.values[unit] / most);
      const { ink, paper } = COLORS[look.theme];
      const above = alpha > FAINT ? inkOn(mixed(paper, color, alpha)) : ink;
      shapes.push({
        kind: "cells",
        boxes: [x, y - line * 0.45, wide, line * 0.9],
        color,
        alpha,
      });
      shapes.push({ kind: "text", at: [x, y], text: label, size, color: above });
      x += wide;
    });
    return { width, height: y + line / 2 + margin, paper: COLORS[look.theme].paper, shapes };
  }

  remove() {
    this.selecting.remove();
  }

  /** @returns {TextPicture} */
  current() {
    if (!this.picture) throw new Error("Nothing is shown yet.");
    return this.picture;
  }
}

/**
 * What each unit of the other side gets from those asked for: of attending ones the mean, of
 * attended ones the sum.
 * @param {Drawing} drawing
 * @param {Pin} asked
 * @returns {Float64Array}
 */
function attentionOn(drawing, { side, indices }) {
  const columns = drawing.keys.labels.length;
  const values = new Float64Array((side === "q" ? drawing.keys : drawing.queries).labels.length);
  const share = 1 / Math.max(1, drawing.weights.length * (side === "q" ? indices.length : 1));
  for (const weights of drawing.weights) {
    for (const index of indices) {
      for (let other = 0; other < values.length; other++) {
        const [query, key] = side === "q" ? [index, other] : [other, index];
        if (isShown(drawing, query, key)) values[other] += weights[query * columns + key] * share;
      }
    }
  }
  return values;
}

/** @param {Units} units @returns {number[]} the unit of each token */
function unitOfTokens({ members }) {
  /** @type {number[]} */
  const unitOf = [];
  members.forEach((group, unit) => group.forEach((token) => (unitOf[token] = unit)));
  return unitOf;
}

/**
 * Tokens in lines, as the text was written; a span begins with its name.
 * @param {Side} side
 * @param {Units} units
 * @param {Run[]} runs
 * @returns {{tokens: HTMLElement[], nodes: (Node | string)[]}}
 */
function tokensOf(side, units, runs) {
  /** @type {(Node | string)[]} */
  const nodes = [];
  const begins = new Map(runs.map((run) => [units.members[run.from][0], run]));
  const tokens = unitOfTokens(units).map((unit, i) => {
    const at = units.start + i;
    const run = begins.get(i);
    if (i > 0 && (side.gaps[at] === 2 || side.labels[at - 1].endsWith("⏎"))) nodes.push(h("br"));
    else if (side.gaps[at] === 1) nodes.push(" ");
    if (run) {
      const name = h("span", { class: "hs-span-name", "aria-hidden": "true" }, run.name);
      name.style.setProperty("--chip", run.color);
      nodes.push(name);
    }
    const token = h("span", {
      class: "hs-token",
      role: "option",
      "data-index": String(unit),
      tabindex: i === 0 ? "0" : "-1",
    });
    token.textContent = side.labels[at];
    token.classList.toggle("hs-special", side.special[at] === 1);
    token.classList.toggle("hs-hidden", !units.kept[unit]);
    nodes.push(token);
    return token;
  });
  return { tokens, nodes };
}

/** @param {KeyboardEvent} event @param {Place} at @returns {Place | null} */
function nextPlace(event, { side, index }) {
  const step = stepOf(event);
  return step && { side, index: index + step.across + step.down };
}
