/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A private pool goes back to a checkpoint: the same blocks at the same addresses, whatever
 * happened meanwhile, or nothing changes.
 */
#include "support/cmocka.h"

#include <string.h>

#include "support/failing_memory.h"
#include "support/pool_run.h"

#define MIB (UINT64_C(1) << 20)
#define LIVE_MAX 200

static const struct dry_pool_id one = {0, 1}, two = {0, 2};

/* --- a program, and what it knows itself ------------------------------------------------------ */

struct tensor {
    uint64_t address, size;
    bool is_private;
};

struct tensors {
    struct tensor list[LIVE_MAX];
    size_t count;
};

static void
add(struct tensors *t, struct tensor tensor)
{
    assert_true(t->count < LIVE_MAX);
    t->list[t->count++] = tensor;
}

static size_t
find(const struct tensors *t, uint64_t address)
{
    size_t i = 0;
    while (i < t->count && t->list[i].address != address)
        i++;
    return i;
}

static void
drop(struct tensors *t, size_t i)
{
    assert_true(i < t->count);
    t->list[i] = t->list[--t->count];
}

static uint64_t
take_on(struct pool_run *run, const struct dry_pool_id *id, uint64_t size,
        uint64_t stream)
{
    uint64_t address = 0;
    if (id)
        assert_int_equal(dry_pool_begin_private(run->pool, *id, NULL), DRY_OK);
    enum dry_status status = dry_pool_alloc(run->pool, size, stream, &address);
    if (status != DRY_OK)
        assert_int_equal(status, DRY_ERR_NO_SPACE);
    if (id)
        assert_int_equal(dry_pool_end_private(run->pool, *id), DRY_OK);
    return address;
}

static void
give(struct pool_run *run, uint64_t address)
{
    assert_int_equal(dry_pool_free(run->pool, address), DRY_OK);
}

static struct dry_pool_checkpoint *
checkpoint(struct pool_run *run, struct dry_pool_id id)
{
    struct dry_pool_checkpoint *c;
    struct dry_error err;
    if (dry_pool_checkpoint_private(run->pool, id, &c, &err) != DRY_OK)
        fail_msg("%s", err.text);
    return c;
}

/* What a restore tells. */
struct told {
    uint64_t freed[LIVE_MAX], live[LIVE_MAX];
    size_t freed_count, live_count;
};

static void
on_freed(void *self, uint64_t address)
{
    struct told *told = self;
    assert_true(told->freed_count < LIVE_MAX);
    told->freed[told->freed_count++] = address;
}

static void
on_live(void *self, uint64_t address)
{
    struct told *told = self;
    assert_true(told->live_count < LIVE_MAX);
    told->live[told->live_count++] = address;
}

static enum dry_status
try_restore(const struct dry_pool_checkpoint *c, struct told *told, struct dry_error *err)
{
    *told = (struct told){0};
    struct dry_pool_restore_visitor visitor = {on_freed, on_live, told};
    return dry_pool_restore_private(c, &visitor, err);
}

static void
restore(const struct dry_pool_checkpoint *c, struct told *told)
{
    struct dry_error err;
    if (try_restore(c, told, &err) != DRY_OK)
        fail_msg("%s", err.text);
}

static void
check(struct pool_run *run)
{
    struct dry_error err;
    if (dry_pool_check(run->pool, &err) != DRY_OK)
        fail_msg("%s", err.text);
}

/* --- the model: private tensors now go, those of then come ----------------------------------- */

static void
step(struct pool_run *run, struct tensors *t)
{
    static const uint64_t limits[] = {2048, 300 << 10, 3 * MIB, 14 * MIB};
    uint64_t kind = random_below(&run->random, 100);
    if (kind < 50 && t->count < LIVE_MAX) {
        uint64_t size =
            1 + random_below(&run->random, limits[random_below(&run->random, 4)]);
        uint64_t stream = random_below(&run->random, 3);
        bool is_private = random_below(&run->random, 3) > 0;
        uint64_t address = take_on(run, is_private ? &one : NULL, size, stream);
        if (address)
            add(t, (struct tensor){address, size, is_private});
    } else if (kind < 94 && t->count > 0) {
        size_t i = random_below(&run->random, t->count);
        give(run, t->list[i].address);
        drop(t, i);
    } else if (kind < 97) {
        dry_sim_complete_stream(run->sim, random_below(&run->random, 3));
    } else if (kind == 97) {
        assert_int_equal(dry_pool_empty_cache(run->pool), DRY_OK);
    }
}

