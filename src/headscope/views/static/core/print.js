/**
 * Taking the current picture along: SVG and PNG as files, PDF through the browser's own printing.
 *
 * @typedef {import("./scene.js").Scene} Scene
 */

import { escape, toCanvas, toSvg } from "./scene.js";

const PNG_SCALE = 3;
const MOST_PNG_PIXELS = 60e6;

/** @param {Scene} scene @param {string} name */
export function saveSvg(scene, name) {
  download(new Blob([toSvg(scene)], { type: "image/svg+xml" }), `${fileName(name)}.svg`);
}

/** @param {Scene} scene @param {string} name */
export function savePng(scene, name) {
  const scale = Math.min(PNG_SCALE, Math.sqrt(MOST_PNG_PIXELS / (scene.width * scene.height)));
  toCanvas(scene, scale).toBlob((blob) => blob && download(blob, `${fileName(name)}.png`), "image/png");
}

/**
 * Prints a page that holds nothing but the picture, at its own size: vector lines, real text.
 * @param {Scene} scene
 * @param {string} name
 */
export function savePdf(scene, name) {
  const frame = document.createElement("iframe");
  frame.className = "hs-print";
  frame.title = "Print";
  frame.srcdoc = printPage(scene, name);
  frame.addEventListener("load", () => {
    const inside = frame.contentWindow;
    if (!inside) return;
    inside.addEventListener("afterprint", () => frame.remove());
    inside.print();
  });
  document.body.append(frame);
}

/** @param {Scene} scene @param {string} name @returns {string} */
export function printPage(scene, name) {
  const size = `${Math.ceil(scene.width)}px ${Math.ceil(scene.height)}px`;
  const style = `@page{size:${size};margin:0}body{margin:0}svg{display:block;print-color-adjust:exact;-webkit-print-color-adjust:exact}`;
  return `<!doctype html><meta charset="utf-8"><title>${escape(fileName(name))}</title><style>${style}</style>${toSvg(scene)}`;
}

/** @param {Blob} blob @param {string} name */
function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** @param {string} name @returns {string} */
function fileName(name) {
  return name.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") || "attention";
}
