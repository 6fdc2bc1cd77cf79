/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cmocka.h"
#include "support/failing_memory.h"

#include <drystone/tensor.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"

static const struct dry_dtype float32 = {DRY_DTYPE_FLOAT, 32, 1};
static const struct dry_dtype float4 = {DRY_DTYPE_FLOAT4_E2M1FN, 4, 1};
static const struct dry_dtype uint8 = {DRY_DTYPE_UINT, 8, 1};

static struct dry_tensor_options
options_of(struct dry_dtype dtype, int32_t ndim, const int64_t *shape)
{
    struct dry_tensor_options o;
    dry_tensor_options_init(&o);
    o.form = (struct dry_tensor_form){.dtype = dtype, .ndim = ndim, .shape = shape};
    return o;
}

static struct dry_tensor *
create(const struct dry_tensor_options *o)
{
    struct dry_tensor *t = NULL;
    struct dry_error err;
    enum dry_status status = dry_tensor_create(o, &t, NULL, &err);
    if (status != DRY_OK)
        print_error("%s\n", err.text);
    assert_int_equal(status, DRY_OK);
    return t;
}

static struct dry_dlpack_versioned *export(struct dry_tensor *t,
                                           const struct dry_tensor_view *view)
{
    struct dry_dlpack_versioned *m = NULL;
    assert_int_equal(dry_tensor_export(t, view, &m, NULL), DRY_OK);
    assert_int_equal(m->tensor.byte_offset, 0);
    assert_int_equal(m->version.major, 1);
    return m;
}

static void
export_is_all_that_a_consumer_needs(void **state)
{
    (void)state;
    int64_t shape[] = {3, 5, 700};
    struct dry_tensor_options o = options_of(float32, 3, shape);
    struct dry_tensor *t = create(&o);
    memset(shape, -1, sizeof shape); /* it was copied */
    struct dry_dlpack_versioned *m = export(t, NULL);
    assert_int_equal(m->flags, 0);
    assert_int_equal(m->tensor.device.type, DRY_DLPACK_CPU);
    assert_int_equal(m->tensor.device.id, 0);
    assert_int_equal(m->tensor.ndim, 3);
    assert_memory_equal(&m->tensor.dtype, &float32, sizeof float32);
    assert_memory_equal(m->tensor.shape, ((int64_t[]){3, 5, 700}), sizeof shape);
    assert_memory_equal(m->tensor.strides, ((int64_t[]){3500, 700, 1}), sizeof shape);
    assert_int_equal((uintptr_t)m->tensor.data % 256, 0);
    struct dry_tensor_info info = DRY_INIT(struct dry_tensor_info);
    dry_tensor_get_info(t, &info);
    assert_ptr_equal(info.address, m->tensor.data);
    assert_int_equal(info.bytes, 3 * 5 * 700 * 4);
    assert_int_equal(info.element_count, 3 * 5 * 700);
    struct dry_pages_info pages = DRY_INIT(struct dry_pages_info);
    dry_pages_get_info(info.pages, &pages);
    assert_true(pages.bytes >= info.bytes);
    float *data = m->tensor.data;
    for (size_t i = 0; i < info.element_count; i++)
        assert_true(data[i] == 0);
    memset(data, 0x3f, info.bytes);
    m->deleter(m);
    dry_tensor_destroy(t);
}

/* What is exported keeps the memory, in whatever order things end. */
static void
memory_lives_as_long_as_anybody_has_it(void **state)
{
    (void)state;
    const int64_t shape[] = {1024};
    struct failing_memory fm;
    struct dry_memory memory = failing_memory_init(&fm, SIZE_MAX);
    struct dry_tensor_options o = options_of(uint8, 1, shape);
    o.memory = &memory;
    struct dry_tensor *t = create(&o);
    struct dry_dlpack_versioned *a = export(t, NULL), *b = export(t, NULL);
    struct dry_dlpack_legacy *c = NULL;
    assert_int_equal(dry_tensor_export_legacy(t, NULL, &c, NULL), DRY_OK);
    assert_ptr_equal(a->tensor.data, c->tensor.data);
    dry_tensor_destroy(t);
    memset(a->tensor.data, 1, 1024);
    a->deleter(a);
    assert_int_equal(((unsigned char *)b->tensor.data)[1023], 1);
    b->deleter(b);
    assert_int_equal(((unsigned char *)c->tensor.data)[1023], 1);
    assert_int_equal(c->tensor.strides[0], 1);
    assert_true(fm.live_bytes > 0);
    c->deleter(c);
    failing_memory_finish(&fm);
}

