// SPDX-License-Identifier: Apache-2.0
/*
 * Answers: out of the report that this page is, from the engine in it, or from the server that sent it.
 * Nobody else in the page knows which it is. Answers are kept up to KEPT_BYTES, those used last longest.
 */

import { fromBase64, inflate } from "./base64.ts";
import { EngineClient, hasEngine, type Told } from "./engine/client.ts";

const KEPT_BYTES = 96 * 2 ** 20;

export interface Source {
  readonly isReport: boolean; // answers were left out
  /* Return the answer of `key`, or null if it was left out. Rejects if the server fails. */
  ask(key: string): Promise<Uint8Array | null>;
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

/* Take what an element of the page holds as JSON: texts by name. Its memory is given back. */
function takeTexts(id: string): Map<string, string> {
  const held = document.getElementById(id), text = held?.textContent?.trim() ?? "";
  if (held === null || text === "") return new Map();
  held.textContent = "";
  return new Map(Object.entries(JSON.parse(text) as Record<string, string>));
}

/* Start the engine on recordings that the page holds, packed, by number and name: "0/run.pickle". */
async function openRecordings(packed: Map<string, string>): Promise<EngineClient> {
  const files = await Promise.all([...packed].map(async ([key, text]) =>
    new File([await inflate(fromBase64(text)) as BlobPart], key.slice(key.indexOf("/") + 1))));
  const client = new EngineClient();
  await client.open(files);
  return client;
}

/* Its answers, and for all others the engine, if the recordings are here. */
function openReport(answers: Map<string, string>): Source {
  const recordings = hasEngine() ? takeTexts("recordings") : new Map<string, string>();
  const hasAll = recordings.size > 0;
  let engine: Promise<EngineClient> | null = null;
  return new Kept(!hasAll, async (key) => {
    const packed = answers.get(key);
    if (packed !== undefined) return inflate(fromBase64(packed));
    if (!hasAll) return null;
    engine ??= openRecordings(recordings);
    return (await engine).ask(key);
  });
}

/* Open files of the reader's by the engine in the page. */
export async function openFiles(client: EngineClient, files: File[], told: Told): Promise<Source> {
  const source = new Kept(false, (key) => client.ask(key)), opened = client.open(files, told);
  source.ask("0/explain").catch(() => {}); // the verdict is what is looked at first
  await opened;
  return source;
}

/* Tell whether the page holds the engine and nothing to show yet. */
export function waitsForFiles(): boolean {
  return hasEngine() && (document.getElementById("answers")?.textContent?.trim() ?? "") === "";
}

/* Open the page's source: its answers, or the server. */
export function openSource(): Source {
  const answers = takeTexts("answers");
  return answers.size > 0 ? openReport(answers) : new Kept(false, fetchAnswer);
}
