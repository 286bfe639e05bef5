/** From deflated byte planes back to numbers. */

/** @param {Uint8Array} bytes @returns {Promise<Uint8Array>} */
export async function inflate(bytes) {
  const stream = new Blob([/** @type {BlobPart} */ (bytes)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/**
 * Undo the split into byte planes: all first bytes, all second bytes …
 * @param {Uint8Array} planes
 * @param {number} width
 * @returns {ArrayBuffer}
 */
export function joinPlanes(planes, width) {
  const count = planes.length / width;
  const joined = new Uint8Array(planes.length);
  for (let plane = 0; plane < width; plane++) {
    const start = plane * count;
    for (let i = 0, at = plane; i < count; i++, at += width) joined[at] = planes[start + i];
  }
  return joined.buffer;
}
