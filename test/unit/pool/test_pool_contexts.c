/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A context is released exactly when nothing in the pool refers to it, as often as it was given.
 */
#include "support/cmocka.h"

#include <pthread.h>
#include <stdlib.h>

#include "support/failing_memory.h"
#include "support/pool_run.h"

#define MIB (UINT64_C(1) << 20)
#define NUMBERS 4096

/* A program's account of its contexts: how many of each the pool has. */
struct account {
    pthread_mutex_t lock;
    uint32_t held[NUMBERS];
    uint32_t next, period; /* numbers repeat after so many */
    uint64_t given, released;
    bool is_wrong;
};

static void
account_begin(struct account *a, uint32_t period)
{
    *a = (struct account){.period = period};
    pthread_mutex_init(&a->lock, NULL);
}

static uint32_t
give(void *self)
{
    struct account *a = self;
    pthread_mutex_lock(&a->lock);
    uint32_t number = a->next++ % a->period;
    a->held[number]++;
    a->given++;
    pthread_mutex_unlock(&a->lock);
    return number;
}

static void
take_back(void *self, uint32_t number)
{
    struct account *a = self;
    pthread_mutex_lock(&a->lock);
    a->is_wrong |= number >= NUMBERS || a->held[number] == 0;
    if (!a->is_wrong)
        a->held[number]--;
    a->released++;
    pthread_mutex_unlock(&a->lock);
}

static uint32_t
count_held(const struct account *a)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < NUMBERS; i++)
        count += a->held[i];
    return count;
}

static struct dry_pool_history_options
options_of(struct account *a, size_t entries)
{
    struct dry_pool_history_options o;
    dry_pool_history_options_init(&o);
    o.entries = entries;
    o.get_context = give;
    o.context_self = a;
    o.release_context = take_back;
    o.frees = true;
    return o;
}

static void
record(struct pool_run *run, struct account *a, size_t entries, bool keep)
{
    struct dry_pool_history_options o = options_of(a, entries);
    o.keep = keep;
    assert_int_equal(dry_pool_record_history(run->pool, &o), DRY_OK);
}

static uint64_t
take(struct pool_run *run, uint64_t size)
{
    uint64_t address;
    assert_int_equal(dry_pool_alloc(run->pool, size, 0, &address), DRY_OK);
    return address;
}

/* --- a naive model: whatever the pool tells is held, and nothing else ------------------------ */

struct told {
    struct account *account;
    bool is_told[NUMBERS];
};

static void
tell(struct told *told, uint32_t context)
{
    if (context == DRY_NONE)
        return;
    assert_true(context < NUMBERS);
    assert_true(told->account->held[context] > 0);
    told->is_told[context] = true;
}

static enum dry_status
on_event(void *self, const struct dry_pool_event *event)
{
    tell(self, event->context);
    return DRY_OK;
}

static enum dry_status
on_segment(void *self, const struct dry_pool_segment *segment,
           const struct dry_pool_part *parts, size_t count)
{
    tell(self, segment->context);
    for (size_t i = 0; i < count; i++)
        tell(self, parts[i].context);
    return DRY_OK;
}

static void
hold_against_walks(struct pool_run *run, struct account *a)
{
    static struct told told;
    told = (struct told){.account = a};
    assert_int_equal(dry_pool_walk_history(run->pool, on_event, &told), DRY_OK);
    assert_int_equal(dry_pool_walk(run->pool, on_segment, &told), DRY_OK);
    for (uint32_t i = 0; i < NUMBERS; i++)
        assert_int_equal(told.is_told[i], a->held[i] > 0);
    assert_false(a->is_wrong);
}

static void
run_against_model(enum dry_placement placement, const char *conf, uint32_t period,
                  uint64_t seed)
{
    struct pool_run run;
    struct account a;
    account_begin(&a, period);
    pool_run_begin(&run, placement, conf, 64 * MIB, NULL);
    for (uint64_t i = 0; i < 120; i++) {
        if (i % 10 == 3)
            record(&run, &a, 1 + (seed + i) % 50, i % 20 == 3);
        if (i % 40 == 39)
            assert_int_equal(dry_pool_record_history(run.pool, NULL), DRY_OK);
        pool_run_steps(&run, seed * 1000 + i, 12);
        hold_against_walks(&run, &a);
    }
    assert_true(a.given > 500);
    pool_run_end(&run);
    assert_false(a.is_wrong);
    assert_true(a.given == a.released);
    assert_int_equal(count_held(&a), 0);
}

static void
what_is_told_is_held_and_nothing_else(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 6; seed++) {
        uint32_t period = seed % 2 ? NUMBERS : 7;
        run_against_model(DRY_PLACEMENT_TORCH, "", period, seed);
        run_against_model(DRY_PLACEMENT_TORCH, "expandable_segments:True", period, seed);
        run_against_model(DRY_PLACEMENT_PAGED, "", period, seed);
    }
}

