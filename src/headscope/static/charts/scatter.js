/** Heads as points over two measures; dragging a rectangle selects those inside. */

import { box, mark, write } from "../draw/svg.js";
import { across, at, extent, upward, valueAt } from "./axes.js";
import { canvasOf } from "./figure.js";
import { s } from "../ui/dom.js";
import { withError } from "../ui/format.js";
import { ink } from "../explorer/look.js";
import { listenToHeads } from "../ui/roving.js";

/** @import { Scale } from "./axes.js" */

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
  const { width, height, label, bare = false, xTitle, yTitle } = options;
  const [left, bottom] = bare ? [12, height - 12] : [58, height - 46];
  const [xs, ys] = [points.map((point) => point.x), points.map((point) => point.y)];
  const x = scaleOf(xs, left, width - 12);
  const y = scaleOf(ys, bottom, 12);
  if (bare) sameUnit(x, y);
  const dots = points.map((point) => dot(point, at(x, point.x), at(y, point.y), options));
  const drawing = s(
    "svg",
    canvasOf(width, height, { class: "scatter", role: "group", "aria-label": label }),
    bare ? null : upward(y, x.from, x.to, yTitle),
    bare ? null : across(x, y.to, y.from, xTitle),
    box([x.from, y.to], [x.to - x.from, y.from - y.to], "transparent"),
    ...dots,
  );
  dots[0]?.setAttribute("tabindex", "0");
  const errors = errorsOf(points, x, y);
  drawing.append(errors.node);
  listenToHeads(drawing, () => [dots], {
    onOpen: options.onOpen,
    onLook: (name) => {
      errors.show(name);
      options.onLook?.(name);
    },
  });
  if (options.onBrush) brush(drawing, points, x, y, options.onBrush);
  return drawing;
}

/** @param {number[]} values @param {number} from @param {number} to @returns {Scale} */
function scaleOf(values, from, to) {
  const [low, high] = extent(values);
  return { low, high, from, to };
}

/**
 * Where distances mean something, both axes must stretch alike.
 * @param {Scale} x
 * @param {Scale} y
 */
function sameUnit(x, y) {
  const unit = Math.max(...[x, y].map((one) => (one.high - one.low) / Math.abs(one.to - one.from)));
  for (const scale of [x, y]) {
    const middle = (scale.low + scale.high) / 2;
    const half = (unit * Math.abs(scale.to - scale.from)) / 2;
    [scale.low, scale.high] = [middle - half, middle + half];
  }
}

/** @param {Point} point @param {number} x @param {number} y @param {Options} options */
function dot(point, x, y, { selected, bare, named, width, opens = "link" }) {
  const { mark: chosen, bar, paper, faint } = ink();
  const isChosen = selected.has(point.name);
  const fill = isChosen ? chosen : (point.color ?? bar);
  const values = `${withError(point.x, point.dx)}, ${withError(point.y, point.dy)}`;
  const said = point.said ?? (bare ? point.name : `${point.name}: ${values}`);
  const edge =
    point.hollow && !isChosen
      ? { fill: paper, stroke: fill, "stroke-width": 1.5 }
      : { fill, stroke: point.color ? faint : paper, "stroke-width": point.color ? 0.75 : 1 };
  const look = { ...edge, "fill-opacity": isChosen || selected.size === 0 ? 0.95 : 0.5 };
  const isInside = x + NAME < width;
  const beside = {
    "text-anchor": isInside ? "start" : "end",
    "dominant-baseline": "central",
    "font-size": 10.5,
    fill: faint,
    "pointer-events": "none",
  };
  return s(
    "g",
    { class: "dot", "data-head": point.name, role: opens, tabindex: -1, "aria-label": said },
    s("title", {}, said),
    named ? write(isInside ? x + 8 : x - 8, y, point.name, beside) : null,
    mark(point.shape ?? 0, [x, y], isChosen ? 6 : 5, look),
  );
}

/**
 * The 95 % interval of the point that is looked at.
 * @param {Point[]} points
 * @param {Scale} x
 * @param {Scale} y
 */
function errorsOf(points, x, y) {
  const look = { fill: "none", stroke: ink().ink, "stroke-width": 1.5, "pointer-events": "none" };
  const node = s("path", { class: "errors", ...look });
  const show = (/** @type {string | null} */ name) => {
    const point = points.find((other) => other.name === name);
    const across = point?.dx
      ? `M${at(x, point.x - point.dx)} ${at(y, point.y)}H${at(x, point.x + point.dx)}`
      : "";
    const up = point?.dy
      ? `M${at(x, point.x)} ${at(y, point.y - point.dy)}V${at(y, point.y + point.dy)}`
      : "";
    node.setAttribute("d", across + up);
  };
  return { node, show };
}

/**
 * @param {SVGSVGElement} drawing
 * @param {Point[]} points
 * @param {Scale} x
 * @param {Scale} y
 * @param {(names: string[], box: Box) => void} onBrush
 */
function brush(drawing, points, x, y, onBrush) {
  /** @type {[number, number] | null} */
  let start = null;
  const { accent } = ink();
  const look = { class: "brush", "fill-opacity": 0.12, stroke: accent, "pointer-events": "none" };
  const area = box([0, 0], [0, 0], accent, { ...look, visibility: "hidden" });
  drawing.append(area);
  const place = (/** @type {PointerEvent} */ event) => {
    const box = drawing.getBoundingClientRect();
    const scale = drawing.viewBox.baseVal.width / box.width;
    return /** @type {[number, number]} */ ([
      (event.clientX - box.left) * scale,
      (event.clientY - box.top) * scale,
    ]);
  };
  drawing.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || (event.target instanceof Element && event.target.closest(".dot")))
      return;
    start = place(event);
    drawing.setPointerCapture(event.pointerId);
  });
  drawing.addEventListener("pointermove", (event) => {
    if (!start) return;
    const now = place(event);
    area.setAttribute("visibility", "visible");
    for (const [i, [side, size]] of [
      ["x", "width"],
      ["y", "height"],
    ].entries()) {
      area.setAttribute(side, String(Math.min(start[i], now[i])));
      area.setAttribute(size, String(Math.abs(start[i] - now[i])));
    }
  });
  drawing.addEventListener("pointerup", (event) => {
    if (!start) return;
    const [from, to] = [start, place(event)];
    start = null;
    area.setAttribute("visibility", "hidden");
    const [xs, ys] = [0, 1].map((i) =>
      [from[i], to[i]].map((edge) => valueAt(i === 0 ? x : y, edge)).sort((a, b) => a - b),
    );
    const small = Math.abs(from[0] - to[0]) + Math.abs(from[1] - to[1]) < 6;
    const inside = points.filter(
      (one) => one.x >= xs[0] && one.x <= xs[1] && one.y >= ys[0] && one.y <= ys[1],
    );
    onBrush(small ? [] : inside.map((one) => one.name), { x: xs, y: ys });
  });
}
