/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A pool that threads share, step by step: which thread does what comes from a seed, and one
 * acts at a time, so that a naive model knows what must come out. The simulated device proves
 * that no memory is handed on before its last use.
 */
#include "support/cmocka.h"
#include "support/failing_memory.h"
#include "support/random.h"

#include <pthread.h>
#include <stdlib.h>

#include <drystone/pool.h>
#include <drystone/sim.h>

#include "pool/pool_address.h"

#define KIB UINT64_C(1024)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define THREADS 3
#define BLOCKS_MAX 300

/* --- threads that take turns -------------------------------------------------------------- */

struct company;

/* What one of them is to do. */
struct turn {
    void (*act)(struct company *company);
};

struct member {
    struct company *company;
    pthread_t thread;
    pthread_cond_t is_due;
    struct turn turn;
};

struct block {
    uint64_t address, size, stream, owner;
};

struct company {
    pthread_mutex_t mutex;
    pthread_cond_t is_done;
    struct member members[THREADS];
    bool is_over;

    struct dry_sim *sim;
    struct dry_pool *pool;
    struct random random;
    struct block blocks[BLOCKS_MAX];
    size_t block_count;
    uint64_t owners;
    size_t who; /* whose turn it is */
    bool has_history;
    enum dry_status last;

    /* The naive sums, and what they were at most. */
    uint64_t requested, peak_requested, allocs, frees;
    uint64_t most_resting; /* slots of cached blocks, as often as they were counted */
};

static void *
live(void *self)
{
    struct member *m = self;
    struct company *c = m->company;
    pthread_mutex_lock(&c->mutex);
    for (;;) {
        while (!m->turn.act && !c->is_over)
            pthread_cond_wait(&m->is_due, &c->mutex);
        if (!m->turn.act)
            break;
        m->turn.act(c);
        m->turn.act = NULL;
        pthread_cond_signal(&c->is_done);
    }
    pthread_mutex_unlock(&c->mutex);
    return NULL;
}

/* Returns when that is done. */
static void
let(struct company *c, size_t who, void (*act)(struct company *company))
{
    struct member *m = &c->members[who];
    pthread_mutex_lock(&c->mutex);
    c->who = who;
    m->turn.act = act;
    pthread_cond_signal(&m->is_due);
    while (m->turn.act)
        pthread_cond_wait(&c->is_done, &c->mutex);
    pthread_mutex_unlock(&c->mutex);
}

/* On the heap: after a failed test its threads wait for ever. */
static struct company *
begin(uint64_t seed, uint64_t capacity, const struct dry_memory *memory)
{
    struct company *c = calloc(1, sizeof *c);
    assert_non_null(c);
    random_init(&c->random, seed);
    struct dry_sim_options so;
    dry_sim_options_init(&so);
    so.capacity_bytes = capacity;
    so.check = true;
    assert_int_equal(dry_sim_create(&so, &c->sim, NULL), DRY_OK);
    struct dry_pool_options o;
    dry_pool_options_init(&o);
    o.device = dry_sim_get_device(c->sim);
    o.memory = memory;
    c->last = dry_pool_create(&o, &c->pool, NULL);
    pthread_mutex_init(&c->mutex, NULL);
    pthread_cond_init(&c->is_done, NULL);
    for (size_t i = 0; i < THREADS; i++) {
        struct member *m = &c->members[i];
        m->company = c;
        pthread_cond_init(&m->is_due, NULL);
        assert_int_equal(pthread_create(&m->thread, NULL, live, m), 0);
    }
    return c;
}

/* Without memory for events, destroy gives back what streams may still use (pool.h). */
static void
end(struct company *c, bool has_memory)
{
    pthread_mutex_lock(&c->mutex);
    c->is_over = true;
    for (size_t i = 0; i < THREADS; i++)
        pthread_cond_signal(&c->members[i].is_due);
    pthread_mutex_unlock(&c->mutex);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(c->members[i].thread, NULL);
        pthread_cond_destroy(&c->members[i].is_due);
    }
    pthread_cond_destroy(&c->is_done);
    pthread_mutex_destroy(&c->mutex);
    while (c->block_count > 0) {
        const struct block *b = &c->blocks[--c->block_count];
        dry_sim_disown(c->sim, b->owner);
        assert_int_equal(dry_pool_free(c->pool, b->address), DRY_OK);
    }
    dry_pool_destroy(c->pool);
    struct dry_sim_finding finding = DRY_INIT(struct dry_sim_finding);
    if (has_memory && dry_sim_get_finding_count(c->sim) > 0 &&
        dry_sim_get_finding(c->sim, 0, &finding) == DRY_OK)
        fail_msg("%s", finding.text);
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(c->sim, &account);
    assert_true(account.used_bytes == 0 && account.events_live == 0);
    dry_sim_destroy(c->sim);
    free(c);
}

