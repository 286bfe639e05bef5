/** A view of a traced text inside a page: the same modules as in a notebook, fed by the server. */

import { mount } from "../entry/app.js";
import { h } from "../ui/dom.js";
import { columnFactors, Data, keysOf } from "../kinds/shared/data.js";
import { carriedOver, fromHash, Store, toHash } from "../kinds/shared/state.js";
import { askBlocks, askTrace, askWhy } from "../explorer/api.js";
import { saveRows } from "../charts/export.js";
import { saveButton } from "../charts/figure.js";
import { counted as several } from "../ui/format.js";
import { chosenTheme } from "../explorer/look.js";

/**
 * @import { Attributes } from "../ui/dom.js"
 * @import { Header, Stack } from "../kinds/shared/data.js"
 * @import { State } from "../kinds/shared/settings.js"
 * @import { TextRequest } from "../explorer/types.js"
 */

/** The sentence that stands in the box before anything is typed. */
export const EXAMPLE = "The lawyer met the doctor because she needed advice.";

/** Shows one view at a time; a newer text replaces an older one that is still on its way. */
export class ViewHost {
  /** @param {Attributes} about  the element that the view goes into */
  constructor(about) {
    this.el = h("div", about);
    this.status = h("p", { class: "status", role: "status", id: "status" });
    /** @type {ReturnType<typeof mount> | null} */
    this.app = null;
    /** @type {AbortController | null} */
    this.waiting = null;
    /** @type {number[] | null} */
    this.asked = null; // the weight that was clicked last
  }

  /** @param {string} text @param {boolean} [wrong] */
  tell(text, wrong = false) {
    this.status.textContent = text.replaceAll("`", "");
    this.status.classList.toggle("wrong", wrong);
  }

  /** @param {TextRequest} request */
  async show(request) {
    this.waiting?.abort();
    this.asked = null;
    const mine = (this.waiting = new AbortController());
    this.tell("Tracing …");
    this.el.setAttribute("aria-busy", "true"); // the old picture is dimmed
    try {
      const { header, blocks } = await askTrace(request, mine.signal);
      if (mine.signal.aborted) return;
      await this.put(request, header, blocks);
      this.tell(`${header.model}: ${counted(header.stacks)}.`);
    } catch (error) {
      if (!mine.signal.aborted) this.tell(messageOf(error), true);
    } finally {
      if (this.waiting === mine) this.el.removeAttribute("aria-busy");
    }
  }

  /**
   * @param {TextRequest} request
   * @param {Header} header
   * @param {Uint8Array[]} blocks  none of a long text: they are asked for
   */
  async put(request, header, blocks) {
    const carried = header.kind === this.kind ? carriedOver(this.app?.store) : {};
    const store = new Store(header);
    const asked = fromHash(window.location.hash, store.initial);
    store.set({ ...carried, ...asked, theme: chosenTheme() });
    this.remove();
    this.kind = header.kind;
    const data = new Data(header, (indices) =>
      blocks.length ? indices.map((index) => blocks[index]) : askBlocks(request, indices),
    );
    this.app = mount(this.el, data, store);
    const name = "Download the weights of the shown layer as CSV";
    const save = saveButton("CSV", name, () => void saveWeights(data, store));
    this.el.querySelector(".hs-saves")?.append(save);
    this.app.ready.then(() => this.explain(request, header, store));
    store.subscribe((state) => keepInAddress(state, store.initial));
    await this.app.ready;
  }

  /**
   * A click on a row of the neuron view asks why the head looks there.
   * @param {TextRequest} request
   * @param {Header} header
   * @param {Store} store
   */
  explain(request, header, store) {
    const table = /** @type {HTMLElement | null} */ (this.el.querySelector(".hs-neurons"));
    if (!table || header.stacks.length > 1) return;
    table.classList.add("hs-asks");
    table.addEventListener("click", async (event) => {
      /** @type {NodeListOf<HTMLElement>} */
      const rows = table.querySelectorAll("[data-weight]");
      const row = [...rows].find((one) => one.getBoundingClientRect().bottom > event.clientY);
      if (!row || row.getBoundingClientRect().top > event.clientY) return; // canvases cover rows
      const [query, key] = (row.dataset.weight ?? "").split(" ").map(Number);
      const why = [store.state.layer, store.state.head, query, key];
      this.asked = why;
      this.tell("Asking why …");
      try {
        const sentence = await askWhy({ ...request, why });
        if (this.asked === why) this.tell(sentence);
      } catch (error) {
        if (this.asked === why) this.tell(messageOf(error), true);
      }
    });
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

/** @param {unknown} error */
const messageOf = (error) => (error instanceof Error ? error.message : String(error));

/**
 * A text to be typed, under its name.
 * @param {string} id
 * @param {string} label
 * @param {number} rows
 * @param {string} value
 * @param {number} most  characters
 */
export function field(id, label, rows, value, most) {
  const area = h("textarea", { id, rows, maxlength: most, spellcheck: "false", dir: "auto" });
  area.value = value;
  const name = h("label", { for: id }, label);
  return { area, node: h("div", { class: "control stacked" }, name, area) };
}

/** @param {Stack[]} stacks @returns {string} */
function counted(stacks) {
  const count = (/** @type {string} */ name) =>
    stacks.find((stack) => stack.name === name)?.queries.labels.length;
  const [source, target] = [count("encoder"), count("decoder")];
  if (source === undefined) return several(stacks[0].queries.labels.length, "token");
  return target === undefined
    ? `${source} source tokens; without a target only the encoder is shown`
    : `${source} source and ${target} target tokens`;
}

/** @param {Data} data @param {Store} store */
async function saveWeights(data, store) {
  const { stack: name, layer, weights, heads, window } = store.state;
  const stack = data.stack(name);
  const shown = await data.weights(stack, weights, layer, window);
  const { levels, start, rows, columns } = shown;
  const labels = [stack.queries.labels, keysOf(stack).labels];
  const lines = shown.heads.flatMap((head, place) => {
    if (shown.heads.length > 1 && !heads.includes(head)) return [];
    const factors = columnFactors(shown, place);
    return Array.from({ length: rows * columns }, (_, i) => {
      const [query, key] = [start[0] + Math.floor(i / columns), start[1] + (i % columns)];
      const weight = levels[place * rows * columns + i] * factors[i % columns];
      return [layer, head, query, labels[0][query], key, labels[1][key], weight];
    });
  });
  const headings = ["layer", "head", "query", "attending", "key", "attended", "weight"];
  saveRows([headings, ...lines], `${data.header.model} layer ${layer}`);
}

/** @param {State} state @param {State} initial */
function keepInAddress(state, initial) {
  const hash = toHash({ ...state, theme: initial.theme }, initial);
  const { pathname, search } = window.location;
  window.history.replaceState(null, "", `${pathname}${search}${hash ? `#${hash}` : ""}`);
}
