/**
 * Layers × heads in colour. Cells are a grid for the keyboard: arrows move, Enter opens, Space
 * selects.
 */

import { canvasOf } from "./figure.js";
import { s } from "../ui/dom.js";
import { headNames } from "../explorer/heads.js";
import { brief, finite, tickLabel, withError } from "../ui/format.js";
import { nameHead } from "../ui/heads.js";
import { diverging, ink, sequential } from "../explorer/look.js";
import { inkOn } from "../ui/colors.js";
import { focusOne, placeInRows, stepOf } from "../ui/roving.js";

/** @import { Rows } from "./export.js" */

/**
 * @typedef {object} Grid
 * @property {number[]} layers
 * @property {number[]} heads
 * @property {(number | null)[][]} values
 * @property {(number | null)[][] | null} [errors]
 *
 * @typedef {object} Heatmap
 * @property {SVGSVGElement} drawing
 * @property {number} pitch  height of a row
 * @property {number} top  where the first row begins
 *
 * @typedef {object} Options
 * @property {string} label
 * @property {number} room  pixels there are
 * @property {Set<string>} [selected]
 * @property {(name: string) => boolean} [dimmed]
 * @property {[number, number]} [domain]
 * @property {(name: string) => void} [onOpen]
 * @property {(name: string) => void} [onToggle]
 * @property {(name: string | null) => void} [onLook]
 */

const LEFT = 46;
const TOP = 40;
const LEGEND = 54;

/**
 * @param {(number | null)[][]} values
 * @returns {[number, number]} from zero, or symmetric around it
 */
export function domainOf(values) {
  const all = finite(values.flat());
  const most = Math.max(...all, 0);
  const least = Math.min(...all, 0);
  if (least < 0) return [-Math.max(most, -least), Math.max(most, -least)];
  return [0, most || 1];
}

/** @param {number} value @param {[number, number]} domain @returns {string} */
export function colorOf(value, [low, high]) {
  return low < 0 ? diverging(value / high) : sequential((value - low) / (high - low));
}

/** @param {Grid} grid @param {Options} options @returns {Heatmap} */
export function heatmap(grid, options) {
  const domain = options.domain ?? domainOf(grid.values);
  const wide = Math.max(14, Math.floor((options.room - LEFT - 2) / grid.heads.length));
  const pitch = Math.max(15, Math.min(42, Math.round(wide * 0.62)));
  const width = LEFT + wide * grid.heads.length + 2;
  const height = TOP + pitch * grid.layers.length + LEGEND;
  const size = canvasOf(Math.max(width, 240), height, {
    class: "heatmap",
    role: "grid",
    "aria-label": options.label,
  });
  const rows = grid.layers.map((_, place) => row(grid, options, domain, place, wide, pitch));
  const numbers = wide >= 30 ? figures(grid, options, domain, wide, pitch) : null;
  const drawing = s(
    "svg",
    size,
    ...headings(grid, wide, pitch),
    ...rows,
    numbers,
    legend(domain, TOP + pitch * grid.layers.length + 18),
  );
  listen(drawing, options);
  const first = drawing.querySelector("[role=gridcell]");
  first?.setAttribute("tabindex", "0");
  return { drawing, pitch, top: TOP };
}

/**
 * @param {Grid} grid
 * @param {Options} options
 * @param {[number, number]} domain
 * @param {number} place
 * @param {number} wide
 * @param {number} pitch
 */
function row(grid, options, domain, place, wide, pitch) {
  const layer = grid.layers[place];
  const y = TOP + place * pitch;
  const name = s(
    "text",
    {
      x: LEFT - 8,
      y: y + pitch / 2,
      "text-anchor": "end",
      "dominant-baseline": "central",
      fill: ink().faint,
      role: "rowheader",
      "aria-label": `Layer ${layer}`,
    },
    layer,
  );
  const cells = grid.heads.map((head, column) => {
    const error = grid.errors?.[place]?.[column];
    return cell(nameHead(layer, head), grid.values[place][column], error, options, domain, {
      x: LEFT + column * wide,
      y,
      wide,
      pitch,
    });
  });
  return s("g", { role: "row" }, name, ...cells);
}

