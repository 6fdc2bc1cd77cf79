/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_SIM_H
#define DRY_SIM_H

/*
 * A simulated device: it returns what a GPU's driver would return, and models the cost of
 * each call.
 *
 *     struct dry_sim_options options;
 *     dry_sim_options_init(&options);
 *     options.capacity_bytes = UINT64_C(80) << 30;
 *     if (dry_sim_create(&options, &sim, &err) != DRY_OK) ...
 *     struct dry_device device = dry_sim_get_device(sim);
 *     ...                                   for example, create a pool on it
 *     dry_sim_complete_stream(sim, stream);
 *     dry_sim_get_account(sim, &account);   account.peak_bytes, account.time_ns
 *     dry_sim_destroy(sim);
 *
 * A simulated device has no memory, only accounts: capacity, ranges, mapped pages, events
 * that complete on command, and the time of every call. Any call can be made to fail.
 * Addresses ascend and are never reused, so that a run depends only on its requests. A
 * caller that knows the real addresses can supply them.
 *
 * With options.check it also checks the order of uses. The caller reports which memory
 * was given to the program, which work uses it and when it was freed. The device tracks
 * by vector clocks which work is done; every reuse that comes too early is a finding. A
 * finding is a fault of the allocator between the program and the device.
 *
 * Ownership  dry_sim_create() and dry_sim_destroy().
 * Errors     The statuses of <drystone/device.h>.
 * Threads    One thread at a time.
 * Units      Bytes; modelled time in nanoseconds.
 */

#include <stdbool.h>

#include <drystone/device.h>
#include <drystone/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dry_sim;

enum dry_sim_call {
    DRY_SIM_ALLOC,
    DRY_SIM_FREE,
    DRY_SIM_RESERVE,
    DRY_SIM_UNRESERVE,
    DRY_SIM_MAP,
    DRY_SIM_UNMAP,
    DRY_SIM_EVENT_RECORD,
    DRY_SIM_EVENT_QUERY,
    DRY_SIM_EVENT_WAIT,
    DRY_SIM_STREAM_WAIT,
    DRY_SIM_CREATE_PAGE,
    DRY_SIM_RELEASE_PAGE,
    DRY_SIM_MAP_PAGES,
    DRY_SIM_UNMAP_PAGES,
    DRY_SIM_STREAM_FOLLOW,
    DRY_SIM_LET_PEER,
};
#define DRY_SIM_CALL_COUNT 16

#define DRY_SIM_UNLIMITED UINT64_MAX

struct dry_sim_options {
    size_t struct_size; /* set by dry_sim_options_init() */
    const struct dry_memory *memory;
    uint64_t capacity_bytes; /* default DRY_SIM_UNLIMITED */
    uint64_t total_bytes; /* device size that get_info reports; default: the capacity */
    uint64_t granularity_bytes; /* alignment of addresses and unit of accounting; default
                                   2 MiB */
    uint64_t page_bytes; /* size of a page, a multiple of the granularity; default 2 MiB;
                            0: the device has no pages */
    /*
     * Returns the address that the next alloc or reserve shall return; 0: the device
     * chooses. NULL: the device always chooses. The caller must ensure that ranges do not
     * overlap.
     */
    uint64_t (*choose_address)(void *self, enum dry_sim_call call, uint64_t size);
    void *choose_self;
    /*
     * Track addresses, pages and uses, and find uses in the wrong order (below). Default
     * false, without cost. A checked simulation begins empty: it adopts no memory. Calls
     * that a driver would refuse (a map over mapped memory, an unknown page) return
     * SYSTEM and make a finding.
     */
    bool check;
};

DRY_API void dry_sim_options_init_sized(struct dry_sim_options *options,
                                        size_t struct_size);
#define dry_sim_options_init(options)                                                    \
    dry_sim_options_init_sized(options, sizeof *(options))
DRY_API DRY_CHECK_RESULT enum dry_status dry_sim_create(
    const struct dry_sim_options *options, struct dry_sim **sim, struct dry_error *err);
DRY_API void dry_sim_destroy(struct dry_sim *sim);

DRY_API struct dry_device dry_sim_get_device(struct dry_sim *sim);

/*
 * Let `stream` reach its end: all events recorded on it so far have passed, and so has
 * all work that it followed on other streams. The program is not notified; it must query.
 */
DRY_API void dry_sim_complete_stream(struct dry_sim *sim, uint64_t stream);

/*
 * Let `stream` pass its next `count` events, or all if there are fewer, with all work
 * ordered before them. The event of dry_sim_stream_waits() counts as one of stream `on`.
 */
DRY_API void dry_sim_advance_stream(struct dry_sim *sim, uint64_t stream, uint64_t count);

/*
 * Record that the program made `stream` wait for all work on `on` so far, as by an event
 * recorded on `on` and followed by `stream`. The account does not count this as a call.
 * MEMORY: nothing was done.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_sim_stream_waits(struct dry_sim *sim,
                                                              uint64_t stream,
                                                              uint64_t on);

/* Change the device's capacity; allocated memory stays. */
DRY_API void dry_sim_set_capacity(struct dry_sim *sim, uint64_t capacity_bytes);

/* Count `bytes` of the device as used by allocations older than the simulation. */
DRY_API void dry_sim_adopt(struct dry_sim *sim, uint64_t bytes);

/* Make the n-th later call that can fail do so; 0: the next one; UINT64_MAX: none. */
DRY_API void dry_sim_fail_at(struct dry_sim *sim, uint64_t n);

