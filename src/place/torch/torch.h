/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_TORCH_H
#define DRYI_PLACE_TORCH_H

/*
 * PyTorch's caching allocator, decision for decision.
 *
 * The rules are those of c10/cuda/CUDACachingAllocator.cpp (DeviceCachingAllocator) and
 * c10/core/AllocatorConfig.cpp, main at 2.15.0a0, with the differences of older releases
 * chosen by struct dryi_torch_rules. A place is pure: it asks a device for ranges, takes
 * no lock, reads no clock. The same code serves the replay, the pool and the reports.
 *
 * Nouns: a segment is a range from the driver (cudaMalloc) or a reservation of addresses
 * whose pages are mapped bit by bit (expandable). A block is a part of one segment, in use,
 * waiting for a stream, free or unmapped. A pool is small or large, of the default pools or
 * of a private one. A block lives and dies in one (pool, stream).
 *
 * Invariants (dryi_torch_check walks them all)
 *   T1  the blocks of a segment lie gapless in address order and fill it
 *   T2  sizes and addresses of blocks are multiples of 512 bytes (addresses: from the base)
 *   T3  two neighbours that are both free, or both unmapped, do not exist
 *   T4  a block is in its pool's free set exactly when it is free, in the unmapped set
 *       exactly when it is unmapped, and in neither otherwise
 *   T5  the statistics' `current` are what a walk over the blocks gives
 *   T6  total bytes from the driver = segments + mapped pages
 *   T7  reserved bytes, small and large = the sums of all pools' figures
 *
 * Ownership  create / destroy; destroy gives every range back to the device.
 * Errors     Records are taken before they are needed: MEMORY leaves the place consistent
 *            and the request undone; what the ladder did before (events processed, cached
 *            memory given back) stays done. Free never takes memory.
 * Threads    One at a time.
 * Cost       O(log free blocks) for alloc and free; the driver only on a miss.
 */

#include <stdbool.h>
#include <stdint.h>

#include "place/place.h"

/* The points in which releases differ (reference: the table in doc/torch-rules.md). */
struct dryi_torch_rules {
    const char *release;    /* the first release with these rules, e.g. "2.13" */
    const char *last;       /* the last one that was looked at, e.g. "2.15" */
    const char *change;     /* how they differ from the row before; "" of the oldest */
    bool order_by_counter;  /* free sets: segment registration before address */
    bool order_by_block;    /* free sets: the order in which blocks were made */
    bool slack_is_option;   /* oversize slack: max_non_split_rounding, else 20 MiB */
    bool scopes_last_first; /* of nested pool scopes the innermost wins */
    bool scope_is_capture;  /* an open pool scope stops event processing and release */
    bool split_min_allowed; /* max_split_size_mb:20 is accepted */
    bool roundup_rest_takes_last; /* of roundups ">" is for the last interval, too */
    bool fallback_expands;        /* and take expandable blocks, too */
    bool fallback_is_last; /* pools made for an out-of-memory come after all retries */
};

/*
 * "2.11", "2.11.1", "2.15.0a0": the rules of that release; NULL if it is not a version, or not
 * one that was looked at: nobody knows the rules of a later one.
 */
const struct dryi_torch_rules *dryi_torch_rules_find(const char *release);
/* Say so: ARGUMENT. */
enum dry_status dryi_torch_rules_refuse(const char *release, struct dry_error *err);
/* All of them, oldest first. */
const struct dryi_torch_rules *dryi_torch_rules_all(size_t *count);
/* The last of them. */
const struct dryi_torch_rules *dryi_torch_rules_newest(void);

/* PYTORCH_CUDA_ALLOC_CONF, as far as it decides where things go. */
struct dryi_torch_conf {
    uint64_t large_segment_size;          /* bytes; default 20 MiB */
    uint64_t max_split_size;              /* bytes; UINT64_MAX: unlimited */
    uint64_t max_non_split_rounding_size; /* bytes; default large_segment_size */
    uint64_t roundup_power2_divisions[16];
    double garbage_collection_threshold; /* 0: off */
    bool expandable_segments;
    double expandable_reserve_fraction; /* of the device; 0: unset (9/8) */
    uint64_t expandable_reserve_bytes;  /* 0: unset */
    double per_process_memory_fraction; /* 1: no limit */
    bool throw_on_cudamalloc_oom;
};

void dryi_torch_conf_init(struct dryi_torch_conf *conf);

/*
 * Apply an option string as PyTorch parses it: the same tokens, the same order, the same
 * errors in substance. An option that is not mentioned is reset or persists as there
 * (reference §7).
 * Options that do not change placement are checked and dropped. backend:cudaMallocAsync
 * is UNSUPPORTED: that allocator is the driver's own. On failure *conf is unchanged.
 */
