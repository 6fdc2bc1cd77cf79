/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On a machine with an NVIDIA GPU: check the device and the pool on it, then measure what the
 * driver's calls cost there. test/gpu/run builds and starts it.
 *
 * Exit: 0 fine, 1 a check failed, 2 usage, 77 there is no driver or no such device.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <drystone/cuda.h>

#include "driver.h"
#include "handles.h"
#include "pin.h"
#include "suite.h"

#define MIB (UINT64_C(1) << 20)
#define ROUNDS 200
#define RUN 16 /* pages in a contiguous range */

enum cost {
    RESERVE,
    UNRESERVE,
    CREATE,
    RELEASE,
    MAP_ONE,
    ACCESS_ONE,
    UNMAP_ONE,
    MAP_RUN,
    ACCESS_RUN,
    UNMAP_RUN,
    DEVICE_MAP_RUN,
    DEVICE_UNMAP_RUN,
    COMPOSITE_MAP,
    COMPOSITE_UNMAP,
    ALLOC_SMALL,
    FREE_SMALL,
    ALLOC_LARGE,
    FREE_LARGE,
    EVENT_RECORD,
    EVENT_QUERY,
    EVENT_WAIT,
    EVENT_DESTROY,
    STREAM_FOLLOW,
    STREAM_ID,
    GET_INFO,
    COST_COUNT
};

static const char *const names[COST_COUNT] = {
    [RESERVE] = "reserve 1 GiB of addresses",
    [UNRESERVE] = "give them back",
    [CREATE] = "create a page",
    [RELEASE] = "release a page",
    [MAP_ONE] = "cuMemMap, a page",
    [ACCESS_ONE] = "cuMemSetAccess, a page",
    [UNMAP_ONE] = "cuMemUnmap, a page",
    [MAP_RUN] = "cuMemMap, 16 pages",
    [ACCESS_RUN] = "cuMemSetAccess, 16 pages at once",
    [UNMAP_RUN] = "cuMemUnmap, 16 pages at once",
    [DEVICE_MAP_RUN] = "map_pages, 16 pages",
    [DEVICE_UNMAP_RUN] = "unmap_pages, 16 pages",
    [COMPOSITE_MAP] = "map 20 MiB, create included",
    [COMPOSITE_UNMAP] = "unmap 20 MiB, release included",
    [ALLOC_SMALL] = "cuMemAlloc 2 MiB",
    [FREE_SMALL] = "cuMemFree 2 MiB",
    [ALLOC_LARGE] = "cuMemAlloc 64 MiB",
    [FREE_LARGE] = "cuMemFree 64 MiB",
    [EVENT_RECORD] = "event: create and record",
    [EVENT_QUERY] = "event: query",
    [EVENT_WAIT] = "event: wait for a passed one",
    [EVENT_DESTROY] = "event: destroy",
    [STREAM_FOLLOW] = "stream waits for an event",
    [STREAM_ID] = "id of a stream",
    [GET_INFO] = "cuMemGetInfo",
};

struct results {
    uint64_t ns[COST_COUNT][ROUNDS];
    size_t count[COST_COUNT];
};

static uint64_t
now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static void
add(struct results *r, enum cost cost, uint64_t begin_ns)
{
    uint64_t end_ns = now_ns();
    if (r->count[cost] < ROUNDS)
        r->ns[cost][r->count[cost]++] = end_ns - begin_ns;
}

/* The time of one statement; what it gives must be OK or 0. */
#define TIME(r, cost, call)                                                              \
    do {                                                                                 \
        uint64_t call_begin_ns = now_ns();                                               \
        int call_result = (int)(call);                                                   \
        add(r, cost, call_begin_ns);                                                     \
        if (call_result)                                                                 \
            return call_result;                                                          \
    } while (0)

