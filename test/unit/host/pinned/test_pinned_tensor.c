/* SPDX-License-Identifier: Apache-2.0 */
#include <drystone/pinned.h>

#include "support/cmocka.h"
#include "support/failing_memory.h"

#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct dry_pinned *
make_cache(const struct dry_memory *memory)
{
    struct dry_pinned_options o;
    struct dry_pinned *pinned = NULL;
    struct dry_error err = {.text = ""};
    dry_pinned_options_init(&o);
    o.memory = memory;
    o.backend = DRY_PINNED_LOCK;
    o.arena_bytes = 2 << 20;
    o.thread_caches = false;
    enum dry_status status = dry_pinned_create(&o, &pinned, &err);
    if (status != DRY_OK && status != DRY_ERR_MEMORY)
        print_error("%s\n", err.text);
    return pinned;
}

static struct dry_tensor_options
options_of(int32_t ndim, const int64_t *shape)
{
    struct dry_tensor_options o;
    dry_tensor_options_init(&o);
    o.form.dtype = (struct dry_dtype){DRY_DTYPE_FLOAT, 32, 1};
    o.form.ndim = ndim;
    o.form.shape = shape;
    return o;
}

static int64_t
bytes_in_use(struct dry_pinned *pinned)
{
    struct dry_pinned_stats stats = DRY_INIT(struct dry_pinned_stats);
    dry_pinned_get_stats(pinned, &stats);
    return stats.requested_bytes.current;
}

static void
block_goes_back_with_the_last_view(void **state)
{
    (void)state;
    struct dry_pinned *pinned = make_cache(NULL);
    assert_non_null(pinned);
    const int64_t shape[] = {100, 7};
    struct dry_tensor_options o = options_of(2, shape);
    struct dry_tensor *t = NULL;
    struct dry_dlpack_versioned *m = NULL;
    assert_int_equal(dry_pinned_create_tensor(pinned, &o, &t, NULL), DRY_OK);
    assert_int_equal(bytes_in_use(pinned), 2800);
    assert_int_equal(dry_tensor_export(t, NULL, &m, NULL), DRY_OK);
    dry_tensor_destroy(t);
    assert_int_equal(bytes_in_use(pinned), 2800);
    memset(m->tensor.data, 1, 2800);
    assert_true(dry_pinned_usable_bytes(pinned, m->tensor.data) >= 2800);
    m->deleter(m);
    assert_int_equal(bytes_in_use(pinned), 0);
    assert_int_equal(dry_pinned_check(pinned, NULL), DRY_OK);
    dry_pinned_destroy(pinned);
}

static void
device_may_be_said_to_be_page_locked(void **state)
{
    (void)state;
    struct dry_pinned *pinned = make_cache(NULL);
    const int64_t shape[] = {0, 3};
    struct dry_tensor_options o = options_of(2, shape);
    struct dry_tensor *t = NULL;
    struct dry_tensor_info info = DRY_INIT(struct dry_tensor_info);
    o.device.type = DRY_DLPACK_CUDA_HOST;
    assert_int_equal(dry_pinned_create_tensor(pinned, &o, &t, NULL), DRY_OK);
    dry_tensor_get_info(t, &info);
    assert_int_equal(info.device.type, DRY_DLPACK_CUDA_HOST);
    assert_null(info.address);
    dry_tensor_destroy(t);
    dry_pinned_destroy(pinned);
}

static void
impossible_is_refused_and_takes_nothing(void **state)
{
    (void)state;
    struct dry_pinned *pinned = make_cache(NULL);
    const int64_t negative[] = {-1}, huge[] = {INT64_C(1) << 42};
    struct dry_tensor_options o = options_of(1, negative);
    struct dry_tensor *t = NULL;
    struct dry_error err;
    assert_int_equal(dry_pinned_create_tensor(pinned, &o, &t, &err), DRY_ERR_ARGUMENT);
    o = options_of(1, huge);
    assert_int_equal(dry_pinned_create_tensor(pinned, &o, &t, &err), DRY_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "no block of 17592186044416 bytes"));
    const int64_t shape[] = {5};
    struct dry_pages_options pages;
    dry_pages_options_init(&pages);
    o = options_of(1, shape);
    o.pages = &pages;
    assert_int_equal(dry_pinned_create_tensor(pinned, &o, &t, &err), DRY_ERR_ARGUMENT);
    o.pages = NULL;
    o.device.type = 2;
    assert_int_equal(dry_pinned_create_tensor(pinned, &o, &t, &err), DRY_ERR_ARGUMENT);
    assert_null(t);
    assert_int_equal(bytes_in_use(pinned), 0);
    dry_pinned_destroy(pinned);
}

static void
no_memory_leaves_nothing_behind(void **state)
{
    (void)state;
    const int64_t shape[] = {64};
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct dry_pinned *pinned = make_cache(&memory);
        struct dry_tensor *t = NULL;
        struct dry_tensor_options o = options_of(1, shape);
        o.memory = &memory;
        if (pinned && dry_pinned_create_tensor(pinned, &o, &t, NULL) != DRY_ERR_MEMORY)
            assert_non_null(t);
        dry_tensor_destroy(t);
        if (pinned)
            assert_int_equal(bytes_in_use(pinned), 0);
        dry_pinned_destroy(pinned);
        failing_memory_finish(&fm);
        if (!fm.failed)
            break;
        assert_null(t);
    }
}

static void
child_of_a_fork_leaves_the_block(void **state)
{
    (void)state;
    struct dry_pinned *pinned = make_cache(NULL);
    const int64_t shape[] = {64};
    struct dry_tensor_options o = options_of(1, shape);
    struct dry_tensor *t = NULL;
    assert_int_equal(dry_pinned_create_tensor(pinned, &o, &t, NULL), DRY_OK);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dry_tensor_destroy(t);
        _exit(0);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(bytes_in_use(pinned), 256);
    dry_tensor_destroy(t);
    assert_int_equal(bytes_in_use(pinned), 0);
    dry_pinned_destroy(pinned);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(block_goes_back_with_the_last_view),
        cmocka_unit_test(device_may_be_said_to_be_page_locked),
        cmocka_unit_test(impossible_is_refused_and_takes_nothing),
        cmocka_unit_test(no_memory_leaves_nothing_behind),
        cmocka_unit_test(child_of_a_fork_leaves_the_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
