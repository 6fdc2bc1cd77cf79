/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA that is not there, as a program sees it: memory beside a naive account, streams early
 * and late, captures, virtual memory, errors. The library reads its card once a process, so each
 * test runs in a child of its own. The library is $DRY_TEST_STANDIN.
 */
#include "support/cmocka.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)
#define TOTAL (UINT64_C(1) << 30)
#define CONTEXT (UINT64_C(100) << 20)

enum { OK = 0, INVALID_VALUE = 1, NO_MEMORY = 2, NOT_READY = 600, NOT_REGISTERED = 713 };
enum { UNJOINED = 904, CAPTURE_UNSUPPORTED = 900, ALREADY_REGISTERED = 712 };

enum { NCCL_FULL = 1 };

/* NCCL's id of a communicator, which is passed by value. */
struct unique_id {
    char bytes[128];
};

/* The host's account, as the hook reads it. */
struct account {
    uint64_t pinned, pinned_peak, untouched, dirty_peak;
};

/* The functions under test, by CUDA's names and signatures. */
static struct {
    int (*cudaMalloc)(void **address, size_t size);
    int (*cudaFree)(void *address);
    int (*cudaMemGetInfo)(size_t *free_bytes, size_t *total_bytes);
    int (*cudaMemcpy)(void *to, const void *from, size_t bytes, int kind);
    int (*cudaMemset)(void *address, int value, size_t bytes);
    int (*cudaGetLastError)(void);
    int (*cudaPeekAtLastError)(void);
    int (*cudaHostRegister)(void *address, size_t size, unsigned flags);
    int (*cudaHostUnregister)(void *address);
    int (*cudaHostAlloc)(void **address, size_t size, unsigned flags);
    int (*cudaFreeHost)(void *address);
    int (*cudaStreamCreate)(void **stream);
    int (*cudaStreamDestroy)(void *stream);
    int (*cudaStreamQuery)(void *stream);
    int (*cudaStreamSynchronize)(void *stream);
    int (*cudaStreamWaitEvent)(void *stream, void *event, unsigned flags);
    int (*cudaStreamBeginCapture)(void *stream, int mode);
    int (*cudaStreamEndCapture)(void *stream, void **graph);
    int (*cudaStreamIsCapturing)(void *stream, int *status);
    int (*cudaEventCreate)(void **event);
    int (*cudaEventRecord)(void *event, void *stream);
    int (*cudaEventQuery)(void *event);
    int (*cudaEventSynchronize)(void *event);
    int (*cudaGraphGetNodes)(void *graph, void **nodes, size_t *count);
    int (*cuMemAddressReserve)(uint64_t *address, size_t size, size_t alignment,
                               uint64_t hint, unsigned long long flags);
    int (*cuMemAddressFree)(uint64_t address, size_t size);
    int (*cuMemCreate)(void **handle, size_t size, const void *properties,
                       unsigned long long flags);
    int (*cuMemRelease)(void *handle);
    int (*cuMemMap)(uint64_t address, size_t size, size_t offset, void *handle,
                    unsigned long long flags);
    int (*cuMemUnmap)(uint64_t address, size_t size);
    int (*cuMemExportToShareableHandle)(void *to, void *handle, int kind,
                                        unsigned long long flags);
    void (*drystone_standin_wrote)(uint64_t address, uint64_t bytes, int is_known);
    int (*drystone_standin_knows)(uint64_t address, uint64_t bytes);
    void (*drystone_standin_host)(struct account *account);
    int (*ncclCommInitRank)(void **member, int size, struct unique_id id, int rank);
    int (*ncclCommDestroy)(void *member);
    int (*ncclAllReduce)(const void *from, void *to, size_t count, int type,
                         int operation, void *member, void *stream);
    int (*nvmlDeviceGetHandleByIndex_v2)(unsigned index, void **device);
    int (*nvmlDeviceGetHandleByUUID)(const char *text, void **device);
    int (*nvmlDeviceGetUUID)(void *device, char *text, unsigned length);
    int (*nvmlDeviceGetCudaComputeCapability)(void *device, int *major, int *minor);
} cuda;

#define LOOK_UP(name) look_up(library, #name, &cuda.name, sizeof cuda.name)

static void
look_up(void *library, const char *name, void *function, size_t size)
{
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "%s is not there\n", name);
        _exit(2);
    }
    memcpy(function, &found, size);
}

