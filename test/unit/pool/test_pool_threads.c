/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One pool under several threads: blocks taken by one and given back by another, streams
 * recorded and completed, cached memory given back, walks and statistics, all at once. The
 * thread sanitizer is the judge; without it, blocks in use never overlap, and in the end
 * everything is accounted for.
 */
#include "support/cmocka.h"
#include "support/random.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <drystone/pool.h>
#include <drystone/sim.h>

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define THREADS 4
#define STREAMS 6
#define STEPS 6000
#define QUEUE 256

/* Blocks on their way to the thread that gives them back. */
struct queue {
    pthread_mutex_t mutex;
    uint64_t at[QUEUE];
    size_t count;
};

struct stage {
    struct dry_pool *pool;
    struct dry_sim *sim;
    bool
        is_heard; /* an observer, and now and then a history: all requests take the lock */
    uint64_t events; /* heard, with the pool's lock held */
    struct queue queues[THREADS];
    atomic_size_t taken, given, refused;
    atomic_size_t failures; /* what no thread may see; cmocka is for the main one */
};

struct actor {
    struct stage *stage;
    unsigned number;
};

static bool
put(struct queue *q, uint64_t address)
{
    pthread_mutex_lock(&q->mutex);
    bool has_room = q->count < QUEUE;
    if (has_room)
        q->at[q->count++] = address;
    pthread_mutex_unlock(&q->mutex);
    return has_room;
}

static uint64_t
get(struct queue *q)
{
    pthread_mutex_lock(&q->mutex);
    uint64_t address = q->count > 0 ? q->at[--q->count] : 0;
    pthread_mutex_unlock(&q->mutex);
    return address;
}

static void
expect(struct stage *stage, int condition)
{
    if (!condition)
        atomic_fetch_add(&stage->failures, 1);
}

static void
take_and_pass_on(struct stage *stage, struct random *r)
{
    static const uint64_t sizes[] = {600, 70000, 900 * 1024, 3 * MIB, 12 * MIB};
    uint64_t address, stream = random_below(r, STREAMS);
    uint64_t size = sizes[random_below(r, sizeof sizes / sizeof *sizes)];
    enum dry_status status =
        random_below(r, 20) == 0
            ? dry_pool_alloc_aligned(stage->pool, size, 65536, stream, &address)
            : dry_pool_alloc(stage->pool, size, stream, &address);
    if (status == DRY_ERR_NO_SPACE) {
        atomic_fetch_add(&stage->refused, 1);
        return;
    }
    expect(stage, status == DRY_OK);
    if (status != DRY_OK)
        return;
    atomic_fetch_add(&stage->taken, 1);
    if (random_below(r, 4) == 0)
        expect(stage, dry_pool_record_stream(stage->pool, address,
                                             random_below(r, STREAMS)) == DRY_OK);
    if (put(&stage->queues[random_below(r, THREADS)], address))
        return;
    expect(stage, dry_pool_free(stage->pool, address) == DRY_OK);
    atomic_fetch_add(&stage->given, 1);
}

static void
give_back(struct stage *stage, unsigned number)
{
    uint64_t address = get(&stage->queues[number]);
    if (!address)
        return;
    struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
    expect(stage, dry_pool_get_block(stage->pool, address, &block) == DRY_OK);
    expect(stage, dry_pool_free(stage->pool, address) == DRY_OK);
    atomic_fetch_add(&stage->given, 1);
}

static enum dry_status
look_at(void *self, const struct dry_pool_segment *segment,
        const struct dry_pool_part *parts, size_t count)
{
    struct stage *stage = self;
    uint64_t at = segment->address;
    for (size_t i = 0; i < count; i++) {
        expect(stage, parts[i].address == at);
        at += parts[i].size;
    }
    expect(stage, at == segment->address + segment->size);
    return DRY_OK;
}

static uint32_t
number_of_stack(void *self)
{
    return (uint32_t)atomic_load(&((struct stage *)self)->taken);
}

static enum dry_status
read_entry(void *self, const struct dry_pool_event *event)
{
    struct stage *stage = self;
    expect(stage, event->action <= DRY_ACTION_OOM);
    return DRY_OK;
}

