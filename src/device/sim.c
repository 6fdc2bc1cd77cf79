/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated device: an account of bytes, addresses, events and driver time.
 *
 * Addresses come from one cursor that only moves upwards; nothing is remembered about a
 * range, so alloc, free, map and unmap are O(1) and take no memory. Events are marks in a
 * stream's order: a stream counts how many were recorded and how many of them it has
 * passed, an event is its number in that count. Streams are interned, so there may be any
 * number of them; slots of events are recycled.
 *
 * Calls that are told to fail answer NO_SPACE where a driver would be out of memory or
 * addresses, and SYSTEM for an event. A refused call takes as long as a granted one.
 */
#include <drystone/sim.h>

#include <stdbool.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/fail.h"
#include "base/intern.h"
#include "base/memory.h"
#include "base/options.h"

/*
 * The first address: above what programs on x86-64 and arm64 map by default near zero,
 * and low enough that a million segments of 1 GiB end far below ADDRESS_END.
 */
#define ADDRESS_BEGIN (UINT64_C(1) << 44)
#define ADDRESS_END (UINT64_C(1) << 63)

/* Modelled time of a call: once, and for every page it touches. */
struct cost {
    uint64_t call_ns, page_ns;
};

/*
 * alloc, free       cudaMalloc about 50 us and cudaFree about 10 us, as published for an
 *                   idle device; near a full one the driver is slower.
 * reserve … unmap   kvcached's benchmarks/bench_vmm on an A100, medians: reserving 8 GB
 *                   of addresses 19 us, cuMemCreate 193 us and cuMemMap 1.45 us a 2 MiB
 *                   page, cuMemSetAccess 36.0 us once a contiguous range, unmapping 25.6 us
 *                   a page. Unreserving was not measured and is taken to cost as much as
 *                   reserving.
 * events, waits     not measured: a record is a short write to the stream's queue, a query
 *                   reads one word, a wait that need not wait costs a few microseconds.
 */
static const struct cost costs[DRY_SIM_CALL_COUNT] = {
    [DRY_SIM_ALLOC] = {.call_ns = 50000},
    [DRY_SIM_FREE] = {.call_ns = 10000},
    [DRY_SIM_RESERVE] = {.call_ns = 19000},
    [DRY_SIM_UNRESERVE] = {.call_ns = 19000},
    [DRY_SIM_MAP] = {.call_ns = 36000, .page_ns = 193000 + 1450},
    [DRY_SIM_UNMAP] = {.page_ns = 25600},
    [DRY_SIM_EVENT_RECORD] = {.call_ns = 1000},
    [DRY_SIM_EVENT_QUERY] = {.call_ns = 500},
    [DRY_SIM_EVENT_WAIT] = {.call_ns = 5000},
    [DRY_SIM_STREAM_WAIT] = {.call_ns = 5000},
};

struct stream {
    uint64_t recorded;  /* events so far */
    uint64_t completed; /* of them, in order */
};

#define NO_SLOT UINT64_MAX

struct event {
    uint64_t ordinal;   /* in its stream, from 1; 0: the slot is free */
    uint64_t next_free; /* of a free slot; NO_SLOT ends the list */
    uint32_t stream;    /* index in streams */
};

struct dry_sim {
    struct dry_sim_options options;
    struct dry_memory memory;
    struct dry_sim_account account;
    uint64_t next_address;
    uint64_t fail_after; /* calls that may fail until one does; UINT64_MAX: never */

    struct dryi_intern stream_ids; /* id of a stream -> index in streams */
    struct stream *streams;
    size_t stream_capacity;
    struct event *events;
    size_t event_count, event_capacity;
    uint64_t first_free;
};

