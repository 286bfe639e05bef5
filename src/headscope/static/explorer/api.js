/**
 * Asking the server, or the files of a site, which hold the same answers.
 * Answers are kept: a run does not change under a visitor's eyes until a reload.
 */

import { h } from "../ui/dom.js";
import { isSite } from "./home.js";

/**
 * @import { Header } from "../kinds/shared/data.js"
 * @import { Difference } from "../pages/difference.js"
 * @import { Answers, Session, TextRequest } from "./types.js"
 */

if (isSite) {
  /** @type {any} */ (window).headscopeAnswer = (/** @type {unknown} */ answer) => {
    /** @type {any} */ (window).headscopeAnswer.taken = answer; // its script's load event follows
  };
}

/** @type {Map<string, Promise<unknown>>} */
const known = new Map();

/** What the server said no to, in its own sentence. */
export class Refused extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** @returns {Promise<Session>} the session as it is now */
export function askSessionAgain() {
  known.delete("session");
  return ask("session");
}

/**
 * The answer at an address; a file of a site holds all slices of a measure.
 * @template {keyof Answers} Path
 * @param {Path} path
 * @param {string[]} parts  those in braces
 * @returns {Promise<Answers[Path]>}
 */
export async function ask(path, ...parts) {
  const places = path
    .split("/")
    .map((part) => (part.startsWith("{") ? (parts.shift() ?? "") : part));
  const spec = places[places.length - 1];
  const isSliced = isSite && path.endsWith("{spec}");
  if (isSliced) places[places.length - 1] = spec.split("~")[0];
  const answer = await keep(places.map(encodeURIComponent).join("/"));
  if (!isSliced) return answer;
  if (!(spec in answer)) throw new Refused(404, `This site has no ${spec}.`);
  return answer[spec];
}

/** @param {string} address @returns {Promise<any>} */
function keep(address) {
  const answer =
    known.get(address) ?? (isSite ? readFile(address) : fetch(`/api/${address}`).then(read));
  known.set(address, answer);
  answer.catch(() => known.delete(address));
  return answer;
}

/**
 * What a file of a site holds. It is a script, because a page that was opened from a disk may read
 * nothing else; it hands its answer to `headscopeAnswer`.
 * @param {string} address
 * @returns {Promise<unknown>}
 */
function readFile(address) {
  return new Promise((resolve, reject) => {
    const script = h("script", { src: `data/${address}.js` });
    script.addEventListener("load", () => {
      const body = /** @type {any} */ (window).headscopeAnswer.taken;
      script.remove();
      if (typeof body === "object" && "error" in body) reject(new Refused(409, body.error));
      else resolve(body);
    });
    script.addEventListener("error", () =>
      reject(new Refused(404, "This site has no file for what the address names.")),
    );
    document.head.append(script);
  });
}

/** @param {Response} response @returns {Promise<unknown>} */
async function read(response) {
  const body = await response
    .json()
    .catch(() => ({ error: `The server answered ${response.status}.` }));
  if (!response.ok) throw new Refused(response.status, body.error);
  return body;
}

/**
 * @param {TextRequest} request
 * @param {AbortSignal} [signal]
 * @returns {Promise<{header: Header, blocks: Uint8Array[]}>}
 */
export async function askTrace(request, signal) {
  const headers = { "content-type": "application/json" };
  const response = await fetch("/api/trace", {
    method: "POST",
    headers,
    body: JSON.stringify(request),
    signal,
  });
  if (!response.ok) await read(response);
  return unframe(await response.arrayBuffer());
}

/**
 * Some blocks of a long text, whose trace comes without any.
 * @param {TextRequest} request
 * @param {number[]} blocks
 * @returns {Promise<Uint8Array[]>}
 */
export async function askBlocks(request, blocks) {
  // The same blocks as of the model view.
  const answer = await askTrace({ ...request, kind: "head", blocks });
  return answer.blocks;
}

/**
 * Why a head looks from one token at another, in a sentence.
 * @param {TextRequest} request
 * @returns {Promise<string>}
 */
export async function askWhy(request) {
  const { header } = await askTrace(request);
  return `${/** @type {{why: string}} */ (/** @type {unknown} */ (header)).why}.`;
}

/**
 * What changes in a text without some heads.
 * @param {TextRequest} request
 * @param {AbortSignal} [signal]
 * @returns {Promise<Difference>}
 */
export async function askDifference(request, signal) {
  const { header } = await askTrace({ ...request, difference: true }, signal);
  return /** @type {{difference: Difference}} */ (/** @type {unknown} */ (header)).difference;
}

/** @param {ArrayBuffer} buffer @returns {{header: Header, blocks: Uint8Array[]}} */
function unframe(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  /** @type {{header: Header, blocks: number[]}} */
  const { header, blocks } = JSON.parse(
    new TextDecoder().decode(new Uint8Array(buffer, 4, length)),
  );
  let at = 4 + length;
  return {
    header,
    blocks: blocks.map((size) => {
      at += size;
      return new Uint8Array(buffer, at - size, size);
    }),
  };
}