/* --- one by one ------------------------------------------------------------------------------ */

static void
block_and_entry_hold_together(void **state)
{
    (void)state;
    struct pool_run run;
    struct account a;
    account_begin(&a, NUMBERS);
    pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", 64 * MIB, NULL);
    take(&run, 5); /* the segment is there */
    record(&run, &a, 2, false);
    uint64_t first = take(&run, 5); /* context 0 */
    take(&run, 5);
    take(&run, 5); /* the ring has 1 and 2; the block holds 0 */
    assert_int_equal(a.held[0], 1);
    assert_int_equal(a.released, 0);
    assert_int_equal(dry_pool_free(run.pool, first), DRY_OK); /* 3, twice, in the ring */
    assert_int_equal(a.held[0], 0);
    assert_int_equal(a.held[3], 1);
    take(&run, 5);
    take(&run, 5);
    assert_int_equal(a.held[0], 0);
    assert_int_equal(a.held[3], 0);
    assert_int_equal(a.held[1], 1); /* its block lives */
    assert_int_equal(dry_pool_record_history(run.pool, NULL), DRY_OK);
    assert_int_equal(count_held(&a), 0);
    assert_true(a.given == a.released);
    pool_run_end(&run);
}

static void
refused_request_gives_its_context_back(void **state)
{
    (void)state;
    struct pool_run run;
    struct account a;
    account_begin(&a, NUMBERS);
    pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", 64 * MIB, NULL);
    record(&run, &a, 1, false);
    uint64_t address;
    assert_int_equal(dry_pool_alloc(run.pool, 65 * MIB, 0, &address), DRY_ERR_NO_SPACE);
    assert_int_equal(a.held[0], 1); /* the entry of the out-of-memory */
    assert_int_equal(dry_pool_free(run.pool, 512), DRY_ERR_ARGUMENT);
    assert_int_equal(a.held[1], 0); /* no entry */
    take(&run, 5);
    assert_int_equal(a.held[0], 0);
    pool_run_end(&run);
    assert_true(a.given == a.released);
}

static void
segment_holds_who_got_it(void **state)
{
    (void)state;
    struct pool_run run;
    struct account a;
    account_begin(&a, NUMBERS);
    pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", 64 * MIB, NULL);
    record(&run, &a, 1, false);
    uint64_t address = take(&run, 3 * MIB); /* context 0 */
    assert_int_equal(dry_pool_free(run.pool, address), DRY_OK);
    take(&run, 5);
    assert_int_equal(a.held[0], 1);
    assert_int_equal(dry_pool_empty_cache(run.pool), DRY_OK);
    assert_int_equal(a.held[0], 0);
    assert_int_equal(a.held[3], 1); /* the entry's: who emptied the cache */
    take(&run, 5);
    assert_int_equal(a.held[3], 0);
    pool_run_end(&run);
}

static void
keep_wants_the_same_contexts(void **state)
{
    (void)state;
    struct pool_run run;
    struct account a, b;
    account_begin(&a, NUMBERS);
    account_begin(&b, NUMBERS);
    pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", 64 * MIB, NULL);
    record(&run, &a, 20, true);
    uint64_t address = take(&run, 5);
    take(&run, 5);
    struct dry_pool_history_options o = options_of(&b, 5);
    o.keep = true;
    assert_int_equal(dry_pool_record_history(run.pool, &o), DRY_ERR_ARGUMENT);
    assert_int_equal(a.released, 0);
    record(&run, &a, 1, true); /* the newest entry stays, and all blocks' contexts */
    assert_int_equal(a.released, 0);
    struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
    assert_int_equal(dry_pool_get_block(run.pool, address, &block), DRY_OK);
    assert_int_equal(block.context, 0);
    record(&run, &b, 5, false);
    assert_int_equal(count_held(&a), 0);
    pool_run_end(&run);
}

/* A callback begins another history while the request holds a context of the former one. */
struct changer {
    struct pool_run *run;
    struct account *fresh;
};

static bool
change_history(void *self, uint64_t size, uint64_t stream)
{
    (void)size;
    (void)stream;
    const struct changer *c = self;
    record(c->run, c->fresh, 4, false);
    return true;
}

static enum dry_status
count_entry(void *self, const struct dry_pool_event *event)
{
    size_t *count = self;
    assert_int_equal(event->context, DRY_NONE);
    ++*count;
    return DRY_OK;
}

static void
context_of_a_former_history_is_told_no_more(void **state)
{
    (void)state;
    struct pool_run run;
    struct account a, b;
    account_begin(&a, NUMBERS);
    account_begin(&b, NUMBERS);
    pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", 64 * MIB, NULL);
    record(&run, &a, 4, false);
    struct changer changer = {&run, &b};
    assert_int_equal(dry_pool_add_oom_callback(run.pool, change_history, &changer),
                     DRY_OK);
    uint64_t address;
    assert_int_equal(dry_pool_alloc(run.pool, 65 * MIB, 0, &address), DRY_ERR_NO_SPACE);
    assert_int_equal(count_held(&a), 0);
    size_t count = 0;
    assert_int_equal(dry_pool_walk_history(run.pool, count_entry, &count), DRY_OK);
    assert_int_equal(count, 1);
    pool_run_end(&run);
    assert_true(a.given == a.released && b.given == b.released);
    assert_false(a.is_wrong || b.is_wrong);
}

