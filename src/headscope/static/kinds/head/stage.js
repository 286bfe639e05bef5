/**
 * Where a head view is drawn: two columns of tokens, the lines between them, numbers on hover.
 *
 * @typedef {object} Picture
 * @property {Drawing} drawing
 * @property {Look} look
 * @property {number} mass
 * @property {Pin | null} pin
 *
 * @typedef {{pin: Pin | null, pair: Pin | null, drawn: number, total: number}} Focus
 */

import { COLORS } from "../../ui/theme.js";
import { isTouched } from "../../ui/host.js";
import { h } from "../../ui/dom.js";
import { geometryOf, labelStart } from "./geometry.js";
import { curveOf, labelShapes, markShapes, numberShapes } from "./shapes.js";
import { cutoffs, overviewLines, tokenLines } from "../shared/lines.js";
import { paintAll } from "../../draw/scene.js";
import { Selecting } from "../shared/select.js";
import { samePin } from "../shared/spans.js";
import { focusOne, stepOf } from "../../ui/roving.js";

/**
 * @import { Line } from "../shared/lines.js"
 * @import { Scene, Shape } from "../../draw/scene.js"
 * @import { Place } from "../shared/select.js"
 * @import { Pin } from "../shared/spans.js"
 * @import { Drawing } from "../shared/units.js"
 * @import { Geometry } from "./geometry.js"
 * @import { Look } from "./shapes.js"
 */

const MOST_PIXELS = 16e6;
const MARGIN = 160;

export class Stage {
  /**
   * @param {HTMLElement} parent
   * @param {(pin: Pin | null) => void} onPin
   * @param {(focus: Focus) => void} onFocus
   */
  constructor(parent, onPin, onFocus) {
    this.onPin = onPin;
    this.onFocus = onFocus;
    this.root = h("div", { class: "hs-stage" });
    this.overview = h("canvas", { class: "hs-lines", "aria-hidden": "true" });
    this.detail = h("canvas", { class: "hs-lines", "aria-hidden": "true" });
    this.columns = {
      q: h("div", {
        class: "hs-tokens",
        role: "listbox",
        "aria-multiselectable": "true",
        "aria-label": "Attending tokens",
        "data-side": "q",
      }),
      k: h("div", {
        class: "hs-tokens",
        role: "listbox",
        "aria-multiselectable": "true",
        "aria-label": "Attended tokens",
        "data-side": "k",
      }),
    };
    this.root.append(this.overview, this.detail, this.columns.q, this.columns.k);
    parent.append(this.root);
    /** @type {Picture | null} */
    this.picture = null;
    /** @type {Geometry | null} */
    this.geometry = null;
    /** @type {Pin | null} */
    this.hover = null;
    /** @type {Float32Array[]} */
    this.cuts = [];
    /** @type {Line[]} */
    this.overviewDrawn = [];
    this.total = 0;
    /** @type {Line[]} */
    this.drawn = [];
    this.onScroll = () => this.picture && this.paintDetail(this.active());
    this.selecting = new Selecting(this.root, {
      pinned: () => this.picture?.pin ?? null,
      onHover: (hover) => this.setHover(hover),
      onPin: (pin) => this.onPin(pin),
      next: (event, at) => this.nextPlace(event, at),
      focus: ({ side, index }) => this.focusToken(side, index),
    });
    window.addEventListener("scroll", this.onScroll, { capture: true, passive: true });
    window.addEventListener("resize", this.onScroll);
  }

  /** @param {Picture} picture */
  show(picture) {
    const before = this.picture;
    this.picture = picture;
    this.hover = null;
    const room = this.root.parentElement?.clientWidth || 900;
    const names = picture.look.runs.q.map(({ name }) => name);
    const geometry = geometryOf(picture.drawing, room, isTouched(), names);
    const moved = JSON.stringify(geometry) !== JSON.stringify(this.geometry);
    const renamed = !before || !sameLabels(before.drawing, picture.drawing);
    this.geometry = geometry;
    if (moved || renamed) this.place(picture.drawing, geometry);
    this.markTokens();
    this.drawOverview();
    this.drawDetail();
  }

