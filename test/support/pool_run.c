/* SPDX-License-Identifier: Apache-2.0 */
#include "support/pool_run.h"

#include "support/cmocka.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

void
pool_run_begin(struct pool_run *run, enum dry_placement placement, const char *conf,
               uint64_t capacity_bytes, const struct dry_memory *memory)
{
    struct dry_sim_options sim;
    struct dry_pool_options pool;
    struct dry_error err;
    *run = (struct pool_run){0};
    dry_sim_options_init(&sim);
    sim.capacity_bytes = capacity_bytes;
    assert_int_equal(dry_sim_create(&sim, &run->sim, &err), DRY_OK);
    dry_pool_options_init(&pool);
    pool.device = dry_sim_get_device(run->sim);
    pool.placement = placement;
    pool.conf = conf;
    pool.memory = memory;
    if (dry_pool_create(&pool, &run->pool, &err) != DRY_OK)
        fail_msg("%s", err.text);
}

static uint32_t
get_context(void *self)
{
    const struct pool_run *run = self;
    return run->request_count % POOL_RUN_CONTEXTS;
}

void
pool_run_record(struct pool_run *run, size_t entries)
{
    struct dry_pool_history_options options;
    dry_pool_history_options_init(&options);
    options.entries = entries;
    options.get_context = get_context;
    options.context_self = run;
    assert_int_equal(dry_pool_record_history(run->pool, &options), DRY_OK);
}

size_t
pool_run_frames(void *self, uint32_t context, struct dry_pool_frame *frames,
                size_t capacity)
{
    static const struct dry_pool_frame stack[] = {
        {"allocate", "model.py", 12},
        {"forward", "model.py", 40},
        {"step", "train.py", 7},
        {"<module>", "train.py", 99},
    };
    (void)self;
    size_t count = context % 5;
    for (size_t i = 0; i < count && i < capacity; i++) {
        frames[i] = stack[i];
        frames[i].line += context;
    }
    return count;
}

static void
alloc(struct pool_run *run)
{
    static const uint64_t limits[] = {2 * KIB, 300 * KIB, 3 * MIB, 14 * MIB};
    uint64_t size = 1 + random_below(&run->random, limits[random_below(&run->random, 4)]);
    uint64_t stream = run->is_simple ? 0 : random_below(&run->random, 3);
    uint64_t address;
    run->request_count++;
    enum dry_status status = dry_pool_alloc(run->pool, size, stream, &address);
    if (status == DRY_ERR_NO_SPACE) {
        run->ooms++;
        return;
    }
    assert_int_equal(status, DRY_OK);
    run->live[run->live_count++] = address;
}

static void
give(struct pool_run *run)
{
    size_t i = random_below(&run->random, run->live_count);
    if (!run->is_simple && random_below(&run->random, 4) == 0) {
        uint64_t stream = random_below(&run->random, 3);
        assert_int_equal(dry_pool_record_stream(run->pool, run->live[i], stream), DRY_OK);
    }
    assert_int_equal(dry_pool_free(run->pool, run->live[i]), DRY_OK);
    run->live[i] = run->live[--run->live_count];
}

/* One request in a private pool, which stays open to the end. */
static void
alloc_in_private(struct pool_run *run)
{
    struct dry_pool_id id = {0, 1 + random_below(&run->random, 2)};
    enum dry_status status = dry_pool_begin_private(run->pool, id, NULL);
    if (status == DRY_ERR_ARGUMENT) {
        assert_int_equal(dry_pool_open_private(run->pool, id, 0), DRY_OK);
        status = dry_pool_begin_private(run->pool, id, NULL);
    }
    assert_int_equal(status, DRY_OK);
    alloc(run);
    assert_int_equal(dry_pool_end_private(run->pool, id), DRY_OK);
}

void
pool_run_steps(struct pool_run *run, uint64_t seed, size_t count)
{
    random_init(&run->random, seed);
    for (size_t i = 0; i < count; i++) {
        uint64_t kind = random_below(&run->random, 100);
        if (kind < 45 && run->live_count < POOL_RUN_BLOCKS_MAX)
            alloc(run);
        else if (kind < 92 && run->live_count > 0)
            give(run);
        else if (kind < 95 && !run->is_simple && run->live_count < POOL_RUN_BLOCKS_MAX)
            alloc_in_private(run);
        else if (kind < 98)
            dry_sim_complete_stream(run->sim, random_below(&run->random, 3));
        else if (kind == 98)
            assert_int_equal(dry_pool_empty_cache(run->pool), DRY_OK);
    }
}

void
pool_run_end(struct pool_run *run)
{
    dry_pool_destroy(run->pool);
    dry_sim_destroy(run->sim);
}