static void
without_elements_there_is_no_memory(void **state)
{
    (void)state;
    const int64_t shape[] = {4, 0, 7};
    struct dry_tensor_options o = options_of(float32, 3, shape);
    struct dry_tensor *t = create(&o);
    struct dry_dlpack_versioned *m = export(t, NULL);
    struct dry_tensor_info info = DRY_INIT(struct dry_tensor_info);
    dry_tensor_get_info(t, &info);
    assert_null(info.pages);
    assert_int_equal(info.bytes, 0);
    assert_null(m->tensor.data);
    assert_memory_equal(m->tensor.strides, ((int64_t[]){7, 7, 1}), 3 * sizeof(int64_t));
    m->deleter(m);
    dry_tensor_destroy(t);
    dry_tensor_destroy(NULL);
    struct dry_pages_need need = DRY_INIT(struct dry_pages_need);
    assert_int_equal(dry_tensor_read_need(&o, &need, NULL), DRY_OK);
    assert_int_equal(need.page_count, 0);
}

static void
without_dimensions_there_is_one_element(void **state)
{
    (void)state;
    struct dry_tensor_options o = options_of(float32, 0, NULL);
    struct dry_tensor *t = create(&o);
    struct dry_dlpack_versioned *m = export(t, NULL);
    assert_int_equal(m->tensor.ndim, 0);
    assert_non_null(m->tensor.data);
    assert_non_null(m->tensor.strides);
    struct dry_tensor_info info = DRY_INIT(struct dry_tensor_info);
    dry_tensor_get_info(t, &info);
    assert_int_equal(info.element_count, 1);
    assert_int_equal(info.bytes, 4);
    dry_tensor_destroy(t);
    m->deleter(m);
}

static uint64_t
bytes_of(struct dry_dtype dtype, bool is_padded, int32_t ndim, const int64_t *shape)
{
    struct dry_tensor_form form = {dtype, ndim, shape, is_padded};
    uint64_t bytes = 0;
    assert_int_equal(dry_tensor_measure(&form, &bytes, NULL), DRY_OK);
    return bytes;
}

static void
elements_of_any_width_are_measured(void **state)
{
    (void)state;
    assert_int_equal(bytes_of(float32, false, 3, (int64_t[]){1024, 1024, 1024}),
                     4ull << 30);
    assert_int_equal(bytes_of(float4, false, 1, (int64_t[]){7}), 4);
    assert_int_equal(bytes_of(float4, true, 1, (int64_t[]){7}), 7);
    assert_int_equal(bytes_of(float4, false, 2, (int64_t[]){3, 3}), 5);
    struct dry_dtype six = {DRY_DTYPE_FLOAT6_E2M3FN, 6, 1};
    assert_int_equal(bytes_of(six, false, 1, (int64_t[]){9}), 7);
    assert_int_equal(bytes_of(six, false, 0, NULL), 1);
    struct dry_dtype pair = {DRY_DTYPE_FLOAT4_E2M1FN, 4, 2};
    assert_int_equal(bytes_of(pair, false, 1, (int64_t[]){9}), 9);
    struct dry_dtype twelve = {DRY_DTYPE_INT, 12, 1};
    assert_int_equal(bytes_of(twelve, false, 1, (int64_t[]){3}), 6);
    struct dry_dtype vector = {DRY_DTYPE_FLOAT, 32, 4};
    assert_int_equal(bytes_of(vector, false, 1, (int64_t[]){3}), 48);
    assert_int_equal(bytes_of(uint8, false, 1, (int64_t[]){INT64_MAX}), INT64_MAX);
    assert_int_equal(bytes_of(float4, false, 1, (int64_t[]){INT64_MAX}),
                     INT64_MAX / 2 + 1);
}