/* The same for a statement that gives nothing. */
#define TIME_VOID(r, cost, call)                                                         \
    do {                                                                                 \
        uint64_t call_begin_ns = now_ns();                                               \
        call;                                                                            \
        add(r, cost, call_begin_ns);                                                     \
    } while (0)

static int
measure_ranges(struct dry_device d, struct results *r)
{
    uint64_t a;
    for (int i = 0; i < ROUNDS; i++) {
        TIME(r, ALLOC_SMALL, d.ops->alloc(d.self, 2 * MIB, &a));
        TIME_VOID(r, FREE_SMALL, d.ops->free(d.self, a, 2 * MIB));
        TIME(r, ALLOC_LARGE, d.ops->alloc(d.self, 64 * MIB, &a));
        TIME_VOID(r, FREE_LARGE, d.ops->free(d.self, a, 64 * MIB));
        uint64_t is_free, total;
        TIME_VOID(r, GET_INFO, d.ops->get_info(d.self, &is_free, &total));
    }
    return 0;
}

/* The driver's calls one by one; `pages` are handles as cuMemCreate gave them. */
static int
measure_mapping(const struct gpu *gpu, struct results *r, uint64_t range,
                const uint64_t *pages, uint64_t page)
{
    const struct gpu_access access = {1, gpu->device, 3};
    for (int i = 0; i < ROUNDS; i++) {
        TIME(r, MAP_ONE, gpu->mem_map(range, page, 0, pages[0], 0));
        TIME(r, ACCESS_ONE, gpu->mem_set_access(range, page, &access, 1));
        TIME(r, UNMAP_ONE, gpu->mem_unmap(range, page));
        uint64_t begin_ns = now_ns();
        for (size_t k = 0; k < RUN; k++)
            if (gpu->mem_map(range + k * page, page, 0, pages[k], 0))
                return 1;
        add(r, MAP_RUN, begin_ns);
        TIME(r, ACCESS_RUN, gpu->mem_set_access(range, RUN * page, &access, 1));
        /* One that takes a mapping at a time is no failure, see src/device/cuda/cuda.c. */
        begin_ns = now_ns();
        if (gpu->mem_unmap(range, RUN * page) == 0) {
            add(r, UNMAP_RUN, begin_ns);
            continue;
        }
        for (size_t k = 0; k < RUN; k++)
            if (gpu->mem_unmap(range + k * page, page))
                return 1;
    }
    return 0;
}

static int
measure_pages(const struct gpu *gpu, struct dry_device d, struct results *r)
{
    struct dry_device_traits t;
    d.ops->get_traits(d.self, &t);
    if (t.page_bytes == 0)
        return 0;
    uint64_t range, pages[RUN], large = 20 * MIB;
    for (int i = 0; i < ROUNDS; i++) {
        TIME(r, RESERVE, d.ops->reserve(d.self, 1024 * MIB, &range));
        TIME_VOID(r, UNRESERVE, d.ops->unreserve(d.self, range, 1024 * MIB));
        TIME(r, CREATE, d.ops->create_page(d.self, &pages[0]));
        TIME_VOID(r, RELEASE, d.ops->release_page(d.self, pages[0]));
    }
    int result = d.ops->reserve(d.self, 1024 * MIB, &range);
    for (size_t k = 0; k < RUN && !result; k++)
        result = d.ops->create_page(d.self, &pages[k]);
    if (!result)
        result = measure_mapping(gpu, r, range, pages, t.page_bytes);
    if (result)
        return result;
    for (int i = 0; i < ROUNDS; i++) {
        TIME(r, DEVICE_MAP_RUN, d.ops->map_pages(d.self, range, pages, RUN));
        TIME(r, DEVICE_UNMAP_RUN, d.ops->unmap_pages(d.self, range, RUN));
        TIME(r, COMPOSITE_MAP, d.ops->map(d.self, range, large, large));
        TIME_VOID(r, COMPOSITE_UNMAP, d.ops->unmap(d.self, range, large, large));
    }
    for (size_t k = 0; k < RUN; k++)
        d.ops->release_page(d.self, pages[k]);
    d.ops->unreserve(d.self, range, 1024 * MIB);
    return 0;
}

