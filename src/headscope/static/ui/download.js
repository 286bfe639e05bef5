/** Files for the reader to keep. */

/** @param {Blob} blob @param {string} name */
export function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** @param {string} name @param {string} otherwise @returns {string} without what systems refuse */
export function fileName(name, otherwise) {
  return name.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") || otherwise;
}