/* --- what they do ------------------------------------------------------------------------- */

/* Its own stream mostly; the sizes of a program that repeats itself. */
static void
take_one(struct company *c)
{
    static const uint64_t sizes[] = {1,         700,     4096,    70 * KIB,
                                     128 * KIB, MIB + 5, 3 * MIB, 12 * MIB};
    uint64_t size = sizes[random_below(&c->random, 8)];
    if (random_below(&c->random, 10) == 0)
        size = 1 + random_below(&c->random, 16 * MIB);
    uint64_t stream = random_below(&c->random, 8) ? c->who : THREADS;
    struct block b = {.size = size, .stream = stream};
    c->last = random_below(&c->random, 30)
                  ? dry_pool_alloc(c->pool, size, stream, &b.address)
                  : dry_pool_alloc_aligned(c->pool, size, 4096, stream, &b.address);
    if (c->last != DRY_OK)
        return;
    for (size_t i = 0; i < c->block_count; i++) {
        const struct block *o = &c->blocks[i];
        if (b.address < o->address + o->size && o->address < b.address + size)
            c->last = DRY_ERR_FORMAT;
    }
    b.owner = ++c->owners;
    if (dry_sim_own(c->sim, b.address, size, stream, b.owner) != DRY_OK ||
        dry_sim_use(c->sim, stream, b.address, size, b.owner) != DRY_OK)
        c->last = DRY_ERR_SYSTEM;
    c->blocks[c->block_count++] = b;
    c->allocs++;
    c->requested += size;
    if (c->requested > c->peak_requested)
        c->peak_requested = c->requested;
}

static void
give_one(struct company *c)
{
    size_t i = random_below(&c->random, c->block_count);
    struct block b = c->blocks[i];
    dry_sim_disown(c->sim, b.owner);
    c->last = dry_pool_free(c->pool, b.address);
    c->blocks[i] = c->blocks[--c->block_count];
    c->frees++;
    c->requested -= b.size;
    if (c->last == DRY_OK && dry_pool_free(c->pool, b.address) != DRY_ERR_ARGUMENT)
        c->last = DRY_ERR_FORMAT; /* twice */
}

static void
record_one(struct company *c)
{
    const struct block *b = &c->blocks[random_below(&c->random, c->block_count)];
    uint64_t stream = random_below(&c->random, THREADS + 1);
    c->last = dry_pool_record_stream(c->pool, b->address, stream);
    if (c->last == DRY_OK && stream != b->stream) /* as a program must */
        c->last = dry_sim_stream_waits(c->sim, stream, b->stream);
    if (c->last == DRY_OK &&
        dry_sim_use(c->sim, stream, b->address, b->size, b->owner) != DRY_OK)
        c->last = DRY_ERR_SYSTEM;
}

static void
use_private_pool(struct company *c)
{
    struct dry_pool_id id = {7, 7};
    enum dry_status first = dry_pool_open_private(c->pool, id, 0);
    if (first == DRY_OK)
        first = dry_pool_begin_private(c->pool, id, NULL);
    if (first == DRY_OK) {
        if (c->block_count < BLOCKS_MAX)
            take_one(c);
        first = c->last;
        if (dry_pool_end_private(c->pool, id) != DRY_OK)
            first = DRY_ERR_FORMAT;
    }
    if (dry_pool_release_private(c->pool, id) != DRY_OK && first == DRY_OK)
        first = DRY_ERR_FORMAT;
    c->last = first;
}

static void
use_capture(struct company *c)
{
    c->last = dry_pool_begin_capture(c->pool, NULL);
    if (c->last != DRY_OK)
        return;
    if (c->block_count > 0)
        give_one(c);
    if (dry_pool_end_capture(c->pool) != DRY_OK)
        c->last = DRY_ERR_FORMAT;
}

static void
do_rare_things(struct company *c)
{
    struct dry_pool_history_options history;
    switch (random_below(&c->random, 6)) {
    case 0:
        c->last = dry_pool_empty_cache(c->pool);
        break;
    case 1:
        c->last = dry_pool_trim(c->pool, 32 * MIB, NULL);
        break;
    case 2:
        dry_pool_history_options_init(&history);
        c->has_history = !c->has_history;
        c->last = dry_pool_record_history(c->pool, c->has_history ? &history : NULL);
        break;
    case 3:
        use_private_pool(c);
        break;
    case 4:
        use_capture(c);
        break;
    default:
        dry_sim_complete_stream(c->sim, random_below(&c->random, THREADS + 1));
    }
}

