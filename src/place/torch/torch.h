/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_TORCH_H
#define DRYI_PLACE_TORCH_H

/*
 * PyTorch's caching allocator, decision for decision.
 *
 * The rules are those of c10/cuda/CUDACachingAllocator.cpp (DeviceCachingAllocator) and
 * c10/core/AllocatorConfig.cpp, main at 2.15.0a0. struct dryi_torch_rules selects the differences
 * of older releases. A place takes no lock and reads no clock, so replay, pool and reports share
 * this code.
 *
 * Nouns: a segment is a range from the driver (cudaMalloc) or a reserved address range whose pages
 * are mapped as needed (expandable). A block is a part of one segment: in use, waiting for a
 * stream, free or unmapped. A pool is the small or the large half of the default pool or of a
 * private one. A block stays in one (pool, stream) all its life.
 *
 * Invariants (checked by dryi_torch_check)
 *   T1  the blocks of a segment are contiguous, in address order, and fill it
 *   T2  sizes and addresses of blocks are multiples of 512 bytes (addresses: from the base)
 *   T3  no two neighbours are both free, or both unmapped
 *   T4  a block is in its pool's free set exactly if it is free, in the unmapped set
 *       exactly if it is unmapped, and in neither otherwise
 *   T5  the statistics' `current` equal the sums over all blocks
 *   T6  total bytes from the driver = segments + mapped pages
 *   T7  reserved bytes, small and large = the sums of all pools' figures
 *
 * Ownership  create / destroy; destroy returns every range to the device.
 * Errors     Records are allocated before they are needed. After MEMORY the place is consistent
 *            and the request undone; earlier effects of the ladder (events processed, cached
 *            memory released) remain. Free never allocates memory.
 * Threads    One at a time.
 * Cost       O(log free blocks) for alloc and free; driver calls only on a miss.
 */

#include <stdbool.h>
#include <stdint.h>

#include "place/place.h"

/* The rules in which releases differ; the table in doc/torch-rules.md has the evidence. */
struct dryi_torch_rules {
    const char *release; /* the first release with these rules, e.g. "2.13" */
    const char *last;    /* the last release examined, e.g. "2.15" */
    /* Difference from the previous row, for users; "" for the oldest. */
    const char *change;
    /* Order of free blocks of one size: segment registration, then address. */
    bool order_by_counter;
    bool order_by_block; /* order of free blocks of one size: creation of the block */
    /* Slack of oversize blocks: max_non_split_rounding; else 20 MiB. */
    bool slack_is_option;
    /* The innermost of nested pool scopes wins; else the outermost. */
    bool scopes_last_first;
    bool scope_is_capture;  /* An open pool scope stops event processing and release */
    bool split_min_allowed; /* max_split_size_mb:20 is accepted */
    bool roundup_rest_takes_last; /* roundup ">" also sets the last listed interval */
    bool fallback_expands; /* a fallback to a private pool may take expandable blocks */
    /* The fallback to private pools comes after all retries; else before. */
    bool fallback_is_last;
};

/*
 * Return the rules of a release such as "2.11", "2.11.1" or "2.15.0a0". NULL: not a version, or not
 * an examined release; the rules of later releases are unknown.
 */
const struct dryi_torch_rules *dryi_torch_rules_find(const char *release);
/* Return ARGUMENT, with a text that names the known releases. */
enum dry_status dryi_torch_rules_refuse(const char *release, struct dry_error *err);
/* Return all rules, oldest first. */
const struct dryi_torch_rules *dryi_torch_rules_all(size_t *count);
/* Return the rules of the newest examined release. */
const struct dryi_torch_rules *dryi_torch_rules_newest(void);

/* The options of PYTORCH_CUDA_ALLOC_CONF that affect placement. */
struct dryi_torch_conf {
    uint64_t large_segment_size;          /* bytes; default 20 MiB */
    uint64_t max_split_size;              /* bytes; UINT64_MAX: unlimited */
    uint64_t max_non_split_rounding_size; /* bytes; default large_segment_size */
    uint64_t roundup_power2_divisions[16];
    double garbage_collection_threshold; /* 0: off */
    bool expandable_segments;
    double expandable_reserve_fraction; /* share of the device's memory; 0: unset (9/8) */
    uint64_t expandable_reserve_bytes;  /* bytes; 0: unset */
    double per_process_memory_fraction; /* share of the device's memory; 1: no limit */
    bool throw_on_cudamalloc_oom;
};

void dryi_torch_conf_init(struct dryi_torch_conf *conf);

/*
 * Apply an option string as PyTorch parses it: with the same tokens, order and errors. An option
 * that is not mentioned is reset or kept as in PyTorch (reference §7). Options that do not affect
 * placement are checked and ignored. backend:cudaMallocAsync is UNSUPPORTED, because that allocator
 * is part of the driver. On failure *conf is unchanged.
 */