/**
 * @param {string} name
 * @param {number | null} value
 * @param {number | null | undefined} error
 * @param {Options} options
 * @param {[number, number]} domain
 * @param {{x: number, y: number, wide: number, pitch: number}} box
 */
function cell(name, value, error, options, domain, { x, y, wide, pitch }) {
  const fill = value === null ? ink().none : colorOf(value, domain);
  const selected = options.selected?.has(name) ?? false;
  const dim = options.dimmed?.(name) ?? false;
  const box = s("rect", {
    x: x + 0.5,
    y: y + 0.5,
    width: wide - 1,
    height: pitch - 1,
    rx: 2,
    fill,
    "fill-opacity": dim ? 0.45 : 1,
  });
  const hatched = dim
    ? s("path", { class: "hatch", d: hatch(x, y, wide, pitch), stroke: ink().faint })
    : null;
  const ring = selected
    ? s("rect", {
        x: x + 1.5,
        y: y + 1.5,
        width: wide - 3,
        height: pitch - 3,
        rx: 2,
        fill: "none",
        stroke: ink().mark,
        "stroke-width": 2,
      })
    : null;
  const said = `${name}: ${value === null ? "no value" : withError(value, error)}`;
  const about = {
    id: `cell-${name}`,
    class: "cell",
    role: "gridcell",
    tabindex: -1,
    "data-head": name,
    "data-value": value ?? "",
    "aria-label": said,
  };
  return s(
    "g",
    { ...about, "aria-selected": options.onToggle ? String(selected) : null },
    s("title", {}, said),
    box,
    hatched,
    ring,
  );
}

/**
 * Lines across a cell whose value does not stand.
 * @param {number} x
 * @param {number} y
 * @param {number} wide
 * @param {number} pitch
 */
function hatch(x, y, wide, pitch) {
  const lines = [];
  for (let at = 5; at < wide + pitch; at += 6) {
    const right = Math.min(at, wide - 1);
    const down = Math.min(at, pitch - 1);
    lines.push(`M${x + right} ${y + at - right}L${x + at - down} ${y + down}`);
  }
  return lines.join("");
}

/**
 * The numbers lie over the cells: a cell's own name says more than the number that fits into it.
 * @param {Grid} grid
 * @param {Options} options
 * @param {[number, number]} domain
 * @param {number} wide
 * @param {number} pitch
 */
function figures(grid, options, domain, wide, pitch) {
  const look = {
    "text-anchor": "middle",
    "dominant-baseline": "central",
    "font-size": wide >= 38 ? 12 : 10.5,
  };
  const texts = grid.layers.flatMap((layer, row) =>
    grid.heads.map((head, column) => {
      const value = grid.values[row][column];
      if (value === null) return null;
      const ground = options.dimmed?.(nameHead(layer, head)) ? ink().paper : colorOf(value, domain);
      const at = { x: LEFT + (column + 0.5) * wide, y: TOP + (row + 0.5) * pitch + 0.5 };
      return s(
        "text",
        { ...at, ...look, fill: inkOn(ground), "data-ground": ground },
        brief(value, domain[1]),
      );
    }),
  );
  return s("g", { "aria-hidden": "true", "pointer-events": "none" }, ...texts);
}

/** @param {Grid} grid @param {number} wide @param {number} pitch */
function headings(grid, wide, pitch) {
  const faint = ink().faint;
  const every = wide >= 20 ? 1 : wide >= 16 ? 2 : 4;
  const numbers = grid.heads.map((head, place) =>
    place % every
      ? null
      : s(
          "text",
          {
            x: LEFT + (place + 0.5) * wide,
            y: TOP - 10,
            "text-anchor": "middle",
            fill: faint,
            role: "columnheader",
            "aria-label": `Head ${head}`,
          },
          head,
        ),
  );
  const middle = TOP + (pitch * grid.layers.length) / 2;
  return [
    s("text", { x: LEFT, y: 12, fill: faint, "font-weight": 600, "aria-hidden": "true" }, "Head"),
    s(
      "text",
      {
        x: 11,
        y: middle,
        fill: faint,
        "font-weight": 600,
        "text-anchor": "middle",
        transform: `rotate(-90 11 ${middle})`,
        "aria-hidden": "true",
      },
      "Layer",
    ),
    s("g", { role: "row" }, ...numbers),
  ];
}

