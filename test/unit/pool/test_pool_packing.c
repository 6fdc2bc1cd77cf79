/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A pool's periods are packed in the background. A program that repeats itself comes to run by a
 * layout, from one thread or several. It may end or fork while the packing is under way.
 */
#include "support/cmocka.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include <drystone/pool.h>
#include <drystone/sim.h>

#define MIB (UINT64_C(1) << 20)
#define LAYERS 40
#define LOOPS_MAX 100000 /* until then a thread has had its turn */

struct fixture {
    struct dry_sim *sim;
    struct dry_pool *pool;
};

static void
begin(struct fixture *f)
{
    struct dry_sim_options sim_options;
    struct dry_pool_options options;
    struct dry_error err;
    dry_sim_options_init(&sim_options);
    assert_int_equal(dry_sim_create(&sim_options, &f->sim, &err), DRY_OK);
    dry_pool_options_init(&options);
    options.device = dry_sim_get_device(f->sim);
    assert_int_equal(dry_pool_create(&options, &f->pool, &err), DRY_OK);
}

static void
end(struct fixture *f)
{
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_pool_destroy(f->pool);
    dry_sim_get_account(f->sim, &account);
    assert_int_equal(account.used_bytes, 0);
    assert_int_equal(account.events_live, 0);
    dry_sim_destroy(f->sim);
}

/* One period, of two streams. */
static void
loop(struct dry_pool *pool, unsigned layers)
{
    uint64_t kept[LAYERS * 4], scratch;
    for (unsigned i = 0; i < layers; i++) {
        uint64_t stream = i % 7 == 0;
        assert_int_equal(
            dry_pool_alloc(pool, MIB * (1 + i * 5 % 7) + 512 * i, stream, &kept[i]),
            DRY_OK);
        assert_int_equal(dry_pool_alloc(pool, MIB * (1 + i % 5), stream, &scratch),
                         DRY_OK);
        assert_int_equal(dry_pool_free(pool, scratch), DRY_OK);
    }
    for (unsigned i = layers; i-- > 0;) {
        assert_int_equal(dry_pool_alloc(pool, MIB * (1 + i * 3 % 11), 0, &scratch),
                         DRY_OK);
        assert_int_equal(dry_pool_free(pool, kept[i]), DRY_OK);
        assert_int_equal(dry_pool_free(pool, scratch), DRY_OK);
    }
}

static struct dry_pool_counters
counters_of(const struct fixture *f)
{
    struct dry_pool_counters counters = DRY_INIT(struct dry_pool_counters);
    dry_pool_get_counters(f->pool, &counters);
    return counters;
}

static void
a_loop_comes_to_run_by_a_plan(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    for (unsigned i = 0; i < LOOPS_MAX && counters_of(&f).plans_made == 0; i++) {
        loop(f.pool, LAYERS);
        sched_yield();
    }
    struct dry_pool_counters before = counters_of(&f);
    assert_int_equal(before.plans_made, 1);
    for (unsigned i = 0; i < 5; i++)
        loop(f.pool, LAYERS);
    struct dry_pool_counters after = counters_of(&f);
    assert_true(after.hints_taken - before.hints_taken >= 5 * (3 * LAYERS - 2));
    assert_int_equal(after.pages_created, before.pages_created);
    assert_int_equal(after.pages_remapped, before.pages_remapped);
    struct dry_error err;
    assert_int_equal(dry_pool_check(f.pool, &err), DRY_OK);
    end(&f);
}

/* Long periods, so that the packing is under way, most of the time, when the pool goes. */
static void
a_pool_may_end_while_a_period_is_packed(void **state)
{
    (void)state;
    for (unsigned loops = 2; loops < 6; loops++) {
        struct fixture f;
        begin(&f);
        for (unsigned i = 0; i < loops; i++)
            loop(f.pool, LAYERS * 4);
        end(&f);
    }
}

