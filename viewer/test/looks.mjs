// SPDX-License-Identifier: Apache-2.0
/* What a person sees: sizes of what is drawn in narrow and wide windows, words where nothing is, legends. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { findBarriers, launch, openPage } from "./drive.mjs";
import { makeAnswers, makeMap, makeReport, makeSeries } from "./mock.mjs";
import { load } from "./unit/load.mjs";

const { Pack } = await load("pack.ts");
const page0 = readFileSync(new URL("../page.html", import.meta.url), "utf8");
const folder = mkdtempSync(join(tmpdir(), "drystone-looks-")), mock = makeAnswers();
let browser, files = 0;

before(async () => { browser = await launch(); });
after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true });
});

/* Write a report of `answers`; `change` may alter what it says of its device. */
function write(answers, change = () => {}) {
  const about = JSON.parse(new TextDecoder().decode(answers.get("about"))), file = join(folder, `${files++}.html`);
  change(about.files[0].devices[0], about);
  writeFileSync(file, makeReport(page0, new Map(answers).set("about", Buffer.from(JSON.stringify(about)))));
  return file;
}

async function open(file, hash, options = {}) {
  const opened = await openPage(browser, `file://${file}#${hash}`, options);
  await opened.page.waitForFunction(() => document.querySelector("main")?.childElementCount > 0);
  await opened.page.waitForTimeout(300);
  return opened;
}

const sized = (width, height = 844) => ({ viewport: { width, height } });

