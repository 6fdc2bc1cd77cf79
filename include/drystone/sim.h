/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_SIM_H
#define DRY_SIM_H

/*
 * A simulated device: what a GPU's driver would have answered, and what it would have cost.
 *
 *     struct dry_sim_options options;
 *     dry_sim_options_init(&options);
 *     options.capacity_bytes = UINT64_C(80) << 30;
 *     if (dry_sim_create(&options, &sim, &err) != DRY_OK) ...
 *     struct dry_device device = dry_sim_get_device(sim);
 *     ...                                   a pool on it, say
 *     dry_sim_complete_stream(sim, stream);
 *     dry_sim_get_account(sim, &account);   account.peak_bytes, account.time_ns
 *     dry_sim_destroy(sim);
 *
 * A simulated device holds no memory, only the account: capacity, ranges, mapped pages, events
 * that complete when told, and the time every call would have taken. Any call can be made to
 * fail. Addresses are handed out upwards and never again, so that a run depends on nothing but
 * its requests. A caller who knows the real addresses can supply them.
 *
 * With options.check it also proves order. The caller says which memory was handed to the
 * program, what work uses it and when it was freed. The device knows by vector clocks which
 * work is over when, and everything that comes too early is a finding. A finding is a fault of
 * whoever sits between the program and the device.
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
    uint64_t
        total_bytes; /* what get_info reports as the device's size; default capacity */
    uint64_t granularity_bytes; /* of addresses and of accounting; default 2 MiB */
    uint64_t
        page_bytes; /* of a page, a multiple of the granularity; default 2 MiB; 0: the
                            device has none */
    /*
     * Returns the address that the next alloc or reserve shall return; 0: the device chooses.
     * NULL: it always does. The caller answers for ranges that do not overlap.
     */
    uint64_t (*choose_address)(void *self, enum dry_sim_call call, uint64_t size);
    void *choose_self;
    /*
     * Keep account of addresses, pages and uses, and find what comes too early (below). The
     * default, false, costs nothing. A checked simulation begins empty: nothing is adopted. It
     * refuses what a driver would refuse (a map over what is mapped, a page that is not there)
     * with SYSTEM, beside the finding.
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
 * Let `stream` reach its end: all events recorded on it so far have passed, and so has all that
 * it followed on other streams. The program learns nothing by this; it must ask.
 */
DRY_API void dry_sim_complete_stream(struct dry_sim *sim, uint64_t stream);

/*
 * Let `stream` pass its next `count` events, or all if there are fewer, with all that had to
 * happen before them. The event of dry_sim_stream_waits() counts as one of stream `on`.
 */
DRY_API void dry_sim_advance_stream(struct dry_sim *sim, uint64_t stream, uint64_t count);

/*
 * Note that the program itself made `stream` wait for everything on `on` so far, as by an event
 * recorded on `on` and followed by `stream`. This is no call of the account. MEMORY: nothing
 * was done.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_sim_stream_waits(struct dry_sim *sim,
                                                              uint64_t stream,
                                                              uint64_t on);

/* Make the device larger or smaller; what is taken stays taken. */
DRY_API void dry_sim_set_capacity(struct dry_sim *sim, uint64_t capacity_bytes);

/* Account for memory that was taken before the simulation began. */
DRY_API void dry_sim_adopt(struct dry_sim *sim, uint64_t bytes);

/* Make the n-th call from now on that can fail do so; 0 is the next one, UINT64_MAX none. */
DRY_API void dry_sim_fail_at(struct dry_sim *sim, uint64_t n);

struct dry_sim_account {
    size_t struct_size; /* DRY_INIT sets it */
    uint64_t used_bytes, peak_bytes;
    uint64_t reserved_address_bytes;
    uint64_t time_ns; /* modelled, all calls */
    uint64_t calls[DRY_SIM_CALL_COUNT];
    uint64_t failures; /* calls that were refused, full or told to */
    uint64_t events_live;
    uint64_t pages_live; /* created and not released, mapped or not */
    uint64_t peers;      /* a bit for each device that uses what is mapped from now on */
    uint64_t peer_bytes; /* mapped bytes that were opened for a peer afterwards */
};
DRY_API enum dry_status dry_sim_get_account(const struct dry_sim *sim,
                                            struct dry_sim_account *account);

