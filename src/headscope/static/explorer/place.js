/** Where the visitor is: the page and its settings, all of it in the address. */

import { ENDING, isOnDisk, isSite } from "./home.js";

/** @typedef {{page: string, params: Record<string, string>}} Place */

/**
 * Where in a page a visitor was who comes back to it.
 * @typedef {{scroll: number, focused: string}} Memory
 */

/** @type {(memory: Memory | null) => void} */
let onMove = () => {};

/** Keep with the present address where in the page the visitor is. */
function remember() {
  const memory = { scroll: window.scrollY, focused: document.activeElement?.id ?? "" };
  window.history.replaceState(memory, "");
}

/** @returns {Place} */
export function here() {
  const file = window.location.pathname.replace(/^.*\//, "");
  const page = file.endsWith(ENDING) ? file.slice(0, file.length - ENDING.length) : file;
  return {
    page: page === "index" || !page ? "map" : page,
    params: Object.fromEntries(new URLSearchParams(window.location.search)),
  };
}

/**
 * @param {string} page
 * @param {Record<string, string | null | undefined>} params
 * @returns {string}
 */
export function address(page, params) {
  const kept = Object.entries(params).filter(
    (pair) => pair[1] !== null && pair[1] !== undefined && pair[1] !== "",
  );
  const search = new URLSearchParams(/** @type {[string, string][]} */ (kept)).toString();
  return `${isSite ? "" : "/"}${page}${ENDING}${search ? `?${search}` : ""}`;
}

/**
 * @param {string} page
 * @param {Record<string, string | null | undefined>} params
 * @param {{replace?: boolean, quiet?: boolean, hash?: string}} [how]  replace: no step back; quiet:
 *   the page is already right; hash: the state of a view
 */
export function go(page, params, { replace = false, quiet = false, hash = "" } = {}) {
  const target = address(page, params) + (replace && quiet ? window.location.hash : hash);
  if (isOnDisk) {
    if (!quiet) window.location.assign(target);
    return;
  }
  if (!replace) remember();
  if (replace) window.history.replaceState(window.history.state, "", target);
  else window.history.pushState(null, "", target);
  if (!quiet) onMove(null);
}

/**
 * Change settings of the current page.
 * @param {Record<string, string | null | undefined>} patch
 * @param {Parameters<typeof go>[2]} [how]
 */
export function change(patch, how) {
  const { page, params } = here();
  go(page, { ...params, ...patch }, how);
}

/**
 * Whether a link leads to a page of the explorer, which needs no new document.
 * @param {HTMLAnchorElement} link
 * @returns {boolean}
 */
function isPage(link) {
  const href = link.getAttribute("href") ?? "";
  return !link.target && (isSite ? /^[a-z]+\.html(\?|$)/ : /^\/[a-z]*(\?|$)/).test(href);
}

/**
 * @param {(memory: Memory | null) => void} act  called whenever the place has changed, with what is
 *   remembered of a place that the visitor comes back to
 */
export function watchPlace(act) {
  onMove = act;
  if (isOnDisk) return; // links load the document that they name
  window.history.scrollRestoration = "manual";
  window.addEventListener("popstate", (event) => act(event.state));
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
    if (!(link instanceof HTMLAnchorElement && event instanceof MouseEvent) || !isPage(link))
      return;
    if (
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.button !== 0 ||
      link.hasAttribute("download")
    )
      return;
    event.preventDefault();
    remember();
    window.history.pushState(null, "", link.href);
    act(null);
  });
}
