// SPDX-License-Identifier: Apache-2.0
/*
 * The engine in the page, for its script: two workers that read files and answer, one of them by
 * commands. The page holds worker and engine as texts, so nothing is fetched.
 */

import { fromBase64, inflate } from "../base64.ts";
import type { Reply, Request } from "./worker.ts";

export type Told = (what: string, share: number | null) => void;

interface Waiting { resolve(bytes: Uint8Array | null): void; reject(error: Error): void }

/* Read when the script begins: the page replaces its elements later. */
const [workerText, engineText] = ["worker", "engine"].map((id) =>
  document.getElementById(id)?.textContent?.trim() ?? "");

export function hasEngine(): boolean { return engineText !== ""; }

/* A worker, and what was asked of it. */
class Line {
  private readonly worker: Worker;
  private readonly waiting = new Map<number, Waiting>();
  private opening: { resolve(): void; reject(error: Error): void; told: Told } | null = null;
  private asked = 0;
  private readonly ready: Promise<void>;

  constructor() {
    const address = URL.createObjectURL(new Blob([workerText], { type: "text/javascript" }));
    this.worker = new Worker(address);
    this.worker.onmessage = ({ data }: MessageEvent<Reply>) => this.hear(data);
    this.worker.onerror = (event) => this.fail(event.message || "the worker ended");
    this.ready = inflate(fromBase64(engineText)).then((bytes) => {
      URL.revokeObjectURL(address);
      this.tell({ kind: "engine", bytes: bytes.buffer as ArrayBuffer });
    });
  }

  private tell(request: Request): void { this.worker.postMessage(request); }

  private fail(why: string): void {
    const error = new Error(why);
    this.opening?.reject(error);
    this.opening = null;
    for (const waiting of this.waiting.values()) waiting.reject(error);
    this.waiting.clear();
  }

  private hear(reply: Reply): void {
    if (reply.kind === "progress")
      this.opening?.told(reply.what, reply.total > 0 ? Math.min(1, reply.done / reply.total) : null);
    else if (reply.kind === "failed") this.fail(reply.why);
    else if (reply.kind === "opened") {
      this.opening?.resolve();
      this.opening = null;
    } else {
      const waiting = this.waiting.get(reply.id);
      this.waiting.delete(reply.id);
      if (reply.kind === "answer") waiting?.resolve(reply.bytes);
      else waiting?.reject(new Error(reply.why));
    }
  }

  async request(make: (id: number) => Request): Promise<Uint8Array | null> {
    await this.ready;
    const id = ++this.asked;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.tell(make(id));
    });
  }

  async open(files: File[], isForCommands: boolean, told: Told): Promise<void> {
    await this.ready;
    return new Promise((resolve, reject) => {
      this.opening = { resolve, reject, told };
      this.tell({ kind: "open", files, isForCommands });
    });
  }

  end(): void {
    this.worker.terminate();
    this.fail("cancelled");
  }
}

const COMMAND = /^\d+\/(explain|info|steps|sweep)$/;

export class EngineClient {
  private readonly views = new Line();
  private readonly commands = new Line();

  /* Read files, and tell how far it is. Rejects with the engine's words if one cannot be shown. */
  async open(files: File[], told: Told = () => {}): Promise<void> {
    await Promise.all([this.views.open(files, false, told), this.commands.open(files, true, () => {})]);
  }

  /* Answers of commands need no open(), if it was called: a command reads its file itself. */
  ask(key: string): Promise<Uint8Array | null> {
    return (COMMAND.test(key) ? this.commands : this.views).request((id) => ({ kind: "ask", id, key }));
  }

  /* Return what `drystone explain --message` says of an error text, in lines of so many columns. */
  async explain(message: string, columns: number): Promise<string> {
    const bytes = await this.commands.request((id) => ({ kind: "explain", id, message, columns }));
    return new TextDecoder().decode(bytes ?? new Uint8Array());
  }

  /* End the workers at once. Their memory goes with them. */
  end(): void {
    this.views.end();
    this.commands.end();
  }
}
