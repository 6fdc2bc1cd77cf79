/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PINNED_STATE_H
#define DRYI_HOST_PINNED_STATE_H

/*
 * The inside of a pinned cache, shared by its files: pinned.c (life, blocks), pinned_heap.c
 * (where in an arena), pinned_arena.c (arenas, addresses to blocks), pinned_magazine.c (what a
 * thread keeps at hand), pinned_event.c (streams and graphs), pinned_grow.c (misses, warming,
 * clearing), pinned_stats.c, pinned_check.c, pinned_options.c.
 *
 * An arena is one range of the pin, cut into granules. A cell is the record of a granule, and
 * the first cell of a block is the record of the block; a free block has its size in its last
 * cell too, so both neighbours of a block are found in constant time. Cells are outside of the
 * pinned memory. Granules of all arenas are numbered: a cell's id is its arena's first id and
 * its index. Three heaps: small requests, large ones, and in BUDDY mode those that are larger
 * than a block.
 *
 * Invariants, checked by dry_pinned_check():
 *   H1 the blocks of an arena tile it, and no other cell is marked
 *   H2 fit: no two neighbours are free; buddy: nor two halves of one block; sizes are powers of
 *      two, offsets multiples of them
 *   H3 a free block is in the list of its bin, in no other; a bin's bit is set if it has any
 *   H4 an arena's used granules are those of its blocks that are not free
 *   H5 what is kept at hand is what the magazines hold, each block once
 *   H6 a pending block waits for as many uses as lists hold of it
 *   H7 the sums: pinned, active, requested, pending
 *   H8 the directory finds each arena, and nothing else
 *
 * Locks, in this order:
 *   grow   misses, warming, clear: one at a time, held while memory is pinned, unpinned, and while
 *          the warmer is waited for. What it guards: remembered_bytes, the warmer's start and end.
 *          trim and what is too much go without it: an arena that is taken out under `lock`
 *          is its taker's.
 *   slot   is_taken: a magazine and its sums. Who frees or takes never waits for it; a flush
 *          and who looks at everything do, spinning, and take them by their index.
 *   lock   everything else, for a microsecond; events are asked for their state with it.
 *   inbox  what the warmer and who adopts from it have in common.
 * Recording an event, take, give and room are called with neither slot, lock nor inbox. A stream
 * whose event is being recorded is_closing: its entry stays, for its uses do, and nobody but
 * the thread that does so touches closing_first. In the child of a fork nothing is called but
 * destroy, which frees records only if it finds all locks free.
 *
 * What is read without any: the tag of a block, by its owner, and the directory, which follows
 * no pointer to an arena unless the address is of it, and a block in use keeps its arena. To free
 * a block twice at the same time, or what was freed while its arena goes, is beyond that: the
 * program's error, found only where the two do not meet.
 */

#include <stdatomic.h>
#include <stdbool.h>

#include <drystone/pinned.h>

#include "base/map.h"
#include "host/pinned/pin.h"
#include "os/fork.h"
#include "os/lock.h"
#include "os/thread.h"

#define DRYI_PINNED_NONE UINT32_MAX
#define DRYI_PINNED_BYTES_MAX (UINT64_C(1) << 42) /* of a request */

/* --- cells --------------------------------------------------------------------------------- */

enum dryi_pinned_state {
    DRYI_PINNED_INSIDE = 0, /* of a block, not its first cell */
    DRYI_PINNED_FREE = 1,
    DRYI_PINNED_FOOT = 2, /* the last cell of a free block of several */
    DRYI_PINNED_USED = 3,
    DRYI_PINNED_KEPT = 4,    /* free, in a magazine */
    DRYI_PINNED_PENDING = 5, /* freed, waiting for streams */
};

/* A tag: the state in the low bits, then whether streams are recorded, then the class. */
#define DRYI_PINNED_STATE_MASK 7u
#define DRYI_PINNED_HAS_USES 8u
#define DRYI_PINNED_CLASS_SHIFT 8

struct dryi_pinned_cell {
    atomic_uint_least32_t tag;
    uint32_t size; /* granules */
    union {
        uint32_t previous; /* FREE: in the list of the bin */
        uint32_t waste;    /* else: bytes that were not asked for */
    };
    union {
        uint32_t next;
        uint32_t first_use; /* USED: streams recorded */
        uint32_t uses_left; /* PENDING */
    };
};

