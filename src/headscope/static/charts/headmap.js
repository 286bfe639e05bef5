/**
 * The map of heads: a cell for every head with its short name, where it looks as bars, and a ground
 * as strong as the part of its attention that its portrait explains.
 */

import { h, s } from "../ui/dom.js";
import { percent } from "../ui/format.js";
import { listenToHeads } from "../ui/roving.js";

/**
 * @import { HeadCell, HeadMap, RoleCount } from "../explorer/types.js"
 *
 * @typedef {"layer" | "role"} Order
 *
 * @typedef {object} Options
 * @property {Order} order
 * @property {number} room  pixels there are
 * @property {string} [prefix]  of ids, where a page has several maps
 * @property {(cell: HeadCell) => void} onOpen
 * @property {(cell: HeadCell | null, node: Element) => void} [onLook]
 *
 * @typedef {object} Drawn
 * @property {HTMLElement} node
 * @property {(name: string | null) => void} mark  the head whose card is open
 * @property {(roles: Set<string>) => void} filter  show only these; all where the set is empty
 */

const GROUPS = [
  "position", "repetition", "marks", "word class", "token", "syntax", "sink", "even", "unnamed",
]; // prettier-ignore
const [NULLS, NAMED, OTHER] = [0, 1, 2]; // the inks of a bar
const REACH = 8; // tokens before and behind the query that have a bar
const ITSELF = REACH + 1; // the place of the query among the bars
const HEIGHT = 46;
const GAP = 0.6; // between the null tokens and the others, in bars
const AXIS = 26; // pixels of the names of layers
// Pixels of a cell with a name in one line, beside its bars, in two lines.
const [WIDE, BESIDE, NARROW] = [88, 72, 52];
const ROOM = 600; // pixels that all layers together should take
const TALL = 16; // layers beyond which names stand beside the bars
const SOON = 400; // cells beyond which the bars follow the first frame
const PHONE = 600; // the least room that cells are laid out for; the style sheet does the rest

/** @param {string} group @returns {string} */
export const roleInk = (group) => `var(--role-${group.replace(" ", "-")})`;

/**
 * Short names in the order of their groups, the most frequent first.
 * @param {RoleCount[]} roles
 */
export function inOrder(roles) {
  const place = (/** @type {RoleCount} */ role) => GROUPS.indexOf(role.group);
  return [...roles].sort((a, b) => place(a) - place(b) || b.heads - a.heads);
}

/** @param {HeadMap} map @param {Options} options @returns {Drawn} */
export function headMap(map, options) {
  const count = map.heads.length;
  const wide = (Math.max(PHONE, options.room) - AXIS) / count;
  const size = sizeOf(wide, options.order === "layer" ? map.layers.length : 0);
  const cells = new Map(map.cells.map((cell) => [cell.name, cellOf(map, cell, options)]));
  const node = (/** @type {string} */ name) => /** @type {HTMLElement} */ (cells.get(name));
  const rows =
    options.order === "layer"
      ? map.layers.map((layer) => map.cells.filter((cell) => cell.layer === layer))
      : inOrder(map.roles).map(({ role }) =>
          map.cells
            .filter((cell) => cell.role === role)
            .sort((a, b) => (b.explained ?? 0) - (a.explained ?? 0)),
        );
  const shape = options.order === "layer" ? byLayer : byRole;
  const grid = h(
    "div",
    {
      class: `head-map ${options.order === "layer" ? "by-layer" : "by-role"}`,
      "data-size": size,
      "data-ends": map.causal ? null : "both",
      role: "group",
      "aria-label": "Map of heads: arrow keys move, Enter opens a head",
      style: `--columns: ${count}; --bar: ${barHeight(map.layers.length)}px`,
    },
    ...shape(map, rows, node, size),
  );
  const drawBars = () => {
    for (const cell of map.cells)
      node(cell.name).querySelector("svg")?.replaceWith(barsOf(map, cell));
  };
  if (map.cells.length > SOON) requestAnimationFrame(() => setTimeout(drawBars));
  else drawBars();
  if (rows[0]?.[0]) node(rows[0][0].name).setAttribute("tabindex", "0");
  const byName = new Map(map.cells.map((cell) => [cell.name, cell]));
  listenToHeads(grid, () => rows.map((row) => row.map((cell) => node(cell.name))), {
    onOpen: (name) => options.onOpen(/** @type {HeadCell} */ (byName.get(name))),
    onLook: (name, node) => options.onLook?.(byName.get(name ?? "") ?? null, node),
  });
  return {
    node: grid,
    mark: (name) => {
      for (const [other, cell] of cells) cell.toggleAttribute("aria-current", other === name);
      if (name && cells.has(name)) {
        node(name).setAttribute("aria-current", "true");
        for (const cell of cells.values()) cell.setAttribute("tabindex", "-1");
        node(name).setAttribute("tabindex", "0");
      }
    },
    filter: (roles) => {
      for (const cell of map.cells)
        node(cell.name).classList.toggle("off", roles.size > 0 && !roles.has(cell.role));
    },
  };
}

