/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory registered with a driver, over the stand-in for it (test/stand_in): what is registered
 * is there, is registered once, and is not unmapped before it is unregistered.
 */
#include "support/cmocka.h"
#include "support/failing_memory.h"
#include "support/fake_kernel.h"

#include <drystone/pinned.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "device/cuda/cuda_driver.h"
#include "host/pinned/pin_make.h"
#include "os/library.h"
#include "strict/stand_in.h"

#define UNKNOWN 999 /* CUDA_ERROR_UNKNOWN */

struct bench {
    struct dryi_cuda_driver driver;
    const struct stand_in *control;
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_destroy)(void *stream);
    int (*read)(void *to, dryi_cuda_address from, size_t bytes);
    int (*copy_to)(dryi_cuda_address to, const void *from, size_t bytes, void *stream);
    void *contexts[2]; /* of the test's own, of each device */
    struct fake_kernel fake;
    struct dryi_pin_cuda_options options;
    struct dryi_pin pin;
    struct dryi_pin_range range;
    struct dry_error err;
};

static const char *
library_path(const char *name)
{
    const char *path = getenv(name);
    assert_non_null(path);
    return path;
}

static void
find(const struct bench *b, const char *name, void *function)
{
    dryi_library_function *found = dryi_library_find(b->driver.library, name);
    assert_non_null(found);
    memcpy(function, &found, sizeof found);
}

static const struct stand_in_setup two_devices = {.device_count = 2};

/* A driver and a machine; the pin is still to be made. */
static void
prepare(struct bench *b, const struct stand_in_setup *setup)
{
    *b = (struct bench){.range = {.bytes = 77}};
    const char *path = library_path("DRY_TEST_CUDA");
    assert_int_equal(dryi_cuda_driver_open(&b->driver, path, NULL), DRY_OK);
    const struct stand_in *(*control)(void);
    find(b, "stand_in_control", &control);
    find(b, "cuStreamCreate", &b->stream_create);
    find(b, "cuStreamDestroy_v2", &b->stream_destroy);
    find(b, "cuMemcpyDtoH_v2", &b->read);
    find(b, "cuMemcpyHtoDAsync_v2", &b->copy_to);
    b->control = control();
    b->control->reset(setup ? setup : &two_devices);
    b->options.library = path;
    b->options.pages.thread_count = 1;
    fake_kernel_init(&b->fake);
}

static void
use_fake_kernel(struct bench *b)
{
    b->options.pages.kernel = &b->fake.kernel;
}

static void
make(struct bench *b)
{
    assert_int_equal(dryi_pin_make_cuda(&b->options, &b->pin, &b->err), DRY_OK);
}

static enum dry_status
take(struct bench *b, uint64_t bytes)
{
    return b->pin.take(b->pin.self, bytes, -1, &b->range, &b->err);
}

static void
give(struct bench *b)
{
    b->pin.give(b->pin.self, &b->range);
}

static struct stand_in_account
read_account(const struct bench *b)
{
    struct stand_in_account a;
    b->control->get_account(&a);
    return a;
}

static struct dryi_pin_cuda_account
account_of(const struct bench *b)
{
    struct dryi_pin_cuda_account a;
    dryi_pin_cuda_get_account(&b->pin, &a);
    return a;
}

/* Nothing is left at the driver or of the machine, and nothing wrong was asked for. */
static void
finish(struct bench *b)
{
    b->pin.finish(b->pin.self);
    struct stand_in_account a = read_account(b);
    if (a.misuses)
        print_error("%s\n", b->control->last_misuse());
    assert_true(a.misuses == 0);
    assert_true(a.registrations == 0 && a.events == 0);
    assert_true(a.contexts == 0 && a.depth == 0 && a.abandoned == 0);
    b->control->reset(NULL);
    dryi_cuda_driver_close(&b->driver);
    fake_kernel_finish(&b->fake);
}

/* From here on the test may call the driver itself, on a device. */
static void
be_current(struct bench *b, int device)
{
    assert_int_equal(b->driver.init(0), 0);
    assert_int_equal(b->driver.primary_context_retain(&b->contexts[device], device), 0);
    assert_int_equal(b->driver.context_push(b->contexts[device]), 0);
}

static void
be_current_no_more(struct bench *b, int device)
{
    void *context;
    assert_int_equal(b->driver.context_pop(&context), 0);
    assert_int_equal(b->driver.primary_context_release(device), 0);
}

static uint64_t
make_stream(struct bench *b)
{
    void *stream;
    assert_int_equal(b->stream_create(&stream, 0), 0);
    return (uintptr_t)stream;
}

static void *
stream_of(uint64_t number)
{
    return (void *)(uintptr_t)number;
}

static uint64_t
record(struct bench *b, uint64_t stream)
{
    uint64_t event = 77;
    assert_int_equal(b->pin.event_record(b->pin.self, stream, &event, &b->err), DRY_OK);
    assert_true(event != UINT64_MAX);
    return event;
}

