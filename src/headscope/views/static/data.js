/**
 * The payload: a JSON header and binary blocks that are decoded one layer at a time.
 *
 * @typedef {object} Side
 * @property {string[]} labels
 * @property {number[]} special
 * @property {number[]} segments
 * @property {number[]} wordOf
 * @property {string[]} words
 * @property {boolean} rtl
 *
 * @typedef {{block: number, shape: number[]}} FloatBlock
 * @typedef {{heads: number[], layers: Record<string, {block: number, scales: number[]}>, factors?: Record<string, FloatBlock>}} WeightSet
 * @typedef {{query: FloatBlock, key: FloatBlock, scaling: number, bias: FloatBlock | null, sink: number[] | null}} LayerNeurons
 * @typedef {{keyHeadOf: number[], softcap: number | null, layers: Record<string, LayerNeurons>}} Neurons
 *
 * @typedef {object} Stack
 * @property {string} name
 * @property {number[]} layers
 * @property {number[]} heads
 * @property {Side} queries
 * @property {Side | null} keys  null where the keys are the queries
 * @property {Record<string, WeightSet>} sets
 * @property {Record<string, string>} missing
 * @property {Record<string, (number | null)[][]>} scores
 * @property {Neurons | null} neurons
 *
 * @typedef {object} Header
 * @property {number} version
 * @property {"head" | "model" | "neuron"} kind
 * @property {string} model
 * @property {boolean} causal
 * @property {number | null} prompt
 * @property {{light: string[], dark: string[]}} palette
 * @property {Stack[]} stacks
 * @property {import("./state.js").State} state
 *
 * @typedef {object} LayerWeights
 * @property {number[]} heads
 * @property {number} rows
 * @property {number} columns
 * @property {Uint16Array} levels  head × row × column
 * @property {number[]} scales  weight of one level, by position of the head
 * @property {Float32Array | null} factors  head × column: what turns weights into norms
 * @property {number} reference  drawn fully opaque: 1, or the layer's largest where weights are norms
 *
 * @typedef {{values: Float32Array, shape: number[]}} Floats
 */

const STEPS = 65535;
const CACHE_BYTES = 400e6;

/** Reads blocks on demand and keeps the recently used layers decoded. */
export class Data {
  /**
   * @param {Header} header
   * @param {(index: number) => Promise<Uint8Array> | Uint8Array} readBlock
   */
  constructor(header, readBlock) {
    this.header = header;
    this.readBlock = readBlock;
    /** @type {Map<number, {bytes: number, value: Promise<ArrayBuffer>}>} */
    this.cache = new Map();
    /** @type {Map<number, number>} */
    this.references = new Map();
  }

  /** @param {string} name @returns {Stack} */
  stack(name) {
    return this.header.stacks.find((stack) => stack.name === name) ?? this.header.stacks[0];
  }

  /**
   * @param {Stack} stack
   * @param {string} set
   * @param {number} layer
   * @returns {Promise<LayerWeights>}
   */
  async weights(stack, set, layer) {
    const chosen = stack.sets[set] ?? stack.sets.raw;
    const entry = chosen.layers[String(layer)];
    const rows = stack.queries.labels.length;
    const columns = keysOf(stack).labels.length;
    const buffer = await this.decoded(entry.block, 2, chosen.heads.length * rows * columns);
    const scales = entry.scales.map((scale) => scale / STEPS);
    const factors = chosen.factors ? (await this.floats(chosen.factors[String(layer)])).values : null;
    const layerWeights = { heads: chosen.heads, rows, columns, levels: new Uint16Array(buffer), scales, factors, reference: 1 };
    if (factors) layerWeights.reference = this.largest(entry.block, layerWeights);
    return layerWeights;
  }

  /** @param {number} block @param {LayerWeights} layer @returns {number} */
  largest(block, layer) {
    const known = this.references.get(block);
    if (known !== undefined) return known;
    const found = largestWeight(layer);
    this.references.set(block, found);
    return found;
  }

  /** @param {FloatBlock} entry @returns {Promise<Floats>} */
  async floats(entry) {
    const count = entry.shape.reduce((product, size) => product * size, 1);
    const buffer = await this.decoded(entry.block, 4, count);
    return { values: new Float32Array(buffer), shape: entry.shape };
  }

  /** @param {number} block @param {number} width @param {number} count @returns {Promise<ArrayBuffer>} */
  decoded(block, width, count) {
    const known = this.cache.get(block);
    if (known) {
      this.cache.delete(block);
      this.cache.set(block, known);
      return known.value;
    }
    const value = Promise.resolve(this.readBlock(block)).then(inflate).then((planes) => joinPlanes(planes, width));
    this.cache.set(block, { bytes: width * count, value });
    this.forgetOldest();
    return value;
  }

  forgetOldest() {
    let total = 0;
    for (const entry of this.cache.values()) total += entry.bytes;
    for (const [block, entry] of this.cache) {
      if (total <= CACHE_BYTES || this.cache.size === 1) return;
      this.cache.delete(block);
      total -= entry.bytes;
    }
  }
}

/** @param {Stack} stack @returns {Side} */
export function keysOf(stack) {
  return stack.keys ?? stack.queries;
}

/** @param {LayerWeights} layer @returns {number} */
function largestWeight({ heads, rows, columns, levels, scales, factors }) {
  let most = 0;
  for (let place = 0, at = 0; place < heads.length; place++) {
    for (let row = 0; row < rows; row++) {
      for (let key = 0; key < columns; key++, at++) {
        const weight = levels[at] * scales[place] * (factors ? factors[place * columns + key] : 1);
        if (weight > most) most = weight;
      }
    }
  }
  return most || 1;
}

/** @param {Uint8Array} bytes @returns {Promise<Uint8Array>} */
async function inflate(bytes) {
  const stream = new Blob([/** @type {BlobPart} */ (bytes)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/**
 * Undo the split into byte planes: all first bytes, all second bytes …
 * @param {Uint8Array} planes
 * @param {number} width
 * @returns {ArrayBuffer}
 */
function joinPlanes(planes, width) {
  const count = planes.length / width;
  const joined = new Uint8Array(planes.length);
  for (let plane = 0; plane < width; plane++) {
    const start = plane * count;
    for (let i = 0, at = plane; i < count; i++, at += width) joined[at] = planes[start + i];
  }
  return joined.buffer;
}

/** @param {string} text @returns {Uint8Array} */
export function fromBase64(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}