static int
measure_streams(const struct gpu *gpu, struct dry_device d, struct results *r)
{
    void *one, *two;
    if (gpu->stream_create(&one, 1) || gpu->stream_create(&two, 1))
        return 1;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t event;
        TIME(r, EVENT_RECORD, d.ops->event_record(d.self, (uintptr_t)one, &event));
        TIME(r, STREAM_FOLLOW, d.ops->stream_follow(d.self, (uintptr_t)two, event));
        d.ops->stream_wait(d.self, (uintptr_t)one);
        TIME_VOID(r, EVENT_QUERY, d.ops->event_query(d.self, event));
        TIME_VOID(r, EVENT_WAIT, d.ops->event_wait(d.self, event));
        TIME_VOID(r, EVENT_DESTROY, d.ops->event_destroy(d.self, event));
        if (d.ops->stream_id)
            TIME_VOID(r, STREAM_ID, d.ops->stream_id(d.self, (uintptr_t)one));
    }
    return gpu->stream_destroy(one) || gpu->stream_destroy(two);
}

/* --- the report ------------------------------------------------------------------------- */

static int
compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void
print_table(struct results *r, const struct dry_cuda_account *a)
{
    printf("\n%s, driver for CUDA %d.%d, %d rounds\n", a->name, a->driver_version / 1000,
           a->driver_version % 1000 / 10, ROUNDS);
    printf("%-36s %12s %12s\n", "call", "median us", "p99 us");
    for (int i = 0; i < COST_COUNT; i++) {
        size_t n = r->count[i];
        qsort(r->ns[i], n, sizeof r->ns[i][0], compare);
        if (n == 0)
            printf("%-36s %12s %12s\n", names[i], "-", "-");
        else
            printf("%-36s %12.2f %12.2f\n", names[i], (double)r->ns[i][n / 2] / 1000.0,
                   (double)r->ns[i][n * 99 / 100] / 1000.0);
    }
}

/* After print_table(), which sorts. */
static int
write_json(const char *path, const struct results *r, const struct gpu_pin *pin,
           const struct gpu_handles *handles, const struct dry_cuda_account *a)
{
    FILE *file = fopen(path, "w");
    if (!file)
        return 1;
    fputs("{\"schema\":\"drystone.gpu_costs/1\",\"device\":\"", file);
    for (const char *c = a->name; *c; c++)
        fputc(*c < ' ' || *c > '~' || *c == '"' || *c == '\\' ? '?' : *c, file);
    fprintf(file, "\",\"driver_version\":%d,\"rounds\":%d,\"costs\":[",
            (int)a->driver_version, ROUNDS);
    const char *comma = "";
    for (int i = 0; i < COST_COUNT; i++) {
        size_t n = r->count[i];
        if (n == 0)
            continue;
        fprintf(file,
                "%s\n{\"call\":\"%s\",\"median_ns\":%" PRIu64 ",\"p99_ns\":%" PRIu64 "}",
                comma, names[i], r->ns[i][n / 2], r->ns[i][n * 99 / 100]);
        comma = ",";
    }
    fputs("]", file);
    gpu_pin_write(pin, file);
    gpu_handles_write(handles, file);
    fputs("}\n", file);
    return fclose(file) != 0;
}

