// SPDX-License-Identifier: Apache-2.0
/*
 * The tiles that a picture is made of. While a fine tile is on its way, or if it was left out of a
 * report, the part of a coarser one that covers the same moments stands in for it.
 */

import type { App } from "./app.ts";
import type { Stacks } from "./stacks.ts";
import { isAlive, type Allocs, type Tile } from "./tile.ts";

/* A tile, from the moment `from` to, without, `to`. */
export interface Part { tile: Tile; from: number; to: number }

export interface Picture {
  parts: Part[];
  isComing: boolean; // finer tiles are on their way
  isCoarse: boolean; // finer tiles were left out
}

/* A column may be so wide. So a usual window shows a whole record out of one tile: what is too small to be
   drawn is another in each tile. */
const COLUMN_PIXELS = 2;

function levelOf(app: App, from: number, to: number, width: number): number {
  const { moments, levels } = app.device;
  const wanted = Math.ceil(Math.log2((moments * width) / (COLUMN_PIXELS * app.about.tile_columns * (to - from))));
  return Math.max(0, Math.min(levels - 1, wanted));
}

/* Return the tiles for the moments `from` to `to` at `width` pixels. */
export function choosePicture(app: App, prefix: string, from: number, to: number, width: number,
                              arrived: () => void): Picture {
  const { moments } = app.device;
  const picture: Picture = { parts: [], isComing: false, isCoarse: false };
  const level = levelOf(app, from, to, width), n = 2 ** level;
  const first = Math.max(0, Math.floor((from * n) / moments) - 1);
  const beginOf = (l: number, i: number) => Math.floor((moments * i) / 2 ** l);
  for (let i = first; i < n; i++) {
    const begin = beginOf(level, i), end = beginOf(level, i + 1);
    if (begin >= to) break;
    if (end <= from || end === begin) continue;
    let l = level, k = i, tile = app.tile(prefix, l, k, arrived);
    while (!tile && l > 0) {
      if (tile === null) picture.isCoarse = true; else picture.isComing = true;
      l--;
      k >>= 1;
      tile = app.tile(prefix, l, k, arrived);
    }
    if (tile === undefined) picture.isComing = true;
    if (tile) addPart(picture.parts, { tile, from: Math.max(begin, from), to: Math.min(end, to) });
  }
  return picture;
}

function addPart(parts: Part[], part: Part): void {
  const last = parts[parts.length - 1];
  if (last !== undefined && last.tile === part.tile) last.to = part.to;
  else parts.push(part);
}

export function partAt(parts: Part[], moment: number): Part | null {
  return parts.find((p) => moment >= Math.floor(p.from) && moment < p.to) ?? null;
}

/*
 * Return the finest tile there is for `moment`: its column is then that moment alone, unless fine tiles were
 * left out. Undefined while one is on its way; `arrived` is called then.
 */
export function finestAt(app: App, moment: number, arrived: () => void): Part | null | undefined {
  const { moments, levels } = app.device;
  for (let level = levels - 1; level >= 0; level--) {
    const index = Math.floor(((moment + 1) * 2 ** level - 1) / moments);
    const tile = app.tile(app.key, level, index, arrived);
    if (tile === undefined) return undefined;
    if (tile !== null && tile.first <= moment && moment < tile.last) return { tile, from: tile.first, to: tile.last };
  }
  return null;
}

export interface Found { allocs: Allocs; row: number }

/* Look for the allocation of that number in the parts. */
export function findAlloc(parts: Part[], id: number): Found | null {
  for (const { tile } of parts) {
    const row = tile.allocs.id.indexOf(id);
    if (row >= 0) return { allocs: tile.allocs, row };
  }
  return null;
}

/* Return the rows of the part's allocations alive at `moment`, from the bottom up. */
export function aliveAt(part: Part, moment: number): number[] {
  const { tile } = part, column = tile.columnOf(moment), rows: number[] = [];
  for (let i = 0; i < tile.runs; i++)
    if (tile.runFrom[i] <= column && column < tile.runTo[i] &&
        isAlive(tile.allocs, tile.runAlloc[i], tile.at[column]))
      rows.push(tile.runAlloc[i]);
  return rows;
}

export interface Holder { site: number; bytes: number; count: number; largest: number }

/* Sum up rows by the site of their stacks, the largest first. */
export function sumBySite(allocs: Allocs, rows: Iterable<number>,
                          stacks: Stacks): Holder[] {
  const holders = new Map<number, Holder>();
  for (const row of rows) {
    const site = stacks.siteOf(allocs.stack[row], allocs.flags[row]);
    const h = holders.get(site) ?? { site, bytes: 0, count: 0, largest: 0 };
    h.bytes += allocs.size[row];
    h.count++;
    h.largest = Math.max(h.largest, allocs.size[row]);
    holders.set(site, h);
  }
  return [...holders.values()].sort((x, y) => y.bytes - x.bytes);
}
