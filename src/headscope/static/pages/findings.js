/**
 * Findings: the paper's claims held against the run, and the heads that it names as worth a look.
 */

import { saveRows } from "../charts/export.js";
import { saveButton } from "../charts/figure.js";
import { scrolling } from "../charts/table.js";
import { ask } from "../explorer/api.js";
import { h } from "../ui/dom.js";
import { nameHead } from "../ui/heads.js";
import { fold, headLink, pageTitle, section, summaryLine } from "./parts.js";

/**
 * @import { Child } from "../ui/dom.js"
 * @import { Page } from "../explorer/main.js"
 * @import { Choice, JudgedClaim, StoredTable } from "../explorer/types.js"
 */

const VERDICTS = ["yes", "no", "unclear", "untrained too"]; // in this order; the others follow

/** @type {Page} */
export const findingsPage = {
  needsRun: true,
  async render({ run }) {
    const slug = run?.slug ?? "";
    const { tally, findings, choices, tables } = await ask("runs/{run}/statements", slug);
    const claims = findings.length
      ? claimTable(findings)
      : h("p", { class: "note" }, "The study makes no claims to be judged.");
    const parts = [
      pageTitle("Does it hold here?"),
      findings.length ? summaryLine(`Of the paper’s claims ${tally}.`) : null,
      claims,
      choices.length ? chosen(slug, choices, tables) : null,
      tables.length ? downloads(tables) : null,
    ];
    return { nodes: parts.filter((node) => node !== null) };
  },
};

/** @param {JudgedClaim[]} findings */
function claimTable(findings) {
  const headings = ["Claim", "Published", "Measured", "Holds"].map((name) =>
    h("th", { scope: "col", class: "plain" }, name),
  );
  const rows = [...findings].sort(byVerdict).map(({ claim, published, measured, holds }) => {
    const verdict = h("span", { class: "verdict", "data-holds": holds }, holds);
    return h(
      "tr",
      {},
      h("td", {}, claim),
      cell("Published", published),
      cell("Measured", measured),
      cell("Holds", verdict),
    );
  });
  const table = h(
    "table",
    { class: "claims" },
    h("caption", { class: "hidden" }, "Claims"),
    h("thead", {}, h("tr", {}, ...headings)),
    h("tbody", {}, ...rows),
  );
  const judged = fold("How the claims are judged", judging(), rules(findings));
  const title = "Claims";
  return section(title, {}, scrolling(table, title), judged);
}

/** What holds comes first. @param {JudgedClaim} a @param {JudgedClaim} b */
function byVerdict(a, b) {
  const place = (/** @type {JudgedClaim} */ claim) => {
    const at = VERDICTS.indexOf(claim.holds);
    return at < 0 ? VERDICTS.length : at;
  };
  return place(a) - place(b);
}

function judging() {
  const how =
    "Measured with 95 % intervals and judged by them when the run was finished: yes or no " +
    "if the whole interval lies on one side of the threshold, else unclear; untrained too " +
    "if networks of random weights show the same. The report has the same verdicts.";
  return h("p", { class: "caption" }, how);
}

/** The rule of every claim. @param {JudgedClaim[]} findings */
function rules(findings) {
  const items = findings.map(({ claim, rule }) =>
    h("li", {}, `${claim} `, h("span", { class: "faint" }, rule)),
  );
  return h("ul", { class: "choices" }, ...items);
}

/**
 * On a phone every cell is a line that begins with its label.
 * @param {string} label
 * @param {Child} content
 */
function cell(label, content) {
  return h("td", { "data-label": label }, content);
}

/** @param {string} run @param {Choice[]} choices @param {StoredTable[]} tables */
function chosen(run, choices, tables) {
  const titles = new Map(tables.map((table) => [table.name, table.title]));
  const items = choices.map(({ layer, head, why, table }) => {
    const from = h("span", { class: "faint" }, titles.get(table) ?? "");
    return h("li", {}, headLink(run, nameHead(layer, head)), ` ${why} `, from);
  });
  return section("Heads worth a look", {}, h("ul", { class: "choices" }, ...items));
}

/** The tables as files. @param {StoredTable[]} tables */
function downloads(tables) {
  const items = tables.map((table) => {
    const rows = () => [table.columns.map((column) => column.title), ...table.rows];
    const name = `Download “${table.title}” as CSV`;
    const save = saveButton("CSV", name, () => saveRows(rows(), table.title));
    return h("li", {}, save, ` ${table.title}`);
  });
  return section("Tables", {}, h("ul", { class: "downloads" }, ...items));
}
