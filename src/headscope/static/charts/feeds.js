/** Arcs on the map of heads: from the head that writes to the head whose choice it makes. */

import { s } from "../ui/dom.js";
import { percent } from "../ui/format.js";

/** @import { MapFeed } from "../explorer/types.js" */

const [THIN, THICK] = [1.2, 9]; // pixels of the weakest arc and of one that makes all of a choice

/**
 * Draw the arcs over the cells, instead of those that were there.
 * @param {HTMLElement} grid  a map by layer
 * @param {MapFeed[]} feeds
 */
export function drawFeeds(grid, feeds) {
  grid.querySelector(".feed-arcs")?.remove();
  if (!feeds.length) return;
  const box = grid.getBoundingClientRect();
  const middle = (/** @type {string} */ name) => {
    const cell = grid.querySelector(`[data-head="${name}"]`)?.getBoundingClientRect();
    if (!cell) return [0, 0];
    return [cell.left + cell.width / 2 - box.left, cell.top + cell.height / 2 - box.top];
  };
  const arcs = feeds.map(({ source, head, share }) => {
    const [[x, y], [right, below]] = [middle(source), middle(head)];
    const bend = Math.max(24, (below - y) / 2);
    const said = `${head} is fed by ${source}: ${percent(share)} of its choice`;
    const way = `M${x} ${y}C${x} ${y + bend} ${right} ${below - bend} ${right} ${below}`;
    const width = THIN + (THICK - THIN) * Math.min(1, share);
    const look = { d: way, "stroke-width": width.toFixed(1), "stroke-opacity": 0.75 };
    return s("path", { ...look, "data-feed": `${source} ${head}` }, s("title", {}, said));
  });
  const label = `Arcs: ${feeds.length} of the strongest feeds, from the head that writes`;
  const place = { viewBox: `0 0 ${box.width} ${box.height}`, preserveAspectRatio: "none" };
  const about = { class: "feed-arcs", role: "img", "aria-label": label, ...place };
  grid.append(s("svg", about, ...arcs));
}
