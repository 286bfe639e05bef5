/**
 * Taking the current picture along: SVG and PNG as files, PDF through the browser's own printing.
 */

import { download, fileName } from "../ui/download.js";
import { mayUse } from "../ui/host.js";
import { escape, toCanvas, toSvg } from "./scene.js";

/** @import { Scene } from "./scene.js" */

const PNG_SCALE = 3;
const MOST_PNG_PIXELS = 60e6;

/**
 * Tells the reader what a host does not allow, with the picture itself where there is one.
 * @typedef {(text: string, picture?: Blob) => void} Tell
 */

/** @param {Scene} scene @param {string} name @param {Tell} tell */
export function saveSvg(scene, name, tell) {
  save(
    new Blob([toSvg(scene)], { type: "image/svg+xml" }),
    `${fileName(name, "attention")}.svg`,
    tell,
  );
}

/** @param {Scene} scene @param {string} name @param {Tell} tell */
export function savePng(scene, name, tell) {
  const scale = Math.min(PNG_SCALE, Math.sqrt(MOST_PNG_PIXELS / (scene.width * scene.height)));
  toCanvas(scene, scale).toBlob(
    (blob) => blob && save(blob, `${fileName(name, "attention")}.png`, tell),
    "image/png",
  );
}

/**
 * Prints a page that holds nothing but the picture, at its own size: vector lines, real text.
 * @param {Scene} scene
 * @param {string} name
 * @param {Tell} tell
 */
export function savePdf(scene, name, tell) {
  const refuse = () =>
    tell(
      "This frame forbids printing. Save the SVG, or open the page in a window of its own " +
        "and print it there.",
    );
  if (mayUse("modals") === "no") return refuse();
  const frame = document.createElement("iframe");
  frame.className = "hs-print";
  frame.title = "Print";
  frame.srcdoc = printPage(scene, name);
  frame.addEventListener("load", () => {
    try {
      const inside = /** @type {Window} */ (frame.contentWindow);
      inside.addEventListener("afterprint", () => frame.remove());
      inside.print();
    } catch {
      frame.remove(); // a sandboxed page may not reach into the frame it made
      refuse();
    }
  });
  document.body.append(frame);
}

/** @param {Scene} scene @param {string} name @returns {string} */
export function printPage(scene, name) {
  const size = `${Math.ceil(scene.width)}px ${Math.ceil(scene.height)}px`;
  const style =
    `@page{size:${size};margin:0}body{margin:0}` +
    "svg{display:block;print-color-adjust:exact;-webkit-print-color-adjust:exact}";
  return (
    `<!doctype html><meta charset="utf-8"><title>${escape(fileName(name, "attention"))}</title>` +
    `<style>${style}</style>${toSvg(scene)}`
  );
}

/** @param {Blob} blob @param {string} name @param {Tell} tell */
function save(blob, name, tell) {
  const leave = mayUse("downloads");
  if (leave !== "no") download(blob, name);
  if (leave === "no")
    tell(
      "This frame forbids saving files. Save the picture below by its own menu (right click, " +
        `or a long press), as ${name}.`,
      blob,
    );
  if (leave === "unknown")
    tell(
      `Saved as ${name}, if the frame around this page allows it. If not: save the picture ` +
        "below by its own menu (right click, or a long press).",
      blob,
    );
}