static int
is_done(struct bench *b, uint64_t event)
{
    return b->pin.event_is_done(b->pin.self, event);
}

/* --- ranges ------------------------------------------------------------------------------- */

static void
range_is_one_registration_of_pages_that_are_there(void **state)
{
    (void)state;
    static const enum dry_pages_kind kinds[] = {DRY_PAGES_BASE, DRY_PAGES_TRANSPARENT};
    for (size_t i = 0; i < 2; i++) {
        struct bench b;
        prepare(&b, NULL);
        b.options.pages.kind = kinds[i];
        make(&b);
        assert_int_equal(take(&b, 5 * DRYI_MIB + 1), DRY_OK);
        struct stand_in_account a = read_account(&b);
        assert_true(a.registrations == 1 && a.registered_bytes == b.range.bytes);
        assert_true(a.unpopulated_bytes == 0 && b.range.bytes > 5 * DRYI_MIB);
        memset((void *)(uintptr_t)b.range.address, 7, b.range.bytes);
        give(&b);
        assert_true(account_of(&b).refusals == 0);
        finish(&b);
    }
}

static void
registered_memory_serves_copies(void **state)
{
    (void)state;
    struct bench b;
    prepare(&b, NULL);
    make(&b);
    assert_int_equal(take(&b, DRYI_MIB), DRY_OK);
    be_current(&b, 0);
    uint64_t stream = make_stream(&b);
    dryi_cuda_address there;
    assert_int_equal(b.driver.mem_alloc(&there, 64), 0);
    char *here = (char *)(uintptr_t)b.range.address, found[8] = "";
    memcpy(here, "before", 7);
    b.control->hold(stream_of(stream));
    assert_int_equal(b.copy_to(there, here, 7, stream_of(stream)), 0);
    uint64_t event = record(&b, stream);
    memcpy(here, "behind", 7); /* too early: the copy has not begun */
    assert_int_equal(is_done(&b, event), 0);
    b.control->complete(stream_of(stream));
    assert_int_equal(is_done(&b, event), 1);
    assert_int_equal(b.read(found, there, 7), 0);
    assert_string_equal(found, "behind");
    b.pin.event_return(b.pin.self, event);
    assert_int_equal(b.driver.mem_free(there), 0);
    assert_int_equal(b.stream_destroy(stream_of(stream)), 0);
    be_current_no_more(&b, 0);
    give(&b);
    finish(&b);
}

static void
pages_are_those_of_the_gpu_s_node(void **state)
{
    (void)state;
    struct bench b;
    prepare(&b, NULL);
    use_fake_kernel(&b);
    fake_kernel_file(&b.fake, "/sys/bus/pci/devices/0000:3b:00.0/numa_node", "1\n");
    b.options.device = 1;
    b.options.pages.kind = DRY_PAGES_POOL;
    make(&b);
    assert_int_equal(account_of(&b).gpu_node, 1);
    assert_int_equal(take(&b, 8 * DRYI_MIB), DRY_OK);
    assert_true(b.fake.node_free[1] == 4 && b.fake.node_free[0] == 8);
    give(&b);
    finish(&b);
}

static void
unknown_place_of_the_gpu_is_no_error(void **state)
{
    (void)state;
    static const struct stand_in_setup without_id = {.no_bus_id = true};
    for (int i = 0; i < 2; i++) {
        struct bench b;
        prepare(&b, i ? &without_id : NULL);
        use_fake_kernel(&b);
        /* As in most virtual machines. */
        fake_kernel_file(&b.fake, "/sys/bus/pci/devices/0000:3a:00.0/numa_node", "-1\n");
        make(&b);
        assert_int_equal(account_of(&b).gpu_node, -1);
        assert_int_equal(take(&b, DRYI_MIB), DRY_OK);
        assert_int_equal(b.fake.binds, 0);
        give(&b);
        finish(&b);
    }
}

/* --- what the driver does not take ------------------------------------------------------- */

static void
refused_registration_is_unmapped_and_explained(void **state)
{
    (void)state;
    static const struct stand_in_setup setup = {.register_cap_bytes = 4 * DRYI_MIB};
    struct bench b;
    prepare(&b, &setup);
    use_fake_kernel(&b);
    make(&b);
    assert_int_equal(take(&b, 4 * DRYI_MIB), DRY_ERR_NO_SPACE);
    assert_non_null(
        strstr(b.err.text, "cuMemHostRegister of 4194304 bytes: CUDA error 2"));
    assert_true(b.range.bytes == 77 && b.fake.map_count == 0 && b.fake.maps_made > 0);
    assert_int_equal(take(&b, 4 * DRYI_MIB - 4096), DRY_OK); /* no error has stayed */
    give(&b);
    assert_int_equal(account_of(&b).last_error, DRYI_CUDA_OUT_OF_MEMORY);
    finish(&b);
}

