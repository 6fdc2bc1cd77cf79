/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_LIVE_H
#define DRY_LIVE_H

/*
 * A running program publishes figures of its memory, which other processes read.
 *
 * A program has a page: a file of DRY_LIVE_PAGE_BYTES in a memory-backed folder,
 * /dev/shm. The program writes its figures there by plain stores, without a system call.
 * Other processes read the file.
 *
 *     dry_live_options_init(&options);
 *     if (dry_live_create(&options, &live, &err) != DRY_OK) ...
 *     if (dry_live_add_pool(live, "paged", device, pool, &number, &err) != DRY_OK) ...
 *     dry_live_update(live);                 regularly, or: dry_live_start(live, 100000, &err)
 *     dry_live_destroy(live);                before the pool
 *
 *     if (dry_live_open("/dev/shm", name, NULL, &reader, &err) != DRY_OK) ...
 *     for (uint32_t i = 0; i < dry_live_count(reader); i++)
 *         if (dry_live_read(reader, i, &source, &err) == DRY_OK) ...
 *     dry_live_close(reader);
 *
 * A source is an allocator of one device, or of the host. Its figures are consistent: a
 * reader gets all of them from one moment, or an error while they are being written. The
 * program holds a lock on its page as long as it lives, so readers recognize the page of
 * a killed program.
 *
 * A reader may ask for a snapshot. The program sees the request by dry_live_get_request(),
 * which costs one load, and answers it. The library itself writes no snapshots.
 *
 * Ownership  dry_live_create() and dry_live_destroy(), which removes the file;
 *            dry_live_open() and dry_live_close(). Pools and pinned caches must outlive
 *            the page's program side.
 * Errors     See each function. FORMAT: the file is not a valid page; err says why.
 * Threads    Any thread may use a dry_live; one thread at a time a reader. In the child
 *            of a fork, calls on the parent's dry_live do nothing; adding a source and
 *            starting return ARGUMENT.
 * Units      Bytes; nanoseconds of CLOCK_BOOTTIME, which all processes of a machine
 *            share.
 * Trust      A page is written by a program that may be broken or hostile. A reader
 *            checks all numbers; texts are zero-terminated but may contain any bytes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/field.h>
#include <drystone/memory.h>
#include <drystone/pinned.h>
#include <drystone/pool.h>
#include <drystone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- the page ----------------------------------------------------------------------------- */

/* The layout of the file, in the machine's byte order. Readers refuse any other
   `version`. Fields that are zero now may get a meaning without a new version. */
#define DRY_LIVE_VERSION 2u
#define DRY_LIVE_MAGIC UINT64_C(0x314556494c595244) /* "DRYLIVE1" in memory */
#define DRY_LIVE_SOURCES_MAX 24u
#define DRY_LIVE_LANES_MAX 48u
#define DRY_LIVE_LINES_MAX 16u
#define DRY_LIVE_TEXT_BYTES 128u
#define DRY_LIVE_PATH_BYTES 1024u
#define DRY_LIVE_UNKNOWN UINT64_MAX /* a byte count that is not known */

/* The program that publishes the page. Written once, before the magic number. */
struct dry_live_program {
    uint64_t process; /* process id in the program's own PID namespace */
    uint64_t started_ns;
    int32_t rank, world; /* in a job with several programs; -1: none */
    char name[DRY_LIVE_TEXT_BYTES];
    char labels[2 * DRY_LIVE_TEXT_BYTES]; /* "pod=train-0,namespace=ml"; "" for none */
};

enum dry_live_kind {
    DRY_LIVE_POOL = 1,   /* a dry_pool */
    DRY_LIVE_PINNED = 2, /* a dry_pinned: host memory */
    DRY_LIVE_OTHER = 3,  /* an allocator outside this library */
};

/* A stream's memory in one pool, over all segments. */
struct dry_live_lane {
    uint64_t stream;
    struct dry_pool_id pool; /* (0, 0): the default pool */
    uint64_t reserved, allocated, pending;
    uint64_t releasable;   /* bytes in free segments, and in free pages of expandable
                              segments */
    uint64_t stranded;     /* free bytes that share a segment or page with used ones, or
                              are in a private pool */
    uint64_t largest_hole; /* size of the largest free block */
};

/* A source line of the program, and the memory it holds. */
struct dry_live_line {
    char text[DRY_LIVE_TEXT_BYTES]; /* "model.py:31 forward" */
    uint64_t bytes, count;
};

/* The allocator's own counters, written at each update because they are cheap to read. */
struct dry_live_figures {
    uint64_t reserved, allocated, active, requested;
    uint64_t reserved_peak, allocated_peak;
    uint64_t limit;         /* limit on reserved bytes; DRY_LIVE_UNKNOWN: none known */
    uint64_t retries, ooms; /* totals since the start */
    uint64_t driver_allocs, driver_frees; /* totals since the start, of segments or
                                             pages */
    /* Totals as in struct dry_pool_counters; DRY_LIVE_UNKNOWN if the allocator has
       none. */
    uint64_t driver_calls, pages_moved, driver_time_ns;
};