static void
refuse_form(struct dry_dtype dtype, bool is_padded, int32_t ndim, const int64_t *shape)
{
    struct dry_tensor_form form = {dtype, ndim, shape, is_padded};
    struct dry_tensor_options o;
    dry_tensor_options_init(&o);
    o.form = form;
    struct dry_tensor *t = NULL;
    uint64_t bytes = 77;
    struct dry_error err;
    assert_int_equal(dry_tensor_measure(&form, &bytes, &err), DRY_ERR_ARGUMENT);
    assert_int_equal(bytes, 77);
    assert_int_equal(dry_tensor_create(&o, &t, NULL, &err), DRY_ERR_ARGUMENT);
    assert_null(t);
}

static void
forms_that_cannot_be_are_refused(void **state)
{
    (void)state;
    int64_t many[DRY_TENSOR_NDIM_MAX + 1];
    for (size_t i = 0; i < sizeof many / sizeof *many; i++)
        many[i] = 1;
    assert_int_equal(bytes_of(uint8, false, DRY_TENSOR_NDIM_MAX, many), 1);
    refuse_form(uint8, false, DRY_TENSOR_NDIM_MAX + 1, many);
    refuse_form(uint8, false, -1, many);
    refuse_form(uint8, false, 1, NULL);
    refuse_form(uint8, false, 2, (int64_t[]){4, -1});
    refuse_form(uint8, false, 2, (int64_t[]){0, INT64_MIN});
    refuse_form((struct dry_dtype){DRY_DTYPE_FLOAT, 0, 1}, false, 1, many);
    refuse_form((struct dry_dtype){DRY_DTYPE_FLOAT, 32, 0}, false, 1, many);
    refuse_form(uint8, true, 1, many);
    refuse_form((struct dry_dtype){DRY_DTYPE_FLOAT4_E2M1FN, 4, 2}, true, 1, many);
}

/* 2^32 * 2^32 is 0 in 64 bits: a product that is not checked gives a tensor of no bytes. */
static void
products_that_overflow_are_refused(void **state)
{
    (void)state;
    const int64_t half = INT64_C(1) << 32;
    refuse_form(uint8, false, 2, (int64_t[]){half, half});
    refuse_form(uint8, false, 3, (int64_t[]){half, half, 0});
    refuse_form(uint8, false, 3, (int64_t[]){0, half, half});
    refuse_form(uint8, false, 4, (int64_t[]){half, half, half, half});
    refuse_form(float32, false, 1, (int64_t[]){INT64_C(1) << 61});
    refuse_form(float32, false, 1, (int64_t[]){INT64_MAX});
    refuse_form((struct dry_dtype){DRY_DTYPE_INT, 255, 65535}, false, 1,
                (int64_t[]){INT64_MAX});
    refuse_form((struct dry_dtype){DRY_DTYPE_INT, 7, 65535}, false, 1,
                (int64_t[]){INT64_MAX});
    assert_int_equal(bytes_of(float32, false, 1, (int64_t[]){(INT64_C(1) << 61) - 1}),
                     INT64_MAX - 3);
    /* More than any region can be is another matter: pages refuse it. */
    struct dry_tensor_options o = options_of(uint8, 1, (int64_t[]){INT64_MAX});
    struct dry_tensor *t = NULL;
    assert_int_equal(dry_tensor_create(&o, &t, NULL, NULL), DRY_ERR_ARGUMENT);
}

