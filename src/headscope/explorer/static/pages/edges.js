/** What one edge of an example adds: the tokens whose logits it raises and lowers at the token it looks from. */

import { visible } from "../charts/tokens.js";
import { h } from "../shell/dom.js";
import { number, signed } from "../shell/format.js";

/** @typedef {import("../types.js").EdgeAdds} EdgeAdds */

/**
 * The strongest edges as buttons, and what the chosen one adds.
 * @param {string[]} tokens
 * @param {EdgeAdds[]} edges
 * @param {boolean} causal
 * @param {(query: number) => void} choose
 * @returns {{node: HTMLElement | null, show: (token: number) => void}}  show: what is said while a token is looked at
 */
export function edgePanel(tokens, edges, causal, choose) {
  if (!edges.length) return { node: null, show: () => {} };
  const told = h("div", { class: "adds" });
  const buttons = edges.map((edge) => h("button", { type: "button", class: "chip", "aria-pressed": "false", "data-query": edge.query, click: () => choose(edge.query) }, between(tokens, edge), h("span", { class: "faint" }, ` ${number(edge.weight)}`)));
  const show = (/** @type {number} */ token) => {
    const edge = edges.find((one) => one.query === token);
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.query === String(edge?.query)));
    told.replaceChildren(...(edge ? said(edge, causal) : [h("p", { class: "faint" }, "Choose an edge to see what it adds.")]));
  };
  const bar = h("div", { class: "edges", role: "group", "aria-label": "Strongest edges" }, h("span", { class: "faint", "aria-hidden": "true" }, "Strongest edges"), ...buttons);
  return { node: h("div", { class: "edge-panel" }, bar, told), show };
}

/** @param {string[]} tokens @param {EdgeAdds} edge @returns {HTMLElement} */
function between(tokens, edge) {
  const name = (/** @type {number} */ at) => h("bdi", {}, visible(tokens[at] ?? ""));
  return h("span", {}, name(edge.query), " → ", name(edge.key));
}

/** @param {EdgeAdds} edge @param {boolean} causal @returns {HTMLElement[]} */
function said(edge, causal) {
  const where = causal ? "to the next token" : "to the token in its place";
  const own = edge.token === null ? [h("span", { class: "faint" }, "none: the input ends here")] : [written(edge.token, edge.logit)];
  const list = (/** @type {string[]} */ tokens, /** @type {number[]} */ logits) => tokens.map((token, i) => written(token, logits[i]));
  return [line("raises", list(edge.raises, edge.raises_logit)), line("lowers", list(edge.lowers, edge.lowers_logit)), line(where, own)];
}

/** @param {string} title @param {Node[]} parts */
function line(title, parts) {
  return h("p", {}, h("span", { class: "faint" }, `${title} `), ...parts.flatMap((part, i) => (i ? [", ", part] : [part])));
}

/** @param {string} token @param {number | null} logit */
function written(token, logit) {
  return h("span", { class: "added" }, h("code", {}, h("bdi", {}, visible(token))), ` ${inLogits(logit)}`);
}

/** @param {number | null} value @returns {string} to two places, as far as a logit matters */
function inLogits(value) {
  return value === null || Math.abs(value) < 0.005 ? signed(value) : `${value > 0 ? "+" : "−"}${Math.abs(value).toFixed(2)}`;
}
