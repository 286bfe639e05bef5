/**
 * Choosing tokens with the mouse or the keyboard: one by a click, several by dragging, with Shift
 * or with Ctrl.
 *
 * @typedef {{side: "q" | "k", index: number}} Place
 *
 * @typedef {object} Host
 * @property {() => Pin | null} pinned  what is chosen now
 * @property {(hover: Pin | null) => void} onHover
 * @property {(pin: Pin | null) => void} onPin
 * @property {(event: KeyboardEvent, at: Place) => Place | null} next  where an arrow key leads
 * @property {(place: Place) => boolean} focus  whether there is such a token
 */

/** @import { Pin } from "./spans.js" */

export class Selecting {
  /** @param {HTMLElement} root @param {Host} host */
  constructor(root, host) {
    this.root = root;
    this.host = host;
    /** Whether a click adds to what is chosen, as with Ctrl: for fingers. */
    this.adding = false;
    /** @type {Place | null} */
    this.anchor = null;
    /** @type {{from: Place, to: Place} | null} */
    this.drag = null;
    this.dragged = false;
    this.release = () => this.endDrag();
    root.addEventListener("pointerover", (event) => this.over(event));
    root.addEventListener("pointerleave", () => !this.drag && host.onHover(null));
    root.addEventListener("focusin", (event) => host.onHover(one(placeOf(event.target))));
    root.addEventListener("focusout", () => host.onHover(null));
    root.addEventListener("pointerdown", (event) => this.down(event));
    root.addEventListener("click", (event) => this.click(event));
    root.addEventListener("keydown", (event) => this.key(event));
    window.addEventListener("pointerup", this.release);
    window.addEventListener("pointercancel", this.release);
  }

  remove() {
    window.removeEventListener("pointerup", this.release);
    window.removeEventListener("pointercancel", this.release);
  }

  /** @param {PointerEvent} event */
  over(event) {
    const place = placeOf(event.target);
    if (!this.drag) return this.host.onHover(one(place));
    if (place?.side !== this.drag.from.side) return;
    this.drag.to = place;
    this.host.onHover(between(this.drag.from, place));
  }

  /** Fingers scroll; they choose by taps. @param {PointerEvent} event */
  down(event) {
    const from = placeOf(event.target);
    this.dragged = false;
    if (from && event.button === 0 && event.pointerType === "mouse" && !event.shiftKey)
      this.drag = { from, to: from };
  }

  endDrag() {
    const drag = this.drag;
    this.drag = null;
    if (!drag || drag.from.index === drag.to.index) return;
    this.dragged = true; // the click that follows is the end of the drag
    this.anchor = drag.from;
    this.host.onPin(between(drag.from, drag.to));
  }

  /** @param {MouseEvent} event */
  click(event) {
    const place = placeOf(event.target);
    if (this.dragged) this.dragged = false;
    else if (event.shiftKey && place && this.anchor?.side === place.side)
      this.host.onPin(between(this.anchor, place));
    else this.toggle(place, this.adding || event.ctrlKey || event.metaKey);
  }

  /** @param {Place | null} place @param {boolean} adds */
  toggle(place, adds) {
    const now = this.host.pinned();
    this.anchor = place;
    if (!place) return this.host.onPin(null);
    const isOn = now?.side === place.side && now.indices.includes(place.index);
    if (!adds || now?.side !== place.side)
      return this.host.onPin(isOn && now?.indices.length === 1 ? null : one(place));
    const indices = isOn
      ? now.indices.filter((index) => index !== place.index)
      : [...now.indices, place.index].sort((a, b) => a - b);
    this.host.onPin(indices.length ? { side: place.side, indices } : null);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const at = placeOf(event.target);
    if (!at) return;
    const next = this.host.next(event, at);
    if (next) this.move(at, next, event.shiftKey);
    else if (event.key === "Enter" || event.key === " ")
      this.toggle(at, event.ctrlKey || event.metaKey);
    else if (event.key === "Escape") this.host.onPin(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /**
   * With Shift everything from the anchor to there is chosen.
   * @param {Place} at
   * @param {Place} next
   * @param {boolean} extends_
   */
  move(at, next, extends_) {
    if (!this.host.focus(next)) return;
    if (!extends_ || next.side !== at.side) return void (this.anchor = next);
    const anchor = this.anchor?.side === at.side ? this.anchor : at;
    this.anchor = anchor;
    this.host.onPin(between(anchor, next));
    this.host.focus(next);
  }
}

/** @param {Place | null} place @returns {Pin | null} */
function one(place) {
  return place && { side: place.side, indices: [place.index] };
}

/** @param {Place} a @param {Place} b @returns {Pin} */
function between(a, b) {
  const [first, last] = [Math.min(a.index, b.index), Math.max(a.index, b.index)];
  return { side: a.side, indices: Array.from({ length: last - first + 1 }, (_, i) => first + i) };
}

/**
 * The token of an event, by its own number and the side of what it stands in.
 * @param {EventTarget | null} target
 * @returns {Place | null}
 */
function placeOf(target) {
  const found = target instanceof Element ? target.closest(".hs-token") : null;
  const side = found?.closest("[data-side]")?.getAttribute("data-side");
  if (!(found instanceof HTMLElement) || !side) return null;
  return { side: /** @type {"q" | "k"} */ (side), index: Number(found.dataset.index) };
}
