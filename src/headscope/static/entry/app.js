/**
 * One view in an element: chooses the view by its kind, adds the title line, theme and print
 * buttons.
 *
 * @typedef {object} View
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

import { button, segments } from "../ui/controls.js";
import { h } from "../ui/dom.js";
import { options } from "../kinds/shared/filters.js";
import { keepKeys, themeOf, watchTheme } from "../ui/host.js";
import { savePdf, savePng, saveSvg } from "../draw/print.js";
import { withCaption } from "../draw/scene.js";
import { COLORS } from "../ui/theme.js";
import { VIEWS } from "../kinds/index.js";

/**
 * @import { Theme } from "../ui/colors.js"
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
  const top = h("header", { class: "hs-top" });
  const note = h("div", { class: "hs-note", role: "status" });
  note.hidden = true;
  root.append(top, note);
  const stopKeys = keepKeys(root);
  const view = VIEWS[data.header.kind](root, data, store, theme);
  const picture = () => withCaption(view.scene(), view.caveats(), COLORS[theme()].faint);
  const themeControl = fillTop(top, note, data, store, view, picture);

  let work = Promise.resolve();
  const drawn = { theme: "", width: 0 };
  const draw = () => {
    drawn.theme = theme();
    drawn.width = el.clientWidth;
    for (const one of [root, root.closest(".hs-page")])
      one?.setAttribute("data-theme", drawn.theme);
    themeControl.update();
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

/**
 * @param {HTMLElement} top
 * @param {HTMLElement} note
 * @param {Data} data
 * @param {Store} store
 * @param {View} view
 * @param {() => Scene} picture
 */
function fillTop(top, note, data, store, view, picture) {
  const control = segments(
    "Theme",
    options("theme"),
    () => store.state.theme,
    (theme) => store.set({ theme }),
  );
  const { kind } = data.header;
  const title = h("h1", {}, `${kind[0].toUpperCase()}${kind.slice(1)} view`);
  const model = h("span", { class: "hs-model" });
  model.textContent = data.header.model;
  const tell = (/** @type {string} */ text, /** @type {Blob | undefined} */ picture) =>
    showNote(note, text, picture);
  top.append(
    title,
    model,
    h("span", { class: "hs-space" }),
    control.node,
    button("SVG", "Save what is shown as SVG", () => saveSvg(picture(), view.title(), tell)),
    button("PNG", "Save what is shown as PNG", () => savePng(picture(), view.title(), tell)),
    button("PDF", "Print what is shown; choose “Save as PDF”", () =>
      savePdf(picture(), view.title(), tell),
    ),
  );
  return control;
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
