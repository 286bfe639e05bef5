/** Asking the server. Answers to GET are kept: a run does not change under a visitor's eyes until a reload. */

/**
 * @typedef {import("../types.js").Session} Session
 * @typedef {import("../types.js").RunDetail} RunDetail
 * @typedef {import("../types.js").TextRequest} TextRequest
 * @typedef {import("../../../views/static/core/data.js").Header} Header
 */

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

/** @returns {Promise<Session>} */
export const askSession = () => ask(["session"]);

/** @returns {Promise<Session>} the session as it is now */
export function askSessionAgain() {
  known.delete("/api/session");
  return askSession();
}

/** @param {string} run @returns {Promise<RunDetail>} */
export const askRun = (run) => ask(["runs", run]);

/** @param {string} run @param {string} spec @returns {Promise<import("../types.js").Picture>} */
export const askPicture = (run, spec) => ask(["runs", run, "measures", spec]);

/** @param {string} run @param {string} x @param {string} y @returns {Promise<import("../types.js").Correlation>} */
export const askCorrelation = (run, x, y) => ask(["runs", run, "correlation"], { x, y });

/** @param {string} run @param {string} head @returns {Promise<import("../types.js").Card>} */
export const askCard = (run, head) => ask(["runs", run, "heads", head]);

/** @param {string} run @returns {Promise<import("../types.js").Clusters>} */
export const askClusters = (run) => ask(["runs", run, "clusters"]);

/** @param {string} run @returns {Promise<import("../types.js").Said>} */
export const askStatements = (run) => ask(["runs", run, "statements"]);

/** @param {string} a @param {string} b @returns {Promise<import("../types.js").Comparison>} */
export const askComparison = (a, b) => ask(["compare"], { a, b });

/** @param {string} a @param {string} b @param {string} spec @returns {Promise<import("../types.js").Difference>} */
export const askDifference = (a, b, spec) => ask(["compare", spec], { a, b });

/**
 * @template Answer
 * @param {string[]} path  parts, escaped here
 * @param {Record<string, string>} [query]
 * @returns {Promise<Answer>}
 */
function ask(path, query = {}) {
  const search = new URLSearchParams(query).toString();
  const address = `/api/${path.map(encodeURIComponent).join("/")}${search ? `?${search}` : ""}`;
  const answer = known.get(address) ?? fetch(address).then(read);
  known.set(address, answer);
  answer.catch(() => known.delete(address));
  return /** @type {Promise<Answer>} */ (answer);
}

/** @param {Response} response @returns {Promise<unknown>} */
async function read(response) {
  const body = await response.json().catch(() => ({ error: `The server answered ${response.status}.` }));
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

/** @param {ArrayBuffer} buffer @returns {{header: Header, blocks: Uint8Array[]}} */
function unframe(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  /** @type {{header: Header, blocks: number[]}} */
  const { header, blocks } = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  let at = 4 + length;
  return {
    header,
    blocks: blocks.map((size) => {
      at += size;
      return new Uint8Array(buffer, at - size, size);
    }),
  };
}
