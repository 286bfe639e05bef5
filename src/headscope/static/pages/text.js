/** Try a text: type or paste, and look at its attention in any of the three views. */

import { askSessionAgain } from "../explorer/api.js";
import { h } from "../ui/dom.js";
import { counted } from "../ui/format.js";
import { sentences } from "../explorer/messages.js";
import { change, here } from "../explorer/place.js";
import { button, segments } from "../explorer/controls.js";
import { DifferenceHost } from "./difference.js";
import { pageTitle } from "./parts.js";
import { EXAMPLE, field, ViewHost } from "./viewhost.js";

/**
 * @import { Context, Page } from "../explorer/main.js"
 * @import { ModelFacts, TextRequest } from "../explorer/types.js"
 */

const KINDS = { head: "Head view", model: "Model view", neuron: "Neuron view" };
// Tokens that a decoder writes unless told otherwise, so that it has something to show.
const WRITTEN = "8";
const WAIT = 700; // milliseconds between two looks at a model that is loading

/** @type {Page} */
export const textPage = {
  needsRun: false,
  async render(context) {
    const session = await askSessionAgain();
    const title = pageTitle("Try a text", modelLine(session.model));
    if (session.model.state === "none") {
      const why = sentences(session.model.reason ?? "No model is loaded.");
      const note = h("div", { class: "note", role: "status", id: "status" }, why);
      return { nodes: [title, note] };
    }
    const form = makeForm({ ...context, session });
    return { nodes: [title, form.node], ready: form.ready, leave: form.leave };
  },
};

/** @param {ModelFacts} model */
function modelLine(model) {
  let shape = "";
  if (model.state === "ready")
    shape = ` · ${counted(model.layers ?? 0, "layer")} × ${counted(model.heads ?? 0, "head")}`;
  if (model.state === "ready" && model.max_length) shape += ` · up to ${model.max_length} tokens`;
  return h("p", { class: "faint" }, model.name ? `${model.name}${shape}` : "");
}

/** @param {Context} context */
function makeForm(context) {
  const { model, limits } = context.session;
  const { params } = here();
  const translates = Boolean(model.encoder_decoder);
  const typed = (/** @type {string} */ id, /** @type {string} */ label, rows = 1, otherwise = "") =>
    field(id, label, rows, params[id] ?? otherwise, limits.text);
  const source = translates ? "Source: what the encoder reads" : "Text";
  const text = typed("text", source, 3, EXAMPLE);
  const pair = typed("pair", "Second text (optional, for a pair)");
  const target = typed(
    "target",
    "Target: what the decoder has written (optional; without it the model writes)",
  );
  const written = translates && !params.target ? WRITTEN : "0";
  const many = { type: "number", min: 0, max: limits.generate };
  const generate = h("input", { ...many, id: "generate", value: params.generate ?? written });
  const isChat = Boolean(model.chat && params.chat);
  const chat = h("input", { id: "chat", type: "checkbox", checked: isChat });
  let kind = /** @type {keyof typeof KINDS} */ (params.kind in KINDS ? params.kind : "head");
  const kinds = segments("kind", "View", KINDS, kind, (chosen) => {
    kind = /** @type {keyof typeof KINDS} */ (chosen);
    void run();
  });
  const without = h("input", {
    id: "without",
    type: "text",
    value: params.without ?? "",
    size: 12,
  });
  without.placeholder = "such as L4H2";
  const replacements = { zero: "zeroed", mean: "at their mean" };
  let replacement = /** @type {keyof typeof replacements} */ (
    params.replacement === "mean" ? "mean" : "zero"
  );
  const replaced = segments("replacement", "What they write", replacements, replacement, (one) => {
    replacement = /** @type {keyof typeof replacements} */ (one);
    if (without.value.trim()) void run();
  });
  const host = new ViewHost({ class: "view card", id: "view" });
  const changes = new DifferenceHost(context.room);
  const run = () => {
    const wanted = {
      text: text.area.value,
      pair: pair.area.value || null,
      target: target.area.value || null,
      generate: Number(generate.value) || 0,
      kind,
      chat: chat.checked,
      without: without.value.split(/[\s,]+/).filter(Boolean),
      replacement,
    };
    const count = String(wanted.generate);
    const others = {
      chat: wanted.chat ? "1" : null,
      generate: count === written ? null : count,
      without: wanted.without.join(" ") || null,
      replacement: replacement === "mean" ? replacement : null,
    };
    change({ ...wanted, ...others }, { replace: true, quiet: true });
    void changes.show(wanted);
    return host.show(wanted);
  };
  const asChat = h(
    "label",
    { class: "control", title: "The model's own template writes the messages" },
    chat,
    " A chat: begin messages with “system:”, “user:” or “assistant:”",
  );
  const label = h("label", { for: "generate" }, "Generate tokens");
  const more = h(
    "div",
    { class: "controls bare" },
    kinds,
    model.chat && asChat,
    (translates || model.causal) && h("div", { class: "control" }, label, generate),
    h("div", { class: "control" }, h("label", { for: "without" }, "Without heads"), without),
    replaced,
    button("Trace", { type: "submit", class: "button primary", id: "trace" }),
    h("span", { class: "faint hint" }, "Ctrl-Enter traces"),
  );
  const form = h(
    "form",
    { class: "figure form" },
    text.node,
    !model.causal && !translates && pair.node,
    translates && target.node,
    more,
    host.status,
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    dropViewState();
    void run();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  let left = false;
  return {
    node: h("div", {}, form, host.el, changes.el),
    ready: () => void whenLoaded(context, host, () => left, run),
    leave: () => {
      left = true;
      host.leave();
      changes.leave();
    },
  };
}

/** A new text starts with a fresh view; the old one's state must not follow it. */
function dropViewState() {
  window.history.replaceState(null, "", window.location.pathname + window.location.search);
}

/**
 * @param {Context} context
 * @param {ViewHost} host
 * @param {() => boolean} left
 * @param {() => Promise<void>} run
 */
async function whenLoaded({ session }, host, left, run) {
  let { model } = session;
  while (model.state === "loading" && !left()) {
    host.tell(`${model.name} is loading …`);
    await new Promise((resolve) => setTimeout(resolve, WAIT));
    ({ model } = await askSessionAgain());
    if (model.state !== "loading" && !left())
      return change({}, { replace: true, hash: window.location.hash });
  }
  if (left()) return;
  if (model.state === "ready") await run();
  else host.tell(`The model ${model.name} could not be loaded: ${model.reason}`, true);
}
