/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cmocka.h"
#include "support/failing_memory.h"

#include <drystone/host_device.h>

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/bits.h"
#include "os/system.h"

struct fixture {
    struct dry_host_device *host;
    struct dry_device d;
    uint64_t page_bytes;
};

static struct fixture
make_host(uint64_t capacity_bytes, uint64_t page_bytes)
{
    struct dry_host_device_options o;
    dry_host_device_options_init(&o);
    o.capacity_bytes = capacity_bytes;
    o.page_bytes = page_bytes;
    struct fixture f = {.page_bytes = page_bytes};
    assert_int_equal(dry_host_device_create(&o, &f.host, NULL), DRY_OK);
    f.d = dry_host_device_get_device(f.host);
    return f;
}

static uint64_t
used_bytes(const struct fixture *f)
{
    uint64_t free_bytes, total_bytes;
    f->d.ops->get_info(f->d.self, &free_bytes, &total_bytes);
    assert_true(free_bytes <= total_bytes);
    return total_bytes - free_bytes;
}

static void
end_host(struct fixture *f)
{
    assert_true(used_bytes(f) == 0);
    dry_host_device_destroy(f->host);
}

static void *
at(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

/* The kernel tells without a signal whether a byte can be read. */
static bool
is_readable(uint64_t address)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    bool readable = write(ends[1], at(address), 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return readable;
}

static void
fill(uint64_t address, uint64_t bytes, uint32_t seed)
{
    for (uint64_t i = 0; i < bytes / 8; i++) {
        uint64_t word = dryi_mix64(i + ((uint64_t)seed << 32));
        memcpy(at(address + i * 8), &word, 8);
    }
}

static void
assert_filled(uint64_t address, uint64_t bytes, uint32_t seed)
{
    for (uint64_t i = 0; i < bytes / 8; i++) {
        uint64_t expected = dryi_mix64(i + ((uint64_t)seed << 32)), word;
        memcpy(&word, at(address + i * 8), 8);
        assert_true(word == expected);
    }
}

static void
assert_zero(uint64_t address, uint64_t bytes)
{
    const unsigned char *byte = at(address);
    for (uint64_t i = 0; i < bytes; i++)
        assert_true(byte[i] == 0);
}

static void
alloc_gives_memory_of_its_own(void **state)
{
    (void)state;
    struct fixture f = make_host(DRYI_GIB, 2 * DRYI_MIB);
    uint64_t a, b;
    assert_int_equal(f.d.ops->alloc(f.d.self, 3 * DRYI_MIB + 1, &a), DRY_OK);
    assert_int_equal(f.d.ops->alloc(f.d.self, 1, &b), DRY_OK);
    assert_true(used_bytes(&f) == 3 * DRYI_MIB + 2 * dryi_system_page_bytes());
    assert_zero(a, 3 * DRYI_MIB + 1);
    fill(a, 3 * DRYI_MIB, 1);
    memset(at(b), 7, 1);
    assert_filled(a, 3 * DRYI_MIB, 1);
    f.d.ops->free(f.d.self, a, 3 * DRYI_MIB + 1);
    assert_false(is_readable(a));
    assert_true(*(char *)at(b) == 7);
    f.d.ops->free(f.d.self, b, 1);
    end_host(&f);
}

/* What a page holds goes where the page goes. */
static void
move_pages(uint64_t page_bytes)
{
    struct fixture f = make_host(DRYI_GIB, page_bytes);
    uint64_t range, pages[4];
    assert_int_equal(f.d.ops->reserve(f.d.self, 16 * page_bytes, &range), DRY_OK);
    assert_true(range % page_bytes == 0);
    assert_true(used_bytes(&f) == 0);
    assert_false(is_readable(range));
    for (int i = 0; i < 4; i++)
        assert_int_equal(f.d.ops->create_page(f.d.self, &pages[i]), DRY_OK);
    assert_true(used_bytes(&f) == 4 * page_bytes);
    assert_int_equal(f.d.ops->map_pages(f.d.self, range, pages, 4), DRY_OK);
    assert_false(is_readable(range + 4 * page_bytes));
    for (uint32_t i = 0; i < 4; i++)
        fill(range + i * page_bytes, page_bytes, i);

    /* Out in two portions, in again elsewhere and in another order. */
    assert_int_equal(f.d.ops->unmap_pages(f.d.self, range + page_bytes, 3), DRY_OK);
    assert_filled(range, page_bytes, 0);
    assert_false(is_readable(range + page_bytes));
    assert_int_equal(f.d.ops->unmap_pages(f.d.self, range, 1), DRY_OK);
    assert_false(is_readable(range));
    const uint64_t mixed[4] = {pages[3], pages[0], pages[1], pages[2]};
    uint64_t elsewhere = range + 9 * page_bytes;
    assert_int_equal(f.d.ops->map_pages(f.d.self, elsewhere, mixed, 4), DRY_OK);
    for (uint32_t i = 0; i < 4; i++)
        assert_filled(elsewhere + i * page_bytes, page_bytes, (i + 3) % 4);
    assert_true(used_bytes(&f) == 4 * page_bytes);

    assert_int_equal(f.d.ops->unmap_pages(f.d.self, elsewhere, 4), DRY_OK);
    for (int i = 0; i < 4; i++)
        f.d.ops->release_page(f.d.self, pages[i]);
    f.d.ops->unreserve(f.d.self, range, 16 * page_bytes);
    assert_false(is_readable(range));
    end_host(&f);
}

static void
pages_keep_what_they_hold_when_moved(void **state)
{
    (void)state;
    move_pages(2 * DRYI_MIB);
    move_pages(dryi_system_page_bytes());
}

static void
released_pages_come_again_zeroed(void **state)
{
    (void)state;
    uint64_t bytes = dryi_system_page_bytes();
    struct fixture f = make_host(8 * bytes, bytes);
    uint64_t range;
    assert_int_equal(f.d.ops->reserve(f.d.self, 8 * bytes, &range), DRY_OK);
    for (uint32_t round = 0; round < 100; round++) {
        uint64_t pages[8];
        for (int i = 0; i < 8; i++) {
            assert_int_equal(f.d.ops->create_page(f.d.self, &pages[i]), DRY_OK);
            assert_true(pages[i] < 8); /* numbers are recycled, the file stays small */
        }
        assert_int_equal(f.d.ops->map_pages(f.d.self, range, pages, 8), DRY_OK);
        assert_zero(range, 8 * bytes);
        fill(range, 8 * bytes, round);
        assert_int_equal(f.d.ops->unmap_pages(f.d.self, range, 8), DRY_OK);
        for (unsigned i = 0; i < 8; i++)
            f.d.ops->release_page(f.d.self, pages[(i + round) % 8]);
    }
    f.d.ops->unreserve(f.d.self, range, 8 * bytes);
    end_host(&f);
}

static void
map_and_unmap_take_and_give_memory(void **state)
{
    (void)state;
    struct fixture f = make_host(64 * DRYI_MIB, 2 * DRYI_MIB);
    uint64_t range;
    assert_int_equal(f.d.ops->reserve(f.d.self, DRYI_GIB, &range), DRY_OK);
    uint64_t page = 20 * DRYI_MIB;
    assert_int_equal(f.d.ops->map(f.d.self, range, 2 * page, page), DRY_OK);
    assert_true(used_bytes(&f) == 2 * page);
    fill(range, 2 * page, 5);
    assert_int_equal(f.d.ops->map(f.d.self, range + 2 * page, 2 * page, page),
                     DRY_ERR_NO_SPACE);
    assert_false(is_readable(range + 2 * page));
    f.d.ops->unmap(f.d.self, range, page, page);
    assert_false(is_readable(range));
    assert_int_equal(f.d.ops->map(f.d.self, range, page, page), DRY_OK);
    assert_zero(range, page);
    f.d.ops->unmap(f.d.self, range, 2 * page, page);
    assert_int_equal(f.d.ops->map(f.d.self, range, 0, page), DRY_ERR_ARGUMENT);
    assert_int_equal(f.d.ops->map(f.d.self, range, page, 0), DRY_ERR_ARGUMENT);
    assert_int_equal(f.d.ops->map(f.d.self, range, page + 1, page), DRY_ERR_ARGUMENT);
    assert_int_equal(f.d.ops->map(f.d.self, range + 1, page, page), DRY_ERR_ARGUMENT);
    assert_int_equal(f.d.ops->map(f.d.self, range, 30, 3), DRY_ERR_ARGUMENT);
    f.d.ops->unreserve(f.d.self, range, DRYI_GIB);
    end_host(&f);
}

static void
capacity_is_kept_by_everything_together(void **state)
{
    (void)state;
    struct fixture f = make_host(10 * DRYI_MIB, 2 * DRYI_MIB);
    struct dry_device_traits traits;
    f.d.ops->get_traits(f.d.self, &traits);
    assert_true(traits.total_bytes == 10 * DRYI_MIB);
    assert_true(traits.page_bytes == 2 * DRYI_MIB);
    uint64_t a, b = 7, p, q = 7, range;
    assert_int_equal(f.d.ops->reserve(f.d.self, 4 * DRYI_MIB, &range), DRY_OK);
    assert_int_equal(f.d.ops->alloc(f.d.self, 4 * DRYI_MIB, &a), DRY_OK);
    assert_int_equal(f.d.ops->map(f.d.self, range, 4 * DRYI_MIB, 2 * DRYI_MIB), DRY_OK);
    assert_int_equal(f.d.ops->create_page(f.d.self, &p), DRY_OK);
    assert_int_equal(f.d.ops->create_page(f.d.self, &q), DRY_ERR_NO_SPACE);
    assert_int_equal(f.d.ops->alloc(f.d.self, 1, &b), DRY_ERR_NO_SPACE);
    assert_true(b == 7 && q == 7);
    f.d.ops->unmap(f.d.self, range, 2 * DRYI_MIB, 2 * DRYI_MIB);
    assert_int_equal(f.d.ops->alloc(f.d.self, 2 * DRYI_MIB, &b), DRY_OK);
    f.d.ops->free(f.d.self, a, 4 * DRYI_MIB);
    f.d.ops->free(f.d.self, b, 2 * DRYI_MIB);
    f.d.ops->release_page(f.d.self, p);
    f.d.ops->unmap(f.d.self, range + 2 * DRYI_MIB, 2 * DRYI_MIB, 2 * DRYI_MIB);
    f.d.ops->unreserve(f.d.self, range, 4 * DRYI_MIB);
    end_host(&f);
}

static void
impossible_sizes_are_refused(void **state)
{
    (void)state;
    struct fixture f = make_host(UINT64_MAX, 2 * DRYI_MIB);
    static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 2 * DRYI_MIB,
                                     UINT64_C(1) << 60, UINT64_C(1) << 48};
    uint64_t address = 7;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(f.d.ops->reserve(f.d.self, sizes[i], &address),
                         DRY_ERR_NO_SPACE);
        assert_int_equal(f.d.ops->alloc(f.d.self, sizes[i], &address), DRY_ERR_NO_SPACE);
        assert_true(used_bytes(&f) == 0);
    }
    assert_int_equal(f.d.ops->reserve(f.d.self, 0, &address), DRY_ERR_ARGUMENT);
    assert_int_equal(f.d.ops->alloc(f.d.self, 0, &address), DRY_ERR_ARGUMENT);
    assert_true(address == 7);
    assert_int_equal(f.d.ops->map_pages(f.d.self, 1, &address, 1), DRY_ERR_ARGUMENT);
    assert_int_equal(f.d.ops->unmap_pages(f.d.self, 1, 1), DRY_ERR_ARGUMENT);
    end_host(&f);
}

