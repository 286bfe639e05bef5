/** Tables: what is stored with the run in rows, as the report prints it. */

import { numberIn, sortable } from "../charts/table.js";
import { askStatements } from "../shell/api.js";
import { h } from "../shell/dom.js";
import { headIn, withError } from "../shell/format.js";
import { address, change } from "../shell/place.js";

/** @typedef {import("../types.js").StoredTable} StoredTable */
/** @typedef {import("../charts/table.js").Value} Value */

/** @type {import("../shell/main.js").Page} */
export const tablesPage = {
  needsRun: true,
  async render({ run, params }) {
    const slug = run?.slug ?? "";
    const { tables } = await askStatements(slug);
    const title = h("div", { class: "title" }, h("h1", {}, "What can be read off the heads?"));
    const empty = tables.length ? [] : [h("p", { class: "note" }, "This run has no tables.")];
    return { nodes: [title, ...empty, ...tables.map((table) => section(slug, table, params))] };
  },
};

/** @param {string} run @param {StoredTable} table @param {Record<string, string>} params */
function section(run, table, params) {
  const key = `sort-${table.name}`;
  return sortable({
    title: table.title, note: table.caption, rows: table.rows, kind: "tall", sort: params[key] ?? "", onSort: (sort) => change({ [key]: sort }, { replace: true, quiet: true }),
    columns: table.columns.map(({ name, title, kind }) => {
      const margin = table.columns.findIndex((other) => other.kind === "margin" && other.of === name);
      const show = (/** @type {Value} */ value, /** @type {Value[]} */ row) => (margin < 0 ? shown(run, value) : withError(numberIn(value), numberIn(row[margin])));
      return { name, title, hidden: kind === "margin", show };
    }),
  });
}

/** Heads lead to their cards, also in a list of them. @param {string} run @param {Value} value @returns {import("../shell/dom.js").Child} */
export function shown(run, value) {
  if (typeof value !== "string" || !headIn(value.split(", ")[0])) return undefined;
  const parts = value.split(/(, | and )/).map((part) => (headIn(part) ? h("a", { href: address("head", { run, head: String(headIn(part)) }) }, part) : part));
  return h("span", {}, ...parts);
}
