/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in for the driver watches its caller: what it must refuse, it refuses. */
#include "support/cmocka.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/cuda/cuda_driver.h"
#include "os/library.h"
#include "strict/stand_in.h"

#define MIB (UINT64_C(1) << 20)
#define PAGE (2 * MIB)

struct bench {
    struct dryi_cuda_driver d;
    const struct stand_in *control;
    int (*set)(dryi_cuda_address address, unsigned char value, size_t bytes);
    int (*read)(void *to, dryi_cuda_address from, size_t bytes);
    int (*copy_to)(dryi_cuda_address to, const void *from, size_t bytes, void *stream);
    int (*copy_from)(void *to, dryi_cuda_address from, size_t bytes, void *stream);
    int (*stream_create)(void **stream, unsigned flags);
    void *context;
};

static void *
find(const struct bench *b, const char *name, void *function)
{
    dryi_library_function *found = dryi_library_find(b->d.library, name);
    assert_non_null(found);
    memcpy(function, &found, sizeof found);
    return function;
}

static struct bench
begin(void)
{
    struct bench b = {0};
    const char *library = getenv("DRY_TEST_CUDA");
    assert_non_null(library);
    assert_int_equal(dryi_cuda_driver_open(&b.d, library, NULL), DRY_OK);
    const struct stand_in *(*control)(void);
    find(&b, "stand_in_control", &control);
    find(&b, "cuMemsetD8_v2", &b.set);
    find(&b, "cuMemcpyDtoH_v2", &b.read);
    find(&b, "cuMemcpyHtoDAsync_v2", &b.copy_to);
    find(&b, "cuMemcpyDtoHAsync_v2", &b.copy_from);
    find(&b, "cuStreamCreate", &b.stream_create);
    b.control = control();
    const struct stand_in_setup setup = {.device_count = 2, .total_bytes = 16 * MIB};
    b.control->reset(&setup);
    int device;
    assert_int_equal(b.d.init(0), 0);
    assert_int_equal(b.d.device_get(&device, 1), 0);
    assert_int_equal(b.d.primary_context_retain(&b.context, device), 0);
    assert_int_equal(b.d.context_push(b.context), 0);
    return b;
}

static void
end(struct bench *b)
{
    b->control->reset(NULL);
    dryi_cuda_driver_close(&b->d);
}

static uint64_t
misuses(const struct bench *b)
{
    struct stand_in_account account;
    b->control->get_account(&account);
    return account.misuses;
}

/* The call was refused, and counted. */
#define assert_misuse(b, call)                                                           \
    do {                                                                                 \
        uint64_t before = misuses(b);                                                    \
        assert_true((call) != DRYI_CUDA_SUCCESS);                                        \
        assert_true(misuses(b) == before + 1);                                           \
    } while (0)

static const struct dryi_cuda_memory plain = {
    .type = DRYI_CUDA_MEM_PINNED, .location = {.type = DRYI_CUDA_MEM_ON_DEVICE, .id = 1}};
static const struct dryi_cuda_access all = {
    .location = {.type = DRYI_CUDA_MEM_ON_DEVICE, .id = 1},
    .flags = DRYI_CUDA_MEM_READ_WRITE};

static void
context_is_asked_for(void **state)
{
    (void)state;
    struct bench b = begin();
    void *former;
    dryi_cuda_address address;
    assert_int_equal(b.d.context_pop(&former), 0);
    assert_true(former == b.context);
    assert_int_equal(b.d.context_pop(&former), DRYI_CUDA_INVALID_CONTEXT);
    assert_int_equal(b.d.mem_alloc(&address, PAGE), DRYI_CUDA_INVALID_CONTEXT);
    assert_int_equal(b.d.context_push(&former), DRYI_CUDA_INVALID_CONTEXT);
    assert_int_equal(b.d.context_push(b.context), 0);
    assert_int_equal(b.d.primary_context_release(1), 0);
    assert_int_equal(b.d.mem_alloc(&address, PAGE), DRYI_CUDA_INVALID_CONTEXT);
    assert_misuse(&b, b.d.primary_context_release(1));
    end(&b);
}

