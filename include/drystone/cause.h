/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_CAUSE_H
#define DRY_CAUSE_H

/*
 * Why a program ran out of memory: the classes that a verdict, a message and the labelled
 * cases of the tests share.
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

/* The numbers are fixed for ever; new ones are only appended. */
enum dry_cause {
    DRY_CAUSE_NONE,     /* nothing is wrong */
    DRY_CAUSE_CAPACITY, /* what is alive and the request together exceed the device */
    DRY_CAUSE_FRAGMENTATION, /* the bytes are free, but in pieces */
    DRY_CAUSE_STRANDED,      /* the bytes are free in another pool or stream */
    DRY_CAUSE_PENDING,       /* the bytes wait for streams that recorded them */
    DRY_CAUSE_LIMIT,         /* a memory fraction forbids what the device has */
    /* The device is full of memory that PyTorch did not allocate. */
    DRY_CAUSE_OTHER_MEMORY,
    DRY_CAUSE_LEAK,      /* what is alive grows from step to step */
    DRY_CAUSE_SPIKE,     /* a few lines hold it, allocated just before the moment */
    DRY_CAUSE_IMBALANCE, /* a sibling device holds a fraction of this one's */
    DRY_CAUSE_OVERFLOW,  /* the recording lost its beginning: owners are unknown */
    DRY_CAUSE_UNKNOWN,   /* the evidence does not carry a class */
    /* Nothing failed, but the device was full: requests were served on a retry alone. */
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
