// SPDX-License-Identifier: Apache-2.0
/*
 * Hold the engine of drystone.html against the native command: node engine.mjs ENGINE COMMAND FILE...
 * The command writes each file as a report, which holds its answers. The engine must give the same bytes
 * for every key. QUICK=1 leaves out the replays under other settings.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { inflateSync } from "node:zlib";
import { loadEngine, openFile } from "./engine_node.mjs";

const [enginePath, command, ...paths] = process.argv.slice(2);
const { Engine, Failure, module } = await loadEngine(enginePath);
const folder = mkdtempSync(join(tmpdir(), "engine-"));
const quick = process.env.QUICK ? ["--quick"] : [];
let compared = 0, refused = 0, databases = 0, wrong = 0;

/* Return the answers that the command puts into a report, by key; a text if it refuses the file. */
function nativeAnswers(path) {
  const page = join(folder, "report.html");
  const ran = spawnSync(command, ["view", ...quick, "--max-size", "1GiB", "-o", page, "--", basename(path)],
    { cwd: dirname(path), encoding: "utf8", maxBuffer: 2 ** 26 });
  if (ran.status !== 0) return ran.stderr.trim();
  const text = /<script type="application\/json" id="answers">(.*?)<\/script>/s.exec(readFileSync(page, "utf8"))[1];
  return new Map(Object.entries(JSON.parse(text)).map(([key, packed]) =>
    [key, inflateSync(Buffer.from(packed, "base64"))]));
}

function complain(path, key, why) {
  wrong++;
  console.error(`${path}: ${key}: ${why}`);
}

function engineOf(path) {
  const engine = new Engine(module, [openFile(path)]);
  engine.open();
  return engine;
}

/* A report says so of itself, and what it left out. */
function plain(about) {
  return { ...JSON.parse(about), kind: "", left_out: [] };
}

function compare(path, key, native, engine) {
  compared++;
  if (engine === null) complain(path, key, "the engine has no such answer");
  else if (key === "about") {
    if (JSON.stringify(plain(native)) !== JSON.stringify(plain(Buffer.from(engine))))
      complain(path, key, "the answers differ");
  } else if (!native.equals(Buffer.from(engine)))
    complain(path, key, `${native.length} bytes by the command, ${engine.length} by the engine`);
}

for (const path of paths) {
  const native = nativeAnswers(path);
  try {
    const engine = engineOf(path);
    if (typeof native === "string") complain(path, "file", `only the command refuses it: ${native}`);
    else for (const [key, bytes] of native) compare(path, key, bytes, engine.answer(key));
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    refused++;
    if (error.message.includes("a page reads no databases")) databases++;
    else if (error.message !== native) complain(path, "file", `the engine: ${error.message}\nthe command: ${native}`);
  }
}
rmSync(folder, { recursive: true });
console.log(`${paths.length} files, ${refused} of them refused, ${databases} as databases; ${compared} answers, ${wrong} wrong`);
process.exit(wrong > 0 || compared === 0 ? 1 : 0);
