// SPDX-License-Identifier: Apache-2.0
/* The pieces that need no page: texts, states, scales, searches, the layout of the map. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";
import { HOSTILE, NONE, allocColumns, makeAnswers, writePack } from "../mock.mjs";

const format = await load("format.ts");
const { readHash, writeHash, START } = await load("state.ts");
const { Scale, ticks } = await load("scale.ts");
const { parseSearch } = await load("search.ts");
const { Pack } = await load("pack.ts");
const { Stacks } = await load("stacks.ts");
const { Allocs, Tile, MemoryMap } = await load("tile.ts");
const { groupSegments, layOut, chooseRowBytes } = await load("map_layout.ts");
const { buildTree } = await load("icicle.ts");
const { bornSince, goneBy, sumUp } = await load("alive.ts");
const { chooseSteps } = await load("steps.ts");
const CATEGORIES = ["unknown", "weights", "optimizer", "gradients", "activations", "temporaries", "inputs"];

test("bytes are written as the command writes them", () => {
  assert.equal(format.bytes(0), "0 B");
  assert.equal(format.bytes(1023), "1023 B");
  assert.equal(format.bytes(1536), "1.50 KiB");
  assert.equal(format.bytes(-(2 ** 30)), "−1.00 GiB");
  assert.equal(format.bytesShort(2 ** 31), "2 GiB");
  assert.equal(format.bytesShort(0), "0 B");
  assert.equal(format.bytesShort(100 * 2 ** 20), "100 MiB");
});

test("a block waits for a stream only if events lie between its two frees", () => {
  const lives = [[8, 9], [8, 8], [8, 12], [10, NONE], [8, NONE], [NONE, NONE], [NONE, 9]];
  const allocs = new Allocs(new Pack(writePack(allocColumns(lives.map(([freed, end], id) =>
    ({ id, addr: 0n, size: 512, begin: 1, freed, end, stack: 0, category: 0 }))))));
  assert.deepEqual(lives.map((_, at) => allocs.waits(at, 10)),
    [false, false, true, false, true, false, false]);
});

test("of many steps the first, the last, the highest and the jumps are shown", () => {
  const flat = Array.from({ length: 1794 }, () => 1000);
  assert.deepEqual(chooseSteps(flat, 24, false), [0, 1793]);
  assert.deepEqual(chooseSteps([1, 2, 3], 24, false), [0, 1, 2]);
  assert.deepEqual(chooseSteps(Array.from({ length: 30 }, () => 0), 24, false), [0, 29]);
  flat[900] = 1100; flat[1200] = 1005; flat[1500] = 700;
  assert.deepEqual(chooseSteps(flat, 24, false), [0, 900, 901, 1500, 1501, 1793]);
  assert.deepEqual(chooseSteps(flat, 3, false), [0, 900, 1793]);
  const filled = chooseSteps(flat, 300, true);
  assert.equal(filled.length, 300);
  assert.ok(filled.includes(200) && filled.includes(1501) && !filled.includes(1000));
});

test("frames have the names of the command's owners", () => {
  const stacks = new Stacks(new Pack(makeAnswers().answers.get("0/stacks")));
  assert.deepEqual(["line", "function", "file"].map((by) => stacks.title(2, by)),
    ["nn/functional.py:88 linear", "nn/functional.py linear", "nn/functional.py"]);
  assert.equal(stacks.siteTitle(0, 2), "model.py:12 load (freed there)");
  assert.equal(stacks.siteTitle(NONE, 0), "(no stack)");
  assert.equal(stacks.siteTitle(NONE, 3), "(earlier, no stack)");
  assert.ok(stacks.title(3).includes("\\u{202e}"));
});

test("born and gone are what a walk over the lives finds", () => {
  const { answers, lives, peak, moments } = makeAnswers(), last = moments - 1;
  const alive = (moment) => {
    const map = new MemoryMap(new Pack(answers.get(`0/0/map/${moment}`)));
    return { moment, allocs: map.allocs, rows: Array.from({ length: map.allocs.length }, (_, i) => i), isPicture: false, rest: 0 };
  };
  const first = alive(peak), later = alive(last);
  const ids = (a, rows) => rows.map((r) => a.allocs.id[r]).sort((x, y) => x - y);
  const at = (l, m) => l.begin <= m && m < l.end;
  assert.deepEqual(ids(later, bornSince(first, later)), lives.filter((l) => at(l, last) && l.begin > peak).map((l) => l.id));
  assert.deepEqual(ids(first, goneBy(first, later)), lives.filter((l) => at(l, peak) && !at(l, last)).map((l) => l.id));
  assert.equal(sumUp(first.allocs, first.rows, () => "all")[0].count, first.rows.length);
});

test("sizes are read with and without units", () => {
  assert.equal(format.parseBytes("512"), 512);
  assert.equal(format.parseBytes("1.5GiB"), 1.5 * 2 ** 30);
  assert.equal(format.parseBytes("64mb"), 64 * 2 ** 20);
  assert.equal(format.parseBytes("many"), null);
});

test("controls and marks of direction become visible", () => {
  const text = format.clean(HOSTILE);
  assert.ok(text.includes("\\u{1b}[31m") && text.includes("\\u{202e}gnp.exe"));
  assert.ok(!/[\u0000-\u001f\u202a-\u202e]/.test(text));
  assert.equal(format.clean("a\u{e0041}\u200b"), "a\\u{e0041}\\u{200b}");
  assert.equal(format.clean("\u061c\u3164\ufe0f"), "\\u{61c}\\u{3164}\\u{fe0f}");
  assert.equal(format.clean("x".repeat(500)).length, 401);
});

test("a state survives its hash, and nonsense becomes the default", () => {
  const state = { ...START, view: "map", file: 2, a: 17, b: 3, from: 10.25, to: 99.5, colour: "age", axis: "time",
    fit: true, q: "a & b=#c", pick: 4, group: "file", flip: true, act: "alloc" };
  assert.deepEqual(readHash(writeHash(state)), state);
  const odd = readHash("#view=<script>&file=-1&a=1e9999&b=NaN&colour=__proto__&from=0x10&pick=12345678901");
  assert.deepEqual(odd, START);
});

test("a scale by time turns both ways", () => {
  const knots = { moments: [0, 10, 20], times: [0, 100, 1000] };
  const scale = new Scale({ from: 0, to: 20, width: 100 }, knots);
  assert.equal(Math.round(scale.x(10)), 10);
  assert.equal(Math.round(scale.moment(10)), 10);
  assert.equal(Math.round(new Scale({ from: 0, to: 20, width: 100 }, null).moment(50)), 10);
});

test("ticks are round and inside", () => {
  assert.deepEqual(ticks(0, 10, 5), [0, 2, 4, 6, 8, 10]);
  assert.deepEqual(ticks(0, 7 * 2 ** 30, 4, true).map((v) => v / 2 ** 30), [0, 2, 4, 6]);
  assert.deepEqual(ticks(0, 0, 5), []);
});

test("a search finds lines, categories, sizes, addresses", () => {
  const { answers } = makeAnswers(), about = JSON.parse(new TextDecoder().decode(answers.get("about")));
  const stacks = new Stacks(new Pack(answers.get("0/stacks"))), lanes = about.files[0].devices[0].lanes;
  const { allocs } = new Tile(new Pack(answers.get("0/0/tile/0/0")));
  const found = (q) => {
    const s = parseSearch(q, stacks, about.categories, lanes);
    return Array.from({ length: allocs.length }, (_, i) => i).filter((i) => s === null || s.matches(allocs, i));
  };
  assert.equal(found("").length, allocs.length);
  assert.ok(found("weights").every((i) => allocs.category[i] === 1) && found("weights").length === 8);
  assert.ok(found("model.py:12").every((i) => allocs.stack[i] === 0));
  assert.ok(found(">60MiB").every((i) => allocs.size[i] >= 60 * 2 ** 20));
  assert.equal(found("0x7f0000000000").length, 1);
  assert.equal(found("weights >1GiB").length, 0);
  assert.equal(found("stream:9").length, 0);
  assert.equal(found("\"(no Python stack)\"").length, 0);
});

test("the map's pieces cover every segment once", () => {
  const { answers, peak } = makeAnswers(), map = new MemoryMap(new Pack(answers.get(`0/0/map/${peak}`)));
  const groups = groupSegments(map), rowBytes = chooseRowBytes(groups, map, 600, 400);
  const layout = layOut(groups, map, 600, rowBytes, 400, 96 * 2 ** 20);
  const covered = new Map();
  for (const g of layout.groups)
    for (const p of g.pieces) {
      assert.equal(p.from, covered.get(p.segment) ?? 0);
      covered.set(p.segment, p.to);
      assert.ok(p.x >= 0 && p.x + p.width <= 600.001);
    }
  for (let s = 0; s < map.segments; s++) assert.equal(covered.get(s), map.size[s]);
});

test("an icicle's parts add up, and folds library frames", () => {
  const { answers } = makeAnswers(), stacks = new Stacks(new Pack(answers.get("0/stacks")));
  const { allocs } = new Tile(new Pack(answers.get("0/0/tile/0/0")));
  const rows = Array.from({ length: 20 }, (_, i) => i), tree = buildTree(allocs, rows, stacks, "line", false, CATEGORIES);
  assert.equal(tree.bytes, rows.reduce((n, i) => n + allocs.size[i], 0));
  assert.equal([...tree.children.values()].reduce((n, c) => n + c.bytes, 0), tree.bytes);
  assert.ok([...tree.children.keys()].every((name) => !name.includes("functional.py")));
  for (const [group, name] of [["function", "model.py load"], ["file", "model.py"], ["category", "weights"]]) {
    const by = buildTree(allocs, rows, stacks, group, false, CATEGORIES);
    assert.equal(by.bytes, tree.bytes);
    assert.ok(by.children.has(name), `${name} of ${[...by.children.keys()]}`);
  }
});

test("stacks that point outside are refused", () => {
  const base = { text: ["u8", [65]], text_from: ["u32", [0, 1]], frame_name: ["u32", [0]], frame_file: ["u32", [0]],
    frame_line: ["u32", [1]], frame_module: ["u32", [0]], frame_func: ["u32", [0]], frame_user: ["u8", [1]], stack_from: ["u32", [0, 1]], stack_frame: ["u32", [0]], stack_site: ["u32", [0]] };
  new Stacks(new Pack(writePack(base)));
  for (const [name, values] of [["text_from", [0, 9]], ["frame_name", [4]], ["frame_module", [2]], ["frame_func", [NONE]], ["stack_frame", [7]], ["stack_site", [3]],
    ["stack_from", [1, 0]]])
    assert.throws(() => new Stacks(new Pack(writePack({ ...base, [name]: ["u32", values] }))));
});
