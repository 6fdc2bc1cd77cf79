/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_SIM_STATE_H
#define DRYI_SIM_STATE_H

/*
 * The simulated device from inside.
 *
 *   sim.c         the account of bytes, addresses and driver time
 *   sim_stream.c  events, and streams that follow them
 *   sim_memory.c  the checker's map of addresses: what is reserved, mapped, which page where
 *   sim_check.c   the checker's owners and their uses
 *   sim_clock.c   vector clocks
 *   sim_ranges.c  ranges of addresses in order
 *
 * Two orders are kept apart. The events a stream has passed (`passed`) are what the device
 * did; they grow when it is told so. The ticks that the program knows to be over (`known`)
 * grow when the program waits or asks. Everything the program puts on a stream comes after
 * what it knows, so clocks of streams need not hold that.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/sim.h>

#include "base/intern.h"
#include "base/map.h"
#include "device/sim/sim_clock.h"
#include "device/sim/sim_ranges.h"

/* Events behind `behind` are passed only when stream `stream` has passed `event`. */
struct dryi_sim_follow {
    uint64_t behind, event;
    uint32_t stream;
};

struct dryi_sim_stream {
    uint64_t id;
    uint64_t recorded; /* events so far */
    uint64_t passed;   /* of them, in order */
    struct dryi_sim_follow
        *follows; /* by `behind`; those before `follow_first` are over */
    size_t follow_first, follow_count, follow_capacity;
    uint64_t limit; /* while in the list of streams on their way: where to */
    uint32_t next_on_way;
    bool is_on_way;
    /*
     * The checker's: `tick` moves with every event, and with every wait for the whole stream.
     * Work put on the stream now is of tick + 1, so an event's tick covers what came before it.
     */
    uint64_t tick;
    uint64_t known;              /* up to this tick the program knows work to be over */
    struct dryi_sim_clock clock; /* what came before the stream's next work */
};

struct dryi_sim_event {
    uint64_t ordinal;   /* in its stream, from 1; 0: the slot is free */
    uint64_t next_free; /* of a free slot; DRYI_SIM_NO_SLOT ends the list */
    uint64_t tick;
    struct dryi_sim_clock clock;
    uint32_t stream; /* index in streams */
};
#define DRYI_SIM_NO_SLOT UINT64_MAX

/* Uses of an allocation on one stream: up to this tick. */
struct dryi_sim_life_use {
    uint64_t tick;
    uint32_t stream;
};

/* Bytes that a former allocation, used and disowned, had last. */
struct dryi_sim_former {
    uint64_t begin, end;
    uint32_t life;
};

/*
 * An allocation, from own until nothing refers to it. Every byte of the address space belongs
 * to at most one life: that of its owner, or the last one that had it.
 */
struct dryi_sim_life {
    uint64_t owner; /* 0: the slot is free */
    uint64_t begin, end;
    uint64_t stream;
    struct dryi_sim_life_use *uses;
    size_t use_count, use_capacity;
    struct dryi_sim_former *formers; /* whose uses must be over first; see sim_check.c */
    size_t former_count, former_capacity;
    uint32_t references; /* of ranges and formers, and one while it is owned */
    uint32_t next_free;
    bool is_owned, is_used;
    bool has_holes; /* a part may be unmapped */
};
#define DRYI_SIM_NO_LIFE UINT32_MAX

struct dryi_sim_page {
    uint64_t page; /* 0: the slot is free */
    uint32_t next_free;
    bool is_mapped;
};
#define DRYI_SIM_NO_PAGE UINT32_MAX

struct dryi_sim_check {
    uint64_t calls;
    uint64_t finding_count;
    struct dry_sim_finding findings[DRY_SIM_FINDINGS_KEPT];

    struct dryi_sim_ranges owned; /* values: lives */
    struct dryi_map owners;       /* owner -> life, while it owns */
    struct dryi_sim_life *lives;
    size_t life_count, life_capacity;
    uint32_t free_life;

    struct dryi_sim_ranges reserved;
    struct dryi_sim_ranges mapped; /* values: enum dryi_sim_source */
    uint64_t mapped_bytes;
    struct dryi_map page_slots;  /* page -> slot */
    struct dryi_map page_places; /* address -> slot of the page mapped there */
    struct dryi_sim_page *pages;
    size_t page_count, page_capacity;
    uint32_t free_page;
};

