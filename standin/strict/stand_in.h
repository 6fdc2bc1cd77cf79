/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STANDIN_STRICT_H
#define STANDIN_STRICT_H

/*
 * A stand-in for NVIDIA's driver library: the part of its interface that a device needs, with
 * no GPU behind it, and a program that watches its caller.
 *
 * It keeps account as a driver does. Handles live until they are released and unmapped;
 * addresses are reserved, mapped and made accessible one after the other. Each thread has a
 * stack of contexts, streams go in order, errors stay. A misuse is what no correct program
 * does: a second free, a part of a mapping unmapped, memory used without access. Each is
 * refused and counted. Addresses and handles never come again, those of streams do. Memory of
 * the host is registered where it really is: in whole pages that are there, once, and it must
 * be unregistered before it is unmapped. Asynchronous copies wait for their stream.
 *
 * Without reset, STAND_IN_DEVICES and STAND_IN_MEMORY_MIB say what there is (1 and 1024).
 *
 *     const struct stand_in *(*control)(void) = dlsym(library, "stand_in_control");
 */

#include <stdbool.h>
#include <stdint.h>

struct stand_in_setup {
    int device_count;     /* 0: 1 */
    uint64_t total_bytes; /* of each; 0: 1 GiB */
    uint64_t granularity; /* 0: 2 MiB */
    int init_result;      /* of cuInit */
    bool no_virtual_memory, no_posix_handles, no_gpu_direct, no_peers;
    bool unmaps_singly;        /* cuMemUnmap takes one mapping at a time */
    uint64_t pool_keeps_bytes; /* of the total, until the pool is trimmed */
    uint64_t graphs_keep_bytes;
    /* Registering memory of the host. */
    uint64_t register_cap_bytes; /* a call takes less than this; 0: no limit */
    int register_result;         /* of every call; 0: what is right */
    uint64_t register_ns;        /* a call takes that long, and all others wait */
    bool no_bus_id;
};

struct stand_in_account {
    uint64_t ranges, reservations, mappings, handles, events, streams;
    uint64_t used_bytes; /* on all devices, kept ones included */
    uint64_t registrations, registered_bytes;
    uint64_t unpopulated_bytes; /* the driver had to fault in itself, so far */
    uint64_t copies;            /* that wait for their stream */
    uint64_t contexts;          /* retained and not released */
    uint64_t depth;             /* of this thread's stack of contexts */
    uint64_t calls;             /* so far, that could have been made to fail */
    uint64_t misuses;
    uint64_t abandoned; /* things there were when their context was destroyed */
    uint64_t gpu_direct_pages, shareable_pages; /* created so far */
    uint64_t opened;                            /* ranges of another process */
};

struct stand_in {
    /* Everything is forgotten; setup NULL: the defaults. */
    void (*reset)(const struct stand_in_setup *setup);
    /* The n-th call from now (0 is the next) does nothing and returns `result`. */
    void (*fail_at)(uint64_t n, int result);
    /* Let every call that needs a context return `result` from now on; 0 ends that. */
    void (*break_down)(int result);
    /* Work on the stream stays undone until it is completed. */
    void (*hold)(void *stream);
    void (*complete)(void *stream);
    /* A graph is being captured: calls it cannot hold are misuses, unless relaxed. */
    void (*capture)(bool on);
    void (*get_account)(struct stand_in_account *account);
    /* Return a text about the last misuse; "": there was none. */
    const char *(*last_misuse)(void);
};

const struct stand_in *stand_in_control(void);

#endif