/* Addresses alone, so that a test can have half a TiB of them. */
static int
map_nothing(void *self, const struct dryi_kernel_map *what, uint64_t *address)
{
    struct fake_kernel *fake = self;
    struct dryi_kernel_map empty = *what;
    struct fake_kernel original;
    fake_kernel_init(&original);
    empty.protection = PROT_NONE;
    empty.flags |= MAP_NORESERVE;
    return original.kernel.map(fake, &empty, address);
}

static void
assert_explained(uint64_t cap, uint64_t bytes, const char *release, const char *text)
{
    const struct stand_in_setup setup = {.register_cap_bytes = cap};
    struct bench b;
    prepare(&b, &setup);
    use_fake_kernel(&b);
    b.fake.kernel.map = map_nothing;
    fake_kernel_file(&b.fake, "/proc/meminfo", "MemAvailable: 9007199254740992 kB\n");
    fake_kernel_file(&b.fake, "/proc/sys/kernel/osrelease", release);
    make(&b);
    enum dry_status status = take(&b, bytes);
    assert_int_equal(status, text ? DRY_ERR_SYSTEM : DRY_ERR_NO_SPACE);
    assert_int_equal(b.err.status, status);
    if (text)
        assert_non_null(strstr(b.err.text, text));
    finish(&b);
}

static void
limits_of_a_call_are_named(void **state)
{
    (void)state;
    const uint64_t g = DRYI_GIB;
    assert_explained(512 * g, 512 * g, "6.1.0", "take less than 512 GiB a call");
    assert_explained(2 * g, 3 * g, "6.12.5-amd64", "6.13 pins at most 2 GiB a call");
    assert_explained(2 * g, 3 * g, "6.13.0", "6.13 pins at most 2 GiB a call");
    assert_explained(2 * g, 3 * g, "strange", "6.13 pins at most 2 GiB a call");
    assert_explained(2 * g, 3 * g, NULL, "6.13 pins at most 2 GiB a call");
    assert_explained(2 * g, 3 * g, "6.14.1", NULL); /* then it is memory that is short */
    assert_explained(2 * g, 3 * g, "6.1.0", NULL);
    assert_explained(2 * g, 3 * g, "5.12.0", NULL);
    assert_explained(2 * g, 2 * g, "6.12.5", NULL);
}

/* A program that unmapped what it had registered has left its mark on the addresses. */
static void
stale_registration_is_gone_around(void **state)
{
    (void)state;
    struct bench b;
    prepare(&b, NULL);
    use_fake_kernel(&b);
    make(&b);
    b.control->fail_at(2,
                       DRYI_CUDA_HOST_ALREADY_REGISTERED); /* behind push and exchange */
    assert_int_equal(take(&b, DRYI_MIB), DRY_OK);
    assert_int_equal(b.fake.maps_made, 4); /* addresses, and a region in them, twice */
    assert_int_equal(b.fake.map_peak, 4);  /* at once, so at other addresses */
    assert_int_equal(b.fake.map_count, 2);
    assert_true(read_account(&b).registrations == 1);
    give(&b);
    finish(&b);
}

static void
stale_registrations_are_explained(void **state)
{
    (void)state;
    const struct stand_in_setup setup = {.register_result =
                                             DRYI_CUDA_HOST_ALREADY_REGISTERED};
    struct bench b;
    prepare(&b, &setup);
    use_fake_kernel(&b);
    make(&b);
    assert_int_equal(take(&b, DRYI_MIB), DRY_ERR_SYSTEM);
    assert_non_null(strstr(b.err.text, "somebody unmapped registered memory"));
    assert_true(b.fake.map_count == 0 && b.fake.maps_made == 4 && b.range.bytes == 77);
    finish(&b);
}

static void
what_cannot_register_is_unsupported(void **state)
{
    (void)state;
    struct bench b;
    prepare(&b, NULL);
    b.options.library = library_path("DRY_TEST_CUDA_OLD");
    assert_int_equal(dryi_pin_make_cuda(&b.options, &b.pin, &b.err), DRY_ERR_UNSUPPORTED);
    assert_non_null(strstr(b.err.text, "has no cuMemHostRegister"));
    b.options.library = "libnone-such.so.1";
    assert_int_equal(dryi_pin_make_cuda(&b.options, &b.pin, &b.err), DRY_ERR_UNSUPPORTED);
    b.options.library = library_path("DRY_TEST_CUDA");
    b.options.device = 2;
    assert_int_equal(dryi_pin_make_cuda(&b.options, &b.pin, &b.err), DRY_ERR_UNSUPPORTED);
    b.options.device = 0;
    make(&b);
    finish(&b);
}

/* --- give ------------------------------------------------------------------------------- */

