/** The list of tokens from which the neuron view takes its query. */

import { element } from "../core/controls.js";

export class QueryList {
  /** @param {HTMLElement} parent @param {(query: number) => void} choose */
  constructor(parent, choose) {
    this.choose = choose;
    this.root = element("div", { class: "hs-query-list", role: "listbox", "aria-label": "Query token" });
    this.names = "";
    parent.append(this.root);
    this.root.addEventListener("click", (event) => {
      const found = event.target instanceof Element ? event.target.closest("[data-index]") : null;
      if (found instanceof HTMLElement) choose(Number(found.dataset.index));
    });
    this.root.addEventListener("keydown", (event) => this.onKey(event));
  }

  /** @param {string[]} labels @param {number} chosen */
  show(labels, chosen) {
    if (this.names !== labels.join("\0")) {
      this.names = labels.join("\0");
      this.root.replaceChildren(...labels.map(option));
    }
    [...this.root.children].forEach((child, index) => {
      child.setAttribute("aria-selected", String(index === chosen));
      child.setAttribute("tabindex", index === chosen ? "0" : "-1");
    });
    this.reveal(chosen);
  }

  /** Scroll the list, not the page. @param {number} chosen */
  reveal(chosen) {
    const item = /** @type {HTMLElement | undefined} */ (this.root.children[chosen]);
    if (!item) return;
    const last = item.offsetTop + item.offsetHeight - this.root.clientHeight;
    this.root.scrollTop = Math.min(item.offsetTop, Math.max(this.root.scrollTop, last));
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!step || !(event.target instanceof HTMLElement)) return;
    const next = Number(event.target.dataset.index) + step;
    const found = this.root.children[next];
    if (!(found instanceof HTMLElement)) return;
    event.preventDefault();
    this.choose(next);
    found.focus();
  }
}

/** @param {string} text @param {number} index @returns {HTMLElement} */
function option(text, index) {
  const made = element("div", { class: "hs-option", role: "option", dir: "auto", title: text, "data-index": String(index) });
  made.textContent = text;
  return made;
}
