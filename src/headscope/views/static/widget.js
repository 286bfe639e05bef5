/**
 * The notebook widget (anywidget): the payload comes through the model, the state is its traits.
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
import { Data } from "./core/data.js";
import { Store } from "./core/state.js";

/** @param {{model: Model, el: HTMLElement}} context @returns {() => void} clean up */
function render({ model, el }) {
  const header = model.get("header");
  const bytes = model.get("blocks");
  const store = new Store(header);
  const names = Object.keys(header.state);
  const read = () => store.set(Object.fromEntries(names.map((name) => [name, model.get(name)])));
  read();
  const asked = header.tile === null ? null : askBlocks(model);
  const data = new Data(header, asked ? asked.read : (indices) => indices.map((index) => slice(bytes, header.sizes, index)));
  const app = mount(el, data, store);
  const stop = store.subscribe((state, changed) => {
    for (const name of changed) model.set(name, state[/** @type {"stack"} */ (name)]);
    model.save_changes();
  });
  for (const name of names) model.on(`change:${name}`, read);
  return () => {
    stop();
    for (const name of names) model.off(`change:${name}`, read);
    asked?.stop();
    app.remove();
  };
}

/**
 * Blocks of a long input come from the kernel when they are looked at.
 * @param {Model} model
 * @returns {{read: (indices: number[]) => Promise<Uint8Array[]>, stop: () => void}}
 */
function askBlocks(model) {
  /** @type {Map<string, (blocks: Uint8Array[]) => void>} */
  const waiting = new Map();
  const receive = (/** @type {{blocks: number[]}} */ message, /** @type {DataView[]} */ buffers) => {
    const key = String(message.blocks);
    waiting.get(key)?.(buffers.map((view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength)));
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

/** @param {DataView} bytes @param {number[]} sizes @param {number} index @returns {Uint8Array} */
function slice(bytes, sizes, index) {
  const start = sizes.slice(0, index).reduce((sum, size) => sum + size, 0);
  return new Uint8Array(bytes.buffer, bytes.byteOffset + start, sizes[index]);
}

export default { render };