/* The driver still takes the addresses for pinned memory, so nobody may get them. */
static void
what_cannot_be_unregistered_stays_mapped(void **state)
{
    (void)state;
    struct bench b;
    prepare(&b, NULL);
    make(&b);
    assert_int_equal(take(&b, DRYI_MIB), DRY_OK);
    b.control->fail_at(2, UNKNOWN);
    give(&b);
    struct dryi_pin_cuda_account a = account_of(&b);
    assert_true(a.kept_bytes == b.range.bytes && a.refusals == 1);
    assert_int_equal(a.last_error, UNKNOWN);
    void *there = (void *)(uintptr_t)b.range.address;
    memset(there, 7, b.range.bytes); /* no fault */
    assert_true(read_account(&b).registrations == 1);
    be_current(&b, 0);
    assert_int_equal(b.driver.mem_host_unregister(there), 0);
    be_current_no_more(&b, 0);
    munmap((char *)there - 8192, b.range.bytes + 16384);
    finish(&b);
}

static void
broken_context_keeps_what_it_has(void **state)
{
    (void)state;
    struct bench b;
    prepare(&b, NULL);
    use_fake_kernel(&b);
    make(&b);
    assert_int_equal(take(&b, DRYI_MIB), DRY_OK);
    struct dryi_pin_range kept = b.range;
    uint64_t event = record(&b, 0);
    b.control->break_down(DRYI_CUDA_LAUNCH_FAILED);
    assert_int_equal(take(&b, DRYI_MIB), DRY_ERR_SYSTEM);
    assert_non_null(strstr(b.err.text, "CUDA_ERROR_LAUNCH_FAILED"));
    assert_int_equal(is_done(&b, event), -1);
    assert_int_equal(b.pin.event_record(b.pin.self, 0, &event, &b.err), DRY_ERR_SYSTEM);
    b.range = kept;
    give(&b);
    assert_true(account_of(&b).kept_bytes == kept.bytes);
    assert_false(account_of(&b).is_gone);
    b.pin.event_return(b.pin.self, event);
    b.pin.finish(b.pin.self);
    assert_int_equal(b.fake.map_count, 2); /* addresses, and the region in them */
    for (size_t i = 0; i < 2; i++)
        if (b.fake.maps[i].bytes > kept.bytes) {
            b.fake.kernel.unmap(&b.fake, b.fake.maps[i].address, b.fake.maps[i].bytes);
            break;
        }
    b.control->reset(NULL);
    dryi_cuda_driver_close(&b.driver);
    fake_kernel_finish(&b.fake);
}

/* At the end of a process the driver goes first, and what it had goes with it. */
static void
driver_that_is_gone_holds_nothing(void **state)
{
    (void)state;
    static const int ends[] = {DRYI_CUDA_DEINITIALIZED, DRYI_CUDA_CONTEXT_IS_DESTROYED};
    for (size_t i = 0; i < 2; i++) {
        struct bench b;
        prepare(&b, NULL);
        use_fake_kernel(&b);
        make(&b);
        assert_int_equal(take(&b, DRYI_MIB), DRY_OK);
        uint64_t event = record(&b, 0);
        b.control->break_down(ends[i]);
        give(&b);
        assert_int_equal(b.fake.map_count, 0);
        assert_int_equal(is_done(&b, event), -1);
        b.pin.event_return(b.pin.self, event);
        assert_int_equal(take(&b, DRYI_MIB), DRY_ERR_SYSTEM);
        assert_true(account_of(&b).is_gone && account_of(&b).kept_bytes == 0);
        assert_true(account_of(&b).refusals == 0);
        b.pin.finish(b.pin.self);
        b.control->reset(NULL);
        dryi_cuda_driver_close(&b.driver);
        fake_kernel_finish(&b.fake);
    }
}

/* Somebody else has unregistered it: then it is ours to unmap. */
static void
what_is_not_registered_is_unmapped(void **state)
{
    (void)state;
    struct bench b;
    prepare(&b, NULL);
    use_fake_kernel(&b);
    make(&b);
    assert_int_equal(take(&b, DRYI_MIB), DRY_OK);
    be_current(&b, 0);
    assert_int_equal(b.driver.mem_host_unregister((void *)(uintptr_t)b.range.address), 0);
    be_current_no_more(&b, 0);
    give(&b);
    assert_true(b.fake.map_count == 0 && account_of(&b).refusals == 1);
    assert_true(read_account(&b).misuses == 1); /* the driver minds, and that is all */
    b.pin.finish(b.pin.self);
    b.control->reset(NULL);
    dryi_cuda_driver_close(&b.driver);
    fake_kernel_finish(&b.fake);
}

static bool
use_in_child(struct bench *b, uint64_t event)
{
    uint64_t before = read_account(b).calls;
    bool good = is_done(b, event) == -1;
    b->pin.event_return(b->pin.self, event);
    give(b);
    unsigned char here;
    good = good && mincore((void *)(uintptr_t)b->range.address, 4096, &here) != 0;
    good = good && take(b, DRYI_MIB) == DRY_ERR_SYSTEM;
    good = good && b->pin.event_record(b->pin.self, 0, &event, &b->err) == DRY_ERR_SYSTEM;
    b->pin.finish(b->pin.self);
    return good && read_account(b).calls == before;
}