static void
flags_are_said_where_they_can_be(void **state)
{
    (void)state;
    const int64_t shape[] = {33};
    struct dry_tensor_options o = options_of(float4, 1, shape);
    o.form.is_padded = true;
    struct dry_tensor *t = create(&o);
    struct dry_tensor_view view;
    dry_tensor_view_init(&view);
    view.is_read_only = true;
    struct dry_dlpack_versioned *m = export(t, &view);
    assert_int_equal(m->flags, DRY_DLPACK_READ_ONLY | DRY_DLPACK_PADDED);
    m->deleter(m);
    m = export(t, NULL);
    assert_int_equal(m->flags, DRY_DLPACK_PADDED);
    m->deleter(m);
    struct dry_dlpack_legacy *legacy = NULL;
    assert_int_equal(dry_tensor_export_legacy(t, NULL, &legacy, NULL),
                     DRY_ERR_UNSUPPORTED);
    dry_tensor_destroy(t);
    o.form.is_padded = false;
    t = create(&o);
    assert_int_equal(dry_tensor_export_legacy(t, &view, &legacy, NULL),
                     DRY_ERR_UNSUPPORTED);
    assert_null(legacy);
    assert_int_equal(dry_tensor_export_legacy(t, NULL, &legacy, NULL), DRY_OK);
    legacy->deleter(legacy);
    dry_tensor_destroy(t);
}

static struct dry_tensor_view
part_of(uint64_t offset, struct dry_dtype dtype, int32_t ndim, const int64_t *shape)
{
    struct dry_tensor_view view;
    dry_tensor_view_init(&view);
    view.is_part = true;
    view.offset_bytes = offset;
    view.form = (struct dry_tensor_form){.dtype = dtype, .ndim = ndim, .shape = shape};
    return view;
}

static void
parts_share_the_pages(void **state)
{
    (void)state;
    const int64_t shape[] = {4096}, rows[] = {2, 100}, none[] = {0, 5};
    struct dry_tensor_options o = options_of(uint8, 1, shape);
    struct dry_tensor *t = create(&o);
    struct dry_tensor_view view = part_of(256, float32, 2, rows);
    struct dry_dlpack_versioned *m = export(t, &view), *whole = export(t, NULL);
    assert_ptr_equal(m->tensor.data, (char *)whole->tensor.data + 256);
    assert_int_equal(m->tensor.strides[0], 100);
    assert_memory_equal(&m->tensor.dtype, &float32, sizeof float32);
    dry_tensor_destroy(t);
    whole->deleter(whole);
    memset(m->tensor.data, 1, 800);
    m->deleter(m);

    t = create(&o);
    struct dry_error err;
    m = NULL;
    view = part_of(255, uint8, 1, (int64_t[]){1});
    assert_int_equal(dry_tensor_export(t, &view, &m, &err), DRY_ERR_ARGUMENT);
    view = part_of(4096 - 256, uint8, 1, (int64_t[]){257});
    assert_int_equal(dry_tensor_export(t, &view, &m, &err), DRY_ERR_ARGUMENT);
    view = part_of(UINT64_MAX - 255, uint8, 1, (int64_t[]){257});
    assert_int_equal(dry_tensor_export(t, &view, &m, &err), DRY_ERR_ARGUMENT);
    view = part_of(0, uint8, 1, (int64_t[]){-1});
    assert_int_equal(dry_tensor_export(t, &view, &m, &err), DRY_ERR_ARGUMENT);
    assert_null(m);
    view = part_of(4096 - 256, uint8, 1, (int64_t[]){256});
    m = export(t, &view);
    m->deleter(m);
    view = part_of(4096, uint8, 2, none);
    m = export(t, &view);
    assert_null(m->tensor.data);
    m->deleter(m);
    dry_tensor_destroy(t);
}

static void
device_is_what_the_memory_is(void **state)
{
    (void)state;
    const int64_t shape[] = {16};
    struct dry_tensor_options o = options_of(uint8, 1, shape);
    struct dry_tensor *t = NULL;
    o.device.type = DRY_DLPACK_CUDA_HOST;
    assert_int_equal(dry_tensor_create(&o, &t, NULL, NULL), DRY_ERR_UNSUPPORTED);
    o.device.type = 2;
    assert_int_equal(dry_tensor_create(&o, &t, NULL, NULL), DRY_ERR_ARGUMENT);
    o.device = (struct dry_dlpack_device){DRY_DLPACK_CPU, 1};
    assert_int_equal(dry_tensor_create(&o, &t, NULL, NULL), DRY_ERR_ARGUMENT);
    assert_null(t);
}

static void
count_release(void *self)
{
    atomic_int *released = self;
    atomic_fetch_add(released, 1);
}