static void
open_library(void)
{
    const char *path = getenv("DRY_TEST_STANDIN");
    void *library = path ? dlopen(path, RTLD_NOW) : NULL;
    if (!library) {
        fprintf(stderr, "DRY_TEST_STANDIN: %s\n", path ? dlerror() : "not set");
        _exit(2);
    }
    LOOK_UP(cudaMalloc), LOOK_UP(cudaFree), LOOK_UP(cudaMemGetInfo), LOOK_UP(cudaMemcpy);
    LOOK_UP(cudaMemset), LOOK_UP(cudaGetLastError), LOOK_UP(cudaPeekAtLastError);
    LOOK_UP(cudaHostRegister), LOOK_UP(cudaHostUnregister), LOOK_UP(cudaStreamCreate);
    LOOK_UP(cudaStreamDestroy), LOOK_UP(cudaStreamQuery), LOOK_UP(cudaStreamSynchronize);
    LOOK_UP(cudaStreamWaitEvent), LOOK_UP(cudaStreamBeginCapture);
    LOOK_UP(cudaStreamEndCapture), LOOK_UP(cudaStreamIsCapturing),
        LOOK_UP(cudaEventCreate);
    LOOK_UP(cudaEventRecord), LOOK_UP(cudaEventQuery), LOOK_UP(cudaEventSynchronize);
    LOOK_UP(cudaGraphGetNodes), LOOK_UP(cuMemAddressReserve), LOOK_UP(cuMemAddressFree);
    LOOK_UP(cuMemCreate), LOOK_UP(cuMemRelease), LOOK_UP(cuMemMap), LOOK_UP(cuMemUnmap);
    LOOK_UP(cuMemExportToShareableHandle), LOOK_UP(drystone_standin_wrote);
    LOOK_UP(drystone_standin_knows), LOOK_UP(drystone_standin_host);
    LOOK_UP(ncclCommInitRank), LOOK_UP(ncclCommDestroy), LOOK_UP(ncclAllReduce);
    LOOK_UP(cudaHostAlloc), LOOK_UP(cudaFreeHost), LOOK_UP(nvmlDeviceGetHandleByIndex_v2);
    LOOK_UP(nvmlDeviceGetHandleByUUID), LOOK_UP(nvmlDeviceGetUUID);
    LOOK_UP(nvmlDeviceGetCudaComputeCapability);
}

#define CHECK(condition)                                                                 \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                      \
            _exit(1);                                                                    \
        }                                                                                \
    } while (0)

/* Run `body` in a child whose card is "total", "context" and `words`. Returns its status. */
static int
run_status(const char *words, void (*body)(void))
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char setup[300];
        snprintf(setup, sizeof setup, "total=%llu;context=%llu%s%s",
                 (unsigned long long)TOTAL, (unsigned long long)CONTEXT,
                 *words ? ";" : "", words);
        setenv("DRYSTONE_STANDIN", setup, 1);
        open_library();
        body();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void
run_on(const char *words, void (*body)(void))
{
    assert_int_equal(run_status(words, body), 0);
}

static uint64_t
free_bytes(void)
{
    size_t free_now, total;
    CHECK(cuda.cudaMemGetInfo(&free_now, &total) == OK && total == TOTAL);
    return free_now;
}

/* --- memory ------------------------------------------------------------------------------- */

#define SLOTS 40

