// SPDX-License-Identifier: Apache-2.0
/*
 * The places of the ranks' cells: in rows, as many to a row as fit. Long rows hold a multiple of eight, since
 * hosts have eight devices. Ranks without a file have an empty cell if they are not too many.
 */

import type { Job } from "./job.ts";

export interface Cell { file: number | null; rank: number | null } // file null: a rank without one that counts
/* `left`: the room for ranks beside the rows, where cells are too small for numbers of their own. */
export interface Grid { size: number; columns: number; rows: number; pitch: number; height: number; left: number }

export const NUMBERED = 26; // pixels of a cell that has room for a number
const LARGEST = 40, LEAST = 3, HEIGHT = 190, BAND = 0.28, GUTTER = 44;

/* List the cells by rank. A rank none of whose files counts is one without a file. */
export function listCells(job: Job): Cell[] {
  const { missing, files } = job.fleet, cells: Cell[] = [];
  const isLarge = missing.reduce((n, [from, to]) => n + to - from + 1, 0) > files.length;
  const ranks = new Set(job.used.map((i) => files[i].rank)), used = new Set(job.used);
  let gap = isLarge ? missing.length : 0;
  files.forEach(({ rank }, file) => {
    for (; rank !== null && gap < missing.length && missing[gap][0] < rank; gap++)
      for (let r = missing[gap][0]; r <= missing[gap][1]; r++) cells.push({ file: null, rank: r });
    if (used.has(file)) cells.push({ file, rank });
    else if (rank !== null && !ranks.has(rank)) {
      ranks.add(rank);
      cells.push({ file: null, rank });
    }
  });
  return cells;
}

/* Lay `count` cells out within `width`. */
export function layOut(count: number, width: number): Grid {
  const sizeIn = (room: number) => Math.max(LEAST, Math.min(LARGEST,
    Math.floor(Math.sqrt((room * HEIGHT) / Math.max(1, count) / (1 + BAND)))));
  const left = sizeIn(width) < NUMBERED ? GUTTER : 0, room = width - left, size = sizeIn(room);
  let columns = Math.max(1, Math.floor(room / size));
  if (columns >= 16) {
    columns -= columns % 8;
    columns = 8 * Math.ceil(Math.ceil(count / Math.ceil(count / columns)) / 8); // rows of about one length
  }
  columns = Math.max(1, Math.min(columns, count));
  const rows = Math.ceil(count / columns), pitch = size + Math.max(2, Math.round(size * BAND));
  return { size, columns, rows, pitch, height: rows * pitch, left };
}

/* Return the cell at a point, or null. */
export function cellAt(grid: Grid, count: number, x: number, y: number): number | null {
  const column = Math.floor((x - grid.left) / grid.size), row = Math.floor(y / grid.pitch);
  const i = row * grid.columns + column;
  return x < grid.left || y < 0 || column >= grid.columns || i >= count ? null : i;
}