/* The result of a walk over all blocks, which is written less often. */
struct dry_live_detail {
    uint64_t at_ns; /* time of the walk; 0: never */
    uint64_t reserved, pending, releasable, stranded,
        largest_hole;    /* sums over all lanes, including those not in `lanes` */
    uint32_t lane_count; /* used entries of `lanes`, largest reserved first */
    uint32_t line_count; /* used entries of `lines`, largest bytes first */
    uint64_t stock;      /* pages not mapped anywhere: releasable, and in no lane */
    uint64_t more_lanes; /* 1: `lanes` was too short for all; the sums include the
                            others */
    struct dry_live_lane lanes[DRY_LIVE_LANES_MAX];
    struct dry_live_line lines[DRY_LIVE_LINES_MAX];
};

/* The figures except the limit, the sums of a detail, of a lane. DRY_LIVE_UNKNOWN is not known. */
enum dry_live_part { DRY_LIVE_FIGURES, DRY_LIVE_DETAIL, DRY_LIVE_LANE };
DRY_API struct dry_fields dry_live_get_fields(enum dry_live_part part);

struct dry_live_source {
    uint32_t kind;  /* enum dry_live_kind */
    int32_t device; /* the program's number of the device; -1: the host */
    char name[32];  /* "paged", "torch", "native", "pinned" */
    char uuid[48];  /* the device's UUID as NVML prints it, "GPU-..."; "": not known */
    uint64_t updated_ns, updates;
    struct dry_live_figures figures;
    struct dry_live_detail detail;
};

/* A source in the page. `sequence` is odd while the source is being written. */
struct dry_live_slot {
    uint64_t sequence;
    struct dry_live_source source;
};

/* A reader's request for a snapshot, and the program's answer. A reader locks this range
   of the file while it writes `path` and then `number`. */
struct dry_live_request {
    uint64_t number; /* increases by one per request */
    char path[DRY_LIVE_PATH_BYTES];
};
struct dry_live_answer {
    uint64_t number; /* number of the last request served */
    int64_t result;  /* 0: the snapshot is written; else an errno, or -1 */
    char text[DRY_LIVE_TEXT_BYTES];
};

struct dry_live_page {
    uint64_t magic; /* written last of the header */
    uint32_t version, page_bytes;
    struct dry_live_program program;
    uint64_t source_count; /* only grows */
    struct dry_live_request request;
    struct dry_live_answer answer; /* `number` is written last */
    struct dry_live_slot slots[DRY_LIVE_SOURCES_MAX];
};
#define DRY_LIVE_PAGE_BYTES sizeof(struct dry_live_page)

/* --- publishing -------------------------------------------------------------------------- */

struct dry_live; /* opaque */

struct dry_live_options {
    size_t struct_size; /* set by dry_live_options_init() */
    const struct dry_memory *memory;
    const char *folder;  /* default "/dev/shm"; must be memory-backed, or plain stores
                           would cause disk writes */
    const char *name;    /* the program's name; default "": the process name from /proc */
    const char *labels;  /* default "" */
    int32_t rank, world; /* default -1 */
    /*
     * A walk over the blocks holds the pool's lock. The next walk starts after
     * detail_rest times the duration of the last one, and at least 100 ms. Default 200:
     * walks take 0.5 % of the time.
     */
    uint32_t detail_rest;
};
DRY_API void dry_live_options_init_sized(struct dry_live_options *options,
                                         size_t struct_size);
#define dry_live_options_init(options)                                                   \
    dry_live_options_init_sized(options, sizeof *(options))

/*
 * Create the page: a new file "drystone-live-PROCESS-N" with mode 0600, its memory
 * allocated. `options` are copied; long texts are truncated. Errors: ARGUMENT
 * (detail_rest is 0, or no folder), MEMORY, NO_SPACE (the folder is full), SYSTEM.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_live_create(
    const struct dry_live_options *options, struct dry_live **live,
    struct dry_error *err);

/* Stop the thread and remove the file. In the child of a fork the parent's file stays. */
DRY_API void dry_live_destroy(struct dry_live *live);

/* Return the file's name in its folder. */
DRY_API const char *dry_live_name(const struct dry_live *live);

/*
 * Add a source; *number identifies it in other calls. dry_live_update() reads the figures
 * of pools and pinned caches. Figures of DRY_LIVE_OTHER, and of a pinned cache outside
 * this library (`pinned` NULL), come by dry_live_put() only. `name` is truncated to 31
 * bytes. Errors: LIMIT (already DRY_LIVE_SOURCES_MAX sources), ARGUMENT.
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

/* Detach a source from its pool or pinned cache, which may then be destroyed. The figures
   stay. */
