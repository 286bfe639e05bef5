/** What is asked of the finder, as it stands in the address. */

import { validSpec } from "../explorer/controls.js";

/** @import { MeasureEntry as Measure } from "../explorer/types.js" */

/**
 * @typedef {{spec: string, sign: ">=" | "<=", value: number}} Filter  a measure, at least or at
 *   most a number
 *
 * @typedef {object} Question
 * @property {string} q  words that a head's description must have
 * @property {Filter[]} filters
 * @property {string} x
 * @property {string} y
 * @property {string} color  a spec, or "layer"
 * @property {string} sort
 */

/**
 * @param {Record<string, string>} params
 * @param {Measure[]} measures
 * @param {string[]} first  measures to begin with
 * @returns {Question}
 */
export function readQuestion(params, measures, [x, y = x]) {
  return {
    q: params.q ?? "",
    filters: readFilters(params.where, measures),
    x: validSpec(measures, params.x, x),
    y: validSpec(measures, params.y, y),
    color:
      params.color && params.color !== "layer" ? validSpec(measures, params.color, y) : "layer",
    sort: params.sort ?? "",
  };
}

/**
 * @param {string | undefined} text
 * @param {Measure[]} measures
 * @returns {Filter[]}  what cannot be read is left out
 */
function readFilters(text, measures) {
  return (text ?? "").split(";").flatMap((part) => {
    const [, name, sign, number] = /^(.+?)(>=|<=)([^<>=]+)$/.exec(part) ?? [];
    const spec = name === undefined ? null : decoded(name);
    const value = Number(number);
    if (spec === null || !Number.isFinite(value) || validSpec(measures, spec, "") !== spec)
      return [];
    return [{ spec, sign: /** @type {Filter["sign"]} */ (sign), value }];
  });
}

/** @param {Filter[]} filters @returns {string} */
export function writeFilters(filters) {
  return filters.map((one) => `${encodeURIComponent(one.spec)}${one.sign}${one.value}`).join(";");
}

/**
 * A head without a value meets no condition.
 * @param {Filter} filter
 * @param {number | null} value
 * @returns {boolean}
 */
export function keeps(filter, value) {
  return value !== null && (filter.sign === ">=" ? value >= filter.value : value <= filter.value);
}

/** @param {string} text @returns {string | null} null where somebody broke the address */
function decoded(text) {
  try {
    return decodeURIComponent(text) || null;
  } catch {
    return null;
  }
}