static void
act(struct company *c)
{
    uint64_t kind = random_below(&c->random, 400);
    c->last = DRY_OK;
    if (kind == 0)
        do_rare_things(c);
    else if (c->block_count > 0 && (kind < 190 || c->block_count == BLOCKS_MAX))
        give_one(c);
    else if (c->block_count > 0 && kind < 195)
        record_one(c);
    else
        take_one(c);
}

static size_t
count_resting(const struct dry_pool *pool)
{
    size_t resting = 0;
    for (uint32_t cache = 1; cache <= pool->caches.count; cache++) {
        const struct dryi_pool_table *table = &pool->caches.all[cache]->table;
        for (size_t i = 0; i < table->slot_count; i++)
            resting += table->slots[i].key != 0 &&
                       !dryi_pool_slot_is_used(pool, &table->slots[i]);
    }
    return resting;
}

static void
check_sums(struct company *c)
{
    struct dry_error err;
    struct dry_stats s;
    if (dry_pool_check(c->pool, &err) != DRY_OK)
        fail_msg("%s", err.text);
    dry_pool_get_stats(c->pool, &s);
    assert_int_equal(s.allocation.all.current, c->block_count);
    assert_int_equal(s.allocation.all.allocated, c->allocs);
    assert_int_equal(s.allocation.all.freed, c->frees);
    assert_true((uint64_t)s.allocated_bytes.all.current >= c->requested);
    assert_true((uint64_t)s.requested_bytes.all.peak >= c->peak_requested);
    assert_true(s.active_bytes.all.peak >= s.allocated_bytes.all.peak);
    assert_true(s.reserved_bytes.all.peak >= s.active_bytes.all.peak);
    size_t resting = count_resting(c->pool);
    if (resting > c->most_resting)
        c->most_resting = resting;
}

/* --- tests -------------------------------------------------------------------------------- */

static void
shared_pool_is_what_a_model_says(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        bool was_shared = false;
        struct company *c = begin(seed, seed % 3 ? 4 * GIB : 400 * MIB, NULL);
        assert_int_equal(c->last, DRY_OK);
        for (size_t i = 0; i < 4000; i++) {
            let(c, random_below(&c->random, THREADS), act);
            if (c->last != DRY_OK && c->last != DRY_ERR_NO_SPACE)
                fail_msg("seed %d, step %zu: %d", (int)seed, i, (int)c->last);
            was_shared |= dryi_pool_caches_are_shared(&c->pool->caches);
            if (i % 97 == 0)
                check_sums(c);
        }
        check_sums(c);
        assert_true(was_shared);
        assert_true(c->most_resting > 5); /* blocks went to caches without the lock */
        end(c, true);
    }
}

/* One thread: the same requests give the same statistics as they come, whoever looks. */
static void
one_thread_never_shares(void **state)
{
    (void)state;
    struct company *c = begin(5, 4 * GIB, NULL);
    for (size_t i = 0; i < 3000; i++) {
        let(c, 0, act);
        assert_false(dryi_pool_caches_are_shared(&c->pool->caches));
        struct dry_stats s;
        dry_pool_get_stats(c->pool, &s);
        assert_true((uint64_t)s.allocated_bytes.all.current >= c->requested);
        if (i % 97 == 0)
            check_sums(c);
    }
    check_sums(c);
    assert_true(c->most_resting > 0); /* the short way */
    end(c, true);
}

static void
take_small(struct company *c)
{
    uint64_t address;
    c->last = dry_pool_alloc(c->pool, 1000, c->who, &address);
    if (c->last == DRY_OK)
        c->last = dry_pool_free(c->pool, address);
}

/* After the end as at the beginning. */
static void
expect_sharing_anew(struct company *c)
{
    for (size_t i = 0; i < 6; i++)
        let(c, i % 2, take_small);
    assert_true(dryi_pool_caches_are_shared(&c->pool->caches));
    assert_int_equal(c->pool->caches.open_count, 2);
}

static void
sharing_ends_when_one_is_left(void **state)
{
    (void)state;
    struct company *c = begin(1, 4 * GIB, NULL);
    let(c, 0, take_small);
    assert_false(dryi_pool_caches_are_shared(&c->pool->caches));
    let(c, 1, take_small);
    assert_true(dryi_pool_caches_are_shared(&c->pool->caches));
    let(c, 0, take_small);
    let(c, 1, take_small);
    assert_int_equal(c->pool->caches.open_count, 2);
    for (int i = 0; i < 40000; i++) { /* what needs the lock, from one of them */
        let(c, 0, take_small);
        assert_int_equal(c->last, DRY_OK);
        struct dry_stats stats;
        dry_pool_get_stats(c->pool, &stats);
    }
    assert_false(dryi_pool_caches_are_shared(&c->pool->caches));
    let(c, 0, take_small);
    assert_int_equal(c->last, DRY_OK);
    assert_int_equal(dry_pool_check(c->pool, NULL), DRY_OK);
    expect_sharing_anew(c);
    end(c, true);
}