static void
a_child_of_a_fork_has_no_packing(void **state)
{
    (void)state;
    for (unsigned loops = 2; loops < 5; loops++) {
        struct fixture f;
        begin(&f);
        for (unsigned i = 0; i < loops; i++)
            loop(f.pool, LAYERS * 4);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            dry_pool_destroy(f.pool);
            dry_sim_destroy(f.sim);
            _exit(0);
        }
        int ended = -1;
        assert_int_equal(waitpid(child, &ended, 0), child);
        assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
        end(&f);
    }
}

static void *
disturb(void *self)
{
    struct dry_pool *pool = self;
    for (unsigned i = 0; i < 3000; i++) {
        uint64_t address;
        if (dry_pool_alloc(pool, 512 * (1 + i % 100), 3, &address) == DRY_OK)
            (void)dry_pool_free(pool, address);
    }
    return NULL;
}

/* The thread sanitizer is the judge. */
static void
others_go_on_meanwhile(void **state)
{
    (void)state;
    struct fixture f;
    pthread_t other;
    begin(&f);
    assert_int_equal(pthread_create(&other, NULL, disturb, f.pool), 0);
    for (unsigned i = 0; i < 40; i++)
        loop(f.pool, LAYERS);
    pthread_join(other, NULL);
    end(&f);
}

/* --- what waits for its successor --------------------------------------------------------- */

/* Free a block. It is not in use then, whether its address is registered or not. */
static void
give(struct dry_pool *pool, uint64_t address)
{
    assert_int_equal(dry_pool_free(pool, address), DRY_OK);
    assert_int_equal(dry_pool_free(pool, address), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pool_record_stream(pool, address, 5), DRY_ERR_ARGUMENT);
}

static uint64_t
ask(struct dry_pool *pool, uint64_t size)
{
    uint64_t address;
    assert_int_equal(dry_pool_alloc(pool, size, 0, &address), DRY_OK);
    return address;
}

static void
check(struct dry_pool *pool)
{
    struct dry_error err;
    if (dry_pool_check(pool, &err) != DRY_OK)
        fail_msg("%s", err.text);
}

static bool
is_of_nine(void *self, uint64_t stream)
{
    (void)self;
    return stream == 9;
}

enum event {
    NOTHING,
    UNEXPECTED, /* a request that is not of the loop */
    SCOPE,      /* a private pool is begun for others, and ended */
    HISTORY,    /* somebody listens for a while */
    CLEAR,
    SHARED, /* another thread asks on another stream */
    EVENT_COUNT,
};

static void
begin_event(struct dry_pool *pool, enum event event)
{
    struct dry_pool_history_options options;
    struct dry_stream_filter filter = {is_of_nine, NULL};
    pthread_t other;
    if (event == UNEXPECTED)
        give(pool, ask(pool, 77 * MIB));
    if (event == CLEAR)
        assert_int_equal(dry_pool_empty_cache(pool), DRY_OK);
    if (event == SCOPE)
        assert_int_equal(
            dry_pool_begin_private(pool, (struct dry_pool_id){0, 1}, &filter), DRY_OK);
    dry_pool_history_options_init(&options);
    if (event == HISTORY)
        assert_int_equal(dry_pool_record_history(pool, &options), DRY_OK);
    if (event == SHARED) {
        assert_int_equal(pthread_create(&other, NULL, disturb, pool), 0);
        pthread_join(other, NULL);
    }
    check(pool);
}

static void
end_event(struct dry_pool *pool, enum event event)
{
    if (event == SCOPE)
        assert_int_equal(dry_pool_end_private(pool, (struct dry_pool_id){0, 1}), DRY_OK);
    if (event == HISTORY)
        assert_int_equal(dry_pool_record_history(pool, NULL), DRY_OK);
    check(pool);
}