static long
max_map_count(void)
{
    long count = 0;
    char line[32] = "";
    FILE *file = fopen("/proc/sys/vm/max_map_count", "r");
    if (file && fgets(line, sizeof line, file))
        count = strtol(line, NULL, 10);
    if (file)
        fclose(file);
    return count;
}

/* One page under every address is a piece each: soon the kernel has enough of them. */
static void
too_many_pieces_are_refused_and_taken_back(void **state)
{
    (void)state;
    long limit = max_map_count();
    if (limit <= 0 || limit > 300000)
        skip_because("max_map_count is %ld: the limit is out of reach", limit);
    size_t count = (size_t)limit + 100;
    uint64_t bytes = dryi_system_page_bytes(), range, page;
    struct fixture f = make_host(bytes, bytes);
    assert_int_equal(f.d.ops->reserve(f.d.self, count * bytes, &range), DRY_OK);
    assert_int_equal(f.d.ops->create_page(f.d.self, &page), DRY_OK);
    uint64_t *same = calloc(count, sizeof *same);
    assert_non_null(same);
    for (size_t i = 0; i < count; i++)
        same[i] = page;
    assert_int_equal(f.d.ops->map_pages(f.d.self, range, same, count), DRY_ERR_NO_SPACE);
    for (size_t i = 0; i < count; i += 1000)
        assert_false(is_readable(range + i * bytes));
    assert_int_equal(f.d.ops->map_pages(f.d.self, range, same, 1000), DRY_OK);
    fill(range, bytes, 3);
    assert_filled(range + 999 * bytes, bytes, 3);
    assert_int_equal(f.d.ops->unmap_pages(f.d.self, range, 1000), DRY_OK);
    free(same);
    f.d.ops->release_page(f.d.self, page);
    f.d.ops->unreserve(f.d.self, range, count * bytes);
    end_host(&f);
}