/* How memory came to its addresses; what came in pieces may be joined. */
enum dryi_sim_source { DRYI_SIM_FROM_ALLOC, DRYI_SIM_FROM_MAP, DRYI_SIM_FROM_PAGES };

struct dry_sim {
    struct dry_sim_options options;
    struct dry_memory memory;
    struct dry_sim_account account;
    uint64_t next_address;
    uint64_t pages_made;
    uint64_t fail_after; /* calls that may fail until one does; UINT64_MAX: never */

    struct dryi_intern stream_ids; /* id of a stream -> index in streams */
    struct dryi_sim_stream *streams;
    size_t stream_count, stream_capacity;
    struct dryi_sim_event *events;
    size_t event_count, event_capacity;
    uint64_t first_free;

    struct dryi_sim_check *check; /* NULL: off */
};

/* sim_stream.c: the device's calls without account and planned failures. */
void dryi_sim_streams_finish(struct dry_sim *sim);
/* The index of a stream seen for the first time too; false: no memory. */
bool dryi_sim_put_stream(struct dry_sim *sim, uint64_t stream, uint32_t *index);
enum dry_status dryi_sim_record(struct dry_sim *sim, uint64_t stream, uint64_t *event);
bool dryi_sim_query(struct dry_sim *sim, uint64_t event);
void dryi_sim_wait_event(struct dry_sim *sim, uint64_t event);
void dryi_sim_wait_stream(struct dry_sim *sim, uint64_t stream);
void dryi_sim_destroy_event(struct dry_sim *sim, uint64_t event);
enum dry_status dryi_sim_follow(struct dry_sim *sim, uint64_t stream, uint64_t event);
/* The program knows all work on all streams to be over. */
void dryi_sim_know_all(struct dry_sim *sim);
/* Does work of this tick on stream `from` come before work put on stream `to` now? */
bool dryi_sim_is_before(const struct dry_sim *sim, uint32_t from, uint64_t tick,
                        uint32_t to);

/* sim_check.c */
enum dry_status dryi_sim_check_create(struct dry_sim *sim, struct dry_error *err);
void dryi_sim_check_destroy(struct dry_sim *sim);
/* Keep a finding, with its text. */
void dryi_sim_find(struct dry_sim *sim, struct dry_sim_finding finding);
/*
 * The memory under [begin, end) goes away: findings for what is owned there and for uses that
 * the program does not know to be over; former owners are forgotten there.
 */
void dryi_sim_forget(struct dry_sim *sim, uint64_t begin, uint64_t end,
                     enum dry_sim_fault fault);

/*
 * sim_memory.c: what the device's calls mean for the checker. Calls with a status return
 * MEMORY, or SYSTEM if a driver would refuse; nothing was done then.
 */
void dryi_sim_memory_finish(struct dryi_sim_check *check);
enum dry_status dryi_sim_memory_alloc(struct dry_sim *sim, uint64_t address,
                                      uint64_t size);
enum dry_status dryi_sim_memory_free(struct dry_sim *sim, uint64_t address,
                                     uint64_t size);
enum dry_status dryi_sim_memory_reserve(struct dry_sim *sim, uint64_t address,
                                        uint64_t size);
enum dry_status dryi_sim_memory_unreserve(struct dry_sim *sim, uint64_t address,
                                          uint64_t size);
enum dry_status dryi_sim_memory_map(struct dry_sim *sim, uint64_t address, uint64_t size);
enum dry_status dryi_sim_memory_unmap(struct dry_sim *sim, uint64_t address,
                                      uint64_t size);
enum dry_status dryi_sim_memory_create_page(struct dry_sim *sim, uint64_t page);
enum dry_status dryi_sim_memory_release_page(struct dry_sim *sim, uint64_t page);
enum dry_status dryi_sim_memory_map_pages(struct dry_sim *sim, uint64_t address,
                                          const uint64_t *pages, size_t count);
enum dry_status dryi_sim_memory_unmap_pages(struct dry_sim *sim, uint64_t address,
                                            size_t count);
enum dry_status dryi_sim_memory_let_peer(struct dry_sim *sim, uint64_t address,
                                         uint64_t size);

#endif