static void
child_of_a_fork_leaves_driver_and_memory_alone(void **state)
{
    (void)state;
    struct bench b;
    prepare(&b, NULL);
    make(&b);
    assert_int_equal(take(&b, DRYI_MIB), DRY_OK);
    uint64_t event = record(&b, 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(use_in_child(&b, event) ? 17 : 18);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 17);
    assert_int_equal(is_done(&b, event), 1);
    b.pin.event_return(b.pin.self, event);
    give(&b);
    finish(&b);
}

/* --- events ----------------------------------------------------------------------------- */

static void
events_pass_with_their_streams_in_any_order(void **state)
{
    (void)state;
    struct bench b;
    prepare(&b, NULL);
    make(&b);
    be_current(&b, 0);
    uint64_t streams[3], events[3];
    for (size_t i = 0; i < 3; i++) {
        streams[i] = make_stream(&b);
        b.control->hold(stream_of(streams[i]));
        events[i] = record(&b, streams[i]);
    }
    b.control->complete(stream_of(streams[2]));
    assert_int_equal(is_done(&b, events[0]), 0);
    assert_int_equal(is_done(&b, events[2]), 1);
    b.control->complete(stream_of(streams[0]));
    assert_int_equal(is_done(&b, events[0]), 1);
    assert_int_equal(is_done(&b, events[1]), 0);
    b.control->complete(stream_of(streams[1]));
    for (size_t i = 0; i < 3; i++) {
        b.pin.event_return(b.pin.self, events[i]);
        assert_int_equal(b.stream_destroy(stream_of(streams[i])), 0);
    }
    be_current_no_more(&b, 0);
    finish(&b);
}

static void
returned_events_are_used_again(void **state)
{
    (void)state;
    struct bench b;
    prepare(&b, NULL);
    make(&b);
    uint64_t first = record(&b, 0), made = read_account(&b).events;
    assert_true(made > 1); /* some at a time */
    b.pin.event_return(b.pin.self, first);
    uint64_t before = read_account(&b).calls;
    for (int i = 0; i < 100; i++)
        b.pin.event_return(b.pin.self, record(&b, 0));
    assert_true(read_account(&b).events == made);
    /* push, exchange, record, exchange, pop */
    assert_true(read_account(&b).calls - before == 500);
    uint64_t events[40];
    for (size_t i = 0; i < 40; i++)
        events[i] = record(&b, 0);
    for (size_t i = 0; i < 40; i++)
        for (size_t k = 0; k < i; k++)
            assert_true(events[i] != events[k]);
    made = read_account(&b).events;
    assert_true(made >= 40 && made < 60);
    /* Finishing destroys also what nobody returned. */
    finish(&b);
}

/* Registered memory is every GPU's; an event is of one. */
static void
streams_of_other_gpus_have_events_of_theirs(void **state)
{
    (void)state;
    struct bench b;
    prepare(&b, NULL);
    make(&b);
    be_current(&b, 1);
    uint64_t stream = make_stream(&b);
    b.control->hold(stream_of(stream));
    uint64_t event = record(&b, stream), own = record(&b, 0);
    assert_int_equal(is_done(&b, event), 0);
    assert_int_equal(is_done(&b, own), 1);
    b.control->complete(stream_of(stream));
    assert_int_equal(is_done(&b, event), 1);
    b.pin.event_return(b.pin.self, event);
    b.pin.event_return(b.pin.self, own);
    uint64_t made = read_account(&b).events;
    for (int i = 0; i < 10; i++) {
        event = record(&b, stream);
        own = record(&b, 0);
        b.pin.event_return(b.pin.self, event);
        b.pin.event_return(b.pin.self, own);
    }
    assert_true(read_account(&b).events == made);
    void *current;
    assert_int_equal(b.driver.context_pop(&current), 0);
    assert_true(current == b.contexts[1]);
    assert_int_equal(b.driver.context_push(current), 0);
    b.pin.finish(b.pin.self);
    assert_true(read_account(&b).events == 0 && read_account(&b).misuses == 0);
    assert_int_equal(b.stream_destroy(stream_of(stream)), 0);
    be_current_no_more(&b, 1);
    assert_true(read_account(&b).contexts == 0);
    b.control->reset(NULL);
    dryi_cuda_driver_close(&b.driver);
    fake_kernel_finish(&b.fake);
}

