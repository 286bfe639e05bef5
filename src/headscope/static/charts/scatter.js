/** Heads, or tokens, as points over two measures. */

import { mark, write } from "../draw/svg.js";
import { across, at, extent, upward } from "./axes.js";
import { canvasOf } from "./figure.js";
import { s } from "../ui/dom.js";
import { withError } from "../ui/format.js";
import { textWidth } from "../ui/fonts.js";
import { ink } from "../explorer/look.js";
import { listenToHeads } from "../ui/roving.js";

/**
 * @import { Scale } from "./axes.js"
 * @import { Point as Place } from "../draw/line.js"
 */

/**
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
 * @property {boolean} [named]  write the names beside the points, where they hide nothing
 * @property {(name: string) => void} onOpen
 * @property {"link" | "button"} [opens]  what a point is for those who cannot see it
 * @property {(name: string | null) => void} [onLook]
 */

const CENTRED = { "dominant-baseline": "central", "pointer-events": "none" };
const NAME = { size: 10.5, gap: 8, tall: 12 }; // pixels of a name beside its point

/** @param {Point[]} points @param {Options} options @returns {SVGSVGElement} */
export function scatter(points, options) {
  const { width, height, label, bare = false, xTitle, yTitle } = options;
  const [left, bottom] = bare ? [12, height - 12] : [58, height - 46];
  const [xs, ys] = [points.map((point) => point.x), points.map((point) => point.y)];
  const x = scaleOf(xs, left, width - 12);
  const y = scaleOf(ys, bottom, 12);
  if (bare) sameUnit(x, y);
  const places = points.map((point) => /** @type {Place} */ ([at(x, point.x), at(y, point.y)]));
  const dots = points.map((point, i) => dot(point, places[i], options));
  const drawing = s(
    "svg",
    canvasOf(width, height, { class: "scatter", role: "group", "aria-label": label }),
    bare ? null : upward(y, x.from, x.to, yTitle),
    bare ? null : across(x, y.to, y.from, xTitle),
    ...(options.named ? namesOf(points, places, width) : []),
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

/** @param {Point} point @param {Place} place @param {Options} options */
function dot(point, place, { bare, opens = "link" }) {
  const { bar, paper, faint } = ink();
  const fill = point.color ?? bar;
  const values = `${withError(point.x, point.dx)}, ${withError(point.y, point.dy)}`;
  const said = point.said ?? (bare ? point.name : `${point.name}: ${values}`);
  const edge = point.hollow
    ? { fill: paper, stroke: fill, "stroke-width": 1.5 }
    : { fill, stroke: point.color ? faint : paper, "stroke-width": point.color ? 0.75 : 1 };
  const look = { ...edge, "fill-opacity": 0.95 };
  return s(
    "g",
    { class: "dot", "data-head": point.name, role: opens, tabindex: -1, "aria-label": said },
    s("title", {}, said),
    mark(point.shape ?? 0, place, 5, look),
  );
}

/**
 * The names for which there is room to the right or the left of their points.
 * @param {Point[]} points
 * @param {Place[]} places
 * @param {number} width
 */
function namesOf(points, places, width) {
  const taken = places.map(([x, y]) => [x - 6, y - 6, x + 6, y + 6]);
  const look = { ...CENTRED, "font-size": NAME.size, fill: ink().faint, "aria-hidden": "true" };
  return points.flatMap(({ name }, i) => {
    const [x, y] = places[i];
    const wide = textWidth(name, NAME.size);
    for (const left of [x + NAME.gap, x - NAME.gap - wide]) {
      const right = left + wide;
      const [top, bottom] = [y - NAME.tall / 2, y + NAME.tall / 2];
      const isFree = taken.every(
        (other) => left > other[2] || right < other[0] || top > other[3] || bottom < other[1],
      );
      if (left < 0 || right > width || !isFree) continue;
      taken.push([left, top, right, bottom]);
      return [write(left, y, name, look)];
    }
    return [];
  });
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
