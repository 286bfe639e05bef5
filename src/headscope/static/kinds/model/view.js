/** The model view: every layer and head as a thumbnail, one of them enlarged on demand. */

import { button, chips, choice, toggle } from "../../ui/controls.js";
import { h } from "../../ui/dom.js";
import { percent } from "../../ui/numbers.js";
import { caveats } from "../shared/caveats.js";
import { isSummary } from "../shared/data.js";
import {
  hideControls,
  massControl,
  pairControl,
  settingControl,
  spanControls,
  stackControl,
  summaryControl,
  unitControl,
  weightsControl,
  windowControls,
} from "../shared/filters.js";
import { selectionBar } from "../shared/selection.js";
import { Enlarged } from "./enlarged.js";
import { modelScene } from "./scene.js";
import { Sheet } from "./sheet.js";
import { aboutLine, hiddenControl, worthControl } from "../shared/worth.js";

/**
 * @import { View } from "../../entry/app.js"
 * @import { Theme } from "../../ui/colors.js"
 * @import { Data } from "../shared/data.js"
 * @import { State } from "../shared/settings.js"
 * @import { Store } from "../shared/state.js"
 * @import { Shares } from "./sheet.js"
 */

/**
 * @param {HTMLElement} root
 * @param {Data} data
 * @param {Store} store
 * @param {() => Theme} theme
 * @returns {View}
 */
export function modelView(root, data, store, theme) {
  const hide = hideControls(data, store);
  const hidden = hiddenControl(store);
  const shown = () => ({
    layer: store.state.layer,
    heads: store.state.enlarged && !isSummary(store.state) ? [store.state.head] : [],
  });
  const worth = worthControl(data, store, shown, ({ layer, head }) =>
    store.set({ layer, head, enlarged: true, summary: "each" }),
  );
  const first = [
    stackControl(data, store),
    ...windowControls(data, store),
    ...orderControls(data, store),
  ];
  const rest = [
    settingControl(store, "thumbnail"),
    summaryControl(data, store),
    ...numberControls(data, store),
    ...spanControls(store),
    massControl(store),
    ...hide.controls,
    unitControl(store),
    pairControl(data, store),
    weightsControl(data, store),
  ];
  const selection = selectionBar(
    data,
    store,
    theme,
    (adding) => (enlarged.stage.selecting.adding = adding),
  );
  const body = h("div", { class: "hs-model-body" });
  root.append(aboutLine(worth, hidden), body, selection.node);
  // Where the enlarged head stands below the grid, a click leads to it.
  const sheet = new Sheet(body, data, store, () =>
    enlarged.root.scrollIntoView({ block: "nearest" }),
  );
  const enlarged = new Enlarged(body, data, store);
  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && store.state.enlarged) store.set({ enlarged: false });
  });

  let drawnWith = "";
  const update = async () => {
    for (const control of [worth, hidden, selection]) control.update();
    const state = store.state;
    body.classList.toggle("hs-split", state.enlarged);
    enlarged.root.hidden = !state.enlarged;
    sheet.mark();
    const wanted = JSON.stringify([gridState(state), theme(), body.clientWidth]);
    if (wanted !== drawnWith) {
      drawnWith = wanted;
      sheet.build(theme());
      void sheet.finished.then(() => showShares(sheet, hide, hidden, state.unit === "span"));
    } else {
      sheet.fit();
    }
    await Promise.all([sheet.visible, enlarged.update(theme())]);
  };
  return {
    first,
    rest,
    update,
    finished: () => sheet.finished,
    caveats: () => {
      const hiddenShare = mean(sheet.shares, "hidden");
      const lines = store.state.thumbnail === "lines" ? { drawn: 0, total: 0 } : null;
      return caveats(store.state, hiddenShare, lines);
    },
    scene: () => modelScene(sheet, store.state.enlarged ? enlarged.scene() : null, theme()),
    lines: () => (store.state.enlarged ? enlarged.lines() : []),
    title: () => `${data.header.model} · model view`,
    remove: () => enlarged.stage.remove(),
  };
}

/**
 * The shares of all heads in the grid, once all are drawn.
 * @param {Sheet} sheet
 * @param {{showShares: (toFirst: string, toSpecial: string) => void}} hide
 * @param {{say: (share: string) => void}} hidden
 * @param {boolean} bySpan
 */
function showShares({ shares, thumbs }, hide, hidden, bySpan) {
  if (shares.length === 0 || shares.length !== thumbs.length) return;
  if (bySpan) hide.showShares("", "");
  else hide.showShares(percent(mean(shares, "first")), percent(mean(shares, "special")));
  hidden.say(`${percent(mean(shares, "hidden"))} of the attention of these heads goes there.`);
}

/** @param {Shares[]} shares @param {"first" | "special" | "hidden"} name @returns {number} */
function mean(shares, name) {
  return shares.length ? shares.reduce((sum, one) => sum + one[name], 0) / shares.length : 0;
}

/** What the thumbnails depend on. @param {State} state */
function gridState(state) {
  const { layer, head, pinned, theme, enlarged, summary, ...rest } = state;
  return rest;
}

/** @param {Data} data @param {Store} store */
function orderControls(data, store) {
  const names = () =>
    ["number", ...Object.keys(data.stack(store.state.stack).scores)].map((name) => ({
      value: name,
      text: name,
    }));
  const order = choice(
    "Order by",
    names,
    () => store.state.order,
    (value) => store.set({ order: value }),
  );
  const turn = button("", "Turn the order round", () =>
    store.set({ ascending: !store.state.ascending }),
  );
  order.node.append(turn);
  const update = order.update;
  order.update = () => {
    update();
    turn.hidden = store.state.order === "number";
    turn.textContent = store.state.ascending ? "low first" : "high first";
  };
  const ranked = toggle(
    "Across layers",
    () => store.state.ranked,
    (on) => store.set({ ranked: on }),
  );
  const follow = ranked.update;
  ranked.update = () => {
    follow();
    ranked.node.hidden = store.state.order === "number";
  };
  return [order, ranked];
}

/** @param {Data} data @param {Store} store */
function numberControls(data, store) {
  const stack = () => data.stack(store.state.stack);
  return [
    chips(
      "Layers",
      () => stack().layers,
      () => store.state.layers,
      (layers) => store.set({ layers }),
      () => null,
    ),
    chips(
      "Heads",
      () => stack().heads,
      () => store.state.heads,
      (heads) => store.set({ heads }),
      () => null,
    ),
  ];
}
