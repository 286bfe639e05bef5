/** Head card: everything the run knows about one head, and the sentences that show it. */

import { ask } from "./api.js";
import { labelBars } from "./bars.js";
import { h } from "./dom.js";
import { figure } from "./figure.js";
import { number, ordinal, plain, withError } from "./format.js";
import { headName } from "./heatmap.js";
import { menu } from "./controls.js";
import { address, change } from "./place.js";
import { exemplarSection } from "./exemplars.js";
import { sortable } from "./table.js";

/** @typedef {import("./main.js").Context} Context */

const MOST_BARS = 14;

/** @type {import("./main.js").Page} */
export const headPage = {
  needsRun: true,
  async render(context) {
    const slug = context.run?.slug ?? "";
    const name = context.params.head || "L0H0";
    const [run, card] = await Promise.all([ask(["runs", slug]), ask(["runs", slug, "heads", name])]);
    const examples = exemplarSection(context, card);
    const nodes = [
      title(run, card), summary(run, card),
      h("div", { class: "split top-aligned", "data-wide": String(context.room > 900) }, measures(run, card, context), nearest(run, card)),
      examples.node,
      h("div", { class: "pair" }, ...card.groups.map((/** @type {any} */ group) => bars(group, context.room))),
    ];
    return { nodes, ready: examples.ready, leave: examples.leave };
  },
};

/** @param {any} run @param {any} card */
function title(run, card) {
  const all = Array.from({ length: run.layers * run.heads }, (_, i) => headName(Math.floor(i / run.heads), i % run.heads));
  const place = all.indexOf(card.name);
  const step = (/** @type {number} */ by, /** @type {string} */ id, /** @type {string} */ text, /** @type {string} */ label) =>
    h("button", { type: "button", class: "button", id, "aria-label": label, disabled: !all[place + by], click: () => change({ head: all[place + by], exemplar: null, text: null }) }, text);
  const chooser = menu({ id: "head", label: "Head", options: all.map((name) => ({ value: name, text: name })), value: card.name, onChange: (name) => change({ head: name, exemplar: null, text: null }) });
  const badge = card.behaviour ? h("span", { class: "badge" }, plain(card.behaviour)) : null;
  return h("div", { class: "title" }, h("h1", {}, `Head ${card.name}`), badge, h("span", { class: "space" }), h("div", { class: "controls bare" }, step(-1, "previous", "‹", "Previous head"), chooser, step(1, "next", "›", "Next head")));
}

/** @param {any} run @param {any} card */
function summary(run, card) {
  const best = [...card.measures].filter((one) => one.rank !== null).sort((a, b) => a.rank - b.rank)[0];
  const first = best ? [`Ranks ${ordinal(best.rank)} of ${best.of} heads in `, h("a", { href: address("overview", { run: run.slug, measure: best.spec }) }, inSentence(best.title)), `: ${number(best.value)}. `] : [];
  const relation = card.best_relation;
  const second = relation
    ? [`Best relation: `, h("a", { href: address("overview", { run: run.slug, measure: relation.spec }) }, relation.title.split(": ")[1]), `, right in ${percent(relation.value)} of words against ${percent(relation.baseline.value)} (${relation.baseline.name}).`]
    : [];
  return h("p", { class: "lead" }, ...first, ...second);
}

/** @param {string} title @returns {string} with a small first letter, as inside a sentence */
function inSentence(title) {
  return title[0].toLowerCase() + title.slice(1);
}

/** @param {number} share */
function percent(share) {
  return `${(100 * share).toFixed(1)}\u00a0%`;
}

/** @param {any} run @param {any} card @param {Context} context */
function measures(run, card, context) {
  const rows = card.measures.map((/** @type {any} */ one) => [one.title, one.value, one.rank, one.mean, one.baseline?.value ?? null, one.spec, one.error, one.of]);
  return sortable({
    title: "Measures", kind: "grow", sort: context.params.sort ?? "", onSort: (sort) => change({ sort }, { replace: true, quiet: true }), rows,
    columns: [
      { name: "measure", show: (value, row) => h("a", { href: address("overview", { run: run.slug, measure: String(row[5]) }) }, value) },
      { name: "value", numeric: true, show: (value, row) => withError(value, /** @type {number | null} */ (row[6])) },
      { name: "rank", numeric: true, show: (value, row) => rank(value, Number(row[7])) },
      { name: "mean of heads", numeric: true },
      { name: "baseline", numeric: true },
    ],
    note: "Rank 1 is the largest value of all heads; ± is one standard error.",
  });
}

/** @param {number | null} value @param {number} of */
function rank(value, of) {
  if (value === null) return "–";
  const share = of > 1 ? 1 - (value - 1) / (of - 1) : 1;
  const meter = h("span", { class: "meter", "aria-hidden": "true" }, h("span", {}));
  /** @type {HTMLElement} */ (meter.firstChild).style.width = `${100 * share}%`;
  return h("span", { class: "rank" }, meter, h("span", { class: "of" }, `${value} / ${of}`));
}

/** @param {any} run @param {any} card */
function nearest(run, card) {
  const items = card.nearest.heads.map((/** @type {any} */ one) => h("li", {}, h("a", { href: address("head", { run: run.slug, head: one.name }) }, one.name), h("span", { class: "faint" }, number(one.distance))));
  return h("section", { class: "figure side" }, h("div", { class: "figure-bar" }, h("h2", {}, "Nearest heads")), items.length ? h("ol", { class: "nearest" }, ...items) : h("p", {}, "None."), h("p", { class: "caption" }, `By ${card.nearest.basis}.`));
}

/** @param {any} group @param {number} room */
function bars(group, room) {
  const ordered = [...group.lines].sort((a, b) => b.value - a.value);
  const frequent = ordered.filter((one) => !one.rare);
  const shown = frequent.slice(0, MOST_BARS);
  const width = Math.min(640, room > 900 ? room / 2 - 46 : room - 34);
  const drawing = shown.length ? labelBars(shown, { width, label: group.title }) : null;
  if (!drawing) return h("section", { class: "figure" }, h("h2", {}, group.title), h("p", {}, "No value."));
  const rows = () => [[group.axis, "value", "standard error", "rank", "of", "baseline"], ...ordered.map((one) => [one.label, one.value, one.error, one.rank, one.of, one.baseline?.value ?? null])];
  const names = [...new Set(shown.flatMap((one) => (one.baseline ? [one.baseline.name] : [])))];
  const tick = names.length ? [h("span", { class: "swatch tick" }), names.length > 1 ? "each one’s best baseline" : names[0], ". "] : [];
  const rare = ordered.length - frequent.length;
  const left = [shown.length < frequent.length ? `the ${MOST_BARS} largest are shown` : "", rare ? `${rare} with fewer than ${group.enough} words are left out` : ""].filter(Boolean).join(", ");
  const more = left ? `Of ${ordered.length}, ${left}; the CSV has all. ` : "";
  return figure({ title: group.title, drawing, rows, caption: h("p", {}, ...tick, more, "# is the rank among heads.") });
}

