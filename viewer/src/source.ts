// SPDX-License-Identifier: Apache-2.0
/*
 * Answers, out of the report that this page is, or from the server that sent it. Nobody else in the
 * page knows which of the two it is. Answers are kept up to KEPT_BYTES, those used last longest.
 */

const KEPT_BYTES = 96 * 2 ** 20;

export interface Source {
  readonly isReport: boolean;
  /* Return the answer of `key`, or null if it was left out. Rejects if the server fails. */
  ask(key: string): Promise<Uint8Array | null>;
}

function fromBase64(text: string): Uint8Array {
  const raw = atob(text);
  const out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out;
}

async function inflate(packed: Uint8Array): Promise<Uint8Array> {
  const stream = new Blob([packed as BlobPart]).stream().pipeThrough(
    new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

class Kept implements Source {
  private readonly answers = new Map<string, Promise<Uint8Array | null>>();
  private readonly sizes = new Map<string, number>();
  private bytes = 0;

  constructor(readonly isReport: boolean,
              private readonly get: (key: string) => Promise<Uint8Array | null>) {}

  ask(key: string): Promise<Uint8Array | null> {
    const known = this.answers.get(key);
    if (known !== undefined) {
      this.answers.delete(key);
      this.answers.set(key, known);
      return known;
    }
    const answer = this.get(key).then((bytes) => {
      this.account(key, bytes?.byteLength ?? 0);
      return bytes;
    }, (error: unknown) => {
      this.answers.delete(key);
      throw error;
    });
    this.answers.set(key, answer);
    return answer;
  }

  private account(key: string, size: number): void {
    this.sizes.set(key, size);
    this.bytes += size;
    for (const old of this.answers.keys()) {
      if (this.bytes <= KEPT_BYTES) return;
      const oldSize = this.sizes.get(old);
      if (old === key || oldSize === undefined) continue;
      this.answers.delete(old);
      this.sizes.delete(old);
      this.bytes -= oldSize;
    }
  }
}

async function fetchAnswer(key: string): Promise<Uint8Array | null> {
  const response = await fetch(`a/${key}`, { cache: "no-store", redirect: "error" });
  if (response.status === 404) return null;
  if (!response.ok) throw new Error(`the server answered ${response.status} for ${key}`);
  return new Uint8Array(await response.arrayBuffer());
}

/* Open the page's source: the answers in the page, or the server if the page holds none. */
export function openSource(): Source {
  const held = document.getElementById("answers");
  const text = held?.textContent?.trim() ?? "";
  if (held === null || text === "") return new Kept(false, fetchAnswer);
  const answers = new Map(Object.entries(JSON.parse(text) as Record<string, string>));
  held.textContent = "";
  return new Kept(true, async (key) => {
    const packed = answers.get(key);
    return packed === undefined ? null : inflate(fromBase64(packed));
  });
}