static int
report(struct gpu_pin *pin, struct gpu_handles *handles, struct dry_cuda *cuda,
       const char *json)
{
    const struct gpu *gpu = pin->gpu;
    struct dry_device d = pin->device = dry_cuda_get_device(cuda);
    int failed = gpu_suite(gpu, d) + gpu_pin_suite(pin);
    struct results *r = calloc(1, sizeof *r);
    if (!r)
        return 1;
    if (measure_ranges(d, r) || measure_pages(gpu, d, r) || measure_streams(gpu, d, r)) {
        puts("FAILED a call that was to be measured");
        failed++;
    }
    gpu_handles_measure(handles);
    failed += gpu_pin_measure(pin);
    struct dry_cuda_account a = DRY_INIT(struct dry_cuda_account);
    dry_cuda_get_account(cuda, &a);
    print_table(r, &a);
    gpu_handles_print(handles);
    gpu_pin_print(pin);
    if (a.refusals) {
        printf("FAILED %" PRIu64 " refusals, the last was CUDA error %d\n", a.refusals,
               (int)a.last_error);
        failed++;
    }
    if (json && write_json(json, r, pin, handles, &a)) {
        fprintf(stderr, "cannot write %s\n", json);
        failed++;
    }
    free(r);
    return failed != 0;
}

static const char usage[] =
    "usage: test/gpu/run [--device N] [--json FILE] [--library PATH]\n"
    "                    [--pin-mib N] [--span-mib N]\n"
    "       test/gpu/run campaign [--help]\n"
    "\n"
    "Checks Drystone on an NVIDIA GPU, then measures what its driver's calls cost.\n"
    "\n"
    "  --device N      the GPU; default 0\n"
    "  --json FILE     also write the costs to FILE\n"
    "  --library PATH  the driver; default libcuda.so.1\n"
    "  --pin-mib N     pin at most N MiB of the host's memory at once; default 4096\n"
    "  --span-mib N    copy at most N MiB of the GPU's memory at once; default 4096\n"
    "\n"
    "campaign measures training, graphs and errors in PyTorch, too: in 25 minutes.\n"
    "\n"
    "Exits with 0 if all is well, 1 if not, 2 for usage, 77 without a driver or GPU.\n";

/* False: these are not our options. */
static bool
read_options(int argc, char **argv, struct dry_cuda_options *o, struct gpu_pin *pin,
             struct gpu_handles *handles, const char **json)
{
    for (int i = 1; i < argc; i += 2) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        char *end = NULL;
        if (!value[0])
            return false;
        if (strcmp(name, "--library") == 0)
            o->library = value;
        else if (strcmp(name, "--json") == 0)
            *json = value;
        else if (strcmp(name, "--device") == 0)
            o->device = (int32_t)strtol(value, &end, 10);
        else if (strcmp(name, "--pin-mib") == 0)
            pin->bytes_max = strtoull(value, &end, 10) * MIB;
        else if (strcmp(name, "--span-mib") == 0)
            handles->span_bytes = strtoull(value, &end, 10) * MIB;
        else
            return false;
        if (end && *end)
            return false;
    }
    return true;
}

int
main(int argc, char **argv)
{
    struct dry_cuda_options o;
    dry_cuda_options_init(&o);
    struct gpu_pin pin = {.bytes_max = 4096 * MIB};
    struct gpu_handles handles = {.span_bytes = 4096 * MIB};
    const char *json = NULL;
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(usage, stdout);
        return 0;
    }
    if (!read_options(argc, argv, &o, &pin, &handles, &json)) {
        fputs(usage, stderr);
        return 2;
    }
    struct dry_cuda *cuda;
    struct dry_error err;
    enum dry_status status = dry_cuda_open(&o, &cuda, &err);
    if (status == DRY_ERR_UNSUPPORTED) {
        printf("SKIPPED: nothing was checked, there is no GPU to check on: %s\n",
               err.text);
        return 77;
    }
    if (status != DRY_OK) {
        printf("FAILED the device cannot be opened: %s\n", err.text);
        return 1;
    }
    struct gpu gpu;
    int result = gpu_open(&gpu, o.library, o.device);
    if (result == 0) {
        pin.gpu = handles.gpu = &gpu;
        pin.library = o.library;
        pin.ordinal = o.device;
        result = report(&pin, &handles, cuda, json);
        gpu_close(&gpu);
    }
    dry_cuda_close(cuda);
    return result;
}