DRY_CHECK_RESULT enum dry_status dryi_torch_conf_parse(
    const char *text, size_t length, const struct dryi_torch_rules *rules,
    struct dryi_torch_conf *conf, struct dry_error *err);
/* Does any release have an option of this name? */
bool dryi_torch_conf_has(const char *name, size_t length);
/* Return the settings as a snapshot records them, without the option string. */
struct dry_trace_settings dryi_torch_conf_settings(const struct dryi_torch_conf *conf);

struct dryi_torch_options {
    struct dryi_torch_conf conf;
    const struct dryi_torch_rules *rules; /* NULL: the newest */
    struct dry_device device;
    const struct dry_memory *memory;
    struct dryi_place_observer observer; /* event NULL: none */
    /*
     * false: each alloc queries all streams with pending frees, as PyTorch does. true: only streams
     * reported to dryi_torch_stream_progressed() since the last alloc. For devices that know when
     * work completes, so that a thousand idle streams cost no time.
     */
    bool progress_is_told;
};

/* Functions that stand in place.h's table as they are take a `void *place`: a struct dryi_torch. */
struct dryi_torch;

DRY_CHECK_RESULT enum dry_status dryi_torch_create(
    const struct dryi_torch_options *options, struct dryi_torch **place,
    struct dry_error *err);
void dryi_torch_destroy(void *place);
/* Return the place behind the interface of place.h. Destroying either destroys both. */
struct dryi_place dryi_torch_as_place(struct dryi_torch *place);

/*
 * Allocate `size` bytes for `stream`. A size of 0 gives DRYI_NO_BLOCK and OK.
 *     NO_SPACE  Out of memory after the whole ladder of retries (its side effects remain), or
 *               rejected by throw_on_cudamalloc_oom.
 *     SYSTEM    The device refused a page, or a wait that the ladder needs.
 *     ARGUMENT  1 EiB or more.
 */
DRY_CHECK_RESULT enum dry_status dryi_torch_alloc(void *place, uint64_t size,
                                                  uint64_t stream, dryi_block *block);

/*
 * Free a block. If other streams use the block, it waits for their events. The only failure is that
 * an event cannot be recorded; the block then stays in use.
 */
enum dry_status dryi_torch_free(void *place, dryi_block block);

/*
 * Note that another stream uses the block. Repeated calls, and calls for the block's own stream,
 * have no effect.
 */
enum dry_status dryi_torch_record_stream(void *place, dryi_block block, uint64_t stream);

/* With progress_is_told: events of this stream may be complete; the next alloc queries them. */
void dryi_torch_stream_progressed(void *place, uint64_t stream);

/* Free the blocks whose pending uses are complete. Each alloc does this first. */
void dryi_torch_process_events(void *place);

/*
 * Return the block size for a request of `size` bytes. The actual block can be larger if its
 * remainder is not split off.
 */
uint64_t dryi_torch_round_size(const struct dryi_torch_conf *conf, uint64_t size);
/* Return the size of a new segment for a request of `size` bytes, rounded or not. */
uint64_t dryi_torch_segment_size(const struct dryi_torch_conf *conf, uint64_t size);
/*
 * Return the bytes that may be reserved in total on a device of `total` bytes.
 * throw_on_cudamalloc_oom rejects a request beyond this without releasing cached memory.
 * UINT64_MAX: the option is off.
 */
uint64_t dryi_torch_allowed_bytes(const struct dryi_torch_conf *conf, uint64_t total);

/*
 * The effects that a request would have now on a full device. Either existing memory serves it, or
 * an oversize segment would be released before all cached memory is (its address; 0: none).
 */
struct dryi_torch_outlook {
    bool is_served;
    uint64_t released_first;
    bool suffices; /* Releasing this one segment would suffice for the request */
};
void dryi_torch_look_ahead(const struct dryi_torch *place, uint64_t size, uint64_t stream,
                           struct dryi_pool_id pool, struct dryi_torch_outlook *outlook);

/*
 * Release cached memory as torch.cuda.empty_cache() does, for pool (0, 0); else that of a private
 * pool without users. MEMORY: not all pages of expandable segments could be released.
 */
DRY_CHECK_RESULT enum dry_status dryi_torch_empty_cache(void *place,
                                                        struct dryi_pool_id pool);

/*
 * Begin directing requests to a private pool; dryi_torch_end_pool() ends this. Begins nest. The
 * first begin of an id creates the pool with one user, each further begin adds a user, and release
 * removes one. A pool without users is freed by the next release of cached memory. ARGUMENT: begin
 * of a pool already begun, end of one not begun, release without users.
 */
DRY_CHECK_RESULT enum dry_status dryi_torch_begin_pool(struct dryi_torch *place,
                                                       struct dryi_pool_id pool);
