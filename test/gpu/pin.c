/* SPDX-License-Identifier: Apache-2.0 */
#include "pin.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <drystone/pinned.h>

#include "host/pinned/pin_make.h"

#define MIB (UINT64_C(1) << 20)
#define ROUNDS 3
#define LATENCIES_MAX 65536

static uint64_t
now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static enum dry_status
make(const struct gpu_pin *p, enum dry_pages_kind kind, uint32_t thread_count,
     struct dryi_pin *pin)
{
    const struct dryi_pin_cuda_options o = {
        .pages = {.kind = kind, .policy = DRY_PAGES_STRICT, .thread_count = thread_count},
        .library = p->library,
        .device = p->ordinal,
    };
    return dryi_pin_make_cuda(&o, pin, NULL);
}

/* --- checks ----------------------------------------------------------------------------- */

#define NEED(condition)                                                                  \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            printf("  line %d: %s\n", __LINE__, #condition);                             \
            return 0;                                                                    \
        }                                                                                \
    } while (0)

#define BYTES (4 * MIB)

/* There and back again on a stream, through memory that is registered. */
static int
registered_memory_serves_copies(const struct gpu_pin *p, struct dryi_pin *pin)
{
    struct dryi_pin_range range;
    struct dry_device d = p->device;
    uint64_t there, event;
    void *stream;
    NEED(pin->take(pin->self, BYTES, -1, &range, NULL) == DRY_OK);
    NEED(d.ops->alloc(d.self, BYTES / 2, &there) == DRY_OK);
    NEED(p->gpu->stream_create(&stream, 1) == 0);
    unsigned char *here = (unsigned char *)(uintptr_t)range.address;
    for (size_t i = 0; i < BYTES / 2; i++)
        here[i] = (unsigned char)(i * 7 + (i >> 12));
    NEED(p->gpu->copy_to(there, here, BYTES / 2, stream) == 0);
    NEED(p->gpu->copy_from(here + BYTES / 2, there, BYTES / 2, stream) == 0);
    NEED(pin->event_record(pin->self, (uintptr_t)stream, &event, NULL) == DRY_OK);
    while (pin->event_is_done(pin->self, event) == 0)
        ;
    NEED(pin->event_is_done(pin->self, event) == 1);
    NEED(memcmp(here, here + BYTES / 2, BYTES / 2) == 0);
    pin->event_return(pin->self, event);
    NEED(p->gpu->stream_destroy(stream) == 0);
    d.ops->free(d.self, there, BYTES / 2);
    pin->give(pin->self, &range);
    return 1;
}

/* What was given back can be mapped, pinned and copied from anew at the same addresses. */
static int
ranges_come_and_go(const struct gpu_pin *p, struct dryi_pin *pin)
{
    struct dryi_pin_range ranges[4];
    (void)p;
    for (int round = 0; round < 8; round++) {
        for (size_t i = 0; i < 4; i++) {
            NEED(pin->take(pin->self, (i + 1) * MIB, -1, &ranges[i], NULL) == DRY_OK);
            memset((void *)(uintptr_t)ranges[i].address, round, ranges[i].bytes);
        }
        for (size_t i = 0; i < 4; i++)
            pin->give(pin->self, &ranges[i]);
    }
    return 1;
}

#define SLICES 64
#define SLICE_BYTES (MIB / 2)

/* Filled, copied, and freed at once: the next slice may have the memory when that is over. */
static int
copy_slice(const struct gpu_pin *p, struct dry_pinned *pinned, uint64_t there,
           void *stream, size_t i)
{
    void *here;
    enum dry_status status =
        dry_pinned_alloc(pinned, SLICE_BYTES, (uintptr_t)stream, &here);
    if (status == DRY_ERR_NO_SPACE) { /* all of it is on its way */
        NEED(p->gpu->stream_synchronize(stream) == 0);
        status = dry_pinned_alloc(pinned, SLICE_BYTES, (uintptr_t)stream, &here);
    }
    NEED(status == DRY_OK);
    memset(here, (int)i + 1, SLICE_BYTES);
    NEED(p->gpu->copy_to(there + i * SLICE_BYTES, here, SLICE_BYTES, stream) == 0);
    NEED(dry_pinned_free(pinned, here) == DRY_OK);
    return 1;
}

