/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Programs on the pinned cache, fit and buddy, against a model that knows only what was
 * handed out and what streams have done: blocks lie whole in one range, aligned, and never
 * over one another; nobody gets memory that a stream may still use, nor is it given back to
 * the pin; the sums are those of the model; invariants hold.
 */
#include "prop/pinned_ops.h"

#include "support/cmocka.h"
#include "support/fake_pin.h"
#include "support/random.h"

#include <stdbool.h>

#include <drystone/pinned.h>

#include "base/bits.h"
#include "host/pinned/pinned.h"

#define BLOCKS_MAX 400
#define STEPS 1200
#define STREAMS 4
#define GRAPH_BASE 100 /* graphs are streams of the model from here on */
#define GRAPHS 2
#define ALL (STREAMS + GRAPHS)

static uint64_t seed_now;

static void
require(bool condition, const char *what)
{
    if (!condition)
        fail_msg("seed %llu: %s", (unsigned long long)seed_now, what);
}
#define REQUIRE(condition) require((condition), #condition)

/* In use, or freed and perhaps still used by streams. */
struct block {
    uint64_t address, requested, bytes;
    bool is_freed;
    bool uses[ALL];
    uint64_t until[ALL]; /* what must be done before anybody may have it */
};

struct program {
    struct fake_pin fake;
    const uint8_t *data; /* decides, while there is any; NULL: the seed does */
    size_t left;
    struct random random;
    struct dry_pinned_options options;
    struct dry_pinned *pinned;
    struct block blocks[BLOCKS_MAX];
    size_t count;
    uint64_t graph_time[GRAPHS]; /* how often it was released */
    bool has_streams;
    uint64_t requested, requested_peak;
};

/* 0 .. limit - 1, out of as many bytes as it takes. */
static uint64_t
draw(struct program *m, uint64_t limit)
{
    uint64_t number = 0;
    if (!m->data)
        return random_below(&m->random, limit);
    for (uint64_t reach = 1; reach < limit && m->left; reach *= 256) {
        number = number * 256 + *m->data++;
        m->left--;
    }
    return number % limit;
}

static bool
one_in(struct program *m, uint64_t n)
{
    return draw(m, n) == 0;
}

static bool
may_be_used(const struct program *m, const struct block *b)
{
    for (size_t s = 0; s < STREAMS; s++)
        if (b->uses[s] && m->fake.done[s] < b->until[s])
            return true;
    for (size_t g = 0; g < GRAPHS; g++)
        if (b->uses[STREAMS + g] && m->graph_time[g] == b->until[STREAMS + g])
            return true;
    return false;
}

/* Nobody may still need [address, address + bytes); what is past of it is forgotten. */
static void
must_be_free(struct program *m, uint64_t address, uint64_t bytes)
{
    for (size_t i = 0; i < m->count;) {
        const struct block *b = &m->blocks[i];
        if (address + bytes <= b->address || b->address + b->bytes <= address) {
            i++;
            continue;
        }
        REQUIRE(b->is_freed);
        REQUIRE(!may_be_used(m, b));
        m->blocks[i] = m->blocks[--m->count];
    }
}

static void
on_give(void *self, const struct dryi_pin_range *range)
{
    must_be_free(self, range->address, range->bytes);
}

/* --- operations ----------------------------------------------------------------------------- */

static uint64_t
choose_bytes(struct program *m)
{
    uint64_t r = draw(m, 100);
    if (r < 40)
        return 1 + draw(m, 64 * DRYI_KIB);
    if (r < 60)
        return DRYI_KIB << draw(m, 11);
    if (r < 95)
        return 1 + draw(m, 3 * DRYI_MIB);
    return 1 + draw(m, 12 * DRYI_MIB);
}

static void
check_size(const struct program *m, uint64_t requested, uint64_t bytes)
{
    bool is_small = requested <= m->options.threshold_bytes;
    uint64_t grain = is_small ? 512 : 4096;
    REQUIRE(bytes >= requested && bytes % grain == 0);
    REQUIRE(bytes == dry_pinned_round_size(m->pinned, requested));
    if (m->options.mode == DRY_PINNED_BUDDY && !is_small &&
        requested <= m->options.block_bytes)
        REQUIRE(dryi_is_power_of_two(bytes) && (bytes / 2 < requested || bytes == grain));
    else
        REQUIRE(bytes < requested + grain + requested / 32);
}

