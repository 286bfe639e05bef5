/** Making elements. Text only ever goes in as text nodes, whatever it contains. */

const SVG = "http://www.w3.org/2000/svg";

/** @typedef {Node | string | number | null | undefined | false} Child */
/**
 * @typedef {Record<string, string | number | boolean | null | undefined | ((event: Event) =>
 *   void)>} Attributes
 */

/**
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {Attributes} [attributes]
 * @param {Child[]} children
 * @returns {HTMLElementTagNameMap[Name]}
 */
export function h(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/**
 * @template {keyof SVGElementTagNameMap} Name
 * @param {Name} name
 * @param {Attributes} [attributes]
 * @param {Child[]} children
 * @returns {SVGElementTagNameMap[Name]}
 */
export function s(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

/**
 * @template {Element} Made
 * @param {Made} made
 * @param {Attributes} attributes
 * @param {Child[]} children
 * @returns {Made}
 */
function fill(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(key, value);
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    made.append(child instanceof Node ? child : String(child));
  }
  return made;
}