static void
ranges_are_freed_once(void **state)
{
    (void)state;
    struct bench b = begin();
    dryi_cuda_address a, c;
    assert_int_equal(b.d.mem_alloc(&a, 5 * MIB), 0);
    assert_int_equal(b.d.mem_alloc(&c, 11 * MIB), DRYI_CUDA_OUT_OF_MEMORY);
    assert_int_equal(b.set(a, 7, 5 * MIB), 0);
    unsigned char byte = 0;
    assert_int_equal(b.read(&byte, a + 5 * MIB - 1, 1), 0);
    assert_int_equal(byte, 7);
    assert_int_equal(b.read(NULL, a, 1), DRYI_CUDA_INVALID_VALUE);
    assert_misuse(&b, b.d.mem_free(a + 512));
    assert_int_equal(b.d.mem_free(a), 0);
    assert_misuse(&b, b.d.mem_free(a));
    assert_int_equal(b.d.mem_free(0), 0);
    assert_misuse(&b, b.d.mem_alloc(&a, 0));
    end(&b);
}

static void
memory_needs_access_before_use(void **state)
{
    (void)state;
    struct bench b = begin();
    dryi_cuda_address a;
    dryi_cuda_handle h;
    assert_int_equal(b.d.mem_address_reserve(&a, 4 * PAGE, 0, 0, 0), 0);
    assert_int_equal(b.d.mem_create(&h, PAGE, &plain, 0), 0);
    assert_misuse(&b, b.d.mem_set_access(a, PAGE, &all, 1));
    assert_int_equal(b.d.mem_map(a, PAGE, 0, h, 0), 0);
    assert_misuse(&b, b.set(a, 1, 8));
    /* As on a GPU: from here on everything is refused. */
    assert_int_equal(b.d.mem_release(h), DRYI_CUDA_ILLEGAL_ADDRESS);
    b.control->break_down(0);
    assert_int_equal(b.d.mem_set_access(a, PAGE, &all, 1), 0);
    assert_int_equal(b.set(a, 1, PAGE), 0);
    assert_misuse(&b, b.set(a, 1, PAGE + 1));
    b.control->break_down(0);
    /* A new mapping of the same memory has no access again. */
    assert_int_equal(b.d.mem_unmap(a, PAGE), 0);
    assert_int_equal(b.d.mem_map(a, PAGE, 0, h, 0), 0);
    assert_misuse(&b, b.set(a, 1, 8));
    end(&b);
}

static void
mappings_are_whole(void **state)
{
    (void)state;
    struct bench b = begin();
    dryi_cuda_address a;
    dryi_cuda_handle h[2], large;
    assert_int_equal(b.d.mem_address_reserve(&a, 8 * PAGE, 0, 0, 0), 0);
    assert_misuse(&b, b.d.mem_address_reserve(&a, MIB, 0, 0, 0));
    assert_misuse(&b, b.d.mem_create(&large, PAGE + MIB, &plain, 0));
    assert_int_equal(b.d.mem_create(&large, 2 * PAGE, &plain, 0), 0);
    assert_misuse(&b, b.d.mem_map(a, PAGE, 0, large, 0));
    assert_misuse(&b, b.d.mem_map(a + MIB, 2 * PAGE, 0, large, 0));
    assert_misuse(&b, b.d.mem_map(a + 7 * PAGE, 2 * PAGE, 0, large, 0));
    assert_int_equal(b.d.mem_map(a, 2 * PAGE, 0, large, 0), 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(b.d.mem_create(&h[i], PAGE, &plain, 0), 0);
        assert_int_equal(b.d.mem_map(a + (2 + i) * PAGE, PAGE, 0, h[i], 0), 0);
    }
    assert_misuse(&b, b.d.mem_map(a + PAGE, PAGE, 0, h[0], 0));
    assert_misuse(&b, b.d.mem_unmap(a, PAGE));
    assert_misuse(&b, b.d.mem_unmap(a + PAGE, PAGE));
    assert_misuse(&b, b.d.mem_unmap(a + 3 * PAGE, 2 * PAGE));
    assert_misuse(&b, b.d.mem_address_free(a, 8 * PAGE));
    assert_int_equal(b.d.mem_unmap(a, 4 * PAGE), 0);
    assert_misuse(&b, b.d.mem_unmap(a, PAGE));
    assert_misuse(&b, b.d.mem_address_free(a, 4 * PAGE));
    assert_int_equal(b.d.mem_address_free(a, 8 * PAGE), 0);
    assert_misuse(&b, b.d.mem_address_free(a, 8 * PAGE));
    end(&b);
}

