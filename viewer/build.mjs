// SPDX-License-Identifier: Apache-2.0
/*
 * Make the pages: a file each, page.html and fleet.html, with script and style inside. The policy names
 * both by their hashes. So nothing else that comes to stand in a page runs or styles it. `--check`
 * compares with the tracked files instead of writing them. `--engine WASM OUT` makes drystone.html
 * instead: page.html with the engine inside, which is not tracked.
 */
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { deflateSync, gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = new URL("./", import.meta.url);
const path = (name) => new URL(name, here).pathname;

async function bundle(entry) {
  const result = await build({
    entryPoints: [path(entry)], bundle: true, minify: true, write: false, format: "iife",
    target: ["es2022", "chrome110", "firefox115", "safari16.4"], charset: "utf8",
    legalComments: "none",
  });
  return result.outputFiles[0].text.trim();
}

const hash = (text) => `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;

/* The engine and its worker, which a page holds as texts. Such a page asks nobody. */
async function holdEngine(page, enginePath) {
  const worker = await bundle("src/engine/worker.ts");
  if (worker.includes("</script")) throw new Error("the worker would end its own element");
  const engine = deflateSync(readFileSync(enginePath), { level: 9 }).toString("base64");
  return page
    .replace("style-src", () => "worker-src blob:; style-src")
    .replace(/script-src ('sha256-[^']*')/, (_, script) => `script-src ${script} 'wasm-unsafe-eval'`)
    .replace("connect-src 'self'", () => "connect-src 'none'")
    .replace("<script>", () => `<script type="application/json" id="recordings"></script>\n` +
      `<script type="text/plain" id="worker">${worker}</script>\n` +
      `<script type="text/plain" id="engine">${engine}</script>\n<script>`);
}

async function makePage(entry, styles) {
  const script = await bundle(entry), style = await bundle(styles);
  if (script.includes("</script") || style.includes("</style"))
    throw new Error("the bundle would end its own element");
  const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; ` +
    "img-src data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'";
  const page = readFileSync(path("src/page.html"), "utf8")
    .replace("@POLICY@", () => policy)
    .replace("@STYLE@", () => style)
    .replace("@SCRIPT@", () => script);
  for (const once of ["connect-src 'self'", '<script type="application/json" id="answers"></script>'])
    if (page.split(once).length !== 2) throw new Error(`the page must hold once: ${once}`);
  return page;
}

const page = await makePage("src/main.ts", "src/style.css");
const asked = process.argv.indexOf("--engine");
if (asked > 0) {
  const [engine, out] = process.argv.slice(asked + 1), whole = await holdEngine(page, engine);
  writeFileSync(out, whole);
  console.log(`${out}: ${Buffer.byteLength(whole)} bytes, ${gzipSync(whole).length} packed`);
  process.exit(0);
}
const pages = {
  "page.html": page,
  "fleet.html": await makePage("src/fleet/main.ts", "src/fleet/fleet.css"),
};
for (const [name, made] of Object.entries(pages)) {
  if (process.argv.includes("--check")) {
    if (readFileSync(path(name), "utf8") !== made) {
      console.error(`viewer/${name} is not what its sources make: run \`npm run build\` in viewer`);
      process.exit(1);
    }
  } else writeFileSync(path(name), made);
  console.log(`viewer/${name}: ${Buffer.byteLength(made)} bytes`);
}
