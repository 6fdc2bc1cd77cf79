// SPDX-License-Identifier: Apache-2.0
/*
 * The workers of drystone.html. One shows the files and answers the page; the other runs commands, so that
 * no picture waits for a replay. See client.ts.
 */

import { Engine, nameFiles, runCommand } from "./engine.ts";
import type { Readable } from "./files.ts";

export type Request =
  | { kind: "engine"; bytes: ArrayBuffer }
  | { kind: "open"; files: File[]; isForCommands: boolean }
  | { kind: "ask"; id: number; key: string }
  | { kind: "explain"; id: number; message: string; columns: number };
export type Reply =
  | { kind: "progress"; what: string; done: number; total: number }
  | { kind: "opened" }
  | { kind: "failed"; why: string }
  | { kind: "answer"; id: number; bytes: Uint8Array | null }
  | { kind: "refusal"; id: number; why: string };

/* The types of a page's script know nothing of these two, which every worker has. */
declare class FileReaderSync { readAsArrayBuffer(blob: Blob): ArrayBuffer; }
const say = (reply: Reply) => (postMessage as (reply: Reply) => void)(reply);

const words = (error: unknown) => (error instanceof Error ? error.message : String(error));
const progress = (what: string, done: number, total: number) => say({ kind: "progress", what, done, total });

function toReadable(file: File): Readable {
  const reader = new FileReaderSync();
  return {
    name: file.name, size: file.size,
    read: (at, count) => new Uint8Array(reader.readAsArrayBuffer(file.slice(at, at + count))),
  };
}

let module: WebAssembly.Module | null = null, engine: Engine | null = null, isForCommands = false;

function answer(key: string): Uint8Array | null {
  if (engine === null) throw new Error("no file is open");
  const [file, name] = key.split("/");
  return isForCommands ? engine.command(Number(file), name) : engine.answer(key);
}

function act(request: Request): void {
  if (request.kind === "engine") module = new WebAssembly.Module(request.bytes);
  else if (module === null) throw new Error("there is no engine");
  else if (request.kind === "open") {
    engine = new Engine(module, request.files.map(toReadable), progress);
    isForCommands = request.isForCommands;
    if (!isForCommands) engine.open();
    say({ kind: "opened" });
  } else if (request.kind === "ask") say({ kind: "answer", id: request.id, bytes: answer(request.key) });
  else {
    const { out, err } = runCommand(module, nameFiles([]), ["explain", "--message", request.message], undefined,
      [`COLUMNS=${request.columns}`]);
    say({ kind: "answer", id: request.id, bytes: out.byteLength > 0 ? out : new TextEncoder().encode(err) });
  }
}

onmessage = ({ data }: MessageEvent<Request>) => {
  try {
    act(data);
  } catch (error) {
    say("id" in data ? { kind: "refusal", id: data.id, why: words(error) } : { kind: "failed", why: words(error) });
  }
};
