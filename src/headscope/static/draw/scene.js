/**
 * A drawing as a list of shapes, painted on a canvas or written as SVG: screen and print agree.
 *
 * @typedef {{kind: "curve", from: [number, number], to: [number, number], color: string, alpha:
 *   number, width: number}} Curve
 * @typedef {{kind: "cells", boxes: number[], color: string, alpha: number}} Cells
 *   boxes are x, y, width, height, one after the other
 * @typedef {{kind: "text", at: [number, number], text: string, size: number, color: string,
 *   anchor?: "start" | "middle" | "end", turn?: number, mono?: boolean, bold?: boolean}} Text
 * @typedef {{kind: "rule", from: [number, number], to: [number, number], color: string, dashed:
 *   boolean}} Rule
 * @typedef {Curve | Cells | Text | Rule} Shape
 * @typedef {{width: number, height: number, paper: string, shapes: Shape[]}} Scene
 */

import { MONO, SANS, textWidth } from "../ui/fonts.js";
import { controls } from "./line.js";

const CAPTION = { size: 11, line: 16, margin: 12, least: 260 };
const WEAK = 0.4;
const WEAK_STEPS = 256;

/**
 * Weak curves first, those of one colour and nearly the same opacity as one path: ten times faster.
 * @param {CanvasRenderingContext2D} pen
 * @param {Shape[]} shapes
 */
export function paintAll(pen, shapes) {
  /** @type {Map<string, Curve[]>} */
  const weak = new Map();
  /** @type {Shape[]} */
  const rest = [];
  for (const shape of shapes) {
    if (shape.kind !== "curve" || shape.alpha >= WEAK) {
      rest.push(shape);
      continue;
    }
    const key = `${shape.color} ${Math.round(shape.alpha * WEAK_STEPS)}`;
    const group = weak.get(key);
    if (group) group.push(shape);
    else weak.set(key, [shape]);
  }
  for (const group of weak.values()) paintCurves(pen, group);
  for (const shape of rest) paint(pen, shape);
}

/** @param {CanvasRenderingContext2D} pen @param {Shape} shape */
function paint(pen, shape) {
  if (shape.kind === "curve") paintCurves(pen, [shape]);
  else if (shape.kind === "cells") paintCells(pen, shape);
  else if (shape.kind === "text") paintText(pen, shape);
  else paintRule(pen, shape);
}

/** @param {CanvasRenderingContext2D} pen @param {Curve[]} curves  that look alike */
function paintCurves(pen, curves) {
  pen.globalAlpha = curves[0].alpha;
  pen.strokeStyle = curves[0].color;
  pen.lineWidth = curves[0].width;
  pen.beginPath();
  for (const curve of curves) {
    const [c1, c2] = controls(curve);
    pen.moveTo(curve.from[0], curve.from[1]);
    pen.bezierCurveTo(c1[0], c1[1], c2[0], c2[1], curve.to[0], curve.to[1]);
  }
  pen.stroke();
  pen.globalAlpha = 1;
}

/** @param {CanvasRenderingContext2D} pen @param {Cells} cells */
function paintCells(pen, { boxes, color, alpha }) {
  pen.globalAlpha = alpha;
  pen.fillStyle = color;
  for (let i = 0; i < boxes.length; i += 4)
    pen.fillRect(boxes[i], boxes[i + 1], boxes[i + 2], boxes[i + 3]);
  pen.globalAlpha = 1;
}

/** @param {CanvasRenderingContext2D} pen @param {Text} text */
function paintText(pen, text) {
  pen.font = `${text.bold ? "600 " : ""}${text.size}px ${text.mono ? MONO : SANS}`;
  pen.fillStyle = text.color;
  pen.textAlign =
    text.anchor === "middle" ? "center" : (text.anchor ?? "start") === "start" ? "left" : "right";
  pen.textBaseline = "middle";
  if (!text.turn) {
    pen.fillText(text.text, text.at[0], text.at[1]);
    return;
  }
  pen.save();
  pen.translate(text.at[0], text.at[1]);
  pen.rotate((text.turn * Math.PI) / 180);
  pen.fillText(text.text, 0, 0);
  pen.restore();
}

/** @param {CanvasRenderingContext2D} pen @param {Rule} rule */
function paintRule(pen, rule) {
  pen.strokeStyle = rule.color;
  pen.lineWidth = 1;
  pen.setLineDash(rule.dashed ? [4, 3] : []);
  pen.beginPath();
  pen.moveTo(rule.from[0], rule.from[1]);
  pen.lineTo(rule.to[0], rule.to[1]);
  pen.stroke();
  pen.setLineDash([]);
}