static int
copy_slices(const struct gpu_pin *p, struct dry_pinned *pinned, uint64_t there)
{
    void *streams[2];
    unsigned char found[2];
    for (size_t i = 0; i < 2; i++)
        NEED(p->gpu->stream_create(&streams[i], 1) == 0);
    for (size_t i = 0; i < SLICES; i++)
        if (!copy_slice(p, pinned, there, streams[i % 2], i))
            return 0;
    for (size_t i = 0; i < 2; i++)
        NEED(p->gpu->stream_synchronize(streams[i]) == 0);
    for (size_t i = 0; i < SLICES; i++) {
        uint64_t at = there + i * SLICE_BYTES;
        NEED(p->gpu->read(&found[0], at, 1) == 0);
        NEED(p->gpu->read(&found[1], at + SLICE_BYTES - 1, 1) == 0);
        NEED(found[0] == i + 1 && found[1] == i + 1);
    }
    for (size_t i = 0; i < 2; i++)
        NEED(p->gpu->stream_destroy(streams[i]) == 0);
    return 1;
}

static int
blocks_of_a_cache_wait_for_their_copies(const struct gpu_pin *p, struct dryi_pin *pin)
{
    struct dry_device d = p->device;
    struct dry_pinned_options o;
    struct dry_pinned *pinned;
    uint64_t there;
    (void)pin;
    dry_pinned_options_init(&o);
    o.backend = DRY_PINNED_CUDA;
    o.library = p->library;
    o.device = p->ordinal;
    o.arena_bytes = 4 * MIB;
    o.budget_bytes = 8 * MIB; /* so that memory comes round again */
    NEED(d.ops->alloc(d.self, SLICES * SLICE_BYTES, &there) == DRY_OK);
    NEED(dry_pinned_create(&o, &pinned, NULL) == DRY_OK);
    int is_good = copy_slices(p, pinned, there);
    NEED(dry_pinned_check(pinned, NULL) == DRY_OK);
    dry_pinned_destroy(pinned);
    d.ops->free(d.self, there, SLICES * SLICE_BYTES);
    return is_good;
}

int
gpu_pin_suite(const struct gpu_pin *p)
{
    static const struct {
        const char *name;
        int (*run)(const struct gpu_pin *p, struct dryi_pin *pin);
    } checks[] = {
        {"registered_memory_serves_copies", registered_memory_serves_copies},
        {"ranges_come_and_go", ranges_come_and_go},
        {"blocks_of_a_cache_wait_for_their_copies",
         blocks_of_a_cache_wait_for_their_copies},
    };
    struct dryi_pin pin;
    struct dryi_pin_cuda_account a;
    int failed = 0;
    if (make(p, DRY_PAGES_BASE, 0, &pin) != DRY_OK) {
        puts("FAILED pinned memory");
        return 1;
    }
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        int is_good = checks[i].run(p, &pin);
        printf("%s %s\n", is_good ? "ok    " : "FAILED", checks[i].name);
        failed += !is_good;
    }
    dryi_pin_cuda_get_account(&pin, &a);
    printf("       node of the GPU: %d\n", (int)a.gpu_node);
    failed += a.refusals || a.kept_bytes;
    pin.finish(pin.self);
    return failed;
}

/* --- a neighbour ------------------------------------------------------------------------ */

/*
 * Asks how much memory is free, again and again, as every monitor does; then records an event
 * and asks for it, as a pinned cache does that is told of a free.
 */
struct neighbour {
    struct dry_device device;
    atomic_int must_end;
    size_t count;
    uint64_t info_ns[LATENCIES_MAX], event_ns[LATENCIES_MAX];
};

