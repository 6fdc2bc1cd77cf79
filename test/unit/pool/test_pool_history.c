/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a pool remembers of what happened, and of who asked.
 */
#include "support/cmocka.h"

#include <pthread.h>

#include "support/failing_memory.h"
#include "support/pool_run.h"

#define MIB (UINT64_C(1) << 20)
#define SEEN_MAX 64

struct seen {
    struct dry_pool_event events[SEEN_MAX];
    size_t count;
    size_t stop_at; /* 0: never */
};

static enum dry_status
see(void *self, const struct dry_pool_event *event)
{
    struct seen *seen = self;
    assert_true(seen->count < SEEN_MAX);
    seen->events[seen->count++] = *event;
    return seen->count == seen->stop_at ? DRY_ERR_CANCELLED : DRY_OK;
}

static void
walk_all(struct pool_run *run, struct seen *seen)
{
    *seen = (struct seen){0};
    assert_int_equal(dry_pool_walk_history(run->pool, see, seen), DRY_OK);
}

static uint32_t
say(void *self)
{
    const uint32_t *context = self;
    return *context;
}

/* Contexts as `*context` says at each call. */
static void
record(struct pool_run *run, size_t entries, uint32_t *context, bool frees)
{
    struct dry_pool_history_options o;
    dry_pool_history_options_init(&o);
    o.entries = entries;
    o.get_context = context ? say : NULL;
    o.context_self = context;
    o.frees = frees;
    assert_int_equal(dry_pool_record_history(run->pool, &o), DRY_OK);
}

static uint64_t
take(struct pool_run *run, uint64_t size, uint64_t stream)
{
    uint64_t address;
    assert_int_equal(dry_pool_alloc(run->pool, size, stream, &address), DRY_OK);
    return address;
}

static void
begin(struct pool_run *run)
{
    pool_run_begin(run, DRY_PLACEMENT_TORCH, "", 64 * MIB, NULL);
}

static void
nothing_is_registered_before_it_is_asked_for(void **state)
{
    (void)state;
    struct pool_run run;
    struct seen seen;
    begin(&run);
    take(&run, 5, 0);
    walk_all(&run, &seen);
    assert_int_equal(seen.count, 0);
    record(&run, 10, NULL, false);
    walk_all(&run, &seen);
    assert_int_equal(seen.count, 0);
    uint64_t address = take(&run, 5, 0);
    walk_all(&run, &seen);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.events[0].action, DRY_ACTION_ALLOC);
    assert_true(seen.events[0].address == address);
    assert_int_equal(seen.events[0].size, 5);
    assert_int_equal(seen.events[0].context, DRY_NONE);
    assert_true(seen.events[0].time_us > UINT64_C(1600000000000000));
    assert_int_equal(dry_pool_record_history(run.pool, NULL), DRY_OK);
    walk_all(&run, &seen);
    assert_int_equal(seen.count, 0);
    pool_run_end(&run);
}

static void
entries_are_those_of_a_snapshot(void **state)
{
    (void)state;
    struct pool_run run;
    struct seen seen;
    begin(&run);
    record(&run, SEEN_MAX, NULL, false);
    uint64_t address = take(&run, 3 * MIB, 7);
    assert_int_equal(dry_pool_free(run.pool, address), DRY_OK);
    assert_int_equal(dry_pool_empty_cache(run.pool), DRY_OK);
    static const struct {
        enum dry_action action;
        uint64_t size;
    } expected[] = {
        {DRY_ACTION_SEGMENT_ALLOC, 20 * MIB}, {DRY_ACTION_ALLOC, 3 * MIB},
        {DRY_ACTION_FREE_REQUESTED, 3 * MIB}, {DRY_ACTION_FREE_COMPLETED, 3 * MIB},
        {DRY_ACTION_SEGMENT_FREE, 20 * MIB},
    };
    walk_all(&run, &seen);
    assert_int_equal(seen.count, sizeof expected / sizeof *expected);
    for (size_t i = 0; i < seen.count; i++) {
        assert_int_equal(seen.events[i].action, expected[i].action);
        assert_int_equal(seen.events[i].size, expected[i].size);
        assert_true(seen.events[i].address == address);
        assert_int_equal(seen.events[i].stream, 7);
    }
    pool_run_end(&run);
}

