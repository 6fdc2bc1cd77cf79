/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated device: an account of bytes, addresses and driver time.
 *
 * Addresses come from a cursor that only moves upwards. Without the checker ranges are
 * not recorded, so alloc, free, map and unmap are O(1) and allocate no memory.
 *
 * Calls made to fail return NO_SPACE if a driver would run out of memory or addresses,
 * and SYSTEM for an event. A failed call has the same modelled time as a successful one.
 */
#include "device/sim/sim_state.h"

#include "base/assert.h"
#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"

/* The first address: above what programs on x86-64 and arm64 map by default near zero,
   and low enough that a million segments of 1 GiB end far below ADDRESS_END. */
#define ADDRESS_BEGIN (UINT64_C(1) << 44)
#define ADDRESS_END (UINT64_C(1) << 63)

/* Modelled time: per call, plus per page. */
struct cost {
    uint64_t call_ns, page_ns;
};

/*
 * alloc, free       cudaMalloc about 50 us and cudaFree about 10 us, as published for an
 *                   idle device; near a full one they are slower.
 * reserve … unmap   kvcached's benchmarks/bench_vmm on an A100, medians: reserving 8 GB of
 *                   addresses 19 us, cuMemCreate 193 us and cuMemMap 1.45 us per 2 MiB page,
 *                   cuMemSetAccess 36.0 us per contiguous range, unmapping 25.6 us per page.
 *                   Unreserving was not measured and is assumed equal to reserving.
 * pages             the same figures separately: 193 us to create a page, 1.45 us to map it
 *                   and 36 us per contiguous range, 25.6 us to unmap; releasing was not
 *                   measured and is assumed equal to unmapping.
 * events, waits     not measured: a record is a short write to the stream's queue, a query
 *                   reads one word, a wait for a passed event takes a few microseconds.
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
    [DRY_SIM_CREATE_PAGE] = {.call_ns = 193000},
    [DRY_SIM_RELEASE_PAGE] = {.call_ns = 25600},
    [DRY_SIM_MAP_PAGES] = {.call_ns = 36000, .page_ns = 1450},
    [DRY_SIM_UNMAP_PAGES] = {.page_ns = 25600},
    [DRY_SIM_STREAM_FOLLOW] = {.call_ns = 1000},
    [DRY_SIM_LET_PEER] = {.call_ns = 36000},
};

static uint64_t
subtract_saturating(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
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
    if (sim->check)
        sim->check->calls++;
    account->time_ns = dryi_add_saturating(account->time_ns, cost->call_ns);
    account->time_ns = dryi_add_saturating(account->time_ns, pages_ns);
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

/* Saturate at 0: adopted memory may be freed in other portions than it was counted. */
static void
give_bytes(struct dry_sim *sim, uint64_t bytes)
{
    sim->account.used_bytes = subtract_saturating(sim->account.used_bytes, bytes);
}

/* Take the caller's address, or the cursor's; `size` is a multiple of the granularity. */
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
    /* Move the cursor above addresses that the caller chose, if possible. */
    if (fits && dryi_round_up_checked(begin + size, o->granularity_bytes, &end) &&
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
        !dryi_round_up_checked(size, sim->options.granularity_bytes, &bytes) ||
        !take_bytes(sim, bytes))
        return refuse(sim, DRY_ERR_NO_SPACE);
    uint64_t begin;
    enum dry_status status = DRY_OK;
    if (!take_address(sim, DRY_SIM_ALLOC, size, bytes, &begin))
        status = DRY_ERR_NO_SPACE;
    else if (sim->check)
        status = dryi_sim_memory_alloc(sim, begin, size);
    if (status != DRY_OK) {
        give_bytes(sim, bytes);
        return refuse(sim, status);
    }
    *address = begin;
    return DRY_OK;
}

static void
sim_free(void *self, uint64_t address, uint64_t size)
{
    struct dry_sim *sim = self;
    charge(sim, DRY_SIM_FREE, 0);
    if (sim->check && dryi_sim_memory_free(sim, address, size) != DRY_OK)
        return;
    uint64_t bytes;
    if (dryi_round_up_checked(size, sim->options.granularity_bytes, &bytes))
        give_bytes(sim, bytes);
}

