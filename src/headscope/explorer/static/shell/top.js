/** The bar at the top: where one can go, which run, which theme. */

import { h } from "./dom.js";
import { chosenTheme, chooseTheme } from "./look.js";
import { address, here, go } from "./place.js";

/** @typedef {import("../types.js").Session} Session */
/** @typedef {import("../types.js").RunSummary} RunSummary */

/** @type {Record<string, string>} */
export const PAGE_NAMES = { overview: "Overview", head: "Head card", clusters: "Clusters", findings: "Findings", tables: "Tables", text: "Try a text", compare: "Compare" };

/**
 * @param {HTMLElement} top
 * @param {Session} session
 * @param {RunSummary | null} run
 * @param {string} page
 * @param {() => void} onTheme
 */
export function fillTop(top, session, run, page, onTheme) {
  const focused = document.activeElement?.id;
  const brand = h("a", { class: "brand", href: "/overview" }, h("img", { src: "/explorer/static/icon.svg", alt: "", width: 26, height: 26 }), "Headscope");
  const links = Object.entries(PAGE_NAMES).map(([name, text]) =>
    h("a", { href: address(name, carried(name, run)), "aria-current": name === page ? "page" : null, id: `nav-${name}` }, text),
  );
  const nav = h("nav", { "aria-label": "Pages" }, ...links);
  top.replaceChildren(h("div", { class: "top-inner" }, brand, nav, h("span", { class: "space" }), runMenu(session, run, page), themeMenu(onTheme)));
  revealCurrent(nav);
  if (focused && top.querySelector(`#${CSS.escape(focused)}`)) document.getElementById(focused)?.focus({ preventScroll: true });
}

/** On a phone the pages do not fit side by side. @param {HTMLElement} nav */
function revealCurrent(nav) {
  const current = nav.querySelector("[aria-current]");
  if (current instanceof HTMLElement) nav.scrollLeft = current.offsetLeft - nav.clientWidth / 2 + current.offsetWidth / 2;
}

/** The settings that go along to another page. @param {string} name @param {RunSummary | null} run */
function carried(name, run) {
  const { head, measure } = here().params;
  const common = { run: run?.slug };
  if (name === "head") return { ...common, head };
  if (name === "overview") return { ...common, measure };
  return common;
}

/** @param {Session} session @param {RunSummary | null} run @param {string} page */
function runMenu(session, run, page) {
  if (!session.runs.length) return null;
  const options = session.runs.map((one) => {
    const state = one.state === "complete" ? "" : ` (${one.state})`;
    return h("option", { value: one.slug, selected: one.slug === run?.slug }, `${one.slug}${state}`);
  });
  const title = run ? [run.study, run.model, run.corpus].filter(Boolean).join(" · ") : "";
  const select = h("select", { id: "run", title }, ...options);
  select.addEventListener("change", () => go(page, { ...here().params, run: select.value }));
  return h("div", { class: "control" }, h("label", { for: "run" }, "Run"), select);
}

/** @param {() => void} onTheme */
function themeMenu(onTheme) {
  const names = { auto: "Auto", light: "Light", dark: "Dark" };
  const options = Object.entries(names).map(([value, text]) => h("option", { value, selected: value === chosenTheme() }, text));
  const select = h("select", { id: "theme" }, ...options);
  select.addEventListener("change", () => {
    chooseTheme(/** @type {import("./look.js").Choice} */ (select.value));
    onTheme();
  });
  return h("div", { class: "control" }, h("label", { for: "theme" }, "Theme"), select);
}
