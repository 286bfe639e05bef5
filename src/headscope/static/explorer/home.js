/** What the pages are read from: a server, or plain files in a folder of any web host. */

/** Whether this is a site of plain files, made by `headscope site`. */
export const isSite = document.documentElement.dataset.site === "files";

/** What the file of a page is called beside its name. */
export const ENDING = isSite ? ".html" : "";

/**
 * @param {string} path  of a file beside the pages
 * @returns {string} its address, whichever page is open
 */
export function fileBeside(path) {
  return new URL(`../../${path}`, import.meta.url).href;
}
