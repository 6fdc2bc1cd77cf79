// SPDX-License-Identifier: Apache-2.0
/*
 * The C engine as WebAssembly: see wasm/page.c for the other side. Runs in a worker, or in Node.
 *
 *     const engine = new Engine(module, files, progress);
 *     engine.open();                      // throws Failure with the engine's own words
 *     const bytes = engine.answer("about");
 *
 * A command runs in an instance of its own. Its memory goes with it.
 */

import { Directory, PreopenDirectory, WASI, WASIProcExit, type Fd } from "@bjorn3/browser_wasi_shim";
import { ReadableInode, Sink, openEmpty, type Readable } from "./files.ts";

export type Progress = (what: string, done: number, total: number) => void;

/* The engine refused or stopped. The message is for the reader. */
export class Failure extends Error {}

export interface Output { code: number; out: Uint8Array; err: string }

const OUTPUT_MOST = 64 * 2 ** 20;
const ERRORS_MOST = 2 ** 20;
const STATUS_FOUND = 0, STATUS_NO_SUCH = 1; // enum view_status
const STOPPED = -1;

interface Exports {
  memory: WebAssembly.Memory;
  page_allocate(bytes: number): number;
  page_release(at: number): void;
  page_open(paths: number, count: number): number;
  page_answer(key: number, answer: number): number;
  page_run(argc: number, argv: number): number;
}

/* Give each file a name that no other has and that is no path. */
export function nameFiles(files: readonly Readable[]): Map<string, Readable> {
  const named = new Map<string, Readable>();
  for (const file of files) {
    const plain = file.name.replace(/[/\0]/g, "_");
    const base = ["", ".", "..", "-"].includes(plain) ? `file ${plain}`.trim() : plain;
    let name = base;
    for (let i = 2; named.has(name); i++) name = `${i} ${base}`;
    named.set(name, file);
  }
  return named;
}

class Instance {
  readonly errors = new Sink(ERRORS_MOST);
  readonly output = new Sink(OUTPUT_MOST);
  private readonly exports: Exports;

  constructor(module: WebAssembly.Module, files: Map<string, Readable>,
              page: { progress: Progress; command: (argv: string[]) => Output }, environment: string[] = []) {
    const entries = [...files].map(([name, file]): [string, ReadableInode] => [name, new ReadableInode(file)]);
    const root = new PreopenDirectory(".", new Directory(new Map(entries)).contents);
    const fds: Fd[] = [openEmpty(), this.output, this.errors, root];
    const wasi = new WASI([], environment, fds, { debug: false });
    const instance = new WebAssembly.Instance(module, {
      wasi_snapshot_preview1: wasi.wasiImport,
      page: {
        progress: (what: number, length: number, done: number, total: number) =>
          page.progress(this.text(what, length), done, total),
        command: (argc: number, argv: number, text: number, length: number) => {
          const { code, out } = page.command(this.texts(argv, argc)), at = this.put(out);
          this.words.setUint32(text, at, true);
          this.words.setUint32(length, out.byteLength, true);
          return code;
        },
      },
    });
    this.exports = instance.exports as unknown as Exports;
    wasi.initialize({ exports: instance.exports as unknown as { memory: WebAssembly.Memory } });
  }

  private get words(): DataView { return new DataView(this.exports.memory.buffer); }

  private text(at: number, length: number): string {
    return new TextDecoder().decode(new Uint8Array(this.exports.memory.buffer, at, length).slice());
  }

  private texts(at: number, count: number): string[] {
    const bytes = new Uint8Array(this.exports.memory.buffer);
    return Array.from({ length: count }, (_, i) => {
      const from = this.words.getUint32(at + 4 * i, true);
      return this.text(from, bytes.indexOf(0, from) - from);
    });
  }

  private put(bytes: Uint8Array): number {
    const at = this.exports.page_allocate(bytes.byteLength + 1);
    if (at === 0) throw new Failure("the engine has no memory left");
    const memory = new Uint8Array(this.exports.memory.buffer);
    memory.set(bytes, at);
    memory[at + bytes.byteLength] = 0;
    return at;
  }