static void
memory_of_others_goes_back_once(void **state)
{
    (void)state;
    static _Alignas(256) unsigned char bytes[512];
    const int64_t shape[] = {512};
    atomic_int released = 0;
    struct dry_tensor_options o = options_of(uint8, 1, shape);
    struct dry_tensor_memory memory = {bytes, sizeof bytes, count_release, &released};
    struct dry_tensor *t = NULL;
    o.device.type = DRY_DLPACK_CUDA_HOST;
    assert_int_equal(dry_tensor_wrap(&o, &memory, &t, NULL), DRY_OK);
    struct dry_tensor_view view = part_of(256, uint8, 1, (int64_t[]){256});
    struct dry_dlpack_versioned *m = export(t, &view);
    assert_ptr_equal(m->tensor.data, bytes + 256);
    assert_int_equal(m->tensor.device.type, DRY_DLPACK_CUDA_HOST);
    dry_tensor_destroy(t);
    assert_int_equal(released, 0);
    m->deleter(m);
    assert_int_equal(released, 1);

    t = NULL;
    memory.bytes = 511;
    assert_int_equal(dry_tensor_wrap(&o, &memory, &t, NULL), DRY_ERR_ARGUMENT);
    memory.bytes = 512;
    memory.address = bytes + 64;
    assert_int_equal(dry_tensor_wrap(&o, &memory, &t, NULL), DRY_ERR_ARGUMENT);
    memory.address = NULL;
    assert_int_equal(dry_tensor_wrap(&o, &memory, &t, NULL), DRY_ERR_ARGUMENT);
    memory.address = bytes;
    struct dry_pages_options pages;
    dry_pages_options_init(&pages);
    o.pages = &pages;
    assert_int_equal(dry_tensor_wrap(&o, &memory, &t, NULL), DRY_ERR_ARGUMENT);
    assert_null(t);
    assert_int_equal(released, 1);
}

static void
pages_are_the_ones_asked_for(void **state)
{
    (void)state;
    const int64_t shape[] = {1000};
    struct dry_tensor_options o = options_of(float32, 1, shape);
    struct dry_pages_options pages;
    dry_pages_options_init(&pages);
    pages.kind = DRY_PAGES_BASE;
    pages.fork = DRY_PAGES_SHARED;
    o.pages = &pages;
    struct dry_tensor *t = create(&o);
    struct dry_tensor_info info = DRY_INIT(struct dry_tensor_info);
    struct dry_pages_info of_pages = DRY_INIT(struct dry_pages_info);
    dry_tensor_get_info(t, &info);
    dry_pages_get_info(info.pages, &of_pages);
    assert_int_equal(of_pages.kind, DRY_PAGES_BASE);
    assert_int_equal(of_pages.fork, DRY_PAGES_SHARED);
    assert_int_equal(of_pages.requested_bytes, 4000);
    dry_tensor_destroy(t);
    pages.bytes = 4000;
    t = NULL;
    assert_int_equal(dry_tensor_create(&o, &t, NULL, NULL), DRY_ERR_ARGUMENT);
    pages.bytes = 0;
    pages.kind = DRY_PAGES_POOL;
    pages.policy = DRY_PAGES_STRICT;
    pages.page_bytes = UINT64_C(1) << 39; /* no kernel has these */
    struct dry_pages_report report;
    struct dry_error err;
    assert_int_not_equal(dry_tensor_create(&o, &t, &report, &err), DRY_OK);
    assert_int_equal(report.count, 1);
    assert_null(t);
}

static void
no_memory_leaves_nothing_behind(void **state)
{
    (void)state;
    const int64_t shape[] = {16, 16};
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct dry_tensor_options o = options_of(float32, 2, shape);
        o.memory = &memory;
        struct dry_tensor *t = NULL;
        struct dry_dlpack_versioned *m = NULL;
        struct dry_dlpack_legacy *legacy = NULL;
        struct dry_error err;
        enum dry_status status = dry_tensor_create(&o, &t, NULL, &err);
        if (status == DRY_OK)
            status = dry_tensor_export(t, NULL, &m, &err);
        if (status == DRY_OK)
            status = dry_tensor_export_legacy(t, NULL, &legacy, &err);
        assert_int_equal(status, fm.failed ? DRY_ERR_MEMORY : DRY_OK);
        dry_tensor_destroy(t);
        if (m)
            m->deleter(m);
        if (legacy)
            legacy->deleter(legacy);
        failing_memory_finish(&fm);
        if (!fm.failed) {
            assert_int_equal(n, 4); /* tensor, pages, two exports */
            break;
        }
    }
}

