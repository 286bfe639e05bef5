/** Heads as points over two measures; dragging a rectangle selects those inside. */

import { across, at, extent, upward, valueAt } from "./axes.js";
import { canvasOf } from "./figure.js";
import { s } from "../shell/dom.js";
import { withError } from "../shell/format.js";
import { ink } from "../shell/look.js";

/**
 * @typedef {{x: number[], y: number[]}} Box  from the least to the most
 *
 * @typedef {object} Point
 * @property {string} name
 * @property {number} x
 * @property {number} y
 * @property {number | null} [dx]  margins of error, drawn while the point is looked at
 * @property {number | null} [dy]
 * @property {string} [said]  what it is called instead of its name and place
 * @property {string} [color]
 * @property {boolean} [hollow]  an outline only
 * @property {number} [shape]  0 circle, 1 square, 2 diamond, 3 triangle, 4 cross
 *
 * @typedef {object} Options
 * @property {number} width
 * @property {number} height
 * @property {string} label
 * @property {string} [xTitle]
 * @property {string} [yTitle]
 * @property {boolean} [bare]  no axes: the numbers mean nothing by themselves
 * @property {boolean} [named]  write the names beside the points
 * @property {Set<string>} selected
 * @property {(name: string) => void} onOpen
 * @property {"link" | "button"} [opens]  what a point is for those who cannot see it
 * @property {(names: string[], box: Box) => void} [onBrush]
 * @property {(name: string | null) => void} [onLook]
 */

const NAME = 48; // pixels that a name takes beside its point

/** @param {Point[]} points @param {Options} options @returns {SVGSVGElement} */
export function scatter(points, options) {
  const { width, height, bare = false } = options;
  const [left, bottom] = bare ? [12, height - 12] : [58, height - 46];
  const x = scaleOf(points.map((one) => one.x), left, width - 12);
  const y = scaleOf(points.map((one) => one.y), bottom, 12);
  if (bare) sameUnit(x, y);
  const marks = points.map((one) => dot(one, at(x, one.x), at(y, one.y), options));
  const frame = bare ? [] : [upward(y, x.from, x.to, options.yTitle), across(x, y.to, y.from, options.xTitle)];
  const attributes = canvasOf(width, height, { class: "scatter", role: "group", "aria-label": options.label });
  const ground = s("rect", { x: x.from, y: y.to, width: x.to - x.from, height: y.from - y.to, fill: "transparent" });
  const drawing = s("svg", attributes, ...frame, ground, ...marks);
  listen(drawing, options);
  showErrors(drawing, points, x, y);
  if (options.onBrush) brush(drawing, points, x, y, options.onBrush);
  return drawing;
}

/** @param {number[]} values @param {number} from @param {number} to @returns {import("./axes.js").Scale} */
function scaleOf(values, from, to) {
  const [low, high] = extent(values);
  return { low, high, from, to };
}

/** Where distances mean something, both axes must stretch alike. @param {import("./axes.js").Scale} x @param {import("./axes.js").Scale} y */
function sameUnit(x, y) {
  const unit = Math.max(...[x, y].map((one) => (one.high - one.low) / Math.abs(one.to - one.from)));
  for (const one of [x, y]) {
    const middle = (one.low + one.high) / 2;
    const half = (unit * Math.abs(one.to - one.from)) / 2;
    [one.low, one.high] = [middle - half, middle + half];
  }
}

/** @param {Point} point @param {number} cx @param {number} cy @param {Options} options */
function dot(point, cx, cy, options) {
  const chosen = options.selected.has(point.name);
  const fill = chosen ? ink().mark : (point.color ?? ink().bar);
  const said = point.said ?? (options.bare ? point.name : `${point.name}: ${withError(point.x, point.dx)}, ${withError(point.y, point.dy)}`);
  const about = { class: "dot", "data-head": point.name, role: options.opens ?? "link", tabindex: -1, "aria-label": said };
  const edge = point.hollow && !chosen ? { fill: ink().paper, stroke: fill, "stroke-width": 1.5 } : { fill, stroke: point.color ? ink().faint : ink().paper, "stroke-width": point.color ? 0.75 : 1 };
  const look = { ...edge, "fill-opacity": chosen || options.selected.size === 0 ? 0.95 : 0.5 };
  const inside = cx + NAME < options.width;
  const name = options.named ? s("text", { x: inside ? cx + 8 : cx - 8, y: cy, "text-anchor": inside ? "start" : "end", "dominant-baseline": "central", "font-size": 10.5, fill: ink().faint, "pointer-events": "none" }, point.name) : null;
  return s("g", about, s("title", {}, said), name, shape(point.shape ?? 0, cx, cy, chosen ? 6 : 5, look));
}

