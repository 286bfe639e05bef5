/** The bar at the top: where one can go, which run, which theme. */

import { h } from "../ui/dom.js";
import { menu } from "./controls.js";
import { isSite } from "./home.js";
import { chosenTheme, chooseTheme } from "./look.js";
import { address, here, go } from "./place.js";

/**
 * @import { RunSummary, Session } from "./types.js"
 * @import { Choice } from "./look.js"
 */

const NO_MODEL = "No model is loaded; start headscope serve with --model.";
const ICON = "static/explorer/icon.svg";

/** @type {Record<string, string>} */
export const PAGE_NAMES = {
  map: "Map of heads",
  finder: "Find heads",
  head: "Head card",
  overview: "Measures",
  clusters: "Clusters",
  findings: "Findings",
  text: "Try a text",
  compare: "Compare",
};

/** What each page is for, in a line. @type {Record<string, string>} */
export const HELP = {
  overview:
    "Every square is a head; its colour says how large the measure is. Choose a measure, " +
    "point at a head, click it for its card.",
  finder:
    "Keep the heads whose measures lie where you want them; any two measures are the axes, a " +
    "third the colour. The address holds all of it.",
  head:
    "Where one head looks and what shows it, then everything that the run measured about it; " +
    "click a sentence to see all of its weights.",
  clusters:
    "Heads that attend alike lie close together. Point at one for its name, click it for its card.",
  findings: "What the paper claims, beside what this run measured, and whether it holds here.",
  text: "Type a text and see what each head of the loaded model looks at.",
  compare:
    "Two runs of one study side by side: which heads differ, and whether by more than chance.",
};

/**
 * Why a page would be empty.
 * @param {string} name
 * @param {Session} session
 * @param {RunSummary | null} run
 * @returns {string | undefined}
 */
function whyClosed(name, session, run) {
  if (name === "text")
    return session.model.state === "none"
      ? ((isSite && session.model.reason) || NO_MODEL).replaceAll("`", "")
      : undefined;
  if (name === "compare") return whyNoPair(session);
  if (!run) return "No run is open.";
  return run.closed[name]?.replaceAll("`", "");
}

/** Why there is nothing to compare. @param {Session} session @returns {string | undefined} */
export function whyNoPair(session) {
  const studies = session.runs.filter((one) => one.state === "complete").map((one) => one.study);
  if (studies.length < 2) return "Comparing needs two finished runs of one study.";
  return new Set(studies).size === studies.length
    ? `No two of these runs are of one study: ${studies.join(", ")}.`
    : undefined;
}

/**
 * @param {HTMLElement} top
 * @param {Session} session
 * @param {RunSummary | null} run
 * @param {string} page
 * @param {() => void} onTheme
 */
export function fillTop(top, session, run, page, onTheme) {
  const focused = document.activeElement?.id;
  const brand = h(
    "a",
    { class: "brand", href: address("map", {}) },
    h("img", { src: ICON, alt: "", width: 26, height: 26 }),
    "Headscope",
  );
  const links = Object.entries(PAGE_NAMES).map(([name, text]) => {
    const closed = whyClosed(name, session, run);
    const about = { "aria-current": name === page ? "page" : null, id: `nav-${name}` };
    if (!closed || name === "overview")
      return h("a", { ...about, href: address(name, carried(name, run)) }, text);
    const why = { role: "link", "aria-disabled": "true", tabindex: 0, title: closed };
    return h("a", { ...about, ...why, "aria-label": `${text}: ${closed}` }, text);
  });
  const nav = h("nav", { "aria-label": "Pages" }, ...links);
  top.replaceChildren(
    h(
      "div",
      { class: "top-inner" },
      brand,
      nav,
      h("span", { class: "space" }),
      runMenu(session, run, page),
      themeMenu(onTheme),
    ),
  );
  revealCurrent(nav);
  if (focused && top.querySelector(`#${CSS.escape(focused)}`))
    document.getElementById(focused)?.focus({ preventScroll: true });
}

/** On a phone the pages do not fit side by side. @param {HTMLElement} nav */
function revealCurrent(nav) {
  const current = nav.querySelector("[aria-current]");
  if (current instanceof HTMLElement)
    nav.scrollLeft = current.offsetLeft - nav.clientWidth / 2 + current.offsetWidth / 2;
}

/**
 * The settings that go along to another page.
 * @param {string} name
 * @param {RunSummary | null} run
 */
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
  const options = session.runs.map(({ slug, state }) => ({
    value: slug,
    text: state === "complete" ? slug : `${slug} (${state})`,
  }));
  return menu({
    id: "run",
    label: "Run",
    options,
    value: run?.slug ?? "",
    onChange: (slug) => go(page, { ...here().params, run: slug }),
    title: run ? [run.study, run.model, run.corpus].filter(Boolean).join(" · ") : "",
  });
}

/** @param {() => void} onTheme */
function themeMenu(onTheme) {
  const names = { auto: "Auto", light: "Light", dark: "Dark" };
  return menu({
    id: "theme",
    label: "Theme",
    options: Object.entries(names).map(([value, text]) => ({ value, text })),
    value: chosenTheme(),
    onChange: (theme) => {
      chooseTheme(/** @type {Choice} */ (theme));
      onTheme();
    },
  });
}
