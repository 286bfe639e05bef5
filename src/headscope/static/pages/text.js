/** Try a text: type or paste, and look at its attention in any of the three views. */

import { askSessionAgain } from "../explorer/api.js";
import { h } from "../ui/dom.js";
import { counted } from "../ui/format.js";
import { sentences } from "../explorer/messages.js";
import { change, here } from "../explorer/place.js";
import { EXAMPLE, ViewHost } from "./viewhost.js";

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
    const title = h("div", { class: "title" }, h("h1", {}, "Try a text"), modelLine(session.model));
    if (session.model.state === "none")
      return {
        nodes: [
          title,
          h(
            "div",
            { class: "note", role: "status", id: "status" },
            sentences(session.model.reason ?? "No model is loaded."),
          ),
        ],
      };
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
  const text = field(
    "text",
    translates ? "Source: what the encoder reads" : "Text",
    3,
    params.text ?? EXAMPLE,
    limits.text,
  );
  const pair = field(
    "pair",
    "Second text (optional, for a pair)",
    1,
    params.pair ?? "",
    limits.text,
  );
  const target = field(
    "target",
    "Target: what the decoder has written (optional; without it the model writes)",
    1,
    params.target ?? "",
    limits.text,
  );
  const written = translates && !params.target ? WRITTEN : "0";
  const generate = h("input", {
    id: "generate",
    type: "number",
    min: 0,
    max: limits.generate,
    value: params.generate ?? written,
  });
  const chat = h("input", {
    id: "chat",
    type: "checkbox",
    checked: Boolean(model.chat && params.chat),
  });
  const kinds = kindChoice(params.kind in KINDS ? params.kind : "head", () => void run());
  const status = h("p", { class: "status", role: "status", id: "status" });
  const place = h("div", { class: "view card", id: "view" });
  const host = new ViewHost(place, (said, wrong) => tell(status, said, wrong));
  const button = h("button", { type: "submit", class: "button primary", id: "trace" }, "Trace");
  const run = () => {
    const wanted = {
      text: text.area.value,
      pair: pair.area.value || null,
      target: target.area.value || null,
      generate: Number(generate.value) || 0,
      kind: kinds.value(),
      chat: chat.checked,
    };
    change(
      {
        ...wanted,
        chat: wanted.chat ? "1" : null,
        generate: String(wanted.generate) === written ? null : String(wanted.generate),
      },
      { replace: true, quiet: true },
    );
    return host.show(wanted, { address: true });
  };
  const asChat = model.chat
    ? h(
        "label",
        { class: "control", title: "The model's own template writes the messages" },
        chat,
        " A chat: begin messages with “system:”, “user:” or “assistant:”",
      )
    : null;
  const more = h(
    "div",
    { class: "controls bare" },
    kinds.node,
    asChat,
    translates || model.causal
      ? h("div", { class: "control" }, h("label", { for: "generate" }, "Generate tokens"), generate)
      : null,
    button,
    h("span", { class: "faint hint" }, "Ctrl-Enter traces"),
  );
  const form = h(
    "form",
    { class: "figure form" },
    text.node,
    model.causal || translates ? null : pair.node,
    translates ? target.node : null,
    more,
    status,
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
  const ready = () => void whenLoaded(context, status, () => left, run);
  return {
    node: h("div", {}, form, place),
    ready,
    leave: () => {
      left = true;
      host.leave();
    },
  };
}

/** A new text starts with a fresh view; the old one's state must not follow it. */
function dropViewState() {
  window.history.replaceState(null, "", window.location.pathname + window.location.search);
}

/**
 * @param {Context} context
 * @param {HTMLElement} status
 * @param {() => boolean} left
 * @param {() => Promise<void>} run
 */
async function whenLoaded({ session }, status, left, run) {
  let { model } = session;
  while (model.state === "loading" && !left()) {
    tell(status, `${model.name} is loading …`, false);
    await new Promise((resolve) => setTimeout(resolve, WAIT));
    ({ model } = await askSessionAgain());
    if (model.state !== "loading" && !left()) return change({});
  }
  if (left()) return;
  if (model.state === "ready") await run();
  else
    tell(
      status,
      model.state === "failed"
        ? `The model ${model.name} could not be loaded: ${model.reason}`
        : (model.reason ?? ""),
      true,
    );
}

/** @param {HTMLElement} status @param {string} said @param {boolean} wrong */
function tell(status, said, wrong) {
  status.textContent = said.replaceAll("`", "");
  status.classList.toggle("wrong", wrong);
}

/**
 * @param {string} id
 * @param {string} label
 * @param {number} rows
 * @param {string} value
 * @param {number} most
 */
function field(id, label, rows, value, most) {
  const area = h("textarea", { id, rows, maxlength: most, spellcheck: "false", dir: "auto" });
  area.value = value;
  return {
    area,
    node: h("div", { class: "control stacked" }, h("label", { for: id }, label), area),
  };
}

/** @param {string} chosen @param {() => void} onChange */
function kindChoice(chosen, onChange) {
  const inputs = Object.entries(KINDS).map(([value, text]) => {
    const input = h("input", {
      type: "radio",
      name: "kind",
      id: `kind-${value}`,
      value,
      checked: value === chosen,
      change: onChange,
    });
    return h("span", { class: "segment" }, input, h("label", { for: `kind-${value}` }, text));
  });
  const node = h(
    "fieldset",
    { class: "segments" },
    h("legend", { class: "hidden" }, "View"),
    ...inputs,
  );
  const value = () =>
    /** @type {TextRequest["kind"]} */ (
      /** @type {HTMLInputElement} */ (node.querySelector("input:checked")).value
    );
  return { node, value };
}