static void
ring_keeps_the_last_entries(void **state)
{
    (void)state;
    struct pool_run run;
    struct seen seen;
    begin(&run);
    take(&run, 5, 0); /* the segment is there */
    record(&run, 5, NULL, false);
    for (uint64_t i = 1; i <= 23; i++) {
        take(&run, i, 0);
        walk_all(&run, &seen);
        uint64_t kept = i < 5 ? i : 5;
        assert_int_equal(seen.count, kept);
        for (uint64_t j = 0; j < kept; j++)
            assert_int_equal(seen.events[j].size, i - kept + 1 + j);
    }
    pool_run_end(&run);
}

struct span {
    uint64_t first, last; /* sizes of allocs */
    size_t count;
};

static enum dry_status
note_size(void *self, const struct dry_pool_event *event)
{
    struct span *span = self;
    if (event->action != DRY_ACTION_ALLOC)
        return DRY_OK;
    span->first = span->count == 0 ? event->size : span->first;
    span->last = event->size;
    span->count++;
    return DRY_OK;
}

/* Have `count` blocks asked for and freed, of sizes that tell them apart; tell what was kept. */
static struct span
fill(struct pool_run *run, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t address = take(run, 512 * (i % 2000 + 1), 0);
        assert_int_equal(dry_pool_free(run->pool, address), DRY_OK);
    }
    struct span span = {0};
    assert_int_equal(dry_pool_walk_history(run->pool, note_size, &span), DRY_OK);
    return span;
}

static void
long_ring_grows_to_what_was_asked_for(void **state)
{
    (void)state;
    struct pool_run run;
    begin(&run);
    record(&run, SIZE_MAX, NULL, false); /* PyTorch's default has no end */
    struct span all = fill(&run, 70000);
    assert_int_equal(all.count, 70000);
    assert_int_equal(all.first, 512);
    record(&run, 150000, NULL, false);
    struct span last = fill(&run, 70000); /* three entries each */
    assert_int_equal(last.count, 50000);
    assert_int_equal(last.first, 512);
    assert_int_equal(last.last, 512 * 2000);
    pool_run_end(&run);
}

static void
blocks_keep_who_asked_for_them(void **state)
{
    (void)state;
    struct pool_run run;
    struct seen seen;
    uint32_t context = 1;
    begin(&run);
    record(&run, 2, &context, false); /* the ring forgets, the blocks do not */
    uint64_t first = take(&run, 5, 0);
    context = 2;
    uint64_t second = take(&run, 5, 0);
    context = 3;
    take(&run, 5, 0);
    struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
    assert_int_equal(dry_pool_get_block(run.pool, first, &block), DRY_OK);
    assert_int_equal(block.context, 1);
    assert_int_equal(dry_pool_get_block(run.pool, second, &block), DRY_OK);
    assert_int_equal(block.context, 2);
    assert_int_equal(dry_pool_free(run.pool, first), DRY_OK);
    walk_all(&run, &seen);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.events[0].action, DRY_ACTION_FREE_REQUESTED);
    assert_int_equal(seen.events[0].context, 1);
    assert_int_equal(seen.events[1].action, DRY_ACTION_FREE_COMPLETED);
    assert_int_equal(seen.events[1].context, 1);
    context = 4;
    assert_true(take(&run, 5, 0) == first);
    assert_int_equal(dry_pool_get_block(run.pool, first, &block), DRY_OK);
    assert_int_equal(block.context, 4);
    context = DRY_NONE;
    assert_int_equal(dry_pool_free(run.pool, first), DRY_OK);
    assert_true(take(&run, 5, 0) == first);
    assert_int_equal(dry_pool_get_block(run.pool, first, &block), DRY_OK);
    assert_int_equal(block.context, DRY_NONE);
    pool_run_end(&run);
}

static void
free_is_asked_about_where_wanted(void **state)
{
    (void)state;
    struct pool_run run;
    struct seen seen;
    uint32_t context = 1;
    begin(&run);
    record(&run, 2, &context, true);
    uint64_t address = take(&run, 5, 0);
    context = 9;
    assert_int_equal(dry_pool_free(run.pool, address), DRY_OK);
    walk_all(&run, &seen);
    assert_int_equal(seen.events[0].action, DRY_ACTION_FREE_REQUESTED);
    assert_int_equal(seen.events[0].context, 9);
    assert_int_equal(seen.events[1].action, DRY_ACTION_FREE_COMPLETED);
    assert_int_equal(seen.events[1].context, 9); /* the call that frees */
    pool_run_end(&run);
}

