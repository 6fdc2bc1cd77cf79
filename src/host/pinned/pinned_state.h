/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PINNED_STATE_H
#define DRYI_HOST_PINNED_STATE_H

/*
 * The inside of a pinned cache: what its files share. Each noun has a header.
 *
 *     pinned_cell.h          the record of a granule, and of a block
 *     pinned_stream.h        uses, batches and streams
 *     pinned_heap.c          which block of an arena a request gets
 *     pinned_arena.c         arenas, and from addresses to blocks
 *     pinned_thread_cache.c  what a thread keeps at hand
 *     pinned_event.c         streams and graphs
 *     pinned_grow.c          misses, warming, clearing
 *     pinned_count.c         the counters, reported by pinned_stats.c
 *     pinned_check.c         the invariants, by a walk
 *     pinned_options.c       options
 *     pinned.c               life, blocks
 *
 * An arena is one range of the pin, cut into granules; each granule has a cell
 * (pinned_cell.h). Granules of all arenas are numbered: a cell's id is its arena's first id
 * plus its index. There are three heaps: for small requests, for large ones, and in BUDDY
 * mode for those larger than a block. An arena belongs to one heap. An arena is idle if none
 * of its granules is used.
 *
 * Invariants, checked by dry_pinned_check():
 *     H1 the blocks of an arena tile it, and no other cell is marked
 *     H2 fit: no two neighbours are free; buddy: nor two halves of one block; sizes are powers
 *        of two, offsets multiples of them
 *     H3 a free block is in the list of its bin, in no other; a bin's bit is set if it has any
 *     H4 an arena's used granules are those of its blocks that are not free
 *     H5 what is kept at hand is what the thread caches hold, each block once
 *     H6 a pending block waits for as many uses as lists hold of it
 *     H7 the sums: pinned, active, requested, pending
 *     H8 the directory finds each arena, and nothing else
 *
 * Locks, in this order:
 *     grow   misses, warming and clear, one at a time. It is held while memory is pinned and
 *            unpinned, and while the pinner is waited for. It guards remembered_bytes and the
 *            pinner's start and end. dry_pinned_trim() and dryi_pinned_shed() go without it:
 *            an arena that is taken out under `lock` is its taker's.
 *     thread cache
 *            is_taken: its blocks and its sums. Threads that allocate or free never wait for it.
 *            A flush and dryi_pinned_lock_all() do, spinning, and lock them by their index.
 *     lock   everything else, for a microsecond; events are asked for their state with it.
 *     inbox  what the pinner shares with dryi_pinned_adopt().
 * The pin's event_record, take, give and room are called with neither thread cache, lock nor
 * inbox held. A stream whose event is being recorded is_closing. Its entry stays, for its uses
 * do, and only the thread that records touches closing_first. In the child of a fork nothing is
 * called but destroy, which frees records only if it finds all locks free.
 *
 * Two things are read without any lock: the tag of a block, by the block's owner, and the
 * directory. The directory follows no pointer to an arena unless the address is of the arena,
 * and a block in use keeps its arena. Two errors of the program are beyond that: a block is
 * freed twice at the same time, or a block that was freed is freed again while its arena
 * goes. They are found only if the calls do not meet.
 */

#include <stdatomic.h>
#include <stdbool.h>

#include <drystone/pinned.h>

#include "base/assert.h"
#include "host/pinned/pin.h"
#include "host/pinned/pinned_cell.h"
#include "host/pinned/pinned_stream.h"
#include "os/fork.h"
#include "os/lock.h"
#include "os/thread.h"

/* --- heaps --------------------------------------------------------------------------------- */

enum dryi_pinned_heap_name {
    DRYI_PINNED_SMALL = 0,
    DRYI_PINNED_LARGE = 1,
    DRYI_PINNED_OWN = 2, /* BUDDY: larger than a block */
    DRYI_PINNED_HEAP_COUNT = 3,
};

#define DRYI_PINNED_BIN_WORDS 15
#define DRYI_PINNED_BINS (DRYI_PINNED_BIN_WORDS * 64)

struct dryi_pinned_heap {
    bool is_buddy;
    unsigned granule_shift;
    uint32_t name;
    uint32_t summary; /* a bit a word that is not 0 */
    uint64_t words[DRYI_PINNED_BIN_WORDS];
    uint32_t heads[DRYI_PINNED_BINS];
    uint64_t pinned_bytes;
};

/* --- arenas -------------------------------------------------------------------------------- */