/* Recording begins and ends while others are asked for their stacks. */
static void
look_at_history(struct stage *stage, struct random *r)
{
    struct dry_pool_history_options o;
    struct dry_pool_explanation why = DRY_INIT(struct dry_pool_explanation);
    dry_pool_history_options_init(&o);
    o.entries = 1000;
    o.get_context = number_of_stack;
    o.context_self = stage;
    o.frees = random_below(r, 2) != 0;
    bool ends = random_below(r, 3) == 0;
    expect(stage, dry_pool_record_history(stage->pool, ends ? NULL : &o) == DRY_OK);
    expect(stage, dry_pool_walk_history(stage->pool, read_entry, stage) == DRY_OK);
    expect(stage, dry_pool_explain(stage->pool, MIB, 0, &why) == DRY_OK);
}

/* What is done rarely, by any thread. */
static void
look_around(struct stage *stage, struct random *r)
{
    struct dry_stats stats;
    struct dry_pool_counters counters = DRY_INIT(struct dry_pool_counters);
    switch (random_below(r, 8)) {
    case 0:
        expect(stage, dry_pool_empty_cache(stage->pool) == DRY_OK);
        break;
    case 1:
        expect(stage, dry_pool_walk(stage->pool, look_at, stage) == DRY_OK);
        break;
    case 2:
        expect(stage, dry_pool_trim(stage->pool, 64 * MIB, NULL) == DRY_OK);
        break;
    case 3:
        dry_pool_reset_peaks(stage->pool);
        break;
    case 4:
        expect(stage, dry_pool_check(stage->pool, NULL) == DRY_OK);
        break;
    case 5:
        expect(stage, dry_pool_stream_waits(stage->pool, random_below(r, STREAMS),
                                            random_below(r, STREAMS)) == DRY_OK);
        break;
    case 6:
        if (stage->is_heard)
            look_at_history(stage, r);
        break;
    default:
        dry_pool_get_stats(stage->pool, &stats);
        dry_pool_get_counters(stage->pool, &counters);
        expect(stage, stats.allocation.all.current >= 0);
        expect(stage, dry_pool_free(stage->pool, 512) == DRY_ERR_ARGUMENT);
    }
}

static void *
act(void *self)
{
    const struct actor *actor = self;
    struct stage *stage = actor->stage;
    struct random r;
    random_init(&r, actor->number + 1);
    for (int i = 0; i < STEPS; i++) {
        if (random_below(&r, 200) == 0)
            look_around(stage, &r);
        else if (random_below(&r, 2))
            take_and_pass_on(stage, &r);
        else
            give_back(stage, actor->number);
    }
    return NULL;
}

/* Out of memory: another thread's queue may have something to give. */
static bool
give_one(void *self, uint64_t size, uint64_t stream)
{
    struct stage *stage = self;
    (void)size;
    uint64_t address = get(&stage->queues[stream % THREADS]);
    if (!address)
        return false;
    expect(stage, dry_pool_free(stage->pool, address) == DRY_OK);
    atomic_fetch_add(&stage->given, 1);
    return true;
}

/* The pool's lock is the device's too: here its streams get on. */
static void
hear(void *self, const struct dry_pool_event *event)
{
    struct stage *stage = self;
    if (++stage->events % 16 == 0)
        dry_sim_complete_stream(stage->sim, event->time_us % STREAMS);
}