static void
default_streams_of_other_gpus_can_be_named(void **state)
{
    (void)state;
    struct bench b;
    prepare(&b, NULL);
    make(&b);
    uint64_t events[3];
    events[0] = record(&b, DRY_PINNED_DEFAULT_STREAM(0));
    assert_true(read_account(&b).contexts == 1); /* our own GPU */
    uint64_t made = read_account(&b).events;
    events[1] = record(&b, DRY_PINNED_DEFAULT_STREAM(1));
    assert_true(read_account(&b).contexts == 2 && read_account(&b).events > made);
    events[2] = record(&b, DRY_PINNED_DEFAULT_STREAM(1));
    assert_true(read_account(&b).contexts == 2);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(is_done(&b, events[i]), 1);
        b.pin.event_return(b.pin.self, events[i]);
    }
    uint64_t none;
    static const uint64_t wrong[] = {2, 63, 64, UINT64_C(1) << 40};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_not_equal(b.pin.event_record(b.pin.self,
                                                DRY_PINNED_DEFAULT_STREAM(wrong[i]),
                                                &none, &b.err),
                             DRY_OK);
    finish(&b);
}

/* Whichever call is refused, nothing is left behind and the next try succeeds. */
static void
refused_default_stream_of_another_gpu_is_tried_again(void **state)
{
    (void)state;
    for (uint64_t n = 0; n < 10; n++) {
        struct bench b;
        prepare(&b, NULL);
        make(&b);
        uint64_t event = 77;
        b.control->fail_at(n, DRYI_CUDA_OUT_OF_MEMORY);
        if (b.pin.event_record(b.pin.self, DRY_PINNED_DEFAULT_STREAM(1), &event,
                               &b.err) == DRY_OK)
            b.pin.event_return(b.pin.self, event);
        b.control->fail_at(UINT64_MAX, 0);
        b.pin.event_return(b.pin.self, record(&b, DRY_PINNED_DEFAULT_STREAM(1)));
        finish(&b);
    }
}

/* What befalls another's context is not the end of ours. */
static void
other_context_that_is_gone_is_no_end(void **state)
{
    (void)state;
    struct bench b;
    prepare(&b, NULL);
    make(&b);
    be_current(&b, 1);
    uint64_t stream = make_stream(&b), event = record(&b, stream), none;
    b.control->fail_at(0, DRYI_CUDA_CONTEXT_IS_DESTROYED);
    assert_int_equal(is_done(&b, event), -1);
    b.pin.event_return(b.pin.self, event);
    b.control->fail_at(3, DRYI_CUDA_CONTEXT_IS_DESTROYED); /* entered ours, asked whose */
    assert_int_equal(b.pin.event_record(b.pin.self, stream, &none, &b.err),
                     DRY_ERR_SYSTEM);
    assert_false(account_of(&b).is_gone);
    b.pin.event_return(b.pin.self, record(&b, stream));
    b.pin.finish(b.pin.self);
    assert_int_equal(b.stream_destroy(stream_of(stream)), 0);
    be_current_no_more(&b, 1);
    assert_true(read_account(&b).events == 0 && read_account(&b).contexts == 0);
    b.control->reset(NULL);
    dryi_cuda_driver_close(&b.driver);
    fake_kernel_finish(&b.fake);
}

static void
destroyed_stream_is_an_error_and_no_end(void **state)
{
    (void)state;
    struct bench b;
    prepare(&b, NULL);
    make(&b);
    be_current(&b, 0);
    uint64_t stream = make_stream(&b), event = 77;
    assert_int_equal(b.stream_destroy(stream_of(stream)), 0);
    be_current_no_more(&b, 0);
    assert_int_equal(b.pin.event_record(b.pin.self, stream, &event, &b.err),
                     DRY_ERR_SYSTEM);
    assert_true(event == 77 && !account_of(&b).is_gone);
    b.pin.event_return(b.pin.self, record(&b, 0));
    finish(&b);
}

/* It may be the event that is to blame, so it is not asked again; its record is. */
static void
refused_events_are_replaced(void **state)
{
    (void)state;
    struct bench b;
    struct failing_memory fm;
    struct dry_memory memory = failing_memory_init(&fm, SIZE_MAX);
    prepare(&b, NULL);
    b.options.pages.memory = &memory;
    make(&b);
    uint64_t event = record(&b, 0);
    size_t bytes = fm.live_bytes;
    b.pin.event_return(b.pin.self, event);
    for (int i = 0; i < 500; i++) {
        b.control->fail_at(2, UNKNOWN); /* behind push and exchange */
        assert_int_equal(b.pin.event_record(b.pin.self, 0, &event, &b.err),
                         DRY_ERR_SYSTEM);
        event = record(&b, 0);
        assert_int_equal(is_done(&b, event), 1);
        b.pin.event_return(b.pin.self, event);
        assert_true(read_account(&b).events <= 8);
    }
    assert_true(fm.live_bytes == bytes);
    b.control->fail_at(2, DRYI_CUDA_CONTEXT_IS_DESTROYED); /* as is said of handles too */
    assert_int_equal(is_done(&b, event), -1);
    assert_false(account_of(&b).is_gone);
    finish(&b);
    failing_memory_finish(&fm);
}