/*
 * The checker.
 *
 * Work is over when the program can know it. The program knows the order of a stream, streams
 * that follow events, and events and streams that it waited for or found passed. The order of
 * all work follows from these as what happened before what (Lamport, CACM 1978; vector clocks
 * as Fidge and Mattern, 1988).
 *
 * Unmapping and releasing are not ordered with streams: every use must be known to be over.
 * The device's `free` waits for the device itself, as cudaFree does, so all uses are over after
 * it; it does not complete events. Unmapped addresses therefore carry no uses, and a page that
 * comes to lie elsewhere brings none.
 *
 * The program calls, per allocation, dry_sim_own() after it was handed out, dry_sim_use() for
 * every piece of work on it, and dry_sim_disown() before it is given back. Bytes that were
 * handed out twice are the later owner's after the finding. The uses of an allocation count for
 * all its bytes, because an allocator cannot know which bytes work touches.
 *
 * Cost: own, use and disown are O(log n) for n ranges. A use on a stream that used the
 * allocation before is one look-up. Memory grows with what is owned, and with former owners of
 * mapped addresses whose uses are not known to be over.
 */
enum dry_sim_fault {
    DRY_SIM_EARLY_REUSE,        /* used while a use by a former owner may go on */
    DRY_SIM_USE_UNMAPPED,       /* used where no memory lies */
    DRY_SIM_USE_AFTER_FREE,     /* used by an owner that is not, or no longer, there */
    DRY_SIM_USE_BEYOND,         /* used outside what its owner was handed */
    DRY_SIM_OVERLAP,            /* handed out while another owner has it */
    DRY_SIM_EARLY_UNMAP,        /* unmapped while owned, or while a use may go on */
    DRY_SIM_EARLY_FREE,         /* given back to the device while owned */
    DRY_SIM_PAGE_MAPPED_TWICE,  /* a page under two addresses */
    DRY_SIM_PAGE_MAPPED_AT_END, /* a page released while it is mapped */
    DRY_SIM_PAGE_UNKNOWN,       /* a page mapped or released that is not there */
    DRY_SIM_MAP_OVER_MAPPED,    /* memory mapped where memory lies */
    DRY_SIM_MAP_UNRESERVED,     /* memory mapped outside reservations */
    DRY_SIM_UNMAP_UNMAPPED,     /* unmapped where nothing was mapped */
    DRY_SIM_FREE_UNKNOWN,       /* given back, or unreserved, what is not a range */
    DRY_SIM_UNRESERVE_MAPPED,   /* addresses given back under which memory lies */
};
#define DRY_SIM_FAULT_COUNT 15

struct dry_sim_finding {
    size_t struct_size; /* DRY_INIT sets it */
    enum dry_sim_fault fault;
    uint64_t address, size; /* of the call that was wrong; a page's number for pages */
    uint64_t stream;        /* of the use, else of the allocation */
    uint64_t other_stream;  /* where the earlier use is */
    uint64_t owner;         /* who uses, or whose memory it is; 0: nobody */
    uint64_t other_owner;   /* whose use or memory it was before; 0: nobody */
    uint64_t call;  /* ordinal of the call among own, use, disown and the device's */
    char text[192]; /* for people, one line */
};

/*
 * Note that [address, address + size) was handed to the program as allocation `owner` of
 * `stream`. An owner is a number, never 0 and never used again. ARGUMENT: `owner` is 0 or owns
 * something, or `size` is 0. MEMORY: nothing was done. Without options.check this call and the
 * next two do nothing.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_sim_own(struct dry_sim *sim,
                                                     uint64_t address, uint64_t size,
                                                     uint64_t stream, uint64_t owner);

/*
 * Note that work that reads and writes these bytes of `owner` is put on `stream` now. Errors:
 * MEMORY.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_sim_use(struct dry_sim *sim, uint64_t stream,
                                                     uint64_t address, uint64_t size,
                                                     uint64_t owner);

/* Note that the program frees `owner`: later uses are findings. Unknown owners are ignored. */
DRY_API void dry_sim_disown(struct dry_sim *sim, uint64_t owner);

#define DRY_SIM_FINDINGS_KEPT 64

/* How many findings there are; the first DRY_SIM_FINDINGS_KEPT of them are kept. */
DRY_API uint64_t dry_sim_get_finding_count(const struct dry_sim *sim);

/* Tell the finding of this index, from 0. DRY_END: there are not so many, or it is not kept. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_sim_get_finding(
    const struct dry_sim *sim, uint64_t index, struct dry_sim_finding *finding);

/* A fault as text: "early reuse". */
DRY_API const char *dry_sim_fault_name(enum dry_sim_fault fault);

#ifdef __cplusplus
}
#endif

#endif
