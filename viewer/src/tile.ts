// SPDX-License-Identifier: Apache-2.0
/* A tile, a map and a page of events: packs as checked tables. */

import { Pack, NONE, PackError, checkBelow, checkBytes, sameLength } from "./pack.ts";

/* The allocations that a pack speaks of. */
export class Allocs {
  readonly length: number;
  readonly id: Uint32Array;
  readonly addr: BigUint64Array;
  readonly size: Float64Array;
  readonly req: Float64Array;
  readonly begin: Uint32Array;
  readonly freed: Uint32Array;
  readonly end: Uint32Array;
  readonly lane: Uint32Array;
  readonly stack: Uint32Array;
  readonly flags: Uint32Array;
  readonly category: Uint8Array;

  constructor(pack: Pack) {
    this.id = pack.u32("alloc_id");
    this.addr = pack.u64("alloc_addr");
    this.size = pack.f64("alloc_size");
    this.req = pack.f64("alloc_req");
    this.begin = pack.u32("alloc_begin");
    this.freed = pack.u32("alloc_freed");
    this.end = pack.u32("alloc_end");
    this.lane = pack.u32("alloc_lane");
    this.stack = pack.u32("alloc_stack");
    this.flags = pack.u32("alloc_flags");
    this.category = pack.u8("alloc_category");
    this.length = sameLength("allocations", this.id, this.addr, this.size, this.req, this.begin,
      this.freed, this.end, this.lane, this.stack, this.flags, this.category);
    checkBytes("alloc_size", this.size);
    checkBytes("alloc_req", this.req);
  }

  /*
   * Tell whether other events lie between the free of allocation `at` and the moment when its bytes
   * became reusable. PyTorch writes both events at once, unless another stream used the block.
   */
  waits(at: number, moments: number): boolean {
    const end = this.end[at] === NONE ? moments + 1 : this.end[at];
    return this.freed[at] !== NONE && end > this.freed[at] + 1;
  }
}

export const FLAG_CARRIED_OVER = 1, FLAG_STACK_OF_FREE = 2, FLAG_GUESSED = 4, FLAG_LOST = 8;

export class Tile {
  readonly columns: number;
  readonly runs: number;
  readonly begin: Uint32Array;
  readonly end: Uint32Array;
  readonly at: Uint32Array;
  readonly time: Float64Array;
  readonly reserved: Float64Array;
  readonly active: Float64Array;
  readonly activeMin: Float64Array;
  readonly reservedMin: Float64Array;
  readonly allocated: Float64Array;
  readonly requested: Float64Array;
  readonly small: Float64Array;
  readonly smallCount: Uint32Array;
  readonly smallBy: Float64Array; // a value a category for each column
  readonly categories: number;
  readonly runAlloc: Uint32Array;
  readonly runFrom: Uint32Array;
  readonly runTo: Uint32Array;
  readonly runBottom: Float64Array;
  readonly smallBelow: number; // allocations below so many bytes are small
  readonly allocs: Allocs;

  constructor(pack: Pack) {
    this.begin = pack.u32("col_begin");
    this.end = pack.u32("col_end");
    this.at = pack.u32("col_at");
    this.time = pack.f64("col_time");
    this.reserved = pack.f64("reserved_max");
    this.reservedMin = pack.f64("reserved_min");
    this.active = pack.f64("active_max");
    this.activeMin = pack.f64("active_min");
    this.allocated = pack.f64("allocated_max");
    this.requested = pack.f64("requested_max");
    this.small = pack.f64("small_bytes");
    this.smallCount = pack.u32("small_count");
    this.columns = sameLength("columns", this.begin, this.end, this.at, this.time, this.reserved,
      this.reservedMin, this.active, this.activeMin, this.allocated, this.requested, this.small,
      this.smallCount);
    this.smallBelow = pack.f64("small_below")[0] ?? 0;
    this.smallBy = pack.f64("small_by");
    this.categories = this.columns > 0 ? this.smallBy.length / this.columns : 0;
    if (!Number.isInteger(this.categories)) throw new PackError("small_by is of another length");
    this.runAlloc = pack.u32("run_alloc");
    this.runFrom = pack.u32("run_from");
    this.runTo = pack.u32("run_to");
    this.runBottom = pack.f64("run_bottom");
    this.runs = sameLength("runs", this.runAlloc, this.runFrom, this.runTo, this.runBottom);
    this.allocs = new Allocs(pack);
    this.check();
  }

