// SPDX-License-Identifier: Apache-2.0
/*
 * Where segments lie in the memory map. A row holds the same number of bytes in every group, so all
 * lengths compare. Segments follow each other like words; one that is longer than the rest of a row goes
 * on in the next. A group is a pool of a stream, large and small segments apart.
 */

import type { Lane } from "./about.ts";
import { LARGE, PRIVATE, type MemoryMap } from "./tile.ts";

/* A part of a segment in one row. */
export interface Piece {
  segment: number; from: number; to: number; // bytes of the segment
  x: number; width: number; row: number;
}

export interface Group {
  lane: number; isLarge: boolean; isPrivate: boolean; segments: number[];
  reserved: number; pieces: Piece[]; rows: number; y: number; height: number;
}

export interface Layout {
  groups: Group[]; rowBytes: number; rowHeight: number; width: number; height: number;
  requestRows: number;
}

export const HEAD = 26, GAP = 14, ROW_MIN = 18;
const ROW_MAX = 34, REQUEST_ROWS = 3;
const SEGMENT_GAP = 3, WIDTH_MIN = 2;

/* Put the segments of a map into groups, the largest group first, each in order of address. */
export function groupSegments(map: MemoryMap): Group[] {
  const groups = new Map<string, Group>();
  for (let i = 0; i < map.segments; i++) {
    const isLarge = (map.flags[i] & LARGE) !== 0, isPrivate = (map.flags[i] & PRIVATE) !== 0;
    const key = `${map.lane[i]}/${isLarge}`;
    let g = groups.get(key);
    if (g === undefined) {
      g = { lane: map.lane[i], isLarge, isPrivate, segments: [], reserved: 0, pieces: [], rows: 0,
        y: 0, height: 0 };
      groups.set(key, g);
    }
    g.segments.push(i);
    g.reserved += map.size[i];
  }
  const all = [...groups.values()].sort((x, y) => y.reserved - x.reserved);
  for (const g of all)
    g.segments.sort((x, y) => (map.addr[x] < map.addr[y] ? -1 : map.addr[x] > map.addr[y] ? 1 : 0));
  return all;
}

function layGroup(group: Group, map: MemoryMap, width: number, unit: number): void {
  let x = 0, row = 0;
  group.pieces = [];
  for (const segment of group.segments) {
    const size = map.size[segment];
    if (x > 0 && x + Math.min(size * unit, width * 0.25) > width) { x = 0; row++; }
    for (let from = 0; from < size;) {
      const room = (width - x) / unit, to = Math.min(size, from + room);
      const w = Math.max(WIDTH_MIN, (to - from) * unit);
      group.pieces.push({ segment, from, to, x, width: Math.min(w, width - x), row });
      from = to;
      x += w;
      if (from < size || x >= width - WIDTH_MIN) { x = 0; row++; }
    }
    if (x > 0) x += SEGMENT_GAP;
  }
  group.rows = x > 0 ? row + 1 : row;
}

/* Choose how many bytes a row has: a power of two with which all groups fit `height`, if any does. */
export function chooseRowBytes(groups: Group[], map: MemoryMap, width: number,
                               height: number): number {
  const whole = groups.reduce((n, g) => n + g.reserved, 0);
  let bytes = 2 ** 21;
  for (; bytes < whole; bytes *= 2) {
    if ((whole / bytes) * ROW_MIN > height) continue; // not even without gaps
    let rows = 0;
    for (const g of groups) {
      layGroup(g, map, width, width / bytes);
      rows += g.rows;
    }
    if (rows * ROW_MIN + groups.length * (HEAD + GAP) <= height) break;
  }
  return bytes;
}

/*
 * Lay all groups out. Rows grow to fill `height`, within reason. `request` bytes, unless 0, are drawn in
 * rows of their own under each group of large segments.
 */
export function layOut(groups: Group[], map: MemoryMap, width: number, rowBytes: number,
                       height: number, request: number): Layout {
  const requestRows = Math.min(REQUEST_ROWS, Math.ceil(request / rowBytes));
  let rows = 0, y = 0;
  for (const g of groups) {
    layGroup(g, map, width, width / rowBytes);
    rows += g.rows + (g.isLarge ? requestRows : 0);
  }
  const room = (height - groups.length * (HEAD + GAP + (request > 0 ? HEAD : 0))) / Math.max(1, rows);
  const rowHeight = Math.max(ROW_MIN, Math.min(ROW_MAX, Math.floor(room)));
  for (const g of groups) {
    const extra = g.isLarge && request > 0 ? requestRows * rowHeight + HEAD : 0;
    g.y = y;
    g.height = HEAD + g.rows * rowHeight + extra;
    y += g.height + GAP;
  }
  return { groups, rowBytes, rowHeight, width, height: y, requestRows };
}

/* Name a group: "pool default, stream 0: large segments". */
export function groupName(group: Group, lanes: Lane[]): string {
  const lane = lanes[group.lane];
  const where = lane === undefined ? "pool and stream not recorded"
    : `pool ${lane.pool}, stream ${lane.stream}`;
  return `${where}: ${group.isLarge ? "large" : "small"} segments${group.isPrivate ? ", private" : ""}`;
}
