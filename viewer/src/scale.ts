// SPDX-License-Identifier: Apache-2.0
/*
 * Where a moment lies on a plot: by events, evenly, or by time, through the times that the columns of
 * tiles tell. Times of a record may go backwards; the axis then stands still, and never turns.
 */

import type { Tile } from "./tile.ts";

export interface Span { from: number; to: number; width: number }

/* Moments with their times, both rising. */
export interface Knots { moments: number[]; times: number[] }

/* Join the times of the whole record with those of finer tiles, which cover a part of it. */
export function joinKnots(whole: Tile | null, parts: Tile[]): Knots {
  const points: [number, number][] = [];
  const first = parts.length > 0 ? Math.min(...parts.map((t) => t.first)) : Infinity;
  const last = parts.length > 0 ? Math.max(...parts.map((t) => t.last)) : -Infinity;
  const take = (tile: Tile, outside: boolean) => {
    for (let i = 0; i < tile.columns; i++)
      if (!outside || tile.begin[i] < first || tile.begin[i] >= last)
        points.push([tile.begin[i], tile.time[i]]);
  };
  if (whole !== null) take(whole, true);
  for (const tile of parts) take(tile, false);
  points.sort((x, y) => x[0] - y[0]);
  let high = 0;
  const times = points.map(([, t]) => (high = Math.max(high, t)));
  return { moments: points.map(([m]) => m), times };
}

function interpolate(at: number, xs: number[], ys: number[], beyond: number): number {
  const n = xs.length;
  if (n === 0) return at;
  if (at >= xs[n - 1]) return ys[n - 1] + (at - xs[n - 1]) * beyond;
  if (at < xs[0]) return ys[0] + (at - xs[0]) * beyond;
  let low = 0, high = n - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle] <= at) low = middle; else high = middle;
  }
  const gap = xs[high] - xs[low];
  return gap > 0 ? ys[low] + ((at - xs[low]) * (ys[high] - ys[low])) / gap : ys[low];
}

export class Scale {
  private readonly t0: number;
  private readonly t1: number;

  /* Lay `span` out by events, or by time if there are `knots`. */
  constructor(readonly span: Span, private readonly knots: Knots | null) {
    this.t0 = this.timeOf(span.from);
    this.t1 = Math.max(this.t0 + 1e-9, this.timeOf(span.to));
  }

  private timeOf(moment: number): number {
    if (this.knots === null) return moment;
    return interpolate(moment, this.knots.moments, this.knots.times, 0);
  }

  x(moment: number): number {
    return ((this.timeOf(moment) - this.t0) / (this.t1 - this.t0)) * this.span.width;
  }

  /* Return what lies at `x`: a moment with its fraction. */
  moment(x: number): number {
    const t = this.t0 + (x / this.span.width) * (this.t1 - this.t0);
    if (this.knots === null) return t;
    return interpolate(t, this.knots.times, this.knots.moments, 0);
  }

  /* Return the microseconds that the plot covers: from, to. */
  get times(): [number, number] { return [this.t0, this.t1]; }
}

/* Return round values between `from` and `to`, at most about `most` of them. */
export function ticks(from: number, to: number, most: number, isBinary = false): number[] {
  const rough = (to - from) / Math.max(1, most);
  if (!(rough > 0)) return [];
  const base = isBinary ? 2 ** Math.floor(Math.log2(rough)) : 10 ** Math.floor(Math.log10(rough));
  const step = (isBinary ? [1, 2] : [1, 2, 5, 10]).map((m) => m * base).find((s) => s >= rough) ??
               base * 10;
  const out: number[] = [];
  for (let v = Math.ceil(from / step) * step; v <= to; v += step) out.push(v);
  return out;
}
