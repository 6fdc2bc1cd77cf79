/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Threads on streams of their own, on memory that is there: what each writes into its blocks is
 * there still when they are freed, by itself or by another thread, while the pool cuts and
 * merges for all of them at once. The thread sanitizer looks on: a block that came from another
 * thread without a lock between would be a race of what is written. And where all give the same
 * block back at once, one of them does.
 */
#include "support/cmocka.h"
#include "support/random.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <drystone/host_device.h>
#include <drystone/pool.h>

#define KIB UINT64_C(1024)
#define THREADS 4
#define LIVE_MAX 200
#define STEPS 60000
#define GIFTS 64 /* blocks on their way to another thread */

struct block {
    uint64_t address, size, stamp;
};

struct stage {
    struct dry_pool *pool;
    pthread_mutex_t mutex; /* of the gifts */
    struct block gifts[GIFTS];
    size_t gift_count;
    atomic_size_t failures;
};

struct actor {
    struct stage *stage;
    struct random random;
    uint64_t number, stamps;
    struct block blocks[LIVE_MAX];
    size_t count;
};

static void
expect(struct stage *stage, bool condition)
{
    if (!condition)
        atomic_fetch_add(&stage->failures, 1);
}

/* At its begin, and at its end. */
static uint64_t *
mark_of(const struct block *b, bool is_last)
{
    uint64_t at = is_last ? b->address + (b->size - 8) / 8 * 8 : b->address;
    return (uint64_t *)(uintptr_t)at;
}

/* Sizes that repeat, and every octave from 512 bytes to 512 KiB. */
static uint64_t
draw_size(struct random *r)
{
    static const uint64_t often[] = {512, 3000, 40 * KIB, 100 * KIB, 700 * KIB};
    if (random_below(r, 2))
        return often[random_below(r, 5)];
    uint64_t base = UINT64_C(512) << random_below(r, 10);
    return base + random_below(r, base);
}

static void
take_one(struct actor *a)
{
    struct block b = {.size = draw_size(&a->random),
                      .stamp = a->number << 56 | ++a->stamps};
    enum dry_status status =
        dry_pool_alloc(a->stage->pool, b.size, a->number, &b.address);
    expect(a->stage, status == DRY_OK);
    if (status != DRY_OK)
        return;
    *mark_of(&b, true) = b.stamp;
    *mark_of(&b, false) = b.stamp;
    a->blocks[a->count++] = b;
}

static void
give(struct stage *stage, const struct block *b)
{
    expect(stage, *mark_of(b, false) == b->stamp && *mark_of(b, true) == b->stamp);
    expect(stage, dry_pool_free(stage->pool, b->address) == DRY_OK);
}

/* To another thread, whose gift comes back; nobody waits for one. */
static void
swap_gifts(struct actor *a, struct block *b)
{
    struct stage *stage = a->stage;
    pthread_mutex_lock(&stage->mutex);
    size_t i = random_below(&a->random, GIFTS);
    struct block mine = *b;
    if (i < stage->gift_count) {
        *b = stage->gifts[i];
        stage->gifts[i] = mine;
    } else if (stage->gift_count < GIFTS) {
        *b = (struct block){0};
        stage->gifts[stage->gift_count++] = mine;
    }
    pthread_mutex_unlock(&stage->mutex);
}

static void
give_one(struct actor *a)
{
    size_t i = random_below(&a->random, a->count);
    struct block b = a->blocks[i];
    a->blocks[i] = a->blocks[--a->count];
    if (random_below(&a->random, 8) == 0)
        swap_gifts(a, &b);
    if (b.address)
        give(a->stage, &b);
}

static void *
act(void *self)
{
    struct actor *a = self;
    for (int i = 0; i < STEPS; i++) {
        uint64_t kind = random_below(&a->random, 3000);
        if (kind == 0)
            expect(a->stage, dry_pool_check(a->stage->pool, NULL) == DRY_OK);
        else if (kind == 1)
            expect(a->stage, dry_pool_empty_cache(a->stage->pool) == DRY_OK);
        else if (a->count > 0 && (kind % 2 || a->count == LIVE_MAX))
            give_one(a);
        else
            take_one(a);
    }
    while (a->count > 0)
        give(a->stage, &a->blocks[--a->count]);
    return NULL;
}

/* --- a pool on the host, and its threads -------------------------------------------------- */

static struct dry_host_device *
open_pool(struct dry_pool **pool)
{
    struct dry_host_device *host;
    struct dry_pool_options o;
    assert_int_equal(dry_host_device_create(NULL, &host, NULL), DRY_OK);
    dry_pool_options_init(&o);
    o.device = dry_host_device_get_device(host);
    assert_int_equal(dry_pool_create(&o, pool, NULL), DRY_OK);
    return host;
}

