/* SPDX-License-Identifier: Apache-2.0 */

/*
 * print_categories FILE: every allocation of a snapshot's busiest device, with what the library
 * takes it for, one a line: "begin end address size requested category confidence pass evidence".
 * For dryrun/categories.py, which knows the truth. Exit: 0; 2: no file; 3: it cannot be read.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <drystone/categories.h>

static enum dry_status
read_file(void *self, void *buffer, size_t capacity, size_t *got, struct dry_error *err)
{
    FILE *file = self;
    *got = fread(buffer, 1, capacity, file);
    if (*got || !ferror(file))
        return DRY_OK;
    *err = (struct dry_error){.status = DRY_ERR_SYSTEM, .text = "cannot read"};
    return DRY_ERR_SYSTEM;
}

static void
print_all(const struct dry_timeline_view *v, const struct dry_category_guess *guesses)
{
    for (uint32_t i = 0; i < v->allocation_count; i++) {
        const struct dry_allocation *a = &v->allocations[i];
        const struct dry_category_guess *g = &guesses[i];
        printf("%" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64
               " %s %u %s %s\n",
               a->begin, a->end, a->address, a->size, a->requested,
               dry_category_name((enum dry_category)g->category), g->confidence,
               dry_pass_name((enum dry_pass)g->pass),
               dry_category_evidence_name((enum dry_category_evidence)g->evidence));
    }
}

static enum dry_status
judge(FILE *file, struct dry_error *err)
{
    struct dry_source source = {read_file, file};
    struct dry_trace *trace = NULL;
    struct dry_replay *replay = NULL;
    struct dry_timeline *timeline = NULL;
    struct dry_steps *steps = NULL;
    struct dry_categories *categories = NULL;
    enum dry_status status = dry_trace_read(&source, NULL, &trace, err);
    if (status == DRY_OK)
        status = dry_replay_create(trace, NULL, &replay, err);
    if (status == DRY_OK)
        status = dry_timeline_create(replay, NULL, &timeline, err);
    if (status == DRY_OK)
        status = dry_steps_create(timeline, NULL, &steps, err);
    if (status == DRY_OK)
        status = dry_categories_create(timeline, steps, NULL, &categories, err);
    if (status == DRY_OK)
        print_all(dry_timeline_get_view(timeline), dry_categories_get(categories));
    dry_categories_destroy(categories);
    dry_steps_destroy(steps);
    dry_timeline_destroy(timeline);
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
    return status;
}

int
main(int argc, char **argv)
{
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    struct dry_error err;
    if (!file) {
        fprintf(stderr, "print_categories FILE: %s\n", strerror(errno));
        return 2;
    }
    enum dry_status status = judge(file, &err);
    fclose(file);
    if (status != DRY_OK)
        fprintf(stderr, "print_categories: %s\n", err.text);
    return status == DRY_OK ? 0 : 3;
}