  /** @param {Drawing} drawing @param {Geometry} g */
  place(drawing, g) {
    this.root.style.width = `${g.width}px`;
    this.root.style.height = `${g.height}px`;
    this.root.style.fontSize = `${g.size}px`;
    fit(this.overview, g.width, g.height);
    this.columns.q.replaceChildren(
      ...drawing.queries.labels.map((text, i) => token("q", i, text, g)),
    );
    this.columns.k.replaceChildren(...drawing.keys.labels.map((text, i) => token("k", i, text, g)));
  }

  markTokens() {
    const { drawing, pin } = this.current();
    for (const side of /** @type {("q" | "k")[]} */ (["q", "k"])) {
      const units = side === "q" ? drawing.queries : drawing.keys;
      Array.from(this.columns[side].children).forEach((child, index) => {
        const pinned = pin?.side === side && pin.indices.includes(index);
        child.classList.toggle("hs-hidden", !units.kept[index]);
        child.classList.toggle("hs-special", units.special[index]);
        child.setAttribute("aria-selected", String(pinned));
      });
    }
  }

  drawOverview() {
    const { drawing, look, mass } = this.current();
    this.cuts = cutoffs(drawing, mass);
    const found = overviewLines(drawing, this.cuts);
    this.overviewDrawn = found.lines;
    this.total = found.total;
    this.paintOn(this.overview, [
      ...markShapes(drawing, this.placed(), look, true),
      ...this.curves(found.lines, drawing.heads.length),
    ]);
  }

  drawDetail() {
    const { drawing, look, pin } = this.current();
    const active = this.active();
    this.root.classList.toggle("hs-focused", active !== null);
    this.drawn = active
      ? active.indices.flatMap((index) => tokenLines(drawing, this.cuts, active.side, index))
      : this.overviewDrawn;
    this.paintDetail(active);
    this.markActive(active);
    const pair = pin && this.hover && this.hover.side !== pin.side ? this.hover : null;
    this.onFocus({ pin: active, pair, drawn: this.overviewDrawn.length, total: this.total });
  }

  /**
   * Only the part of a long stage that is on screen, for speed; scrolling paints the rest.
   * @param {Pin | null} active
   */
  paintDetail(active) {
    const g = this.placed();
    const { top, bottom } = this.onScreen();
    this.detail.hidden = active === null || bottom <= top;
    if (!active || bottom <= top) return;
    fit(this.detail, g.width, bottom - top);
    this.detail.style.top = `${top}px`;
    const seen = (/** @type {number} */ y) => y >= top - g.pitch && y <= bottom + g.pitch;
    this.paintOn(
      this.detail,
      this.detailShapes(active, seen).filter((shape) => reaches(shape, top, bottom)),
      top,
    );
  }

  /** The visible part of the stage and a little more. @returns {{top: number, bottom: number}} */
  onScreen() {
    const { top } = this.root.getBoundingClientRect();
    const { height } = this.placed();
    return {
      top: Math.max(0, Math.floor(-top - MARGIN)),
      bottom: Math.min(height, Math.ceil(window.innerHeight - top + MARGIN)),
    };
  }

  /** @param {Pin} active @param {(y: number) => boolean} seen @returns {Shape[]} */
  detailShapes(active, seen) {
    const { drawing, look } = this.current();
    const g = this.placed();
    return [
      ...markShapes(drawing, g, look, active.side === "q"),
      ...this.curves(this.drawn, 1),
      ...numberShapes(drawing, active, g, look, seen),
    ];
  }

  /** @param {Line[]} lines @param {number} sharing @returns {Shape[]} */
  curves(lines, sharing) {
    const { drawing, look } = this.current();
    return lines
      .map((line) => curveOf(line, drawing, this.placed(), look, sharing))
      .filter((curve) => curve.alpha >= 1 / 255);
  }

  /**
   * Whose lines are shown: the hovered token's, unless it is one of the pinned ones or only picks a
   * partner of them.
   */
  active() {
    const { pin } = this.current();
    if (!pin || !this.hover) return pin ?? this.hover;
    const isOwn = this.hover.indices.length === 1 && pin.indices.includes(this.hover.indices[0]);
    return this.hover.side !== pin.side || isOwn ? pin : this.hover;
  }