static uint64_t
add_saturating(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t
subtract_saturating(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* `bytes` in whole steps, or false when that is more than 64 bits hold. */
static bool
round_up_checked(uint64_t bytes, uint64_t step, uint64_t *rounded)
{
    uint64_t count = bytes / step + (bytes % step != 0);
    return !__builtin_mul_overflow(count, step, rounded);
}

static void
charge(struct dry_sim *sim, enum dry_sim_call call, uint64_t page_count)
{
    const struct cost *cost = &costs[call];
    uint64_t pages_ns;
    if (__builtin_mul_overflow(cost->page_ns, page_count, &pages_ns))
        pages_ns = UINT64_MAX;
    struct dry_sim_account *account = &sim->account;
    account->calls[call]++;
    account->time_ns = add_saturating(account->time_ns, cost->call_ns);
    account->time_ns = add_saturating(account->time_ns, pages_ns);
}

static bool
is_told_to_fail(struct dry_sim *sim)
{
    if (sim->fail_after == UINT64_MAX)
        return false;
    bool fails = sim->fail_after == 0;
    sim->fail_after = fails ? UINT64_MAX : sim->fail_after - 1;
    return fails;
}

static enum dry_status
refuse(struct dry_sim *sim, enum dry_status status)
{
    sim->account.failures++;
    return status;
}

static bool
take_bytes(struct dry_sim *sim, uint64_t bytes)
{
    struct dry_sim_account *account = &sim->account;
    uint64_t capacity = sim->options.capacity_bytes;
    if (account->used_bytes > capacity || bytes > capacity - account->used_bytes)
        return false;
    account->used_bytes += bytes;
    if (account->used_bytes > account->peak_bytes)
        account->peak_bytes = account->used_bytes;
    return true;
}

/* Adopted memory may have been counted in other portions than it is given back in. */
static void
give_bytes(struct dry_sim *sim, uint64_t bytes)
{
    sim->account.used_bytes = subtract_saturating(sim->account.used_bytes, bytes);
}

/* The caller's address, or the cursor's; `size` is a multiple of the granularity. */
static bool
take_address(struct dry_sim *sim, enum dry_sim_call call, uint64_t asked, uint64_t size,
             uint64_t *address)
{
    const struct dry_sim_options *o = &sim->options;
    uint64_t chosen =
        o->choose_address ? o->choose_address(o->choose_self, call, asked) : 0;
    uint64_t begin = chosen ? chosen : sim->next_address;
    bool fits = begin < ADDRESS_END && size <= ADDRESS_END - begin;
    if (!fits && !chosen)
        return false;
    uint64_t end;
    /* What we choose later lies above what was chosen for us, as far as that is possible.
     */
    if (fits && round_up_checked(begin + size, o->granularity_bytes, &end) &&
        end > sim->next_address)
        sim->next_address = end;
    *address = begin;
    return true;
}

static enum dry_status
sim_alloc(void *self, uint64_t size, uint64_t *address)
{
    struct dry_sim *sim = self;
    charge(sim, DRY_SIM_ALLOC, 0);
    if (size == 0)
        return refuse(sim, DRY_ERR_ARGUMENT);
    uint64_t bytes;
    if (is_told_to_fail(sim) ||
        !round_up_checked(size, sim->options.granularity_bytes, &bytes) ||
        !take_bytes(sim, bytes))
        return refuse(sim, DRY_ERR_NO_SPACE);
    if (!take_address(sim, DRY_SIM_ALLOC, size, bytes, address)) {
        give_bytes(sim, bytes);
        return refuse(sim, DRY_ERR_NO_SPACE);
    }
    return DRY_OK;
}

static void
sim_free(void *self, uint64_t address, uint64_t size)
{
    (void)address;
    struct dry_sim *sim = self;
    charge(sim, DRY_SIM_FREE, 0);
    uint64_t bytes;
    if (round_up_checked(size, sim->options.granularity_bytes, &bytes))
        give_bytes(sim, bytes);
}

static enum dry_status
sim_reserve(void *self, uint64_t size, uint64_t *address)
{
    struct dry_sim *sim = self;
    charge(sim, DRY_SIM_RESERVE, 0);
    if (size == 0)
        return refuse(sim, DRY_ERR_ARGUMENT);
    uint64_t bytes;
    if (is_told_to_fail(sim) ||
        !round_up_checked(size, sim->options.granularity_bytes, &bytes) ||
        !take_address(sim, DRY_SIM_RESERVE, size, bytes, address))
        return refuse(sim, DRY_ERR_NO_SPACE);
    struct dry_sim_account *account = &sim->account;
    account->reserved_address_bytes =
        add_saturating(account->reserved_address_bytes, bytes);
    return DRY_OK;
}

static void
sim_unreserve(void *self, uint64_t address, uint64_t size)
{
    (void)address;
    struct dry_sim *sim = self;
    charge(sim, DRY_SIM_UNRESERVE, 0);
    uint64_t bytes;
    struct dry_sim_account *account = &sim->account;
    if (round_up_checked(size, sim->options.granularity_bytes, &bytes))
        account->reserved_address_bytes =
            subtract_saturating(account->reserved_address_bytes, bytes);
}

/* One create and one map a page, one set-access for the whole range. */
static enum dry_status
sim_map(void *self, uint64_t address, uint64_t size, uint64_t page)
{
    (void)address;
    struct dry_sim *sim = self;
    if (size == 0 || page == 0) {
        charge(sim, DRY_SIM_MAP, 0);
        return refuse(sim, DRY_ERR_ARGUMENT);
    }
    charge(sim, DRY_SIM_MAP, size / page + (size % page != 0));
    uint64_t bytes;
    if (is_told_to_fail(sim) || !round_up_checked(size, page, &bytes) ||
        !take_bytes(sim, bytes))
        return refuse(sim, DRY_ERR_NO_SPACE);
    return DRY_OK;
}

static void
sim_unmap(void *self, uint64_t address, uint64_t size, uint64_t page)
{
    (void)address;
    struct dry_sim *sim = self;
    uint64_t bytes;
    if (page == 0 || !round_up_checked(size, page, &bytes))
        return;
    charge(sim, DRY_SIM_UNMAP, bytes / page);
    give_bytes(sim, bytes);
}

static void
sim_get_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
    const struct dry_sim *sim = self;
    uint64_t capacity = sim->options.capacity_bytes;
    *free_bytes = subtract_saturating(capacity, sim->account.used_bytes);
    *total_bytes = sim->options.total_bytes ? sim->options.total_bytes : capacity;
}

/* The index of a stream seen for the first time too; false: no memory. */
static bool
put_stream(struct dry_sim *sim, uint64_t stream, uint32_t *index)
{
    uint32_t count = sim->stream_ids.count;
    if (!dryi_memory_grow(&sim->memory, &sim->streams, &sim->stream_capacity,
                          (size_t)count + 1, sizeof *sim->streams))
        return false;
    *index = dryi_intern_put(&sim->stream_ids, &stream, sizeof stream);
    if (*index == count)
        sim->streams[count] = (struct stream){0};
    return *index != DRYI_INTERN_NONE;
}

static bool
take_event_slot(struct dry_sim *sim, uint64_t *slot)
{
    if (sim->first_free != NO_SLOT) {
        *slot = sim->first_free;
        sim->first_free = sim->events[*slot].next_free;
        return true;
    }
    if (!dryi_memory_grow(&sim->memory, &sim->events, &sim->event_capacity,
                          sim->event_count + 1, sizeof *sim->events))
        return false;
    *slot = sim->event_count++;
    return true;
}

static enum dry_status
sim_event_record(void *self, uint64_t stream, uint64_t *event)
{
    struct dry_sim *sim = self;
    charge(sim, DRY_SIM_EVENT_RECORD, 0);
    if (is_told_to_fail(sim))
        return refuse(sim, DRY_ERR_SYSTEM);
    uint32_t index;
    uint64_t slot;
    if (!put_stream(sim, stream, &index) || !take_event_slot(sim, &slot))
        return refuse(sim, DRY_ERR_MEMORY);
    sim->events[slot] = (struct event){
        .ordinal = ++sim->streams[index].recorded, .next_free = NO_SLOT, .stream = index};
    sim->account.events_live++;
    *event = slot;
    return DRY_OK;
}

static const struct event *
find_event(const struct dry_sim *sim, uint64_t event)
{
    DRYI_ASSERT(event < sim->event_count);
    DRYI_ASSERT(sim->events[event].ordinal != 0);
    return &sim->events[event];
}

static int
sim_event_query(void *self, uint64_t event)
{
    struct dry_sim *sim = self;
    charge(sim, DRY_SIM_EVENT_QUERY, 0);
    const struct event *e = find_event(sim, event);
    return e->ordinal <= sim->streams[e->stream].completed;
}

/* The program waits as long as it takes, so the stream gets there. */
static void
sim_event_wait(void *self, uint64_t event)
{
    struct dry_sim *sim = self;
    charge(sim, DRY_SIM_EVENT_WAIT, 0);
    const struct event *e = find_event(sim, event);
    struct stream *stream = &sim->streams[e->stream];
    if (stream->completed < e->ordinal)
        stream->completed = e->ordinal;
}

static void
sim_event_destroy(void *self, uint64_t event)
{
    struct dry_sim *sim = self;
    DRYI_ASSERT(event < sim->event_count);
    DRYI_ASSERT(sim->events[event].ordinal != 0);
    sim->events[event] = (struct event){.next_free = sim->first_free};
    sim->first_free = event;
    sim->account.events_live--;
}

static void
sim_stream_wait(void *self, uint64_t stream)
{
    struct dry_sim *sim = self;
    charge(sim, DRY_SIM_STREAM_WAIT, 0);
    dry_sim_complete_stream(sim, stream);
}

static const struct dry_device_ops sim_ops = {
    .alloc = sim_alloc,
    .free = sim_free,
    .reserve = sim_reserve,
    .unreserve = sim_unreserve,
    .map = sim_map,
    .unmap = sim_unmap,
    .get_info = sim_get_info,
    .event_record = sim_event_record,
    .event_query = sim_event_query,
    .event_wait = sim_event_wait,
    .event_destroy = sim_event_destroy,
    .stream_wait = sim_stream_wait,
};

void
dry_sim_options_init(struct dry_sim_options *options)
{
    *options = (struct dry_sim_options){
        .struct_size = sizeof *options,
        .capacity_bytes = DRY_SIM_UNLIMITED,
        .granularity_bytes = 2 * DRYI_MIB,
    };
}

enum dry_status
dry_sim_create(const struct dry_sim_options *options, struct dry_sim **sim,
               struct dry_error *err)
{
    struct dry_sim_options o;
    dry_sim_options_init(&o);
    enum dry_status status = dryi_options_take(&o, sizeof o, options, err);
    if (status != DRY_OK)
        return status;
    if (!dryi_is_power_of_two(o.granularity_bytes) || o.granularity_bytes > ADDRESS_BEGIN)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "granularity_bytes %llu: a power of two up to 2^44 is expected",
                         (unsigned long long)o.granularity_bytes);
    struct dry_memory memory = dryi_memory_or_default(o.memory);
    struct dry_sim *s = dryi_memory_zalloc(&memory, 1, sizeof *s);
    if (!s)
        return dryi_fail_memory(err, "a simulated device");
    s->options = o;
    s->memory = memory;
    s->next_address = ADDRESS_BEGIN;
    s->fail_after = UINT64_MAX;
    s->first_free = NO_SLOT;
    dryi_intern_init(&s->stream_ids, &memory);
    *sim = s;
    return DRY_OK;
}

