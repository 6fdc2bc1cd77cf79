/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STANDIN_STRICT_H
#define STANDIN_STRICT_H

/*
 * A stand-in for NVIDIA's driver library: the functions that a device needs, without a
 * GPU, and checks of the caller.
 *
 * It accounts as a driver does. Handles live until they are released and unmapped;
 * addresses are reserved, mapped and made accessible one after the other. Each thread has
 * a stack of contexts, streams run in order, errors persist. A misuse is what no correct
 * program does: a second free, unmapping part of a mapping, memory used without access.
 * Each is refused and counted. Addresses and handles are never reused, those of streams
 * are. Host memory must be registered once, in whole mapped pages, and unregistered before
 * it is unmapped. Asynchronous copies wait for their stream.
 *
 * Before any reset, STAND_IN_DEVICES and STAND_IN_MEMORY_MIB set the number of devices
 * and their memory (1 and 1024).
 *
 *     const struct stand_in *(*control)(void) = dlsym(library, "stand_in_control");
 */

#include <stdbool.h>
#include <stdint.h>

struct stand_in_setup {
    int device_count;     /* 0 selects 1 */
    uint64_t total_bytes; /* memory of each device; 0: 1 GiB */
    uint64_t granularity; /* bytes; 0: 2 MiB */
    int init_result;      /* result of cuInit */
    bool no_virtual_memory, no_posix_handles, no_gpu_direct, no_peers;
    bool unmaps_singly;        /* cuMemUnmap takes one mapping at a time */
    uint64_t pool_keeps_bytes; /* taken from the total until the pool is trimmed */
    uint64_t graphs_keep_bytes;
    /* Registering host memory. */
    uint64_t register_cap_bytes; /* a call must take less than this; 0: no limit */
    int register_result;         /* result of every call; 0: each call decides */
    uint64_t register_ns;        /* duration of each call, which blocks all others */
    bool no_bus_id;
};

struct stand_in_account {
    uint64_t ranges, reservations, mappings, handles, events, streams;
    uint64_t used_bytes; /* sum over all devices, including kept bytes */
    uint64_t registrations, registered_bytes;
    uint64_t unpopulated_bytes; /* bytes that the driver had to fault in, so far */
    uint64_t copies;            /* copies that wait for their stream */
    uint64_t contexts;          /* retained and not released */
    uint64_t depth;             /* depth of this thread's stack of contexts */
    uint64_t calls;             /* calls so far that fail_at() could have hit */
    uint64_t misuses;
    uint64_t abandoned; /* objects that were alive when their context was destroyed */
    uint64_t gpu_direct_pages, shareable_pages; /* created so far */
    uint64_t opened;                            /* ranges of another process */
};

struct stand_in {
    /* Reset all state; setup NULL: the defaults. */
    void (*reset)(const struct stand_in_setup *setup);
    /* Make the n-th call from now (0 is the next) do nothing and return `result`. */
    void (*fail_at)(uint64_t n, int result);
    /* Make every call that needs a context return `result`; 0 ends that. */
    void (*break_down)(int result);
    /* Work on the stream stays pending until it is completed. */
    void (*hold)(void *stream);
    void (*complete)(void *stream);
    /*
     * Set whether a graph is being captured: calls that it cannot contain are then
     * misuses, unless the thread's mode is relaxed.
     */
    void (*capture)(bool on);
    void (*get_account)(struct stand_in_account *account);
    /* Return a text about the last misuse; "": there was none. */
    const char *(*last_misuse)(void);
};

const struct stand_in *stand_in_control(void);

#endif