/* What another request completes is not that request's doing. */
static void
late_completion_goes_by_who_completes_it(void **state)
{
    (void)state;
    struct pool_run run;
    struct seen seen;
    uint32_t context = 1;
    begin(&run);
    record(&run, SEEN_MAX, &context, false);
    uint64_t address = take(&run, 5, 1);
    assert_int_equal(dry_pool_record_stream(run.pool, address, 2), DRY_OK);
    assert_int_equal(dry_pool_free(run.pool, address), DRY_OK);
    dry_sim_complete_stream(run.sim, 2);
    context = 8;
    take(&run, 5, 1);
    walk_all(&run, &seen);
    assert_true(seen.count >= 2);
    const struct dry_pool_event *e = &seen.events[seen.count - 2];
    assert_int_equal(e->action, DRY_ACTION_FREE_COMPLETED);
    assert_int_equal(e->context, 8);
    assert_int_equal(e[1].context, 8);
    pool_run_end(&run);
}

static void
visitor_ends_the_walk(void **state)
{
    (void)state;
    struct pool_run run;
    struct seen seen = {.stop_at = 2};
    begin(&run);
    record(&run, 10, NULL, false);
    for (int i = 0; i < 5; i++)
        take(&run, 5, 0);
    assert_int_equal(dry_pool_walk_history(run.pool, see, &seen), DRY_ERR_CANCELLED);
    assert_int_equal(seen.count, 2);
    assert_int_equal(dry_pool_free(run.pool, seen.events[1].address), DRY_OK);
    pool_run_end(&run);
}

static void
bad_options_are_refused(void **state)
{
    (void)state;
    struct pool_run run;
    struct dry_pool_history_options o = {0};
    begin(&run);
    assert_int_equal(dry_pool_record_history(run.pool, &o), DRY_ERR_ARGUMENT);
    dry_pool_history_options_init(&o);
    assert_int_equal(o.entries, 65536);
    o.entries = 0;
    assert_int_equal(dry_pool_record_history(run.pool, &o), DRY_ERR_ARGUMENT);
    pool_run_end(&run);
}

/* An entry takes no memory; who asked does, and a block does without where there is none. */
static void
no_memory_costs_contexts_alone(void **state)
{
    (void)state;
    bool was_lost = false;
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, SIZE_MAX);
        struct pool_run run;
        pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", 64 * MIB, &memory);
        uint64_t warm = take(&run, 5, 0);
        uint32_t context = 1;
        for (int i = 0; i < 3;
             i++) { /* so that nothing but contexts takes memory below */
            assert_int_equal(dry_pool_free(run.pool, warm), DRY_OK);
            warm = take(&run, 5, 0);
        }
        struct dry_pool_history_options o;
        dry_pool_history_options_init(&o);
        o.get_context = say;
        o.context_self = &context;
        fm.left = n;
        bool failed = true;
        enum dry_status status = dry_pool_record_history(run.pool, &o);
        if (status == DRY_OK) {
            assert_int_equal(dry_pool_free(run.pool, warm), DRY_OK);
            warm = take(&run, 5, 0);
            failed = fm.failed;
            fm.failed = false;
            fm.left = SIZE_MAX;
            struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
            assert_int_equal(dry_pool_get_block(run.pool, warm, &block), DRY_OK);
            assert_int_equal(block.context, failed ? DRY_NONE : 1);
            was_lost |= failed;
        } else {
            assert_int_equal(status, DRY_ERR_MEMORY);
            struct seen seen = {0};
            assert_int_equal(dry_pool_walk_history(run.pool, see, &seen), DRY_OK);
            assert_int_equal(seen.count, 0);
        }
        pool_run_end(&run);
        failing_memory_finish(&fm);
        if (!failed)
            break;
    }
    assert_true(was_lost);
}

/* --- threads ------------------------------------------------------------------------------ */

#define ROUNDS 300

static void *
alloc_and_free(void *self)
{
    struct pool_run *run = self;
    for (int i = 0; i < 10 * ROUNDS; i++) {
        uint64_t address;
        if (dry_pool_alloc(run->pool, 1000, 0, &address) != DRY_OK ||
            dry_pool_free(run->pool, address) != DRY_OK)
            return run;
    }
    return NULL;
}

static enum dry_status
count_event(void *self, const struct dry_pool_event *event)
{
    size_t *count = self;
    *count += event->context == 6;
    return DRY_OK;
}

