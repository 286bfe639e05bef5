/** One head of the model view with its tokens, beside the thumbnails. */

import { button } from "../../ui/controls.js";
import { h } from "../../ui/dom.js";
import { isSummary } from "../shared/data.js";
import { describe, lookOf, nameOf, pinFrom, pinName, summaryName } from "../head/view.js";
import { Stage } from "../head/stage.js";
import { drawingOf } from "../shared/units.js";

/**
 * @import { Theme } from "../../ui/colors.js"
 * @import { Data } from "../shared/data.js"
 * @import { Store } from "../shared/state.js"
 * @import { Drawing } from "../shared/units.js"
 */

export class Enlarged {
  /** @param {HTMLElement} parent @param {Data} data @param {Store} store */
  constructor(parent, data, store) {
    this.data = data;
    this.store = store;
    this.title = h("h2", {});
    this.readout = h("p", { class: "hs-readout", role: "status" });
    const close = button("Close", "Close (Escape)", () => store.set({ enlarged: false }));
    const frame = h("div", { class: "hs-frame" });
    this.root = h("section", { class: "hs-enlarged", "aria-label": "Enlarged head" });
    this.root.append(
      h("div", { class: "hs-enlarged-top" }, this.title, close),
      this.readout,
      frame,
    );
    parent.append(this.root);
    /** @type {Drawing | null} */
    this.drawing = null;
    this.stage = new Stage(
      frame,
      (pin) => store.set({ pinned: pin && this.drawing && pinName(pin, this.drawing) }),
      (focus) =>
        this.drawing &&
        this.readout.replaceChildren(...describe(this.drawing, focus, nameOf(store.state))),
    );
  }

  /** @param {Theme} theme */
  async update(theme) {
    const { state } = this.store;
    this.root.hidden = !state.enlarged;
    if (!state.enlarged) return;
    const stack = this.data.stack(state.stack);
    const layer = await this.data.shown(stack, state);
    if (state !== this.store.state) return;
    const rollout = state.weights === "rollout";
    const one = rollout
      ? `Rollout up to layer ${state.layer}`
      : `Layer ${state.layer}, head ${state.head}`;
    this.title.textContent = isSummary(state) ? summaryName(state) : one;
    this.drawing = drawingOf(
      stack,
      layer,
      state,
      rollout || isSummary(state) ? layer.heads : [state.head],
    );
    const look = lookOf(this.data, stack, state, this.drawing, theme);
    this.stage.show({
      drawing: this.drawing,
      look,
      mass: state.mass,
      pin: pinFrom(state.pinned, this.drawing),
    });
  }

  scene() {
    return this.stage.scene();
  }

  lines() {
    return this.stage.drawn;
  }
}
