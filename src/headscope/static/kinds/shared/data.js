/**
 * The payload: a JSON header and binary blocks that are decoded one layer, and of long inputs one
 * window, at a time.
 *
 * @typedef {object} Side
 * @property {string[]} labels
 * @property {number[]} special
 * @property {number[]} segments
 * @property {number[]} wordOf
 * @property {string[]} words
 * @property {number[]} gaps  what stands before each token in running text: 0 nothing, 1 a space, 2
 *   a new line
 *
 * @typedef {{block: number, shape: number[]}} FloatBlock
 * @typedef {{block: number, scales: number[]} | {tiles: number[][]}} LayerEntry  long inputs: rows
 *   of tiles, as in window.py
 * @typedef {{heads: number[], layers: Record<string, LayerEntry>, factors?: Record<string,
 *   FloatBlock>}} WeightSet
 * @typedef {{query: FloatBlock, key: FloatBlock, scaling: number, bias: FloatBlock | null, sink:
 *   number[] | null}} LayerNeurons
 * @typedef {{keyHeadOf: number[], softcap: number | null, layers: Record<string, LayerNeurons>}}
 *   Neurons
 *
 * @typedef {{layer: number, head: number, sentence: string, words: string}} Worth  what a head
 *   looks at
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
 * @property {[string, string][][]} roles  name and group of every head by layer; none in views of
 *   single heads
 * @property {Worth[]} [worth]  heads worth a look in this text, best first
 *
 * @typedef {object} Header
 * @property {number} version
 * @property {Kind} kind
 * @property {string} model
 * @property {boolean} causal
 * @property {number | null} prompt
 * @property {"auto" | "never" | "always" | null} bos  whether a BOS token was to begin the text
 * @property {number | null} tile  tokens of a tile, null where the input is not long
 * @property {Stack[]} stacks
 * @property {State} state
 *
 * @typedef {object} LayerWeights
 * @property {number[]} heads
 * @property {number[]} start  the first query and the first key token that it has
 * @property {number} rows
 * @property {number} columns
 * @property {Uint16Array | Float32Array} levels  head × row × column
 * @property {number[]} scales  weight of one level, by position of the head
 * @property {Float32Array | null} factors  head × column: what turns weights into norms
 * @property {number} reference  drawn fully opaque: 1, or the layer's largest where weights are
 *   norms
 *
 * @typedef {{values: Float32Array, shape: number[]}} Floats
 */

import { spanOf, tileNumbers } from "./window.js";

/** @import { Kind, State } from "./settings.js" */

const STEPS = 65535;
const CACHE_BYTES = 400e6;

/** Reads blocks on demand and keeps the recently used layers decoded. */
export class Data {
  /**
   * @param {Header} header
   * @param {(indices: number[]) => Promise<Uint8Array[]> | Uint8Array[]} readBlocks
   */
  constructor(header, readBlocks) {
    this.header = header;
    this.readBlocks = readBlocks;
    /** @type {Map<number, {bytes: number, value: Promise<any>}>} */
    this.cache = new Map();
    /** @type {Map<number, number>} */
    this.references = new Map();
    /**
     * The last summary, by what it is made of.
     * @type {{key: string, value: Promise<LayerWeights>} | null}
     */
    this.last = null;
  }

  /** @param {string} name @returns {Stack} */
  stack(name) {
    return this.header.stacks.find((stack) => stack.name === name) ?? this.header.stacks[0];
  }

  /**
   * @param {Stack} stack
   * @param {string} set
   * @param {number} layer
   * @param {number[]} window  first tile of queries and of keys; only long inputs have more than
   *   one
   * @returns {Promise<LayerWeights>}
   */
  async weights(stack, set, layer, window) {
    const chosen = stack.sets[set] ?? stack.sets.raw;
    const entry = chosen.layers[String(layer)];
    const parts =
      "tiles" in entry
        ? this.tiled(stack, chosen, entry.tiles, window)
        : this.whole(stack, chosen, entry);
    const found = await parts;
    if (!chosen.factors) return found;
    const { values } = await this.floats(chosen.factors[String(layer)]);
    const all = keysOf(stack).labels.length;
    const factors =
      "tiles" in entry ? columnsOf(values, all, found.start[1], found.columns) : values;
    const normed = { ...found, factors };
    return {
      ...normed,
      reference: "tiles" in entry ? largestWeight(normed) : this.largest(entry.block, normed),
    };
  }

