/**
 * The notebook widget (anywidget): the state is its traits; what is drawn comes from the kernel
 * when asked for, so that a saved notebook does not hold it a second time.
 *
 * @typedef {object} Model
 * @property {(name: string) => any} get
 * @property {(name: string, value: any) => void} set
 * @property {() => void} save_changes
 * @property {(message: object) => void} send
 * @property {(event: string, act: (...said: any[]) => void) => void} on
 * @property {(event: string, act: (...said: any[]) => void) => void} off
 */

import { mount } from "./app.js";
import { Data } from "../kinds/shared/data.js";
import { hidePoorer } from "../ui/host.js";
import { Store } from "../kinds/shared/state.js";

/** @param {{model: Model, el: HTMLElement}} context @returns {() => void} clean up */
function render({ model, el }) {
  const asked = askBlocks(model);
  let remove = () => {};
  let removed = false;
  void firstBlocks(model, asked.read).then((readBlocks) => {
    if (!removed) remove = show(model, el, readBlocks);
  });
  return () => {
    removed = true;
    asked.stop();
    remove();
  };
}

/**
 * All blocks at once, of a long input none: the kernel's answer says that it is there. Without a
 * kernel nothing is shown, and the outputs that were kept stay in sight.
 * @param {Model} model
 * @param {(indices: number[]) => Promise<Uint8Array[]>} read
 * @returns {Promise<(indices: number[]) => Uint8Array[] | Promise<Uint8Array[]>>}
 */
async function firstBlocks(model, read) {
  const { tile, blocks } = model.get("header");
  const kept = await read(tile === null ? [...Array(blocks).keys()] : []);
  return tile === null ? (indices) => indices.map((index) => kept[index]) : read;
}

/**
 * @param {Model} model
 * @param {HTMLElement} el
 * @param {(indices: number[]) => Uint8Array[] | Promise<Uint8Array[]>} readBlocks
 * @returns {() => void}
 */
function show(model, el, readBlocks) {
  const header = model.get("header");
  const store = new Store(header);
  const names = Object.keys(header.state);
  const read = () => store.set(Object.fromEntries(names.map((name) => [name, model.get(name)])));
  read();
  const app = mount(el, new Data(header, readBlocks), store);
  const stop = store.subscribe((state, changed) => {
    for (const name of changed) model.set(name, state[/** @type {"stack"} */ (name)]);
    model.save_changes();
  });
  for (const name of names) model.on(`change:${name}`, read);
  void app.ready.then(() => hidePoorer(el, model.get("picture")));
  return () => {
    stop();
    for (const name of names) model.off(`change:${name}`, read);
    app.remove();
  };
}

/**
 * Blocks come from the kernel when they are looked at.
 * @param {Model} model
 * @returns {{read: (indices: number[]) => Promise<Uint8Array[]>, stop: () => void}}
 */
function askBlocks(model) {
  /** @type {Map<string, (blocks: Uint8Array[]) => void>} */
  const waiting = new Map();
  const receive = (
    /** @type {{blocks: number[]}} */ message,
    /** @type {DataView[]} */ buffers,
  ) => {
    const key = String(message.blocks);
    waiting.get(key)?.(
      (buffers ?? []).map((view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength)),
    );
    waiting.delete(key);
  };
  model.on("msg:custom", receive);
  const read = (/** @type {number[]} */ indices) =>
    new Promise((/** @type {(blocks: Uint8Array[]) => void} */ done) => {
      waiting.set(String(indices), done);
      model.send({ blocks: indices });
    });
  return { read, stop: () => model.off("msg:custom", receive) };
}

export default { render };