  private putText(text: string): number { return this.put(new TextEncoder().encode(text)); }

  private putTexts(texts: readonly string[]): number {
    const places = texts.map((text) => this.putText(text));
    const list = new Uint8Array(new Uint32Array([...places, 0]).buffer);
    return this.put(list);
  }

  open(paths: readonly string[]): number {
    return this.exports.page_open(this.putTexts(paths), paths.length);
  }

  run(argv: readonly string[]): number {
    try {
      return this.exports.page_run(argv.length, this.putTexts(argv));
    } catch (error) {
      if (error instanceof WASIProcExit) return error.code;
      throw error;
    }
  }

  answer(key: string): { status: number; bytes: Uint8Array } {
    const name = this.putText(key), answer = this.put(new Uint8Array(16));
    const status = this.exports.page_answer(name, answer);
    const at = this.words.getUint32(answer, true), length = this.words.getUint32(answer + 4, true);
    const bytes = status === STATUS_FOUND ? new Uint8Array(this.exports.memory.buffer, at, length).slice()
      : new Uint8Array();
    for (const used of [name, answer, status === STATUS_FOUND ? at : 0]) this.exports.page_release(used);
    return { status, bytes };
  }
}

const quiet: Progress = () => {};
const noCommand = (): Output => ({ code: STOPPED, out: new Uint8Array(), err: "" });

/* Run one of the commands that the page has: explain, info, steps, sweep. */
export function runCommand(module: WebAssembly.Module, files: Map<string, Readable>, argv: readonly string[],
                           progress = quiet, environment: string[] = []): Output {
  const instance = new Instance(module, files, { progress, command: noCommand }, environment);
  try {
    const code = instance.run(argv);
    return { code, out: instance.output.bytes(), err: instance.errors.text() };
  } catch (error) {
    return { code: STOPPED, out: new Uint8Array(), err: `${instance.errors.text()}the engine stopped: ${String(error)}` };
  }
}

export class Engine {
  private readonly files: Map<string, Readable>;
  private readonly instance: Instance;
  private stopped: string | null = null;

  constructor(private readonly module: WebAssembly.Module, files: readonly Readable[],
              private readonly progress = quiet) {
    const named = nameFiles(files);
    this.files = named;
    this.instance = new Instance(module, named, {
      progress, command: (argv) => runCommand(module, named, argv, progress) });
  }

  /* Read all files. Throws Failure if one cannot be shown. */
  open(): void {
    const code = this.guard(() => this.instance.open([...this.files.keys()]));
    if (code !== 0) throw new Failure(this.instance.errors.text().trim() || `the engine ended with ${code}`);
  }

  /* Return the answer of `key`, or null if there is none. */
  answer(key: string): Uint8Array | null {
    const { status, bytes } = this.guard(() => this.instance.answer(key));
    if (status === STATUS_NO_SUCH) return null;
    if (status !== STATUS_FOUND) throw new Failure(`no answer to ${key}: ${this.instance.errors.text().trim()}`);
    return bytes;
  }

  /* Return the JSON that a command prints of file `number`, as answer() does; open() is not needed. */
  command(number: number, name: string): Uint8Array {
    const file = [...this.files.keys()][number];
    if (file === undefined) throw new Failure(`there is no file ${number}`);
    const { code, out, err } = runCommand(this.module, this.files, [name, "--json", "--", file], this.progress);
    if (code < 0 || code > 1 || out.byteLength === 0) throw new Failure(`no answer of ${name}: ${err.trim()}`);
    return out;
  }

  /* Run work of the instance. A trap leaves it broken, so nothing is asked of it again. */
  private guard<T>(work: () => T): T {
    if (this.stopped !== null) throw new Failure(this.stopped);
    try {
      return work();
    } catch (error) {
      if (error instanceof Failure) throw error;
      this.stopped = `the engine stopped: ${String(error)} ${this.instance.errors.text().trim()}`.trim();
      throw new Failure(this.stopped);
    }
  }
}