/** So that a map fits a window. @param {number} layers @returns {number} pixels of the bars */
function barHeight(layers) {
  return Math.round(Math.max(22, Math.min(42, ROOM / layers - 30)));
}

/**
 * Names in one line, in two, beside the bars where layers are many, or none at all.
 * @param {number} wide  pixels of a cell
 * @param {number} layers
 * @returns {"few" | "many" | "flat" | "tiny"}
 */
function sizeOf(wide, layers) {
  if (wide < NARROW) return "tiny";
  if (layers > TALL) return wide >= BESIDE ? "flat" : "tiny";
  return wide >= WIDE ? "few" : "many";
}

/**
 * @param {HeadMap} map
 * @param {HeadCell[][]} rows
 * @param {(name: string) => HTMLElement} node
 * @param {string} size
 */
function byLayer(map, rows, node, size) {
  const every = size === "tiny" ? 4 : 1;
  const shown = (/** @type {number} */ place) => place % every === 0;
  const axis = (/** @type {string} */ text, kind = "") =>
    h("span", { class: `axis ${kind}`, "aria-hidden": "true" }, text);
  return [
    axis(""),
    ...map.heads.map((head, place) => axis(shown(place) ? `H${head}` : "")),
    ...rows.flatMap((row, place) => [
      axis(shown(place) ? `L${map.layers[place]}` : "", "row"),
      ...row.map((cell) => node(cell.name)),
    ]),
  ];
}

/**
 * @param {HeadMap} map
 * @param {HeadCell[][]} rows
 * @param {(name: string) => HTMLElement} node
 */
function byRole(map, rows, node) {
  return inOrder(map.roles).map((role, place) =>
    h(
      "section",
      { class: "role", style: `--c: ${roleInk(role.group)}` },
      h("h3", {}, h("i", {}), role.role, h("span", {}, role.heads)),
      h("div", { class: "run" }, ...rows[place].map((cell) => node(cell.name))),
    ),
  );
}

/** @param {HeadMap} map @param {HeadCell} cell @param {Options} options */
function cellOf(map, cell, { order, prefix = "map" }) {
  const share = cell.share === null ? "" : percent(cell.share);
  return h(
    "button",
    {
      type: "button",
      class: "map-cell",
      id: `${prefix}-${cell.name}`,
      tabindex: -1,
      "data-head": cell.name,
      "data-group": cell.group,
      "aria-label": `${cell.name}, ${cell.role}${share ? ` ${share}` : ""}`,
      style: `--c: ${roleInk(cell.group)}; --s: ${(cell.explained ?? 0).toFixed(3)}`,
    },
    s("svg", { "aria-hidden": "true" }), // stands where the bars will be
    h("span", { class: "share", "aria-hidden": "true" }, share),
    h("span", { class: "name", "aria-hidden": "true" }, order === "layer" ? cell.role : cell.name),
  );
}

/**
 * The places of the bars that a map shows.
 * @param {boolean} isCausal
 * @returns {number[]}
 */
export function barPlaces(isCausal) {
  const last = isCausal ? ITSELF : ITSELF + REACH + 1;
  return Array.from({ length: last + 1 }, (_, place) => place);
}

/**
 * Mean weights, their heights as square roots: what the name is of stands below, then what null
 * tokens get, then the rest.
 * @param {HeadMap} map
 * @param {HeadCell} cell
 */
function barsOf(map, cell) {
  const places = barPlaces(map.causal);
  const ends = map.causal ? 1 : 2;
  /** @type {string[][]} */
  const paths = [[], [], []];
  places.forEach((place) => {
    const weights = cell.bars.map((bars) => bars[place] / 1000);
    const total = weights[NULLS] + weights[NAMED] + weights[OTHER];
    const x = place + (place ? GAP : 0) + (place > ITSELF + REACH ? GAP : 0);
    let y = HEIGHT - 1;
    for (const ink of [NAMED, NULLS, OTHER]) {
      const height = total ? (Math.sqrt(total) * (HEIGHT - 2) * weights[ink]) / total : 0;
      if (height < 0.1) continue;
      y -= height;
      paths[ink].push(`M${x.toFixed(2)} ${y.toFixed(1)}h.86v${height.toFixed(1)}h-.86z`);
    }
  });
  const inks = ["nulls", "named", "other"];
  return s(
    "svg",
    {
      viewBox: `0 0 ${(places.length + ends * GAP).toFixed(1)} ${HEIGHT}`,
      preserveAspectRatio: "none",
      "aria-hidden": "true",
    },
    ...paths.map((path, ink) => path.length && s("path", { class: inks[ink], d: path.join("") })),
    s("path", { class: "itself", d: `M${ITSELF + GAP} ${HEIGHT - 0.8}h.86v.8h-.86z` }),
  );
}
