/* SPDX-License-Identifier: Apache-2.0 */

/*
 * pool_snapshot PLACEMENT CONF SEED OUT: run a made-up program on a pool over the simulated
 * device and write what the pool remembers as a snapshot. On standard output what the pool
 * says of itself, a line each: reserved, allocated, active, requested, entries. For
 * golden/pool_viz.py. Exit: 0; 2 for a wrong call.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/pool_run.h"

#define MIB (UINT64_C(1) << 20)

static enum dry_status
write_file(void *self, const void *bytes, size_t count, struct dry_error *err)
{
    (void)err;
    return fwrite(bytes, 1, count, self) == count ? DRY_OK : DRY_ERR_SYSTEM;
}

static enum dry_status
count_entry(void *self, const struct dry_pool_event *event)
{
    size_t *count = self;
    (void)event;
    ++*count;
    return DRY_OK;
}

static int
write_snapshot(struct pool_run *run, FILE *file)
{
    struct dry_pool_trace_options options;
    struct dry_trace *trace;
    struct dry_error err = {.text = "cannot write"};
    struct dry_sink sink = {write_file, file};
    dry_pool_trace_options_init(&options);
    options.get_frames = pool_run_frames;
    enum dry_status status = dry_trace_from_pool(run->pool, &options, &trace, &err);
    if (status == DRY_OK) {
        status = dry_trace_write(trace, &sink, &err);
        dry_trace_destroy(trace);
    }
    if (status != DRY_OK)
        fprintf(stderr, "pool_snapshot: %s\n", err.text);
    return status == DRY_OK ? 0 : 1;
}

static int
print_sums(struct pool_run *run)
{
    struct dry_stats stats;
    size_t entries = 0;
    dry_pool_get_stats(run->pool, &stats);
    if (dry_pool_walk_history(run->pool, count_entry, &entries) != DRY_OK)
        return 1;
    printf("reserved %" PRId64 "\nallocated %" PRId64 "\nactive %" PRId64
           "\nrequested %" PRId64 "\nentries %zu\n",
           stats.reserved_bytes.all.current, stats.allocated_bytes.all.current,
           stats.active_bytes.all.current, stats.requested_bytes.all.current, entries);
    return 0;
}

int
main(int argc, char **argv)
{
    FILE *file = argc == 5 ? fopen(argv[4], "wb") : NULL;
    if (!file)
        return 2;
    bool is_torch = strcmp(argv[1], "torch") == 0;
    struct pool_run run;
    pool_run_begin(&run, is_torch ? DRY_PLACEMENT_TORCH : DRY_PLACEMENT_PAGED, argv[2],
                   1024 * MIB, NULL);
    pool_run_record(&run, 100000);
    pool_run_steps(&run, strtoull(argv[3], NULL, 10), 2000);
    int failed = write_snapshot(&run, file);
    failed |= fclose(file) != 0;
    failed |= print_sums(&run);
    pool_run_end(&run);
    return failed;
}
