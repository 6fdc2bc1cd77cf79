/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_SIM_STATE_H
#define DRYI_SIM_STATE_H

/*
 * The state of the simulated device, shared by its files.
 *
 *   sim.c         the account of bytes, addresses and driver time
 *   sim_stream.c  events, and streams that follow them
 *   sim_memory.c  the checker's map of addresses: what is reserved, mapped, which page where
 *   sim_check.c   the checker's owners and their uses
 *   sim_clock.c   vector clocks
 *   sim_ranges.c  ranges of addresses in order
 *
 * There are two orders. `passed` counts the events that a stream has passed on the
 * device; the caller of the simulation advances it. `known` is the tick up to which the
 * program knows the work to be done; it advances when the program waits or queries. Work
 * submitted by the program comes after what it knows, so clocks of streams omit that.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/sim.h>

#include "base/intern.h"
#include "base/map.h"
#include "device/sim/sim_clock.h"
#include "device/sim/sim_ranges.h"

/* The stream passes events after number `behind` only when stream `stream` has passed
   `event`. */
struct dryi_sim_follow {
    uint64_t behind, event;
    uint32_t stream;
};

struct dryi_sim_stream {
    uint64_t id;
    uint64_t recorded;               /* number of events recorded */
    uint64_t passed;                 /* number of these passed, in order */
    struct dryi_sim_follow *follows; /* sorted by `behind`; those before index
                                        follow_first are done */
    size_t follow_first, follow_count, follow_capacity;
    uint64_t limit; /* while is_on_way: the event number to reach */
    uint32_t next_on_way;
    bool is_on_way;
    /*
     * For the checker: `tick` advances with every event, and with every wait for the
     * whole stream. Work submitted now has tick + 1, so an event's tick covers all work
     * before it.
     */
    uint64_t tick;
    uint64_t known;              /* the program knows work up to this tick to be done */
    struct dryi_sim_clock clock; /* work of other streams that comes before this stream's
                                    next work */
};

struct dryi_sim_event {
    uint64_t ordinal;   /* number in its stream, from 1; 0: the slot is free */
    uint64_t next_free; /* next free slot; DRYI_SIM_NO_SLOT ends the list */
    uint64_t tick;
    struct dryi_sim_clock clock;
    uint32_t stream; /* index in streams */
};
#define DRYI_SIM_NO_SLOT UINT64_MAX

/* Uses of an allocation on one stream, up to this tick. */
struct dryi_sim_life_use {
    uint64_t tick;
    uint32_t stream;
};

/* A range whose last owner was this former life, used and disowned. */
struct dryi_sim_former {
    uint64_t begin, end;
    uint32_t life;
};

/* An allocation, from own until its last reference is dropped. Every byte of the address
   space belongs to at most one life: its owner's, or else its last owner's. */
struct dryi_sim_life {
    uint64_t owner; /* 0: the slot is free */
    uint64_t begin, end;
    uint64_t stream;
    struct dryi_sim_life_use *uses;
    size_t use_count, use_capacity;
    struct dryi_sim_former *formers; /* lives whose uses must come first; see
                                        sim_check.c */
    size_t former_count, former_capacity;
    uint32_t references; /* ranges and formers, plus one while it is owned */
    uint32_t next_free;
    bool is_owned, is_used;
    bool has_holes; /* a part of it may be unmapped */
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

    struct dryi_sim_ranges owned; /* values are indices of lives */
    struct dryi_map owners;       /* owner -> index of its life, while it owns a range */
    struct dryi_sim_life *lives;
    size_t life_count, life_capacity;
    uint32_t free_life;

    struct dryi_sim_ranges reserved;
    struct dryi_sim_ranges mapped; /* values are enum dryi_sim_source */
    uint64_t mapped_bytes;
    struct dryi_map page_slots;  /* page -> index in pages */
    struct dryi_map page_places; /* address -> index of the page mapped there */
    struct dryi_sim_page *pages;
    size_t page_count, page_capacity;
    uint32_t free_page;
};

/* The call that backed a range; adjacent ranges of one source are joined. */
enum dryi_sim_source { DRYI_SIM_FROM_ALLOC, DRYI_SIM_FROM_MAP, DRYI_SIM_FROM_PAGES };

struct dry_sim {
    struct dry_sim_options options;
    struct dry_memory memory;
    struct dry_sim_account account;
    uint64_t next_address;
    uint64_t pages_made;
    uint64_t fail_after; /* fallible calls before the one that fails; UINT64_MAX: none */

    struct dryi_intern stream_ids; /* id of a stream -> index in streams */
    struct dryi_sim_stream *streams;
    size_t stream_count, stream_capacity;
    struct dryi_sim_event *events;
    size_t event_count, event_capacity;
    uint64_t first_free;

    struct dryi_sim_check *check; /* NULL: the checker is off */
};

/* sim_stream.c: the device's calls, without accounting and planned failures. */
void dryi_sim_streams_finish(struct dry_sim *sim);
/* Get the index of a stream, and add the stream if it is new; false: no memory. */
bool dryi_sim_put_stream(struct dry_sim *sim, uint64_t stream, uint32_t *index);
enum dry_status dryi_sim_record(struct dry_sim *sim, uint64_t stream, uint64_t *event);
bool dryi_sim_query(struct dry_sim *sim, uint64_t event);
void dryi_sim_wait_event(struct dry_sim *sim, uint64_t event);
void dryi_sim_wait_stream(struct dry_sim *sim, uint64_t stream);
void dryi_sim_destroy_event(struct dry_sim *sim, uint64_t event);
enum dry_status dryi_sim_follow(struct dry_sim *sim, uint64_t stream, uint64_t event);
/* Record that the program knows all work on all streams to be done. */
void dryi_sim_know_all(struct dry_sim *sim);
/* Return whether work of this tick on stream `from` comes before work submitted to stream
   `to` now. */
bool dryi_sim_is_before(const struct dry_sim *sim, uint32_t from, uint64_t tick,
                        uint32_t to);

/* sim_check.c: owners and uses. */
enum dry_status dryi_sim_check_create(struct dry_sim *sim, struct dry_error *err);
void dryi_sim_check_destroy(struct dry_sim *sim);
/* Count a finding, and store it with its text. */
void dryi_sim_find(struct dry_sim *sim, struct dry_sim_finding finding);
/* Handle the unmapping of [begin, end): report owned bytes, and uses that the program
   does not know to be done; drop former owners there. */
void dryi_sim_forget(struct dry_sim *sim, uint64_t begin, uint64_t end,
                     enum dry_sim_fault fault);

/* sim_memory.c: the effects of the device's calls on the checker. Calls with a status
   return MEMORY, or SYSTEM if a driver would refuse; they have then changed nothing. */
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
