/**
 * The notebook widget (anywidget): the payload comes through the model, the state is its traits.
 *
 * @typedef {object} Model
 * @property {(name: string) => any} get
 * @property {(name: string, value: any) => void} set
 * @property {() => void} save_changes
 * @property {(event: string, act: () => void) => void} on
 * @property {(event: string, act: () => void) => void} off
 */

import { mount } from "./app.js";
import { Data } from "./data.js";
import { Store } from "./state.js";

/** @param {{model: Model, el: HTMLElement}} context @returns {() => void} clean up */
function render({ model, el }) {
  const header = model.get("header");
  const bytes = model.get("blocks");
  const store = new Store(header);
  const names = Object.keys(header.state);
  const read = () => store.set(Object.fromEntries(names.map((name) => [name, model.get(name)])));
  read();
  const data = new Data(header, (index) => slice(bytes, header.sizes, index));
  const app = mount(el, data, store);
  const stop = store.subscribe((state, changed) => {
    for (const name of changed) model.set(name, state[/** @type {"stack"} */ (name)]);
    model.save_changes();
  });
  for (const name of names) model.on(`change:${name}`, read);
  return () => {
    stop();
    for (const name of names) model.off(`change:${name}`, read);
    app.remove();
  };
}

/** @param {DataView} bytes @param {number[]} sizes @param {number} index @returns {Uint8Array} */
function slice(bytes, sizes, index) {
  const start = sizes.slice(0, index).reduce((sum, size) => sum + size, 0);
  return new Uint8Array(bytes.buffer, bytes.byteOffset + start, sizes[index]);
}

export default { render };
