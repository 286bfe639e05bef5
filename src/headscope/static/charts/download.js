/** Taking a figure home: the drawing as SVG, its numbers as CSV. */

import { ink } from "../explorer/look.js";
import { s } from "../ui/dom.js";

/** @param {SVGSVGElement} drawing @param {string} name */
export function saveDrawing(drawing, name) {
  const copy = /** @type {SVGSVGElement} */ (drawing.cloneNode(true));
  const [width, height] = ["width", "height"].map(
    (side) => drawing.viewBox.baseVal[/** @type {"width"} */ (side)],
  );
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  copy.removeAttribute("class");
  copy.prepend(s("rect", { width: "100%", height: "100%", fill: ink().paper }));
  const text = new XMLSerializer().serializeToString(copy);
  save(new Blob([text], { type: "image/svg+xml" }), `${fileName(name)}.svg`);
}

/** @typedef {(string | number | boolean | null | undefined)[][]} Rows  the header first */

/** @param {Rows} rows @param {string} name */
export function saveRows(rows, name) {
  const text = rows.map((row) => row.map(cell).join(",")).join("\r\n");
  save(new Blob([`${text}\r\n`], { type: "text/csv" }), `${fileName(name)}.csv`);
}

/**
 * A spreadsheet runs text that begins with = + - or @ as a formula; a quote keeps it text.
 * @param {string | number | boolean | null | undefined} value
 * @returns {string}
 */
export function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "string") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) && !Number.isFinite(Number(value)) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** @param {Blob} blob @param {string} name */
function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** @param {string} name @returns {string} */
function fileName(name) {
  return name.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") || "figure";
}
