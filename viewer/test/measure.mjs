// SPDX-License-Identifier: Apache-2.0
/*
 * How long the page takes for pictures: measure.mjs CHROMIUM URL, for `bench/run views`. Prints JSON: a row
 * for each thing that a person does, with the milliseconds until all of its picture stands, and those of
 * the drawing alone.
 */
import { chromium } from "playwright-core";

const [, , executablePath, url] = process.argv;
const TIMES = 7;
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu",
  "--enable-precise-memory-info"] });
const page = await (await browser.newContext({ viewport: { width: 1920, height: 1080 } })).newPage();
page.setDefaultTimeout(60000);

/* Wait until the timeline is painted whole; the milliseconds of its drawing. */
const painted = () => page.waitForFunction(() => {
  const said = document.body.dataset.painted;
  return said !== undefined && said !== "coming" && said;
}, null, { polling: 4 }).then((handle) => handle.jsonValue()).then(Number);

async function take(act) {
  await page.evaluate(() => { delete document.body.dataset.painted; });
  const begin = performance.now();
  await act();
  const drawn = await painted();
  return { ms: performance.now() - begin, drawn };
}

const rows = [{ name: "first picture", takes: [await take(() => page.goto(`${url}#view=timeline`))] }];
await page.keyboard.press("p"); // the cursor to the peak
for (const [name, key] of [["zoom in", "+"], ["move", "]"], ["zoom out", "-"], ["one event on", "ArrowRight"]]) {
  const takes = [];
  for (let i = 0; i < TIMES; i++) takes.push(await take(() => page.keyboard.press(key)));
  rows.push({ name, takes });
}
const peak = await page.evaluate(() => performance.memory.usedJSHeapSize);
console.log(JSON.stringify({ rows, heap_bytes: peak }));
await browser.close();
