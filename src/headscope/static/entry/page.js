/** A self-contained page: the payload stands in script elements, the state in the URL. */

import { mount } from "./app.js";
import { embeddedData } from "./embedded.js";
import { hidePoorer, reportHeight } from "../ui/host.js";
import { printPage } from "../draw/print.js";
import { bindHash, Store } from "../kinds/shared/state.js";

/** @import { State } from "../kinds/shared/settings.js" */

const data = embeddedData("headscope");
const store = new Store(data.header);
bindHash(store, window);
const main = /** @type {HTMLElement} */ (document.getElementById("headscope"));
main.replaceChildren(); // what is read where this script may not run
const app = mount(main, data, store);
reportHeight(main);
void app.ready.then(() => hidePoorer());

// What is shown, for scripts on the page and for tests.
Object.assign(window, {
  headscope: {
    ready: app.ready,
    idle: app.idle,
    state: () => store.state,
    set: (/** @type {Partial<State>} */ patch) => store.set(patch),
    lines: () => app.view.lines(),
    scene: () => app.picture(),
    printPage: () => printPage(app.picture(), app.view.title()),
  },
});