  /**
   * What one picture shows: a layer, or the summary of the chosen layers and heads as one head.
   * @param {Stack} stack
   * @param {State} state
   * @returns {Promise<LayerWeights>}
   */
  shown(stack, state) {
    if (!isSummary(state)) return this.weights(stack, state.weights, state.layer, state.window);
    const key = JSON.stringify([
      stack.name,
      state.weights,
      state.layers,
      state.heads,
      state.window,
      state.summary,
    ]);
    if (this.last?.key !== key) this.last = { key, value: this.summary(stack, state) };
    return this.last.value;
  }

  /** @param {Stack} stack @param {State} state @returns {Promise<LayerWeights>} */
  async summary(stack, { weights, layers, heads, window, summary }) {
    const isMean = summary === "mean";
    const share = isMean ? 1 / Math.max(1, layers.length * heads.length) : 1;
    const first = await this.weights(stack, weights, layers[0] ?? stack.layers[0], window);
    const levels = new Float32Array(first.rows * first.columns);
    for (const layer of layers) {
      const found = await this.weights(stack, weights, layer, window);
      for (const head of heads) addTo(levels, found, found.heads.indexOf(head), isMean);
    }
    const together = { ...first, heads: [0], levels, scales: [share], factors: null };
    return { ...together, reference: first.factors ? largestWeight(together) : 1 };
  }

  /**
   * @param {Stack} stack
   * @param {WeightSet} chosen
   * @param {{block: number, scales: number[]}} entry
   * @returns {Promise<LayerWeights>}
   */
  async whole(stack, { heads }, entry) {
    const rows = stack.queries.labels.length;
    const columns = keysOf(stack).labels.length;
    const buffer = await this.decoded(entry.block, 2, heads.length * rows * columns);
    const scales = entry.scales.map((scale) => scale / STEPS);
    return {
      heads,
      start: [0, 0],
      rows,
      columns,
      levels: new Uint16Array(buffer),
      scales,
      factors: null,
      reference: 1,
    };
  }

  /**
   * The window of a layer, put together from its tiles.
   * @param {Stack} stack
   * @param {WeightSet} chosen
   * @param {number[][]} tiles
   * @param {number[]} window
   * @returns {Promise<LayerWeights>}
   */
  async tiled(stack, { heads }, tiles, window) {
    const tile = this.header.tile ?? 1;
    const [top, left] = [
      spanOf(stack.queries.labels.length, window[0], tile),
      spanOf(keysOf(stack).labels.length, window[1], tile),
    ];
    const [rows, columns] = [top.size, left.size];
    const levels = new Uint16Array(heads.length * rows * columns);
    const across = tileNumbers(left, tile);
    const wanted = tileNumbers(top, tile).flatMap((row) =>
      across.map((column) => ({ row, column, block: tiles[row][column] })),
    );
    const found = await this.tiles(
      wanted.map(({ block }) => block),
      heads.length,
    );
    /** @type {number[]} */
    let scales = [];
    wanted.forEach(({ row, column }, i) => {
      scales = Array.from(found[i].scales, (scale) => scale / STEPS);
      const part = {
        row: row * tile - top.start,
        column: column * tile - left.start,
        rows: Math.min(tile, top.end - row * tile),
        columns: Math.min(tile, left.end - column * tile),
      };
      place(levels, rows, columns, found[i].levels, part, heads.length);
    });
    return {
      heads,
      start: [top.start, left.start],
      rows,
      columns,
      levels,
      scales,
      factors: null,
      reference: 1,
    };
  }