  private check(): void {
    for (const [name, column] of [["reserved_max", this.reserved], ["active_max", this.active],
      ["small_bytes", this.small], ["run_bottom", this.runBottom]] as const)
      checkBytes(name, column);
    checkBelow("run_alloc", this.runAlloc, this.allocs.length);
    for (let i = 0; i < this.columns; i++)
      if (this.end[i] < this.begin[i] || (i > 0 && this.begin[i] !== this.end[i - 1]))
        throw new PackError("the columns of a tile do not follow one another");
    for (let i = 0; i < this.runs; i++)
      if (this.runFrom[i] >= this.runTo[i] || this.runTo[i] > this.columns)
        throw new PackError("a run lies outside of its tile");
  }

  get first(): number { return this.columns > 0 ? this.begin[0] : 0; }
  get last(): number { return this.columns > 0 ? this.end[this.columns - 1] : 0; }

  /* Return the column of `moment`, or the nearest one. */
  columnOf(moment: number): number {
    let low = 0, high = this.columns - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.begin[middle] <= moment) low = middle; else high = middle - 1;
    }
    return low;
  }
}

export class MemoryMap {
  readonly segments: number;
  readonly blocks: number;
  readonly addr: BigUint64Array;
  readonly size: Float64Array;
  readonly lane: Uint32Array;
  readonly flags: Uint8Array;
  readonly seg: Uint32Array;
  readonly offset: Float64Array;
  readonly blockSize: Float64Array;
  readonly state: Uint8Array;
  readonly alloc: Uint32Array;
  readonly pinSeg: Uint32Array;
  readonly pinUsed: Float64Array;
  readonly pinBytes: Float64Array;
  readonly allocs: Allocs;

  constructor(pack: Pack) {
    this.addr = pack.u64("seg_addr");
    this.size = pack.f64("seg_size");
    this.lane = pack.u32("seg_lane");
    this.flags = pack.u8("seg_flags");
    this.segments = sameLength("segments", this.addr, this.size, this.lane, this.flags);
    this.seg = pack.u32("block_seg");
    this.offset = pack.f64("block_offset");
    this.blockSize = pack.f64("block_size");
    this.state = pack.u8("block_state");
    this.alloc = pack.u32("block_alloc");
    this.blocks = sameLength("blocks", this.seg, this.offset, this.blockSize, this.state,
      this.alloc);
    this.pinSeg = pack.u32("pin_seg");
    this.pinUsed = pack.f64("pin_used");
    this.pinBytes = pack.f64("pin_bytes");
    sameLength("pins", this.pinSeg, this.pinUsed, this.pinBytes);
    this.allocs = new Allocs(pack);
    checkBytes("seg_size", this.size);
    checkBytes("block_offset", this.offset);
    checkBytes("block_size", this.blockSize);
    checkBelow("block_seg", this.seg, this.segments);
    checkBelow("block_alloc", this.alloc, this.allocs.length, true);
    checkBelow("pin_seg", this.pinSeg, this.segments);
  }
}

export const LARGE = 1, EXPANDABLE = 2, PRIVATE = 4;

export class EventPage {
  readonly length: number;
  readonly action: Uint8Array;
  readonly addr: BigUint64Array;
  readonly size: Float64Array;
  readonly time: Float64Array;
  readonly stack: Uint32Array;
  readonly lane: Uint32Array;
  readonly alloc: Uint32Array;

  constructor(pack: Pack) {
    this.action = pack.u8("ev_action");
    this.addr = pack.u64("ev_addr");
    this.size = pack.f64("ev_size");
    this.time = pack.f64("ev_time");
    this.stack = pack.u32("ev_stack");
    this.lane = pack.u32("ev_lane");
    this.alloc = pack.u32("ev_alloc");
    this.length = sameLength("events", this.action, this.addr, this.size, this.time, this.stack,
      this.lane, this.alloc);
    if (this.length > EVENT_PAGE) throw new PackError("a page of events is too long");
  }
}

export const EVENT_PAGE = 1024;

/* Say whether allocation `row` is alive at `moment`. */
export function isAlive(a: Allocs, row: number, moment: number): boolean {
  return a.begin[row] <= moment && (a.end[row] === NONE || moment < a.end[row]);
}
