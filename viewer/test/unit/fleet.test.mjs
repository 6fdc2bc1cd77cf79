// SPDX-License-Identifier: Apache-2.0
/* The pieces of a job's page that need no page: searches, cells, lines beside a group's, states. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";
import { LEAK, OOM, makeJob } from "../fleet_mock.mjs";

const { Job, openJob } = await load("fleet/job.ts");
const { chooseRanks } = await load("fleet/filter.ts");
const { cellAt, layOut, listCells } = await load("fleet/grid.ts");
const { readHash, START, writeHash } = await load("fleet/state.ts");
const { verdictText } = await load("fleet/lists.ts");

const mock = makeJob(64), source = { isReport: true, ask: async (key) => mock.answers.get(key) ?? null };
const job = await openJob(source);

test("what is no job is refused", async () => {
  await assert.rejects(openJob({ isReport: true, ask: async () => null }), /holds no job/);
});

test("ranks are found by number, group, state and path", () => {
  const find = (q, sort = "rank") => chooseRanks(job, q, sort);
  assert.equal(find("").length, 64);
  assert.deepEqual(find("8-10"), [8, 9, 10]);
  assert.deepEqual(find("oom"), [OOM]);
  assert.deepEqual(find("differs group:0"), [LEAK, OOM]);
  assert.equal(find("alike").length, 62);
  assert.deepEqual(find("rank17.p"), [17]);
  assert.deepEqual(find("LEAK"), [LEAK]);
  assert.deepEqual(find("nobody"), []);
  assert.equal(find("", "reserved")[0], 34);
  assert.equal(find("", "retries")[0], 4);
  assert.equal(find("", "group")[63], 63);
});

test("cells lie in rows of eights, all within the width, and each is found at its place", () => {
  for (const [count, width] of [[1, 300], [8, 1400], [64, 1400], [1000, 700], [10000, 1400], [10000, 290]]) {
    const grid = layOut(count, width);
    assert.ok(grid.left + grid.columns * grid.size <= Math.max(width, grid.size), `${count} in ${width}`);
    assert.ok(grid.columns < 16 || grid.columns % 8 === 0 || grid.columns === count);
    for (const i of [0, count >> 1, count - 1])
      assert.equal(cellAt(grid, count, grid.left + (i % grid.columns) * grid.size + 1, Math.floor(i / grid.columns) * grid.pitch + 1), i);
    assert.equal(cellAt(grid, count, grid.left - 1, 0), null);
    assert.equal(cellAt(grid, count, grid.left, grid.height + 1), null);
  }
});

test("ranks without a file that counts have an empty cell, unless they are too many", () => {
  const cells = listCells(job);
  assert.equal(cells.length, 65);
  assert.deepEqual(cells[64], { file: null, rank: 64 });
  const gap = (missing) => listCells(new Job(source, { ...mock.fleet, files: mock.fleet.files.filter((_, i) => i !== 9), missing }, job.about));
  assert.deepEqual(gap([[9, 9]])[9], { file: null, rank: 9 });
  assert.equal(gap([[9, 4e9]]).length, 64);
});

test("a rank's lines stand beside its group's, what differs most first", async () => {
  const { lines } = await job.lines(LEAK), rows = job.beside(lines, await job.groupLines(0));
  assert.deepEqual(rows[0], { line: "train.py:74 append", bytes: 45 * 2 ** 20, usual: 0 });
  assert.equal(rows[1].usual, 90 * 2 ** 20);
  assert.deepEqual(job.beside([], [[3, 7, 1]]), [{ line: "never.py:1 g", bytes: 0, usual: 7 }]);
  assert.equal(job.beside([[0, 5, 1]], null)[0].usual, null);
  assert.equal((await job.peaks(0))[0], 0);
  assert.equal(await job.lines(64), null);
});

test("states survive their hash, and a hostile hash is none", () => {
  const state = { ...START, part: "ranks", file: 17, step: 3, by: "cached", q: "oom <b>", sort: "stranded", page: 2, found: 1, lost: 1 };
  assert.deepEqual(readHash(writeHash(state)), state);
  assert.deepEqual(readHash("#part=nowhere&file=-1&step=x&by=__proto__&sort=constructor&page=1e9"), START);
});

test("a setting that does not get past a failure is no figure", () => {
  const c = { conf: "x", label: "x", verdict: "no-gain", allowed: true, recorded: false, reserved_peak: 2 ** 20, gain_bytes: null, gets_past: false };
  assert.equal(verdictText(c, true), "not past the failure");
  assert.equal(verdictText(c, false), "1.00 MiB");
  assert.equal(verdictText({ ...c, allowed: false }, false), "its release has no such setting");
  assert.equal(verdictText(undefined, true), "not tried");
});