static void
alloc(struct program *m)
{
    if (m->count == BLOCKS_MAX)
        return;
    void *at = NULL;
    uint64_t bytes = choose_bytes(m);
    uint64_t stream = DRY_PINNED_NO_STREAM;
    if (m->has_streams && one_in(m, 4))
        stream = draw(m, STREAMS);
    enum dry_status status = dry_pinned_alloc(m->pinned, bytes, stream, &at);
    if (status == DRY_ERR_NO_SPACE) {
        REQUIRE(!at);
        return;
    }
    REQUIRE(status == DRY_OK);
    uint64_t address = (uint64_t)(uintptr_t)at;
    uint64_t usable = dry_pinned_usable_bytes(m->pinned, at);
    check_size(m, bytes, usable);
    REQUIRE(address % (bytes <= m->options.threshold_bytes ? 512 : 4096) == 0);
    REQUIRE(fake_pin_holds(&m->fake, address, usable));
    must_be_free(m, address, usable);
    struct block *b = &m->blocks[m->count++];
    *b = (struct block){.address = address, .requested = bytes, .bytes = usable};
    if (stream != DRY_PINNED_NO_STREAM)
        b->uses[stream] = true;
    m->requested += bytes;
    if (m->requested > m->requested_peak)
        m->requested_peak = m->requested;
}

static struct block *
choose_used(struct program *m)
{
    for (int i = 0; m->count && i < 20; i++) {
        struct block *b = &m->blocks[draw(m, m->count)];
        if (!b->is_freed)
            return b;
    }
    return NULL;
}

static void
mark_freed(struct program *m, struct block *b)
{
    b->is_freed = true;
    m->requested -= b->requested;
    for (size_t s = 0; s < STREAMS; s++)
        b->until[s] = m->fake.issued[s];
    for (size_t g = 0; g < GRAPHS; g++)
        if (b->uses[STREAMS + g] && m->graph_time[g] != b->until[STREAMS + g])
            b->uses[STREAMS + g] = false; /* it was released meanwhile */
}

static void
free_one(struct program *m)
{
    struct block *b = choose_used(m);
    if (!b)
        return;
    void *at = (void *)(uintptr_t)b->address;
    mark_freed(m, b);
    REQUIRE(dry_pinned_free(m->pinned, at) == DRY_OK);
    REQUIRE(dry_pinned_free(m->pinned, at) == DRY_ERR_ARGUMENT);
}

static void
free_many(struct program *m)
{
    void *at[10];
    size_t count = 0;
    while (count < 10) {
        struct block *b = choose_used(m);
        if (!b)
            break;
        at[count++] = (void *)(uintptr_t)b->address;
        mark_freed(m, b);
    }
    REQUIRE(dry_pinned_free_many(m->pinned, at, count) == DRY_OK);
}

static void
use(struct program *m)
{
    struct block *b = choose_used(m);
    if (!b || !m->has_streams)
        return;
    uint64_t s = draw(m, ALL);
    const void *at = (const void *)(uintptr_t)b->address;
    if (s < STREAMS) {
        m->fake.issued[s]++;
        REQUIRE(dry_pinned_record_stream(m->pinned, at, s) == DRY_OK);
    } else {
        REQUIRE(dry_pinned_hold(m->pinned, at, GRAPH_BASE + s - STREAMS) == DRY_OK);
        b->until[s] = m->graph_time[s - STREAMS];
    }
    b->uses[s] = true;
}

static void
advance(struct program *m)
{
    uint64_t s = draw(m, STREAMS);
    uint64_t left = m->fake.issued[s] - m->fake.done[s];
    m->fake.done[s] += draw(m, left + 1);
}

