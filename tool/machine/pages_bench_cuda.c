/* SPDX-License-Identifier: Apache-2.0 */
/* Measure pinning: the part of pages_bench.h that needs a driver. A pinned cache is
   filled, then cleared; times are scaled to the benchmark's bytes. */
#include "machine/pages_bench.h"

/* More memory does not improve the figure, and pinning blocks the driver's other
   users. */
#define PIN_BYTES_MAX (UINT64_C(1) << 30)
/* Arenas are multiples of this size on all machines; smaller ones are rounded up. */
#define UNIT_BYTES (UINT64_C(2) << 20)

static bool
open_driver(const struct dry_pages_size *size, uint64_t bytes, struct dry_pinned **pinned)
{
    struct dry_pinned_options options;
    struct dry_error err;
    dry_pinned_options_init(&options);
    options.backend = DRY_PINNED_CUDA;
    options.arena_bytes = bytes;
    options.thread_caches = false;
    options.page_kind = size->kind;
    options.page_bytes = size->kind == DRY_PAGES_POOL ? size->page_bytes : 0;
    options.page_policy = DRY_PAGES_STRICT;
    return dry_pinned_create(&options, pinned, &err) == DRY_OK;
}

void
bench_open_driver(struct bench *bench)
{
    static const struct dry_pages_size base = {.kind = DRY_PAGES_BASE};
    if (!open_driver(&base, UNIT_BYTES, &bench->driver))
        bench->driver = NULL;
}

void
bench_measure_pinning(const struct bench *bench, const struct dry_pages_size *size,
                      struct bench_pages *round)
{
    uint64_t bytes = bench->bytes < PIN_BYTES_MAX ? bench->bytes : PIN_BYTES_MAX;
    struct dry_pinned *pinned;
    struct dry_pinned_stats stats = DRY_INIT(struct dry_pinned_stats);
    struct dry_error err;
    bytes -= bytes % UNIT_BYTES;
    if (!bench->driver || !open_driver(size, bytes, &pinned))
        return;
    double begin = bench_now_ns();
    if (dry_pinned_warm(pinned, bytes, false, &err) == DRY_OK) {
        double pin_ns = bench_now_ns() - begin;
        dry_pinned_get_stats(pinned, &stats);
        begin = bench_now_ns();
        if (stats.allocated_bytes.current > 0 && dry_pinned_clear(pinned) == DRY_OK) {
            double scaled = (double)bench->bytes / (double)stats.allocated_bytes.current;
            round->unpin_ns = (bench_now_ns() - begin) * scaled;
            round->pin_ns = pin_ns * scaled;
        }
    }
    dry_pinned_destroy(pinned);
}