test("in a narrow window plots are as wide as the window, and the panel is below them", async () => {
  const file = write(mock.answers);
  for (const [view, plot] of [["timeline", ".stage"], ["map", ".mapstage"], ["events", ".scroller.events"]]) {
    const { page, done } = await open(file, `view=${view}`);
    for (const width of [320, 390, 600, 768]) {
      await page.setViewportSize({ width, height: 844 });
      const box = await page.locator(plot).boundingBox(), side = await page.locator(".side").boundingBox();
      assert.ok(box.width >= width - 32 && box.height >= 260, `${view} at ${width}: ${box.width} by ${box.height}`);
      assert.ok(side.y >= box.y + box.height && side.width >= width - 32, `${view} at ${width}: the panel`);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${view} at ${width}`);
    }
    await done();
  }
  for (const view of ["timeline", "owners"])
    assert.deepEqual(await findBarriers(browser, `file://${file}#view=${view}`, sized(390)), [], view);
});

test("in a narrow window the head of a line is where the line is", async () => {
  const { answers } = makeAnswers(3), explain = JSON.parse(new TextDecoder().decode(answers.get("1/explain")));
  explain.owners[0].bytes *= 2;
  const file = write(answers.set("1/explain", Buffer.from(JSON.stringify(explain))));
  for (const view of ["compare", "owners", "verdict", "whatif"]) {
    const { page, done } = await open(file, `view=${view}`, sized(390));
    const tables = await page.locator("table:has(td .line)").evaluateAll((all) => all.map((t) => ["th", "tbody tr:first-child td"].map((cells) =>
      [...t.querySelectorAll(cells)].findIndex((c) => c.clientWidth > 0.8 * t.clientWidth))));
    assert.ok(tables.length > 0, view);
    for (const [head, line] of tables) assert.ok(head === line && head >= 0, `${view}: ${head}, ${line}`);
    await done();
  }
});

test("in a narrow window a line of code is not cut, and its row has its figures", async () => {
  const { page, done } = await open(write(mock.answers), "view=owners", sized(390));
  const rows = await page.locator("table tr").evaluateAll((all) => all.map((tr) => {
    const last = tr.lastElementChild.getBoundingClientRect(), card = tr.closest(".card").getBoundingClientRect();
    return [last.width / card.width, last.right <= card.right, tr.children.length];
  }));
  for (const [share, isInside, cells] of rows) assert.ok(share > 0.8 && isInside && cells === 5, String([share, isInside]));
  const session = await page.context().newCDPSession(page);
  const { nodes } = await session.send("Accessibility.getFullAXTree");
  const count = (role) => nodes.filter((n) => n.role?.value === role && !n.ignored).length;
  assert.deepEqual([count("row"), count("columnheader"), count("cell")], [3, 5, 10]);
  await done();
});

/* Paint again at `width`; return the boxes of all texts that the plot writes, as [left, right, y, text]. */
async function paintedTexts(page, width) {
  await page.evaluate(() => {
    const write = window.write ??= CanvasRenderingContext2D.prototype.fillText;
    window.texts = [];
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
      const w = this.measureText(text).width, left = x - { left: 0, center: w / 2, right: w }[this.textAlign];
      window.texts.push([left, left + w, y, text]);
      write.call(this, text, x, y);
    };
  });
  await page.setViewportSize({ width, height: 844 });
  await page.waitForTimeout(300);
  return page.evaluate(() => {
    const last = window.texts.findLastIndex(([,,, text]) => text === "0 B");
    return window.texts.slice(last);
  });
}

test("no label of the timeline lies over another one, at any width", async () => {
  const file = write(mock.answers, (device) => {
    device.marks = Array.from({ length: 60 }, (_, i) => ({ moment: 9 + 20 * i, kind: i % 3 === 0 ? "step" : "annotation", text: `the mark ${i}` }));
  });
  for (const hash of ["a=0", "a=3", `a=${mock.peak}&b=${mock.peak + 20}`, "axis=time", "from=0&to=9"]) {
    const { page, done } = await open(file, `view=timeline&${hash}`, sized(1300));
    for (const width of [390, 600, 768, 1440]) {
      const texts = await paintedTexts(page, width);
      assert.ok(texts.length > 4, `${texts.length} texts at ${width}, ${hash}`);
      for (const [i, [left, right, y, text]] of texts.entries())
        for (const [l, r, at, other] of texts.slice(i + 1))
          assert.ok(Math.abs(y - at) > 9 || right <= l || r <= left, `${text} and ${other} at ${width}, ${hash}`);
    }
    await done();
  }
});

test("where no map is there are words and ways on, not an empty picture", async () => {
  const bare = new Map(mock.answers).set(`0/0/map/${mock.moments - 1}`, makeMap(mock.lives, 0));
  for (const [answers, hash, head] of [[mock.answers, "a=200", "This map was left out"],
    [bare, `a=${mock.moments - 1}`, "Nothing is reserved here"]]) {
    const { page, done } = await open(write(answers), `view=map&${hash}`);
    assert.equal(await page.locator(".mapstage h3").textContent(), head);
    assert.equal(await page.locator(".mapstage canvas").isVisible(), false);
    assert.deepEqual(await page.locator(".mapstage .actions a").count(), 2);
    await page.locator(".mapstage .actions a").first().click();
    await page.locator(".mapstage canvas").waitFor();
    assert.equal(await page.locator(".mapstage h3").count(), 0);
    await done();
  }
});

test("a file without events has no plot and no cursor, but says what it has", async () => {
  const file = write(mock.answers, (device) => Object.assign(device, { events: 0, marks: [], ooms: [] }));
  const { page, done } = await open(file, "view=timeline");
  assert.equal(await page.locator(".stage h3").textContent(), "No events were recorded");
  assert.equal(await page.locator("canvas:visible").count(), 0);
  assert.match(await page.locator(".side").textContent(), /at the end of the file.*Reserved/);
  await done();
  const none = new Map([...mock.answers].filter(([key]) => !key.includes("tile")));
  const left = await open(write(none), "view=timeline");
  assert.equal(await left.page.locator(".stage h3").textContent(), "The timeline was left out of this report");
  await left.done();
  assert.deepEqual(await findBarriers(browser, `file://${file}#view=timeline`), []);
});

const legendOf = (page, box = ".legend") => page.locator(`${box} .key`).allTextContents();

test("a legend lists what is drawn, and nothing else", async () => {
  const alive = (m) => mock.lives.filter((l) => l.begin <= m && m < l.end), named = (lives) =>
    mock.categories.filter((_, i) => lives.some((l) => l.category === i));
  const file = write(mock.answers);
  const map = await open(file, "view=map");
  assert.deepEqual(await legendOf(map.page), [...named(alive(mock.peak)), "free", "pins its segment"]);
  await map.done();
  const first = await open(file, "view=timeline&from=0&to=8");
  assert.deepEqual(await legendOf(first.page), ["weights", "reserved"]);
  await first.page.evaluate(() => { location.hash = "#view=timeline"; });
  await first.page.waitForTimeout(300);
  assert.deepEqual(await legendOf(first.page), [...named(mock.lives), "reserved"]);
  await first.page.evaluate(() => { location.hash = "#view=timeline&from=0&to=8&colour=owner"; });
  await first.page.waitForTimeout(300);
  assert.deepEqual(await legendOf(first.page), ["model.py:12 load", "reserved"]);
  await first.done();
});

test("the colours of an icicle are those of its legend", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const { page, done } = await open(write(mock.answers), "view=owners", { colorScheme });
    const [bars, keys] = await page.evaluate(() => [[...document.querySelectorAll(".icicle a")].map((a) =>
      [/mostly (.*)/.exec(a.title)[1], a.style.background]), [...document.querySelectorAll(".card .legend .key:has(.swatch)")].map((k) =>
      [k.textContent, k.querySelector(".swatch").style.background])]);
    assert.ok(bars.length > 2 && keys.length > 1);
    assert.deepEqual(new Map(bars), new Map(keys));
    assert.deepEqual([...new Set(bars.map(String))].sort(), keys.map(String).sort());
    await done();
  }
});

