// SPDX-License-Identifier: Apache-2.0
/* The engine of drystone.html in Node: its modules, bundled, and files of a disk as it reads them. */
import { build } from "esbuild";
import { openSync, readFileSync, readSync, statSync } from "node:fs";
import { basename } from "node:path";

export function openFile(path) {
  const fd = openSync(path);
  return {
    name: basename(path), size: statSync(path).size,
    read(at, count) {
      const bytes = new Uint8Array(count);
      return bytes.subarray(0, readSync(fd, bytes, 0, count, at));
    },
  };
}

/* Return what engine.ts exports, and the compiled `module`. */
export async function loadEngine(path) {
  const entry = new URL("../src/engine/engine.ts", import.meta.url).pathname;
  const made = await build({ entryPoints: [entry], bundle: true, write: false, format: "esm" });
  const code = Buffer.from(made.outputFiles[0].contents).toString("base64");
  const engine = await import(`data:text/javascript;base64,${code}`);
  return { ...engine, module: new WebAssembly.Module(readFileSync(path)) };
}