DRY_CHECK_RESULT enum dry_status dryi_torch_end_pool(void *place,
                                                     struct dryi_pool_id pool);
DRY_CHECK_RESULT enum dry_status dryi_torch_flag_pool(void *place,
                                                      struct dryi_pool_id pool,
                                                      unsigned flags, unsigned mask);
DRY_CHECK_RESULT enum dry_status dryi_torch_count_users(const void *place,
                                                        struct dryi_pool_id pool,
                                                        uint64_t *users);
DRY_CHECK_RESULT enum dry_status dryi_torch_release_pool(void *place,
                                                         struct dryi_pool_id pool);

/*
 * These functions implement place.h: opening a pool adds a user; a scope directs requests of some
 * streams without changing users, and dryi_torch_end_pool() ends it; captures nest. PyTorch tests
 * whether the calling thread's stream is capturing; here it is the stream of the request or of the
 * block.
 */
DRY_CHECK_RESULT enum dry_status dryi_torch_open_pool(void *place,
                                                      struct dryi_pool_id pool,
                                                      unsigned flags);
DRY_CHECK_RESULT enum dry_status dryi_torch_begin_scope(void *place,
                                                        struct dryi_pool_id pool,
                                                        struct dryi_stream_filter filter);
DRY_CHECK_RESULT enum dry_status dryi_torch_begin_capture(
    void *place, struct dryi_stream_filter filter);
DRY_CHECK_RESULT enum dry_status dryi_torch_end_capture(void *place);

/*
 * Release cached memory until at most `target` bytes are reserved. Whole free segments come first,
 * largest first, then the pages of free expandable blocks, largest first. Memory that needs a wait
 * for streams comes last.
 */
DRY_CHECK_RESULT enum dry_status dryi_torch_trim(void *place, uint64_t target);
/*
 * Does max_split_size_mb permit a request of block size `size` to use a free block of `block_size`,
 * which is at least as large?
 */
bool dryi_torch_may_have(const struct dryi_torch *place, uint64_t block_size,
                         uint64_t size);

/*
 * Apply an option string to a place in use, by the rules of its release. *conf: all options after
 * the change. FORMAT, UNSUPPORTED: as dryi_torch_conf_parse(), without any change.
 */
DRY_CHECK_RESULT enum dry_status dryi_torch_set_conf(struct dryi_torch *place,
                                                     const char *text, size_t length,
                                                     struct dryi_torch_conf *conf,
                                                     struct dry_error *err);

/* Implements `set_limit` of place.h. */
void dryi_torch_set_limit(void *place, uint64_t bytes, uint64_t mapped_bytes);

/* Set the limit as torch.cuda.set_per_process_memory_fraction() does. ARGUMENT: outside [0, 1]. */
DRY_CHECK_RESULT enum dry_status dryi_torch_set_fraction(struct dryi_torch *place,
                                                         double fraction);

void dryi_torch_get_block(const void *place, dryi_block block,
                          struct dryi_block_info *info);
void dryi_torch_get_stats(const void *place, struct dry_stats *stats);
void dryi_torch_reset_stats(void *place, bool peaks, bool accumulated);
void dryi_torch_get_counters(const void *place, struct dry_pool_counters *counters);

/*
 * Visit the segments as a snapshot lists them: by address, one entry per contiguous mapped range of
 * an expandable segment, unmapped parts omitted. `blocks` are in address order and valid during the
 * call only. The walk ends at the first status other than OK from `visit`, and returns it.
 */
DRY_CHECK_RESULT enum dry_status dryi_torch_walk(
    const void *place,
    enum dry_status (*visit)(void *visitor, const struct dryi_segment_info *segment,
                             const struct dryi_block_info *blocks, size_t count),
    void *visitor);

/*
 * Begin with a known layout: only on a place that has served no request yet. Segments are sorted by
 * address; the blocks of each are contiguous, in address order. `handles` receives the handles of
 * allocated blocks (DRYI_NO_BLOCK for others). The device is not asked for the ranges: the caller
 * adopts them there. Expandable ranges of one (pool, stream) that one reservation can cover become
 * parts of it.
 */
struct dryi_torch_restored {
    struct dryi_segment_info segment; /* its address is first, to sort by it */
    /* Expandable: where its reservation begins, if lower than the segment; else 0. */
    uint64_t reserved_from;
    /* Only addr, size, requested and allocated are read. */
    const struct dryi_block_info *blocks;
    size_t block_count;
};
DRY_CHECK_RESULT enum dry_status dryi_torch_restore(
    struct dryi_torch *place, const struct dryi_torch_restored *segments,
    size_t segment_count, dryi_block *handles, struct dry_error *err);

/* Check all invariants. FORMAT: `err` names the first violated one. O(blocks log blocks). */
enum dry_status dryi_torch_check(const void *place, struct dry_error *err);

#endif
