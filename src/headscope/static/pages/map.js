/** The map of heads: what every head of a run looks at, at first sight, with a card beside it. */

import { scrolling } from "../charts/table.js";
import { headMap, inOrder, roleInk } from "../charts/headmap.js";
import { drawFeeds } from "../charts/feeds.js";
import { ask } from "../explorer/api.js";
import { button, defaultSpec, menu } from "../explorer/controls.js";
import { failure } from "../explorer/messages.js";
import { address, change, go } from "../explorer/place.js";
import { h } from "../ui/dom.js";
import { percent } from "../ui/format.js";
import { overviewPage } from "./overview.js";
import { fold, headLink, pageTitle, summaryLine } from "./parts.js";
import { hintOf, portraitParts, roleBadge, sentenceOf } from "./portrait.js";

/**
 * @import { Context, Page } from "../explorer/main.js"
 * @import { Order } from "../charts/headmap.js"
 * @import { HeadCell, HeadMap, RunDetail } from "../explorer/types.js"
 */

const PAUSE = 120; // milliseconds that a pointer rests on a head before its hint is asked for
const HINT = 400; // pixels
const ARCS = 24; // feeds of a whole map that have an arc: more cannot be told apart
const MARGIN = 8;
const PHONE = "(max-width: 640px)";

/** @type {Page} */
export const mapPage = {
  needsRun: true,
  fluid: true,
  async render(context) {
    if (!context.run?.described) return overviewPage.render(context);
    const [run, map] = await Promise.all([
      ask("runs/{run}", context.run.slug),
      ask("runs/{run}/map", context.run.slug),
    ]);
    const page = new MapPage(context, run, map);
    return { nodes: page.nodes(), ready: () => page.ready(), leave: () => page.leave() };
  },
};

/** The map, its legend and the card of the head that is chosen. */
class MapPage {
  /** @param {Context} context @param {RunDetail} run @param {HeadMap} map */
  constructor(context, run, map) {
    this.run = run;
    this.map = map;
    this.params = context.params;
    /** @type {Order} */
    this.order = context.params.order === "role" ? "role" : "layer";
    this.feeds = context.params.feeds ?? "";
    this.roles = new Set((context.params.roles ?? "").split("|").filter(Boolean));
    this.chosen = this.cell(context.params.head) ?? telling(map);
    this.place = h("section", { class: "map-place", "aria-label": "Map of heads" });
    this.card = h("aside", { class: "map-card", id: "card", "aria-label": "The chosen head" });
    this.hint = h("div", { class: "map-hint", "aria-hidden": "true" });
    this.asked = 0;
    /** @type {(() => void) | null} */
    this.print = null;
    this.timer = 0;
  }

  /** @param {string | undefined} name */
  cell(name) {
    return this.map.cells.find((cell) => cell.name === name);
  }

  /** @returns {Node[]} */
  nodes() {
    const space = h("span", { class: "space" });
    return [
      pageTitle("What does each attention head look at?", space, this.tools()),
      summaryLine(this.map.summary),
      this.legend(),
      h("div", { class: "map-page" }, this.place, this.card),
      this.sentences(),
      this.hint,
    ];
  }

  ready() {
    this.draw();
    if (this.chosen) void this.open(this.chosen, false);
  }

  leave() {
    window.clearTimeout(this.timer);
    if (this.print) window.removeEventListener("beforeprint", this.print);
    document.body.classList.remove("with-sheet");
  }

  tools() {
    const orders = [
      { value: "layer", text: "by layer" },
      { value: "role", text: "by role" },
    ];
    const measures = [{ value: "", text: "what it looks at" }].concat(
      this.run.measures.map((measure) => ({ value: measure.name, text: measure.title })),
    );
    return h(
      "div",
      { class: "controls bare" },
      menu({
        id: "order",
        label: "Order",
        value: this.order,
        options: orders,
        onChange: (order) => {
          this.order = order === "role" ? "role" : "layer";
          change({ order: order === "role" ? order : null }, { replace: true, quiet: true });
          this.draw();
        },
      }),
      this.map.feeds.length
        ? menu({
            id: "feeds",
            label: "Fed by",
            value: this.feeds,
            options: [
              { value: "", text: "no arcs" },
              { value: "head", text: "of the chosen head" },
              { value: "all", text: "the strongest of all" },
            ],
            onChange: (feeds) => {
              this.feeds = feeds;
              change({ feeds: feeds || null }, { replace: true, quiet: true });
              this.drawFeeds();
            },
          })
        : null,
      menu({
        id: "colour-by",
        label: "Colour by",
        value: "",
        options: measures,
        onChange: (name) =>
          go("overview", { run: this.run.slug, measure: defaultSpec(this.run.measures, name) }),
      }),
    );
  }