void
dry_sim_destroy(struct dry_sim *sim)
{
    if (!sim)
        return;
    struct dry_memory memory = sim->memory;
    dryi_intern_finish(&sim->stream_ids);
    dryi_memory_free(&memory, sim->streams, sim->stream_capacity, sizeof *sim->streams);
    dryi_memory_free(&memory, sim->events, sim->event_capacity, sizeof *sim->events);
    dryi_memory_free(&memory, sim, 1, sizeof *sim);
}

struct dry_device
dry_sim_get_device(struct dry_sim *sim)
{
    return (struct dry_device){.ops = &sim_ops, .self = sim};
}

void
dry_sim_complete_stream(struct dry_sim *sim, uint64_t stream)
{
    uint32_t index = dryi_intern_find(&sim->stream_ids, &stream, sizeof stream);
    if (index != DRYI_INTERN_NONE)
        sim->streams[index].completed = sim->streams[index].recorded;
}

void
dry_sim_set_capacity(struct dry_sim *sim, uint64_t capacity_bytes)
{
    sim->options.capacity_bytes = capacity_bytes;
}

void
dry_sim_adopt(struct dry_sim *sim, uint64_t bytes)
{
    struct dry_sim_account *account = &sim->account;
    account->used_bytes = add_saturating(account->used_bytes, bytes);
    if (account->used_bytes > account->peak_bytes)
        account->peak_bytes = account->used_bytes;
}

void
dry_sim_fail_at(struct dry_sim *sim, uint64_t n)
{
    sim->fail_after = n;
}

void
dry_sim_get_account(const struct dry_sim *sim, struct dry_sim_account *account)
{
    *account = sim->account;
}
