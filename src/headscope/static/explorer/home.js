/** What the pages are read from: a server, or plain files in a folder of any web host. */

/** Whether this is a site of plain files, made by `headscope site`. */
export const isSite = document.documentElement.dataset.site === "files";

/** What the file of a page is called beside its name. */
export const ENDING = isSite ? ".html" : "";

/**
 * Whether the pages were opened from a disk, where a browser lets no script change the address of
 * the document or read another file.
 */
export const isOnDisk = window.location.protocol === "file:";