static enum dry_status
sim_reserve(void *self, uint64_t size, uint64_t *address)
{
    struct dry_sim *sim = self;
    charge(sim, DRY_SIM_RESERVE, 0);
    if (size == 0)
        return refuse(sim, DRY_ERR_ARGUMENT);
    uint64_t bytes, begin;
    if (is_told_to_fail(sim) ||
        !dryi_round_up_checked(size, sim->options.granularity_bytes, &bytes) ||
        !take_address(sim, DRY_SIM_RESERVE, size, bytes, &begin))
        return refuse(sim, DRY_ERR_NO_SPACE);
    if (sim->check && dryi_sim_memory_reserve(sim, begin, bytes) != DRY_OK)
        return refuse(sim, DRY_ERR_MEMORY);
    *address = begin;
    struct dry_sim_account *account = &sim->account;
    account->reserved_address_bytes =
        dryi_add_saturating(account->reserved_address_bytes, bytes);
    return DRY_OK;
}

static void
sim_unreserve(void *self, uint64_t address, uint64_t size)
{
    struct dry_sim *sim = self;
    charge(sim, DRY_SIM_UNRESERVE, 0);
    uint64_t bytes;
    if (!dryi_round_up_checked(size, sim->options.granularity_bytes, &bytes))
        return;
    struct dry_sim_account *account = &sim->account;
    if (!sim->check || dryi_sim_memory_unreserve(sim, address, bytes) == DRY_OK)
        account->reserved_address_bytes =
            subtract_saturating(account->reserved_address_bytes, bytes);
}

/* One create and one map per page, and one set-access for the whole range. */
static enum dry_status
sim_map(void *self, uint64_t address, uint64_t size, uint64_t page)
{
    struct dry_sim *sim = self;
    if (size == 0 || page == 0) {
        charge(sim, DRY_SIM_MAP, 0);
        return refuse(sim, DRY_ERR_ARGUMENT);
    }
    charge(sim, DRY_SIM_MAP, size / page + (size % page != 0));
    uint64_t bytes;
    if (is_told_to_fail(sim) || !dryi_round_up_checked(size, page, &bytes) ||
        !take_bytes(sim, bytes))
        return refuse(sim, DRY_ERR_NO_SPACE);
    enum dry_status status =
        sim->check ? dryi_sim_memory_map(sim, address, bytes) : DRY_OK;
    if (status != DRY_OK) {
        give_bytes(sim, bytes);
        return refuse(sim, status);
    }
    return DRY_OK;
}

static void
sim_unmap(void *self, uint64_t address, uint64_t size, uint64_t page)
{
    struct dry_sim *sim = self;
    uint64_t bytes;
    if (page == 0 || !dryi_round_up_checked(size, page, &bytes))
        return;
    charge(sim, DRY_SIM_UNMAP, bytes / page);
    if (!sim->check || dryi_sim_memory_unmap(sim, address, bytes) == DRY_OK)
        give_bytes(sim, bytes);
}

/* A page is only a number. The caller knows where each page is mapped, and so does the
   checker. */
static enum dry_status
sim_create_page(void *self, uint64_t *page)
{
    struct dry_sim *sim = self;
    charge(sim, DRY_SIM_CREATE_PAGE, 0);
    if (sim->options.page_bytes == 0)
        return refuse(sim, DRY_ERR_UNSUPPORTED);
    if (is_told_to_fail(sim) || !take_bytes(sim, sim->options.page_bytes))
        return refuse(sim, DRY_ERR_NO_SPACE);
    if (sim->check && dryi_sim_memory_create_page(sim, sim->pages_made + 1) != DRY_OK) {
        give_bytes(sim, sim->options.page_bytes);
        return refuse(sim, DRY_ERR_MEMORY);
    }
    sim->account.pages_live++;
    *page = ++sim->pages_made;
    return DRY_OK;
}

static void
sim_release_page(void *self, uint64_t page)
{
    struct dry_sim *sim = self;
    charge(sim, DRY_SIM_RELEASE_PAGE, 0);
    if (sim->check && dryi_sim_memory_release_page(sim, page) != DRY_OK)
        return;
    DRYI_ASSERT(sim->account.pages_live > 0);
    sim->account.pages_live--;
    give_bytes(sim, sim->options.page_bytes);
}