static void
end_graph(struct program *m)
{
    uint64_t g = draw(m, GRAPHS);
    m->graph_time[g]++;
    REQUIRE(dry_pinned_release(m->pinned, GRAPH_BASE + g) == DRY_OK);
}

static void
synchronise(struct program *m)
{
    uint64_t s = draw(m, STREAMS);
    m->fake.done[s] = m->fake.issued[s];
    REQUIRE(dry_pinned_stream_done(m->pinned, s) == DRY_OK);
}

static void
rare(struct program *m)
{
    struct dry_error err;
    switch (draw(m, 6)) {
    case 0:
        REQUIRE(dry_pinned_clear(m->pinned) == DRY_OK);
        break;
    case 1:
        REQUIRE(dry_pinned_trim(m->pinned, draw(m, 64 * DRYI_MIB)) == DRY_OK);
        break;
    case 2: {
        enum dry_status status = dry_pinned_warm(m->pinned, draw(m, 48 * DRYI_MIB),
                                                 one_in(m, 2) && !m->data, &err);
        REQUIRE(status == DRY_OK || status == DRY_ERR_NO_SPACE);
        break;
    }
    case 3:
        synchronise(m);
        break;
    case 4:
        end_graph(m);
        break;
    default:
        m->fake.refuse_record = m->fake.records + draw(m, 4);
        break;
    }
}

static void
step(struct program *m)
{
    uint64_t r = draw(m, 100);
    if (r < 40)
        alloc(m);
    else if (r < 68)
        free_one(m);
    else if (r < 72)
        free_many(m);
    else if (r < 86)
        use(m);
    else if (r < 96)
        advance(m);
    else
        rare(m);
}

/* --- what must be true ------------------------------------------------------------------------ */

static void
check_all(struct program *m)
{
    struct dry_error err = {.text = ""};
    if (dry_pinned_check(m->pinned, &err) != DRY_OK)
        fail_msg("seed %llu: %s", (unsigned long long)seed_now, err.text);
    struct dry_pinned_stats s = DRY_INIT(struct dry_pinned_stats);
    struct dry_pinned_explanation e = DRY_INIT(struct dry_pinned_explanation);
    dry_pinned_get_stats(m->pinned, &s);
    int64_t used = 0, used_bytes = 0, may_wait = 0;
    for (size_t i = 0; i < m->count; i++) {
        used += !m->blocks[i].is_freed;
        used_bytes += m->blocks[i].is_freed ? 0 : (int64_t)m->blocks[i].bytes;
        may_wait += m->blocks[i].is_freed ? (int64_t)m->blocks[i].bytes : 0;
    }
    REQUIRE(s.active_bytes.current - s.pending_bytes == used_bytes);
    REQUIRE(s.pending_bytes <= may_wait && s.active_requests.current >= used);
    REQUIRE(s.active_bytes.peak >= s.active_bytes.current);
    REQUIRE(s.requested_bytes.allocated - s.requested_bytes.freed ==
            s.requested_bytes.current);
    if (!m->has_streams) {
        REQUIRE(s.active_requests.current == used);
        REQUIRE((uint64_t)s.requested_bytes.current == m->requested);
        REQUIRE((uint64_t)s.requested_bytes.peak == m->requested_peak);
    }
    if (m->options.budget_bytes)
        REQUIRE(s.allocated_bytes.peak <= (int64_t)m->options.budget_bytes);
    REQUIRE(dry_pinned_explain(m->pinned, DRYI_MIB, &e) == DRY_OK);
    uint64_t sum = e.requested_bytes + e.rounding_bytes + e.thread_cache_bytes;
    REQUIRE(e.pinned_bytes == sum + e.free_bytes && e.idle_bytes <= e.pinned_bytes);
    REQUIRE(e.pending_bytes <= e.requested_bytes + e.rounding_bytes);
    REQUIRE(e.largest_free_bytes <= e.free_bytes);
    REQUIRE(!e.is_hit || e.would_fit);
}

