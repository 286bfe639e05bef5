/** Small pictures of one pixel for each number, to be drawn larger. */

/**
 * @param {number} columns
 * @param {number} rows
 * @param {(place: number) => number[]} colorOf  red, green, blue and opacity, each up to 255
 * @returns {HTMLCanvasElement}
 */
export function pixelCanvas(columns, rows, colorOf) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [columns, rows];
  const image = new ImageData(columns, rows);
  for (let place = 0; place < columns * rows; place++) image.data.set(colorOf(place), 4 * place);
  penOf(canvas).putImageData(image, 0, 0);
  return canvas;
}

/** @param {HTMLCanvasElement} canvas @returns {CanvasRenderingContext2D} */
export function penOf(canvas) {
  return /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
}

/**
 * Make a canvas so large, as sharp as the screen is.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 * @returns {CanvasRenderingContext2D} in pixels of the page
 */
export function sized(canvas, width, height) {
  const sharp = Math.max(1, window.devicePixelRatio || 1);
  [canvas.width, canvas.height] = [Math.round(width * sharp), Math.round(height * sharp)];
  Object.assign(canvas.style, { width: `${width}px`, aspectRatio: `${width} / ${height}` });
  const pen = penOf(canvas);
  pen.scale(sharp, sharp);
  return pen;
}
