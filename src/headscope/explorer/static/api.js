/** Asking the server. Answers to GET are kept: a run does not change under a visitor's eyes until a reload. */

/** @type {Map<string, Promise<any>>} */
const known = new Map();

/** What the server said no to, in its own sentence. */
export class Refused extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/**
 * @param {string[]} path  parts, escaped here
 * @param {Record<string, string>} [query]
 * @returns {Promise<any>}
 */
export function ask(path, query = {}) {
  const search = new URLSearchParams(query).toString();
  const address = `/api/${path.map(encodeURIComponent).join("/")}${search ? `?${search}` : ""}`;
  const before = known.get(address);
  if (before) return before;
  const answer = fetch(address).then(read);
  known.set(address, answer);
  answer.catch(() => known.delete(address));
  return answer;
}

/** @returns {Promise<any>} the session as it is now */
export function askSession() {
  known.delete("/api/session");
  return ask(["session"]);
}

/** @param {Response} response @returns {Promise<any>} */
async function read(response) {
  const body = await response.json().catch(() => ({ error: `The server answered ${response.status}.` }));
  if (!response.ok) throw new Refused(response.status, body.error);
  return body;
}

/**
 * @typedef {{text: string, pair?: string | null, target?: string | null, generate?: number, kind: string, layer?: number, head?: number, blocks?: number[]}} TextRequest
 * @param {TextRequest} request
 * @param {AbortSignal} [signal]
 * @returns {Promise<{header: any, blocks: Uint8Array[]}>}
 */
export async function askTrace(request, signal) {
  const headers = { "content-type": "application/json" };
  const response = await fetch("/api/trace", { method: "POST", headers, body: JSON.stringify(request), signal });
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
  const answer = await askTrace({ ...request, kind: "head", blocks }); // the same blocks as of the model view
  return answer.blocks;
}

/** @param {ArrayBuffer} buffer @returns {{header: any, blocks: Uint8Array[]}} */
function unframe(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const { header, blocks } = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  let at = 4 + length;
  return {
    header,
    blocks: blocks.map((/** @type {number} */ size) => {
      at += size;
      return new Uint8Array(buffer, at - size, size);
    }),
  };
}
