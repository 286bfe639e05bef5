/**
 * Several texts in one page: a list of them, and the view of the chosen one.
 *
 * @typedef {{title: string, text: string}} Entry
 */

import { mount } from "./app.js";
import { h } from "../ui/dom.js";
import { placeInList } from "../ui/roving.js";
import { embedded, embeddedData } from "./embedded.js";
import { keepHash, keepKeys, reportHeight } from "../ui/host.js";
import { printPage } from "../draw/print.js";
import { carriedOver, fromHash, Store, toHash } from "../kinds/shared/state.js";

/**
 * @import { App } from "./app.js"
 * @import { State } from "../kinds/shared/settings.js"
 */

/** One view at a time; what the reader changed is kept from text to text. */
class Gallery {
  /** @param {HTMLElement} main @param {{title: string, texts: Entry[]}} said */
  constructor(main, { title, texts }) {
    this.texts = texts;
    this.chosen = -1;
    /** @type {App | null} */
    this.app = null;
    this.list = h("ol", {}, ...texts.map((entry, index) => h("li", {}, this.entry(entry, index))));
    this.place = h("div", { class: "hs-gallery-view" });
    const heading = h("h1", {}, title);
    const nav = h("nav", { class: "hs-gallery-list", "aria-label": "Texts" }, heading, this.list);
    nav.addEventListener("keydown", (event) => this.onKey(event));
    keepKeys(nav);
    main.append(h("div", { class: "hs-gallery" }, nav, this.place));
  }

  /** @param {Entry} entry @param {number} index @returns {HTMLElement} */
  entry({ title, text }, index) {
    const made = h("button", { type: "button", dir: "auto", title: text });
    if (title) made.append(h("strong", {}, title));
    made.append(h("span", {}, text));
    made.addEventListener("click", () => this.open(index));
    return made;
  }

  /**
   * @param {number} index
   * @param {string} [hash]  settings other than those of the view shown before
   */
  open(index, hash) {
    const data = embeddedData(`headscope-${index}`);
    const store = new Store(data.header);
    const settings =
      hash === undefined ? carriedOver(this.app?.store) : fromHash(hash, store.initial);
    store.set({ ...store.initial, ...settings });
    this.app?.remove();
    this.chosen = index;
    this.app = mount(this.place, data, store);
    [...this.list.querySelectorAll("button")].forEach((one, place) =>
      one.setAttribute("aria-current", String(place === index)),
    );
    const keep = () =>
      keepHash([`text=${index}`, toHash(store.state, store.initial)].filter(Boolean).join("&"));
    store.subscribe(keep);
    keep();
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const next = placeInList(event, this.chosen, this.texts.length);
    if (next === null || !this.texts[next]) return;
    event.preventDefault();
    this.open(next);
    this.list.querySelectorAll("button")[next].focus();
  }
}

const main = /** @type {HTMLElement} */ (document.getElementById("headscope"));
main.replaceChildren();
const gallery = new Gallery(main, JSON.parse(embedded("headscope-gallery")));

function follow() {
  const hash = window.location.hash.replace(/^#/, "");
  const asked = Number(new URLSearchParams(hash).get("text"));
  gallery.open(gallery.texts[asked] ? asked : 0, hash);
}

follow();
window.addEventListener("hashchange", follow);
reportHeight(main);

const shown = () => /** @type {App} */ (gallery.app);
Object.assign(window, {
  headscope: {
    ready: shown().ready,
    idle: () => shown().idle(),
    state: () => shown().store.state,
    set: (/** @type {Partial<State>} */ patch) => shown().store.set(patch),
    lines: () => shown().view.lines(),
    scene: () => shown().picture(),
    printPage: () => printPage(shown().picture(), shown().view.title()),
    open: (/** @type {number} */ index) => gallery.open(index),
  },
});