/* A child of fork has the object and not the memory: it gives back its copy of the record. */
static void
deleter_in_a_child_leaves_the_memory(void **state)
{
    (void)state;
    const int64_t shape[] = {4096};
    struct dry_tensor_options o = options_of(uint8, 1, shape);
    struct dry_tensor *t = create(&o);
    struct dry_dlpack_versioned *m = export(t, NULL);
    memset(m->tensor.data, 7, 4096);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        m->deleter(m);
        dry_tensor_destroy(t);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(((unsigned char *)m->tensor.data)[4095], 7);
    dry_tensor_destroy(t);
    m->deleter(m);
}

__extension__ typedef unsigned __int128 wide;

/* The same in arithmetic that is wide enough; false: it has no size. */
static bool
measure_widely(const struct dry_tensor_form *form, uint64_t *bytes)
{
    wide bits = form->dtype.bits, span = 1, most = INT64_MAX;
    bool is_empty = false;
    bits *= form->dtype.lanes;
    if (form->dtype.bits >= 8 || form->is_padded)
        bits = (bits + 7) / 8 * 8;
    for (int32_t i = 0; i < form->ndim; i++) {
        is_empty |= form->shape[i] == 0;
        if (form->shape[i])
            span *= (uint64_t)form->shape[i];
        if (span > most)
            return false;
    }
    wide all = span / 8 * bits + (span % 8 * bits + 7) / 8;
    *bytes = is_empty ? 0 : (uint64_t)all;
    return all <= most;
}

/* Shapes whose products lie on both sides of all limits. */
static void
sizes_are_those_of_wide_arithmetic(void **state)
{
    (void)state;
    uint64_t seed = 1, refused = 0;
    for (int round = 0; round < 20000; round++) {
        int64_t shape[6];
        struct dry_tensor_form form = {.ndim = round % 7, .shape = shape};
        for (int i = 0; i < 6; i++) {
            seed = dryi_mix64(seed + 1);
            shape[i] = (int64_t)(dryi_mix64(seed) >> (1 + seed % 63));
        }
        static const uint8_t widths[] = {1, 4, 6, 7, 8, 16, 33, 128, 255};
        form.dtype = (struct dry_dtype){DRY_DTYPE_INT, widths[seed % 9],
                                        seed >> 8 & 1 ? 1 : (uint16_t)(seed >> 20 | 1)};
        form.is_padded = form.dtype.bits < 8 && form.dtype.lanes == 1 && (seed >> 9 & 1);
        uint64_t expected = 0, bytes = 0;
        bool has_size = measure_widely(&form, &expected);
        enum dry_status status = dry_tensor_measure(&form, &bytes, NULL);
        assert_int_equal(status, has_size ? DRY_OK : DRY_ERR_ARGUMENT);
        assert_int_equal(bytes, has_size ? expected : 0);
        refused += !has_size;
    }
    assert_true(refused > 2000 && refused < 18000);
}

enum { THREADS = 4, ROUNDS = 200 };

struct shared {
    struct dry_tensor *tensor;
    pthread_barrier_t barrier;
    atomic_int released;
};

static void *
export_and_delete(void *argument)
{
    struct shared *s = argument;
    struct dry_dlpack_versioned *mine[ROUNDS];
    for (int i = 0; i < ROUNDS; i++)
        if (dry_tensor_export(s->tensor, NULL, &mine[i], NULL) != DRY_OK)
            abort();
    pthread_barrier_wait(&s->barrier);
    for (int i = 0; i < ROUNDS; i++) {
        ((atomic_uchar *)mine[i]->tensor.data)[0] = 1;
        mine[i]->deleter(mine[i]);
    }
    return NULL;
}

