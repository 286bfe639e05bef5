/**
 * One view in an element: chooses the view by its kind and puts title, controls and print buttons
 * into one row above it.
 *
 * @typedef {object} View
 * @property {Control[]} first  controls that are always in sight
 * @property {Control[]} rest  those under “More”
 * @property {() => Promise<void>} update  draw the current state
 * @property {() => Scene} scene  what is on screen, for print
 * @property {() => string[]} caveats  what the picture leaves out
 * @property {() => Line[]} lines  what is drawn
 * @property {() => string} title
 * @property {() => void} remove  stop listening to the page
 * @property {() => Promise<void>} [finished]  settles when what is off screen is drawn too
 *
 * @typedef {object} App
 * @property {Promise<void>} ready  settles when the first picture is drawn
 * @property {() => Promise<void>} idle  settles when nothing is left to draw
 * @property {Store} store
 * @property {View} view
 * @property {() => Scene} picture  what is on screen, and in words what it leaves out
 * @property {() => void} remove
 */

import { button } from "../ui/controls.js";
import { h } from "../ui/dom.js";
import { settingControl } from "../kinds/shared/filters.js";
import { keepKeys, themeOf, watchTheme } from "../ui/host.js";
import { savePdf, savePng, saveSvg } from "../draw/print.js";
import { withCaption } from "../draw/scene.js";
import { COLORS } from "../ui/theme.js";
import { VIEWS } from "../kinds/index.js";

/**
 * @import { Theme } from "../ui/colors.js"
 * @import { Control } from "../ui/controls.js"
 * @import { Data } from "../kinds/shared/data.js"
 * @import { Line } from "../kinds/shared/lines.js"
 * @import { Scene } from "../draw/scene.js"
 * @import { Store } from "../kinds/shared/state.js"
 */

/**
 * @param {HTMLElement} el
 * @param {Data} data
 * @param {Store} store
 * @returns {App}
 */
export function mount(el, data, store) {
  const root = h("div", { class: "hs-root" });
  el.append(root);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const theme = () => themeOf(store.state.theme, el, dark);
  const bar = h("header", { class: "hs-bar" });
  const note = h("div", { class: "hs-note", role: "status" });
  note.hidden = true;
  root.append(bar, note);
  const stopKeys = keepKeys(root);
  const view = VIEWS[data.header.kind](root, data, store, theme);
  const picture = () => withCaption(view.scene(), view.caveats(), COLORS[theme()].faint);
  const controls = [...view.first, ...view.rest, themeControl(store)];
  bar.append(...titleOf(data), ...view.first.map(({ node }) => node));
  bar.append(h("span", { class: "hs-space" }), saveButtons(note, view, picture));
  bar.append(...more(controls.slice(view.first.length)));

  let work = Promise.resolve();
  const drawn = { theme: "", width: 0 };
  const draw = () => {
    drawn.theme = theme();
    drawn.width = el.clientWidth;
    for (const element of [root, root.closest(".hs-page")])
      element?.setAttribute("data-theme", drawn.theme);
    for (const control of controls) control.update();
    work = view.update().catch((error) => showFailure(root, error));
    return work;
  };
  const isBehind = () => theme() !== drawn.theme || Math.abs(el.clientWidth - drawn.width) >= 2;
  const follow = () => {
    if (isBehind()) void draw();
  };
  const stop = store.subscribe(() => void draw());
  const stopTheme = watchTheme(root, dark, follow);
  const watch = new ResizeObserver(follow);
  watch.observe(el);
  const remove = () => {
    stop();
    stopTheme();
    stopKeys();
    watch.disconnect();
    view.remove();
    root.remove();
  };
  // Observers are told of a new width or theme with the next frame: whoever asks is not to wait.
  const idle = async () => {
    follow();
    for (let awaited; awaited !== work;) {
      awaited = work;
      await work;
      await view.finished?.();
    }
  };
  return { ready: draw(), idle, store, view, picture, remove };
}

/** @param {Data} data @returns {HTMLElement[]} */
function titleOf({ header: { kind, model } }) {
  const title = h("h1", {}, `${kind[0].toUpperCase()}${kind.slice(1)} view`);
  return [title, h("span", { class: "hs-model", title: model }, model)];
}

/** @param {Store} store @returns {Control} */
function themeControl(store) {
  const control = settingControl(store, "theme");
  control.node.classList.add("hs-theme");
  return control;
}

/**
 * @param {HTMLElement} note
 * @param {View} view
 * @param {() => Scene} picture
 * @returns {HTMLElement}
 */
function saveButtons(note, view, picture) {
  const tell = (/** @type {string} */ text, /** @type {Blob | undefined} */ picture) =>
    showNote(note, text, picture);
  return h(
    "span",
    { class: "hs-saves" },
    button("SVG", "Save what is shown as SVG", () => saveSvg(picture(), view.title(), tell)),
    button("PNG", "Save what is shown as PNG", () => savePng(picture(), view.title(), tell)),
    button("PDF", "Print what is shown; choose “Save as PDF”", () =>
      savePdf(picture(), view.title(), tell),
    ),
  );
}

/**
 * A button, and the row of controls that it opens.
 * @param {Control[]} controls
 * @returns {HTMLElement[]}
 */
function more(controls) {
  const row = h("div", { class: "hs-more-controls" }, ...controls.map(({ node }) => node));
  row.hidden = true;
  const opener = button("More", "More controls", () => {
    row.hidden = !row.hidden;
    opener.setAttribute("aria-expanded", String(!row.hidden));
  });
  opener.classList.add("hs-more");
  opener.setAttribute("aria-expanded", "false");
  return [opener, row];
}

/**
 * Say what the host does not allow; a picture that cannot be saved is shown.
 * @param {HTMLElement} note
 * @param {string} text
 * @param {Blob} [picture]
 */
function showNote(note, text, picture) {
  const before = note.querySelector("img");
  if (before) URL.revokeObjectURL(before.src);
  const close = button("Close", "Close this note", () => (note.hidden = true));
  note.replaceChildren(h("p", {}, text, " ", close));
  if (picture) note.append(h("img", { alt: "What is shown", src: URL.createObjectURL(picture) }));
  note.hidden = false;
}

/** @param {HTMLElement} root @param {unknown} error */
function showFailure(root, error) {
  const note = h("p", { class: "hs-failure", role: "alert" });
  const reason = error instanceof Error ? error.message : String(error);
  note.textContent = `This view cannot be drawn: ${reason}`;
  root.append(note);
  console.error(error);
}