/* --- a trace of the pool ---------------------------------------------------------------------- */

struct asker {
    struct pool_run *run;
    struct account *account;
};

/* The pool goes on, and its ring forgets, while the trace asks for frames. */
static size_t
ask_while_it_forgets(void *self, uint32_t context, struct dry_pool_frame *frames,
                     size_t capacity)
{
    (void)frames;
    (void)capacity;
    const struct asker *asker = self;
    assert_true(asker->account->held[context] > 0);
    take(asker->run, 5);
    return 0;
}

static void
trace_holds_what_it_asks_about(void **state)
{
    (void)state;
    struct pool_run run;
    struct account a;
    account_begin(&a, NUMBERS);
    pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", 64 * MIB, NULL);
    record(&run, &a, 3, false);
    for (int i = 0; i < 10; i++)
        assert_int_equal(dry_pool_free(run.pool, take(&run, 5)), DRY_OK);
    struct asker asker = {&run, &a};
    struct dry_pool_trace_options options;
    dry_pool_trace_options_init(&options);
    options.get_frames = ask_while_it_forgets;
    options.frames_self = &asker;
    struct dry_trace *trace;
    assert_int_equal(dry_trace_from_pool(run.pool, &options, &trace, NULL), DRY_OK);
    dry_trace_destroy(trace);
    hold_against_walks(&run, &a);
    pool_run_end(&run);
    assert_true(a.given == a.released);
}

/* --- refusals of memory, threads --------------------------------------------------------------- */

static void
no_memory_gives_the_context_back(void **state)
{
    (void)state;
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, SIZE_MAX);
        struct pool_run run;
        struct account a;
        account_begin(&a, NUMBERS);
        pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", 64 * MIB, &memory);
        fm.left = n;
        struct dry_pool_history_options o = options_of(&a, 3);
        enum dry_status status = dry_pool_record_history(run.pool, &o);
        for (int i = 0; i < 40 && status == DRY_OK; i++) {
            uint64_t address;
            if (dry_pool_alloc(run.pool, 512, 0, &address) == DRY_OK && i % 2)
                assert_int_equal(dry_pool_free(run.pool, address), DRY_OK);
            size_t left = fm.left;
            bool was_failed = fm.failed;
            fm.left = SIZE_MAX;
            fm.failed = false;
            hold_against_walks(&run, &a);
            fm.left = left;
            fm.failed = was_failed;
        }
        bool failed = fm.failed;
        fm.failed = false;
        fm.left = SIZE_MAX;
        pool_run_end(&run);
        assert_true(a.given == a.released);
        assert_false(a.is_wrong);
        failing_memory_finish(&fm);
        if (!failed)
            break;
    }
}

static void *
alloc_and_free(void *self)
{
    struct pool_run *run = self;
    for (int i = 0; i < 2000; i++) {
        uint64_t address;
        if (dry_pool_alloc(run->pool, 1000, 0, &address) != DRY_OK ||
            dry_pool_free(run->pool, address) != DRY_OK)
            return run;
    }
    return NULL;
}

static void
nothing_leaks_while_histories_come_and_go(void **state)
{
    (void)state;
    struct pool_run run;
    struct account a;
    pthread_t threads[2];
    account_begin(&a, 50);
    pool_run_begin(&run, DRY_PLACEMENT_PAGED, "", 64 * MIB, NULL);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, alloc_and_free, &run), 0);
    for (int i = 0; i < 300; i++) {
        record(&run, &a, 16, i % 2);
        if (i % 3 == 0)
            assert_int_equal(dry_pool_record_history(run.pool, NULL), DRY_OK);
    }
    for (int i = 0; i < 2; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    pool_run_end(&run);
    assert_false(a.is_wrong);
    assert_true(a.given == a.released);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_told_is_held_and_nothing_else),
        cmocka_unit_test(block_and_entry_hold_together),
        cmocka_unit_test(refused_request_gives_its_context_back),
        cmocka_unit_test(segment_holds_who_got_it),
        cmocka_unit_test(keep_wants_the_same_contexts),
        cmocka_unit_test(context_of_a_former_history_is_told_no_more),
        cmocka_unit_test(trace_holds_what_it_asks_about),
        cmocka_unit_test(no_memory_gives_the_context_back),
        cmocka_unit_test(nothing_leaks_while_histories_come_and_go),
    };
    return cmocka_run_group_tests_name("pool_contexts", tests, NULL, NULL);
}
