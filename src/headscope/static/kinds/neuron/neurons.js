/**
 * One row of weights taken apart: query × key, summed, scaled, capped, biased, through the softmax.
 *
 * @typedef {object} Head
 * @property {Float32Array} query  query × dim
 * @property {Float32Array} key  key × dim
 * @property {number} dim
 * @property {number} keys
 * @property {number} scaling
 * @property {number | null} softcap
 * @property {((query: number, key: number) => number) | null} bias
 * @property {number | null} sink
 * @property {number[]} sharing  the heads that use the same key vectors
 *
 * @typedef {object} Parts
 * @property {Float64Array} products  key × dim
 * @property {Float64Array} dots
 * @property {Float64Array} scaled
 * @property {Float64Array} capped
 * @property {Float64Array} scores  with mask and position bias
 * @property {Float64Array} weights
 * @property {number} sink  weight of the sink
 */

/** @import { Data, Floats, Stack } from "../shared/data.js" */

/**
 * @param {Data} data
 * @param {Stack} stack
 * @param {number} layer
 * @param {number} head
 * @returns {Promise<Head>}
 */
export async function loadHead(data, stack, layer, head) {
  const all = stack.neurons;
  if (!all) throw new Error("query and key vectors were not captured");
  const parts = all.layers[String(layer)];
  const [query, key] = await Promise.all([data.floats(parts.query), data.floats(parts.key)]);
  const bias = parts.bias ? await data.floats(parts.bias) : null;
  const place = stack.heads.indexOf(head);
  const group = all.keyHeadOf[place];
  const [, keys, dim] = key.shape;
  return {
    query: part(query, place),
    key: part(key, group),
    dim,
    keys,
    scaling: parts.scaling,
    softcap: all.softcap,
    bias: bias && reader(bias, place),
    sink: parts.sink ? parts.sink[place] : null,
    sharing: stack.heads.filter((_, other) => all.keyHeadOf[other] === group),
  };
}

/** @param {Floats} floats @param {number} index @returns {Float32Array} */
function part(floats, index) {
  const size = floats.shape[1] * floats.shape[2];
  return floats.values.subarray(index * size, (index + 1) * size);
}

/**
 * Reads a bias that may be the same for all heads or all queries.
 * @param {Floats} floats
 * @param {number} place
 * @returns {(query: number, key: number) => number}
 */
function reader({ values, shape }, place) {
  const [heads, queries, keys] = [1, 1, 1, ...shape].slice(-3);
  const start = heads === 1 ? 0 : place * queries * keys;
  return (query, key) =>
    values[start + (queries === 1 ? 0 : query * keys) + (keys === 1 ? 0 : key)];
}

/** @param {Head} head @param {number} query @returns {Parts} */
export function takeApart(head, query) {
  const { dim, keys } = head;
  const products = new Float64Array(keys * dim);
  const dots = new Float64Array(keys);
  for (let key = 0; key < keys; key++) {
    for (let d = 0; d < dim; d++) {
      const product = head.query[query * dim + d] * head.key[key * dim + d];
      products[key * dim + d] = product;
      dots[key] += product;
    }
  }
  const scaled = dots.map((dot) => dot * head.scaling);
  const { softcap, bias } = head;
  const capped =
    softcap === null ? scaled : scaled.map((score) => softcap * Math.tanh(score / softcap));
  const scores = bias === null ? capped : capped.map((score, key) => score + bias(query, key));
  return { products, dots, scaled, capped, scores, ...softmax(scores, head.sink) };
}

/**
 * @param {Float64Array} scores
 * @param {number | null} sink
 * @returns {{weights: Float64Array, sink: number}}
 */
function softmax(scores, sink) {
  const most = scores.reduce((a, b) => Math.max(a, b), sink ?? -Infinity);
  const powers = scores.map((score) => Math.exp(score - most));
  const sinkPower = sink === null ? 0 : Math.exp(sink - most);
  const total = powers.reduce((a, b) => a + b, sinkPower);
  return { weights: powers.map((power) => power / total), sink: sinkPower / total };
}

/**
 * The attended tokens as they stand in the text, or the strongest first.
 * @param {Parts} parts
 * @param {string} sort
 * @returns {number[]}
 */
export function keyOrder({ scores }, sort) {
  const keys = Array.from(scores, (_, key) => key);
  return sort === "text" ? keys : keys.sort((a, b) => scores[b] - scores[a] || a - b);
}

/**
 * The head with its attended tokens in another order.
 * @param {Head} head
 * @param {number[]} order
 * @returns {Head}
 */
export function withKeys(head, order) {
  const { dim, bias } = head;
  const key = new Float32Array(head.key.length);
  order.forEach((from, row) => key.set(head.key.subarray(from * dim, (from + 1) * dim), row * dim));
  return { ...head, key, bias: bias && ((query, row) => bias(query, order[row])) };
}

/**
 * The order of the neurons: by number, or by what each adds to the scores of the attended keys.
 * @param {Parts} parts
 * @param {number} dim
 * @param {string} order
 * @returns {number[]}
 */
export function neuronOrder(parts, dim, order) {
  const neurons = Array.from({ length: dim }, (_, d) => d);
  if (order === "number") return neurons;
  const sums = neurons.map((d) =>
    parts.weights.reduce((sum, weight, key) => sum + weight * parts.products[key * dim + d], 0),
  );
  return neurons.sort((a, b) => sums[b] - sums[a] || a - b);
}
