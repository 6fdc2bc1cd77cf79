/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_PLACE_OPS_H
#define TEST_PLACE_OPS_H

/*
 * Bytes as a program that uses any place.
 *
 * A header chooses the place's options, the device and the kind of program; each four
 * bytes after it are one call of the program: allocate, free the newest, the oldest or
 * any, record a stream, make one stream wait for another, let a stream get on, release
 * memory, change limits, open, begin, end and release private pools, capture, and make
 * the n-th call of the device or the n-th request for memory fail. The program itself
 * keeps the rules: it frees once, and lets a stream wait before that uses another's block.
 *
 * After every call the answers are held against what may be known without knowing how the
 * place decides:
 *   O1  no block overlaps one that is alive; it is aligned, and as large as was asked
 *   O2  the simulated device's checker finds no use that can meet another owner's
 *   O3  a failure has a reason: something was told to fail, or there is no room; then the
 *       same request fails again
 *   O4  no room is said only where there is none: pages that nobody alive lies on, and
 *       whose waits can be waited for, would not hold the request (addresses may have an end:
 *       then it fails again, as O3 says)
 *   O5  a walk is by address, gapless, and lists exactly what is alive, and waiting only
 *       what was freed and used by other streams
 *   O6  statistics are the recount; what is reserved is what the device says was taken
 *   O7  nothing grows beyond the limit; a trim leaves only what is pinned; a private pool
 *       with users keeps its memory
 *   O8  nobody asks or gives back where a capture forbids it
 *   O9  the place's own check is content, and at the end everything has been given back;
 *       its records never took more than so much, however long the program
 * At the first that does not hold it says so, and aborts.
 *
 * DRY_OPS_TRACE=1 in the environment prints calls.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLACE_OPS_HEADER 8
#define PLACE_OPS_STEP 4

enum place_kind { PLACE_TORCH, PLACE_PAGED };

struct place_ops_options {
    enum place_kind kind;
    uint32_t survey_every;       /* calls from one survey to the next; 1: each */
    bool no_faults;              /* nothing is told to fail */
    bool expects_findings;       /* a device that lies: count findings, do not abort */
    bool says_done, never_waits; /* the lies, see place_device.h */
};

struct place_ops_tally {
    uint64_t calls, allocs, frees, no_space, finals, pool_allocs, faults, surveys;
    uint64_t findings;      /* of the device's checker */
    uint64_t digest;        /* of every answer: the same bytes give the same one */
    uint64_t record_bytes;  /* of the place, at most */
    uint64_t address_bytes; /* reserved, at most */
    uint64_t remapped, reused_ordered, reused_passed, reused_waiting;
};

struct place_ops;

struct place_ops *place_ops_create(const struct place_ops_options *options,
                                   const uint8_t header[PLACE_OPS_HEADER]);
void place_ops_step(struct place_ops *ops, const uint8_t step[PLACE_OPS_STEP]);
/* Everything still alive stays so: the place is ended over it. */
void place_ops_destroy(struct place_ops *ops, struct place_ops_tally *tally);

/* All of it, for bytes of any size. */
void place_ops_run(const struct place_ops_options *options, const uint8_t *data,
                   size_t size);

#endif