/* As the driver tells of an event that was recorded in a capture: it will never pass. */
static void
captured_event_is_not_passed(void **state)
{
    (void)state;
    struct bench b;
    prepare(&b, NULL);
    make(&b);
    uint64_t event = record(&b, 0);
    b.control->fail_at(2, DRYI_CUDA_CAPTURED_EVENT);
    assert_int_equal(is_done(&b, event), 0);
    b.control->fail_at(2, UNKNOWN);
    assert_int_equal(is_done(&b, event), -1);
    b.pin.event_return(b.pin.self, event);
    finish(&b);
}

static void
capture_under_way_is_not_spoilt(void **state)
{
    (void)state;
    struct bench b;
    prepare(&b, NULL);
    make(&b);
    b.control->capture(true);
    assert_int_equal(take(&b, DRYI_MIB), DRY_OK);
    uint64_t event = record(&b, 0);
    assert_int_equal(is_done(&b, event), 1);
    b.pin.event_return(b.pin.self, event);
    give(&b);
    b.control->capture(false);
    finish(&b);
}

/* --- failures --------------------------------------------------------------------------- */

/* Everything once; how many calls said that they failed. */
static unsigned
use_everything(struct bench *b, uint64_t stream)
{
    uint64_t event;
    unsigned failures = 0;
    bool has_range = take(b, DRYI_MIB) == DRY_OK;
    failures += !has_range;
    const uint64_t streams[] = {0, stream};
    for (size_t i = 0; i < 2; i++) {
        if (b->pin.event_record(b->pin.self, streams[i], &event, &b->err) != DRY_OK) {
            failures++;
            continue;
        }
        failures += is_done(b, event) != 1;
        b->pin.event_return(b->pin.self, event);
    }
    if (has_range)
        give(b);
    return failures;
}

/* Undo by hand what could not be unregistered. */
static void
remove_kept(struct bench *b)
{
    void *former;
    be_current(b, 0);
    if (read_account(b).registrations)
        assert_int_equal(b->driver.mem_host_unregister(stream_of(b->range.address)), 0);
    assert_int_equal(b->driver.context_pop(&former), 0);
    assert_int_equal(b->driver.primary_context_release(0), 0);
    for (size_t i = b->fake.map_count; i-- > 0;)
        if (b->fake.maps[i].bytes > b->range.bytes) {
            b->fake.kernel.unmap(&b->fake, b->fake.maps[i].address,
                                 b->fake.maps[i].bytes);
            return;
        }
}

/* True while `n` is a call that is made. */
static bool
fail_one(uint64_t n, int result)
{
    struct bench b;
    prepare(&b, NULL);
    use_fake_kernel(&b);
    be_current(&b, 1);
    uint64_t stream = make_stream(&b);
    uint64_t begin = read_account(&b).calls;
    b.control->fail_at(n, result);
    enum dry_status status = dryi_pin_make_cuda(&b.options, &b.pin, &b.err);
    unsigned failures = 0;
    uint64_t refusals = 0, last = UINT64_MAX;
    if (status == DRY_OK) {
        failures = use_everything(&b, stream);
        struct dryi_pin_cuda_account a = account_of(&b);
        refusals = a.refusals;
        b.pin.finish(b.pin.self);
        last = read_account(&b).calls - begin - 1;
        bool is_hit = n <= last;
        b.control->fail_at(UINT64_MAX, 0);
        if (a.kept_bytes)
            remove_kept(&b);
        if (!is_hit)
            assert_true(failures + refusals == 0);
    }
    bool more = status != DRY_OK || n <= last;
    b.control->fail_at(UINT64_MAX, 0);
    struct stand_in_account a = read_account(&b);
    assert_true(a.registrations == 0);
    assert_true(a.contexts == 1 || n == last); /* the release was refused */
    assert_true(a.depth <= 2);                 /* what could not be popped */
    assert_true(a.events <= 8); /* a context's, where nobody could get in at the end */
    assert_true(a.misuses == 0);
    b.control->reset(NULL);
    dryi_cuda_driver_close(&b.driver);
    fake_kernel_finish(&b.fake);
    return more;
}

static void
every_driver_call_may_fail(void **state)
{
    (void)state;
    static const int results[] = {UNKNOWN, DRYI_CUDA_OUT_OF_MEMORY};
    for (size_t i = 0; i < 2; i++) {
        uint64_t n = 0;
        while (fail_one(n, results[i]))
            n++;
        assert_true(n > 40);
    }
}

static void
every_system_call_may_fail(void **state)
{
    (void)state;
    size_t n = 0;
    for (bool more = true; more; n++) {
        struct bench b;
        prepare(&b, NULL);
        use_fake_kernel(&b);
        fake_kernel_file(&b.fake, "/sys/bus/pci/devices/0000:3a:00.0/numa_node", "1\n");
        b.options.pages.kind = DRY_PAGES_TRANSPARENT;
        fake_kernel_refuse(&b.fake, n, ENOMEM);
        make(&b);
        if (take(&b, 3 * DRYI_MIB) == DRY_OK)
            give(&b);
        (void)b.pin.available_bytes(b.pin.self, 1);
        assert_true(read_account(&b).registrations == 0);
        more = b.fake.has_refused;
        finish(&b);
        assert_true(n < 2000);
    }
    assert_true(n > 20);
}

