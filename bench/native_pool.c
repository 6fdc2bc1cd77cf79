/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of <drystone/pool.h> that the benches need, by PyTorch's own allocator
 * (test/native). Both bench_pool and bench_recorded are linked with this before the library,
 * and measure PyTorch as they do a pool.
 *
 * Only the torch placement can be had, and one pool at a time.
 */
#include <string.h>

#include <drystone/pool.h>

#include "../test/native/native.h"

static int is_started;

void
dry_pool_options_init_sized(struct dry_pool_options *options, size_t struct_size)
{
    *options = (struct dry_pool_options){.struct_size = struct_size};
}

enum dry_status
dry_pool_create(const struct dry_pool_options *options, struct dry_pool **pool,
                struct dry_error *err)
{
    static const char why[] = "PyTorch has other rules";
    if (options->placement != DRY_PLACEMENT_TORCH) {
        if (err)
            memcpy(err->text, why, sizeof why);
        return DRY_ERR_UNSUPPORTED;
    }
    native_set_device(options->device);
    if (!is_started && native_start("") != DRY_OK)
        return DRY_ERR_SYSTEM;
    is_started = 1;
    native_reset_peaks();
    *pool = (struct dry_pool *)&is_started;
    return DRY_OK;
}

/* End the pool. All blocks are free by now: their memory goes back to the device. */
void
dry_pool_destroy(struct dry_pool *pool)
{
    (void)pool;
    native_empty_cache();
}

enum dry_status
dry_pool_alloc(struct dry_pool *pool, uint64_t size, uint64_t stream, uint64_t *address)
{
    (void)pool;
    return native_alloc(size, stream * 8, address);
}

enum dry_status
dry_pool_free(struct dry_pool *pool, uint64_t address)
{
    (void)pool;
    native_free(address);
    return DRY_OK;
}

void
dry_pool_get_stats(struct dry_pool *pool, struct dry_stats *stats)
{
    (void)pool;
    memset(stats, 0, sizeof *stats);
    native_get_stats(stats);
}

/* PyTorch has no counters. */
enum dry_status
dry_pool_get_counters(struct dry_pool *pool, struct dry_pool_counters *counters)
{
    (void)pool;
    *counters = DRY_INIT(struct dry_pool_counters);
    return DRY_OK;
}
