/* SPDX-License-Identifier: Apache-2.0 */

/*
 * pool: run a caching allocator on the host's own memory. On a GPU only the device
 * differs: dry_cuda_open() in <drystone/cuda.h>.
 *
 *     cc pool.c $(pkg-config --cflags --libs drystone)
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <drystone/host_device.h>
#include <drystone/pool.h>

int
main(void)
{
    struct dry_host_device *host = NULL;
    struct dry_pool_options options;
    struct dry_pool *pool = NULL;
    struct dry_stats stats;
    struct dry_error err = {.text = ""};
    uint64_t address;
    dry_pool_options_init(&options);
    enum dry_status status = dry_host_device_create(NULL, &host, &err);
    if (status != DRY_OK)
        goto done;
    options.device = dry_host_device_get_device(host);
    status = dry_pool_create(&options, &pool, &err);
    if (status != DRY_OK)
        goto done;
    for (uint64_t size = 1000; size < 10000000; size *= 3) { /* a block at a time */
        status = dry_pool_alloc(pool, size, 0, &address);
        if (status != DRY_OK)
            goto done;
        memset((void *)(uintptr_t)address, 1, size);
        dry_pool_free(pool, address);
    }
    dry_pool_get_stats(pool, &stats);
    printf("%" PRId64 " blocks, %" PRId64 " bytes reserved at most\n",
           stats.allocation.all.allocated, stats.reserved_bytes.all.peak);
done:
    if (status != DRY_OK) /* an alloc has no text, only its status */
        fprintf(stderr, "pool: %s\n", err.text[0] ? err.text : dry_status_name(status));
    dry_pool_destroy(pool);
    dry_host_device_destroy(host);
    return status != DRY_OK;
}
