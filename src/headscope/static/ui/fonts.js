/** The faces of pictures, and how wide a text is in them. */

export const SANS =
  'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
export const MONO =
  'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';

/** @param {string} text @param {number} most @returns {string} cut to so many characters */
export function shortened(text, most) {
  const chars = Array.from(text);
  return chars.length <= most ? text : `${chars.slice(0, most - 1).join("")}…`;
}

/** @type {CanvasRenderingContext2D | null} */
let ruler = null;

/**
 * @param {string} text
 * @param {number} size  in pixels
 * @param {string} [style]  "600" is bold
 * @returns {number} pixels
 */
export function textWidth(text, size, style = "") {
  ruler ??= document.createElement("canvas").getContext("2d");
  if (!ruler) return text.length * size * 0.6;
  ruler.font = `${style} ${size}px ${SANS}`;
  return ruler.measureText(text).width;
}