/* Follow a restore to what the program had at the checkpoint. */
static void
follow(struct pool_run *run, struct tensors *t, const struct tensors *then,
       const struct told *told)
{
    for (size_t i = 0; i < told->freed_count; i++) {
        size_t at = find(t, told->freed[i]);
        assert_true(at < t->count && t->list[at].is_private);
        drop(t, at);
    }
    for (size_t i = 0; i < t->count; i++)
        assert_false(t->list[i].is_private);
    uint64_t addresses[LIVE_MAX];
    size_t count = 0;
    for (size_t i = 0; i < then->count; i++) {
        if (!then->list[i].is_private)
            continue;
        addresses[count++] = then->list[i].address;
        add(t, then->list[i]);
    }
    assert_int_equal(told->live_count, count);
    bool has;
    assert_int_equal(dry_pool_private_has(run->pool, one, told->live, count, &has),
                     DRY_OK);
    assert_true(has);
    assert_int_equal(dry_pool_private_has(run->pool, one, addresses, count, &has),
                     DRY_OK);
    assert_true(has);
    for (size_t i = 0; i < count; i++) {
        struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
        assert_int_equal(dry_pool_get_block(run->pool, addresses[i], &block), DRY_OK);
        assert_true(block.address == addresses[i]);
        assert_true(block.size >= t->list[find(t, addresses[i])].size);
    }
}

static int64_t
allocated(struct pool_run *run)
{
    struct dry_stats stats;
    dry_pool_get_stats(run->pool, &stats);
    return stats.allocated_bytes.all.current;
}

static int64_t
sum_of_blocks(struct pool_run *run, const struct tensors *t)
{
    int64_t sum = 0;
    for (size_t i = 0; i < t->count; i++) {
        struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
        assert_int_equal(dry_pool_get_block(run->pool, t->list[i].address, &block),
                         DRY_OK);
        sum += (int64_t)block.size;
    }
    return sum;
}

static void
run_against_model(enum dry_placement placement, const char *conf, uint64_t seed)
{
    static struct tensors t, then[3];
    struct dry_pool_checkpoint *c[3];
    struct pool_run run;
    struct told told;
    pool_run_begin(&run, placement, conf, 400 * MIB, NULL);
    random_init(&run.random, seed);
    assert_int_equal(dry_pool_open_private(run.pool, one, 0), DRY_OK);
    t.count = 0;
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 60; k++)
            step(&run, &t);
        c[i] = checkpoint(&run, one);
        then[i] = t;
    }
    for (int i = 0; i < 30; i++) {
        for (int k = 0; k < 40; k++)
            step(&run, &t);
        uint64_t which = random_below(&run.random, 3);
        restore(c[which], &told);
        follow(&run, &t, &then[which], &told);
        check(&run);
        assert_true(allocated(&run) == sum_of_blocks(&run, &t));
    }
    for (int i = 0; i < 3; i++)
        dry_pool_checkpoint_destroy(c[i]);
    pool_run_end(&run);
}

static void
pool_goes_back_as_the_model_says(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        run_against_model(DRY_PLACEMENT_TORCH, "", seed);
        run_against_model(DRY_PLACEMENT_TORCH, "max_split_size_mb:21", seed);
        run_against_model(DRY_PLACEMENT_TORCH, "expandable_segments:True", seed);
        run_against_model(DRY_PLACEMENT_PAGED, "", seed);
    }
}

/* --- one by one ---------------------------------------------------------------------------------- */

static void
with_each(void (*test)(struct pool_run *run), uint64_t capacity)
{
    static const struct {
        enum dry_placement placement;
        const char *conf;
    } kinds[] = {{DRY_PLACEMENT_TORCH, ""},
                 {DRY_PLACEMENT_TORCH, "expandable_segments:True"},
                 {DRY_PLACEMENT_PAGED, ""}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct pool_run run;
        pool_run_begin(&run, kinds[i].placement, kinds[i].conf, capacity, NULL);
        assert_int_equal(dry_pool_open_private(run.pool, one, 0), DRY_OK);
        test(&run);
        check(&run);
        pool_run_end(&run);
    }
}

