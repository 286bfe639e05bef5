/** Tables: what is stored with the run in rows, as the report prints it. */

import { sortable } from "../charts/table.js";
import { askStatements } from "../shell/api.js";
import { h } from "../shell/dom.js";
import { headIn } from "../shell/format.js";
import { address, change } from "../shell/place.js";

/** @typedef {import("../types.js").StoredTable} StoredTable */

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
    columns: table.columns.map((name, place) => ({ name, title: table.titles[place], show: (value) => shown(run, value) })),
  });
}

/** Heads lead to their cards. @param {string} run @param {import("../charts/table.js").Value} value */
export function shown(run, value) {
  const head = typeof value === "string" ? headIn(value) : null;
  return head ? h("a", { href: address("head", { run, head }) }, String(value)) : undefined;
}