static void
events_have_always_passed(void **state)
{
    (void)state;
    struct fixture f = make_host(DRYI_GIB, 2 * DRYI_MIB);
    uint64_t a, b;
    assert_int_equal(f.d.ops->event_record(f.d.self, 1, &a), DRY_OK);
    assert_int_equal(f.d.ops->event_record(f.d.self, 1, &b), DRY_OK);
    assert_true(a != b);
    assert_true(f.d.ops->event_query(f.d.self, a));
    f.d.ops->event_wait(f.d.self, b);
    f.d.ops->stream_wait(f.d.self, 1);
    assert_int_equal(f.d.ops->stream_follow(f.d.self, 2, a), DRY_OK);
    f.d.ops->event_destroy(f.d.self, a);
    f.d.ops->event_destroy(f.d.self, b);
    assert_true(f.d.ops->stream_id == NULL);
    end_host(&f);
}

static enum dry_status
create_many(const struct dry_memory *memory)
{
    struct dry_host_device_options o;
    dry_host_device_options_init(&o);
    o.memory = memory;
    o.page_bytes = dryi_system_page_bytes();
    struct fixture f = {.page_bytes = o.page_bytes};
    enum dry_status status = dry_host_device_create(&o, &f.host, NULL);
    if (status != DRY_OK)
        return status;
    f.d = dry_host_device_get_device(f.host);
    uint64_t pages[100];
    size_t count = 0;
    while (count < 100 && status == DRY_OK) {
        status = f.d.ops->create_page(f.d.self, &pages[count]);
        count += status == DRY_OK;
    }
    assert_true(used_bytes(&f) == count * o.page_bytes);
    while (count > 0)
        f.d.ops->release_page(f.d.self, pages[--count]);
    end_host(&f);
    return status;
}