#define ALONE_MAX 500

/* Cut and merge one stream's free memory again and again. */
static void
go_on_alone(struct company *c)
{
    uint64_t blocks[ALONE_MAX] = {0};
    c->last = DRY_OK;
    for (size_t i = 0; i < 150000 && c->last == DRY_OK; i++) {
        uint64_t *block = &blocks[random_below(&c->random, ALONE_MAX)];
        uint64_t base = UINT64_C(512) << random_below(&c->random, 12);
        if (*block == 0) {
            c->last = dry_pool_alloc(c->pool, base + random_below(&c->random, base),
                                     c->who, block);
        } else {
            c->last = dry_pool_free(c->pool, *block);
            *block = 0;
        }
    }
    for (size_t i = 0; i < ALONE_MAX && c->last == DRY_OK; i++)
        c->last = dry_pool_free(c->pool, blocks[i]);
}

/* The sharing ends, though other threads need not stop for cuts and merges. */
static void
sharing_ends_when_one_cuts_and_merges(void **state)
{
    (void)state;
    struct company *c = begin(1, 4 * GIB, NULL);
    let(c, 0, take_small);
    let(c, 1, take_small);
    let(c, 0, take_small);
    assert_true(dryi_pool_caches_are_shared(&c->pool->caches));
    let(c, 0, go_on_alone);
    assert_int_equal(c->last, DRY_OK);
    assert_false(dryi_pool_caches_are_shared(&c->pool->caches));
    assert_int_equal(dry_pool_check(c->pool, NULL), DRY_OK);
    expect_sharing_anew(c);
    end(c, true);
}

/* Up to so many bytes, then nothing. */
static void
swell(struct company *c)
{
    static uint64_t blocks[4096];
    size_t count = 0;
    c->last = DRY_OK;
    for (uint64_t all = 0; all < 256 * MIB && c->last == DRY_OK;) {
        uint64_t base = UINT64_C(16384) << random_below(&c->random, 6);
        uint64_t size = base + random_below(&c->random, base);
        c->last = dry_pool_alloc(c->pool, size, c->who, &blocks[count]);
        count += c->last == DRY_OK;
        all += (size + 511) / 512 * 512;
    }
    while (count > 0 && c->last == DRY_OK)
        c->last = dry_pool_free(c->pool, blocks[--count]);
    dry_sim_complete_stream(c->sim, c->who);
}

/* What two of them hold by turns is not held twice. */
static void
turns_need_the_memory_of_one(void **state)
{
    (void)state;
    struct company *c = begin(1, 4 * GIB, NULL);
    bool was_shared = false;
    for (size_t i = 0; i < 60; i++) {
        let(c, i % 2, swell);
        assert_int_equal(c->last, DRY_OK);
        was_shared |= dryi_pool_caches_are_shared(&c->pool->caches);
    }
    struct dry_stats stats;
    dry_pool_get_stats(c->pool, &stats);
    assert_true(was_shared);
    assert_true((uint64_t)stats.allocated_bytes.all.peak < 265 * MIB);
    assert_true((uint64_t)stats.reserved_bytes.all.peak < 300 * MIB);
    end(c, true);
}

static void
every_allocation_may_fail(void **state)
{
    (void)state;
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct company *c = begin(3, 4 * GIB, &memory);
        if (!c->pool) {
            assert_int_equal(c->last, DRY_ERR_MEMORY);
        } else {
            for (size_t i = 0; i < 300; i++) {
                let(c, random_below(&c->random, THREADS), act);
                assert_true(c->last == DRY_OK || c->last == DRY_ERR_MEMORY);
            }
            struct dry_error err;
            if (dry_pool_check(c->pool, &err) != DRY_OK && err.status != DRY_ERR_MEMORY)
                fail_msg("%s", err.text);
        }
        end(c, !fm.failed);
        failing_memory_finish(&fm);
        if (!fm.failed)
            break;
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shared_pool_is_what_a_model_says),
        cmocka_unit_test(one_thread_never_shares),
        cmocka_unit_test(sharing_ends_when_one_is_left),
        cmocka_unit_test(sharing_ends_when_one_cuts_and_merges),
        cmocka_unit_test(turns_need_the_memory_of_one),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("pool_cache", tests, NULL, NULL);
}
