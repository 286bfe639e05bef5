/** What the colours of the vectors mean: sign and strength. */

import { COLORS } from "../../ui/theme.js";

/**
 * @import { Theme } from "../../ui/colors.js"
 * @import { Shape } from "../../draw/scene.js"
 */

const STEPS = 24; // colours on each side of zero
const WIDE = 4;

/**
 * A scale from the most negative over zero to the most positive, as strong as the strips paint it.
 * @param {string} name
 * @param {number} most
 * @param {[number, number]} at
 * @param {Theme} theme
 * @returns {Shape[]}
 */
export function legendShapes(name, most, [x, y], theme) {
  const ink = COLORS[theme];
  const middle = x + 52 + STEPS * WIDE;
  /** @type {Shape[]} */
  const cells = [];
  for (let step = 1; step <= STEPS; step++) {
    const alpha = Math.sqrt(step / STEPS);
    cells.push({
      kind: "cells",
      boxes: [middle + (step - 1) * WIDE, y, WIDE, 10],
      color: ink.positive,
      alpha,
    });
    cells.push({
      kind: "cells",
      boxes: [middle - step * WIDE, y, WIDE, 10],
      color: ink.negative,
      alpha,
    });
  }
  const number = (/** @type {number} */ value) =>
    `${value > 0 ? "+" : value < 0 ? "−" : ""}${Number(Math.abs(value).toPrecision(2))}`;
  const mono = { size: 11, color: ink.faint, mono: true };
  return [
    ...cells,
    { kind: "text", at: [x + 46, y + 5], text: number(-most), anchor: "end", ...mono },
    {
      kind: "text",
      at: [middle + STEPS * WIDE + 6, y + 5],
      text: number(most),
      anchor: "start",
      ...mono,
    },
    { kind: "text", at: [middle, y + 19], text: "0", anchor: "middle", ...mono },
    {
      kind: "text",
      at: [middle + STEPS * WIDE + 52, y + 5],
      text: name,
      anchor: "start",
      size: 11,
      color: ink.faint,
    },
  ];
}

export const LEGEND = { width: 52 + 2 * STEPS * WIDE + 170, height: 30 };
