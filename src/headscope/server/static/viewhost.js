/** A view of a traced text inside a page: the same modules as in a notebook, fed by the server. */

import { mount } from "../../views/static/app.js";
import { Data, keysOf } from "../../views/static/data.js";
import { fromHash, Store, toHash } from "../../views/static/state.js";
import { askTrace } from "./api.js";
import { saveRows } from "./download.js";
import { saveButton } from "./figure.js";
import { chosenTheme } from "./look.js";

/** @typedef {import("./api.js").TextRequest} TextRequest */

/** Shows one view at a time; a newer text replaces an older one that is still on its way. */
export class ViewHost {
  /** @param {HTMLElement} el  where the view goes @param {(text: string, wrong: boolean) => void} tell */
  constructor(el, tell) {
    this.el = el;
    this.tell = tell;
    /** @type {ReturnType<typeof mount> | null} */
    this.app = null;
    /** @type {AbortController | null} */
    this.waiting = null;
  }

  /** @param {TextRequest} request @param {{start?: Record<string, unknown>, address?: boolean}} [how]  address: keep the view's state in the hash */
  async show(request, { start = {}, address = false } = {}) {
    this.waiting?.abort();
    const mine = (this.waiting = new AbortController());
    this.tell("Tracing …", false);
    try {
      const { header, blocks } = await askTrace(request, mine.signal);
      if (mine.signal.aborted) return;
      await this.put(header, blocks, start, address);
      this.tell(`${header.model}: ${header.stacks[0].queries.labels.length} tokens.`, false);
    } catch (error) {
      if (!mine.signal.aborted) this.tell(error instanceof Error ? error.message : String(error), true);
    }
  }

  /** @param {any} header @param {Uint8Array[]} blocks @param {Record<string, unknown>} start @param {boolean} address */
  async put(header, blocks, start, address) {
    const before = header.kind === this.kind ? this.app?.store.state : undefined;
    const store = new Store(header);
    const kept = before ? { ...before, pinned: null } : {};
    const asked = address ? fromHash(window.location.hash, store.initial) : {};
    store.set({ ...start, ...kept, ...asked, theme: chosenTheme() });
    this.remove();
    this.kind = header.kind;
    const data = new Data(header, (index) => blocks[index]);
    this.app = mount(this.el, data, store);
    this.el.querySelector(".hs-top")?.append(saveButton("CSV", "Download the weights of the shown layer as CSV", () => void saveWeights(data, store)));
    if (address) store.subscribe((state) => keepInAddress(state, store.initial));
    await this.app.ready;
  }

  remove() {
    this.app?.remove();
    this.app = null;
  }

  leave() {
    this.waiting?.abort();
    this.remove();
  }
}

/** @param {Data} data @param {Store} store */
async function saveWeights(data, store) {
  const { stack: name, layer, weights, heads } = store.state;
  const stack = data.stack(name);
  const { levels, scales, rows, columns, heads: known, factors } = await data.weights(stack, weights, layer);
  const labels = [stack.queries.labels, keysOf(stack).labels];
  const lines = known.flatMap((head, place) => {
    if (known.length > 1 && !heads.includes(head)) return [];
    return Array.from({ length: rows * columns }, (_, i) => {
      const [query, key] = [Math.floor(i / columns), i % columns];
      const factor = factors ? factors[place * columns + key] : 1;
      return [layer, head, query, labels[0][query], key, labels[1][key], levels[place * rows * columns + i] * scales[place] * factor];
    });
  });
  saveRows([["layer", "head", "query", "attending", "key", "attended", "weight"], ...lines], `${data.header.model} layer ${layer}`);
}

/** @param {import("../../views/static/state.js").State} state @param {import("../../views/static/state.js").State} initial */
function keepInAddress(state, initial) {
  const hash = toHash({ ...state, theme: initial.theme }, initial);
  const { pathname, search } = window.location;
  window.history.replaceState(null, "", `${pathname}${search}${hash ? `#${hash}` : ""}`);
}
