// SPDX-License-Identifier: Apache-2.0
/*
 * The allocations alive at a moment, put together by line, function, file or category, and what became of them
 * between two moments. The map of a moment has them all; if it was left out, the timeline's picture has those
 * that are large enough to be drawn.
 */

import type { App } from "./app.ts";
import { NONE } from "./pack.ts";
import { aliveAt, finestAt, type Part } from "./picture.ts";
import type { Stacks } from "./stacks.ts";
import type { Group } from "./state.ts";
import { isAlive, type Allocs } from "./tile.ts";

export interface Alive {
  moment: number;
  allocs: Allocs;
  rows: number[];
  isPicture: boolean;
  rest: number; // bytes of those that are too small to be drawn
}

function pictureOf(app: App, moment: number): Promise<Part | null> {
  return new Promise((resolve) => {
    const look = () => {
      const part = finestAt(app, moment, look);
      if (part !== undefined) resolve(part);
    };
    look();
  });
}

/* Return what is alive at `moment`; null if neither map nor picture is there. */
export async function findAlive(app: App, moment: number): Promise<Alive | null> {
  const map = await app.map(moment).catch(() => null);
  if (map !== null) {
    const rows: number[] = [];
    for (let b = 0; b < map.blocks; b++)
      if (map.state[b] !== 0 && map.alloc[b] !== NONE) rows.push(map.alloc[b]);
    return { moment, allocs: map.allocs, rows, isPicture: false, rest: 0 };
  }
  const part = await pictureOf(app, moment);
  return part === null ? null : { moment, allocs: part.tile.allocs, rows: aliveAt(part, moment), isPicture: true,
    rest: part.tile.small[part.tile.columnOf(moment)] };
}

/* Write what an allocation is put under. */
export function groupOf(allocs: Allocs, row: number, stacks: Stacks, group: Group, categories: string[]): string {
  return group === "category" ? categories[allocs.category[row]] ?? "unknown"
    : stacks.siteTitle(allocs.stack[row], allocs.flags[row], group);
}

export interface Sum { name: string; bytes: number; count: number; largest: number }

/* Sum up `rows` by name, the largest first. */
export function sumUp(allocs: Allocs, rows: number[], name: (row: number) => string): Sum[] {
  const sums = new Map<string, Sum>();
  for (const row of rows) {
    const key = name(row), s = sums.get(key) ?? { name: key, bytes: 0, count: 0, largest: 0 };
    s.bytes += allocs.size[row];
    s.count++;
    s.largest = Math.max(s.largest, allocs.size[row]);
    sums.set(key, s);
  }
  return [...sums.values()].sort((x, y) => y.bytes - x.bytes);
}

/*
 * Make two moments comparable. A picture lacks what is too small to be drawn, so the other moment leaves out what
 * is as small.
 */
export function alike(a: Alive, b: Alive): void {
  const least = [a, b].filter((x) => x.isPicture).map((x) => x.allocs.size.reduce((n, s) => Math.min(n, s), Infinity));
  if (least.length === 0) return;
  const bound = Math.max(...least.map((n) => (Number.isFinite(n) ? n : 0)));
  for (const x of [a, b]) {
    const small = x.rows.filter((row) => x.allocs.size[row] < bound);
    x.rest += small.reduce((n, row) => n + x.allocs.size[row], 0);
    x.rows = x.rows.filter((row) => x.allocs.size[row] >= bound);
  }
}

/* List the rows of `later` that were born after `earlier`. */
export function bornSince(earlier: Alive, later: Alive): number[] {
  return later.rows.filter((row) => later.allocs.begin[row] > earlier.moment);
}

/* List the rows of `earlier` that are gone at `later`. */
export function goneBy(earlier: Alive, later: Alive): number[] {
  return earlier.rows.filter((row) => !isAlive(earlier.allocs, row, later.moment));
}