/** @param {[number, number]} domain @param {number} y */
function legend([low, high], y) {
  const steps = 40;
  const width = 180;
  const boxes = Array.from({ length: steps }, (_, i) => {
    const value = low + ((i + 0.5) / steps) * (high - low);
    return s("rect", {
      x: LEFT + (i * width) / steps,
      y,
      width: width / steps + 0.6,
      height: 8,
      fill: colorOf(value, [low, high]),
    });
  });
  const marks = low < 0 ? [low, 0, high] : [low, (low + high) / 2, high];
  const labels = marks.map((value) =>
    s(
      "text",
      {
        x: LEFT + ((value - low) / (high - low)) * width,
        y: y + 21,
        "text-anchor": "middle",
        fill: ink().faint,
        "font-size": 11,
      },
      tickLabel(Number(value.toPrecision(3))),
    ),
  );
  return s("g", { "aria-hidden": "true" }, ...boxes, ...labels);
}

/** @param {SVGSVGElement} drawing @param {Options} options */
function listen(drawing, options) {
  const nameAt = (/** @type {Event} */ event) => {
    const found = event.target instanceof Element ? event.target.closest("[data-head]") : null;
    return found?.getAttribute("data-head") ?? null;
  };
  const look = (/** @type {Event} */ event) => options.onLook?.(nameAt(event));
  drawing.addEventListener("pointerover", look);
  drawing.addEventListener("focusin", look);
  drawing.addEventListener("pointerleave", () => options.onLook?.(null));
  drawing.addEventListener("click", (event) => {
    const name = nameAt(event);
    if (!name) return;
    if (event.shiftKey) options.onToggle?.(name);
    else options.onOpen?.(name);
  });
  drawing.addEventListener("keydown", (event) => {
    const name = nameAt(event);
    if (name && press(drawing, event, name, options)) event.preventDefault();
  });
}

/**
 * @param {SVGSVGElement} drawing
 * @param {KeyboardEvent} event
 * @param {string} name
 * @param {Options} options
 * @returns {boolean}
 */
function press(drawing, event, name, options) {
  if (event.key === "Enter") options.onOpen?.(name);
  else if (event.key === " ") options.onToggle?.(name);
  else return move(drawing, event, name);
  return true;
}

/**
 * @param {SVGSVGElement} drawing
 * @param {KeyboardEvent} event
 * @param {string} name
 * @returns {boolean}
 */
function move(drawing, event, name) {
  const rows = [...drawing.querySelectorAll("[role=row]")]
    .map((row) => [.../** @type {NodeListOf<SVGElement>} */ (row.querySelectorAll(".cell"))])
    .filter((row) => row.length);
  const next = placeInRows(event, rows, (one) => one.dataset.head === name);
  if (next) focusOne(drawing.querySelectorAll(".cell[tabindex='0']"), next);
  return next !== null || stepOf(event) !== null;
}

/**
 * @param {Grid} grid
 * @param {string} name
 * @returns {{value: number | null, error: number | null, rank: number, of: number}}
 */
export function lookUp(grid, name) {
  const place = headNames(grid).indexOf(name);
  const value = grid.values.flat()[place] ?? null;
  const all = finite(grid.values.flat());
  const rank = value === null ? 0 : all.filter((other) => other > value).length + 1;
  return { value, error: grid.errors?.flat()[place] ?? null, rank, of: all.length };
}

/** @param {Grid} grid @returns {Rows} */
export function gridRows(grid) {
  const rows = grid.layers.flatMap((layer, i) =>
    grid.heads.map((head, j) => [
      nameHead(layer, head),
      layer,
      head,
      grid.values[i][j],
      ...(grid.errors ? [grid.errors[i][j]] : []),
    ]),
  );
  return [["name", "layer", "head", "value", ...(grid.errors ? ["margin of error"] : [])], ...rows];
}

/** @param {Grid} grid @returns {Map<string, number | null>} */
export function byName(grid) {
  const values = grid.values.flat();
  return new Map(headNames(grid).map((name, place) => [name, values[place]]));
}
