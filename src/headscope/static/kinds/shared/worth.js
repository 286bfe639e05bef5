/**
 * Which heads of this text are worth a look, and why; each one click away. Also says what is
 * hidden.
 */

import { button } from "../../ui/controls.js";
import { h } from "../../ui/dom.js";
import { nameHead } from "../../ui/heads.js";
import { hiddenNames } from "./caveats.js";

/**
 * @import { Control } from "../../ui/controls.js"
 * @import { Data, Worth } from "./data.js"
 * @import { Store } from "./state.js"
 */

/**
 * @param {Data} data
 * @param {Store} store
 * @param {() => {layer: number, heads: number[]}} shown
 * @param {(one: Worth) => void} open
 * @returns {Control}
 */
export function worthControl(data, store, shown, open) {
  const why = h("span", { class: "hs-why" });
  const others = h("span", {
    class: "hs-worth-others",
    role: "group",
    "aria-label": "Heads worth a look",
  });
  const node = h("p", { class: "hs-worth" }, why, others);
  const update = () => {
    const worth =
      store.state.weights === "rollout" ? [] : (data.stack(store.state.stack).worth ?? []);
    const { layer, heads } = shown();
    const current =
      heads.length === 1 ? worth.filter((one) => one.layer === layer && one.head === heads[0]) : [];
    why.textContent = current.map((one) => `${one.sentence} `).join("");
    others.replaceChildren(
      ...worth.map((one) =>
        suggestion(
          one,
          current.some((now) => now.layer === one.layer && now.head === one.head),
          open,
        ),
      ),
    );
    node.hidden = worth.length === 0;
  };
  return { node, update };
}

/** @param {Worth} one @param {boolean} on @param {(one: Worth) => void} open */
function suggestion(one, on, open) {
  const name = nameHead(one.layer, one.head);
  const made = button("", one.sentence, () => open(one));
  made.append(h("strong", {}, name), ` ${one.words}`);
  made.classList.add("hs-suggestion");
  made.setAttribute("aria-pressed", String(on));
  return made;
}

/**
 * What is shown and what is hidden, in one line.
 * @param {Control[]} controls
 * @returns {HTMLElement}
 */
export function aboutLine(...controls) {
  return h("div", { class: "hs-about" }, ...controls.map(({ node }) => node));
}

/**
 * Says which tokens are left out and how much attention goes to them; a click shows them again.
 * @param {Store} store
 * @returns {Control & {say: (text: string) => void}}
 */
export function hiddenControl(store) {
  const text = h("span", {});
  const show = button("Show", "Show what is hidden", () => store.set({ hide: [] }));
  const node = h("p", { class: "hs-hidden-note" }, text, show);
  const say = (/** @type {string} */ share) =>
    (text.textContent = `${hiddenNames(store.state.hide)} hidden: ${share} `);
  return { node, say, update: () => (node.hidden = store.state.hide.length === 0) };
}