/* Whole, and all was given back. */
static void
close_pool(struct dry_pool *pool, struct dry_host_device *host)
{
    struct dry_error err;
    if (dry_pool_check(pool, &err) != DRY_OK)
        fail_msg("%s", err.text);
    struct dry_stats stats;
    dry_pool_get_stats(pool, &stats);
    assert_int_equal(stats.allocation.all.current, 0);
    assert_int_equal(stats.allocated_bytes.all.current, 0);
    dry_pool_destroy(pool);
    dry_host_device_destroy(host);
}

/* THREADS of them, each with one of `selves`. */
static void
run_all(void *(*act_as)(void *self), void *selves, size_t self_bytes)
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, act_as, (char *)selves + i * self_bytes),
            0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void
what_threads_write_stays_theirs(void **state)
{
    (void)state;
    static struct actor actors[THREADS];
    static struct stage stage;
    struct dry_host_device *host = open_pool(&stage.pool);
    pthread_mutex_init(&stage.mutex, NULL);
    for (unsigned i = 0; i < THREADS; i++) {
        actors[i] = (struct actor){.stage = &stage, .number = i};
        random_init(&actors[i].random, i + 1);
    }
    run_all(act, actors, sizeof *actors);
    while (stage.gift_count > 0)
        give(&stage, &stage.gifts[--stage.gift_count]);
    assert_true(atomic_load(&stage.failures) == 0);
    pthread_mutex_destroy(&stage.mutex);
    close_pool(stage.pool, host);
}

/* --- all of them at once ------------------------------------------------------------------ */

#define EACH 700 /* blocks of each thread */
#define ROUNDS 12
#define STRIDE 1009 /* a prime: neighbours in the list are far apart in the pool */

struct crowd {
    struct dry_pool *pool;
    pthread_barrier_t barrier;
    uint64_t addresses[THREADS * EACH];
    atomic_uint given[THREADS * EACH];
    atomic_size_t failures;
};

struct giver {
    struct crowd *crowd;
    struct random random;
    size_t number;
};

static void
take_some(struct giver *g)
{
    struct crowd *c = g->crowd;
    for (size_t i = g->number * EACH; i < (g->number + 1) * EACH; i++) {
        if (dry_pool_alloc(c->pool, draw_size(&g->random), g->number, &c->addresses[i]) !=
            DRY_OK)
            atomic_fetch_add(&c->failures, 1);
        atomic_store(&c->given[i], 0);
    }
}

/* In one order, so that they meet; the last says which streams use it too, or finds it gone. */
static void
give_all(const struct giver *g)
{
    struct crowd *c = g->crowd;
    for (size_t i = 0; i < THREADS * EACH; i++) {
        size_t at = i * STRIDE % (THREADS * EACH);
        bool records = g->number == THREADS - 1 && i % 16 == 0;
        enum dry_status status =
            records ? dry_pool_record_stream(c->pool, c->addresses[at], 0)
                    : dry_pool_free(c->pool, c->addresses[at]);
        if (status != DRY_OK && status != DRY_ERR_ARGUMENT)
            atomic_fetch_add(&c->failures, 1);
        if (status == DRY_OK && !records)
            atomic_fetch_add(&c->given[at], 1);
    }
}

static void *
take_and_give(void *self)
{
    struct giver *g = self;
    struct crowd *c = g->crowd;
    for (int round = 0; round < ROUNDS; round++) {
        take_some(g);
        pthread_barrier_wait(&c->barrier);
        give_all(g);
        pthread_barrier_wait(&c->barrier);
        for (size_t i = g->number * EACH; i < (g->number + 1) * EACH; i++) {
            if (atomic_load(&c->given[i]) != 1)
                atomic_fetch_add(&c->failures, 1);
        }
    }
    return NULL;
}

static void
of_those_who_give_one_block_one_does(void **state)
{
    (void)state;
    static struct crowd crowd;
    static struct giver givers[THREADS];
    struct dry_host_device *host = open_pool(&crowd.pool);
    pthread_barrier_init(&crowd.barrier, NULL, THREADS);
    for (size_t i = 0; i < THREADS; i++) {
        givers[i] = (struct giver){.crowd = &crowd, .number = i};
        random_init(&givers[i].random, i + 1);
    }
    run_all(take_and_give, givers, sizeof *givers);
    assert_true(atomic_load(&crowd.failures) == 0);
    pthread_barrier_destroy(&crowd.barrier);
    close_pool(crowd.pool, host);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_threads_write_stays_theirs),
        cmocka_unit_test(of_those_who_give_one_block_one_does),
    };
    return cmocka_run_group_tests_name("pool_beside", tests, NULL, NULL);
}