/* Return whether a driver would accept the arguments of a page range. */
static bool
is_page_range(const struct dry_sim *sim, uint64_t address, size_t count)
{
    return sim->options.page_bytes != 0 && count != 0 &&
           address % sim->options.granularity_bytes == 0;
}

static enum dry_status
sim_map_pages(void *self, uint64_t address, const uint64_t *pages, size_t count)
{
    struct dry_sim *sim = self;
    charge(sim, DRY_SIM_MAP_PAGES, count);
    if (!is_page_range(sim, address, count))
        return refuse(sim, DRY_ERR_ARGUMENT);
    if (is_told_to_fail(sim))
        return refuse(sim, DRY_ERR_SYSTEM);
    enum dry_status status =
        sim->check ? dryi_sim_memory_map_pages(sim, address, pages, count) : DRY_OK;
    return status == DRY_OK ? DRY_OK : refuse(sim, status);
}

static enum dry_status
sim_unmap_pages(void *self, uint64_t address, size_t count)
{
    struct dry_sim *sim = self;
    charge(sim, DRY_SIM_UNMAP_PAGES, count);
    if (!is_page_range(sim, address, count))
        return refuse(sim, DRY_ERR_ARGUMENT);
    if (is_told_to_fail(sim))
        return refuse(sim, DRY_ERR_SYSTEM);
    enum dry_status status =
        sim->check ? dryi_sim_memory_unmap_pages(sim, address, count) : DRY_OK;
    return status == DRY_OK ? DRY_OK : refuse(sim, status);
}

static void
sim_get_traits(void *self, struct dry_device_traits *traits)
{
    const struct dry_sim *sim = self;
    uint64_t total = sim->options.total_bytes;
    *traits = (struct dry_device_traits){.total_bytes =
                                             total ? total : sim->options.capacity_bytes,
                                         .page_bytes = sim->options.page_bytes};
}

static void
sim_get_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
    const struct dry_sim *sim = self;
    uint64_t capacity = sim->options.capacity_bytes;
    *free_bytes = subtract_saturating(capacity, sim->account.used_bytes);
    *total_bytes = sim->options.total_bytes ? sim->options.total_bytes : capacity;
}

static enum dry_status
sim_event_record(void *self, uint64_t stream, uint64_t *event)
{
    struct dry_sim *sim = self;
    charge(sim, DRY_SIM_EVENT_RECORD, 0);
    if (is_told_to_fail(sim))
        return refuse(sim, DRY_ERR_SYSTEM);
    enum dry_status status = dryi_sim_record(sim, stream, event);
    return status == DRY_OK ? DRY_OK : refuse(sim, status);
}

static bool
sim_event_query(void *self, uint64_t event)
{
    struct dry_sim *sim = self;
    charge(sim, DRY_SIM_EVENT_QUERY, 0);
    return dryi_sim_query(sim, event);
}

static enum dry_status
sim_event_wait(void *self, uint64_t event)
{
    struct dry_sim *sim = self;
    charge(sim, DRY_SIM_EVENT_WAIT, 0);
    dryi_sim_wait_event(sim, event);
    return DRY_OK;
}

static void
sim_event_destroy(void *self, uint64_t event)
{
    dryi_sim_destroy_event(self, event);
}

static enum dry_status
sim_stream_wait(void *self, uint64_t stream)
{
    struct dry_sim *sim = self;
    charge(sim, DRY_SIM_STREAM_WAIT, 0);
    dryi_sim_wait_stream(sim, stream);
    return DRY_OK;
}

static enum dry_status
sim_stream_follow(void *self, uint64_t stream, uint64_t event)
{
    struct dry_sim *sim = self;
    charge(sim, DRY_SIM_STREAM_FOLLOW, 0);
    if (is_told_to_fail(sim))
        return refuse(sim, DRY_ERR_SYSTEM);
    enum dry_status status = dryi_sim_follow(sim, stream, event);
    return status == DRY_OK ? DRY_OK : refuse(sim, status);
}

#define PEERS_MAX 64 /* number of devices; the simulated one is number 0 */

static enum dry_status
sim_add_peer(void *self, int32_t peer)
{
    struct dry_sim *sim = self;
    if (peer <= 0 || peer >= PEERS_MAX)
        return refuse(sim, DRY_ERR_ARGUMENT);
    sim->account.peers |= UINT64_C(1) << peer;
    return DRY_OK;
}