static void
handles_live_as_long_as_their_mappings(void **state)
{
    (void)state;
    struct bench b = begin();
    dryi_cuda_address a;
    dryi_cuda_handle h;
    size_t is_free, total;
    assert_int_equal(b.d.mem_address_reserve(&a, 4 * PAGE, 0, 0, 0), 0);
    assert_int_equal(b.d.mem_create(&h, 4 * PAGE, &plain, 0), 0);
    assert_int_equal(b.d.mem_map(a, 4 * PAGE, 0, h, 0), 0);
    assert_int_equal(b.d.mem_release(h), 0);
    assert_misuse(&b, b.d.mem_release(h));
    assert_misuse(&b, b.d.mem_map(a, 4 * PAGE, 0, h, 0));
    assert_int_equal(b.d.mem_get_info(&is_free, &total), 0);
    assert_true(total == 16 * MIB && is_free == 8 * MIB);
    assert_int_equal(b.d.mem_unmap(a, 4 * PAGE), 0);
    assert_int_equal(b.d.mem_get_info(&is_free, &total), 0);
    assert_true(is_free == total);
    assert_int_equal(b.d.mem_create(&h, 18 * MIB, &plain, 0), DRYI_CUDA_OUT_OF_MEMORY);
    end(&b);
}

static void
streams_wait_for_each_other(void **state)
{
    (void)state;
    struct bench b = begin();
    int (*create)(void **stream, unsigned flags);
    find(&b, "cuStreamCreate", &create);
    void *s[2], *e[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(create(&s[i], 0), 0);
        assert_int_equal(b.d.event_create(&e[i], DRYI_CUDA_EVENT_WITHOUT_TIME), 0);
        assert_int_equal(b.d.event_query(e[i]), 0); /* never recorded */
    }
    b.control->hold(s[0]);
    assert_int_equal(b.d.event_record(e[0], s[0]), 0);
    assert_int_equal(b.d.stream_wait_event(s[1], e[0], 0), 0);
    assert_int_equal(b.d.event_record(e[1], s[1]), 0);
    assert_int_equal(b.d.event_query(e[0]), DRYI_CUDA_NOT_READY);
    assert_int_equal(b.d.event_query(e[1]), DRYI_CUDA_NOT_READY);
    b.control->complete(s[0]);
    assert_int_equal(b.d.event_query(e[0]), 0);
    assert_int_equal(b.d.event_query(e[1]), 0);
    assert_int_equal(b.d.event_record(e[0], s[0]), 0);
    assert_int_equal(b.d.stream_wait_event(s[1], e[0], 0), 0);
    assert_int_equal(b.d.event_query(e[0]), DRYI_CUDA_NOT_READY);
    assert_int_equal(b.d.stream_synchronize(s[1]), 0); /* and so for s[0] */
    assert_int_equal(b.d.event_query(e[0]), 0);
    assert_int_equal(b.d.event_destroy(e[0]), 0);
    assert_misuse(&b, b.d.event_destroy(e[0]));
    assert_misuse(&b, b.d.event_record(e[1], (void *)(uintptr_t)12345));
    end(&b);
}

#define FOR_ALL (DRYI_CUDA_HOST_PORTABLE | DRYI_CUDA_HOST_MAPPED)

static char *
map_pages(size_t bytes)
{
    char *at =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED);
    return at;
}

static void
host_memory_is_registered_once_and_whole(void **state)
{
    (void)state;
    struct bench b = begin();
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = 4 * page;
    char *at = map_pages(bytes);
    assert_misuse(&b, b.d.mem_host_register(at + 1, page, FOR_ALL));
    assert_misuse(&b, b.d.mem_host_register(at, page + 1, FOR_ALL));
    assert_misuse(&b, b.d.mem_host_register(at, 0, FOR_ALL));
    assert_misuse(&b, b.d.mem_host_register(at, bytes, DRYI_CUDA_HOST_PORTABLE));
    memset(at, 1, page);
    assert_int_equal(b.d.mem_host_register(at, 2 * page, FOR_ALL), 0);
    struct stand_in_account a;
    b.control->get_account(&a);
    assert_true(a.registrations == 1 && a.registered_bytes == 2 * page);
    assert_true(a.unpopulated_bytes == page); /* which it had to fault in */
    assert_int_equal(b.d.mem_host_register(at + page, 2 * page, FOR_ALL),
                     DRYI_CUDA_HOST_ALREADY_REGISTERED);
    assert_int_equal(b.d.mem_host_register(at, page, FOR_ALL),
                     DRYI_CUDA_HOST_ALREADY_REGISTERED);
    assert_int_equal(b.d.mem_host_register(at + 2 * page, 2 * page, FOR_ALL), 0);
    assert_misuse(&b, b.d.mem_host_unregister(at + page));
    assert_int_equal(b.d.mem_host_unregister(at), 0);
    assert_misuse(&b, b.d.mem_host_unregister(at));
    munmap(at, bytes);
    assert_misuse(&b, b.d.mem_host_register(at, page, FOR_ALL));
    uint64_t before = misuses(&b);
    assert_int_equal(b.d.mem_host_unregister(at + 2 * page), 0);
    assert_true(misuses(&b) == before + 1); /* it was unmapped before */
    end(&b);
}

