// SPDX-License-Identifier: Apache-2.0
/*
 * Make the page: one file, page.html, with script and style inside. The policy names both by their
 * hashes, so nothing else that comes to stand in the page runs or styles it. `--check` compares with the
 * tracked file instead of writing it.
 */
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
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

async function makePage() {
  const script = await bundle("src/main.ts"), style = await bundle("src/style.css");
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

const page = await makePage();
const target = path("page.html");
if (process.argv.includes("--check")) {
  if (readFileSync(target, "utf8") !== page) {
    console.error("viewer/page.html is not what its sources make: run `npm run build` in viewer");
    process.exit(1);
  }
} else writeFileSync(target, page);
console.log(`viewer/page.html: ${Buffer.byteLength(page)} bytes`);
