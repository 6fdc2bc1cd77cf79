/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_LIVE_H
#define DRY_LIVE_H

/*
 * A running program shows its memory, and others look.
 *
 * A program has a page: a file of DRY_LIVE_PAGE_BYTES in a folder in memory, /dev/shm. It writes
 * its figures there by plain stores, without a system call. Others read the file.
 *
 *     dry_live_options_init(&options);
 *     if (dry_live_create(&options, &live, &err) != DRY_OK) ...
 *     if (dry_live_add_pool(live, "paged", device, pool, &number, &err) != DRY_OK) ...
 *     dry_live_update(live);                 now and then, or: dry_live_start(live, 100000, &err)
 *     dry_live_destroy(live);                before the pool
 *
 *     if (dry_live_open("/dev/shm", name, NULL, &reader, &err) != DRY_OK) ...
 *     for (uint32_t i = 0; i < dry_live_count(reader); i++)
 *         if (dry_live_read(reader, i, &source, &err) == DRY_OK) ...
 *     dry_live_close(reader);
 *
 * A source is an allocator of one device, or of the host. Its figures are written whole: a reader
 * gets all of one moment, or is told that they were being written. The page is locked by its
 * program for as long as the program lives, so a page whose program was killed is known.
 *
 * A reader may ask for a snapshot. The program sees that by dry_live_get_wish(), which costs one
 * load, and answers. The library itself writes none.
 *
 * Ownership  dry_live_create() and dry_live_destroy(), which removes the file; dry_live_open()
 *            and dry_live_close(). Pools and pinned caches must outlive the page's program side.
 * Errors     See each function. FORMAT: the file is no page, and err says what is wrong with it.
 * Threads    Any thread may call on a dry_live; one at a time on a reader. In the child of a fork
 *            calls on the parent's do nothing; to add a source or to start is ARGUMENT.
 * Units      Bytes; nanoseconds of CLOCK_BOOTTIME, which all processes of a machine share.
 * Trust      A page is written by a program that may be broken or hostile. A reader checks all
 *            numbers; texts end with a zero and are otherwise whatever the program wrote.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>
#include <drystone/pinned.h>
#include <drystone/pool.h>
#include <drystone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- the page ----------------------------------------------------------------------------- */

/*
 * The layout. Numbers are those of the machine. Another number in `version` is another layout,
 * which a reader refuses. Fields that are zero here may get a meaning within a version.
 */
#define DRY_LIVE_VERSION 2u
#define DRY_LIVE_MAGIC UINT64_C(0x314556494c595244) /* "DRYLIVE1" in memory */
#define DRY_LIVE_SOURCES_MAX 24u
#define DRY_LIVE_LANES_MAX 48u
#define DRY_LIVE_LINES_MAX 16u
#define DRY_LIVE_TEXT_BYTES 128u
#define DRY_LIVE_PATH_BYTES 1024u
#define DRY_LIVE_UNKNOWN UINT64_MAX /* of bytes: not known */

/* The program that shows the page. Written once, before the file has its magic number. */
struct dry_live_program {
    uint64_t process; /* as the program itself knows it: of its own PID namespace */
    uint64_t started_ns;
    int32_t rank, world; /* of a job with several programs; -1: none */
    char name[DRY_LIVE_TEXT_BYTES];
    char labels[2 * DRY_LIVE_TEXT_BYTES]; /* "pod=train-0,namespace=ml"; "" for none */
};

enum dry_live_kind {
    DRY_LIVE_POOL = 1,   /* a dry_pool */
    DRY_LIVE_PINNED = 2, /* a dry_pinned: host memory */
    DRY_LIVE_OTHER = 3,  /* an allocator that is not of this library */
};

/* A stream's memory in a pool, of all its segments. */
struct dry_live_lane {
    uint64_t stream;
    struct dry_pool_id pool; /* zeroes: the default pool */
    uint64_t reserved, allocated, pending;
    uint64_t releasable;   /* in free segments, and in free pages of expandable ones */
    uint64_t stranded;     /* free, but beside something in use, or of a private pool */
    uint64_t largest_hole; /* the largest free block */
};

/* A line of the program's source, and what it holds. */
struct dry_live_line {
    char text[DRY_LIVE_TEXT_BYTES]; /* "model.py:31 forward" */
    uint64_t bytes, count;
};

/* The allocator's own counts: cheap to know, so written at each update. */
struct dry_live_figures {
    uint64_t reserved, allocated, active, requested;
    uint64_t reserved_peak, allocated_peak;
    uint64_t limit;         /* what may be reserved at most; DRY_LIVE_UNKNOWN */
    uint64_t retries, ooms; /* so far */
    uint64_t driver_allocs, driver_frees; /* so far: segments, or pages */
    /* So far, as in struct dry_pool_counters; DRY_LIVE_UNKNOWN where an allocator does not tell. */
    uint64_t driver_calls, pages_moved, driver_time_ns;
};