/* --- heaps --------------------------------------------------------------------------------- */

enum dryi_pinned_heap_name {
    DRYI_PINNED_SMALL = 0,
    DRYI_PINNED_LARGE = 1,
    DRYI_PINNED_OWN = 2, /* BUDDY: larger than a block */
    DRYI_PINNED_HEAP_COUNT = 3,
};

#define DRYI_PINNED_BIN_WORDS 15
#define DRYI_PINNED_BINS (DRYI_PINNED_BIN_WORDS * 64)
#define DRYI_PINNED_HEAP_SHIFT 10 /* a class: the bin, and the heap above it */

struct dryi_pinned_heap {
    bool is_buddy;
    unsigned granule_shift;
    uint32_t name;
    uint32_t summary; /* a bit a word that is not 0 */
    uint64_t words[DRYI_PINNED_BIN_WORDS];
    uint32_t heads[DRYI_PINNED_BINS];
    uint64_t pinned_bytes;
};

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

/* --- addresses ----------------------------------------------------------------------------- */

/*
 * Address space in squares of 2 MiB, which is the least an arena has: so two arenas at most
 * touch a square, one that ends in it and one that begins in it.
 */
#define DRYI_PINNED_SQUARE_SHIFT 21
#define DRYI_PINNED_SQUARE (UINT64_C(1) << DRYI_PINNED_SQUARE_SHIFT)
#define DRYI_PINNED_LEAF_SHIFT 12
#define DRYI_PINNED_LEAF_SQUARES (UINT32_C(1) << DRYI_PINNED_LEAF_SHIFT)
#define DRYI_PINNED_ADDRESS_BITS 48
#define DRYI_PINNED_LEAVES                                                               \
    (UINT32_C(1) << (DRYI_PINNED_ADDRESS_BITS - DRYI_PINNED_SQUARE_SHIFT -               \
                     DRYI_PINNED_LEAF_SHIFT))

/*
 * With its borders, so that who looks up a block of one arena, without a lock, never looks at the
 * other, which may be going just now.
 */
struct dryi_pinned_square {
    struct dryi_pinned_arena *_Atomic lower; /* covers the square's beginning */
    struct dryi_pinned_arena *_Atomic upper; /* begins in the square, behind that */
    _Atomic uint64_t lower_end;              /* 0: none */
    _Atomic uint64_t upper_begin;            /* 0: none */
};

struct dryi_pinned_leaf {
    struct dryi_pinned_square squares[DRYI_PINNED_LEAF_SQUARES];
};

/* --- magazines ----------------------------------------------------------------------------- */

#define DRYI_PINNED_SLOTS 64
#define DRYI_PINNED_SETS 64
#define DRYI_PINNED_WAYS 8

struct dryi_pinned_entry {
    struct dryi_pinned_cell *cell;
    uint64_t address;
};

/* Blocks of one class. */
struct dryi_pinned_set {
    uint32_t class_id, count;
    uint64_t bytes; /* of a block */
    struct dryi_pinned_entry entries[DRYI_PINNED_WAYS];
};

/* Of three sums: what was added since the sums were last brought up to date. */
struct dryi_pinned_delta {
    int64_t now, most, added;
};

struct dryi_pinned_slot {
    _Atomic uintptr_t owner; /* the thread that came first; 0: none */
    atomic_uint is_taken;
    int64_t kept_bytes;
    struct dryi_pinned_delta requests, bytes, requested;
    struct dryi_pinned_set *sets; /* NULL until a block is kept */
    unsigned char gap[64];        /* no cache line of two slots */
};

/* --- streams ------------------------------------------------------------------------------- */

/*
 * A stream's use of a block. First in a list of its block; once the block is freed, in the
 * list of the batch that the next event of the stream stands for. The first use of a batch
 * that has its event holds that, and the next batch.
 */
struct dryi_pinned_use {
    uint32_t block, stream;
    uint32_t next;       /* of the block, or of the batch, or of the unused */
    uint32_t next_batch; /* of the first of a batch */
    uint64_t event;      /* the same */
};

