/** What is asked of the finder, as it stands in the address. */

import { defaultSpec, validSpec } from "../explorer/controls.js";

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
 * @property {string[]} columns
 * @property {string} column  what the menu that adds a column shows
 * @property {string} sort
 */

const COLUMNS = 5;
const FIRST = [
  ["previous_share", "induction"],
  ["distance", "entropy"],
  ["special_share", "entropy"],
]; // pairs worth a look, by study

/** @param {Record<string, string>} params @param {Measure[]} measures @returns {Question} */
export function readQuestion(params, measures) {
  const names = measures.map((one) => one.name);
  const [x, y] = FIRST.find((pair) => pair.every((name) => names.includes(name))) ?? [
    names[0],
    names[1] ?? names[0],
  ];
  const columns = readSpecs(params.columns).filter(
    (spec) => validSpec(measures, spec, "") === spec,
  );
  return {
    q: params.q ?? "",
    filters: readFilters(params.where, measures),
    x: validSpec(measures, params.x, x),
    y: validSpec(measures, params.y, y),
    color:
      params.color && params.color !== "layer" ? validSpec(measures, params.color, y) : "layer",
    columns: columns.length ? columns : firstColumns(measures),
    column: validSpec(measures, params.column, names[0]),
    sort: params.sort ?? "",
  };
}

/**
 * Measures with one number for each head come first.
 * @param {Measure[]} measures
 * @returns {string[]}
 */
function firstColumns(measures) {
  const plain = [...measures].sort((a, b) => a.axes.length - b.axes.length);
  return plain.slice(0, COLUMNS).map((one) => defaultSpec(measures, one.name));
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

/** @param {string[]} specs @returns {string} */
export function writeSpecs(specs) {
  return specs.map(encodeURIComponent).join(",");
}

/** @param {string | undefined} text @returns {string[]} */
function readSpecs(text) {
  return (text ?? "").split(",").flatMap((part) => decoded(part) ?? []);
}

/** @param {string} text @returns {string | null} null where somebody broke the address */
function decoded(text) {
  try {
    return decodeURIComponent(text) || null;
  } catch {
    return null;
  }
}
