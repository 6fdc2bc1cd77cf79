// SPDX-License-Identifier: Apache-2.0
/*
 * The page in a browser: opened as a report and from a server, driven by pointer and keys. PAGE_SHOTS
 * names a folder for pictures of every view.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { findBarriers, launch, openPage } from "./drive.mjs";
import { HOSTILE, makeAnswers, makeReport, makeSeries } from "./mock.mjs";
import { shareOfModel } from "./naive.mjs";
import { load } from "./unit/load.mjs";

const { bytes } = await load("format.ts"), { Pack } = await load("pack.ts"), { Tile } = await load("tile.ts");
const VIEWS = ["verdict", "timeline", "map", "owners", "steps", "whatif", "compare", "events", "trust"];
const page0 = readFileSync(new URL("../page.html", import.meta.url), "utf8");
const folder = mkdtempSync(join(tmpdir(), "drystone-page-"));
const mock = makeAnswers(), several = makeAnswers(3);
const report = join(folder, "one.html"), ranks = join(folder, "ranks.html");
let browser, server, base, asked = [], faulty = false;

/* The frame of drystone.show() in Python, on a page of its own. */
function notebook() {
  const names = { "&": "&amp;", '"': "&quot;", "'": "&#x27;", "<": "&lt;", ">": "&gt;" };
  const page = makeReport(page0, mock.answers).replace(/[&"'<>]/g, (c) => names[c]);
  return `<!doctype html><title>notebook</title><iframe sandbox="allow-scripts" srcdoc="${page}"` +
    ' style="width:100%;height:760px;border:0"></iframe>';
}

before(async () => {
  writeFileSync(report, makeReport(page0, mock.answers));
  writeFileSync(ranks, makeReport(page0, several.answers));
  browser = await launch();
  server = createServer((request, response) => {
    const path = new URL(request.url, "http://localhost").pathname;
    if (path === "/token/") {
      response.setHeader("Content-Type", "text/html; charset=utf-8");
      return response.end(page0);
    }
    if (path === "/token/notebook") {
      response.setHeader("Content-Type", "text/html; charset=utf-8");
      return response.end(notebook());
    }
    const key = path.replace("/token/a/", ""), answer = mock.answers.get(key);
    asked.push(key);
    response.statusCode = faulty && key.includes("tile/2") ? 500 : answer === undefined ? 404 : 200;
    return response.end(response.statusCode === 200 ? answer : "");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  base = `http://127.0.0.1:${server.address().port}/token/`;
});

after(async () => {
  await browser?.close();
  server?.close();
  rmSync(folder, { recursive: true });
});

const open = (url, options = {}) => openPage(browser, url, options, base);
const at = (file, hash) => `file://${file}#${hash}`;
const painted = (page) => page.waitForFunction(() => /^\d/.test(document.body.dataset.painted ?? ""));
const state = (page) => page.waitForTimeout(260).then(() => page.evaluate(() =>
  Object.fromEntries(new URLSearchParams(location.hash.slice(1)))));

async function stage(page) {
  return page.locator(".stage").boundingBox();
}

test("every view opens, and nothing leaves the page", async () => {
  for (const view of VIEWS) {
    const { page, done } = await open(at(report, `view=${view}`));
    await page.waitForSelector("nav a.on");
    assert.equal(await page.locator("nav a.on").getAttribute("href").then((h) => h.includes(`view=${view}`)), true);
    await page.waitForTimeout(150);
    assert.equal(await page.locator(".error").count(), 0, view);
    if (process.env.PAGE_SHOTS) await page.screenshot({ path: join(process.env.PAGE_SHOTS, `mock-${view}.png`) });
    await done();
  }
});

test("hostile names are text", async () => {
  for (const view of ["verdict", "timeline", "owners", "map", "events"]) {
    const { page, done } = await open(at(report, `view=${view}`));
    await page.waitForTimeout(250);
    assert.equal(await page.evaluate(() => window.broken), undefined);
    const text = await page.locator("body").textContent();
    assert.ok(!/[\u0000-\u0008\u000b-\u001f\u202a-\u202e]/.test(text.replace(/\n/g, "")), view);
    assert.equal(await page.locator("main script, main img, main iframe, header b").count(), 0);
    await done();
  }
  const { page, done } = await open(at(report, "view=verdict"));
  await page.waitForSelector(".verdict");
  assert.ok((await page.locator("main").textContent()).includes("<script>window.broken=1</script>\\u{1b}[31m\\u{202e}gnp.exe"));
  await done();
});

test("a script that is put into a report does not run", async () => {
  const file = join(folder, "planted.html");
  writeFileSync(file, makeReport(page0, mock.answers).replace("<p class=\"loading\">", "<script>window.planted=1</script><p onclick=\"1\" class=\"loading\">"));
  const context = await browser.newContext(), page = await context.newPage();
  await page.goto(at(file, "view=verdict"));
  await page.waitForSelector(".verdict");
  assert.equal(await page.evaluate(() => window.planted), undefined);
  await context.close();
});

test("the wheel zooms to single events, and the URL brings the same picture back", async () => {
  const { page, done } = await open(at(report, "view=timeline"));
  await painted(page);
  const box = await stage(page);
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  for (let i = 0; i < 20; i++) await page.mouse.wheel(0, -400);
  const s = await state(page), span = Number(s.to) - Number(s.from);
  assert.ok(span <= 6.01, `${span} moments are visible`);
  const url = page.url();
  await done();
  const again = await open(url);
  await painted(again.page);
  const t = await state(again.page);
  assert.equal(t.from, s.from);
  assert.equal(t.to, s.to);
  await again.done();
});

/* Read pixels of the plot in a grid that falls on few of its lines. */
const readPixels = (page) => page.evaluate(() => {
  const canvas = document.querySelector("canvas.under"), w = canvas.width - 76 - 14, h = canvas.height - 40 - 26;
  const data = canvas.getContext("2d").getImageData(76, 40, w, h).data, pixels = [];
  for (let y = 3; y < h; y += 7)
    for (let x = 2; x < w; x += 5) pixels.push([x, y, ...data.slice(4 * (y * w + x), 4 * (y * w + x) + 4)]);
  return { pixels, width: w, height: h };
});

test("the picture is that of a naive model, in the light and in the dark", async () => {
  for (const [colorScheme, paper] of [["light", "#ffffff"], ["dark", "#171a20"]]) {
    const { page, done } = await open(at(report, "view=timeline"), { colorScheme, deviceScaleFactor: 1 });
    await painted(page);
    await page.waitForTimeout(500); // the device's room arrives after the picture, and changes its height
    const { pixels, width, height } = await readPixels(page), budget = mock.active + 64 * 2 ** 20;
    const model = { ...mock, width, height, paper, top: budget * 1.04, names: mock.categories };
    const share = shareOfModel(pixels, model), wrong = shareOfModel(pixels, { ...model, shift: 30 });
    assert.ok(share > 0.95, `${share} of ${pixels.length} pixels are the model's`);
    assert.ok(wrong < 0.9, `a model that is 30 moments late passes for ${wrong}`);
    await done();
  }
});

test("a drag moves the picture and does not move the cursor", async () => {
  const { page, done } = await open(at(report, "view=timeline&from=200&to=400&a=300"));
  await painted(page);
  const box = await stage(page);
  await page.mouse.move(box.x + 400, box.y + 200);
  await page.mouse.down();
  await page.mouse.move(box.x + 300, box.y + 200, { steps: 4 });
  await page.mouse.up();
  const s = await state(page);
  assert.ok(Number(s.from) > 210 && Math.abs(Number(s.to) - Number(s.from) - 200) < 0.1);
  assert.equal(s.a, "300");
  await done();
});

test("hover tells the line, and a click picks the allocation with its stack", async () => {
  const { page, done } = await open(at(report, "view=timeline"));
  await painted(page);
  const box = await stage(page);
  await page.mouse.move(box.x + 700, box.y + box.height - 60);
  await page.waitForSelector(".tip:not([hidden])");
  assert.match(await page.locator(".tip").textContent(), /model\.py:12 load.*64\.00 MiB, weights/);
  await page.mouse.click(box.x + 700, box.y + box.height - 60);
  await page.waitForSelector(".details");
  assert.match(await page.locator(".details h3").textContent(), /64\.00 MiB by model\.py:12 load/);
  assert.ok(Number((await state(page)).pick) < 8);
  assert.equal(await page.locator(".details .frame.user").count(), 1);
  await done();
});

test("library frames are folded behind the user's own", async () => {
  const id = mock.lives.findIndex((l) => l.stack === 2);
  const { page, done } = await open(at(report, `view=timeline&from=0&to=60&pick=${id}`));
  await page.waitForSelector(".details");
  assert.equal(await page.locator(".details .fold").count(), 1);
  assert.equal(await page.locator(".details .fold .frame").isVisible(), false);
  await page.locator(".details .fold summary").click();
  assert.equal(await page.locator(".details .fold .frame").isVisible(), true);
  await done();
});

test("keys: views, cursor, zoom, second cursor, difference, help", async () => {
  const { page, done } = await open(at(report, "view=verdict"));
  await page.waitForSelector(".verdict");
  await page.keyboard.press("2");
  await painted(page);
  const before = Number((await state(page)).a ?? mock.peak);
  await page.keyboard.press("ArrowRight");
  assert.equal(Number((await state(page)).a), before + 1);
  await page.keyboard.press("b");
  await page.keyboard.press("Shift+ArrowRight");
  await page.waitForSelector(".ruler");
  assert.match(await page.locator(".ruler").textContent(), /From A to B/);
  await page.keyboard.press("x");
  await page.keyboard.press("+");
  assert.ok(Number((await state(page)).to) - Number((await state(page)).from) < mock.moments);
  await page.keyboard.press("0");
  assert.equal((await state(page)).from, undefined);
  await page.keyboard.press("o");
  assert.equal(Number((await state(page)).a), mock.peak);
  await page.keyboard.press("ArrowUp");
  await page.waitForSelector(".details");
  await page.keyboard.press("?");
  assert.equal(await page.locator("dialog.keys").evaluate((d) => d.open), true);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("dialog.keys").evaluate((d) => d.open), false);
  await done();
});

test("the keyboard alone reaches the tabs, the plot and the panel", async () => {
  const { page, done } = await open(at(report, "view=timeline"));
  await painted(page);
  const seen = new Set();
  for (let i = 0; i < 60; i++) {
    await page.keyboard.press("Tab");
    seen.add(await page.evaluate(() => document.activeElement?.className || document.activeElement?.tagName));
  }
  for (const wanted of ["skip", "stage", "side", "SELECT", "key"]) assert.ok(seen.has(wanted), `${wanted} of ${[...seen]}`);
  await done();
});

test("a search highlights and lists, by line, category and size", async () => {
  const { page, done } = await open(at(report, "view=timeline"));
  await painted(page);
  await page.keyboard.press("/");
  await page.keyboard.type("weights");
  await page.locator(".hits h3", { hasText: 'found for "weights"' }).waitFor(); // each key searches
  assert.match(await page.locator(".hits h3").textContent(), /^8 allocations found/);
  assert.equal((await state(page)).q, "weights");
  await page.keyboard.press("Escape");
  await page.waitForSelector(".hits", { state: "detached" });
  await page.keyboard.press("/");
  await page.keyboard.type(">60MiB model.py:12");
  await page.keyboard.press("Enter");
  await page.locator(".hits h3", { hasText: 'found for ">60MiB model.py:12"' }).waitFor();
  assert.match(await page.locator(".hits h3").textContent(), /^8 allocations/);
  await done();
});

test("links of the verdict lead to their place, and Back leads back", async () => {
  const { page, done } = await open(at(report, "view=verdict"));
  await page.waitForSelector(".verdict");
  await page.locator(".head .over a").click();
  await painted(page);
  await page.goBack();
  await page.waitForSelector(".verdict");
  await page.locator("main").getByRole("link", { name: "model.py:39 forward" }).first().click();
  await page.waitForSelector(".hits");
  await done();
});

test("the map picks blocks, lists pinners, and says which moments it holds", async () => {
  const { page, done } = await open(at(report, "view=map"));
  await page.waitForFunction(() => document.body.dataset.painted === "map");
  assert.match(await page.locator(".side").textContent(), /What pins free memory/);
  const box = await page.locator(".scroller canvas").boundingBox();
  await page.mouse.click(box.x + 20, box.y + 40);
  await page.waitForSelector(".details");
  await page.keyboard.press(".");
  assert.equal(Number((await state(page)).a), mock.moments - 1);
  await page.evaluate(() => { location.hash = "#view=map&a=3"; });
  await page.waitForSelector("text=This map was left out");
  await done();
});

test("the map says what a row has as rows change, is drawn once a change, and has the lines' colours", async () => {
  const { page, done } = await open(at(report, "view=map"));
  await page.waitForFunction(() => document.body.dataset.painted === "map");
  const row = () => page.locator(".toolbar .faint").textContent();
  const before = await row();
  await page.evaluate(() => {
    window.drawn = 0;
    new MutationObserver((all) => { window.drawn += all.length; })
      .observe(document.body, { attributes: true, attributeFilter: ["data-painted"] });
  });
  await page.keyboard.press("-");
  assert.match(before, /^a row is /);
  assert.notEqual(await row(), before);
  await page.evaluate(() => { location.hash = "#view=map&colour=owner"; });
  await page.locator(".legend .key", { hasText: "model.py:12 load" }).waitFor();
  await page.waitForTimeout(100);
  assert.equal(await page.evaluate(() => window.drawn), 2);
  await done();
});

test("owners of a moment that was left out come from the picture, and say so", async () => {
  const { page, done } = await open(at(report, "view=owners&a=200"));
  await page.waitForSelector(".notice");
  assert.match(await page.locator(".notice").textContent(), /was left out/);
  assert.ok(await page.locator("tbody tr").count() > 0);
  await done();
});

test("the panel beside the whole timeline tells of the cursor's moment, not of its column's highest", async () => {
  const heldAt = (m) => mock.lives.filter((l) => l.begin <= m && m < l.end).reduce((n, l) => n + l.size, 0);
  const low = (tile) => tile.begin.find((begin, i) => tile.end[i] > begin + 1 && heldAt(begin) < tile.active[i]);
  const m = Array.from({ length: 16 }, (_, i) => new Tile(new Pack(mock.answers.get(`0/0/tile/4/${i}`)))).map(low)
    .find((begin) => begin !== undefined), held = heldAt(m);
  const { page, done } = await open(at(report, `view=timeline&a=${m}`), { deviceScaleFactor: 1 });
  const fact = page.locator(".side .fact").filter({ hasText: "Active" }).locator("dd");
  await page.waitForFunction((text) => [...document.querySelectorAll(".side .fact dd")].some((d) => d.textContent === text),
    bytes(held));
  assert.equal(await fact.textContent(), bytes(held));
  assert.equal(await page.locator(".side").getByText("highest figures").count(), 0);
  await done();
});

test("owners by function, file and category, with an icicle that turns over", async () => {
  const { page, done } = await open(at(report, "view=owners"));
  await page.waitForSelector(".icicle a");
  for (const [group, name] of [["function", "model.py load"], ["file", "model.py"], ["category", "weights"]]) {
    await page.getByLabel("By").selectOption(group);
    await page.waitForFunction((n) => document.querySelector("tbody .line a")?.textContent === n, name);
    assert.equal((await state(page)).group, group);
  }
  assert.match(await page.locator(".icicle a").first().getAttribute("href"), /q=weights/);
  await page.getByRole("button", { name: "Callees first" }).click();
  assert.equal((await state(page)).flip, "1");
  await done();
});

test("owners sort, and show what grew between two cursors", async () => {
  const { page, done } = await open(at(report, "view=owners"));
  await page.getByRole("button", { name: "Blocks" }).click();
  assert.equal(await page.locator("th[aria-sort=descending]").textContent(), "Blocks ▾");
  assert.match(await page.locator("tbody tr").first().textContent(), /broken/);
  await page.evaluate((end) => { location.hash = `#view=owners&b=${end}`; }, mock.moments - 1);
  await page.waitForSelector("text=from A to B");
  assert.match(await page.locator("main").textContent(), /Born after A, alive at B: 0 B in 0 blocks|Born after A, alive at B: \d/);
  const born = mock.lives.filter((l) => l.begin > mock.peak && l.end > mock.moments - 1);
  assert.match(await page.locator("h3", { hasText: "Born after A" }).textContent(), new RegExp(`in ${born.length} block`));
  await done();
});

test("events: a few rows of all, a jump to the end, a filter", async () => {
  const { page, done } = await open(at(report, "view=events&a=1"));
  await page.waitForSelector(".rows .row");
  assert.ok(await page.locator(".rows .row").count() < 60);
  await page.locator(".scroller").focus();
  await page.keyboard.press("End");
  await page.waitForFunction((n) => [...document.querySelectorAll(".rows .c0")].some((c) =>
    c.textContent.replace(/\D/g, "") === String(n - 1)), mock.events);
  await page.getByLabel("Action").selectOption("alloc");
  await page.waitForFunction((n) => document.querySelector(".where").textContent.replace(/\u2009/g, "").startsWith(`${n} events`),
    mock.lives.length);
  await page.locator(".rows .row").nth(3).click();
  await page.waitForSelector(".side .frame");
  await done();
});

test("where the recorded settings are the best, there is no setting to copy", async () => {
  const answer = JSON.parse(new TextDecoder().decode(mock.answers.get("0/sweep"))), file = join(folder, "keep.html");
  const [best] = answer.candidates;
  const kept = { ...answer, outcome: "keep", conf: "", candidates: [{ ...best, conf: "", label: "", recorded: true,
    default: true, gain_bytes: 0, caveats: [] }] };
  writeFileSync(file, makeReport(page0, new Map(mock.answers).set("0/sweep", Buffer.from(JSON.stringify(kept)))));
  for (const [path, title, buttons] of [[report, "expandable_segments:True", 1],
    [file, "The recorded settings are the best of those tried", 0]]) {
    const { page, done } = await open(at(path, "view=whatif"));
    await page.waitForSelector(".head h2");
    assert.equal(await page.locator(".head h2").textContent(), title);
    assert.equal(await page.locator(".head").getByText("Copy the setting").count(), buttons);
    assert.ok(!(await page.locator(".head").textContent()).includes("0 B less"));
    await done();
  }
});

test("settings are told by the device that each needs, where that is the goal", async () => {
  const answer = JSON.parse(new TextDecoder().decode(mock.answers.get("0/sweep"))), file = join(folder, "fit.html");
  const make = (label, runs, fails) => ({ ...answer.candidates[0], conf: label, label, verdict: "good",
    runs_on_bytes: runs * 2 ** 30, fails_on_bytes: fails * 2 ** 30 });
  const fit = { ...answer, goal: "fit", candidates: [make("a:1", 4, 4 - 2 ** -11), make("b:1", 5, 2),
    { ...make("c:1", 1, 0), runs_on_bytes: null, fails_on_bytes: null }] };
  writeFileSync(file, makeReport(page0, new Map(mock.answers).set("0/sweep", Buffer.from(JSON.stringify(fit)))));
  const { page, done } = await open(at(file, "view=whatif"), { permissions: ["clipboard-read", "clipboard-write"] });
  await page.waitForSelector(".head h2");
  const cells = await page.locator("tbody tr td:nth-child(2)").allTextContents();
  assert.deepEqual(cells.map((c) => c.replace(/\s/g, " ")), ["4.00 GiB", "<5.00 GiB", "–"]);
  await page.getByRole("button", { name: "Copy", exact: true }).click();
  await page.waitForFunction(() => document.querySelector(".status, dialog.text")?.textContent !== "");
  const dialog = page.locator("dialog.text textarea");
  const text = await dialog.count() > 0 ? await dialog.inputValue() : await page.evaluate(() => navigator.clipboard.readText());
  assert.match(text, /good +– +c:1/);
  await done();
});

test("the runs of a dry run are a curve, with the card's line", async () => {
  const file = join(folder, "series.html");
  for (const [hostile, width, colorScheme] of [[false, 1280, "light"], [true, 390, "dark"]]) {
    writeFileSync(file, makeReport(page0, makeAnswers(1, makeSeries(hostile)).answers));
    const { page, done } = await open(`file://${file}`, { viewport: { width, height: 800 }, colorScheme });
    await page.waitForFunction(() => document.body.dataset.painted === "compare");
    const card = page.locator("main section").first(), rows = card.locator("tbody tr");
    assert.match(await card.locator("h3").textContent(), hostile ? /^Memory over the runs: 2 of 4 fit / : /^Memory over BATCH: 2 of 4 fit l4-24$/);
    assert.deepEqual(await rows.locator("td:nth-child(2)").allTextContents(),
      hostile ? ["fits", "fits", "not known", "does not fit"] : ["fits", "fits", "does not fit", "not known"]);
    assert.equal(await rows.nth(1).getAttribute("class"), "best");
    assert.match(await rows.nth(0).textContent(), /5\.00 GiB.*6\.00 GiB.*16\.00 GiB/);
    assert.match(await card.locator(".key").last().textContent(), /leaves 22\.00 GiB to PyTorch/);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
    const seen = await card.locator("canvas").evaluate((c) => {
      const { data } = c.getContext("2d").getImageData(0, 0, c.width, c.height), colours = new Set();
      for (let i = 0; i < data.length; i += 4) if (data[i + 3] === 255) colours.add(data[i] * 65536 + data[i + 1] * 256 + data[i + 2]);
      return [getComputedStyle(document.body).getPropertyValue("--alarm"), getComputedStyle(document.body).getPropertyValue("--active")]
        .map((c) => colours.has(parseInt(c.trim().slice(1), 16)));
    });
    assert.deepEqual(seen, [true, true]);
    assert.equal(await page.evaluate(() => window.broken), undefined);
    await page.locator("main tbody a").first().click();
    assert.equal((await state(page)).view, "verdict");
    await done();
  }
  assert.deepEqual(await findBarriers(browser, `file://${file}`), []);
});

test("several files are compared on one scale", async () => {
  const { page, done } = await open(at(ranks, "view=compare"));
  await page.waitForFunction(() => document.body.dataset.painted === "compare");
  assert.match(await page.locator("main h3").first().textContent(), /3 runs on one scale/);
  assert.equal(await page.locator("main table").first().locator("tbody tr").count(), 3);
  await page.locator("header select").first().selectOption("2");
  assert.equal((await state(page)).file, "2");
  await done();
});

test("axe finds nothing serious, light and dark", async () => {
  for (const colorScheme of ["light", "dark"])
    for (const view of VIEWS) {
      const bad = await findBarriers(browser, at(report, `view=${view}`), { colorScheme });
      assert.deepEqual(bad, [], `${view}, ${colorScheme}`);
    }
});

test("a view prints on few pages, light, without buttons, and the screen stays dark", async () => {
  for (const [view, most] of [["verdict", 3], ["timeline", 2], ["map", 2], ["owners", 2], ["events", 3]]) {
    const { page, done } = await open(at(report, `view=${view}`), { colorScheme: "dark" });
    await page.waitForTimeout(400);
    const pdf = (await page.pdf({ format: "A4" })).toString("latin1");
    const pages = Number(/\/Type\s*\/Pages[^]*?\/Count (\d+)/.exec(pdf)?.[1] ?? pdf.match(/\/Type\s*\/Page\b/g)?.length);
    assert.ok(pages >= 1 && pages <= most, `${view}: ${pages} pages`);
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), undefined);
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue("--paper").trim()), "#ffffff");
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.locator("header nav, .toolbar button").first().isVisible(), false);
    await done();
  }
});