/* A stream, or a graph, which is a stream without events. */
struct dryi_pinned_stream {
    uint64_t handle;
    uint32_t use_count; /* uses that name it; 0: the entry is unused */
    uint32_t first_batch, last_batch;
    uint32_t open_first, open_last, open_count; /* no event yet */
    uint32_t closing_first; /* uses whose event is being recorded, without the lock */
    uint32_t next_due, next_waiting, next_unused;
    bool is_due;     /* in the list of those with enough open uses */
    bool is_waiting; /* in the queue of those with batches */
    bool is_closing;
    bool is_graph;
    bool is_lost;     /* an event of it is neither passed nor to come */
    bool is_released; /* the graph is gone */
};

struct dryi_pinned_streams {
    struct dryi_map by_handle, by_graph; /* -> index in list */
    struct dryi_pinned_stream *list;
    size_t capacity;
    uint32_t count; /* of list, used or not */
    struct dryi_pinned_use *uses;
    size_t use_capacity;
    uint32_t use_count;          /* of uses, used or not */
    uint32_t unused;             /* first of the unused ones */
    uint32_t unused_stream, due; /* lists of streams; NONE: empty */
    /* A queue of streams, perhaps with some whose batches are gone: the next to be asked. */
    uint32_t first_waiting, last_waiting, waiting_count;
    uint32_t batch_count; /* with an event, in all streams */
    uint32_t frees;       /* since the last poll */
};

/* --- warming ------------------------------------------------------------------------------- */

/* A thread that pins; what it has pinned lies in the inbox until a call comes by. */
struct dryi_pinned_warmer {
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
    struct dryi_pinned_slot *slots; /* NULL: no magazines */
    struct dryi_pinned_streams streams;
    struct dryi_pinned_warmer warmer;

    struct dry_pinned_stats stats; /* but for what is counted when asked */
    uint64_t idle_bytes;           /* in arenas without a used granule */
    bool has_unwanted;             /* some arena is_unwanted, perhaps */
    int64_t used_peak_bytes;       /* active since the last clear */
    uint64_t remembered_bytes;     /* to be pinned again at the next miss; 0: nothing */
    _Atomic uint64_t pinned_bytes; /* of all arenas */
    _Atomic int64_t slack_bytes;   /* how far a slot's sums may be behind */
};

static inline enum dryi_pinned_state
dryi_pinned_state_of(uint32_t tag)
{
    return (enum dryi_pinned_state)(tag & DRYI_PINNED_STATE_MASK);
}

static inline uint32_t
dryi_pinned_tag(const struct dryi_pinned_cell *cell)
{
    return atomic_load_explicit(&cell->tag, memory_order_relaxed);
}

static inline void
dryi_pinned_set_tag(struct dryi_pinned_cell *cell, enum dryi_pinned_state state,
                    uint32_t rest)
{
    atomic_store_explicit(&cell->tag, (uint32_t)state | rest, memory_order_relaxed);
}

static inline struct dryi_pinned_cell *
dryi_pinned_cell(const struct dry_pinned *p, uint32_t id)
{
    return &p->rows[id >> DRYI_PINNED_ROW_SHIFT].cells[id & (DRYI_PINNED_ROW_CELLS - 1)];
}

static inline struct dryi_pinned_arena *
dryi_pinned_arena_of(const struct dry_pinned *p, uint32_t id)
{
    return p->rows[id >> DRYI_PINNED_ROW_SHIFT].arena;
}

static inline uint32_t
dryi_pinned_id(const struct dryi_pinned_arena *a, const struct dryi_pinned_cell *cell)
{
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
    return a->range.address + ((uint64_t)(cell - a->cells) << a->granule_shift);
}

/* --- pinned_heap.c -------------------------------------------------------------------------- */

/* What a request takes. */
struct dryi_pinned_wish {
    uint64_t requested, bytes; /* asked; rounded */
    uint32_t granules;
    uint32_t class_id; /* heap and bin */
    uint32_t heap;
};

void dryi_pinned_heap_init(struct dryi_pinned_heap *heap, uint32_t name,
                           unsigned granule_shift, bool is_buddy);
void dryi_pinned_wish_init(const struct dry_pinned *p, uint64_t bytes,
                           struct dryi_pinned_wish *wish);
/* A block for the wish, USED; NULL: no free one is large enough. Lock held, as below. */
struct dryi_pinned_cell *dryi_pinned_heap_take(struct dry_pinned *p,
                                               const struct dryi_pinned_wish *wish,
                                               uint64_t *address);
