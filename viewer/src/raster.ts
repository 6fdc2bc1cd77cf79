// SPDX-License-Identifier: Apache-2.0
/*
 * Stacked allocations as pixels. Each pixel of a picture also knows its run, so what lies under the
 * pointer is one look-up, whatever there is to draw. All rectangles have whole sides, and a canvas's
 * own rectangles cost far more than rows of a buffer. Cost: runs + pixels.
 *
 * A pixel may cover several columns. It shows the one with the most active bytes: the peak of the
 * record is never between two pixels.
 */

import { pixel } from "./palette.ts";
import type { Part } from "./picture.ts";
import type { Scale } from "./scale.ts";
import type { Tile } from "./tile.ts";

export const SMALL = 0xffffffff; // the id of the band of small allocations

export interface Look {
  colour: (tile: Tile, row: number) => string;
  isDim: (tile: Tile, row: number) => boolean;
  dim: (hex: string) => string;
  small: string[]; // by category
}

type Pair = readonly [number, number]; // plain, and that of an upper edge

/* Return what gives each row its pixels. There are few colours, and many rows. */
function rowColours(tile: Tile, look: Look): (row: number) => Pair {
  const rows: (Pair | undefined)[] = new Array<Pair | undefined>(tile.allocs.length);
  const pairs = new Map<string, Pair>();
  return (row) => {
    const known = rows[row];
    if (known !== undefined) return known;
    const plain = look.colour(tile, row), hex = look.isDim(tile, row) ? look.dim(plain) : plain;
    let pair = pairs.get(hex);
    if (pair === undefined) {
      pair = [pixel(hex), pixel(hex, 0.72)];
      pairs.set(hex, pair);
    }
    return (rows[row] = pair);
  };
}

export class Raster {
  pixels = new Uint32Array(0);
  ids = new Uint32Array(0);
  /* For each pixel: the column that is drawn, and the most reserved bytes of all its columns. */
  column = new Int32Array(0);
  reserved = new Float64Array(0);
  width = 0;
  height = 0;
  private parts: { part: Part; base: number; right: number }[] = [];

  private resize(width: number, height: number): void {
    if (this.pixels.length !== width * height) {
      this.pixels = new Uint32Array(width * height);
      this.ids = new Uint32Array(width * height);
    } else {
      this.pixels.fill(0);
      this.ids.fill(0);
    }
    this.column = new Int32Array(width).fill(-1);
    this.reserved = new Float64Array(width);
    this.width = width;
    this.height = height;
  }

  /* Draw `parts` on an empty picture; `scale` gives pixels, `top` the bytes at the upper edge. */
  paint(parts: Part[], scale: Scale, width: number, height: number, top: number, look: Look): void {
    this.resize(width, height);
    this.parts = [];
    let base = 1;
    for (const part of parts) {
      this.parts.push({ part, base, right: Math.round(scale.x(part.to)) });
      this.paintPart(part, base, scale, height / top, look);
      base += part.tile.runs;
    }
  }

  /* Choose the columns of the part's pixels. Returns the pixel where each column begins. */
  private chooseColumns(part: Part, scale: Scale): Int32Array {
    const { tile } = part;
    const first = new Int32Array(tile.columns + 1).fill(-1);
    const left = Math.max(0, Math.round(scale.x(part.from)));
    const right = Math.min(this.width, Math.round(scale.x(part.to)));
    for (let c = 0; c < tile.columns; c++) {
      if (tile.end[c] <= part.from || tile.begin[c] >= part.to) continue;
      const x0 = Math.max(left, Math.round(scale.x(tile.begin[c])));
      const x1 = Math.min(right, Math.max(x0 + 1, Math.round(scale.x(tile.end[c]))));
      for (let x = x0; x < x1; x++) {
        const old = this.column[x];
        if (old < 0 || tile.active[c] >= tile.active[old]) this.column[x] = c;
        this.reserved[x] = Math.max(this.reserved[x], tile.reserved[c]);
      }
    }
    let next = 0;
    for (let x = left; x < right; x++)
      for (; next <= this.column[x]; next++) first[next] = x;
    for (; next <= tile.columns; next++) first[next] = right;
    return first;
  }

  private paintPart(part: Part, base: number, scale: Scale, unit: number, look: Look): void {
    const { tile } = part, first = this.chooseColumns(part, scale);
    const colours = rowColours(tile, look);
    for (let i = 0; i < tile.runs; i++) {
      const x0 = first[tile.runFrom[i]], x1 = first[tile.runTo[i]];
      if (x1 <= x0) continue;
      const row = tile.runAlloc[i], bottom = tile.runBottom[i];
      const y1 = this.height - Math.round(bottom * unit);
      const y0 = Math.max(0, this.height - Math.round((bottom + tile.allocs.size[row]) * unit));
      if (y1 <= y0) continue;
      this.fill(x0, y0, x1, y1, base + i, colours(row));
    }
    this.paintSmall(tile, first, unit, look.small.map((hex) => pixel(hex)));
  }

  /* Fill a rectangle; its upper edge is darker, if there is room for an edge. */
  private fill(x0: number, y0: number, x1: number, y1: number, id: number,
               [plain, edge]: Pair): void {
    for (let y = y0; y < y1; y++) {
      const colour = y === y0 && y1 - y0 >= 3 ? edge : plain;
      const from = y * this.width + x0, to = y * this.width + x1;
      if (to - from > 12) {
        this.pixels.fill(colour, from, to);
        this.ids.fill(id, from, to);
      } else
        for (let i = from; i < to; i++) {
          this.pixels[i] = colour;
          this.ids[i] = id;
        }
    }
  }

  /* Lay the small allocations on top, divided by category. */
  private paintSmall(tile: Tile, first: Int32Array, unit: number, colours: number[]): void {
    const left = first[0] < 0 ? 0 : first[0], right = first[tile.columns];
    for (let x = left; x < right; x++) {
      const c = this.column[x];
      if (c < 0 || tile.small[c] === 0) continue;
      let bottom = tile.active[c] - tile.small[c];
      for (let k = 0; k < tile.categories; k++) {
        const bytes = Math.max(0, tile.smallBy[c * tile.categories + k]);
        const y1 = this.height - Math.round(bottom * unit);
        bottom += bytes;
        const y0 = Math.max(0, this.height - Math.round(bottom * unit));
        for (let y = y0; y < y1; y++) {
          this.pixels[y * this.width + x] = colours[k] ?? colours[0];
          this.ids[y * this.width + x] = SMALL;
        }
      }
    }
  }

  /* Return what lies at a pixel: a run of a part, run -1 for its small allocations, or null. */
  at(x: number, y: number): { part: Part; run: number } | null {
    if (x < 0 || y < 0 || x >= this.width || y >= this.height) return null;
    const id = this.ids[y * this.width + x];
    if (id === 0) return null;
    for (const { part, base } of this.parts)
      if (id !== SMALL && id >= base && id < base + part.tile.runs)
        return { part, run: id - base };
    const under = this.parts.find(({ right }) => x < right);
    return under === undefined ? null : { part: under.part, run: -1 };
  }
}