  /**
   * Those that are not known yet are asked for together.
   * @param {number[]} blocks
   * @param {number} heads
   */
  tiles(blocks, heads) {
    const unknown = blocks.filter((block) => !this.cache.has(block));
    const reading = unknown.length
      ? Promise.resolve(this.readBlocks(unknown))
      : Promise.resolve([]);
    unknown.forEach((block, i) => {
      const value = reading.then((read) => untile(read[i], heads));
      this.keep(block, 2 * heads * (this.header.tile ?? 1) ** 2, value);
    });
    const found = blocks.map((block) => this.again(block));
    this.forgetOldest();
    return Promise.all(found);
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

  /**
   * @param {number} block
   * @param {number} width
   * @param {number} count
   * @returns {Promise<ArrayBuffer>}
   */
  decoded(block, width, count) {
    if (this.cache.has(block)) return this.again(block);
    const value = Promise.resolve(this.readBlocks([block]))
      .then(([read]) => inflate(read))
      .then((planes) => joinPlanes(planes, width));
    this.keep(block, width * count, value);
    this.forgetOldest();
    return value;
  }

  /**
   * What failed is not kept: it may be asked for again.
   * @param {number} block
   * @param {number} bytes
   * @param {Promise<any>} value
   */
  keep(block, bytes, value) {
    this.cache.set(block, { bytes, value });
    value.catch(() => this.cache.delete(block));
  }

  /** A known block, now the one used last. @param {number} block @returns {Promise<any>} */
  again(block) {
    const known = /** @type {{bytes: number, value: Promise<any>}} */ (this.cache.get(block));
    this.cache.delete(block);
    this.cache.set(block, known);
    return known.value;
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

/** Whether heads and layers are shown as one picture. @param {State} state @returns {boolean} */
export function isSummary({ summary, weights }) {
  return summary !== "each" && weights !== "rollout";
}

/**
 * @param {LayerWeights} layer
 * @param {number} place
 * @returns {Float64Array} value of one level in each column
 */
export function columnFactors(layer, place) {
  const { columns, scales, factors } = layer;
  return Float64Array.from(
    { length: columns },
    (_, key) => scales[place] * (factors ? factors[place * columns + key] : 1),
  );
}

/**
 * Add one head's weights, or keep the larger ones.
 * @param {Float32Array} sum
 * @param {LayerWeights} layer
 * @param {number} place
 * @param {boolean} isMean
 */
function addTo(sum, layer, place, isMean) {
  const { rows, columns, levels } = layer;
  const start = place * rows * columns;
  const factors = columnFactors(layer, place);
  for (let at = 0; at < rows * columns; at++) {
    const weight = levels[start + at] * factors[at % columns];
    if (isMean) sum[at] += weight;
    else if (weight > sum[at]) sum[at] = weight;
  }
}

/** @param {LayerWeights} layer @returns {number} */
function largestWeight(layer) {
  const most = new Float32Array(layer.rows * layer.columns);
  layer.heads.forEach((_, place) => addTo(most, layer, place, false));
  return most.reduce((a, b) => Math.max(a, b), 0) || 1;
}

/**
 * @param {Uint8Array} block
 * @param {number} heads
 * @returns {Promise<{levels: Uint16Array, scales: Float32Array}>}
 */
async function untile(block, heads) {
  const scales = new Float32Array(block.slice(0, 4 * heads).buffer);
  return {
    levels: new Uint16Array(joinPlanes(await inflate(block.subarray(4 * heads)), 2)),
    scales,
  };
}

/**
 * Copy a tile to where it belongs in a window.
 * @param {Uint16Array} window
 * @param {number} rows
 * @param {number} columns
 * @param {Uint16Array} tile
 * @param {{row: number, column: number, rows: number, columns: number}} part
 * @param {number} heads
 */
function place(window, rows, columns, tile, part, heads) {
  for (let head = 0; head < heads; head++) {
    for (let row = 0; row < part.rows; row++) {
      const from = (head * part.rows + row) * part.columns;
      window.set(
        tile.subarray(from, from + part.columns),
        (head * rows + part.row + row) * columns + part.column,
      );
    }
  }
}

/**
 * Some columns of every row.
 * @param {Float32Array} values
 * @param {number} all
 * @param {number} start
 * @param {number} count
 */
function columnsOf(values, all, start, count) {
  const rows = values.length / all;
  const cut = new Float32Array(rows * count);
  for (let row = 0; row < rows; row++)
    cut.set(values.subarray(row * all + start, row * all + start + count), row * count);
  return cut;
}

/** @param {string} text @returns {Uint8Array} */
export function fromBase64(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** @param {Uint8Array} bytes @returns {Promise<Uint8Array>} */
async function inflate(bytes) {
  const stream = new Blob([/** @type {BlobPart} */ (bytes)])
    .stream()
    .pipeThrough(new DecompressionStream("deflate"));
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