/* Two graphs that share a pool: the second is recorded where the first one's scratch was. */
static void
record_a_branch(struct pool_run *run)
{
    struct told told;
    uint64_t scratch = take_on(run, &one, 4 * MIB, 1);
    uint64_t output = take_on(run, &one, 2 * MIB, 1);
    give(run, scratch);
    struct dry_pool_checkpoint *after_first = checkpoint(run, one);
    uint64_t branch = take_on(run, &one, 3 * MIB, 1);
    give(run, output); /* the tensor died; its graph is replayed, and it lives again */
    restore(after_first, &told);
    assert_int_equal(told.freed_count, 1);
    assert_true(told.freed[0] == branch);
    assert_int_equal(told.live_count, 1);
    assert_true(told.live[0] == output);
    assert_true(take_on(run, &one, 3 * MIB, 1) == branch);
    give(run, output);
    assert_int_equal(dry_pool_free(run->pool, output), DRY_ERR_ARGUMENT);
    dry_pool_checkpoint_destroy(after_first);
}

static void
branch_is_recorded_after_a_replay(void **state)
{
    (void)state;
    with_each(record_a_branch, 256 * MIB);
}

static void
leave_others_alone(struct pool_run *run)
{
    struct told told;
    bool has;
    assert_int_equal(dry_pool_open_private(run->pool, two, 0), DRY_OK);
    uint64_t a = take_on(run, NULL, 5, 0), b = take_on(run, &two, 3 * MIB, 0);
    struct dry_pool_checkpoint *c = checkpoint(run, one);
    uint64_t mine = take_on(run, &one, 5, 0);
    restore(c, &told);
    assert_int_equal(told.freed_count, 1);
    assert_true(told.freed[0] == mine);
    assert_int_equal(told.live_count, 0);
    assert_int_equal(dry_pool_private_has(run->pool, two, &b, 1, &has), DRY_OK);
    assert_true(has);
    give(run, a);
    give(run, b);
    dry_pool_checkpoint_destroy(c);
}

static void
other_pools_stay_as_they_are(void **state)
{
    (void)state;
    with_each(leave_others_alone, 256 * MIB);
}

static void
go_back_to_aligned(struct pool_run *run)
{
    struct told told;
    uint64_t address;
    assert_int_equal(dry_pool_begin_private(run->pool, one, NULL), DRY_OK);
    assert_int_equal(dry_pool_alloc(run->pool, 5, 0, &address), DRY_OK);
    assert_int_equal(dry_pool_alloc_aligned(run->pool, 5, 65536, 0, &address), DRY_OK);
    assert_int_equal(dry_pool_end_private(run->pool, one), DRY_OK);
    struct dry_pool_checkpoint *c = checkpoint(run, one);
    give(run, address);
    restore(c, &told);
    assert_int_equal(told.freed_count, 1);
    assert_int_equal(told.live_count, 2);
    assert_true(told.live[0] == address || told.live[1] == address);
    restore(c, &told); /* told by the same addresses again */
    assert_int_equal(told.freed_count, 2);
    assert_true(told.freed[0] == address || told.freed[1] == address);
    give(run, address);
    dry_pool_checkpoint_destroy(c);
}

static void
aligned_block_comes_back_by_its_address(void **state)
{
    (void)state;
    with_each(go_back_to_aligned, 256 * MIB);
}

/* --- refusals -------------------------------------------------------------------------------------- */

static void
refuse_pending(struct pool_run *run)
{
    struct told told;
    struct dry_error err;
    struct dry_pool_checkpoint *c = NULL, *before = checkpoint(run, one);
    uint64_t a = take_on(run, &one, 5, 1);
    assert_int_equal(dry_pool_record_stream(run->pool, a, 2), DRY_OK);
    struct dry_pool_checkpoint *used = checkpoint(run, one);
    give(run, a);
    assert_int_equal(dry_pool_checkpoint_private(run->pool, one, &c, &err),
                     DRY_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "waits for another stream"));
    assert_null(c);
    assert_int_equal(try_restore(used, &told, &err), DRY_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "waits for another stream"));
    assert_int_equal(told.freed_count + told.live_count, 0);
    restore(before, &told); /* nothing is wanted where the block is */
    dry_sim_complete_stream(run->sim, 2);
    take_on(run, &one, 5, 1);
    restore(used, &told);
    assert_int_equal(told.live_count, 1);
    assert_true(told.live[0] == a);
    dry_pool_checkpoint_destroy(before);
    dry_pool_checkpoint_destroy(used);
}

static void
pending_block_is_refused(void **state)
{
    (void)state;
    with_each(refuse_pending, 256 * MIB);
}

