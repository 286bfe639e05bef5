/** The shell: top bar, the page that the address names, and what to do when it cannot be shown. */

import { Refused, ask } from "./api.js";
import { h } from "../ui/dom.js";
import { PAGES } from "../pages/index.js";
import { applyTheme, onSystemTheme } from "./look.js";
import { failure, modelNote, runNotes, startPage } from "./messages.js";
import { here, watchPlace } from "./place.js";
import { fillTop, HELP, PAGE_NAMES } from "./top.js";

/**
 * @import { Memory } from "./place.js"
 * @import { RunSummary, Session } from "./types.js"
 */

/**
 * @typedef {object} Context
 * @property {Record<string, string>} params
 * @property {Session} session
 * @property {RunSummary | null} run
 * @property {number} room  width of the content in pixels
 *
 * @typedef {object} Page
 * @property {boolean} needsRun
 * @property {boolean} [fluid]  drawn again when the window changes its width
 * @property {(context: Context) => Promise<Shown>} render
 *
 * @typedef {object} Shown
 * @property {Node[]} nodes
 * @property {() => void} [ready]  called when the nodes are in the document
 * @property {() => void} [leave]  called before they are taken out
 */

const content = /** @type {HTMLElement} */ (document.getElementById("content"));
const top_ = /** @type {HTMLElement} */ (document.getElementById("top"));
let turn = 0;
let shownPage = "";
let hasMoved = false; // whether the visitor has gone on from the first page
let fluid = false;
let drawnWidth = 0;
/** @type {(() => void) | undefined} */
let leave;

/** @param {Memory | null} [memory]  of a place that the visitor comes back to */
async function show(memory = null) {
  const mine = ++turn;
  const { page, params } = here();
  content.setAttribute("aria-busy", "true");
  drawnWidth = window.innerWidth;
  const shown = await render(page, params).catch((error) => ({ nodes: [failure(error)] }));
  if (mine !== turn) return;
  leave?.();
  leave = /** @type {Shown} */ (shown).leave;
  const focused = document.activeElement?.id ?? "";
  const moved = page !== shownPage;
  shownPage = page;
  content.replaceChildren(...shown.nodes);
  /** @type {Shown} */ (shown).ready?.();
  if (memory || moved) window.scrollTo(0, memory?.scroll ?? 0);
  giveFocus(memory?.focused || focused);
  content.removeAttribute("aria-busy");
}

/** @param {string} page @param {Record<string, string>} params @returns {Promise<Shown>} */
async function render(page, params) {
  const session = await ask("session");
  const found = PAGES[page] ?? PAGES.map;
  const run = chosenRun(session, params.run);
  const unknown = found.needsRun && params.run && run?.slug !== params.run;
  fillTop(top_, session, run, page in PAGES ? page : "map", redrawAll);
  document.title =
    `${page === "embed" ? `Head ${params.head ?? ""}` : (PAGE_NAMES[page] ?? "Map of heads")} · ` +
    `${run?.slug ?? "Headscope"}`;
  document.documentElement.toggleAttribute("data-embedded", page === "embed");
  fluid = found.fluid ?? false;
  if (found.needsRun && !run) return { nodes: [startPage(session)] };
  if (unknown)
    throw new Refused(
      404,
      `There is no run ${params.run} here; choose one of ` +
        `${session.runs.map((one) => one.slug).join(", ")}.`,
    );
  const room = Math.max(
    280,
    content.clientWidth - 2 * parseFloat(getComputedStyle(content).paddingLeft),
  );
  if (found.needsRun && run?.state !== "complete")
    return { nodes: [h("div", { class: "title" }, h("h1", {}, run?.slug ?? "")), runNotes(run)] };
  const shown = await found.render({ params, session, run, room });
  const notes = found.needsRun && run && run.notes.length ? [runNotes(run)] : [];
  const other = page === "compare" || page === "embed" ? null : modelNote(session, run);
  return { ...shown, nodes: [...notes, ...(other ? [other] : []), ...withHelp(page, shown.nodes)] };
}

/**
 * The line that says what the page is for, under its title.
 * @param {string} page
 * @param {Node[]} nodes
 * @returns {Node[]}
 */
function withHelp(page, nodes) {
  const place = nodes.findIndex(
    (node) => node instanceof HTMLElement && node.classList.contains("title"),
  );
  if (!HELP[page]) return nodes;
  const help = h("p", { class: "help" }, HELP[page]);
  return [...nodes.slice(0, place + 1), help, ...nodes.slice(place + 1)];
}

/**
 * The named run, else one of the model that is loaded.
 * @param {Session} session
 * @param {string | undefined} slug
 * @returns {RunSummary | null}
 */
function chosenRun(session, slug) {
  const complete = session.runs.filter((one) => one.state === "complete");
  const named = session.runs.find((one) => one.slug === slug);
  return (
    named ??
    complete.find((one) => one.model === session.model.name) ??
    complete[0] ??
    session.runs[0] ??
    null
  );
}

/**
 * The focus stays on the control that was used, or goes to the page's name where that is gone.
 * @param {string} id
 */
function giveFocus(id) {
  const again = id ? document.getElementById(id) : null;
  if (again) return again.focus({ preventScroll: true });
  if (document.activeElement !== document.body || !hasMoved) return;
  const name = content.querySelector("h1");
  name?.setAttribute("tabindex", "-1");
  name?.focus({ preventScroll: true });
}

function redrawAll() {
  applyTheme();
  void show();
}

/** A page whose window becomes much wider or narrower is busy until it is drawn again. */
function watchWidth() {
  let timer = 0;
  window.addEventListener("resize", () => {
    const isNear = Math.abs(window.innerWidth - drawnWidth) < 24;
    if (!fluid || (isNear && timer === 0)) return;
    content.setAttribute("aria-busy", "true");
    window.clearTimeout(timer);
    timer = window.setTimeout(() => {
      timer = 0;
      void show();
    }, 150);
  });
}

applyTheme();
onSystemTheme(redrawAll);
watchPlace((memory) => {
  hasMoved = true;
  void show(memory);
});
watchWidth();
void show();
