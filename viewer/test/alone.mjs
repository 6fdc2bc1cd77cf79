// SPDX-License-Identifier: Apache-2.0
/*
 * drystone.html in a browser, from a disk and in a notebook's frame: PAGE=drystone.html RECORDING=run.pickle
 * WHOLE=whole.html node --test alone.mjs; whole.html is what `view --output` made of the recording. It opens what is chosen and dropped, explains a text, says what it cannot read,
 * and sends nothing. PAGE_SHOTS names a folder for pictures.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";
import { findBarriers, launch, openPage } from "./drive.mjs";

const { PAGE, RECORDING, WHOLE, PAGE_SHOTS } = process.env;
const url = `file://${PAGE}`, folder = mkdtempSync(join(tmpdir(), "alone-"));
let browser;

before(async () => { browser = await launch(); });
after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true });
});

async function shoot(page, name) {
  if (PAGE_SHOTS) await page.screenshot({ path: join(PAGE_SHOTS, `${name}.png`) });
}

async function isShown(page, name = basename(RECORDING)) {
  await page.locator(".subject .file", { hasText: name }).waitFor();
}

/* Drop a file onto the page as a hand does. */
async function drop(page, path) {
  const bytes = readFileSync(path).toString("base64");
  const data = await page.evaluateHandle(([text, name]) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], name));
    return transfer;
  }, [bytes, basename(path)]);
  await page.dispatchEvent("body", "drop", { dataTransfer: data });
}

for (const width of [1440, 390])
  test(`a dropped recording has every view at ${width} pixels`, async () => {
    const { page, done } = await openPage(browser, url, { viewport: { width, height: 900 } });
    await shoot(page, `desk-${width}`);
    await drop(page, RECORDING);
    await isShown(page);
    await shoot(page, `verdict-${width}`);
    for (const view of ["Timeline", "Memory map", "Owners", "Steps", "What-if", "Events", "Trust"]) {
      await page.locator("header nav a", { hasText: view }).click();
      await page.locator(`main.view-${view.toLowerCase().replace("memory ", "").replace("-", "")}`).waitFor();
    }
    await done();
  });

test("the map is there at a moment that no report would hold", async () => {
  const { page, done } = await openPage(browser, url);
  await page.setInputFiles("#files", RECORDING);
  await isShown(page);
  await page.evaluate(() => { location.hash = "#view=map&a=7"; });
  await page.locator("span.where", { hasText: "The map after event 6" }).waitFor();
  await page.waitForFunction(() => document.body.dataset.painted !== undefined);
  assert.equal(await page.locator("text=left out").count(), 0);
  await shoot(page, "map");
  await done();
});

test("a page of the command has every moment, too", async () => {
  const { page, done } = await openPage(browser, `file://${WHOLE}#view=map&a=7`);
  await isShown(page);
  await page.locator("span.where", { hasText: "The map after event 6" }).waitFor();
  await page.waitForFunction(() => document.body.dataset.painted !== undefined);
  assert.equal(await page.locator("text=left out").count(), 0);
  await done();
});

test("a file that is none is refused by the engine's own words, and the page goes on", async () => {
  const { page, done } = await openPage(browser, url);
  const broken = join(folder, "broken.pickle");
  writeFileSync(broken, readFileSync(RECORDING).subarray(0, 3000));
  await page.setInputFiles("#files", broken);
  const error = page.locator("pre.error");
  await error.waitFor();
  assert.match(await error.textContent(), /broken\.pickle: /);
  await page.setInputFiles("#files", RECORDING);
  await isShown(page);
  await done();
});

test("an error text is explained", async () => {
  const { page, done } = await openPage(browser, url);
  await page.fill("#message", "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB " +
    "of which 1.12 GiB is free. Including non-PyTorch memory, this process has 22.56 GiB memory in use. Of the allocated " +
    "memory 14.00 GiB is allocated by PyTorch, and 8.00 GiB is reserved by PyTorch but unallocated.");
  await page.getByRole("button", { name: "Explain" }).click();
  await page.locator("pre", { hasText: "VERDICT" }).waitFor();
  await shoot(page, "message");
  await done();
});

test("it works in a sandboxed frame", async () => {
  const names = { "&": "&amp;", '"': "&quot;" };
  const frame = join(folder, "notebook.html");
  writeFileSync(frame, `<!doctype html><title>notebook</title><iframe sandbox="allow-scripts" srcdoc="${
    readFileSync(PAGE, "utf8").replace(/[&"]/g, (c) => names[c])}" style="width:100%;height:760px"></iframe>`);
  const { page, done } = await openPage(browser, `file://${frame}`);
  const inside = page.frameLocator("iframe");
  await inside.locator("#files").setInputFiles(RECORDING);
  await inside.locator(".subject .file").waitFor();
  await done();
});

test("the desk has no serious barriers", async () => {
  assert.deepEqual(await findBarriers(browser, url), []);
});
