/**
 * Arrow keys among things of which one at a time takes the Tab key: lists, grids, columns.
 *
 * @typedef {{across: number, down: number}} Step
 */

/** @type {Record<string, Step>} */
const STEPS = {
  ArrowLeft: { across: -1, down: 0 },
  ArrowRight: { across: 1, down: 0 },
  ArrowUp: { across: 0, down: -1 },
  ArrowDown: { across: 0, down: 1 },
};

/** Where an arrow key points; null for other keys. @param {KeyboardEvent} event */
export function stepOf(event) {
  return event.ctrlKey || event.metaKey || event.altKey ? null : (STEPS[event.key] ?? null);
}

/**
 * The place in a list that a key leads to: arrows to a neighbour, Home and End to the ends.
 * @param {KeyboardEvent} event
 * @param {number} at
 * @param {number} count
 * @param {boolean} [rtl]  whether the list runs from right to left
 * @returns {number | null}  null for other keys; one beyond an end is no place
 */
export function placeInList(event, at, count, rtl = false) {
  if (event.key === "Home") return 0;
  if (event.key === "End") return count - 1;
  const step = stepOf(event);
  return step && at + (rtl ? -step.across : step.across) + step.down;
}

/**
 * What a key leads to in rows of things: arrows to a neighbour, Home and End to the ends of a row.
 * In a single row all arrows go along it.
 * @template Thing
 * @param {KeyboardEvent} event
 * @param {Thing[][]} rows
 * @param {(thing: Thing) => boolean} isHere
 * @returns {Thing | null}
 */
export function placeInRows(event, rows, isHere) {
  const row = rows.findIndex((things) => things.some(isHere));
  if (row < 0) return stepOf(event) && (rows[0]?.[0] ?? null);
  const column = rows[row].findIndex(isHere);
  if (event.key === "Home") return rows[row][0];
  if (event.key === "End") return rows[row][rows[row].length - 1];
  const step = stepOf(event);
  if (step && rows.length === 1) return rows[0][column + step.across + step.down] ?? null;
  return (step && rows[row + step.down]?.[column + step.across]) ?? null;
}

/**
 * Give the focus to one of several, and with it the Tab key.
 * @param {Iterable<Element>} all
 * @param {HTMLElement | SVGElement} next
 */
export function focusOne(all, next) {
  for (const other of all) if (other !== next) other.setAttribute("tabindex", "-1");
  next.setAttribute("tabindex", "0");
  next.focus();
}

/**
 * Heads in a drawing: looked at by the pointer or the focus, opened by a click or Enter, and moved
 * among by arrow keys.
 * @typedef {object} HeadActs
 * @property {(name: string) => void} onOpen
 * @property {(name: string | null, node: Element) => void} [onLook]
 *
 * @param {GlobalEventHandlers & Element} root
 * @param {() => (HTMLElement | SVGElement)[][]} rows  elements with the name of a head
 * @param {HeadActs} acts
 */
export function listenToHeads(root, rows, { onOpen, onLook }) {
  const nodeOf = (/** @type {Event} */ { target }) =>
    /** @type {HTMLElement | SVGElement | null} */ (
      target instanceof Element ? target.closest("[data-head]") : null
    );
  const look = (/** @type {Event} */ event) => {
    const node = nodeOf(event);
    onLook?.(node?.dataset.head ?? null, node ?? root);
  };
  const lookAway = () => onLook?.(null, root);
  root.addEventListener("pointerover", look);
  root.addEventListener("focusin", look);
  root.addEventListener("pointerleave", lookAway);
  root.addEventListener("focusout", lookAway);
  root.addEventListener("click", (event) => {
    const name = nodeOf(event)?.dataset.head;
    if (name) onOpen(name);
  });
  root.addEventListener("keydown", (event) => {
    const node = nodeOf(event);
    const name = node?.dataset.head;
    if (!name) return;
    const nodes = rows();
    const next = placeInRows(event, nodes, (other) => other === node);
    if (next) focusOne(nodes.flat(), next);
    else if (event.key === "Enter") onOpen(name);
    else if (!stepOf(event)) return;
    event.preventDefault();
  });
}
