/** Numbers and labels for readers. */

import { fixed, MINUS } from "./numbers.js";

/**
 * @param {number | null | undefined} value
 * @returns {string} three significant places, never more than five characters of them
 */
export function number(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (value === 0) return "0";
  if (size < 0.001 || size >= 100000) return value.toExponential(1).replaceAll("-", MINUS);
  const places = size < 0.1 ? 4 : size < 10 ? 3 : size < 100 ? 2 : size < 1000 ? 1 : 0;
  return fixed(value, places);
}

/**
 * As short as a heatmap cell needs.
 * @param {number | null | undefined} value
 * @param {number} most  the largest value beside it: decides the places
 * @returns {string}
 */
export function brief(value, most) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "";
  if (value === 0) return "0";
  if (most < 0.02) return value.toExponential(0).replaceAll("-", MINUS);
  const places = most < 0.1 ? 3 : most < 2 ? 2 : most < 20 ? 1 : 0;
  const text = fixed(value, places);
  return Number(value.toFixed(places)) === 0 ? "0" : text.replace(/^(\u2212?)0\./, "$1.");
}

/** @param {number | null} value @returns {string} with its sign */
export function signed(value) {
  const text = number(value);
  return value !== null && value > 0 ? `+${text}` : text;
}

/** What ± means, wherever it stands. */
export const PLUS_MINUS = "± is half of a 95 % interval";

/**
 * @param {number | null} value
 * @param {number | null | undefined} error  half of its 95 % interval
 * @returns {string}
 */
export function withError(value, error) {
  if (error === null || error === undefined) return number(value);
  const said = number(value);
  if (/e/.test(said)) return `${said} ± ${number(error)}`;
  return `${said} ± ${asExact(error, /\.(\d+)/.exec(said)?.[1].length ?? 0)}`;
}

/**
 * An error to the places that its value has, or to its first digit where that is smaller.
 * @param {number} error
 * @param {number} places
 * @returns {string}
 */
function asExact(error, places) {
  if (!Number.isFinite(error) || error < 1e-7) return number(error);
  const first = Math.ceil(-Math.log10(error));
  return error.toFixed(Math.max(places, Number(error.toFixed(places)) === 0 ? first : 0));
}

/** @param {number} rank @returns {string} */
export function ordinal(rank) {
  if (rank === 1) return "first";
  const ending =
    rank % 100 >= 11 && rank % 100 <= 13 ? "th" : (["th", "st", "nd", "rd"][rank % 10] ?? "th");
  return `${rank}${ending}`;
}

/** @param {string} label @returns {string} */
export function plain(label) {
  return label.replaceAll("_", " ");
}

/**
 * @param {number} low
 * @param {number} high
 * @param {number} wanted
 * @param {boolean} [whole]  of things that come in ones
 * @returns {number[]} round numbers from low to high
 */
export function ticks(low, high, wanted = 5, whole = false) {
  if (!(high > low)) return [low];
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const sizes = [1, 2, 2.5, 5, 10]
    .map((n) => n * power)
    .filter((size) => !whole || Number.isInteger(size));
  const step =
    sizes.find((size) => size >= rough * 0.8) ?? (whole ? Math.max(1, Math.round(rough)) : rough);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++)
    found.push(Number((i * step).toPrecision(12)));
  return found;
}

/** @param {number} value @returns {string} */
export function tickLabel(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 100000))
    return value.toExponential(0).replaceAll("-", MINUS);
  return String(Number(value.toPrecision(6))).replace("-", MINUS);
}

/** @param {(number | null)[]} values @returns {number[]} */
export function finite(values) {
  return /** @type {number[]} */ (
    values.filter((value) => value !== null && Number.isFinite(value))
  );
}

/** @param {number} count @param {string} noun @returns {string} 1 head, 2 heads */
export function counted(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** @param {number} share @returns {string} in whole per cent */
export function percent(share) {
  return `${Math.round(100 * share)}\u202f%`;
}