  /** @param {Pin | null} active */
  markActive(active) {
    this.root
      .querySelectorAll(".hs-active")
      .forEach((token) => token.classList.remove("hs-active"));
    if (active)
      for (const index of active.indices)
        this.columns[active.side].children[index]?.classList.add("hs-active");
  }

  /** @param {Pin | null} hover */
  setHover(hover) {
    if (!this.picture || samePin(hover, this.hover)) return;
    this.hover = hover;
    this.drawDetail();
  }

  /**
   * Along the tokens, or to the token opposite.
   * @param {KeyboardEvent} event
   * @param {Place} at
   * @returns {Place | null}
   */
  nextPlace(event, { side, index }) {
    const step = stepOf(event);
    if (!step) return null;
    const { across, down } = step;
    return { side: across < 0 ? "q" : across > 0 ? "k" : side, index: index + down };
  }

  /**
   * @param {"q" | "k"} side
   * @param {number} index
   * @returns {boolean} whether there is such a token
   */
  focusToken(side, index) {
    const next = this.columns[side].children[index];
    if (!(next instanceof HTMLElement)) return false;
    focusOne(this.root.querySelectorAll(".hs-token[tabindex='0']"), next);
    return true;
  }

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {Shape[]} shapes
   * @param {number} [top]  where the canvas begins
   */
  paintOn(canvas, shapes, top = 0) {
    const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    const scale = canvas.width / this.placed().width;
    pen.setTransform(scale, 0, 0, scale, 0, -top * scale);
    paintAll(pen, shapes);
  }

  /** What is on screen now, as shapes for print. @returns {Scene} */
  scene() {
    const { drawing, look } = this.current();
    const g = this.placed();
    const active = this.active();
    const numbers = active ? numberShapes(drawing, active, g, look) : [];
    const shapes = [
      ...markShapes(drawing, g, look, active?.side !== "k"),
      ...this.curves(this.drawn, active ? 1 : drawing.heads.length),
      ...labelShapes(drawing, g, look),
      ...numbers,
    ];
    return { width: g.width, height: g.height, paper: COLORS[look.theme].paper, shapes };
  }

  remove() {
    this.selecting.remove();
    window.removeEventListener("scroll", this.onScroll, { capture: true });
    window.removeEventListener("resize", this.onScroll);
  }

  /** @returns {Picture} */
  current() {
    if (!this.picture) throw new Error("Nothing is shown yet.");
    return this.picture;
  }

  /** @returns {Geometry} */
  placed() {
    if (!this.geometry) throw new Error("Nothing is placed yet.");
    return this.geometry;
  }
}

/** @param {"q" | "k"} side @param {number} index @param {string} text @param {Geometry} g */
function token(side, index, text, g) {
  const label = h("div", {
    class: "hs-token",
    role: "option",
    "data-index": String(index),
    title: text,
    dir: "auto",
  });
  label.tabIndex = side === "q" && index === 0 ? 0 : -1;
  const name = h("span", {});
  name.textContent = text;
  label.append(name);
  Object.assign(label.style, {
    left: `${labelStart(g, side)}px`,
    top: `${g.margin + index * g.pitch}px`,
    width: `${g.label}px`,
    height: `${g.pitch}px`,
  });
  return label;
}

/** @param {Shape} shape @param {number} top @param {number} bottom */
function reaches(shape, top, bottom) {
  if (shape.kind === "cells") return true;
  const [a, b] =
    shape.kind === "text" ? [shape.at[1] - 20, shape.at[1] + 20] : [shape.from[1], shape.to[1]];
  return Math.max(a, b) >= top && Math.min(a, b) <= bottom;
}

/** @param {Drawing} a @param {Drawing} b */
function sameLabels(a, b) {
  return (
    a.queries.labels.join("\0") === b.queries.labels.join("\0") &&
    a.keys.labels.join("\0") === b.keys.labels.join("\0")
  );
}

/** @param {HTMLCanvasElement} canvas @param {number} width @param {number} height */
function fit(canvas, width, height) {
  const sharp = Math.min(window.devicePixelRatio || 1, Math.sqrt(MOST_PIXELS / (width * height)));
  const [across, down] = [Math.round(width * sharp), Math.round(height * sharp)];
  if (canvas.width === across && canvas.height === down) return;
  canvas.width = across;
  canvas.height = down;
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
}
