/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place/paged, its stream caches used by threads at once, each with the locks that place_cache.h
 * asks for and no other. Blocks that they cut and merge with the cache alone, among blocks of the
 * others, never overlap, and leave every invariant whole. The thread sanitizer says whether a lock
 * was missing.
 */
#include "support/cmocka.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <drystone/sim.h>

#include "place/paged/paged.h"
#include "support/random.h"

#define THREADS 3
#define PIECES_MAX 400
#define USED_MAX 60
#define STEPS 30000

struct piece {
    dryi_block block;
    uint64_t address, size;
    bool is_used, is_registered;
};

struct stage;

/* A thread, its stream, and its cache. */
struct worker {
    struct stage *stage;
    pthread_t thread;
    pthread_mutex_t lock; /* the cache's */
    struct dryi_cache *cache;
    struct random random;
    unsigned number;
    struct piece pieces[PIECES_MAX]; /* guarded by the cache's lock */
    size_t count, used;
    size_t beside, with_place, alone; /* how often it went so */
};

struct stage {
    struct dry_sim *sim;
    struct dryi_place place;
    pthread_mutex_t lock; /* the place's */
    struct worker workers[THREADS];
    struct dryi_cache *caches[THREADS];
    atomic_size_t failures; /* cmocka is for the main thread */
};

static void
expect(struct stage *stage, bool condition)
{
    if (!condition)
        atomic_fetch_add(&stage->failures, 1);
}

static size_t
find_piece(const struct worker *w, uint64_t address)
{
    size_t i = 0;
    while (i < w->count && w->pieces[i].address != address)
        i++;
    return i;
}

static void
forget(struct worker *w, size_t i)
{
    w->pieces[i] = w->pieces[--w->count];
}

static void
lose(void *self, uint64_t stream, uint64_t address)
{
    struct stage *stage = self;
    struct worker *w = &stage->workers[stream];
    size_t i = find_piece(w, address);
    expect(stage, i < w->count && !w->pieces[i].is_used);
    if (i < w->count)
        forget(w, i);
}

/* Lock the place and every cache. */
static void
lock_all(struct stage *stage)
{
    pthread_mutex_lock(&stage->lock);
    for (int i = 0; i < THREADS; i++)
        pthread_mutex_lock(&stage->workers[i].lock);
    (void)stage->place.caches->balance(stage->place.self, stage->caches, THREADS);
}

static void
unlock_all(struct stage *stage)
{
    for (int i = THREADS; i-- > 0;)
        pthread_mutex_unlock(&stage->workers[i].lock);
    pthread_mutex_unlock(&stage->lock);
}

static void
add(struct worker *w, struct piece piece)
{
    piece.address = w->stage->place.ops->get_address(w->stage->place.self, piece.block);
    piece.is_used = true;
    size_t i = find_piece(w, piece.address); /* it may have lain in the cache */
    expect(w->stage, i < PIECES_MAX && (i == w->count || !w->pieces[i].is_used));
    w->used++;
    if (i < PIECES_MAX)
        w->pieces[i] = piece;
    w->count += i == w->count;
}

/* Take a block at the cache: one that lies there, or a cut. */
static bool
take(struct worker *w, uint64_t size, bool has_place)
{
    uint64_t address = has_place ? 0 : w->stage->place.caches->take(w->cache, size);
    size_t i = address ? find_piece(w, address) : w->count;
    expect(w->stage, !address || (i < w->count && !w->pieces[i].is_used));
    if (i < w->count) {
        w->pieces[i].is_used = true;
        w->pieces[i].size = size;
        w->used++;
        return true;
    }
    struct piece piece = {.size = size, .is_registered = true};
    if (!w->stage->place.caches->cut(w->cache, size, has_place, &piece.block))
        return false;
    add(w, piece);
    return true;
}

static bool
give(struct worker *w, uint64_t address, bool has_place)
{
    size_t i = find_piece(w, address);
    struct piece *p = &w->pieces[i];
    if (!p->is_registered)
        return false;
    if (!has_place && random_below(&w->random, 3) > 0 &&
        w->stage->place.caches->put(w->cache, p->block)) {
        p->is_used = false;
        w->used--;
        return true;
    }
    if (!w->stage->place.caches->merge(w->cache, p->block, has_place))
        return false;
    forget(w, i);
    w->used--;
    return true;
}

static void
take_alone(struct worker *w, uint64_t size)
{
    const struct dryi_place_ops *ops = w->stage->place.ops;
    struct piece piece = {.size = size};
    lock_all(w->stage);
    enum dry_status status =
        ops->alloc(w->stage->place.self, size, w->number, &piece.block);
    expect(w->stage, status == DRY_OK);
    if (status == DRY_OK) {
        piece.is_registered =
            w->stage->place.caches->register_address(w->cache, piece.block);
        add(w, piece);
    }
    unlock_all(w->stage);
    w->alone++;
}

static void
give_alone(struct worker *w, uint64_t address)
{
    const struct dryi_place_ops *ops = w->stage->place.ops;
    lock_all(w->stage);
    size_t i = find_piece(w, address);
    struct piece *p = &w->pieces[i];
    expect(w->stage, ops->free(w->stage->place.self, p->block) == DRY_OK);
    w->used--;
    if (p->is_registered && w->stage->place.caches->holds(w->stage->place.self, p->block))
        p->is_used = false;
    else
        forget(w, i);
    unlock_all(w->stage);
    w->alone++;
}