DRY_API void dry_live_forget(struct dry_live *live, uint32_t number);

/* Set the UUID of a source's device, as NVML prints it. Truncated to 47 bytes. */
DRY_API void dry_live_set_uuid(struct dry_live *live, uint32_t number, const char *uuid);

/* Write the figures of all pools and pinned caches, and those details whose interval has
   passed. Cost: a microsecond per pool; O(blocks) for a detail. */
DRY_API void dry_live_update(struct dry_live *live);

/* Write figures or a detail that the caller computed. This call sets `detail->at_ns`.
   ARGUMENT: no such source, or counts above the arrays' sizes. */
DRY_API enum dry_status dry_live_put(struct dry_live *live, uint32_t number,
                                     const struct dry_live_figures *figures);
DRY_API enum dry_status dry_live_put_detail(struct dry_live *live, uint32_t number,
                                            const struct dry_live_detail *detail);

/*
 * Start a thread that updates every `interval_us`, 1000 to UINT32_MAX, until
 * dry_live_stop(). Errors: ARGUMENT (a thread already runs, or the interval is out of
 * range), SYSTEM.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_live_start(struct dry_live *live,
                                                        uint64_t interval_us,
                                                        struct dry_error *err);
DRY_API void dry_live_stop(struct dry_live *live);

/* Get an unanswered snapshot request: its *number and its path, truncated to `capacity`
   bytes. Returns false if there is none. */
DRY_API bool dry_live_get_request(struct dry_live *live, uint64_t *number, char *path,
                                  size_t capacity);
/* Answer request `number`: `result` is 0 for success, else an errno or -1; `text` is for
   people. */
DRY_API void dry_live_answer(struct dry_live *live, uint64_t number, int64_t result,
                             const char *text);

/* --- reading ----------------------------------------------------------------------------- */

struct dry_live_reader; /* opaque */

/* Visit the names of pages in `folder`, in any order, without checking the files. A
   status other than DRY_OK from `visit` ends the walk and is returned. Errors: SYSTEM. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_live_list(
    const char *folder, enum dry_status (*visit)(void *self, const char *name),
    void *self, struct dry_error *err);

/*
 * Open a page. For security it must be a regular file with one link, owned by this user
 * (root: by any), which no other user may access. A program that opens its own page loses
 * the file's lock when it closes the reader (POSIX), and takes it again with its next
 * detail. Errors: ARGUMENT (`name` is not a page's name), FORMAT, MEMORY, SYSTEM.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_live_open(const char *folder,
                                                       const char *name,
                                                       const struct dry_memory *memory,
                                                       struct dry_live_reader **reader,
                                                       struct dry_error *err);
DRY_API void dry_live_close(struct dry_live_reader *reader);

/* Get the program that publishes the page, and the user id of the file's owner. */
DRY_API const struct dry_live_program *dry_live_get_program(
    const struct dry_live_reader *reader);
DRY_API uint32_t dry_live_get_owner(const struct dry_live_reader *reader);

/*
 * Return whether the program lives, by its lock on the file. *process is its id in this
 * PID namespace, 0 if invisible here. If the system cannot tell, the program counts as
 * dead. Cost: one system call.
 */
DRY_API bool dry_live_is_alive(const struct dry_live_reader *reader, uint64_t *process);

/* Return the current number of sources. Cost: one system call. */
DRY_API uint32_t dry_live_count(struct dry_live_reader *reader);

/*
 * Read a source, all of one moment. Errors: ARGUMENT (no such source), FORMAT (a number
 * is invalid, or the program ended in the middle of a write), CANCELLED (each of 100
 * tries met a write), SYSTEM. Rows of the detail beyond its counts stay unchanged. Cost:
 * two system calls, and one each for lanes and lines.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_live_read(struct dry_live_reader *reader,
                                                       uint32_t number,
                                                       struct dry_live_source *source,
                                                       struct dry_error *err);

/*
 * Request a snapshot in the file `path`, which the program writes with its own rights.
 * *number is the request's. Errors: LIMIT (the path is longer than DRY_LIVE_PATH_BYTES -
 * 1), CANCELLED (another reader is writing a request), SYSTEM.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_live_request(struct dry_live_reader *reader,
                                                          const char *path,
                                                          uint64_t *number,
                                                          struct dry_error *err);
/* Read the program's last answer. Errors: FORMAT, SYSTEM. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_live_get_answer(
    struct dry_live_reader *reader, struct dry_live_answer *answer,
    struct dry_error *err);

/* Remove the file of a page whose program is dead, so that readers no longer list it.
   ARGUMENT: the program lives. Errors: SYSTEM. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_live_remove(struct dry_live_reader *reader,
                                                         struct dry_error *err);

#ifdef __cplusplus
}
#endif

#endif