/* The result of a walk over all blocks. Written less often. */
struct dry_live_detail {
    uint64_t at_ns; /* 0: never */
    uint64_t reserved, pending, releasable, stranded,
        largest_hole;    /* sums of all lanes */
    uint32_t lane_count; /* in `lanes`, those that reserve most first */
    uint32_t line_count; /* in `lines`, those that hold most first */
    uint64_t stock;      /* pages under no address: releasable, and of no lane */
    uint64_t more_lanes; /* 1: there was no room for all of them; the sums have all */
    struct dry_live_lane lanes[DRY_LIVE_LANES_MAX];
    struct dry_live_line lines[DRY_LIVE_LINES_MAX];
};

struct dry_live_source {
    uint32_t kind;  /* enum dry_live_kind */
    int32_t device; /* as the program counts devices; -1: the host */
    char name[32];  /* "paged", "torch", "native", "pinned" */
    char uuid[48];  /* the device's, as NVML prints it: "GPU-..."; "" if not known */
    uint64_t updated_ns, updates;
    struct dry_live_figures figures;
    struct dry_live_detail detail;
};

/* A source in the page. `sequence` is odd while the source is written. */
struct dry_live_slot {
    uint64_t sequence;
    struct dry_live_source source;
};

/*
 * A wish of readers, and the answer. A reader holds a lock of the file on this range while it
 * writes `path` and then `number`.
 */
struct dry_live_wish {
    uint64_t number; /* one more for each wish */
    char path[DRY_LIVE_PATH_BYTES];
};
struct dry_live_answer {
    uint64_t number; /* of the last wish that was served */
    int64_t result;  /* 0: the snapshot is written; else errno, or -1 */
    char text[DRY_LIVE_TEXT_BYTES];
};

struct dry_live_page {
    uint64_t magic; /* written last of the head */
    uint32_t version, page_bytes;
    struct dry_live_program program;
    uint64_t source_count; /* grows alone */
    struct dry_live_wish wish;
    struct dry_live_answer answer; /* `number` is written last */
    struct dry_live_slot slots[DRY_LIVE_SOURCES_MAX];
};
#define DRY_LIVE_PAGE_BYTES sizeof(struct dry_live_page)

/* --- a program shows its memory ----------------------------------------------------------- */

struct dry_live; /* opaque */

struct dry_live_options {
    size_t struct_size; /* set by dry_live_options_init() */
    const struct dry_memory *memory;
    const char
        *folder; /* default "/dev/shm"; must be in memory, for plain stores go there */
    const char *name;    /* of the program; default "": what /proc says of the process */
    const char *labels;  /* default "" */
    int32_t rank, world; /* default -1 */
    /*
     * A walk over the blocks takes the pool's lock. It is made again when so many times its
     * own duration has passed, at least 100 ms. Default 200: half a percent of the time.
     */
    uint32_t detail_rest;
};
DRY_API void dry_live_options_init_sized(struct dry_live_options *options,
                                         size_t struct_size);
#define dry_live_options_init(options)                                                   \
    dry_live_options_init_sized(options, sizeof *(options))

/*
 * Make the page: a new file "drystone-live-PROCESS-N", of mode 0600, with its memory set aside.
 * `options` are copied; texts that are too long are cut. Errors: ARGUMENT (detail_rest is 0, or
 * there is no folder), MEMORY, NO_SPACE (the folder is full), SYSTEM.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_live_create(
    const struct dry_live_options *options, struct dry_live **live,
    struct dry_error *err);

/* Stop the thread, remove the file. In the child of a fork the parent's file stays. */
DRY_API void dry_live_destroy(struct dry_live *live);

/* The file's name in its folder. */
DRY_API const char *dry_live_name(const struct dry_live *live);

/*
 * Add a source; *number is what others call it by. Figures of a pool and a pinned cache are taken
 * by dry_live_update(); those of DRY_LIVE_OTHER, and of a `pinned` that is NULL because the cache is
 * not of this library, come by dry_live_put() alone. `name` is cut to 31 bytes. Errors: LIMIT
 * (DRY_LIVE_SOURCES_MAX are there), ARGUMENT.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_live_add_pool(
    struct dry_live *live, const char *name, int32_t device, struct dry_pool *pool,
    uint32_t *number, struct dry_error *err);
DRY_API DRY_CHECK_RESULT enum dry_status dry_live_add_pinned(struct dry_live *live,
                                                             const char *name,
                                                             struct dry_pinned *pinned,
                                                             uint32_t *number,
                                                             struct dry_error *err);
DRY_API DRY_CHECK_RESULT enum dry_status dry_live_add_other(struct dry_live *live,
                                                            const char *name,
                                                            int32_t device,
                                                            uint32_t *number,
                                                            struct dry_error *err);

/* Take a source's pool or pinned cache away, which may end then. The figures stay. */
DRY_API void dry_live_forget(struct dry_live *live, uint32_t number);