/* Take this size, or give back the block at the address, with the locks that has_place says. */
static bool
step(struct worker *w, uint64_t size, uint64_t address, bool has_place)
{
    if (has_place)
        pthread_mutex_lock(&w->stage->lock);
    pthread_mutex_lock(&w->lock);
    bool is_done = size > 0 ? take(w, size, has_place) : give(w, address, has_place);
    pthread_mutex_unlock(&w->lock);
    if (has_place)
        pthread_mutex_unlock(&w->stage->lock);
    *(has_place ? &w->with_place : &w->beside) += is_done;
    return is_done;
}

static uint64_t
any_used(struct worker *w)
{
    pthread_mutex_lock(&w->lock); /* others lose cached blocks */
    size_t i = random_below(&w->random, w->count);
    while (!w->pieces[i].is_used)
        i = i + 1 == w->count ? 0 : i + 1;
    uint64_t address = w->pieces[i].address;
    pthread_mutex_unlock(&w->lock);
    return address;
}

static void
give_one(struct worker *w)
{
    uint64_t address = any_used(w);
    if (!step(w, 0, address, false) && !step(w, 0, address, true))
        give_alone(w, address);
}

static void
take_one(struct worker *w)
{
    uint64_t most = random_below(&w->random, 3) ? 64 << 10 : 1 << 20;
    uint64_t size = 1 + random_below(&w->random, most);
    if (random_below(&w->random, 2000) == 0 ||
        (!step(w, size, 0, false) && !step(w, size, 0, true)))
        take_alone(w, size);
}

static void *
work(void *self)
{
    struct worker *w = self;
    for (int i = 0; i < STEPS; i++) {
        uint64_t below = i / 500 % 2 ? 60 : 40;
        if (w->used > 0 && (w->used == USED_MAX || random_below(&w->random, 100) < below))
            give_one(w);
        else
            take_one(w);
    }
    return NULL;
}

static void
begin(struct stage *s)
{
    memset(s, 0, sizeof *s);
    struct dry_sim_options so;
    dry_sim_options_init(&so);
    assert_int_equal(dry_sim_create(&so, &s->sim, NULL), DRY_OK);
    struct dryi_paged_options options = {.device = dry_sim_get_device(s->sim)};
    dryi_paged_conf_init(&options.conf);
    assert_int_equal(dryi_paged_create(&options, &s->place, NULL), DRY_OK);
    pthread_mutex_init(&s->lock, NULL);
    s->place.caches->watch(s->place.self, (struct dryi_cache_watcher){lose, s});
    for (unsigned i = 0; i < THREADS; i++) {
        struct worker *w = &s->workers[i];
        w->stage = s;
        w->number = i;
        random_init(&w->random, i + 1);
        pthread_mutex_init(&w->lock, NULL);
        w->cache = s->caches[i] = w->stage->place.caches->ask(s->place.self, i);
        assert_non_null(w->cache);
    }
    s->place.caches->share(s->place.self, true);
}

/* What is used overlaps nothing else that is, and the place knows of it. */
static void
check(struct stage *s)
{
    struct dry_error err;
    struct dry_stats stats;
    size_t used = 0;
    lock_all(s);
    if (s->place.ops->check(s->place.self, &err) != DRY_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < (size_t)THREADS * PIECES_MAX; i++) {
        const struct worker *w = &s->workers[i / PIECES_MAX];
        const struct piece *p = &w->pieces[i % PIECES_MAX];
        if (i % PIECES_MAX >= w->count || !p->is_used)
            continue;
        used++;
        for (size_t k = 0; k < (size_t)THREADS * PIECES_MAX; k++) {
            const struct worker *other = &s->workers[k / PIECES_MAX];
            const struct piece *o = &other->pieces[k % PIECES_MAX];
            assert_true(k == i || k % PIECES_MAX >= other->count || !o->is_used ||
                        p->address + p->size <= o->address ||
                        o->address + o->size <= p->address);
        }
    }
    s->place.ops->get_stats(s->place.self, &stats);
    assert_int_equal(stats.allocation.all.current, used);
    unlock_all(s);
}

static void
threads_at_their_caches_do_not_meet(void **state)
{
    (void)state;
    static struct stage s;
    begin(&s);
    for (int i = 0; i < THREADS; i++) {
        struct worker *w = &s.workers[i];
        assert_int_equal(pthread_create(&w->thread, NULL, work, w), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(s.workers[i].thread, NULL);
    check(&s);
    assert_int_equal(atomic_load(&s.failures), 0);
    for (int i = 0; i < THREADS; i++) {
        const struct worker *w = &s.workers[i];
        assert_true(w->beside > STEPS / 2 && w->with_place > 10 && w->alone > 10);
    }
    s.place.caches->share(s.place.self, false);
    assert_int_equal(s.place.ops->check(s.place.self, NULL), DRY_OK);
    s.place.ops->destroy(s.place.self);
    for (int i = 0; i < THREADS; i++)
        pthread_mutex_destroy(&s.workers[i].lock);
    pthread_mutex_destroy(&s.lock);
    dry_sim_destroy(s.sim);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_at_their_caches_do_not_meet),
    };
    return cmocka_run_group_tests_name("paged_divider", tests, NULL, NULL);
}
