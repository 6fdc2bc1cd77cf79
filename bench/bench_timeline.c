/* SPDX-License-Identifier: Apache-2.0 */

/*
 * bench_timeline FILE RUNS: measure how fast a timeline is made, and how fast it answers.
 *
 * The output is one line of JSON for each measurement, with the seconds of each run:
 *
 *     make          dry_timeline_create, beside the replay it rests on
 *     state         the state at random moments
 *     curve         all events in 1600 columns; each of the four curves
 *     curve zoomed  1 % of the events, at random places
 *     curve time    all events, by time
 *     draw          the live allocations in 1600 columns, as long as the highest is 600
 *     draw zoomed   1 % of the events, at random places
 *
 * "bytes" is what the timeline keeps, "peak_bytes" the most it held while it was made,
 * both as asked of the allocator; "rss_bytes" is the process's, with trace and replay.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <drystone/drystone.h>

#define COLUMN_COUNT 1600u
#define ROW_COUNT 600u
#define STATE_COUNT 400
#define ZOOM 100u

struct bench {
    struct dry_trace *trace;
    struct dry_replay *replay;
    struct dry_timeline *timeline;
    const struct dry_timeline_view *view;
    struct dry_curve_column columns[COLUMN_COUNT];
    uint64_t random;
    double *seconds;
    size_t count;
};

/* --- the machine -------------------------------------------------------------------------- */

struct counted {
    size_t bytes, peak_bytes;
};

static void *
resize(void *self, void *old, size_t old_bytes, size_t new_bytes)
{
    struct counted *c = self;
    c->bytes = c->bytes - old_bytes + new_bytes;
    c->peak_bytes = c->bytes > c->peak_bytes ? c->bytes : c->peak_bytes;
    if (new_bytes > 0)
        return realloc(old, new_bytes);
    free(old);
    return NULL;
}

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t
rss_bytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_maxrss * 1024;
}

/* splitmix64 */
static uint64_t
random_below(struct bench *b, uint64_t limit)
{
    uint64_t x = b->random += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (x ^ x >> 31) % limit;
}

static void
need(enum dry_status status, const struct dry_error *err)
{
    if (status == DRY_OK)
        return;
    fprintf(stderr, "bench_timeline: %s\n", err->text);
    exit(1);
}

static enum dry_status
read_file(void *self, void *buffer, size_t capacity, size_t *got, struct dry_error *err)
{
    FILE *file = self;
    *got = fread(buffer, 1, capacity, file);
    if (!ferror(file))
        return DRY_OK;
    *err = (struct dry_error){.status = DRY_ERR_SYSTEM, .text = "cannot read"};
    return DRY_ERR_SYSTEM;
}

static struct dry_trace *
read_trace(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "bench_timeline: %s: %s\n", path, strerror(errno));
        exit(1);
    }
    struct dry_source source = {read_file, file};
    struct dry_trace *trace;
    struct dry_error err;
    need(dry_trace_read(&source, NULL, &trace, &err), &err);
    fclose(file);
    return trace;
}

/* --- what is measured --------------------------------------------------------------------- */

static void
note(struct bench *b, double begin)
{
    b->seconds[b->count++] = now() - begin;
}

static void
print_seconds(struct bench *b, const char *what)
{
    printf("{\"what\":\"%s\",\"seconds\":[", what);
    for (size_t i = 0; i < b->count; i++)
        printf("%s%.6f", i ? "," : "", b->seconds[i]);
    printf("]}\n");
    b->count = 0;
}

