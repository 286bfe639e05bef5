/** A table that sorts by any column; numbers sort downward first. */

import { saveRows } from "./export.js";
import { h } from "../ui/dom.js";
import { figureBar, saveButton } from "./figure.js";
import { headIn } from "../explorer/heads.js";
import { number, plain } from "../ui/format.js";

/** @import { Child } from "../ui/dom.js" */

/** @typedef {string | number | boolean | null} Value */
/**
 * @typedef {{name: string, title?: string, show?: (value: Value, row: Value[]) => Child, numeric?:
 *   boolean}} Column  `show` gives undefined for what is shown as it is
 */

const LONG = 40; // characters of a text that takes some width

/**
 * @param {object} parts
 * @param {string} parts.title
 * @param {string} [parts.note]
 * @param {Column[]} parts.columns
 * @param {Value[][]} parts.rows
 * @param {string} [parts.sort]  "" or a column's name, with a minus for downward
 * @param {(sort: string) => void} [parts.onSort]
 * @param {string} [parts.kind]
 * @param {number} [parts.most]  rows that are drawn
 * @returns {HTMLElement}
 */
export function sortable({ title, note, columns, rows, kind = "", most = Infinity, ...parts }) {
  const body = h("tbody");
  const head = h("tr");
  let order = parts.sort ?? "";
  const numeric = columns.map(
    (column, place) =>
      column.numeric ?? rows.every((row) => row[place] === null || typeof row[place] === "number"),
  );
  const draw = () => {
    const headings = columns.map((column, i) => heading(column, numeric[i], order, choose));
    head.replaceChildren(...headings);
    const shown = sorted(columns, rows, order).slice(0, most);
    body.replaceChildren(...shown.map((row) => line(columns, row, numeric)));
  };
  const choose = (/** @type {string} */ next) => {
    order = next;
    draw();
    parts.onSort?.(next);
    /** @type {HTMLElement | null} */ (
      head.querySelector(`[data-column="${CSS.escape(next.replace(/^-/, ""))}"]`)
    )?.focus();
  };
  draw();
  const csv = saveButton("CSV", `Download “${title}” as CSV`, () =>
    saveRows([columns.map(headingOf), ...sorted(columns, rows, order)], title),
  );
  const bar = figureBar(title, [csv]);
  const caption = h("caption", { class: "hidden" }, title);
  const scroll = scrolling(h("table", {}, caption, h("thead", {}, head), body), title);
  const cut = `The first ${most} of ${rows.length} rows in this order.`;
  const below = [rows.length > most ? cut : "", note].filter(Boolean);
  const notes = below.map((text) => h("p", { class: "caption" }, text));
  return h("section", { class: `figure ${kind}` }, bar, scroll, ...notes);
}

/**
 * A table that may be wider or longer than its place: where it is, a line says so.
 * @param {HTMLElement} table
 * @param {string} title
 * @returns {HTMLElement}
 */
export function scrolling(table, title) {
  const about = { class: "scroll", tabindex: 0, role: "region", "aria-label": title };
  const scroll = h("div", about, table);
  const hint = h("p", { class: "scroll-hint", "aria-hidden": "true" });
  const look = () => {
    const wide = scroll.scrollWidth > scroll.clientWidth + 1;
    const long = scroll.scrollHeight > scroll.clientHeight + 1;
    scroll.dataset.wide = String(
      wide && scroll.scrollLeft + scroll.clientWidth < scroll.scrollWidth - 1,
    );
    hint.textContent = wide
      ? `More columns: scroll sideways →${long ? "  More rows: scroll down ↓" : ""}`
      : long
        ? "More rows: scroll down ↓"
        : "";
  };
  scroll.addEventListener("scroll", look, { passive: true });
  new ResizeObserver(look).observe(scroll);
  return h("div", { class: "scroll-frame" }, scroll, hint);
}

/**
 * @param {Column} column
 * @param {boolean} numeric
 * @param {string} order
 * @param {(order: string) => void} choose
 */
function heading(column, numeric, order, choose) {
  const [up, down] = [column.name, `-${column.name}`];
  const next = order === up || (numeric && order !== down) ? down : up;
  const sorted = order === up ? "ascending" : order === down ? "descending" : null;
  const sign = sorted && (sorted === "ascending" ? "▲" : "▼");
  const arrow = h("span", { class: "arrow", "aria-hidden": "true" }, sign);
  const parts = numeric ? [arrow, headingOf(column)] : [headingOf(column), arrow];
  const act = { type: "button", "data-column": column.name, click: () => choose(next) };
  const about = { scope: "col", class: numeric ? "numeric" : "", "aria-sort": sorted };
  return h("th", about, h("button", act, ...parts));
}

/** @param {Column} column @returns {string} */
const headingOf = ({ name, title }) => title ?? plain(name);

/** @param {Column[]} columns @param {Value[][]} rows @param {string} order @returns {Value[][]} */
function sorted(columns, rows, order) {
  const place = columns.findIndex((column) => column.name === order.replace(/^-/, ""));
  if (place < 0) return rows;
  const sign = order.startsWith("-") ? -1 : 1;
  return [...rows].sort((a, b) => compare(a[place], b[place], sign));
}

/**
 * Missing values come last whichever way.
 * @param {Value} a
 * @param {Value} b
 * @param {number} sign
 */
function compare(a, b, sign) {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  if (typeof a === "number" && typeof b === "number") return sign * (a - b);
  return sign * String(a).localeCompare(String(b), undefined, { numeric: true });
}

/** @param {Column[]} columns @param {Value[]} row @param {boolean[]} numeric */
function line(columns, row, numeric) {
  const cells = columns.map((column, i) => {
    const kind = numeric[i] ? "numeric" : kindOf(row[i]);
    return h("td", { class: kind }, column.show?.(row[i], row) ?? plainly(row[i]));
  });
  return h("tr", {}, ...cells);
}

/** What a cell that is no number holds. @param {Value} value */
function kindOf(value) {
  if (typeof value !== "string") return "";
  if (headIn(value) === value.split(" ")[0]) return "head";
  return value.length > LONG ? "long" : "";
}

/** @param {Value} value @returns {number | null} */
export const numberIn = (value) => (typeof value === "number" ? value : null);

/** @param {Value} value @returns {string} */
function plainly(value) {
  if (typeof value === "number")
    return Number.isInteger(value) ? value.toLocaleString("en") : number(value);
  return value === null ? "–" : String(value);
}
