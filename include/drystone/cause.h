/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_CAUSE_H
#define DRY_CAUSE_H

/*
 * The causes of running out of memory, shared by verdicts, messages and the labelled test
 * cases.
 *
 *     struct dry_message_judgement j;
 *     dry_message_judge(&message, &j);
 *     printf("%s\n", dry_cause_name(j.cause));          fragmentation
 *
 * Ownership  A cause is a number, and its name is static.
 * Threads    Everything here may be called from any thread.
 */

#include <drystone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers never change; new ones are appended. */
enum dry_cause {
    DRY_CAUSE_NONE,          /* nothing is wrong */
    DRY_CAUSE_CAPACITY,      /* live bytes plus the request exceed the device */
    DRY_CAUSE_FRAGMENTATION, /* the bytes are free, but not in one block */
    DRY_CAUSE_STRANDED,      /* the bytes are free in another pool or stream */
    DRY_CAUSE_PENDING,       /* the bytes wait for streams that recorded them */
    DRY_CAUSE_LIMIT,         /* a memory fraction is lower than what the device has */
    /* The device is full of memory that PyTorch did not allocate. */
    DRY_CAUSE_OTHER_MEMORY,
    DRY_CAUSE_LEAK,  /* live bytes grow from step to step */
    DRY_CAUSE_SPIKE, /* a few lines, allocated just before the moment, hold the memory */
    DRY_CAUSE_IMBALANCE, /* a sibling device holds a fraction of this one's bytes */
    DRY_CAUSE_OVERFLOW,  /* the recording lost its beginning, so owners are unknown */
    DRY_CAUSE_UNKNOWN,   /* the evidence supports none of the causes */
    /* Nothing failed, but the device was full: some requests succeeded only on a
       retry. */
    DRY_CAUSE_NEAR_LIMIT,
};
#define DRY_CAUSE_COUNT 13

/*
 * Return the name, "capacity", "other-memory" ...: a key for machines and a word for
 * people.
 */
DRY_API const char *dry_cause_name(enum dry_cause cause);

#ifdef __cplusplus
}
#endif

#endif