static void
registrations_are_limited_and_of_their_process(void **state)
{
    (void)state;
    struct bench b = begin();
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const struct stand_in_setup setup = {.register_cap_bytes = 3 * page};
    char *at = map_pages(3 * page);
    b.control->reset(&setup);
    assert_int_equal(b.d.init(0), 0);
    assert_int_equal(b.d.primary_context_retain(&b.context, 0), 0);
    assert_int_equal(b.d.context_push(b.context), 0);
    assert_int_equal(b.d.mem_host_register(at, 3 * page, FOR_ALL),
                     DRYI_CUDA_OUT_OF_MEMORY);
    assert_int_equal(b.d.mem_host_register(at, 2 * page, FOR_ALL), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(b.d.mem_host_unregister(at) == DRYI_CUDA_NOT_INITIALIZED ? 17 : 18);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 17);
    assert_int_equal(b.d.primary_context_release(0), 0);
    struct stand_in_account a;
    b.control->get_account(&a);
    assert_true(a.abandoned == 1); /* a leak is found at the end */
    munmap(at, 3 * page);
    end(&b);
}

static void
copies_wait_for_their_stream_and_keep_to_a_registration(void **state)
{
    (void)state;
    struct bench b = begin();
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *at = map_pages(2 * page), byte = 1;
    dryi_cuda_address there;
    void *stream;
    assert_int_equal(b.d.mem_alloc(&there, 2 * page), 0);
    assert_int_equal(b.stream_create(&stream, 0), 0);
    assert_int_equal(b.d.mem_host_register(at, page, FOR_ALL), 0);
    assert_int_equal(b.d.mem_host_register(at + page, page, FOR_ALL), 0);
    assert_misuse(&b, b.copy_to(there, at + page - 1, 2, stream));
    assert_misuse(&b, b.copy_from(at - 1, there, 2, stream));
    b.control->hold(stream);
    at[0] = 1;
    assert_int_equal(b.copy_to(there, at, 1, stream), 0);
    assert_int_equal(b.copy_from(at + page, there, 1, stream), 0);
    at[0] = 5;
    uint64_t before = misuses(&b);
    assert_int_equal(b.d.mem_host_unregister(at), 0);
    assert_true(misuses(&b) == before + 1);                  /* a copy is still to come */
    assert_int_equal(b.copy_to(there, &byte, 1, stream), 0); /* pageable: at once */
    assert_int_equal(b.read(&byte, there, 1), 0);
    assert_int_equal(byte, 1);
    b.control->complete(stream);
    assert_int_equal(at[page], 5);
    assert_int_equal(b.d.mem_host_unregister(at + page), 0);
    assert_int_equal(b.d.mem_free(there), 0);
    munmap(at, 2 * page);
    end(&b);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(context_is_asked_for),
        cmocka_unit_test(ranges_are_freed_once),
        cmocka_unit_test(memory_needs_access_before_use),
        cmocka_unit_test(mappings_are_whole),
        cmocka_unit_test(handles_live_as_long_as_their_mappings),
        cmocka_unit_test(streams_wait_for_each_other),
        cmocka_unit_test(host_memory_is_registered_once_and_whole),
        cmocka_unit_test(registrations_are_limited_and_of_their_process),
        cmocka_unit_test(copies_wait_for_their_stream_and_keep_to_a_registration),
    };
    return cmocka_run_group_tests_name("stand_in", tests, NULL, NULL);
}
