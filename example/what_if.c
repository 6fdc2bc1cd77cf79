/* SPDX-License-Identifier: Apache-2.0 */

/*
 * what_if FILE CONF: print how much PyTorch would have reserved under these settings.
 *
 *     cc what_if.c $(pkg-config --cflags --libs drystone)
 */
#include <inttypes.h>
#include <stdio.h>

#include <drystone/drystone.h>

static enum dry_status
read_file(void *self, void *buffer, size_t capacity, size_t *got, struct dry_error *err)
{
    (void)err;
    *got = fread(buffer, 1, capacity, self);
    return DRY_OK; /* the reader refuses a short file */
}

static int
fail(const struct dry_error *err)
{
    fprintf(stderr, "what_if: %s\n", err->text);
    return 1;
}

int
main(int argc, char **argv)
{
    FILE *file = argc == 3 ? fopen(argv[1], "rb") : NULL;
    if (!file) {
        fprintf(stderr, "usage: what_if FILE CONF\n");
        return 2;
    }
    struct dry_source source = {.read = read_file, .self = file};
    struct dry_trace *trace = NULL;
    struct dry_replay *replay = NULL;
    struct dry_run_options options;
    struct dry_run run;
    struct dry_error err;
    dry_run_options_init(&options);
    options.conf = argv[2];
    enum dry_status status = dry_trace_read(&source, NULL, &trace, &err);
    if (status == DRY_OK)
        status = dry_replay_create(trace, NULL, &replay, &err);
    if (status == DRY_OK)
        status = dry_replay_run(replay, &options, &run, &err);
    if (status == DRY_OK)
        printf("%" PRIu64 " bytes reserved at the peak%s\n", run.reserved_peak_bytes,
               dry_replay_get_check(replay)->exact ? "" : " (not checked)");
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
    fclose(file);
    return status == DRY_OK ? 0 : fail(&err);
}