static void
running_out_of_memory_is_reported(void **state)
{
    (void)state;
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        enum dry_status status = create_many(&memory);
        failing_memory_finish(&fm);
        if (!fm.failed) {
            assert_int_equal(status, DRY_OK);
            assert_true(n >= 3);
            break;
        }
        assert_int_equal(status, DRY_ERR_MEMORY);
    }
}

static void
system_that_refuses_files_is_reported(void **state)
{
    (void)state;
    struct dry_host_device *host = NULL;
    struct dry_error err = {0};
    struct rlimit former, lower;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &former), 0);
    lower = (struct rlimit){.rlim_cur = 0, .rlim_max = former.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &lower), 0);
    enum dry_status status = dry_host_device_create(NULL, &host, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &former), 0);
    assert_int_equal(status, DRY_ERR_SYSTEM);
    assert_true(err.os_errno != 0);
    assert_null(host);
}

static void
system_that_refuses_memory_for_a_page_is_reported(void **state)
{
    (void)state;
    struct fixture f = make_host(DRYI_GIB, 2 * DRYI_MIB);
    uint64_t pages[2] = {7, 7};
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit former, lower;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &former), 0);
    lower = (struct rlimit){.rlim_cur = 3 * DRYI_MIB, .rlim_max = former.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &lower), 0);
    enum dry_status first = f.d.ops->create_page(f.d.self, &pages[0]);
    enum dry_status second = f.d.ops->create_page(f.d.self, &pages[1]);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &former), 0);
    assert_int_equal(first, DRY_OK);
    assert_int_equal(second, DRY_ERR_NO_SPACE);
    assert_true(pages[1] == 7);
    assert_true(used_bytes(&f) == 2 * DRYI_MIB);
    assert_int_equal(f.d.ops->create_page(f.d.self, &pages[1]), DRY_OK);
    assert_true(pages[1] == 1); /* the number was given back too */
    f.d.ops->release_page(f.d.self, pages[0]);
    f.d.ops->release_page(f.d.self, pages[1]);
    end_host(&f);
}

