/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PINNED_STATE_H
#define DRYI_HOST_PINNED_STATE_H

/*
 * The internal state of a pinned cache, shared by its files.
 *
 *     pinned_cell.h          the record of a granule, and of a block
 *     pinned_stream.h        uses, batches and streams
 *     pinned_heap.c          which block of an arena a request gets
 *     pinned_arena.c         arenas, and from addresses to blocks
 *     pinned_thread_cache.c  free blocks cached by each thread
 *     pinned_event.c         streams and graphs
 *     pinned_grow.c          misses, warming, clearing
 *     pinned_count.c         the counters, reported by pinned_stats.c
 *     pinned_check.c         the invariants, by a walk
 *     pinned_options.c       options
 *     pinned.c               life, blocks
 *
 * An arena is one range of the pin, cut into granules; each granule has a cell
 * (pinned_cell.h). Granules of all arenas are numbered: a cell's id is its arena's first
 * id plus its index. There are three heaps: for small requests, for large ones, and in
 * BUDDY mode for those larger than a block. An arena belongs to one heap. An arena is
 * idle if none of its granules is used.
 *
 * Invariants, checked by dry_pinned_check():
 *     H1 the blocks of an arena tile it, and no other cell is marked
 *     H2 fit: no two free blocks are adjacent; buddy: no two free halves form a block; sizes are
 *        powers of two, offsets multiples of them
 *     H3 a free block is in its bin's list only; a bin's bit is set if the bin is not empty
 *     H4 an arena's used granules are those of its blocks that are not free
 *     H5 the KEPT blocks are those in thread caches, each once
 *     H6 a pending block's uses_left is the number of its uses in all lists
 *     H7 the sums: pinned, active, requested, pending
 *     H8 the directory finds each arena, and no other address
 *
 * Locks, in this order:
 *     grow   misses, warming and clear, one at a time. It is held while memory is pinned
 *            and unpinned, and while the pinner is waited for. It guards remembered_bytes
 *            and the pinner's start and end. dry_pinned_trim() and dryi_pinned_shed() do
 *            not need it: a thread that removes an arena under `lock` owns it.
 *     thread cache
 *            is_taken: its blocks and its sums. Threads that allocate or free never wait for it.
 *            A flush and dryi_pinned_lock_all() do, spinning, and lock them by their index.
 *     lock   all other state, for about a microsecond; events are queried while it is held.
 *     inbox  state that the pinner shares with dryi_pinned_adopt().
 * The pin's event_record, take, give and available_bytes are called with neither thread cache, lock
 * nor inbox held. A stream is_closing while its event is being recorded. Its entry is not
 * removed meanwhile, because it has uses, and only the recording thread accesses
 * closing_first. In the child of a fork only destroy is called, which frees records only
 * if all locks are free.
 *
 * Two items are read without a lock: the tag of a block, by the block's owner, and the
 * directory. A look-up dereferences an arena only if the address is in the arena, and a
 * block in use keeps its arena alive. Two errors of the program are detected only if the
 * calls do not overlap: two concurrent frees of a block, and a second free of a block
 * while its arena is removed.
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
    DRYI_PINNED_OWN = 2, /* BUDDY: requests larger than a block */
    DRYI_PINNED_HEAP_COUNT = 3,
};

#define DRYI_PINNED_BIN_WORDS 15
#define DRYI_PINNED_BINS (DRYI_PINNED_BIN_WORDS * 64)

struct dryi_pinned_heap {
    bool is_buddy;
    unsigned granule_shift;
    uint32_t name;
    uint32_t summary; /* bit i: words[i] is not 0 */
    uint64_t words[DRYI_PINNED_BIN_WORDS];
    uint32_t heads[DRYI_PINNED_BINS];
    uint64_t pinned_bytes;
};

/* --- arenas -------------------------------------------------------------------------------- */

struct dryi_pinned_arena {
    struct dryi_pin_range range;
    struct dryi_pinned_cell *cells;
    uint32_t count;    /* in granules */
    uint32_t first_id; /* id of its first cell */
    uint32_t used;     /* granules of blocks that are not free */
    uint32_t heap;     /* enum dryi_pinned_heap_name */
    unsigned granule_shift;
    uint32_t index;     /* index in dry_pinned.arenas */
    uint32_t row_count; /* rows of cell ids that it occupies */
    bool is_unwanted;   /* idle, and its last block was larger than keep_max_bytes */
};

/* Cell ids are assigned in rows of 2^18; a row leads from an id to its cell. */
#define DRYI_PINNED_ROW_SHIFT 18
#define DRYI_PINNED_ROW_CELLS (UINT32_C(1) << DRYI_PINNED_ROW_SHIFT)
#define DRYI_PINNED_ROWS_MAX (UINT32_C(1) << (32 - DRYI_PINNED_ROW_SHIFT))

struct dryi_pinned_row {
    struct dryi_pinned_cell *cells;
    struct dryi_pinned_arena *arena; /* NULL: the row is free */
};

/* --- warming ------------------------------------------------------------------------------- */

/* The thread that pins ahead. Its ranges stay in the inbox until a call adopts them. */
struct dryi_pinned_pinner {
    struct dryi_thread thread;
    bool is_started; /* started and not yet joined */
    atomic_bool is_done, is_cancelled;
    uint64_t target_bytes, piece_bytes, budget_bytes;
    struct dryi_lock lock;        /* guards the inbox */
    struct dryi_pin_range *inbox; /* allocated before the thread starts, for all ranges
                                     that it may pin */
    size_t capacity, count;
    _Atomic uint64_t bytes;      /* sum over the inbox */
    struct dry_pinned_time time; /* duration of its calls, not yet added to the
                                    statistics */
};

/* --- the cache ------------------------------------------------------------------------------ */

struct dry_pinned {
    /* Constant after create. */
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
    struct dryi_pinned_thread_cache *thread_caches; /* NULL: thread caches are off */
    struct dryi_pinned_streams streams;
    struct dryi_pinned_pinner pinner;

    struct dry_pinned_stats stats; /* except values computed on request */
    uint64_t idle_bytes;           /* bytes of arenas without a used granule */
    bool has_unwanted;             /* an arena may have is_unwanted */
    int64_t used_peak_bytes;       /* peak of active bytes since the last clear */
    uint64_t remembered_bytes;     /* bytes to pin again at the next miss after a clear;
                                      0: none */
    _Atomic uint64_t pinned_bytes; /* sum over all arenas */
    _Atomic int64_t slack_bytes;   /* bound on the bytes that a thread cache has not yet
                                      added to the statistics */
};

/* Find the cell of an id. Requires the lock, because another thread may reallocate the
   rows. */
static inline struct dryi_pinned_cell *
dryi_pinned_cell(const struct dry_pinned *p, uint32_t id)
{
    DRYI_ASSERT_SLOW(id >> DRYI_PINNED_ROW_SHIFT < p->row_capacity);
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    return &p->rows[id >> DRYI_PINNED_ROW_SHIFT].cells[id & (DRYI_PINNED_ROW_CELLS - 1)];
}

static inline struct dryi_pinned_arena *
dryi_pinned_arena_get(const struct dry_pinned *p, uint32_t id)
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
