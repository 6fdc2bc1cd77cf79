// SPDX-License-Identifier: Apache-2.0
/* The reader of packs: sound ones are read, and every kind of damage is told. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";
import { makeAnswers, makeTile, makeLives, writePack } from "../mock.mjs";

const { EventPage, MemoryMap, Pack, PackError, Stacks, Tile, checkBelow, checkBytes, sameLength } =
  await load("pack.ts", "tile.ts", "stacks.ts");

const sound = () => writePack({ a: ["u8", [1, 2, 3]], b: ["u32", [7]], c: ["f64", [0.5]], d: ["u64", [2n ** 63n]] });

test("columns come back as they were written", () => {
  const p = new Pack(sound());
  assert.deepEqual([...p.u8("a")], [1, 2, 3]);
  assert.deepEqual([...p.u32("b")], [7]);
  assert.deepEqual([...p.f64("c")], [0.5]);
  assert.deepEqual([...p.u64("d")], [2n ** 63n]);
});

test("a pack at an odd address is read", () => {
  const bytes = sound(), shifted = new Uint8Array(bytes.length + 3);
  shifted.set(bytes, 3);
  assert.deepEqual([...new Pack(shifted.subarray(3)).u32("b")], [7]);
});

test("a column that is missing, or of another type, is refused", () => {
  const p = new Pack(sound());
  assert.throws(() => p.u8("z"), PackError);
  assert.throws(() => p.u32("a"), PackError);
});

test("every pack that is cut is refused, or lacks nothing", () => {
  const bytes = sound();
  for (let n = 0; n < bytes.length; n++) {
    try {
      new Pack(bytes.slice(0, n));
      assert.ok(n >= bytes.length - 8, `cut at ${n}`);
    } catch (error) {
      assert.ok(error instanceof PackError, String(error));
    }
  }
});

test("damage to the table is told, and nothing else is thrown", () => {
  const bytes = sound();
  for (let at = 0; at < 8 + 4 * 32; at++)
    for (const bit of [1, 128]) {
      const damaged = bytes.slice();
      damaged[at] ^= bit;
      try {
        new Pack(damaged);
      } catch (error) {
        assert.ok(error instanceof PackError, `${at}: ${String(error)}`);
      }
    }
});

test("a table that is too wide, twice named or unaligned is refused", () => {
  const wide = sound();
  new DataView(wide.buffer).setUint32(4, 1e6, true);
  assert.throws(() => new Pack(wide), /too wide/);
  const twice = sound();
  twice.copyWithin(8 + 32, 8, 8 + 16);
  assert.throws(() => new Pack(twice), /twice/);
  const odd = sound();
  new DataView(odd.buffer).setUint32(8 + 24, 137, true);
  assert.throws(() => new Pack(odd), /aligned/);
});

test("tables hold their promises", () => {
  assert.throws(() => sameLength("t", new Uint8Array(2), new Uint8Array(3)), /differ/);
  assert.throws(() => checkBelow("x", Uint32Array.of(3), 3), /names row/);
  checkBelow("x", Uint32Array.of(0xffffffff), 3, true);
  assert.throws(() => checkBytes("x", Float64Array.of(NaN)), /no number of bytes/);
  assert.throws(() => checkBytes("x", Float64Array.of(-1)), /no number of bytes/);
});

test("the mock's answers are read as tiles, maps, events and stacks", () => {
  const { answers, peak } = makeAnswers();
  const tile = new Tile(new Pack(answers.get("0/0/tile/0/0")));
  assert.equal(tile.columns, 64);
  assert.equal(tile.columnOf(tile.begin[5]), 5);
  assert.ok(new MemoryMap(new Pack(answers.get(`0/0/map/${peak}`))).blocks > 0);
  assert.ok(new EventPage(new Pack(answers.get("0/0/events/0"))).length > 0);
  assert.equal(new Stacks(new Pack(answers.get("0/stacks"))).count, 6);
});

test("any byte of a tile may be damaged: it is read, or refused with a reason", () => {
  const { lives, events } = makeLives(1, 3), bytes = makeTile(lives, events.length + 2, 0, 0);
  for (let at = 0; at < bytes.length; at += 3) {
    const damaged = bytes.slice();
    damaged[at] ^= 0xff;
    try {
      new Tile(new Pack(damaged));
    } catch (error) {
      assert.ok(error instanceof PackError, `${at}: ${String(error)}`);
    }
  }
});
