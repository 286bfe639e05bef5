/**
 * Where a view stands: a page of its own, a frame, a notebook. What a host forbids is asked here,
 * and nothing that it forbids may stop the drawing.
 *
 * @typedef {"yes" | "no" | "unknown"} Leave
 */

/** @import { Theme } from "./colors.js" */

const DARK_NAMES = /(^|[\s-])(dark|slate|night)([\s-]|$)/;
const LIGHT_NAMES = /(^|[\s-])light([\s-]|$)/;
const KEYS = /** @type {const} */ (["keydown", "keypress", "keyup"]);
const MOST_FRAME_HEIGHT = 1600;

/**
 * The frame that shows this page, null where there is none or where it may not be seen.
 * @returns {HTMLElement | null}
 */
function ownFrame() {
  try {
    return /** @type {HTMLElement | null} */ (window.frameElement);
  } catch {
    return null;
  }
}

/** Whether fingers point here: what can be touched is then larger. @returns {boolean} */
export function isTouched() {
  return window.matchMedia("(pointer: coarse)").matches;
}

/** @returns {boolean} */
function isFramed() {
  return window.parent !== window;
}

/**
 * Whether this page may save files ("downloads") or print ("modals"). A frame that may not be seen
 * does not say.
 * @param {"downloads" | "modals"} what
 * @returns {Leave}
 */
export function mayUse(what) {
  if (!isFramed()) return "yes";
  const frame = ownFrame();
  if (!frame) return "unknown";
  const sandbox = frame.getAttribute("sandbox");
  return sandbox === null || sandbox.split(/\s+/).includes(`allow-${what}`) ? "yes" : "no";
}

/**
 * Keep the state in the address, where the page has one: a frame made from text has none.
 * @param {string} hash
 */
export function keepHash(hash) {
  try {
    window.history.replaceState(null, "", hash ? `#${hash}` : "#");
  } catch {
    // The state is kept in the page alone.
  }
}

/**
 * Keys pressed inside the view are not the host's: a notebook would move to the next cell or cut
 * it. Combinations with Ctrl, Alt and ⌘, and Shift+Enter, which runs a cell, stay the host's.
 *
 * JupyterLab hears keys on their way up, Jupyter Notebook on their way down: the one is kept from
 * them by stopping the event, the other by a mark that both look for, on the very element that has
 * the focus.
 * @param {HTMLElement} root
 * @returns {() => void} stop
 */
export function keepKeys(root) {
  const mark = (/** @type {KeyboardEvent} */ event) => {
    const { target } = event;
    if (target instanceof Element && root.contains(target))
      target.toggleAttribute("data-lm-suppress-shortcuts", !isHosts(event));
  };
  const stop = (/** @type {KeyboardEvent} */ event) => {
    if (!isHosts(event)) event.stopPropagation();
  };
  for (const kind of KEYS) {
    window.addEventListener(kind, mark, { capture: true });
    root.addEventListener(kind, stop);
  }
  return () => KEYS.forEach((kind) => window.removeEventListener(kind, mark, { capture: true }));
}

/** @param {KeyboardEvent} event @returns {boolean} */
function isHosts(event) {
  return (
    event.ctrlKey || event.metaKey || event.altKey || (event.shiftKey && event.key === "Enter")
  );
}

/** Documents around the view that say what theme they have, nearest first. @returns {Document[]} */
function hostDocuments() {
  const found = document.body.classList.contains("hs-page") ? [] : [document];
  try {
    for (let inner = /** @type {Window} */ (window); inner.parent !== inner; inner = inner.parent)
      found.push(inner.parent.document);
  } catch {
    // Of another origin: it cannot be asked.
  }
  return found;
}

/**
 * The theme: as chosen, else that of the host, else that of the system.
 * @param {string} chosen
 * @param {HTMLElement} el
 * @param {MediaQueryList} system
 * @returns {Theme}
 */
export function themeOf(chosen, el, system) {
  if (chosen === "light" || chosen === "dark") return chosen;
  for (const host of hostDocuments()) {
    const said = saidTheme(host) ?? seenTheme(host === document ? el : ownFrame());
    if (said) return said;
  }
  return system.matches ? "dark" : "light";
}

/**
 * What a host writes on its body or root: JupyterLab, VS Code, marimo and many pages do.
 * @param {Document} host
 * @returns {Theme | null}
 */
