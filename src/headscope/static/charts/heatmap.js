/** Layers × heads in colour. Cells are a grid for the keyboard: arrows move, Enter opens. */

import { BEFORE, box, MIDDLE, write } from "../draw/svg.js";
import { sideways } from "./axes.js";
import { canvasOf } from "./figure.js";
import { s } from "../ui/dom.js";
import { headNames } from "../explorer/heads.js";
import { brief, finite, tickLabel, withError } from "../ui/format.js";
import { nameHead } from "../ui/heads.js";
import { diverging, ink, sequential } from "../explorer/look.js";
import { inkOn } from "../ui/colors.js";
import { listenToHeads } from "../ui/roving.js";

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
 * @property {string} [prefix]  of ids, where a page has several heatmaps
 * @property {number} room  pixels there are
 * @property {Set<string>} [selected]
 * @property {(name: string) => boolean} [dimmed]
 * @property {[number, number]} [domain]
 * @property {(name: string) => void} onOpen
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
  const { layers, heads, values } = grid;
  const { faint } = ink();
  const domain = options.domain ?? domainOf(values);
  const wide = Math.max(14, Math.floor((options.room - LEFT - 2) / heads.length));
  const pitch = Math.max(15, Math.min(42, Math.round(wide * 0.62)));
  const bottom = TOP + pitch * layers.length;
  const cells = layers.map((layer, row) =>
    heads.map((head, column) => {
      const [value, error] = [values[row][column], grid.errors?.[row]?.[column]];
      const corner = [LEFT + column * wide, TOP + row * pitch];
      return cell(nameHead(layer, head), value, error, options, domain, [...corner, wide, pitch]);
    }),
  );
  const rows = layers.map((layer, row) => {
    const about = { ...BEFORE, fill: faint, role: "rowheader", "aria-label": `Layer ${layer}` };
    const name = write(LEFT - 8, TOP + (row + 0.5) * pitch, layer, about);
    return s("g", { role: "row" }, name, ...cells[row]);
  });
  const about = { class: "heatmap", role: "grid", "aria-label": options.label };
  const drawing = s(
    "svg",
    canvasOf(Math.max(LEFT + wide * heads.length + 2, 240), bottom + LEGEND, about),
    write(LEFT, 12, "Head", { fill: faint, "font-weight": 600, "aria-hidden": "true" }),
    s("g", { "aria-hidden": "true" }, sideways("Layer", 11, (TOP + bottom) / 2)),
    headings(heads, wide),
    ...rows,
    wide >= 30 ? figures(grid, options, domain, wide, pitch) : null,
    legend(domain, bottom + 18),
  );
  cells[0][0].setAttribute("tabindex", "0");
  listenToHeads(drawing, () => cells, options);
  return { drawing, pitch, top: TOP };
}

/**
 * @param {string} name
 * @param {number | null} value
 * @param {number | null | undefined} error
 * @param {Options} options
 * @param {[number, number]} domain
 * @param {number[]} place  left, top, width and height
 */
function cell(name, value, error, options, domain, [x, y, wide, pitch]) {
  const { none, faint, mark } = ink();
  const isSelected = options.selected?.has(name) ?? false;
  const isDim = options.dimmed?.(name) ?? false;
  const said = `${name}: ${value === null ? "no value" : withError(value, error)}`;
  const ground = { rx: 2, "fill-opacity": isDim ? 0.45 : 1 };
  const ring = { rx: 2, stroke: mark, "stroke-width": 2 };
  return s(
    "g",
    {
      id: `${options.prefix ?? ""}cell-${name}`,
      class: "cell",
      role: "gridcell",
      tabindex: -1,
      "data-head": name,
      "data-value": value ?? "",
      "aria-label": said,
    },
    s("title", {}, said),
    box(
      [x + 0.5, y + 0.5],
      [wide - 1, pitch - 1],
      value === null ? none : colorOf(value, domain),
      ground,
    ),
    isDim && s("path", { class: "hatch", d: hatch(x, y, wide, pitch), stroke: faint }),
    isSelected && box([x + 1.5, y + 1.5], [wide - 3, pitch - 3], "none", ring),
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
function figures({ layers, heads, values }, options, domain, wide, pitch) {
  const look = { ...MIDDLE, "dominant-baseline": "central", "font-size": wide >= 38 ? 12 : 10.5 };
  const texts = layers.flatMap((layer, row) =>
    heads.map((head, column) => {
      const value = values[row][column];
      if (value === null) return null;
      const ground = options.dimmed?.(nameHead(layer, head)) ? ink().paper : colorOf(value, domain);
      const [x, y] = [LEFT + (column + 0.5) * wide, TOP + (row + 0.5) * pitch + 0.5];
      const inks = { fill: inkOn(ground), "data-ground": ground };
      return write(x, y, brief(value, domain[1]), { ...look, ...inks });
    }),
  );
  return s("g", { "aria-hidden": "true", "pointer-events": "none" }, ...texts);
}

/** @param {number[]} heads @param {number} wide */
function headings(heads, wide) {
  const every = wide >= 20 ? 1 : wide >= 16 ? 2 : 4;
  const numbers = heads.map((head, place) => {
    if (place % every) return null;
    const about = { role: "columnheader", "aria-label": `Head ${head}` };
    const x = LEFT + (place + 0.5) * wide;
    return write(x, TOP - 10, head, { ...MIDDLE, fill: ink().faint, ...about });
  });
  return s("g", { role: "row" }, ...numbers);
}

/** @param {[number, number]} domain @param {number} y */
function legend([low, high], y) {
  const steps = 40;
  const width = 180;
  const boxes = Array.from({ length: steps }, (_, i) => {
    const color = colorOf(low + ((i + 0.5) / steps) * (high - low), [low, high]);
    return box([LEFT + (i * width) / steps, y], [width / steps + 0.6, 8], color);
  });
  const look = { ...MIDDLE, fill: ink().faint, "font-size": 11 };
  const labels = [low, (low + high) / 2, high].map((value, i) =>
    write(LEFT + (i * width) / 2, y + 21, tickLabel(Number(value.toPrecision(3))), look),
  );
  return s("g", { "aria-hidden": "true" }, ...boxes, ...labels);
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
