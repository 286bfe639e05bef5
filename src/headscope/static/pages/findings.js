/**
 * Findings: the paper's claims held against the run, and the heads that it names as worth a look.
 */

import { saveRows } from "../charts/export.js";
import { saveButton } from "../charts/figure.js";
import { scrolling } from "../charts/table.js";
import { askStatements } from "../explorer/api.js";
import { h } from "../ui/dom.js";
import { nameHead } from "../ui/heads.js";
import { address } from "../explorer/place.js";
import { fold } from "./fold.js";

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
    const { findings, choices, tables } = await askStatements(slug);
    const title = h("div", { class: "title" }, h("h1", {}, "Does it hold here?"));
    const claims = findings.length
      ? claimTable(findings)
      : h("p", { class: "note" }, "The study makes no claims to be judged.");
    const parts = [
      title,
      claims,
      choices.length ? chosen(slug, choices, tables) : null,
      tables.length ? downloads(tables) : null,
    ];
    return { nodes: parts.filter((node) => node !== null) };
  },
};

/** @param {JudgedClaim[]} findings */
function claimTable(findings) {
  const head = h(
    "tr",
    {},
    ...["Claim", "Published", "Measured", "Holds"].map((name) =>
      h("th", { scope: "col", class: "plain" }, name),
    ),
  );
  const rows = [...findings]
    .sort(byVerdict)
    .map((one) =>
      h(
        "tr",
        {},
        h("td", {}, one.claim),
        cell("Published", one.published),
        cell("Measured", one.measured),
        cell("Holds", h("span", { class: "verdict", "data-holds": one.holds }, one.holds)),
      ),
    );
  const table = h(
    "table",
    { class: "claims" },
    h("caption", { class: "hidden" }, "Claims of the paper"),
    h("thead", {}, head),
    h("tbody", {}, ...rows),
  );
  const scroll = scrolling(table, "Claims of the paper");
  return h(
    "section",
    { class: "figure" },
    h("div", { class: "figure-bar" }, h("h2", {}, "Claims of the paper")),
    scroll,
    fold("How the claims are judged", judging(), rules(findings)),
  );
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
  return h(
    "p",
    { class: "caption" },
    "Measured with 95 % intervals and judged by them when the run was finished: yes or no " +
      "if the whole interval lies on one side of the threshold, else unclear; untrained too " +
      "if networks of random weights show the same. The report has the same verdicts.",
  );
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
  const items = choices.map((one) => {
    const name = nameHead(one.layer, one.head);
    return h(
      "li",
      {},
      h("a", { href: address("head", { run, head: name }) }, name),
      h("span", {}, ` ${one.why} `),
      h("span", { class: "faint" }, titles.get(one.table) ?? ""),
    );
  });
  return h(
    "section",
    { class: "figure" },
    h("div", { class: "figure-bar" }, h("h2", {}, "Heads worth a look")),
    h("ul", { class: "choices" }, ...items),
  );
}

/** The tables as files. @param {StoredTable[]} tables */
function downloads(tables) {
  const items = tables.map((table) => {
    const rows = () => [table.columns.map((column) => column.title), ...table.rows];
    return h(
      "li",
      {},
      saveButton("CSV", `Download “${table.title}” as CSV`, () => saveRows(rows(), table.title)),
      ` ${table.title}`,
    );
  });
  return h(
    "section",
    { class: "figure" },
    h("div", { class: "figure-bar" }, h("h2", {}, "Tables")),
    h("ul", { class: "downloads" }, ...items),
  );
}