/* A block becomes free, one with its free neighbours. */
void dryi_pinned_heap_give(struct dry_pinned *p, struct dryi_pinned_arena *a,
                           struct dryi_pinned_cell *cell);
/* All of a new arena is free; of one that is idle, nothing is any more. */
void dryi_pinned_heap_add(struct dry_pinned *p, struct dryi_pinned_arena *a);
void dryi_pinned_heap_remove(struct dry_pinned *p, struct dryi_pinned_arena *a);
/* The bin where a free block of so many granules is; each in it has as many at least. */
uint32_t dryi_pinned_bin(const struct dryi_pinned_heap *heap, uint32_t granules);
/* Of the largest free block, 0 if there is none: exact to its bin's width. */
uint64_t dryi_pinned_heap_largest(const struct dry_pinned *p, uint32_t heap);

/* --- pinned_arena.c ------------------------------------------------------------------------- */

enum dry_status dryi_pinned_arenas_init(struct dry_pinned *p, struct dry_error *err);
/* Gives the ranges back to the pin, but for a child. */
void dryi_pinned_arenas_finish(struct dry_pinned *p, bool is_child);
/* A range becomes an arena of the heap. On failure the range is still the caller's. */
DRY_CHECK_RESULT enum dry_status dryi_pinned_arena_add(struct dry_pinned *p,
                                                       const struct dryi_pin_range *range,
                                                       uint32_t heap);
/* An idle arena is no more; its range is the caller's. */
void dryi_pinned_arena_remove(struct dry_pinned *p, struct dryi_pinned_arena *a,
                              struct dryi_pin_range *range);
/* The block that begins here, whatever its state; NULL: none. Needs no lock. */
struct dryi_pinned_cell *dryi_pinned_find(const struct dry_pinned *p, uint64_t address,
                                          struct dryi_pinned_arena **arena);
/* The arena of an address; NULL: none. Needs no lock. */
struct dryi_pinned_arena *dryi_pinned_arena_at(const struct dry_pinned *p,
                                               uint64_t address);

/* --- pinned_magazine.c ---------------------------------------------------------------------- */

enum dry_status dryi_pinned_slots_init(struct dry_pinned *p, struct dry_error *err);
void dryi_pinned_slots_finish(struct dry_pinned *p);
/* The thread's slot, taken; NULL: somebody else has it just now, or there are none. */
struct dryi_pinned_slot *dryi_pinned_slot_try(struct dry_pinned *p);
void dryi_pinned_slot_leave(struct dryi_pinned_slot *slot);
/* Wait for a slot: it is held for a microsecond. */
void dryi_pinned_slot_take(struct dryi_pinned_slot *slot);
/* A block of the class at hand, USED; 0: none. Slot taken. */
uint64_t dryi_pinned_magazine_take(struct dry_pinned *p, struct dryi_pinned_slot *slot,
                                   const struct dryi_pinned_wish *wish);
/* Keep a block that is used; false: it must go to its heap. Slot taken, no lock. */
bool dryi_pinned_magazine_give(struct dry_pinned *p, struct dryi_pinned_slot *slot,
                               const struct dryi_pinned_arena *a,
                               struct dryi_pinned_cell *cell);
/* After a miss: a few more blocks of a small class. Slot taken, lock held. */
void dryi_pinned_magazine_refill(struct dry_pinned *p, struct dryi_pinned_slot *slot,
                                 const struct dryi_pinned_wish *wish);
/* All magazines of all threads are empty after this. No lock held. */
void dryi_pinned_magazines_flush(struct dry_pinned *p);
/* One slot's sums are brought into the statistics. Slot taken, lock held; NULL is ignored. */
void dryi_pinned_slot_fold(struct dry_pinned *p, struct dryi_pinned_slot *slot);
/* The lock, with this thread's sums up to date; before anything that changes them. */
void dryi_pinned_enter(struct dry_pinned *p);
/* All slots and the lock, for who looks at everything; and back. */
void dryi_pinned_lock_all(struct dry_pinned *p);
void dryi_pinned_unlock_all(struct dry_pinned *p);

/* --- pinned_event.c ------------------------------------------------------------------------- */

