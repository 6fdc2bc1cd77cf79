/* SPDX-License-Identifier: Apache-2.0 */

/*
 * pinned: put a batch into page-locked memory, and print where the pinned bytes are.
 *
 *     cc pinned.c $(pkg-config --cflags --libs drystone)
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <drystone/pinned.h>

static void
print_figure(void *self, const char *key, int64_t value)
{
    (void)self;
    if (value)
        printf("%-28s%12" PRId64 "\n", key, value);
}

int
main(void)
{
    struct dry_pinned_options options;
    struct dry_pinned *pinned = NULL;
    struct dry_pinned_stats stats = DRY_INIT(struct dry_pinned_stats);
    struct dry_error err;
    void *batch;
    dry_pinned_options_init(&options); /* a GPU's driver pins, or mlock */
    options.arena_bytes = UINT64_C(2) << 20;
    if (dry_pinned_create(&options, &pinned, &err) != DRY_OK) {
        fprintf(stderr, "pinned: %s\n", err.text);
        return 1;
    }
    if (dry_pinned_alloc(pinned, 1200000, DRY_PINNED_NO_STREAM, &batch) != DRY_OK) {
        printf("no page-locked memory here: see ulimit -l\n");
    } else {
        memset(batch, 1, 1200000);
        dry_pinned_get_stats(pinned, &stats);
        dry_pinned_stats_visit(&stats, print_figure, NULL);
        dry_pinned_free(pinned, batch);
    }
    dry_pinned_destroy(pinned);
    return 0;
}
