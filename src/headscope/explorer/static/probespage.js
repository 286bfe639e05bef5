/** Probes: heads as classifiers, in the paper's three tables. */

import { ask } from "./api.js";
import { h } from "./dom.js";
import { address, change } from "./place.js";
import { sortable } from "./table.js";

/** @type {import("./main.js").Page} */
export const probesPage = {
  needsRun: true,
  async render({ run, params }) {
    const slug = run?.slug ?? "";
    const tables = await ask(["runs", slug, "probes"]);
    const sections = tables.map((/** @type {any} */ table, /** @type {number} */ i) =>
      sortable({
        title: table.title, note: table.note, rows: table.rows, sort: params[`sort${i + 1}`] ?? "", onSort: (sort) => change({ [`sort${i + 1}`]: sort }, { replace: true, quiet: true }),
        columns: table.columns.map((/** @type {string} */ name) => ({ name, show: name === "head" ? (/** @type {any} */ value) => headLink(slug, value) : undefined })),
      }),
    );
    return { nodes: [h("div", { class: "title" }, h("h1", {}, "What can be read off the heads?")), ...sections] };
  },
};

/** @param {string} run @param {string | null} name */
function headLink(run, name) {
  return name ? h("a", { href: address("head", { run, head: name }) }, name) : "–";
}