/** @param {number} kind @param {number} x @param {number} y @param {number} r @param {Record<string, string | number>} look */
export function shape(kind, x, y, r, look) {
  if (kind === 1) return s("rect", { x: x - r * 0.9, y: y - r * 0.9, width: r * 1.8, height: r * 1.8, ...look });
  if (kind === 2) return s("path", { d: `M${x} ${y - r * 1.25}L${x + r * 1.25} ${y}L${x} ${y + r * 1.25}L${x - r * 1.25} ${y}z`, ...look });
  if (kind === 3) return s("path", { d: `M${x} ${y - r * 1.2}L${x + r * 1.15} ${y + r * 0.9}L${x - r * 1.15} ${y + r * 0.9}z`, ...look });
  if (kind === 4) {
    const [a, b] = [r * 0.4, r * 1.1];
    return s("path", { d: `M${x - a} ${y - b}h${2 * a}v${b - a}h${b - a}v${2 * a}h${a - b}v${b - a}h${-2 * a}v${a - b}h${a - b}v${-2 * a}h${b - a}z`, ...look });
  }
  return s("circle", { cx: x, cy: y, r, ...look });
}

/** @param {SVGSVGElement} drawing @param {Options} options */
function listen(drawing, options) {
  const dots = /** @type {SVGElement[]} */ ([...drawing.querySelectorAll(".dot")]);
  dots[0]?.setAttribute("tabindex", "0");
  const nameAt = (/** @type {Event} */ event) => (event.target instanceof Element ? (event.target.closest("[data-head]")?.getAttribute("data-head") ?? null) : null);
  const look = (/** @type {Event} */ event) => options.onLook?.(nameAt(event));
  drawing.addEventListener("pointerover", look);
  drawing.addEventListener("focusin", look);
  drawing.addEventListener("click", (event) => {
    const name = nameAt(event);
    if (name) options.onOpen(name);
  });
  drawing.addEventListener("keydown", (event) => {
    const name = nameAt(event);
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (name && event.key === "Enter") options.onOpen(name);
    if (!name || !step) return;
    event.preventDefault();
    const next = dots[dots.findIndex((one) => one.dataset.head === name) + step];
    if (!next) return;
    dots.forEach((one) => one.setAttribute("tabindex", one === next ? "0" : "-1"));
    next.focus();
  });
}

/** The 95 % interval of the point that is looked at. @param {SVGSVGElement} drawing @param {Point[]} points @param {import("./axes.js").Scale} x @param {import("./axes.js").Scale} y */
function showErrors(drawing, points, x, y) {
  if (!points.some((one) => one.dx || one.dy)) return;
  const cross = s("path", { class: "errors", fill: "none", stroke: ink().ink, "stroke-width": 1.5, "pointer-events": "none" });
  drawing.append(cross);
  const show = (/** @type {Event} */ event) => {
    const name = event.target instanceof Element ? event.target.closest("[data-head]")?.getAttribute("data-head") : null;
    const one = points.find((point) => point.name === name);
    const across = one?.dx ? `M${at(x, one.x - one.dx)} ${at(y, one.y)}H${at(x, one.x + one.dx)}` : "";
    const up = one?.dy ? `M${at(x, one.x)} ${at(y, one.y - one.dy)}V${at(y, one.y + one.dy)}` : "";
    cross.setAttribute("d", across + up);
  };
  for (const kind of ["pointerover", "focusin", "focusout"]) drawing.addEventListener(kind, show);
}

/**
 * @param {SVGSVGElement} drawing
 * @param {Point[]} points
 * @param {import("./axes.js").Scale} x
 * @param {import("./axes.js").Scale} y
 * @param {(names: string[], box: Box) => void} onBrush
 */
function brush(drawing, points, x, y, onBrush) {
  /** @type {[number, number] | null} */
  let start = null;
  const area = s("rect", { class: "brush", fill: ink().accent, "fill-opacity": 0.12, stroke: ink().accent, visibility: "hidden", "pointer-events": "none" });
  drawing.append(area);
  const place = (/** @type {PointerEvent} */ event) => {
    const box = drawing.getBoundingClientRect();
    const scale = drawing.viewBox.baseVal.width / box.width;
    return /** @type {[number, number]} */ ([(event.clientX - box.left) * scale, (event.clientY - box.top) * scale]);
  };
  drawing.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || (event.target instanceof Element && event.target.closest(".dot"))) return;
    start = place(event);
    drawing.setPointerCapture(event.pointerId);
  });
  drawing.addEventListener("pointermove", (event) => {
    if (!start) return;
    const now = place(event);
    area.setAttribute("visibility", "visible");
    area.setAttribute("x", String(Math.min(start[0], now[0])));
    area.setAttribute("y", String(Math.min(start[1], now[1])));
    area.setAttribute("width", String(Math.abs(start[0] - now[0])));
    area.setAttribute("height", String(Math.abs(start[1] - now[1])));
  });
  drawing.addEventListener("pointerup", (event) => {
    if (!start) return;
    const [from, to] = [start, place(event)];
    start = null;
    area.setAttribute("visibility", "hidden");
    const [xs, ys] = [0, 1].map((i) => [from[i], to[i]].map((edge) => valueAt(i === 0 ? x : y, edge)).sort((a, b) => a - b));
    const small = Math.abs(from[0] - to[0]) + Math.abs(from[1] - to[1]) < 6;
    const inside = points.filter((one) => one.x >= xs[0] && one.x <= xs[1] && one.y >= ys[0] && one.y <= ys[1]);
    onBrush(small ? [] : inside.map((one) => one.name), { x: xs, y: ys });
  });
}