void dryi_pinned_streams_init(struct dry_pinned *p);
void dryi_pinned_streams_finish(struct dry_pinned *p, bool is_child);
/* One use more of a block that is used. Lock held, as below. */
DRY_CHECK_RESULT enum dry_status dryi_pinned_use_add(struct dry_pinned *p, uint32_t block,
                                                     uint64_t handle, bool is_graph);
/* A used block with uses is freed: it waits, or is free at once. Takes no memory. */
void dryi_pinned_use_free(struct dry_pinned *p, uint32_t block);
/*
 * Record the events of batches that are full; all: of all that are not empty. Gives the lock
 * while the driver is asked, and takes it again; no slot may be held.
 */
void dryi_pinned_events_record(struct dry_pinned *p, bool all);
/* Ask `budget` events at most, and free what has passed; true: no more has. */
bool dryi_pinned_events_poll(struct dry_pinned *p, uint32_t budget);
/* Waits for an event of the stream that is just being recorded, without the lock. */
void dryi_pinned_stream_over(struct dry_pinned *p, uint64_t handle);
void dryi_pinned_graph_over(struct dry_pinned *p, uint64_t handle);

/* --- pinned_grow.c -------------------------------------------------------------------------- */

/* A miss: everything is tried. No lock held. */
DRY_CHECK_RESULT enum dry_status dryi_pinned_grow(struct dry_pinned *p,
                                                  const struct dryi_pinned_wish *wish,
                                                  uint64_t *address);
/* What the warmer has pinned becomes arenas. Lock held. */
void dryi_pinned_adopt(struct dry_pinned *p);
/* Idle arenas go back until `bytes` are pinned. No lock held. */
void dryi_pinned_shrink(struct dry_pinned *p, uint64_t bytes);
/* Is there more idle than is to be cached? Lock held. And what is too much goes; no lock. */
bool dryi_pinned_has_too_much(const struct dry_pinned *p);
void dryi_pinned_shed(struct dry_pinned *p);
/* Pin until `bytes` are; as dry_pinned_warm(). */
DRY_CHECK_RESULT enum dry_status dryi_pinned_warm(struct dry_pinned *p, uint64_t bytes,
                                                  bool in_background,
                                                  struct dry_error *err);
/* What may still be pinned. No lock held. */
uint64_t dryi_pinned_room(struct dry_pinned *p);
void dryi_pinned_warmer_init(struct dry_pinned *p);
void dryi_pinned_warmer_finish(struct dry_pinned *p, bool is_child);

/* --- pinned_stats.c ------------------------------------------------------------------------- */

void dryi_pinned_stat_add(struct dry_stat *stat, int64_t change);
/* Of a call that began at `begin_us`, by dry_pinned's clock, and is over. */
void dryi_pinned_time_add(struct dry_pinned_time *time, uint64_t begin_us);
/* What another had gathered. */
void dryi_pinned_time_join(struct dry_pinned_time *time,
                           const struct dry_pinned_time *other);
uint64_t dryi_pinned_clock_us(void);
/* A block is handed out, or reusable: in the sums at once. Lock held. */
void dryi_pinned_count_alloc(struct dry_pinned *p, uint64_t bytes, uint64_t requested);
void dryi_pinned_count_free(struct dry_pinned *p, uint64_t bytes, uint64_t requested);

/* --- pinned.c ------------------------------------------------------------------------------- */

/* Takes over the pin, if it succeeds; destroy finishes it. */
DRY_CHECK_RESULT enum dry_status dryi_pinned_create(
    const struct dry_pinned_options *options, const struct dryi_pin *pin,
    struct dry_pinned **pinned, struct dry_error *err);
/* The caller's options over the defaults, if create accepts them. */
DRY_CHECK_RESULT enum dry_status dryi_pinned_options_take(
    const struct dry_pinned_options *from, struct dry_pinned_options *options,
    struct dry_error *err);

/* Records of the block at hand, which is USED with `requested` bytes of it asked for. */
static inline void
dryi_pinned_mark_used(struct dryi_pinned_cell *cell, uint32_t class_id, uint32_t waste)
{
    cell->waste = waste;
    cell->first_use = DRYI_PINNED_NONE;
    dryi_pinned_set_tag(cell, DRYI_PINNED_USED, class_id << DRYI_PINNED_CLASS_SHIFT);
}

#endif