static void
choose_options(struct program *m, enum dry_pinned_mode mode)
{
    struct dry_pinned_options *o = &m->options;
    dry_pinned_options_init(o);
    o->mode = mode;
    o->arena_bytes = one_in(m, 4) ? 0 : (2 + draw(m, 7)) * DRYI_MIB;
    o->threshold_bytes = one_in(m, 3) ? 0 : DRYI_KIB << draw(m, 11);
    o->thread_caches = !one_in(m, 3);
    o->in_background = !m->data && one_in(m, 3); /* bytes say the same each time */
    o->warm_bytes = one_in(m, 3) ? draw(m, 20 * DRYI_MIB) : 0;
    o->event_batch = one_in(m, 2) ? 1 : 1 + (uint32_t)draw(m, 20);
    o->block_bytes = (2 * DRYI_MIB) << draw(m, 3);
    o->block_count = (uint32_t)draw(m, 3);
    o->budget_bytes = one_in(m, 3) ? (64 + draw(m, 64)) * DRYI_MIB : 0;
    if (one_in(m, 4))
        o->cached_max_bytes = draw(m, 32 * DRYI_MIB);
    if (one_in(m, 4))
        o->keep_max_bytes = draw(m, 8 * DRYI_MIB);
}

/* Everything back: what waits is over, and clear leaves nothing. */
static void
finish(struct program *m)
{
    struct dry_pinned_stats s = DRY_INIT(struct dry_pinned_stats);
    for (size_t i = 0; i < m->count;) {
        if (m->blocks[i].is_freed) {
            i++;
            continue;
        }
        void *at = (void *)(uintptr_t)m->blocks[i].address;
        mark_freed(m, &m->blocks[i]);
        REQUIRE(dry_pinned_free(m->pinned, at) == DRY_OK);
        i = 0; /* blocks whose range went with it are forgotten */
    }
    if (one_in(m, 4)) { /* or the end comes while streams work */
        m->fake.on_give = NULL;
        return;
    }
    for (size_t i = 0; i < STREAMS; i++)
        m->fake.done[i] = m->fake.issued[i];
    for (size_t g = 0; g < GRAPHS; g++) {
        m->graph_time[g]++;
        REQUIRE(dry_pinned_release(m->pinned, GRAPH_BASE + g) == DRY_OK);
    }
    m->fake.refuse_record = UINT64_MAX;
    REQUIRE(dry_pinned_clear(m->pinned) == DRY_OK);
    dry_pinned_get_stats(m->pinned, &s);
    REQUIRE(s.active_requests.current == 0 && s.active_bytes.current == 0);
    REQUIRE(s.requested_bytes.current == 0 && s.pending_bytes == 0);
    REQUIRE(s.allocated_bytes.current == 0 && m->fake.range_count == 0);
    check_all(m);
}

static void
run(struct program *m, enum dry_pinned_mode mode)
{
    random_init(&m->random, seed_now);
    fake_pin_init(&m->fake, seed_now);
    choose_options(m, mode);
    m->has_streams = !one_in(m, 3);
    m->fake.left_bytes = (48 + draw(m, 100)) * DRYI_MIB;
    m->fake.on_give = on_give;
    m->fake.on_give_self = m;
    if (dryi_pinned_create(&m->options, &m->fake.pin, &m->pinned, NULL) != DRY_OK) {
        fake_pin_finish(&m->fake); /* no room to warm what was ordered */
        return;
    }
    for (int i = 1; i <= STEPS && (!m->data || m->left); i++) {
        step(m);
        if (i % 25 == 0)
            check_all(m);
    }
    finish(m);
    dry_pinned_destroy(m->pinned);
    fake_pin_finish(&m->fake);
}

void
pinned_ops_run_seed(uint64_t seed, enum dry_pinned_mode mode)
{
    static struct program m;
    m = (struct program){0};
    seed_now = seed;
    run(&m, mode);
}

void
pinned_ops_run_bytes(const uint8_t *data, size_t size)
{
    static struct program m;
    if (size == 0)
        return;
    m = (struct program){.data = data + 1, .left = size - 1};
    seed_now = 0;
    run(&m, data[0] % 2 ? DRY_PINNED_BUDDY : DRY_PINNED_FIT);
}
