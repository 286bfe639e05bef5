/** Taking a head elsewhere: the address of its page, and a frame for another page. */

import { h } from "../ui/dom.js";
import { address } from "../explorer/place.js";

/** @param {string} run @param {string} head @returns {HTMLElement} */
export function shareBox(run, head) {
  const link = absolute(address("head", { run, head }));
  const frame =
    `<iframe src="${escaped(absolute(address("embed", { run, head })))}" title="Head ${head}" ` +
    `width="100%" height="640" style="border:0"></iframe>`;
  return h(
    "details",
    { class: "share" },
    h("summary", { class: "button small", id: "share" }, "Link and embed"),
    h(
      "div",
      { class: "share-box" },
      line("share-link", "Link to this head", link),
      line("share-frame", "To embed it", frame),
    ),
  );
}

/** @param {string} id @param {string} label @param {string} value */
function line(id, label, value) {
  const field = h("input", { id, type: "text", readonly: true, value });
  const copy = h("button", { type: "button", class: "button small" }, "Copy");
  copy.addEventListener("click", () => {
    field.select();
    void navigator.clipboard?.writeText(value).then(() => {
      copy.textContent = "Copied";
    });
  });
  return h(
    "div",
    { class: "control stacked" },
    h("label", { for: id }, label),
    h("div", { class: "share-line" }, field, copy),
  );
}

/** @param {string} path @returns {string} */
function absolute(path) {
  return new URL(path, window.location.href).href;
}

/** @param {string} text @returns {string} inside an attribute in quotes */
function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
}