DRY_CHECK_RESULT enum dry_status dryi_torch_conf_parse(
    const char *text, size_t length, const struct dryi_torch_rules *rules,
    struct dryi_torch_conf *conf, struct dry_error *err);
/* Is there an option of this name, in any release? */
bool dryi_torch_conf_has(const char *name, size_t length);
/* The settings as a snapshot tells them, without the option string. */
struct dry_trace_settings dryi_torch_conf_settings(const struct dryi_torch_conf *conf);

struct dryi_torch_options {
    struct dryi_torch_conf conf;
    const struct dryi_torch_rules *rules; /* NULL: the newest */
    struct dry_device device;
    const struct dry_memory *memory;
    struct dryi_place_observer observer; /* event NULL: none */
    /*
     * false: every alloc asks the device about every stream with pending frees, as PyTorch
     * does. true: only about streams named by dryi_torch_stream_progressed() since; for
     * devices that know when something completed, so that a thousand streams cost nothing.
     */
    bool progress_is_told;
};

struct dryi_torch;

DRY_CHECK_RESULT enum dry_status dryi_torch_create(
    const struct dryi_torch_options *options, struct dryi_torch **place,
    struct dry_error *err);
void dryi_torch_destroy(struct dryi_torch *place);
/* The same place behind the functions all places share. */
struct dryi_place dryi_torch_as_place(struct dryi_torch *place);

/*
 * `size` bytes for `stream`. size 0 gives DRYI_NO_BLOCK and OK. NO_SPACE: out of
 * memory after the whole ladder of retries (its side effects stay), or rejected by
 * throw_on_cudamalloc_oom. SYSTEM: the device refused what the ladder had to wait for, or a page.
 * ARGUMENT: 1 EiB or more.
 */
DRY_CHECK_RESULT enum dry_status dryi_torch_alloc(struct dryi_torch *place, uint64_t size,
                                                  uint64_t stream, dryi_block *block);

/*
 * Give back. With streams recorded on it, the block waits for their events. Fails (and the
 * block stays in use) only where an event must be recorded and cannot be.
 */
enum dry_status dryi_torch_free(struct dryi_torch *place, dryi_block block);

/* Another stream uses the block too. Its own stream is ignored, as are repetitions. */
enum dry_status dryi_torch_record_stream(struct dryi_torch *place, dryi_block block,
                                         uint64_t stream);

/* Events of this stream may have completed: the next alloc looks (progress_is_told). */
void dryi_torch_stream_progressed(struct dryi_torch *place, uint64_t stream);

/* Make blocks reusable whose streams are done; every alloc does it first. */
void dryi_torch_process_events(struct dryi_torch *place);

/* The size of the block a request gets, before any remainder that is not split off. */
uint64_t dryi_torch_round_size(const struct dryi_torch_conf *conf, uint64_t size);
/* Return the size of the segment that the device is asked for; `size` may be rounded or not. */
uint64_t dryi_torch_segment_size(const struct dryi_torch_conf *conf, uint64_t size);
/*
 * The most that may be asked, in all, of a device of so many bytes: throw_on_cudamalloc_oom
 * rejects what goes beyond, with no attempt to give anything back. UINT64_MAX: it is off.
 */
uint64_t dryi_torch_allowed_bytes(const struct dryi_torch_conf *conf, uint64_t total);

/*
 * The fate of a request, as things are, if the device had no more room. It is served from memory
 * there is, or else an oversize segment would be given back first (its address; 0: none), before
 * all cached memory is.
 */
struct dryi_torch_outlook {
    bool is_served;
    uint64_t released_first;
    bool is_enough; /* that one segment alone makes room for the request */
};
void dryi_torch_look_ahead(const struct dryi_torch *place, uint64_t size, uint64_t stream,
                           struct dryi_pool_id pool, struct dryi_torch_outlook *outlook);

/*
 * torch.cuda.empty_cache() for pool (0, 0); else for that private pool, once released.
 * MEMORY: pages of expandable segments could not all be given back.
 */
DRY_CHECK_RESULT enum dry_status dryi_torch_empty_cache(struct dryi_torch *place,
                                                        struct dryi_pool_id pool);

/*
 * Allocations go to a private pool from begin to end; begins nest. The first begin of an id
 * makes the pool with one user, each further begin adds a user, and release takes one away. A
 * pool without users is freed by the next release of cached memory. ARGUMENT: begin of a
 * pool already begun, end of one that is not, release of one without users.
 */
DRY_CHECK_RESULT enum dry_status dryi_torch_begin_pool(struct dryi_torch *place,
                                                       struct dryi_pool_id pool);
DRY_CHECK_RESULT enum dry_status dryi_torch_end_pool(struct dryi_torch *place,
                                                     struct dryi_pool_id pool);
DRY_CHECK_RESULT enum dry_status dryi_torch_flag_pool(struct dryi_torch *place,
                                                      struct dryi_pool_id pool,
                                                      unsigned flags, unsigned mask);