static void *
churn(void *self)
{
    struct fixture *f = self;
    for (int i = 0; i < 300; i++) {
        uint64_t page, range;
        if (f->d.ops->reserve(f->d.self, f->page_bytes, &range) != DRY_OK)
            return NULL;
        if (f->d.ops->create_page(f->d.self, &page) != DRY_OK ||
            f->d.ops->map_pages(f->d.self, range, &page, 1) != DRY_OK)
            return NULL;
        fill(range, f->page_bytes, (uint32_t)i);
        assert_filled(range, f->page_bytes, (uint32_t)i);
        if (f->d.ops->unmap_pages(f->d.self, range, 1) != DRY_OK)
            return NULL;
        f->d.ops->release_page(f->d.self, page);
        f->d.ops->unreserve(f->d.self, range, f->page_bytes);
    }
    return self;
}

static void
threads_share_a_device(void **state)
{
    (void)state;
    struct fixture f = make_host(DRYI_GIB, dryi_system_page_bytes());
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, &f), 0);
    for (int i = 0; i < 4; i++) {
        void *result = NULL;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_non_null(result);
    }
    end_host(&f);
}

static void
bad_options_are_refused(void **state)
{
    (void)state;
    struct dry_host_device_options o;
    struct dry_host_device *host = NULL;
    struct dry_error err;
    dry_host_device_options_init(&o);
    assert_true(o.capacity_bytes == dryi_system_memory_bytes());
    assert_true(o.capacity_bytes > 0);
    static const uint64_t bad[] = {0, 1, 2048, 4097, 3 << 20, UINT64_C(1) << 41};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        o.page_bytes = bad[i];
        assert_int_equal(dry_host_device_create(&o, &host, &err), DRY_ERR_ARGUMENT);
        assert_non_null(strstr(err.text, "page_bytes"));
    }
    o.struct_size = 0;
    assert_int_equal(dry_host_device_create(&o, &host, &err), DRY_ERR_ARGUMENT);
    assert_null(host);
    assert_int_equal(dry_host_device_create(NULL, &host, &err), DRY_OK);
    dry_host_device_destroy(host);
    dry_host_device_destroy(NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alloc_gives_memory_of_its_own),
        cmocka_unit_test(pages_keep_what_they_hold_when_moved),
        cmocka_unit_test(released_pages_come_again_zeroed),
        cmocka_unit_test(map_and_unmap_take_and_give_memory),
        cmocka_unit_test(capacity_is_kept_by_everything_together),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(too_many_pieces_are_refused_and_taken_back),
        cmocka_unit_test(events_have_always_passed),
        cmocka_unit_test(running_out_of_memory_is_reported),
        cmocka_unit_test(system_that_refuses_files_is_reported),
        cmocka_unit_test(system_that_refuses_memory_for_a_page_is_reported),
        cmocka_unit_test(threads_share_a_device),
        cmocka_unit_test(bad_options_are_refused),
    };
    return cmocka_run_group_tests_name("host_device", tests, NULL, NULL);
}