/* Tell the device of a source, as NVML prints it. Cut to 47 bytes. */
DRY_API void dry_live_set_uuid(struct dry_live *live, uint32_t number, const char *uuid);

/*
 * Write the figures of all pools and pinned caches, and the details that are due.
 * Cost: a microsecond a pool; O(blocks) where the detail is due.
 */
DRY_API void dry_live_update(struct dry_live *live);

/*
 * Write figures that the caller has, or a detail. `detail->at_ns` is set here; counts above what
 * there is room for, and a number that is no source's, are ARGUMENT.
 */
DRY_API enum dry_status dry_live_put(struct dry_live *live, uint32_t number,
                                     const struct dry_live_figures *figures);
DRY_API enum dry_status dry_live_put_detail(struct dry_live *live, uint32_t number,
                                            const struct dry_live_detail *detail);

/*
 * Have a thread update every `interval_us`, 1000 to UINT32_MAX, until dry_live_stop(). Errors:
 * ARGUMENT (there is a thread already, or the interval is too short or long), SYSTEM.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_live_start(struct dry_live *live,
                                                        uint64_t interval_us,
                                                        struct dry_error *err);
DRY_API void dry_live_stop(struct dry_live *live);

/*
 * Tell whether a reader wishes a snapshot that has no answer yet: *number and the path, cut to
 * `room` bytes. False: there is none.
 */
DRY_API bool dry_live_get_wish(struct dry_live *live, uint64_t *number, char *path,
                               size_t room);
/* Answer wish `number`: `result` 0 for done, else errno or -1, and a text for people. */
DRY_API void dry_live_answer(struct dry_live *live, uint64_t number, int64_t result,
                             const char *text);

/* --- others look -------------------------------------------------------------------------- */

struct dry_live_reader; /* opaque */

/*
 * Visit the names of pages in `folder`, in no order; they were not looked into. A status other
 * than DRY_OK from `visit` ends the walk and is returned. Errors: SYSTEM.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_live_list(
    const char *folder, enum dry_status (*visit)(void *self, const char *name),
    void *self, struct dry_error *err);

/*
 * Open a page. It must be a plain file with one name, of this user (of any, for root), which no
 * other may read or write. A program that opens its own page loses the file's lock at the close
 * (POSIX), and has it again with its next detail.
 * Errors: ARGUMENT (`name` is not a page's), FORMAT, MEMORY, SYSTEM.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_live_open(const char *folder,
                                                       const char *name,
                                                       const struct dry_memory *memory,
                                                       struct dry_live_reader **reader,
                                                       struct dry_error *err);
DRY_API void dry_live_close(struct dry_live_reader *reader);

/* Get the program that shows the page, and the file's owner. */
DRY_API const struct dry_live_program *dry_live_get_program(
    const struct dry_live_reader *reader);
DRY_API uint32_t dry_live_get_owner(const struct dry_live_reader *reader);

/*
 * Tell whether the program lives, for then it holds the file's lock; *process is its number here,
 * 0 if this PID namespace cannot see the program. A system that does not say counts as dead.
 * Cost: one system call.
 */
DRY_API bool dry_live_is_alive(const struct dry_live_reader *reader, uint64_t *process);

/* How many sources there are now. Cost: one system call. */
DRY_API uint32_t dry_live_count(struct dry_live_reader *reader);

/*
 * Read a source whole, of one moment. Errors: ARGUMENT (there is no such source), FORMAT (a
 * number in it cannot be, or it was left half written by a program that has ended), CANCELLED
 * (it was written at each of 100 tries), SYSTEM. Rows of the detail beyond its counts are left
 * as they were. Cost: two system calls, and one each for lanes and lines.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_live_read(struct dry_live_reader *reader,
                                                       uint32_t number,
                                                       struct dry_live_source *source,
                                                       struct dry_error *err);

/*
 * Wish for a snapshot in the file `path`, which the program writes with its own rights. *number
 * is that of the wish. Errors: LIMIT (the path is longer than DRY_LIVE_PATH_BYTES - 1),
 * CANCELLED (another reader is writing a wish), SYSTEM.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_live_wish(struct dry_live_reader *reader,
                                                       const char *path, uint64_t *number,
                                                       struct dry_error *err);
/* The last answer. Errors: FORMAT, SYSTEM. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_live_get_answer(
    struct dry_live_reader *reader, struct dry_live_answer *answer,
    struct dry_error *err);

/*
 * Remove the file of a page whose program is dead, so that nobody reads it again. ARGUMENT: the
 * program lives. Errors: SYSTEM.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_live_remove(struct dry_live_reader *reader,
                                                         struct dry_error *err);

#ifdef __cplusplus
}
#endif

#endif