test("copy writes text for an issue", async () => {
  const { page, done } = await open(at(report, "view=verdict"), { permissions: ["clipboard-read", "clipboard-write"] });
  await page.waitForSelector(".verdict");
  await page.getByRole("button", { name: "Copy", exact: true }).click();
  await page.waitForFunction(() => document.querySelector(".status, dialog.text")?.textContent !== "");
  const dialog = page.locator("dialog.text textarea");
  const text = await dialog.count() > 0 ? await dialog.inputValue() : await page.evaluate(() => navigator.clipboard.readText());
  assert.match(text, /VERDICT {2}fragmentation: the bytes are free/);
  assert.match(text, /expandable_segments:True/);
  assert.ok(!text.includes("\u001b") && !text.includes("\u202e"));
  await done();
});

test("in a notebook's frame: links and keys lead through the views, Back leads back", async () => {
  const { page, done } = await open(`${base}notebook`);
  await page.locator("iframe").contentFrame().locator(".verdict").waitFor();
  const frame = page.frames()[1];
  const shows = (view) => frame.waitForFunction((name) =>
    document.querySelector("nav a.on")?.getAttribute("href").includes(`view=${name}`) &&
    location.hash.includes(`view=${name}`), view);
  await frame.locator("nav").getByRole("link", { name: "Timeline", exact: true }).click();
  await shows("timeline");
  await page.keyboard.press("3");
  await shows("map");
  await frame.locator("nav").getByRole("link", { name: "Timeline", exact: true }).click();
  await shows("timeline");
  await page.evaluate(() => history.back());
  await shows("map");
  assert.equal(page.url(), `${base}notebook`);
  assert.equal(frame.url().split("#")[0], "about:srcdoc");
  await done();
});

