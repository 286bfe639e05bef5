/** Two maps of heads side by side, lines between matched heads, and what changed in sentences. */

import { headMap, roleInk } from "../charts/headmap.js";
import { ask } from "../explorer/api.js";
import { withoutName } from "../explorer/heads.js";
import { go } from "../explorer/place.js";
import { h, s } from "../ui/dom.js";
import { counted } from "../ui/format.js";
import { controls, pathOf } from "../draw/line.js";
import { fold, headLink, section } from "./parts.js";
import { roleBadge } from "./portrait.js";

/**
 * @import { Point } from "../draw/line.js"
 * @import { HeadCell, HeadMap, MatchedHeads } from "../explorer/types.js"
 */

const MOST = 12; // changes that are told at once
const BETWEEN = 56; // pixels between the two maps
const WIDE = 900;

/**
 * @param {string} a
 * @param {string} b
 * @param {MatchedHeads[] | null} matches  null where heads belong together by their places
 * @param {number} room
 * @returns {Promise<{said: string, nodes: Node[]}>}  what changed in a sentence, and all of it
 */
export async function pairOfMaps(a, b, matches, room) {
  const [first, second] = await Promise.all([ask("runs/{run}/map", a), ask("runs/{run}/map", b)]);
  const pairs = pairsOf(first, second, matches);
  const wide = room > WIDE;
  const drawn = [first, second].map((map, i) => {
    const run = [a, b][i];
    return headMap(map, {
      order: "layer",
      room: wide ? (room - BETWEEN) / 2 : room,
      prefix: `map-${i ? "second" : "first"}`,
      onOpen: (cell) => go("head", { run, head: cell.name }),
    }).node;
  });
  const lines = s("svg", { class: "match-lines", "aria-hidden": "true" });
  const maps = h(
    "div",
    { class: "map-pair", "data-wide": String(wide) },
    h("section", {}, h("h2", {}, a), drawn[0], caption(first)),
    h("section", {}, h("h2", {}, b), drawn[1], caption(second)),
    wide && matches ? lines : null,
  );
  if (wide && matches) new ResizeObserver(() => drawLines(lines, pairs)).observe(maps);
  const changed = pairs
    .filter(([one, other]) => one.role !== other.role)
    .sort((x, y) => moved(y) - moved(x));
  const said = sayChanges(changed.length, pairs.length, first.cells.length);
  return { said, nodes: changed.length ? [maps, changes(a, b, changed)] : [maps] };
}

/**
 * @param {HeadMap} first
 * @param {HeadMap} second
 * @param {MatchedHeads[] | null} matches
 * @returns {[HeadCell, HeadCell][]}
 */
function pairsOf(first, second, matches) {
  const names = matches
    ? matches.filter((match) => match.good).map((match) => [match.first, match.second])
    : first.cells.map((cell) => [cell.name, cell.name]);
  return names.flatMap(([one, other]) => {
    const cells = [
      first.cells.find((cell) => cell.name === one),
      second.cells.find((cell) => cell.name === other),
    ];
    return cells[0] && cells[1] ? [[cells[0], cells[1]]] : [];
  });
}

/** @param {SVGSVGElement} lines @param {[HeadCell, HeadCell][]} pairs */
function drawLines(lines, pairs) {
  const frame = lines.getBoundingClientRect();
  /** @param {string} id @param {"left" | "right"} side @returns {Point} */
  const edge = (id, side) => {
    const box = /** @type {HTMLElement} */ (document.getElementById(id)).getBoundingClientRect();
    return [box[side] - frame.left, box.top + box.height / 2 - frame.top];
  };
  const curves = pairs.map(([one, other]) => {
    const from = edge(`map-first-${one.name}`, "right");
    const to = edge(`map-second-${other.name}`, "left");
    const d = pathOf([from, ...controls({ from, to }), to]);
    const title = s("title", {}, `${one.name} and ${other.name}`);
    return s("path", { d, style: `stroke: ${roleInk(one.group)}` }, title);
  });
  lines.replaceChildren(...curves);
}

/** What the heads of a run do. @param {HeadMap} map */
function caption({ summary }) {
  return h("p", { class: "caption" }, summary);
}

/** @param {number} changed @param {number} pairs @param {number} heads  of the first run */
function sayChanges(changed, pairs, heads) {
  if (!pairs) return "No two heads match well enough to be compared by name.";
  const rest = pairs < heads ? " The others have no partner." : "";
  return (
    `${counted(changed, "head")} of ${pairs} ${changed === 1 ? "is" : "are"} called otherwise ` +
    `in the second run.${rest}`
  );
}

/**
 * Heads that are called otherwise in the second run.
 * @param {string} a
 * @param {string} b
 * @param {[HeadCell, HeadCell][]} changed
 */
function changes(a, b, changed) {
  const items = changed.map(([one, other]) => {
    const link = other.name === one.name ? null : headLink(b, other.name);
    const sentence = withoutName(other.name, other.sentence).split(". ")[0];
    const looks = h("span", { class: "faint" }, ` ${sentence}.`);
    const before = [headLink(a, one.name), " ", roleBadge(one), " → "];
    return h("li", {}, ...before, link, " ", roleBadge(other), looks);
  });
  const list = (/** @type {HTMLElement[]} */ some) => h("ul", { class: "changes" }, ...some);
  const more = items.length > MOST && fold(`${items.length - MOST} more`, list(items.slice(MOST)));
  return section("What changed", { id: "changes" }, list(items.slice(0, MOST)), more);
}

/** How much of a head's attention changed its name. @param {[HeadCell, HeadCell]} pair */
function moved([one, other]) {
  return Math.max(one.explained ?? 0, other.explained ?? 0);
}
