/** A self-contained page: the payload stands in script elements, the state in the URL. */

import { mount } from "./app.js";
import { Data, fromBase64 } from "./core/data.js";
import { reportHeight } from "./core/host.js";
import { printPage } from "./core/print.js";
import { bindHash, Store } from "./core/state.js";

/** @param {string} id @returns {string} */
function embedded(id) {
  return document.getElementById(id)?.textContent ?? "";
}

const header = JSON.parse(embedded("headscope-header"));
const store = new Store(header);
bindHash(store, window);
const data = new Data(header, (indices) => indices.map((index) => fromBase64(embedded(`headscope-block-${index}`))));
const main = /** @type {HTMLElement} */ (document.getElementById("headscope"));
main.replaceChildren(); // what is read where this script may not run
const app = mount(main, data, store);
reportHeight(main);

// What is shown, for scripts on the page and for tests.
Object.assign(window, {
  headscope: {
    ready: app.ready,
    idle: app.idle,
    state: () => store.state,
    set: (/** @type {Partial<import("./core/state.js").State>} */ patch) => store.set(patch),
    lines: () => app.view.lines(),
    scene: () => app.view.scene(),
    printPage: () => printPage(app.view.scene(), app.view.title()),
  },
});