/* Of one pool: THREADS threads at work, then what is left goes back. */
static void
play(struct stage *stage)
{
    pthread_t threads[THREADS];
    struct actor actors[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        pthread_mutex_init(&stage->queues[i].mutex, NULL);
    assert_int_equal(dry_pool_add_oom_callback(stage->pool, give_one, stage), DRY_OK);
    for (unsigned i = 0; i < THREADS; i++) {
        actors[i] = (struct actor){.stage = stage, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, act, &actors[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_true(atomic_load(&stage->failures) == 0);
    struct dry_error err;
    if (dry_pool_check(stage->pool, &err) != DRY_OK)
        fail_msg("%s", err.text);
    struct dry_stats stats;
    dry_pool_get_stats(stage->pool, &stats);
    assert_true((size_t)stats.allocation.all.current ==
                atomic_load(&stage->taken) - atomic_load(&stage->given));
    for (unsigned i = 0; i < THREADS; i++) {
        for (uint64_t at = get(&stage->queues[i]); at; at = get(&stage->queues[i]))
            assert_int_equal(dry_pool_free(stage->pool, at), DRY_OK);
        pthread_mutex_destroy(&stage->queues[i].mutex);
    }
    dry_pool_get_stats(stage->pool, &stats);
    assert_int_equal(stats.allocation.all.current, 0);
    assert_true(atomic_load(&stage->taken) >
                10); /* how many depends on who comes first */
}

static void
stress(enum dry_placement placement, uint64_t capacity, bool is_heard)
{
    struct dry_sim_options so;
    dry_sim_options_init(&so);
    so.capacity_bytes = capacity;
    struct dry_sim *sim;
    assert_int_equal(dry_sim_create(&so, &sim, NULL), DRY_OK);
    struct stage stage = {.sim = sim, .is_heard = is_heard};
    struct dry_pool_options o;
    dry_pool_options_init(&o);
    o.device = dry_sim_get_device(sim);
    o.placement = placement;
    o.observe = is_heard ? hear : NULL;
    o.observe_self = &stage;
    assert_int_equal(dry_pool_create(&o, &stage.pool, NULL), DRY_OK);
    play(&stage);
    dry_pool_destroy(stage.pool);
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(sim, &account);
    assert_true(account.used_bytes == 0 && account.events_live == 0);
    assert_true(account.pages_live == 0);
    dry_sim_destroy(sim);
}

static void
threads_share_a_torch_pool(void **state)
{
    (void)state;
    stress(DRY_PLACEMENT_TORCH, 8 * GIB, true);
}

static void
threads_share_a_full_torch_pool(void **state)
{
    (void)state;
    stress(DRY_PLACEMENT_TORCH, 300 * MIB, true);
}

static void
threads_share_a_paged_pool(void **state)
{
    (void)state;
    stress(DRY_PLACEMENT_PAGED, 8 * GIB, true);
}

static void
threads_share_a_full_paged_pool(void **state)
{
    (void)state;
    stress(DRY_PLACEMENT_PAGED, 300 * MIB, true);
}

/* Nobody sees each request: most of them go beside the lock. */
static void
threads_share_the_caches_of_a_pool(void **state)
{
    (void)state;
    stress(DRY_PLACEMENT_PAGED, 8 * GIB, false);
    stress(DRY_PLACEMENT_PAGED, 300 * MIB, false);
}

/* A pool a thread, each on a device of its own. */
static void *
act_alone(void *self)
{
    struct stage *stage = self;
    struct random r;
    random_init(&r, 99);
    for (int i = 0; i < STEPS; i++) {
        take_and_pass_on(stage, &r);
        give_back(stage, (unsigned)random_below(&r, THREADS));
    }
    return NULL;
}

static void
pools_of_several_threads_do_not_meet(void **state)
{
    (void)state;
    static struct stage stages[THREADS];
    struct dry_sim *sims[THREADS];
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(dry_sim_create(NULL, &sims[i], NULL), DRY_OK);
        struct dry_pool_options o;
        dry_pool_options_init(&o);
        o.device = dry_sim_get_device(sims[i]);
        o.placement = DRY_PLACEMENT_TORCH;
        assert_int_equal(dry_pool_create(&o, &stages[i].pool, NULL), DRY_OK);
        for (size_t q = 0; q < THREADS; q++)
            pthread_mutex_init(&stages[i].queues[q].mutex, NULL);
        assert_int_equal(pthread_create(&threads[i], NULL, act_alone, &stages[i]), 0);
    }
    struct dry_stats stats[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(atomic_load(&stages[i].failures) == 0);
        assert_int_equal(dry_pool_check(stages[i].pool, NULL), DRY_OK);
        dry_pool_get_stats(stages[i].pool, &stats[i]);
        assert_true(stats[i].allocated_bytes.all.peak ==
                    stats[0].allocated_bytes.all.peak);
        dry_pool_destroy(stages[i].pool);
        dry_sim_destroy(sims[i]);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_share_a_paged_pool),
        cmocka_unit_test(threads_share_a_full_paged_pool),
        cmocka_unit_test(threads_share_the_caches_of_a_pool),
        cmocka_unit_test(threads_share_a_torch_pool),
        cmocka_unit_test(threads_share_a_full_torch_pool),
        cmocka_unit_test(pools_of_several_threads_do_not_meet),
    };
    return cmocka_run_group_tests_name("pool_threads", tests, NULL, NULL);
}