function saidTheme(host) {
  const { jpThemeLight, vscodeThemeKind } = host.body?.dataset ?? {};
  if (jpThemeLight) return jpThemeLight === "false" ? "dark" : "light";
  // High contrast is dark.
  if (vscodeThemeKind) return vscodeThemeKind.includes("light") ? "light" : "dark";
  for (const one of [host.body, host.documentElement]) {
    const names = [
      one?.className,
      one?.dataset.theme,
      one?.dataset.mode,
      one?.dataset.bsTheme,
      one?.dataset.mdColorScheme,
    ]
      .join(" ")
      .toLowerCase();
    if (DARK_NAMES.test(names)) return "dark";
    if (LIGHT_NAMES.test(names)) return "light";
  }
  return null;
}

/**
 * What stands behind the view: the first ground that is not transparent.
 * @param {HTMLElement | null} el
 * @returns {Theme | null}
 */
function seenTheme(el) {
  for (let one = el; one; one = one.parentElement) {
    const [red, green, blue, alpha = 1] = (
      getComputedStyle(one).backgroundColor.match(/[\d.]+/g) ?? [0, 0, 0, 0]
    ).map(Number);
    if (alpha > 0.5) return 0.299 * red + 0.587 * green + 0.114 * blue < 128 ? "dark" : "light";
  }
  return null;
}

/**
 * Calls `act` when the theme may have changed.
 * @param {HTMLElement} root
 * @param {MediaQueryList} system
 * @param {() => void} act
 * @returns {() => void} stop
 */
export function watchTheme(root, system, act) {
  const watch = new MutationObserver(act);
  for (const { body, documentElement } of hostDocuments()) {
    for (const one of [body, documentElement]) if (one) watch.observe(one, { attributes: true });
  }
  system.addEventListener("change", act);
  // A host may change its colours without a word on its body; whoever comes back to the view finds
  // it in step.
  root.addEventListener("pointerenter", act);
  return () => {
    watch.disconnect();
    system.removeEventListener("change", act);
    root.removeEventListener("pointerenter", act);
  };
}

/**
 * Tell the host how high the page is; a frame that asks for it (data-headscope="fit") is made that
 * high.
 * @param {HTMLElement} el
 */
export function reportHeight(el) {
  if (!isFramed()) return;
  let told = 0;
  const tell = () => {
    const height = Math.ceil(el.getBoundingClientRect().height);
    if (height === 0 || height === told) return;
    told = height;
    window.parent.postMessage({ type: "headscope:height", height }, "*");
    const frame = ownFrame();
    if (frame?.dataset.headscope === "fit")
      frame.style.height = `${Math.min(height, MOST_FRAME_HEIGHT)}px`;
  };
  new ResizeObserver(tell).observe(el);
}

/**
 * In a notebook the outputs before this one show the same view, only poorer: a picture, a page
 * without its kernel. Where the better one works they are hidden. `key` is how the data of the
 * picture ends.
 * @param {Element | null} el  the widget; without it this page's own frame
 * @param {string} key
 */
export function hidePoorer(el = ownFrame(), key = ownFrame()?.dataset.headscopePicture ?? "") {
  if (!key) return;
  for (let [one, steps] = [el, 0]; one && steps < 8; one = one.parentElement, steps++) {
    let before = one.previousElementSibling;
    if (!(before && showsNothingBut(before, key))) continue;
    for (; before && showsNothingBut(before, key); before = before.previousElementSibling)
      /** @type {HTMLElement} */ (before).style.display = "none";
    return;
  }
}

/** @param {Element} node @param {string} key @returns {boolean} */
function showsNothingBut(node, key) {
  const found = [
    ...(node.matches("img, iframe") ? [node] : []),
    ...node.querySelectorAll("img, iframe, [data-headscope-picture]"),
  ];
  const isOther = node.querySelector("textarea, [contenteditable], input") !== null;
  return found.length === 1 && !isOther && isPoorer(found[0], key);
}

/** @param {Element} node @param {string} key @returns {boolean} */
function isPoorer(node, key) {
  return (
    node.getAttribute("data-headscope-picture") === key ||
    (node.getAttribute("src") ?? "").trimEnd().endsWith(key)
  );
}