  legend() {
    const chips = inOrder(this.map.roles).map(({ role, group, heads }) => {
      const about = {
        type: "button",
        class: "role-chip",
        "data-group": group,
        "aria-pressed": String(this.roles.has(role)),
        style: `--c: ${roleInk(group)}`,
      };
      const chip = h("button", about, h("i", {}), role, h("b", {}, heads));
      chip.addEventListener("click", () => this.toggle(role, chip));
      return chip;
    });
    return h("div", { class: "map-legend", role: "group", "aria-label": "Show only" }, ...chips);
  }

  /** @param {string} role @param {HTMLElement} chip */
  toggle(role, chip) {
    if (!this.roles.delete(role)) this.roles.add(role);
    chip.setAttribute("aria-pressed", String(this.roles.has(role)));
    this.drawn?.filter(this.roles);
    change({ roles: [...this.roles].join("|") || null }, { replace: true, quiet: true });
  }

  draw() {
    this.drawn = headMap(this.map, {
      order: this.order,
      room: this.place.clientWidth,
      onOpen: (cell) => void this.open(cell, true),
      onLook: (cell, node) => this.look(cell, node),
    });
    const [first, last] = this.map.nulls;
    const ends = this.map.causal
      ? `Bars: mean weight on ${this.nullName(first)}, then on the eight tokens before and on the ` +
        "word itself (ticked). "
      : `Bars: mean weight on ${first ?? "the first token"}, on eight tokens before and after the ` +
        `word itself (ticked)${last ? `, and on ${last}` : ""}. `;
    const key = `${ends}Colour: the part that the name accounts for. The stronger the ground, the more of the head is explained.`;
    this.place.replaceChildren(this.drawn.node, h("p", { class: "caption" }, key));
    this.drawFeeds();
    this.drawn.filter(this.roles);
    this.drawn.mark(this.chosen?.name ?? null);
  }

  /** Arcs from the heads that feed the chosen head, or all of the strongest, where asked for. */
  drawFeeds() {
    const grid = this.drawn?.node;
    const chosen = this.chosen?.name ?? "";
    if (!grid || this.order !== "layer") return;
    const strongest = [...this.map.feeds].sort((a, b) => b.share - a.share).slice(0, ARCS);
    const ofChosen = this.map.feeds.filter((feed) => [feed.head, feed.source].includes(chosen));
    drawFeeds(grid, { head: ofChosen, all: strongest }[this.feeds] ?? []);
  }

  /** @param {string | undefined} name */
  nullName(name) {
    return !name || name === "first token" ? "the first token" : name;
  }

  /**
   * The card of a head; a sheet from below on a phone, once it was chosen by hand.
   * @param {HeadCell} cell
   * @param {boolean} byHand
   */
  async open(cell, byHand) {
    const mine = ++this.asked;
    this.chosen = cell;
    this.drawn?.mark(cell.name);
    this.drawFeeds();
    this.look(null, this.card);
    if (byHand) {
      change({ head: cell.name }, { replace: true, quiet: true });
      this.card.classList.add("open");
      document.body.classList.add("with-sheet");
    }
    const portrait = await ask("runs/{run}/portraits/{head}", this.run.slug, cell.name).catch(
      failure,
    );
    if (mine !== this.asked) return;
    if (portrait instanceof HTMLElement) return this.card.replaceChildren(portrait);
    this.card.style.setProperty("--c", roleInk(cell.group));
    const room = Math.max(280, this.card.clientWidth - 44);
    const href = address("head", { run: this.run.slug, head: cell.name });
    this.card.replaceChildren(
      this.heading(cell),
      ...portraitParts(portrait, room),
      h("p", { class: "card-more" }, h("a", { href }, `All measures of ${cell.name}`)),
    );
    this.card.scrollTop = 0;
    if (byHand && window.matchMedia(PHONE).matches)
      document.getElementById(`map-${cell.name}`)?.scrollIntoView({ block: "center" });
  }