struct dry_sim_account {
    size_t struct_size; /* DRY_INIT sets it */
    uint64_t used_bytes, peak_bytes;
    uint64_t reserved_address_bytes;
    uint64_t time_ns; /* modelled time of all calls */
    uint64_t calls[DRY_SIM_CALL_COUNT];
    uint64_t failures; /* failed calls, because the device was full or by
                          dry_sim_fail_at() */
    uint64_t events_live;
    uint64_t pages_live; /* created and not yet released, mapped or not */
    uint64_t peers;      /* bit n: device n has access to all later mappings */
    uint64_t peer_bytes; /* bytes opened for a peer after they were mapped */
};
DRY_API enum dry_status dry_sim_get_account(const struct dry_sim *sim,
                                            struct dry_sim_account *account);

/*
 * The checker.
 *
 * Work counts as done when the program can know that it is. The program knows the order
 * within a stream, streams that follow events, and events and streams that it waited for
 * or queried as passed. These define a happened-before order of all work (Lamport, CACM
 * 1978; vector clocks as Fidge and Mattern, 1988).
 *
 * Unmapping and releasing are not ordered with streams: every use must be known to be
 * done. The device's `free` waits for the device itself, as cudaFree does, so all uses
 * are done after it; it does not complete events. Unmapped addresses therefore have no
 * uses, and a page mapped at another address brings none with it.
 *
 * For each allocation the program calls dry_sim_own() after alloc, dry_sim_use() for each
 * work item that uses it, and dry_sim_disown() before free. Bytes that were allocated
 * twice belong to the later owner after the finding. The uses of an allocation count for
 * all its bytes, because an allocator cannot know which bytes work touches.
 *
 * Cost: own, use and disown are O(log n) for n ranges. A repeated use of an allocation on
 * the same stream takes one look-up. Memory grows with the owned ranges, and with former
 * owners of mapped addresses whose uses are not known to be done.
 */
enum dry_sim_fault {
    DRY_SIM_EARLY_REUSE,        /* used while a former owner's use may still run */
    DRY_SIM_USE_UNMAPPED,       /* used where no memory is mapped */
    DRY_SIM_USE_AFTER_FREE,     /* used by an owner that never existed or was freed */
    DRY_SIM_USE_BEYOND,         /* used outside its owner's range */
    DRY_SIM_OVERLAP,            /* allocated while another owner has the range */
    DRY_SIM_EARLY_UNMAP,        /* unmapped while owned, or while a use may still run */
    DRY_SIM_EARLY_FREE,         /* released to the device while owned */
    DRY_SIM_PAGE_MAPPED_TWICE,  /* a page mapped at two addresses */
    DRY_SIM_PAGE_MAPPED_AT_END, /* a page released while it is mapped */
    DRY_SIM_PAGE_UNKNOWN,       /* an unknown page mapped or released */
    DRY_SIM_MAP_OVER_MAPPED,    /* memory mapped over mapped memory */
    DRY_SIM_MAP_UNRESERVED,     /* memory mapped outside reservations */
    DRY_SIM_UNMAP_UNMAPPED,     /* an unmap where no memory was mapped */
    DRY_SIM_FREE_UNKNOWN, /* a free or unreserve of an address that is not a range's */
    DRY_SIM_UNRESERVE_MAPPED, /* addresses unreserved while memory is mapped there */
};
#define DRY_SIM_FAULT_COUNT 15

struct dry_sim_finding {
    size_t struct_size; /* DRY_INIT sets it */
    enum dry_sim_fault fault;
    uint64_t address, size; /* range of the faulty call; for pages, the page's number */
    uint64_t stream;        /* stream of the use, or else of the allocation */
    uint64_t other_stream;  /* stream of the earlier use */
    uint64_t owner;         /* the owner that uses or has the memory; 0: none */
    uint64_t other_owner;   /* the earlier user or owner; 0: none */
    uint64_t call;  /* index of the call, counting own, use, disown and device calls */
    char text[192]; /* for people, one line */
};

/*
 * Record that [address, address + size) was given to the program as allocation `owner` of
 * `stream`. An owner is a number, never 0 and never reused. ARGUMENT: `owner` is 0 or
 * already owns a range, or `size` is 0. MEMORY: nothing was done. Without options.check
 * this call and the next two do nothing.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_sim_own(struct dry_sim *sim,
                                                     uint64_t address, uint64_t size,
                                                     uint64_t stream, uint64_t owner);

/* Record that work that reads and writes these bytes of `owner` is submitted to `stream`
   now. Errors: MEMORY. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_sim_use(struct dry_sim *sim, uint64_t stream,
                                                     uint64_t address, uint64_t size,
                                                     uint64_t owner);

/* Record that the program frees `owner`: later uses are findings. Unknown owners are
   ignored. */
DRY_API void dry_sim_disown(struct dry_sim *sim, uint64_t owner);

#define DRY_SIM_FINDINGS_KEPT 64

/* Return the number of findings; the first DRY_SIM_FINDINGS_KEPT of them are kept. */
DRY_API uint64_t dry_sim_get_finding_count(const struct dry_sim *sim);

/* Get a finding by its index, from 0. DRY_END: there is none, or it was not kept. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_sim_get_finding(
    const struct dry_sim *sim, uint64_t index, struct dry_sim_finding *finding);

/* Return the name of a fault: "early reuse". */
DRY_API const char *dry_sim_fault_name(enum dry_sim_fault fault);

#ifdef __cplusplus
}
#endif

#endif