/* Random requests beside a list of what is there: no overlap, the sums right, zeros at first. */
static void
do_as_an_account(void)
{
    struct slot {
        char *address;
        size_t size;
    } slots[SLOTS] = {0};
    uint64_t used = CONTEXT;
    uint32_t random = 12345;
    CHECK(free_bytes() == TOTAL - CONTEXT);
    for (int step = 0; step < 20000; step++) {
        random = random * 1664525 + 1013904223;
        struct slot *s = &slots[random >> 16 & 31];
        size_t size = (random >> 8) % (60 * MIB) + 1, rounded;
        if (s->address) {
            rounded = (s->size + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
            CHECK(cuda.cudaFree(s->address) == OK);
            used -= rounded;
            s->address = NULL;
        } else {
            void *address = NULL;
            rounded = (size + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
            bool fits = used + rounded <= TOTAL;
            CHECK(cuda.cudaMalloc(&address, size) == (fits ? OK : NO_MEMORY));
            CHECK(cuda.cudaGetLastError() == (fits ? OK : NO_MEMORY));
            if (!fits)
                continue;
            s->address = address, s->size = size;
            used += rounded;
            for (int i = 0; i < SLOTS; i++)
                CHECK(&slots[i] == s || !slots[i].address ||
                      slots[i].address + slots[i].size <= s->address ||
                      s->address + size <= slots[i].address);
            CHECK(s->address[0] == 0 && s->address[size - 1] == 0);
            CHECK(cuda.cudaMemset(s->address, 7, size < 100 ? size : 100) == OK);
        }
        CHECK(free_bytes() == TOTAL - used);
    }
}

static void
memory_is_kept_account_of(void **state)
{
    (void)state;
    run_on("", do_as_an_account);
    run_on("descending=1", do_as_an_account);
}

static void
do_beyond_the_total(void)
{
    void *one, *two;
    CHECK(cuda.cudaMalloc(&one, TOTAL) == OK && free_bytes() == 0);
    CHECK(cuda.cudaMalloc(&two, TOTAL) == NO_MEMORY);
    CHECK(cuda.cudaFree(one) == OK && free_bytes() == TOTAL - CONTEXT);
}

/* It gives twice its total, and tells the total. */
static void
a_device_may_give_more_than_it_tells(void **state)
{
    char words[60];
    (void)state;
    snprintf(words, sizeof words, "limit=%llu", 2 * (unsigned long long)TOTAL);
    run_on(words, do_beyond_the_total);
}

static void
do_errors(void)
{
    void *address;
    CHECK(cuda.cudaMalloc(&address, 2 * TOTAL) == NO_MEMORY);
    CHECK(cuda.cudaPeekAtLastError() == NO_MEMORY &&
          cuda.cudaGetLastError() == NO_MEMORY);
    CHECK(cuda.cudaGetLastError() == OK);
    CHECK(cuda.cudaFree((void *)(uintptr_t)0x1000) == INVALID_VALUE);
    CHECK(cuda.cudaFree(NULL) == OK);
    static char host[8192];
    CHECK(cuda.cudaHostUnregister(host) == NOT_REGISTERED);
    CHECK(cuda.cudaHostRegister(host, sizeof host, 0) == OK);
    CHECK(cuda.cudaHostRegister(host, sizeof host, 0) == ALREADY_REGISTERED);
    CHECK(cuda.cudaHostUnregister(host) == OK);
    CHECK(cuda.cuMemExportToShareableHandle(NULL, NULL, 0, 0) != OK);
}

static void
errors_are_the_runtimes(void **state)
{
    (void)state;
    run_on("", do_errors);
}

static void
do_copies(void)
{
    static char from[3 << 20], to[3 << 20];
    void *device;
    memset(from, 5, sizeof from);
    memset(to, 1, sizeof to);
    CHECK(cuda.cudaMalloc(&device, sizeof from) == OK);
    CHECK(cuda.cudaMemcpy(device, from, 1000, 1) == OK);
    CHECK(cuda.cudaMemcpy(to, device, 2000, 2) == OK);
    CHECK(to[0] == 5 && to[999] == 5 && to[1000] == 0 && to[1999] == 0 && to[2000] == 1);
    CHECK(cuda.cudaMemcpy(device, from, sizeof from, 1) == OK); /* beyond the bound */
    CHECK(cuda.cudaMemcpy(to, device, sizeof to, 2) == OK);
    CHECK(to[0] == 0 && to[sizeof to - 1] == 0);
}

static void
small_copies_keep_their_bytes(void **state)
{
    (void)state;
    run_on("", do_copies);
}

static void
do_virtual_memory(void)
{
    uint64_t address, before = free_bytes();
    void *handles[2];
    /* what PyTorch writes: pinned memory of device 0 */
    static const uint32_t properties[8] = {1, 0, 1, 0};
    CHECK(cuda.cuMemAddressReserve(&address, 8 * TOTAL, 0, 0, 0) == OK);
    CHECK(free_bytes() == before);
    CHECK(cuda.cuMemCreate(&handles[0], 20 * MIB, properties, 0) == OK);
    CHECK(cuda.cuMemCreate(&handles[1], 2 * TOTAL, properties, 0) == NO_MEMORY);
    CHECK(free_bytes() == before - 20 * MIB);
    CHECK(cuda.cuMemMap(address + 20 * MIB, 20 * MIB, 0, handles[0], 0) == OK);
    CHECK(cuda.cuMemRelease(handles[0]) == OK);
    CHECK(free_bytes() == before - 20 * MIB); /* mapped: it lives */
    CHECK(cuda.cuMemUnmap(address + 20 * MIB, 20 * MIB) == OK);
    CHECK(free_bytes() == before);
    CHECK(cuda.cuMemAddressFree(address, 8 * TOTAL) == OK);
}

static void
mapped_memory_lives_until_it_is_unmapped(void **state)
{
    (void)state;
    run_on("", do_virtual_memory);
}

static bool
knows(const char *at, uint64_t begin, uint64_t end)
{
    return cuda.drystone_standin_knows((uintptr_t)at + begin, end - begin) != 0;
}

/* M4: each byte by itself, though what is zeroed goes by pages. */
static void
follow_known(void)
{
    void *block, *other;
    char host[1000] = "";
    CHECK(cuda.cudaMalloc(&block, 2 * MIB) == OK &&
          cuda.cudaMalloc(&other, 2 * MIB) == OK);
    char *at = block, *to = other;
    CHECK(!knows(at, 0, 1) && knows(at, 5, 5));
    cuda.cudaMemcpy(at + 100, host, 900, 1);
    CHECK(knows(at, 100, 1000) && !knows(at, 99, 1000) && !knows(at, 100, 1001));
    cuda.cudaMemset(at + 1000, 0, 2 * MIB - 1000);
    CHECK(knows(at, 100, 2 * MIB));
    cuda.drystone_standin_wrote((uintptr_t)at + 500, 1, false);
    CHECK(knows(at, 100, 500) && !knows(at, 500, 501) && knows(at, 501, 2 * MIB));
    cuda.cudaMemcpy(to, at + 501, 400, 3);
    CHECK(knows(to, 0, 400));
    cuda.cudaMemcpy(to, at + 450, 100, 3); /* has a guess */
    CHECK(!knows(to, 0, 100) && knows(to, 100, 400));
    CHECK(cuda.cudaFree(block) == OK && !knows(at, 100, 500));
}

static void
known_bytes_come_from_the_host(void **state)
{
    (void)state;
    run_on("", follow_known);
}

/* --- the host ----------------------------------------------------------------------------- */

/* Ask for the account, and compare it. */
static bool
is_account(uint64_t pinned, uint64_t peak, uint64_t untouched, uint64_t dirty_peak)
{
    struct account a;
    cuda.drystone_standin_host(&a);
    return a.pinned == pinned && a.pinned_peak == peak && a.untouched == untouched &&
           a.dirty_peak == dirty_peak;
}

static void
pin(void)
{
    void *pages =
        mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *given, *block;
    CHECK(is_account(0, 0, 0, 0) && madvise(pages, 4 * MIB, MADV_NOHUGEPAGE) == 0);
    memset(pages, 1, MIB);
    CHECK(cuda.cudaHostRegister(pages, 4 * MIB, 0) == OK);
    CHECK(is_account(4 * MIB, 4 * MIB, 3 * MIB, 0));
    CHECK(cuda.cudaHostAlloc(&given, MIB, 0) == OK);
    memset(given, 1, MIB);
    CHECK(is_account(5 * MIB, 5 * MIB, 3 * MIB, 0));
    CHECK(cuda.cudaHostUnregister(pages) == OK);
    CHECK(is_account(MIB, 5 * MIB, 0, 0));
    CHECK(cuda.cudaMalloc(&block, 4 * MIB) == OK);
    cuda.cudaMemcpy(block, given, MIB, 1);
    cuda.cudaMemcpy(block, given, MIB / 2, 1);
    CHECK(is_account(MIB, 5 * MIB, 0, MIB));
    CHECK(cuda.cudaFree(block) == OK && cuda.cudaFreeHost(given) == OK);
    CHECK(is_account(0, 5 * MIB, 0, MIB));
}

static void
pin_zeros(void)
{
    enum { BEGIN = MIB + 100, LENGTH = 5000 };
    char *given, *block;
    static char some[LENGTH];
    memset(some, 7, sizeof some);
    CHECK(cuda.cudaHostAlloc((void **)&given, 4 * MIB, 0) == OK);
    CHECK(cuda.cudaMalloc((void **)&block, 4 * MIB) == OK);
    memset(given, 1, 4 * MIB);
    CHECK(cuda.cudaMemcpy(block + BEGIN, some, LENGTH, 1) == OK);
    CHECK(cuda.cudaMemcpy(given + 10, block + 10, 4 * MIB - 20, 2) == OK);
    for (size_t i = 0; i < 4 * MIB; i++)
        CHECK(given[i] == (i < 10 || i >= 4 * MIB - 10        ? 1
                           : i >= BEGIN && i < BEGIN + LENGTH ? 7
                                                              : 0));
}

/* A copy from the device takes pages of the host only for what was written on the device. */
static void
pin_few_pages(void)
{
    void *given, *block;
    static const char some[4096] = {7};
    CHECK(cuda.cudaHostAlloc(&given, 4 * MIB, 0) == OK);
    CHECK(madvise(given, 4 * MIB, MADV_NOHUGEPAGE) == 0);
    CHECK(cuda.cudaMalloc(&block, 4 * MIB) == OK);
    CHECK(cuda.cudaMemcpy(block, some, sizeof some, 1) == OK);
    memset(given, 1, MIB);
    CHECK(cuda.cudaMemcpy(given, block, 4 * MIB, 2) == OK);
    CHECK(is_account(4 * MIB, 4 * MIB, 4 * MIB - 4096, 4096));
}

static void
pinned_memory_gets_pages_of_what_was_written(void **state)
{
    (void)state;
    run_on("", pin_zeros);
    run_on("", pin_few_pages);
}

static void
pinned_memory_is_counted(void **state)
{
    (void)state;
    run_on("", pin);
}

/* --- time --------------------------------------------------------------------------------- */

static void
do_early(void)
{
    void *stream, *event;
    CHECK(cuda.cudaStreamCreate(&stream) == OK && cuda.cudaEventCreate(&event) == OK);
    CHECK(cuda.cudaEventQuery(event) == OK); /* never recorded */
    CHECK(cuda.cudaEventRecord(event, stream) == OK);
    CHECK(cuda.cudaEventQuery(event) == OK && cuda.cudaStreamQuery(stream) == OK);
}

static void
do_late(void)
{
    void *first, *second, *event, *behind;
    CHECK(cuda.cudaStreamCreate(&first) == OK && cuda.cudaStreamCreate(&second) == OK);
    CHECK(cuda.cudaEventCreate(&event) == OK && cuda.cudaEventCreate(&behind) == OK);
    CHECK(cuda.cudaEventRecord(event, first) == OK);
    CHECK(cuda.cudaEventQuery(event) == NOT_READY);
    CHECK(cuda.cudaGetLastError() == NOT_READY || cuda.cudaGetLastError() == OK);
    CHECK(cuda.cudaEventRecord(behind, first) == OK);
    CHECK(cuda.cudaEventSynchronize(behind) ==
          OK); /* what lies before it has passed, too */
    CHECK(cuda.cudaEventQuery(event) == OK);
    CHECK(cuda.cudaEventRecord(event, second) == OK);
    CHECK(cuda.cudaStreamSynchronize(first) == OK);
    CHECK(cuda.cudaEventQuery(event) == NOT_READY);
    CHECK(cuda.cudaStreamSynchronize(second) == OK);
    CHECK(cuda.cudaEventQuery(event) == OK);
}

static void
events_pass_at_once_or_when_somebody_waits(void **state)
{
    (void)state;
    run_on("", do_early);
    run_on("late=1", do_late);
}

static void
do_capture(void)
{
    void *first, *second, *event, *joined, *graph;
    int status;
    size_t count;
    CHECK(cuda.cudaStreamCreate(&first) == OK && cuda.cudaStreamCreate(&second) == OK);
    CHECK(cuda.cudaEventCreate(&event) == OK && cuda.cudaEventCreate(&joined) == OK);
    CHECK(cuda.cudaStreamBeginCapture(first, 0) == OK);
    CHECK(cuda.cudaEventRecord(event, first) == OK);
    CHECK(cuda.cudaStreamWaitEvent(second, event, 0) == OK); /* joins the capture */
    CHECK(cuda.cudaStreamIsCapturing(second, &status) == OK && status == 1);
    CHECK(cuda.cudaEventRecord(joined, second) == OK);
    CHECK(cuda.cudaStreamWaitEvent(first, joined, 0) == OK);
    CHECK(cuda.cudaStreamEndCapture(first, &graph) == OK && graph);
    CHECK(cuda.cudaStreamIsCapturing(second, &status) == OK && status == 0);
    CHECK(cuda.cudaGraphGetNodes(graph, NULL, &count) == OK);
}

static void
a_capture_takes_in_streams_that_wait_for_it(void **state)
{
    (void)state;
    run_on("", do_capture);
}

/* --- NVML ---------------------------------------------------------------------------------- */

static void
do_nvml(void)
{
    void *device, *same = NULL;
    char text[64];
    int major, minor;
    CHECK(cuda.nvmlDeviceGetHandleByIndex_v2(1, &device) == OK);
    CHECK(cuda.nvmlDeviceGetUUID(device, text, sizeof text) == OK);
    CHECK(cuda.nvmlDeviceGetHandleByUUID(text, &same) == OK && same == device);
    CHECK(cuda.nvmlDeviceGetHandleByUUID("GPU-of-another", &same) != OK);
    CHECK(cuda.nvmlDeviceGetCudaComputeCapability(device, &major, &minor) == OK);
    CHECK(major == 9 && minor == 3);
}

static void
nvml_tells_the_card_and_finds_it_by_its_id(void **state)
{
    (void)state;
    run_on("devices=2;capability=9.3", do_nvml);
}

/* --- NCCL --------------------------------------------------------------------------------- */

static void *
make_communicator(int size)
{
    void *made = NULL;
    CHECK(cuda.ncclCommInitRank(&made, size, (struct unique_id){{(char)size}}, 0) == OK);
    return made;
}

static int
reduce(void *member)
{
    return cuda.ncclAllReduce(NULL, NULL, 0, 0, 0, member, NULL);
}

/* 70 MiB at first; then 618 for a communicator of three or more, and 474 for one of two. */
static void
do_connect_late(void)
{
    uint64_t free_first = free_bytes();
    void *many = make_communicator(8), *two = make_communicator(2),
         *one = make_communicator(1);
    CHECK(free_bytes() == free_first - 70 * MIB);
    CHECK(reduce(many) == OK && reduce(many) == OK && reduce(one) == OK);
    CHECK(free_bytes() == free_first - 688 * MIB);
    CHECK(reduce(two) == NCCL_FULL);
    CHECK(cuda.ncclCommDestroy(many) == OK);
    CHECK(reduce(two) == OK);
    CHECK(free_bytes() == free_first - 544 * MIB);
    CHECK(cuda.ncclCommDestroy(two) == OK && cuda.ncclCommDestroy(one) == OK);
    CHECK(free_bytes() == free_first - 70 * MIB);
}

static void
do_connect_at_once(void)
{
    uint64_t free_first = free_bytes();
    void *many = make_communicator(8);
    CHECK(free_bytes() == free_first - 688 * MIB);
    CHECK(reduce(many) == OK);
    CHECK(free_bytes() == free_first - 688 * MIB);
}

static void
communicators_take_their_buffers_when_that_release_does(void **state)
{
    (void)state;
    run_on("nccl=22200", do_connect_late);
    run_on("nccl=21999", do_connect_at_once);
}

/* --- the setup ---------------------------------------------------------------------------- */

static void
do_nothing(void)
{
    (void)free_bytes();
}

static void
a_wrong_card_ends_the_program(void **state)
{
    (void)state;
    static const char *const wrong[] = {"total=x",    "total",  "colour=red",
                                        "devices=17", "late=2", "capability=9"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_not_equal(run_status(wrong[i], do_nothing), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_kept_account_of),
        cmocka_unit_test(a_device_may_give_more_than_it_tells),
        cmocka_unit_test(errors_are_the_runtimes),
        cmocka_unit_test(small_copies_keep_their_bytes),
        cmocka_unit_test(known_bytes_come_from_the_host),
        cmocka_unit_test(pinned_memory_is_counted),
        cmocka_unit_test(pinned_memory_gets_pages_of_what_was_written),
        cmocka_unit_test(mapped_memory_lives_until_it_is_unmapped),
        cmocka_unit_test(events_pass_at_once_or_when_somebody_waits),
        cmocka_unit_test(a_capture_takes_in_streams_that_wait_for_it),
        cmocka_unit_test(nvml_tells_the_card_and_finds_it_by_its_id),
        cmocka_unit_test(communicators_take_their_buffers_when_that_release_does),
        cmocka_unit_test(a_wrong_card_ends_the_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
