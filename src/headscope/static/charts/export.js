/** Taking a figure home: the drawing as SVG, its numbers as CSV. */

import { ink } from "../explorer/look.js";
import { s } from "../ui/dom.js";
import { download, fileName } from "../ui/download.js";

/** @param {SVGSVGElement} drawing @param {string} name */
export function saveDrawing(drawing, name) {
  const copy = /** @type {SVGSVGElement} */ (drawing.cloneNode(true));
  const [width, height] = ["width", "height"].map(
    (side) => drawing.viewBox.baseVal[/** @type {"width"} */ (side)],
  );
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  const parts = copy.querySelectorAll("*");
  drawing.querySelectorAll("*").forEach((part, i) => {
    const { fill, stroke } = getComputedStyle(part); // a file has no style sheet
    parts[i].setAttribute("fill", fill);
    parts[i].setAttribute("stroke", stroke);
  });
  copy.removeAttribute("class");
  copy.removeAttribute("style");
  copy.prepend(s("rect", { width: "100%", height: "100%", fill: ink().paper }));
  const text = new XMLSerializer().serializeToString(copy);
  download(new Blob([text], { type: "image/svg+xml" }), `${fileName(name, "figure")}.svg`);
}

/** @typedef {(string | number | boolean | null | undefined)[][]} Rows  the header first */

/** @param {Rows} rows @param {string} name */
export function saveRows(rows, name) {
  const text = rows.map((row) => row.map(cell).join(",")).join("\r\n");
  download(new Blob([`${text}\r\n`], { type: "text/csv" }), `${fileName(name, "figure")}.csv`);
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
