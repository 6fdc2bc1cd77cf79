/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_SIM_H
#define DRY_SIM_H

/*
 * A simulated device: what a GPU's driver would have answered, and what it would have cost.
 *
 * It holds no memory, only the account: capacity, ranges, mapped pages, events that
 * complete when told, and the microseconds every call would have taken. Any call can be
 * made to fail. Addresses are handed out upwards and never again, so that a run depends
 * on nothing but its requests; a caller who knows the real ones can supply them.
 *
 * Ownership  dry_sim_create() / dry_sim_destroy().
 * Errors     As <drystone/device.h>.
 * Threads    One at a time.
 * Units      Bytes; modelled time in nanoseconds.
 */

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
};
#define DRY_SIM_CALL_COUNT 10

#define DRY_SIM_UNLIMITED UINT64_MAX

struct dry_sim_options {
    size_t struct_size; /* set by dry_sim_options_init() */
    const struct dry_memory *memory;
    uint64_t capacity_bytes; /* default DRY_SIM_UNLIMITED */
    uint64_t
        total_bytes; /* what get_info reports as the device's size; default capacity */
    uint64_t granularity_bytes; /* of addresses and of accounting; default 2 MiB */
    /*
     * The address the next alloc or reserve shall return, or 0 to choose; NULL always
     * chooses. The caller answers for ranges that do not overlap.
     */
    uint64_t (*choose_address)(void *self, enum dry_sim_call call, uint64_t size);
    void *choose_self;
};

DRY_API void dry_sim_options_init(struct dry_sim_options *options);
DRY_API DRY_CHECK_RESULT enum dry_status dry_sim_create(
    const struct dry_sim_options *options, struct dry_sim **sim, struct dry_error *err);
DRY_API void dry_sim_destroy(struct dry_sim *sim);

DRY_API struct dry_device dry_sim_get_device(struct dry_sim *sim);

/* Events recorded on this stream so far are done. */
DRY_API void dry_sim_complete_stream(struct dry_sim *sim, uint64_t stream);

/* The device grows or shrinks; what is taken stays taken. */
DRY_API void dry_sim_set_capacity(struct dry_sim *sim, uint64_t capacity_bytes);

/* Account for memory that was taken before the simulation began. */
DRY_API void dry_sim_adopt(struct dry_sim *sim, uint64_t bytes);

/* The n-th call from now (0 is the next) that can fail does; UINT64_MAX: none. */
DRY_API void dry_sim_fail_at(struct dry_sim *sim, uint64_t n);

struct dry_sim_account {
    uint64_t used_bytes, peak_bytes;
    uint64_t reserved_address_bytes;
    uint64_t time_ns; /* modelled, all calls */
    uint64_t calls[DRY_SIM_CALL_COUNT];
    uint64_t failures; /* calls that were refused, full or told to */
    uint64_t events_live;
};
DRY_API void dry_sim_get_account(const struct dry_sim *sim,
                                 struct dry_sim_account *account);

#ifdef __cplusplus
}
#endif

#endif