test("in a notebook's frame: a text that cannot be copied is offered", async () => {
  const context = await browser.newContext(), page = await context.newPage(), faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  await page.goto(`${base}notebook`);
  const frame = page.locator("iframe").contentFrame();
  await frame.getByRole("button", { name: "Copy", exact: true }).click();
  assert.match(await frame.locator("dialog.text textarea").inputValue(), /VERDICT/);
  await page.keyboard.press("Escape");
  await frame.getByRole("link", { name: "What-if", exact: true }).click();
  await frame.getByRole("button", { name: "Copy the setting" }).click();
  assert.match(await frame.locator("dialog.text textarea").inputValue(), /^export PYTORCH_CUDA_ALLOC_CONF='/);
  assert.deepEqual(faults, []);
  await context.close();
});

test("dark and light turn by a key, and by the system's wish", async () => {
  const { page, done } = await open(at(report, "view=verdict"), { colorScheme: "dark" });
  await page.waitForSelector(".verdict");
  const paper = () => page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue("--paper").trim());
  assert.equal(await paper(), "#171a20");
  await page.keyboard.press("t");
  assert.equal(await paper(), "#ffffff");
  await done();
});

test("from a server: the same page asks for what it shows, and stands a failure", async () => {
  asked = [];
  const { page, done } = await open(`${base}#view=timeline`);
  await painted(page);
  assert.ok(asked.includes("about") && asked.some((k) => k.includes("tile/")));
  assert.ok(!asked.some((k) => k.includes("events/")));
  await page.keyboard.press("3");
  await page.waitForFunction(() => document.body.dataset.painted === "map");
  assert.equal(await page.getByRole("button", { name: "Play" }).count(), 1);
  await done();
  faulty = true;
  const context = await browser.newContext(), broken = await context.newPage();
  await broken.goto(`${base}#view=timeline&from=0&to=200`);
  await broken.waitForSelector(".stage canvas");
  await broken.waitForTimeout(400);
  assert.ok(await broken.evaluate(() => document.body.dataset.painted !== undefined));
  await context.close();
  faulty = false;
});

test("a damaged report says what is wrong", async () => {
  const damaged = new Map(mock.answers), file = join(folder, "damaged.html");
  damaged.set("0/0/tile/0/0", Uint8Array.of(1, 2, 3));
  damaged.delete("0/explain");
  writeFileSync(file, makeReport(page0, damaged));
  const context = await browser.newContext(), page = await context.newPage();
  await page.goto(at(file, "view=verdict"));
  await page.waitForSelector("text=The verdict was left out of this report.");
  await page.keyboard.press("2");
  await page.waitForFunction(() => document.querySelector(".status")?.textContent.includes("not a pack"));
  await context.close();
});