static void
no_memory_for_records_is_said(void **state)
{
    (void)state;
    for (size_t n = 0;; n++) {
        struct bench b;
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        prepare(&b, NULL);
        use_fake_kernel(&b);
        b.options.pages.memory = &memory;
        enum dry_status status = dryi_pin_make_cuda(&b.options, &b.pin, &b.err);
        if (status == DRY_OK) {
            uint64_t events[10];
            size_t count = 0;
            status = take(&b, DRYI_MIB);
            if (status == DRY_OK)
                give(&b);
            while (status == DRY_OK && count < 10) {
                status = b.pin.event_record(b.pin.self, 0, &events[count], &b.err);
                count += status == DRY_OK;
            }
            while (count > 0)
                b.pin.event_return(b.pin.self, events[--count]);
            b.pin.finish(b.pin.self);
        }
        /* Events are made some at a time; the first is enough. */
        assert_true(status == DRY_OK || (fm.failed && status == DRY_ERR_MEMORY));
        assert_true(read_account(&b).events == 0 && read_account(&b).contexts == 0);
        assert_true(read_account(&b).registrations == 0 && read_account(&b).misuses == 0);
        failing_memory_finish(&fm);
        b.control->reset(NULL);
        dryi_cuda_driver_close(&b.driver);
        fake_kernel_finish(&b.fake);
        if (!fm.failed)
            break;
    }
}

/* --- threads ---------------------------------------------------------------------------- */

static void *
churn(void *self)
{
    const struct dryi_pin *pin = self;
    for (int i = 0; i < 100; i++) {
        struct dryi_pin_range range;
        uint64_t events[3];
        for (size_t k = 0; k < 3; k++)
            if (pin->event_record(pin->self, k, &events[k], NULL) != DRY_OK)
                return NULL;
        if (i % 10 == 0) {
            if (pin->take(pin->self, 65536, -1, &range, NULL) != DRY_OK)
                return NULL;
            memset((void *)(uintptr_t)range.address, i, range.bytes);
            pin->give(pin->self, &range);
        }
        for (size_t k = 0; k < 3; k++) {
            if (pin->event_is_done(pin->self, events[k]) != 1)
                return NULL;
            pin->event_return(pin->self, events[k]);
        }
    }
    return self;
}

static void
threads_share_a_pin(void **state)
{
    (void)state;
    static const struct stand_in_setup setup = {.register_ns = 10000};
    struct bench b;
    prepare(&b, &setup);
    make(&b);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, &b.pin), 0);
    for (int i = 0; i < 4; i++) {
        void *result = NULL;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_non_null(result);
    }
    finish(&b);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(range_is_one_registration_of_pages_that_are_there),
        cmocka_unit_test(registered_memory_serves_copies),
        cmocka_unit_test(pages_are_those_of_the_gpu_s_node),
        cmocka_unit_test(unknown_place_of_the_gpu_is_no_error),
        cmocka_unit_test(refused_registration_is_unmapped_and_explained),
        cmocka_unit_test(limits_of_a_call_are_named),
        cmocka_unit_test(stale_registration_is_gone_around),
        cmocka_unit_test(stale_registrations_are_explained),
        cmocka_unit_test(what_cannot_register_is_unsupported),
        cmocka_unit_test(what_cannot_be_unregistered_stays_mapped),
        cmocka_unit_test(broken_context_keeps_what_it_has),
        cmocka_unit_test(driver_that_is_gone_holds_nothing),
        cmocka_unit_test(what_is_not_registered_is_unmapped),
        cmocka_unit_test(child_of_a_fork_leaves_driver_and_memory_alone),
        cmocka_unit_test(events_pass_with_their_streams_in_any_order),
        cmocka_unit_test(returned_events_are_used_again),
        cmocka_unit_test(streams_of_other_gpus_have_events_of_theirs),
        cmocka_unit_test(default_streams_of_other_gpus_can_be_named),
        cmocka_unit_test(refused_default_stream_of_another_gpu_is_tried_again),
        cmocka_unit_test(other_context_that_is_gone_is_no_end),
        cmocka_unit_test(destroyed_stream_is_an_error_and_no_end),
        cmocka_unit_test(refused_events_are_replaced),
        cmocka_unit_test(captured_event_is_not_passed),
        cmocka_unit_test(capture_under_way_is_not_spoilt),
        cmocka_unit_test(every_driver_call_may_fail),
        cmocka_unit_test(every_system_call_may_fail),
        cmocka_unit_test(no_memory_for_records_is_said),
        cmocka_unit_test(threads_share_a_pin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
