/** Tables: what is stored with the run in rows, as the report prints it. */

import { numberIn, sortable } from "../charts/table.js";
import { askStatements } from "../explorer/api.js";
import { h } from "../ui/dom.js";
import { headIn } from "../explorer/heads.js";
import { withError } from "../ui/format.js";
import { address, change } from "../explorer/place.js";

/**
 * @import { Value } from "../charts/table.js"
 * @import { Child } from "../ui/dom.js"
 * @import { Page } from "../explorer/main.js"
 * @import { StoredTable } from "../explorer/types.js"
 */

/** @type {Page} */
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
    title: table.title,
    note: table.caption,
    rows: table.rows,
    kind: "tall",
    sort: params[key] ?? "",
    onSort: (sort) => change({ [key]: sort }, { replace: true, quiet: true }),
    columns: table.columns.map(({ name, title, kind }) => {
      const margin = table.columns.findIndex(
        (other) => other.kind === "margin" && other.of === name,
      );
      const show = (/** @type {Value} */ value, /** @type {Value[]} */ row) =>
        margin < 0 ? shown(run, value) : withError(numberIn(value), numberIn(row[margin]));
      return { name, title, hidden: kind === "margin", show };
    }),
  });
}

/**
 * Heads lead to their cards, also in a list of them.
 * @param {string} run
 * @param {Value} value
 * @returns {Child}
 */
export function shown(run, value) {
  if (typeof value !== "string" || !headIn(value.split(", ")[0])) return undefined;
  const parts = value
    .split(/(, | and )/)
    .map((part) =>
      headIn(part)
        ? h("a", { href: address("head", { run, head: String(headIn(part)) }) }, part)
        : part,
    );
  return h("span", {}, ...parts);
}