static enum dry_status
sim_let_peer(void *self, uint64_t address, uint64_t size, int32_t peer)
{
    struct dry_sim *sim = self;
    charge(sim, DRY_SIM_LET_PEER, 0);
    if (peer <= 0 || peer >= PEERS_MAX)
        return refuse(sim, DRY_ERR_ARGUMENT);
    if (is_told_to_fail(sim))
        return refuse(sim, DRY_ERR_SYSTEM);
    enum dry_status status =
        sim->check ? dryi_sim_memory_let_peer(sim, address, size) : DRY_OK;
    if (status != DRY_OK)
        return refuse(sim, status);
    sim->account.peer_bytes = dryi_add_saturating(sim->account.peer_bytes, size);
    return DRY_OK;
}

static const struct dry_device_ops sim_ops = {
    .struct_size = sizeof(struct dry_device_ops),
    .get_traits = sim_get_traits,
    .create_page = sim_create_page,
    .release_page = sim_release_page,
    .map_pages = sim_map_pages,
    .unmap_pages = sim_unmap_pages,
    .stream_follow = sim_stream_follow,
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
    .add_peer = sim_add_peer,
    .let_peer = sim_let_peer,
};

void
dry_sim_options_init_sized(struct dry_sim_options *options, size_t struct_size)
{
    const struct dry_sim_options defaults = {
        .capacity_bytes = DRY_SIM_UNLIMITED,
        .granularity_bytes = 2 * DRYI_MIB,
        .page_bytes = 2 * DRYI_MIB,
    };
    dryi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

enum dry_status
dry_sim_create(const struct dry_sim_options *options, struct dry_sim **sim,
               struct dry_error *err)
{
    struct dry_sim_options o;
    dry_sim_options_init(&o);
    enum dry_status status = dryi_sized_take(&o, sizeof o, options, err);
    if (status != DRY_OK)
        return status;
    if (!dryi_is_power_of_two(o.granularity_bytes) || o.granularity_bytes > ADDRESS_BEGIN)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "granularity_bytes %llu: a power of two up to 2^44 is expected",
                         (unsigned long long)o.granularity_bytes);
    if (o.page_bytes % o.granularity_bytes != 0)
        return dryi_fail(
            err, DRY_ERR_ARGUMENT,
            "page_bytes %llu: a multiple of granularity_bytes %llu, or 0, is "
            "expected",
            (unsigned long long)o.page_bytes, (unsigned long long)o.granularity_bytes);
    struct dry_memory memory = dryi_memory_or_default(o.memory);
    struct dry_sim *s = dryi_memory_zalloc(&memory, 1, sizeof *s);
    if (!s)
        return dryi_fail_memory(err, "a simulated device");
    s->options = o;
    s->memory = memory;
    s->next_address = ADDRESS_BEGIN;
    s->fail_after = UINT64_MAX;
    s->first_free = DRYI_SIM_NO_SLOT;
    dryi_intern_init(&s->stream_ids, &memory);
    if (o.check && dryi_sim_check_create(s, err) != DRY_OK) {
        dry_sim_destroy(s);
        return DRY_ERR_MEMORY;
    }
    *sim = s;
    return DRY_OK;
}

void
dry_sim_destroy(struct dry_sim *sim)
{
    if (!sim)
        return;
    struct dry_memory memory = sim->memory;
    dryi_sim_check_destroy(sim);
    dryi_sim_streams_finish(sim);
    dryi_memory_free(&memory, sim, 1, sizeof *sim);
}

struct dry_device
dry_sim_get_device(struct dry_sim *sim)
{
    return (struct dry_device){.ops = &sim_ops, .self = sim};
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
    account->used_bytes = dryi_add_saturating(account->used_bytes, bytes);
    if (account->used_bytes > account->peak_bytes)
        account->peak_bytes = account->used_bytes;
}

void
dry_sim_fail_at(struct dry_sim *sim, uint64_t n)
{
    sim->fail_after = n;
}

enum dry_status
dry_sim_get_account(const struct dry_sim *sim, struct dry_sim_account *account)
{
    return dryi_sized_give(account, &sim->account, sizeof sim->account);
}