DRY_CHECK_RESULT enum dry_status dryi_torch_count_users(const struct dryi_torch *place,
                                                        struct dryi_pool_id pool,
                                                        uint64_t *users);
DRY_CHECK_RESULT enum dry_status dryi_torch_release_pool(struct dryi_torch *place,
                                                         struct dryi_pool_id pool);

/*
 * The functions below serve place.h. One opens a private pool with one user more. One begins a
 * scope of some streams, which begins and ends nothing else; dryi_torch_end_pool() ends it. Two
 * begin and end captures, which nest. PyTorch asks whether the calling thread's stream is
 * capturing; here it is the stream of the request or of the block.
 */
DRY_CHECK_RESULT enum dry_status dryi_torch_open_pool(struct dryi_torch *place,
                                                      struct dryi_pool_id pool,
                                                      unsigned flags);
DRY_CHECK_RESULT enum dry_status dryi_torch_begin_scope(struct dryi_torch *place,
                                                        struct dryi_pool_id pool,
                                                        struct dryi_stream_filter filter);
DRY_CHECK_RESULT enum dry_status dryi_torch_begin_capture(
    struct dryi_torch *place, struct dryi_stream_filter filter);
DRY_CHECK_RESULT enum dry_status dryi_torch_end_capture(struct dryi_torch *place);

/*
 * Give cached memory back to the device until no more than `target` bytes are reserved. Whole
 * free segments go first, the largest of them before others, then the pages of free expandable
 * blocks, the largest blocks first. Memory that streams have to be waited for comes last.
 */
DRY_CHECK_RESULT enum dry_status dryi_torch_trim(struct dryi_torch *place,
                                                 uint64_t target);
/*
 * May a request whose block takes `size` bytes have a free block of `block_size` at least as
 * large? Not if the block is much larger, by max_split_size_mb.
 */
bool dryi_torch_may_have(const struct dryi_torch *place, uint64_t block_size,
                         uint64_t size);

/*
 * Apply an option string while there are blocks, by this place's release. *conf: all options as
 * they are now. FORMAT, UNSUPPORTED: as of dryi_torch_conf_parse(), and nothing is changed.
 */
DRY_CHECK_RESULT enum dry_status dryi_torch_set_conf(struct dryi_torch *place,
                                                     const char *text, size_t length,
                                                     struct dryi_torch_conf *conf,
                                                     struct dry_error *err);

/* `set_limit` of place.h. */
void dryi_torch_set_limit(struct dryi_torch *place, uint64_t bytes,
                          uint64_t mapped_bytes);

/* torch.cuda.set_per_process_memory_fraction(); 0 <= fraction <= 1. */
DRY_CHECK_RESULT enum dry_status dryi_torch_set_fraction(struct dryi_torch *place,
                                                         double fraction);

void dryi_torch_get_block(const void *place, dryi_block block,
                          struct dryi_block_info *info);
void dryi_torch_get_stats(const void *place, struct dry_stats *stats);
void dryi_torch_reset_stats(void *place, bool peaks, bool accumulated);
void dryi_torch_get_counters(const void *place, struct dry_pool_counters *counters);

/*
 * Walk the segments as a snapshot lists them: by address, each contiguous mapped run of an
 * expandable one for itself, unmapped parts nowhere. The `blocks` are in address order and
 * valid during the call. A status other than OK from `visit` ends the walk.
 */
DRY_CHECK_RESULT enum dry_status dryi_torch_walk(
    const struct dryi_torch *place,
    enum dry_status (*visit)(void *self, const struct dryi_segment_info *segment,
                             const struct dryi_block_info *blocks, size_t count),
    void *self);

/*
 * Begin from a known layout instead of an empty one: only on a place that has done nothing
 * yet. Segments in any order; blocks of each in address order, gapless; the handles of
 * allocated or pending blocks come back in `handles` (others DRYI_NO_BLOCK). The
 * device is not asked for the ranges: who restores adopts them there. Expandable runs of
 * one (pool, stream) that one reservation can reach become parts of one.
 */
struct dryi_torch_restored {
    struct dryi_segment_info segment;
    uint64_t
        reserved_from; /* expandable: where its reservation begins, if lower; else 0 */
    const struct dryi_block_info *blocks; /* addr, size, requested, allocated */
    size_t block_count;
};
DRY_CHECK_RESULT enum dry_status dryi_torch_restore(
    struct dryi_torch *place, const struct dryi_torch_restored *segments,
    size_t segment_count, dryi_block *handles, struct dry_error *err);

/* Walk all invariants; FORMAT with the first broken one as text. O(blocks log blocks). */
enum dry_status dryi_torch_check(const struct dryi_torch *place, struct dry_error *err);

#endif