static void
refuse_gone_pool(struct pool_run *run)
{
    struct told told;
    struct dry_error err;
    struct dry_pool_checkpoint *c = NULL;
    assert_int_equal(dry_pool_checkpoint_private(run->pool, two, &c, &err),
                     DRY_ERR_ARGUMENT);
    assert_int_equal(
        dry_pool_checkpoint_private(run->pool, (struct dry_pool_id){0, 0}, &c, &err),
        DRY_ERR_ARGUMENT);
    uint64_t a = take_on(run, &one, 3 * MIB, 0);
    c = checkpoint(run, one);
    give(run, a);
    assert_int_equal(dry_pool_release_private(run->pool, one), DRY_OK);
    assert_int_equal(try_restore(c, &told, &err), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pool_empty_cache(run->pool), DRY_OK);
    assert_int_equal(dry_pool_open_private(run->pool, one, 0), DRY_OK);
    assert_int_equal(try_restore(c, &told, &err), DRY_ERR_ARGUMENT);
    assert_int_equal(told.freed_count + told.live_count, 0);
    struct dry_pool_checkpoint *none = NULL;
    dry_pool_checkpoint_destroy(none);
    dry_pool_checkpoint_destroy(c);
}

static void
pool_that_is_gone_is_refused(void **state)
{
    (void)state;
    with_each(refuse_gone_pool, 256 * MIB);
}

/* --- paged alone ------------------------------------------------------------------------------------ */

/* The pool lends before an OOM, but not while it has a checkpoint. */
static void
pages_stay_while_there_is_a_checkpoint(void **state)
{
    (void)state;
    struct pool_run run;
    struct told told;
    pool_run_begin(&run, DRY_PLACEMENT_PAGED, "", 64 * MIB, NULL);
    assert_int_equal(dry_pool_open_private(run.pool, one, DRY_POOL_USE_ON_OOM), DRY_OK);
    uint64_t a[2] = {take_on(&run, &one, 20 * MIB, 1), take_on(&run, &one, 20 * MIB, 1)};
    struct dry_pool_checkpoint *c = checkpoint(&run, one);
    give(&run, a[0]);
    give(&run, a[1]);
    dry_sim_complete_stream(run.sim, 1);
    assert_int_equal(take_on(&run, NULL, 50 * MIB, 0), 0); /* out of memory */
    restore(c, &told);
    assert_int_equal(told.live_count, 2);
    give(&run, a[0]);
    give(&run, a[1]);
    dry_pool_checkpoint_destroy(c);
    assert_true(take_on(&run, NULL, 50 * MIB, 0) != 0);
    pool_run_end(&run);
}

/* Another stream has the place, at work or free: it is waited for. */
static void
foreign_stream_is_waited_for(void **state)
{
    (void)state;
    for (int is_used = 0; is_used < 2; is_used++) {
        struct pool_run run;
        struct told told;
        struct dry_error err;
        pool_run_begin(&run, DRY_PLACEMENT_PAGED, "", 64 * MIB, NULL);
        assert_int_equal(dry_pool_open_private(run.pool, one, 0), DRY_OK);
        uint64_t a = take_on(&run, &one, 40 * MIB, 1);
        struct dry_pool_checkpoint *c = checkpoint(&run, one);
        give(&run, a);
        dry_sim_complete_stream(run.sim, 1);
        uint64_t b = take_on(&run, &one, 40 * MIB, 2);
        assert_true(b == a);
        if (!is_used)
            give(&run, b);
        struct dry_pool_counters before = DRY_INIT(struct dry_pool_counters);
        struct dry_pool_counters after = DRY_INIT(struct dry_pool_counters);
        dry_pool_get_counters(run.pool, &before);
        assert_int_equal(dry_pool_begin_capture(run.pool, NULL), DRY_OK);
        assert_int_equal(try_restore(c, &told, &err), DRY_ERR_ARGUMENT);
        assert_int_equal(told.freed_count + told.live_count, 0);
        assert_int_equal(dry_pool_end_capture(run.pool), DRY_OK);
        restore(c, &told);
        dry_pool_get_counters(run.pool, &after);
        assert_true(after.events_recorded == before.events_recorded + 1);
        assert_int_equal(told.live_count, 1);
        check(&run);
        dry_pool_checkpoint_destroy(c);
        pool_run_end(&run);
    }
}

/* --- history, memory --------------------------------------------------------------------------------- */

static uint32_t
seven(void *self)
{
    ++*(int *)self;
    return 7;
}

struct seen {
    enum dry_action actions[32];
    uint32_t contexts[32];
    size_t count;
};

static enum dry_status
see(void *self, const struct dry_pool_event *event)
{
    struct seen *seen = self;
    assert_true(seen->count < 32);
    seen->contexts[seen->count] = event->context;
    seen->actions[seen->count++] = event->action;
    return DRY_OK;
}