/* Recording begins and ends while others allocate. */
static void
history_comes_and_goes_under_way(void **state)
{
    (void)state;
    struct pool_run run;
    pthread_t threads[2];
    uint32_t context = 6;
    size_t seen = 0;
    begin(&run);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, alloc_and_free, &run), 0);
    for (int i = 0; i < ROUNDS; i++) {
        record(&run, 16, &context, i % 2);
        assert_int_equal(dry_pool_walk_history(run.pool, count_event, &seen), DRY_OK);
        if (i % 3 == 0)
            assert_int_equal(dry_pool_record_history(run.pool, NULL), DRY_OK);
    }
    for (int i = 0; i < 2; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    record(&run, 16, &context, true);
    assert_null(alloc_and_free(&run));
    assert_int_equal(dry_pool_walk_history(run.pool, count_event, &seen), DRY_OK);
    assert_true(seen >= 16);
    pool_run_end(&run);
}

static void
emptying_is_asked_about_where_frees_are(void **state)
{
    (void)state;
    for (int frees = 0; frees < 2; frees++) {
        struct pool_run run;
        struct seen seen;
        uint32_t context = 1;
        begin(&run);
        record(&run, SEEN_MAX, &context, frees);
        uint64_t address = take(&run, 5, 0);
        assert_int_equal(dry_pool_free(run.pool, address), DRY_OK);
        context = 7;
        assert_int_equal(dry_pool_empty_private(run.pool, (struct dry_pool_id){0, 9}),
                         DRY_OK);
        assert_int_equal(dry_pool_empty_cache(run.pool), DRY_OK);
        walk_all(&run, &seen);
        const struct dry_pool_event *e = &seen.events[seen.count - 1];
        assert_int_equal(e->action, DRY_ACTION_SEGMENT_FREE);
        assert_int_equal(e->context, frees ? 7 : 1);
        pool_run_end(&run);
    }
}

static void
a_snapshot_is_an_entry(void **state)
{
    (void)state;
    struct pool_run run;
    struct seen seen;
    pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", 64 * MIB, NULL);
    (void)take(&run, 3 * MIB, 0);
    assert_int_equal(dry_pool_note_snapshot(run.pool), DRY_OK); /* nobody keeps it */
    record(&run, 8, NULL, false);
    assert_int_equal(dry_pool_note_snapshot(run.pool), DRY_OK);
    walk_all(&run, &seen);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.events[0].action, DRY_ACTION_SNAPSHOT);
    assert_true(seen.events[0].size == 3 * MIB && seen.events[0].address == 0);
    pool_run_end(&run);
}

static void
hear_event(void *self, const struct dry_pool_event *event)
{
    (void)event;
    ++*(size_t *)self;
}

static void
an_observer_comes_and_goes(void **state)
{
    (void)state;
    for (int placement = DRY_PLACEMENT_PAGED; placement <= DRY_PLACEMENT_TORCH;
         placement++) {
        struct pool_run run;
        size_t first = 0, second = 0;
        pool_run_begin(&run, (enum dry_placement)placement, "", 64 * MIB, NULL);
        uint64_t a = take(&run, MIB, 0);
        assert_int_equal(dry_pool_set_observer(run.pool, hear_event, &first), DRY_OK);
        assert_int_equal(dry_pool_free(run.pool, a), DRY_OK);
        assert_true(first == 2); /* requested and completed */
        assert_int_equal(dry_pool_set_observer(run.pool, hear_event, &second), DRY_OK);
        a = take(&run, MIB, 0);
        assert_int_equal(dry_pool_set_observer(run.pool, NULL, NULL), DRY_OK);
        assert_int_equal(dry_pool_free(run.pool, a), DRY_OK);
        assert_true(first == 2 && second == 1);
        pool_run_end(&run);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_registered_before_it_is_asked_for),
        cmocka_unit_test(entries_are_those_of_a_snapshot),
        cmocka_unit_test(ring_keeps_the_last_entries),
        cmocka_unit_test(long_ring_grows_to_what_was_asked_for),
        cmocka_unit_test(blocks_keep_who_asked_for_them),
        cmocka_unit_test(free_is_asked_about_where_wanted),
        cmocka_unit_test(late_completion_goes_by_who_completes_it),
        cmocka_unit_test(visitor_ends_the_walk),
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(no_memory_costs_contexts_alone),
        cmocka_unit_test(history_comes_and_goes_under_way),
        cmocka_unit_test(emptying_is_asked_about_where_frees_are),
        cmocka_unit_test(a_snapshot_is_an_entry),
        cmocka_unit_test(an_observer_comes_and_goes),
    };
    return cmocka_run_group_tests_name("pool_history", tests, NULL, NULL);
}