static void
measure_make(struct bench *b, long runs)
{
    struct counted counted = {0};
    struct dry_memory memory = {resize, &counted};
    struct dry_timeline_options options;
    struct dry_error err;
    dry_timeline_options_init(&options);
    options.memory = &memory;
    uint64_t rss = 0;
    for (long run = 0; run < runs; run++) {
        double begin = now();
        need(dry_timeline_create(b->replay, &options, &b->timeline, &err), &err);
        note(b, begin);
        rss = rss ? rss : rss_bytes();
        if (run + 1 < runs)
            dry_timeline_destroy(b->timeline);
    }
    b->view = dry_timeline_get_view(b->timeline);
    printf("{\"what\":\"memory\",\"events\":%u,\"bytes\":%zu,\"peak_bytes\":%zu,"
           "\"rss_bytes\":%llu}\n",
           b->view->event_count, counted.bytes, counted.peak_bytes,
           (unsigned long long)rss);
    print_seconds(b, "make");
    struct dry_timeline *keep = b->timeline;
    need(dry_timeline_create(b->replay, NULL, &b->timeline, &err), &err);
    dry_timeline_destroy(keep); /* its hooks go with this function */
    b->view = dry_timeline_get_view(b->timeline);
}

static void
measure_states(struct bench *b)
{
    for (int i = 0; i < STATE_COUNT; i++) {
        uint32_t moment = (uint32_t)random_below(b, b->view->dump_moment + UINT64_C(1));
        struct dry_state *state;
        struct dry_error err;
        double begin = now();
        need(dry_state_create(b->timeline, moment, &state, &err), &err);
        note(b, begin);
        dry_state_destroy(state);
    }
    print_seconds(b, "state");
}

static struct dry_axis
axis_of(struct bench *b, int is_zoomed, int is_time)
{
    uint32_t all = b->view->dump_moment + 1;
    uint32_t length = is_zoomed ? all / ZOOM + 1 : all;
    uint32_t from = (uint32_t)random_below(b, (uint64_t)all - length + 1);
    return (struct dry_axis){.from = from,
                             .to = from + length,
                             .column_count = COLUMN_COUNT,
                             .is_time = (uint32_t)is_time};
}

static void
measure_curves(struct bench *b, const char *what, int is_zoomed, int is_time, long runs)
{
    for (long run = 0; run < runs * DRY_CURVE_COUNT; run++) {
        struct dry_axis axis = axis_of(b, is_zoomed, is_time);
        struct dry_error err;
        enum dry_curve curve = (enum dry_curve)(run % DRY_CURVE_COUNT);
        double begin = now();
        need(dry_timeline_curve(b->timeline, curve, &axis, b->columns, &err), &err);
        note(b, begin);
    }
    print_seconds(b, what);
}

static void
measure_drawings(struct bench *b, const char *what, int is_zoomed, long runs)
{
    const struct dry_drawing_bounds bounds = {
        .min_bytes = b->view->peaks[DRY_CURVE_ACTIVE].bytes / ROW_COUNT,
        .run_max = SIZE_MAX};
    for (long run = 0; run < runs * 2; run++) {
        struct dry_axis axis = axis_of(b, is_zoomed, 0);
        enum dry_stacking stacking =
            run % 2 ? DRY_STACKING_BIRTH : DRY_STACKING_LONG_LIVED;
        struct dry_drawing *drawing;
        struct dry_error err;
        double begin = now();
        need(dry_drawing_create(b->timeline, &axis, stacking, &bounds, &drawing, &err),
             &err);
        note(b, begin);
        dry_drawing_destroy(drawing);
    }
    print_seconds(b, what);
}

int
main(int argc, char **argv)
{
    static struct bench b;
    long runs = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
    if (runs < 1 || runs > 1000) {
        fprintf(stderr, "bench_timeline FILE RUNS\n");
        return 2;
    }
    b.seconds = malloc((size_t)(STATE_COUNT + runs * DRY_CURVE_COUNT) * sizeof(double));
    if (!b.seconds)
        return 1;
    b.trace = read_trace(argv[1]);
    struct dry_error err;
    need(dry_replay_create(b.trace, NULL, &b.replay, &err), &err);
    measure_make(&b, runs);
    measure_states(&b);
    measure_curves(&b, "curve", 0, 0, runs);
    measure_curves(&b, "curve zoomed", 1, 0, runs);
    measure_curves(&b, "curve time", 0, 1, runs);
    measure_drawings(&b, "draw", 0, runs);
    measure_drawings(&b, "draw zoomed", 1, runs);
    dry_timeline_destroy(b.timeline);
    dry_replay_destroy(b.replay);
    dry_trace_destroy(b.trace);
    free(b.seconds);
    return 0;
}
