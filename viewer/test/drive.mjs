// SPDX-License-Identifier: Apache-2.0
/* A browser for the tests of the pages. CHROMIUM names it. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

function findBrowser() {
  for (const name of ["chromium", "chromium-headless-shell", "google-chrome"])
    try {
      return execFileSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim();
    } catch {
      continue;
    }
  throw new Error("no Chromium: set CHROMIUM");
}

export function launch() {
  return chromium.launch({ timeout: 60000, executablePath: process.env.CHROMIUM || findBrowser(),
    args: ["--no-sandbox", "--disable-gpu"] });
}

/* Open a page; every error, and every request that goes elsewhere than to a file or to `home`, fails the test. */
export async function openPage(browser, url, options = {}, home = "file:") {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  context.setDefaultTimeout(15000);
  const page = await context.newPage(), faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (m) => { if (m.type() === "error" && !m.text().includes("404")) faults.push(m.text()); });
  page.on("request", (r) => {
    const to = r.url();
    if (!["file:", "data:", "blob:", home].some((begin) => to.startsWith(begin))) faults.push(`left for ${to}`);
  });
  await page.goto(url);
  return { page, done: async () => {
    await context.close();
    assert.deepEqual(faults, []);
  } };
}

/* Open a page for axe, and return what is serious or worse. */
export async function findBarriers(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, bypassCSP: true, ...options });
  const page = await context.newPage();
  await page.goto(url);
  await page.waitForTimeout(200);
  await page.addScriptTag({ path: axe });
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  await context.close();
  return violations.filter((v) => ["serious", "critical"].includes(v.impact))
    .map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html).join(" ")}`);
}
