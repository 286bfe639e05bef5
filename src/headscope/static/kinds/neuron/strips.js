/** Vectors as strips of coloured cells: blue positive, orange negative, saturation by magnitude. */

import { pixelCanvas, sized } from "../../draw/pixels.js";
import { rgb } from "../../ui/colors.js";
import { COLORS } from "../../ui/theme.js";

/**
 * @import { Theme } from "../../ui/colors.js"
 * @import { Shape } from "../../draw/scene.js"
 */

const LEVELS = 12;

/**
 * @param {HTMLCanvasElement} canvas
 * @param {ArrayLike<number>} values  row × neuron
 * @param {number[]} order  of the neurons
 * @param {{pitch: number, tall: number, cell: number}} size
 * @param {Theme} theme
 * @param {number} most  the magnitude that is painted fully saturated
 */
export function paintStrips(canvas, values, order, size, theme, most) {
  const dim = order.length;
  const rows = values.length / dim;
  const [paper, blue, orange] = [
    COLORS[theme].paper,
    COLORS[theme].positive,
    COLORS[theme].negative,
  ].map(rgb);
  const pixels = pixelCanvas(dim, rows, (place) => {
    const value = values[place - (place % dim) + order[place % dim]];
    const color = value >= 0 ? blue : orange;
    const share = strength(value, most);
    return [...paper.map((part, i) => part + (color[i] - part) * share), 255];
  });
  const pen = sized(canvas, dim * size.cell, rows * size.pitch);
  pen.imageSmoothingEnabled = false;
  const inset = (size.pitch - size.tall) / 2;
  for (let row = 0; row < rows; row++)
    pen.drawImage(pixels, 0, row, dim, 1, 0, row * size.pitch + inset, dim * size.cell, size.tall);
}

/** @param {ArrayLike<number>} values @returns {number} */
export function largest(values) {
  let most = 0;
  for (let i = 0; i < values.length; i++) most = Math.max(most, Math.abs(values[i]));
  return most || 1;
}

/** @param {number} value @param {number} most @returns {number} */
function strength(value, most) {
  return Math.sqrt(Math.abs(value) / most);
}

/**
 * The same strips as shapes for print.
 * @param {ArrayLike<number>} values
 * @param {number[]} order
 * @param {{pitch: number, tall: number, cell: number}} size
 * @param {[number, number]} at
 * @param {Theme} theme
 * @param {number} most
 * @returns {Shape[]}
 */
export function stripShapes(values, order, size, at, theme, most) {
  const dim = order.length;
  /** @type {number[][]} */
  const boxes = Array.from({ length: 2 * LEVELS + 1 }, () => []);
  for (let row = 0; row < values.length / dim; row++) {
    order.forEach((neuron, place) => {
      const value = values[row * dim + neuron];
      const level = Math.round(strength(value, most) * LEVELS) * (value >= 0 ? 1 : -1);
      const top = at[1] + row * size.pitch + (size.pitch - size.tall) / 2;
      boxes[LEVELS + level].push(at[0] + place * size.cell, top, size.cell, size.tall);
    });
  }
  return boxes.flatMap((each, i) => {
    const level = i - LEVELS;
    if (level === 0 || each.length === 0) return [];
    const color = level > 0 ? COLORS[theme].positive : COLORS[theme].negative;
    return [
      /** @type {Shape} */ ({ kind: "cells", boxes: each, color, alpha: Math.abs(level) / LEVELS }),
    ];
  });
}