static void *
ask(void *self)
{
    struct neighbour *n = self;
    const struct timespec pause = {.tv_nsec = 100000};
    struct dry_device d = n->device;
    while (!atomic_load(&n->must_end) && n->count < LATENCIES_MAX) {
        uint64_t is_free, total, event, begin = now_ns();
        d.ops->get_info(d.self, &is_free, &total);
        n->info_ns[n->count] = now_ns() - begin;
        begin = now_ns();
        if (d.ops->event_record(d.self, 0, &event) == DRY_OK) {
            (void)d.ops->event_query(d.self, event);
            d.ops->event_destroy(d.self, event);
        }
        n->event_ns[n->count++] = now_ns() - begin;
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static int
compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* --- costs ------------------------------------------------------------------------------ */

struct round {
    uint64_t fill_ns, register_ns, unpin_ns;
};

static int
run_ours(struct dryi_pin *pin, uint64_t bytes, struct round *round)
{
    struct dryi_pin_range range;
    struct dry_pages_info info = DRY_INIT(struct dry_pages_info);
    uint64_t begin = now_ns();
    if (pin->take(pin->self, bytes, -1, &range, NULL) != DRY_OK)
        return 1;
    uint64_t all = now_ns() - begin;
    dry_pages_get_info(range.handle, &info);
    round->fill_ns = info.populate_ns;
    round->register_ns = all > info.populate_ns ? all - info.populate_ns : 0;
    begin = now_ns();
    pin->give(pin->self, &range);
    round->unpin_ns = now_ns() - begin;
    return 0;
}

static int
run_driver(const struct gpu *gpu, uint64_t bytes, struct round *round)
{
    void *at;
    uint64_t begin = now_ns();
    if (!gpu->host_alloc || gpu->host_alloc(&at, bytes, 3))
        return 1;
    round->register_ns = now_ns() - begin;
    begin = now_ns();
    if (gpu->host_free(at))
        return 1;
    round->unpin_ns = now_ns() - begin;
    return 0;
}

static uint64_t
median(const struct round *rounds, size_t offset)
{
    uint64_t values[ROUNDS];
    for (size_t i = 0; i < ROUNDS; i++)
        memcpy(&values[i], (const char *)&rounds[i] + offset, sizeof values[i]);
    qsort(values, ROUNDS, sizeof *values, compare);
    return values[ROUNDS / 2];
}

/* 1: not to be had. pin NULL: by the driver alone. */
static int
measure_rounds(const struct gpu_pin *p, struct dryi_pin *pin, struct gpu_pin_row *row)
{
    struct round rounds[ROUNDS] = {{0}};
    for (size_t i = 0; i < ROUNDS; i++)
        if (pin ? run_ours(pin, row->piece_bytes, &rounds[i])
                : run_driver(p->gpu, row->piece_bytes, &rounds[i]))
            return 1;
    row->fill_ns = median(rounds, offsetof(struct round, fill_ns));
    row->register_ns = median(rounds, offsetof(struct round, register_ns));
    row->unpin_ns = median(rounds, offsetof(struct round, unpin_ns));
    return 0;
}

static int
measure_row(struct gpu_pin *p, struct dryi_pin *pin, struct gpu_pin_row *row)
{
    struct neighbour *n = calloc(1, sizeof *n);
    pthread_t thread;
    if (!n)
        return 1;
    n->device = p->device;
    if (pthread_create(&thread, NULL, ask, n) != 0) {
        free(n);
        return 1;
    }
    int result = measure_rounds(p, pin, row);
    atomic_store(&n->must_end, 1);
    pthread_join(thread, NULL);
    qsort(n->info_ns, n->count, sizeof *n->info_ns, compare);
    qsort(n->event_ns, n->count, sizeof *n->event_ns, compare);
    if (n->count) {
        row->info_median_ns = n->info_ns[n->count / 2];
        row->info_max_ns = n->info_ns[n->count - 1];
        row->event_median_ns = n->event_ns[n->count / 2];
        row->event_max_ns = n->event_ns[n->count - 1];
    }
    free(n);
    return result;
}

/* Sizes from 64 MiB to what is allowed; what is not to be had ends the row. */
static void
measure_sizes(struct gpu_pin *p, struct dryi_pin *pin, const char *pages, int is_one)
{
    for (uint64_t bytes = 64 * MIB; bytes <= p->bytes_max; bytes *= 4) {
        struct gpu_pin_row *row = &p->rows[p->row_count];
        *row = (struct gpu_pin_row){
            .pages = pages, .is_one_thread = is_one, .piece_bytes = bytes};
        if (p->row_count == GPU_PIN_ROWS_MAX ||
            (pin && pin->available_bytes(pin->self, -1) < bytes) ||
            measure_row(p, pin, row))
            return;
        p->row_count++;
    }
}

#define EVENT_ROUNDS 200

static int
measure_events(struct gpu_pin *p)
{
    struct dryi_pin pin;
    uint64_t record[EVENT_ROUNDS], query[EVENT_ROUNDS], event;
    int result = make(p, DRY_PAGES_BASE, 0, &pin) != DRY_OK;
    if (result)
        return 1;
    for (size_t i = 0; i < EVENT_ROUNDS && !result; i++) {
        uint64_t begin = now_ns();
        result = pin.event_record(pin.self, 0, &event, NULL) != DRY_OK;
        record[i] = now_ns() - begin;
        begin = now_ns();
        if (!result)
            result = pin.event_is_done(pin.self, event) < 0;
        query[i] = now_ns() - begin;
        if (!result)
            pin.event_return(pin.self, event);
    }
    pin.finish(pin.self);
    if (result)
        return 1;
    qsort(record, EVENT_ROUNDS, sizeof *record, compare);
    qsort(query, EVENT_ROUNDS, sizeof *query, compare);
    p->record_ns = record[EVENT_ROUNDS / 2];
    p->query_ns = query[EVENT_ROUNDS / 2];
    return 0;
}

int
gpu_pin_measure(struct gpu_pin *p)
{
    static const enum dry_pages_kind kinds[] = {DRY_PAGES_BASE, DRY_PAGES_TRANSPARENT,
                                                DRY_PAGES_POOL};
    for (uint32_t one = 0; one < 2; one++) {
        for (size_t k = 0; k < 3; k++) {
            struct dryi_pin pin;
            if (make(p, kinds[k], one, &pin) != DRY_OK) {
                puts("FAILED pinned memory that was to be measured");
                return 1;
            }
            measure_sizes(p, &pin, dry_pages_kind_name(kinds[k]), (int)one);
            pin.finish(pin.self);
        }
    }
    measure_sizes(p, NULL, "driver", 1);
    return measure_events(p);
}

/* --- the report ------------------------------------------------------------------------- */

static double
ms_per_gib(uint64_t ns, uint64_t bytes)
{
    return (double)ns / 1e6 * (1024.0 * (double)MIB) / (double)bytes;
}

void
gpu_pin_print(const struct gpu_pin *p)
{
    printf("\npinned memory of the host, medians of %d rounds; ms are a GiB\n", ROUNDS);
    printf("an event that is kept: record %.2f us, query %.2f us\n",
           (double)p->record_ns / 1e3, (double)p->query_ns / 1e3);
    puts("beside them cuMemGetInfo and an event of another thread, at most, in us");
    printf("%-12s%8s%7s%10s%10s%10s%11s%11s\n", "pages", "threads", "MiB", "fill",
           "register", "unpin", "info", "event");
    for (size_t i = 0; i < p->row_count; i++) {
        const struct gpu_pin_row *r = &p->rows[i];
        printf("%-12s%8s%7" PRIu64 "%10.1f%10.1f%10.1f%11.1f%11.1f\n", r->pages,
               r->is_one_thread ? "one" : "all", r->piece_bytes / MIB,
               ms_per_gib(r->fill_ns, r->piece_bytes),
               ms_per_gib(r->register_ns, r->piece_bytes),
               ms_per_gib(r->unpin_ns, r->piece_bytes), (double)r->info_max_ns / 1e3,
               (double)r->event_max_ns / 1e3);
    }
}

void
gpu_pin_write(const struct gpu_pin *p, FILE *file)
{
    fprintf(file,
            ",\"pin_event_record_ns\":%" PRIu64 ",\"pin_event_query_ns\":%" PRIu64
            ",\"pins\":[",
            p->record_ns, p->query_ns);
    for (size_t i = 0; i < p->row_count; i++) {
        const struct gpu_pin_row *r = &p->rows[i];
        fprintf(file,
                "%s\n{\"pages\":\"%s\",\"one_thread\":%s,\"piece_bytes\":%" PRIu64
                ",\"fill_ns\":%" PRIu64 ",\"register_ns\":%" PRIu64
                ",\"unpin_ns\":%" PRIu64 ",\"info_median_ns\":%" PRIu64
                ",\"info_max_ns\":%" PRIu64 ",\"event_median_ns\":%" PRIu64
                ",\"event_max_ns\":%" PRIu64 "}",
                i ? "," : "", r->pages, r->is_one_thread ? "true" : "false",
                r->piece_bytes, r->fill_ns, r->register_ns, r->unpin_ns,
                r->info_median_ns, r->info_max_ns, r->event_median_ns, r->event_max_ns);
    }
    fputs("]", file);
}
