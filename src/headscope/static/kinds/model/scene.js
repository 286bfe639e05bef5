/** The model view for print: all thumbnails with their names, the enlarged head beside them. */

import { nameHead } from "../../ui/heads.js";
import { COLORS } from "../../ui/theme.js";
import { shortened } from "../../ui/fonts.js";

/**
 * @import { Theme } from "../../ui/colors.js"
 * @import { Scene, Shape } from "../../draw/scene.js"
 * @import { Sheet } from "./sheet.js"
 */

const GAP = 18;
const ROLE = 12; // pixels below a thumbnail for the name of what the head does
const MARGIN = 40;

/**
 * @param {Sheet} sheet
 * @param {Scene | null} beside
 * @param {Theme} theme
 * @returns {Scene}
 */
export function modelScene(sheet, beside, theme) {
  const columns = Math.max(1, sheet.columns);
  const step = sheet.size + GAP;
  /** @type {Shape[]} */
  const shapes = [];
  sheet.thumbs.forEach((thumb, i) => {
    const x = MARGIN + (i % columns) * step;
    const y = MARGIN + Math.floor(i / columns) * (step + ROLE);
    shapes.push(frame(x, y, sheet.size, theme), ...sheet.shapes(thumb, x, y));
    const style = { color: COLORS[theme].faint, anchor: /** @type {"middle"} */ ("middle") };
    const [middle, text] = [x + sheet.size / 2, nameHead(thumb.cell.layer, thumb.cell.head)];
    shapes.push({ kind: "text", at: [middle, y - 7], text, size: 9, ...style });
    const role = sheet.role(thumb.cell);
    if (role)
      shapes.push({
        kind: "text",
        at: [middle, y + sheet.size + 7],
        text: shortened(role[0], Math.floor(step / 4.4)),
        size: 8,
        ...style,
      });
  });
  const width = 2 * MARGIN + columns * step - GAP;
  const height = 2 * MARGIN + Math.ceil(sheet.thumbs.length / columns) * (step + ROLE);
  if (beside) shapes.push(...beside.shapes.map((shape) => shifted(shape, width, MARGIN)));
  return {
    width: width + (beside ? beside.width + MARGIN : 0),
    height: Math.max(height, beside ? beside.height + 2 * MARGIN : 0),
    paper: COLORS[theme].paper,
    shapes,
  };
}

/**
 * @param {number} x
 * @param {number} y
 * @param {number} size
 * @param {Theme} theme
 * @returns {Shape}
 */
function frame(x, y, size, theme) {
  const edge = [x, y, size, 0.6, x, y + size, size, 0.6, x, y, 0.6, size, x + size, y, 0.6, size];
  return { kind: "cells", boxes: edge, color: COLORS[theme].rule, alpha: 1 };
}

/** @param {Shape} shape @param {number} dx @param {number} dy @returns {Shape} */
function shifted(shape, dx, dy) {
  /** @param {[number, number]} at @returns {[number, number]} */
  const move = ([x, y]) => [x + dx, y + dy];
  if (shape.kind === "text") return { ...shape, at: move(shape.at) };
  if (shape.kind === "cells")
    return {
      ...shape,
      boxes: shape.boxes.map((value, i) =>
        i % 4 === 0 ? value + dx : i % 4 === 1 ? value + dy : value,
      ),
    };
  return { ...shape, from: move(shape.from), to: move(shape.to) };
}