static void
any_thread_may_be_the_last(void **state)
{
    (void)state;
    static _Alignas(256) unsigned char bytes[256];
    const int64_t shape[] = {256};
    struct shared s = {.released = 0};
    struct dry_tensor_options o = options_of(uint8, 1, shape);
    struct dry_tensor_memory memory = {bytes, 256, count_release, &s.released};
    for (int with_pages = 0; with_pages < 2; with_pages++) {
        pthread_t threads[THREADS];
        if (with_pages)
            s.tensor = create(&o);
        else
            assert_int_equal(dry_tensor_wrap(&o, &memory, &s.tensor, NULL), DRY_OK);
        pthread_barrier_init(&s.barrier, NULL, THREADS + 1);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, export_and_delete, &s), 0);
        pthread_barrier_wait(&s.barrier);
        dry_tensor_destroy(s.tensor);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        pthread_barrier_destroy(&s.barrier);
        assert_int_equal(s.released, 1);
    }
}

/* A program that closed the library still holds what it exported. */
static void
deleter_is_there_after_the_library_was_closed(void **state)
{
    (void)state;
    const char *path = getenv("DRY_TEST_LIBRARY");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library)
        skip_because("no shared library in DRY_TEST_LIBRARY");
    enum dry_status (*of_library_create)(const struct dry_tensor_options *,
                                         struct dry_tensor **, struct dry_pages_report *,
                                         struct dry_error *);
    enum dry_status (*of_library_export)(
        struct dry_tensor *, const struct dry_tensor_view *,
        struct dry_dlpack_versioned **, struct dry_error *);
    void (*of_library_destroy)(struct dry_tensor *);
    *(void **)&of_library_create = dlsym(library, "dry_tensor_create");
    *(void **)&of_library_export = dlsym(library, "dry_tensor_export");
    *(void **)&of_library_destroy = dlsym(library, "dry_tensor_destroy");
    const int64_t shape[] = {64};
    struct dry_tensor_options o = options_of(uint8, 1, shape);
    struct dry_tensor *t = NULL;
    struct dry_dlpack_versioned *m = NULL;
    assert_int_equal(of_library_create(&o, &t, NULL, NULL), DRY_OK);
    assert_int_equal(of_library_export(t, NULL, &m, NULL), DRY_OK);
    assert_ptr_not_equal((void *)(uintptr_t)of_library_create,
                         (void *)(uintptr_t)dry_tensor_create);
    of_library_destroy(t);
    dlclose(library);
    memset(m->tensor.data, 1, 64);
    m->deleter(m);
}

/* Nothing of Python's is in this program: the capsule is not even looked at. */
static void
capsule_without_python_is_left_alone(void **state)
{
    (void)state;
    int no_capsule = 7;
    dry_tensor_drop_capsule(&no_capsule);
    assert_int_equal(no_capsule, 7);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(export_is_all_that_a_consumer_needs),
        cmocka_unit_test(memory_lives_as_long_as_anybody_has_it),
        cmocka_unit_test(without_elements_there_is_no_memory),
        cmocka_unit_test(without_dimensions_there_is_one_element),
        cmocka_unit_test(elements_of_any_width_are_measured),
        cmocka_unit_test(forms_that_cannot_be_are_refused),
        cmocka_unit_test(products_that_overflow_are_refused),
        cmocka_unit_test(sizes_are_those_of_wide_arithmetic),
        cmocka_unit_test(flags_are_said_where_they_can_be),
        cmocka_unit_test(parts_share_the_pages),
        cmocka_unit_test(device_is_what_the_memory_is),
        cmocka_unit_test(memory_of_others_goes_back_once),
        cmocka_unit_test(pages_are_the_ones_asked_for),
        cmocka_unit_test(no_memory_leaves_nothing_behind),
        cmocka_unit_test(deleter_in_a_child_leaves_the_memory),
        cmocka_unit_test(any_thread_may_be_the_last),
        cmocka_unit_test(deleter_is_there_after_the_library_was_closed),
        cmocka_unit_test(capsule_without_python_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