test("the sample of a dashed line is dashed as the line is", async () => {
  const { page, done } = await open(write(makeAnswers(1, makeSeries()).answers), "view=compare");
  const dashes = await page.locator(".card").first().locator("svg.stroke path").evaluateAll((all) =>
    all.map((p) => p.getAttribute("stroke-dasharray")));
  assert.deepEqual(dashes, ["", "", "5 3"]);
  await done();
});

test("in a narrow window an event's row begins with what it did, how much and where", async () => {
  const { page, done } = await open(write(mock.answers), "view=events", sized(390));
  const seen = await page.locator(".rows .row").first().locator("span").evaluateAll((all) => all.map((c) => {
    const box = c.getBoundingClientRect(), view = c.closest(".scroller").getBoundingClientRect();
    return box.left < view.right - 40 ? box.left : Infinity;
  }));
  assert.deepEqual(seen.map((x, i) => [x, i]).filter(([x]) => x < Infinity).sort(([x], [y]) => x - y).map(([, i]) => i), [0, 2, 3, 6]);
  await done();
});

test("the event of a failure is marked, and tells the free bytes, which are no address", async () => {
  const answers = new Map(mock.answers), key = `0/0/events/${Math.floor(mock.peak / 1024)}`, pack = Uint8Array.from(answers.get(key));
  const columns = new Pack(pack), i = mock.peak % 1024;
  columns.u8("ev_action")[i] = 4;
  columns.u64("ev_addr")[i] = 10n << 20n;
  const { page, done } = await open(write(answers.set(key, pack)), `view=events&a=${mock.peak}`);
  const row = page.locator(".row.oom"), cells = await row.locator("span").allTextContents();
  assert.deepEqual([cells[2], cells[4]], ["out of memory", "10.00 MiB free"]);
  const colours = await page.evaluate(() => [".rows .row.oom", ".rows .row:not(.oom)"].map((s) => getComputedStyle(document.querySelector(s)).color));
  assert.notEqual(colours[0], colours[1]);
  await row.click();
  assert.match(await page.locator(".side h3").first().textContent(), /out of memory, .*, 10\.00 MiB free/);
  await done();
});

test("host memory has a name, not the number of a device", async () => {
  const info = JSON.parse(new TextDecoder().decode(mock.answers.get("0/info"))), device = { events: 1, segments: 1,
    reserved_bytes: 1, warm_frees: 0, old_blocks: 0, time_reversals: 0 };
  info.devices = [{ device: -1, ...device }, { device: 0, ...device }];
  const file = write(new Map(mock.answers).set("0/info", Buffer.from(JSON.stringify(info)))), { page, done } = await open(file, "view=trust");
  const names = await page.getByRole("table", { name: "Devices" }).locator("tbody tr td:first-child").allTextContents();
  assert.deepEqual(names, ["pinned host memory", "device 0"]);
  await done();
  assert.deepEqual(await findBarriers(browser, `file://${file}#view=trust`, sized(390)), []);
});

test("what the pointer tells lies within the picture, at any place and width", async () => {
  const file = write(mock.answers);
  for (const [view, picture] of [["timeline", ".stage"], ["map", ".mapstage"]])
    for (const width of [390, 1280]) {
      const { page, done } = await open(file, `view=${view}`, sized(width)), box = await page.locator(picture).boundingBox();
      let seen = 0;
      for (const [x, y] of [[0.25, 0.5], [0.4, 0.7], [0.6, 0.95], [0.75, 0.3], [0.94, 0.8], [0.1, 0.1]]) {
        await page.mouse.move(box.x + x * box.width, box.y + y * box.height);
        await page.waitForTimeout(60);
        const tip = await page.locator(".tip").boundingBox();
        if (tip === null) continue;
        seen++;
        assert.ok(tip.x >= box.x && tip.x + tip.width <= box.x + box.width && tip.y >= box.y && tip.y + tip.height <= box.y + box.height,
          `${view} at ${width}: ${JSON.stringify([x, y, tip, box])}`);
      }
      assert.ok(seen > 1, `${view} at ${width}: ${seen}`);
      await done();
    }
});
