// SPDX-License-Identifier: Apache-2.0
/* Bytes that a page holds as text: base64 of a zlib stream. */

export function fromBase64(text: string): Uint8Array {
  const raw = atob(text);
  const out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out;
}

export async function inflate(packed: Uint8Array): Promise<Uint8Array> {
  const stream = new Blob([packed as BlobPart]).stream().pipeThrough(
    new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
