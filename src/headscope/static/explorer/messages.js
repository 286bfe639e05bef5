/** What is said instead of a figure. */

import { Refused } from "./api.js";
import { h } from "../ui/dom.js";
import { address } from "./place.js";

/** @import { RunSummary, Session } from "./types.js" */

const UNANSWERED = "The explorer's server does not answer; is `headscope serve` still running?";
/** @param {unknown} error @returns {HTMLElement} */
export function failure(error) {
  const known = error instanceof Refused;
  if (!known) console.error(error);
  const silent = error instanceof TypeError && /fetch/i.test(error.message);
  const said = known ? error.message : silent ? UNANSWERED : String(error);
  return h(
    "div",
    { class: "note", role: "alert" },
    h("h1", {}, "This cannot be shown"),
    sentences(said),
  );
}

/** @param {RunSummary | null} run @returns {HTMLElement} */
export function runNotes(run) {
  const notes = run?.notes ?? [];
  return h("div", { class: "note", role: "status" }, ...notes.map(sentences));
}

/**
 * Said where the run that is open is of another model than the one that is loaded.
 * @param {Session} session
 * @param {RunSummary | null} run
 * @returns {HTMLElement | null}
 */
export function modelNote({ model }, run) {
  if (!run?.model || model.state === "none" || !model.name || run.model === model.name) return null;
  return h(
    "p",
    { class: "note slim", id: "other-model", role: "status" },
    `The run ${run.slug} is of ${run.model}; the model that is loaded, and that reads a ` +
      `text, is ${model.name}.`,
  );
}

/** Text between backticks is a command. @param {string} text @returns {HTMLElement} */
export function sentences(text) {
  const parts = text.split("`").map((part, i) => (i % 2 ? h("code", {}, part) : part));
  return h("p", {}, ...parts);
}

/** @param {Session} session @returns {HTMLElement} */
export function startPage(session) {
  const commands =
    "headscope study vig2019 --model mini-gpt2 --corpus demo --out runs/mini\n" +
    "headscope serve runs/mini --model mini-gpt2";
  const model =
    session.model.state === "none"
      ? null
      : h("p", {}, "A model is loaded: ", h("a", { href: address("text", {}) }, "try a text"), ".");
  return h(
    "div",
    { class: "note" },
    h("h1", {}, "No run is open"),
    h("p", {}, "Make one and open it:"),
    h("pre", {}, commands),
    model,
  );
}