/* One period, of one stream; the event lasts for a third of it. */
static void
lonely_loop(struct dry_pool *pool, enum event event)
{
    uint64_t kept[LAYERS];
    for (unsigned i = 0; i < LAYERS; i++) {
        kept[i] = ask(pool, MIB * (1 + i * 5 % 7));
        give(pool, ask(pool, MIB * (1 + i % 3)));
    }
    for (unsigned i = LAYERS; i-- > 0;) {
        if (i == 2 * LAYERS / 3)
            begin_event(pool, event);
        if (i == LAYERS / 3)
            end_event(pool, event);
        uint64_t scratch = ask(pool, MIB * (1 + i % 3));
        give(pool, kept[i]);
        assert_int_equal(dry_pool_free(pool, kept[i]), DRY_ERR_ARGUMENT);
        give(pool, scratch);
    }
}

static void
what_waits_for_its_successor_is_nobodys(void **state)
{
    (void)state;
    for (enum event event = NOTHING; event < EVENT_COUNT; event++) {
        struct fixture f;
        begin(&f);
        assert_int_equal(dry_pool_open_private(f.pool, (struct dry_pool_id){0, 1}, 0),
                         DRY_OK);
        for (unsigned i = 0; i < LOOPS_MAX && counters_of(&f).plans_made == 0; i++) {
            lonely_loop(f.pool, NOTHING);
            sched_yield();
        }
        uint64_t before = counters_of(&f).hints_taken;
        lonely_loop(f.pool, NOTHING);
        assert_true(counters_of(&f).hints_taken - before > 2 * LAYERS);
        for (unsigned i = 0; i < 4; i++)
            lonely_loop(f.pool, i % 2 == 0 ? event : NOTHING);
        check(f.pool);
        end(&f);
    }
}

/* Of each layer's, some on another stream now and then. */
static void
scratch(struct dry_pool *pool, unsigned layer)
{
    uint64_t other = 0;
    for (unsigned i = 0; i < 6; i++) {
        if (i == 3 && layer % 10 == 5)
            assert_int_equal(dry_pool_alloc(pool, 4 * MIB, 1, &other), DRY_OK);
        give(pool, ask(pool, 3 * MIB));
    }
    if (other)
        give(pool, other);
}

struct pass {
    struct dry_pool *pool;
    uint64_t kept[LAYERS];
};

static void *
forward(void *self)
{
    struct pass *pass = self;
    for (unsigned i = 0; i < LAYERS; i++) {
        scratch(pass->pool, i);
        pass->kept[i] = ask(pass->pool, MIB * (1 + i % 7));
    }
    scratch(pass->pool, 0);
    return NULL;
}

static void *
backward(void *self)
{
    struct pass *pass = self;
    for (unsigned i = LAYERS; i-- > 0;) {
        scratch(pass->pool, i);
        give(pass->pool, pass->kept[i]);
    }
    scratch(pass->pool, 0);
    return NULL;
}

/* One after the other is not at once: forward here, backward in a thread of its own. */
static void
threads_in_turn_keep_their_plan(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    struct pass pass = {.pool = f.pool};
    unsigned planned = 0;
    for (unsigned i = 0; i < LOOPS_MAX / 10 && planned < 20; i++) {
        pthread_t thread;
        uint64_t before = counters_of(&f).hints_taken;
        forward(&pass);
        assert_int_equal(pthread_create(&thread, NULL, backward, &pass), 0);
        pthread_join(thread, NULL);
        bool is_planned = counters_of(&f).hints_taken - before > 400;
        assert_true(planned == 0 || is_planned);
        planned += is_planned;
    }
    assert_int_equal(planned, 20);
    check(f.pool);
    end(&f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_comes_to_run_by_a_plan),
        cmocka_unit_test(a_pool_may_end_while_a_period_is_packed),
        cmocka_unit_test(a_child_of_a_fork_has_no_packing),
        cmocka_unit_test(others_go_on_meanwhile),
        cmocka_unit_test(what_waits_for_its_successor_is_nobodys),
        cmocka_unit_test(threads_in_turn_keep_their_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