struct dryi_pinned_arena {
    struct dryi_pin_range range;
    struct dryi_pinned_cell *cells;
    uint32_t count;    /* granules */
    uint32_t first_id; /* of its first cell */
    uint32_t used;     /* granules of blocks that are not free */
    uint32_t heap;     /* enum dryi_pinned_heap_name */
    unsigned granule_shift;
    uint32_t index;     /* in dry_pinned.arenas */
    uint32_t row_count; /* of ids */
    bool is_unwanted;   /* idle, and its last block was larger than keep_max_bytes */
};

/* Ids are given out in rows; where the cell of an id is. */
#define DRYI_PINNED_ROW_SHIFT 18
#define DRYI_PINNED_ROW_CELLS (UINT32_C(1) << DRYI_PINNED_ROW_SHIFT)
#define DRYI_PINNED_ROWS_MAX (UINT32_C(1) << (32 - DRYI_PINNED_ROW_SHIFT))

struct dryi_pinned_row {
    struct dryi_pinned_cell *cells;
    struct dryi_pinned_arena *arena; /* NULL: the row is free */
};

/* --- warming ------------------------------------------------------------------------------- */

/* The thread that pins ahead; what it has pinned lies in the inbox until a call comes by. */
struct dryi_pinned_pinner {
    struct dryi_thread thread;
    bool is_started; /* and not joined */
    atomic_bool is_done, is_cancelled;
    uint64_t target_bytes, piece_bytes, budget_bytes;
    struct dryi_lock lock;        /* of the inbox */
    struct dryi_pin_range *inbox; /* as large as the thread may need, before it starts */
    size_t capacity, count;
    _Atomic uint64_t bytes;      /* in the inbox */
    struct dry_pinned_time time; /* of its calls, not yet in the statistics */
};

/* --- the cache ------------------------------------------------------------------------------ */

struct dry_pinned {
    /* Set by create, for ever. */
    struct dry_memory memory;
    struct dry_pinned_options options;
    struct dryi_pin pin;
    struct dryi_fork_mark fork;

    struct dryi_lock grow;
    struct dryi_lock lock;
    struct dryi_pinned_heap heaps[DRYI_PINNED_HEAP_COUNT];
    struct dryi_pinned_arena **arenas;
    size_t arena_capacity;
    uint32_t arena_count;
    struct dryi_pinned_row *rows;
    size_t row_capacity;
    struct dryi_pinned_leaf *_Atomic *leaves;
    struct dryi_pinned_thread_cache *thread_caches; /* NULL: there are none */
    struct dryi_pinned_streams streams;
    struct dryi_pinned_pinner pinner;

    struct dry_pinned_stats stats; /* but for what is counted when asked */
    uint64_t idle_bytes;           /* in arenas without a used granule */
    bool has_unwanted;             /* some arena is_unwanted, perhaps */
    int64_t used_peak_bytes;       /* active since the last clear */
    uint64_t remembered_bytes;     /* to be pinned again at the next miss; 0: nothing */
    _Atomic uint64_t pinned_bytes; /* of all arenas */
    _Atomic int64_t slack_bytes;   /* how far a thread cache's sums may be behind */
};

/* Find the cell of an id. Requires the lock: the rows may move. */
static inline struct dryi_pinned_cell *
dryi_pinned_cell(const struct dry_pinned *p, uint32_t id)
{
    DRYI_ASSERT_SLOW(id >> DRYI_PINNED_ROW_SHIFT < p->row_capacity);
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    return &p->rows[id >> DRYI_PINNED_ROW_SHIFT].cells[id & (DRYI_PINNED_ROW_CELLS - 1)];
}

static inline struct dryi_pinned_arena *
dryi_pinned_arena_of(const struct dry_pinned *p, uint32_t id)
{
    DRYI_ASSERT_SLOW(id >> DRYI_PINNED_ROW_SHIFT < p->row_capacity);
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    return p->rows[id >> DRYI_PINNED_ROW_SHIFT].arena;
}

static inline uint32_t
dryi_pinned_id(const struct dryi_pinned_arena *a, const struct dryi_pinned_cell *cell)
{
    DRYI_ASSERT_SLOW(cell >= a->cells && cell < a->cells + a->count);
    return a->first_id + (uint32_t)(cell - a->cells);
}

static inline uint64_t
dryi_pinned_block_bytes(const struct dryi_pinned_arena *a,
                        const struct dryi_pinned_cell *cell)
{
    return (uint64_t)cell->size << a->granule_shift;
}

static inline uint64_t
dryi_pinned_block_address(const struct dryi_pinned_arena *a,
                          const struct dryi_pinned_cell *cell)
{
    DRYI_ASSERT_SLOW(cell >= a->cells && cell < a->cells + a->count);
    return a->range.address + ((uint64_t)(cell - a->cells) << a->granule_shift);
}

#endif