/**
 * The picture with sentences below it.
 * @param {Scene} scene
 * @param {string[]} sentences
 * @param {string} color
 * @returns {Scene}
 */
export function withCaption(scene, sentences, color) {
  const width = Math.max(scene.width, CAPTION.least);
  /** @type {string[]} */
  const lines = [];
  for (const word of sentences.join(" ").split(" ")) {
    const longer = `${lines[lines.length - 1] ?? ""} ${word}`.trim();
    if (lines.length && textWidth(longer, CAPTION.size) <= width - 2 * CAPTION.margin)
      lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  if (!sentences.length) return scene;
  const shapes = lines.map((text, i) => {
    const y = scene.height + (i + 0.5) * CAPTION.line;
    return /** @type {Text} */ ({
      kind: "text",
      at: [CAPTION.margin, y],
      text,
      size: CAPTION.size,
      color,
    });
  });
  return {
    ...scene,
    width,
    height: scene.height + lines.length * CAPTION.line + CAPTION.margin,
    shapes: [...scene.shapes, ...shapes],
  };
}

/** @param {Scene} scene @returns {string} */
export function toSvg(scene) {
  const { width, height, paper, shapes } = scene;
  const head =
    `<svg xmlns="http://www.w3.org/2000/svg" width="${num(width)}" height="${num(height)}" ` +
    `viewBox="0 0 ${num(width)} ${num(height)}" fill="none" font-family="${escape(SANS)}">`;
  const ground = `<rect width="100%" height="100%" fill="${paper}"/>`;
  return [head, ground, ...shapes.map(svgShape), "</svg>"].join("\n");
}

/** @param {Shape} shape @returns {string} */
function svgShape(shape) {
  if (shape.kind === "text") return svgText(shape);
  if (shape.kind === "cells") return svgCells(shape);
  if (shape.kind === "rule") {
    const dash = shape.dashed ? ' stroke-dasharray="4 3"' : "";
    return `<path d="M${point(shape.from)}L${point(shape.to)}" stroke="${shape.color}"${dash}/>`;
  }
  const [c1, c2] = controls(shape);
  const path = `M${point(shape.from)}C${point(c1)} ${point(c2)} ${point(shape.to)}`;
  return (
    `<path d="${path}" stroke="${shape.color}" stroke-opacity="${num(shape.alpha)}" ` +
    `stroke-width="${num(shape.width)}"/>`
  );
}

/** @param {Cells} cells @returns {string} */
function svgCells({ boxes, color, alpha }) {
  let path = "";
  for (let i = 0; i < boxes.length; i += 4) {
    const [x, y, width, height] = boxes.slice(i, i + 4);
    path += `M${num(x)} ${num(y)}h${num(width)}v${num(height)}h${num(-width)}z`;
  }
  return `<path d="${path}" fill="${color}" fill-opacity="${num(alpha)}"/>`;
}

/** @param {Text} text @returns {string} */
function svgText(text) {
  const [x, y] = text.at.map(num);
  const turn = text.turn ? ` transform="rotate(${text.turn} ${x} ${y})"` : "";
  const face = text.mono ? ` font-family="${escape(MONO)}"` : "";
  const bold = text.bold ? ' font-weight="600"' : "";
  return (
    `<text x="${x}" y="${y}" font-size="${text.size}" fill="${text.color}" ` +
    `text-anchor="${text.anchor ?? "start"}" ` +
    `dominant-baseline="central"${face}${bold}${turn}>${escape(text.text)}</text>`
  );
}

/** @param {string} text @returns {string} */
export function escape(text) {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}

/** @param {[number, number]} at @returns {string} */
function point(at) {
  return `${num(at[0])} ${num(at[1])}`;
}

/** @param {number} value @returns {string} */
function num(value) {
  return String(Math.round(value * 1000) / 1000);
}

/**
 * @param {Scene} scene
 * @param {number} scale
 * @returns {HTMLCanvasElement}
 */
export function toCanvas(scene, scale) {
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil(scene.width * scale);
  canvas.height = Math.ceil(scene.height * scale);
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.scale(scale, scale);
  pen.fillStyle = scene.paper;
  pen.fillRect(0, 0, scene.width, scene.height);
  paintAll(pen, scene.shapes);
  return canvas;
}