/* PyTorch's: frees of what is in use, an alloc for each former block, frees of those free then. */
static void
events_are_those_of_pytorch(void **state)
{
    (void)state;
    struct pool_run run;
    struct told told;
    struct seen seen = {0};
    int asked = 0;
    pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", 64 * MIB, NULL);
    assert_int_equal(dry_pool_open_private(run.pool, one, 0), DRY_OK);
    uint64_t a = take_on(&run, &one, 1000, 0), b = take_on(&run, &one, 1000, 0);
    give(&run, a);
    struct dry_pool_checkpoint *c = checkpoint(&run, one); /* free, b, free */
    struct dry_pool_history_options o;
    dry_pool_history_options_init(&o);
    o.get_context = seven;
    o.context_self = &asked;
    assert_int_equal(dry_pool_record_history(run.pool, &o), DRY_OK);
    restore(c, &told);
    assert_int_equal(asked, 1);
    assert_int_equal(dry_pool_walk_history(run.pool, see, &seen), DRY_OK);
    static const enum dry_action wanted[] = {
        DRY_ACTION_FREE_REQUESTED, DRY_ACTION_FREE_COMPLETED, DRY_ACTION_ALLOC,
        DRY_ACTION_ALLOC,          DRY_ACTION_ALLOC,          DRY_ACTION_FREE_REQUESTED,
        DRY_ACTION_FREE_COMPLETED, DRY_ACTION_FREE_REQUESTED, DRY_ACTION_FREE_COMPLETED};
    assert_int_equal(seen.count, sizeof wanted / sizeof *wanted);
    for (size_t i = 0; i < seen.count; i++) {
        assert_int_equal(seen.actions[i], wanted[i]);
        assert_int_equal(seen.contexts[i], i < 2 ? DRY_NONE : 7);
    }
    struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
    assert_int_equal(dry_pool_get_block(run.pool, b, &block), DRY_OK);
    assert_int_equal(block.context, 7);
    assert_int_equal(block.requested, 1024); /* PyTorch asks for the block's size again */
    dry_pool_checkpoint_destroy(c);
    pool_run_end(&run);
}

static bool
tortured(enum dry_placement placement, size_t n)
{
    struct failing_memory fm;
    struct dry_memory memory = failing_memory_init(&fm, SIZE_MAX);
    struct pool_run run;
    struct told told;
    struct dry_pool_checkpoint *c = NULL;
    uint64_t a[40];
    pool_run_begin(&run, placement, "", 256 * MIB, &memory);
    assert_int_equal(dry_pool_open_private(run.pool, one, 0), DRY_OK);
    for (uint64_t i = 0; i < 40; i++)
        a[i] = take_on(&run, &one, 3000 * (i + 1), i % 3);
    fm.left = n;
    enum dry_status status = dry_pool_checkpoint_private(run.pool, one, &c, NULL);
    for (size_t i = 0; i < 40; i += 2)
        give(&run, a[i]);
    if (status == DRY_OK) {
        status = try_restore(c, &told, NULL);
        assert_int_equal(told.live_count, status == DRY_OK ? 40 : 0);
        assert_int_equal(told.freed_count, status == DRY_OK ? 20 : 0);
    }
    bool failed = fm.failed;
    assert_int_equal(status, failed ? DRY_ERR_MEMORY : DRY_OK);
    fm.left = SIZE_MAX;
    fm.failed = false;
    check(&run);
    for (size_t i = status == DRY_OK ? 0 : 1; i < 40; i += status == DRY_OK ? 1 : 2)
        give(&run, a[i]);
    dry_pool_checkpoint_destroy(c);
    pool_run_end(&run);
    failing_memory_finish(&fm);
    return failed;
}

static void
no_memory_changes_nothing(void **state)
{
    (void)state;
    for (size_t n = 0; tortured(DRY_PLACEMENT_TORCH, n);)
        n++;
    for (size_t n = 0; tortured(DRY_PLACEMENT_PAGED, n);)
        n++;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pool_goes_back_as_the_model_says),
        cmocka_unit_test(branch_is_recorded_after_a_replay),
        cmocka_unit_test(other_pools_stay_as_they_are),
        cmocka_unit_test(aligned_block_comes_back_by_its_address),
        cmocka_unit_test(pending_block_is_refused),
        cmocka_unit_test(pool_that_is_gone_is_refused),
        cmocka_unit_test(pages_stay_while_there_is_a_checkpoint),
        cmocka_unit_test(foreign_stream_is_waited_for),
        cmocka_unit_test(events_are_those_of_pytorch),
        cmocka_unit_test(no_memory_changes_nothing),
    };
    return cmocka_run_group_tests_name("pool_checkpoint", tests, NULL, NULL);
}