  /** @param {HeadCell} cell */
  heading(cell) {
    const at = this.map.cells.indexOf(cell);
    const step = (/** @type {number} */ by) =>
      button(by < 0 ? "‹" : "›", {
        class: "button small",
        id: `card-${by < 0 ? "previous" : "next"}`,
        "aria-label": `${by < 0 ? "Previous" : "Next"} head`,
        disabled: !this.map.cells[at + by],
        click: () => void this.step(by),
      });
    const act = { "aria-label": "Close", click: () => this.close() };
    const close = button("×", { class: "button small close", ...act });
    const space = h("span", { class: "space" });
    const name = h("h2", {}, cell.name);
    return h("div", { class: "card-head" }, name, roleBadge(cell), space, step(-1), step(1), close);
  }

  /** @param {number} by */
  async step(by) {
    const next = this.map.cells[this.map.cells.indexOf(/** @type {HeadCell} */ (this.chosen)) + by];
    await this.open(next, true);
    const button = document.getElementById(`card-${by < 0 ? "previous" : "next"}`);
    button?.focus({ preventScroll: true });
  }

  close() {
    this.card.classList.remove("open");
    document.body.classList.remove("with-sheet");
    document.getElementById(`map-${this.chosen?.name}`)?.focus();
  }

  /** @param {HeadCell | null} cell @param {Element} node */
  look(cell, node) {
    window.clearTimeout(this.timer);
    this.hint.classList.remove("on");
    if (!cell || cell === this.chosen || !window.matchMedia("(hover: hover)").matches) return;
    this.timer = window.setTimeout(async () => {
      const asked = this.timer;
      const parts = await hintOf(this.run.slug, cell, HINT - 30);
      if (asked !== this.timer) return;
      this.hint.replaceChildren(...parts);
      this.putHint(node.getBoundingClientRect());
    }, PAUSE);
  }

  /** Below the cell where there is room, else above it. @param {DOMRect} box */
  putHint(box) {
    const { offsetHeight: height, offsetWidth: width } = this.hint;
    const below = box.bottom + MARGIN;
    const top = below + height > window.innerHeight - MARGIN ? box.top - height - MARGIN : below;
    const left = box.left + box.width / 2 - width / 2;
    const most = window.innerWidth - width - MARGIN;
    this.hint.style.top = `${Math.max(MARGIN, top)}px`;
    this.hint.style.left = `${Math.max(MARGIN, Math.min(most, left))}px`;
    this.hint.classList.add("on");
  }

  /** All sentences, folded on screen and printed below the map; made when they are asked for. */
  sentences() {
    const folded = fold("All sentences");
    folded.className = "map-sentences";
    const fill = () => {
      const isNew = folded.children.length < 2;
      if (isNew) folded.append(scrolling(this.sentenceTable(), "All sentences"));
    };
    folded.addEventListener("toggle", fill);
    this.print = () => {
      fill();
      folded.open = true;
    };
    window.addEventListener("beforeprint", this.print);
    return folded;
  }

  sentenceTable() {
    const rows = this.map.cells.map((cell) => {
      const parts = sentenceOf(cell).map((part) => part?.textContent ?? "");
      const text = parts.join(" ");
      return h(
        "tr",
        {},
        h("td", {}, headLink(this.run.slug, cell.name)),
        h("td", {}, roleBadge(cell)),
        h("td", {}, text),
        h("td", { class: "numeric" }, cell.explained === null ? "even" : percent(cell.explained)),
      );
    });
    const head = ["Head", "Role", "What it looks at", "Explained"].map((name) =>
      h("th", { scope: "col", class: "plain" }, name),
    );
    return h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows));
  }
}

/**
 * The head that a visitor sees first: the one that follows syntax, or else looks furthest from the
 * ordinary, with the largest share.
 * @param {HeadMap} map
 */
function telling(map) {
  const groups = ["syntax", "repetition", "word class", "token", "marks", "position"];
  for (const group of groups) {
    const cells = map.cells.filter((cell) => cell.group === group);
    if (cells.length) return cells.sort((a, b) => (b.share ?? 0) - (a.share ?? 0))[0];
  }
  return map.cells[0];
}
