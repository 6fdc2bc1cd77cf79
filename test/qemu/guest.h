/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_QEMU_GUEST_H
#define TEST_QEMU_GUEST_H

/*
 * The first process of a small machine: node 0 with a page of 1 GiB and CPU 0, node 1 with
 * CPU 1, 128 pages of 2 MiB on each. It runs experiments, each in a child of its own, and
 * says of each how it ended: "ok NAME" or "not ok NAME: why", and powers the machine off.
 * A child that a signal ended is a failure; that is what all of this is about.
 */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/pages.h>

#define MIB (UINT64_C(1) << 20)
#define POOL_OF_NODE 128 /* pages of 2 MiB */

struct experiment {
    const char *name;
    void (*run)(void);
};

/* Of doctor.c. */
void doctor_counts_the_pages_of_a_node(void);
void doctor_mends_what_it_finds(void);

extern const struct experiment guest_experiments[];
extern const unsigned guest_experiment_count;

/* Ends the experiment as failed unless the condition holds. */
#define REQUIRE(condition) guest_require((condition), #condition, __LINE__)
void guest_require(bool condition, const char *text, int line);

/* Of /sys and /proc; the machine is ours, so a failure to do this is one of the test. */
void guest_write(const char *path, const char *text);
uint64_t guest_number(const char *path);
uint64_t guest_free_pages(int node);

/* How a child that runs `body` ends: its exit status, or 1000 + its signal. */
int guest_fork(int (*body)(void *argument), void *argument);

#endif
