/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pinned cache over memory that is really registered, with the stand-in for the driver
 * (test/stand_in): copies wait for their streams and read what is in the memory by then, so a
 * block that is handed out too early is seen on the device.
 */
#include "support/cmocka.h"
#include "support/failing_memory.h"
#include "support/random.h"

#include <drystone/pinned.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "device/cuda/cuda_driver.h"
#include "os/library.h"
#include "strict/stand_in.h"

#define UNKNOWN 999 /* CUDA_ERROR_UNKNOWN */

struct bench {
    struct dryi_cuda_driver driver;
    const struct stand_in *control;
    int (*stream_create)(void **stream, unsigned flags);
    int (*read)(void *to, dryi_cuda_address from, size_t bytes);
    int (*copy_to)(dryi_cuda_address to, const void *from, size_t bytes, void *stream);
    void *context;
    struct dry_pinned_options options;
    struct dry_pinned *pinned;
    struct dry_error err;
};

static void
find(const struct bench *b, const char *name, void *function)
{
    dryi_library_function *found = dryi_library_find(b->driver.library, name);
    assert_non_null(found);
    memcpy(function, &found, sizeof found);
}

static void
prepare(struct bench *b, const struct stand_in_setup *setup)
{
    *b = (struct bench){.pinned = NULL};
    const char *path = getenv("DRY_TEST_CUDA");
    assert_non_null(path);
    assert_int_equal(dryi_cuda_driver_open(&b->driver, path, NULL), DRY_OK);
    const struct stand_in *(*control)(void);
    find(b, "stand_in_control", &control);
    find(b, "cuStreamCreate", &b->stream_create);
    find(b, "cuMemcpyDtoH_v2", &b->read);
    find(b, "cuMemcpyHtoDAsync_v2", &b->copy_to);
    b->control = control();
    b->control->reset(setup);
    dry_pinned_options_init(&b->options);
    b->options.library = path;
    b->options.arena_bytes = 4 * DRYI_MIB;
    b->options.budget_bytes = 64 * DRYI_MIB; /* not what the machine happens to have */
}

static void
create(struct bench *b)
{
    enum dry_status status = dry_pinned_create(&b->options, &b->pinned, &b->err);
    if (status != DRY_OK)
        print_error("%s\n", b->err.text);
    assert_int_equal(status, DRY_OK);
}

static struct stand_in_account
read_account(const struct bench *b)
{
    struct stand_in_account a;
    b->control->get_account(&a);
    return a;
}

static void
finish(struct bench *b)
{
    dry_pinned_destroy(b->pinned);
    struct stand_in_account a = read_account(b);
    if (a.misuses)
        print_error("%s\n", b->control->last_misuse());
    assert_true(a.misuses == 0 && a.unpopulated_bytes == 0);
    assert_true(a.registrations == 0 && a.events == 0 && a.contexts == 0);
    b->control->reset(NULL);
    dryi_cuda_driver_close(&b->driver);
}

static void
be_current(struct bench *b)
{
    assert_int_equal(b->driver.init(0), 0);
    assert_int_equal(b->driver.primary_context_retain(&b->context, 0), 0);
    assert_int_equal(b->driver.context_push(b->context), 0);
}

static void
be_current_no_more(struct bench *b)
{
    void *context;
    assert_int_equal(b->driver.context_pop(&context), 0);
    assert_int_equal(b->driver.primary_context_release(0), 0);
}

/* --- who pins --------------------------------------------------------------------------- */

static void
driver_pins_where_there_is_one(void **state)
{
    (void)state;
    static const enum dry_pinned_backend backends[] = {DRY_PINNED_AUTO, DRY_PINNED_CUDA};
    for (size_t i = 0; i < 2; i++) {
        struct bench b;
        void *at;
        prepare(&b, NULL);
        b.options.backend = backends[i];
        create(&b);
        assert_int_equal(
            dry_pinned_alloc(b.pinned, 3 * DRYI_MIB, DRY_PINNED_NO_STREAM, &at), DRY_OK);
        struct stand_in_account a = read_account(&b);
        assert_true(a.registrations == 1 && a.registered_bytes >= 3 * DRYI_MIB);
        assert_int_equal(dry_pinned_free(b.pinned, at), DRY_OK);
        assert_int_equal(dry_pinned_clear(b.pinned), DRY_OK);
        assert_true(read_account(&b).registrations == 0);
        finish(&b);
    }
}

static void
without_a_driver_memory_is_locked(void **state)
{
    (void)state;
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
    if (limit.rlim_cur < 4 * DRYI_MIB)
        skip_because("less than 4 MiB may be locked");
    struct bench b;
    void *at;
    prepare(&b, NULL);
    b.options.arena_bytes = 2 * DRYI_MIB;
    b.options.library = "libnone-such.so.1";
    b.options.backend = DRY_PINNED_CUDA;
    assert_int_equal(dry_pinned_create(&b.options, &b.pinned, &b.err),
                     DRY_ERR_UNSUPPORTED);
    assert_non_null(strstr(b.err.text, "libnone-such.so.1"));
    b.options.backend = DRY_PINNED_AUTO;
    create(&b);
    assert_int_equal(dry_pinned_alloc(b.pinned, DRYI_MIB, 5, &at), DRY_OK);
    memset(at, 1, DRYI_MIB);
    assert_int_equal(dry_pinned_free(b.pinned, at), DRY_OK);
    assert_true(read_account(&b).calls == 0);
    finish(&b);
}

/* A program would copy from memory that is not pinned, and never know. */
static void
driver_that_fails_is_not_passed_over(void **state)
{
    (void)state;
    const struct stand_in_setup setup = {.init_result = UNKNOWN};
    struct bench b;
    prepare(&b, &setup);
    assert_int_equal(dry_pinned_create(&b.options, &b.pinned, &b.err), DRY_ERR_SYSTEM);
    assert_non_null(strstr(b.err.text, "cuInit"));
    finish(&b);
}

static void
failed_create_leaves_no_driver_open(void **state)
{
    (void)state;
    struct bench b;
    prepare(&b, NULL);
    b.options.warm_bytes = 8 * DRYI_MIB;
    b.options.budget_bytes = 6 * DRYI_MIB;
    assert_int_equal(dry_pinned_create(&b.options, &b.pinned, &b.err), DRY_ERR_NO_SPACE);
    b.options.mode = (enum dry_pinned_mode)7;
    assert_int_equal(dry_pinned_create(&b.options, &b.pinned, &b.err), DRY_ERR_ARGUMENT);
    finish(&b);
}

static void
text_chooses_pages(void **state)
{
    (void)state;
    struct dry_pinned_options o;
    dry_pinned_options_init(&o);
    assert_int_equal(o.page_kind, DRY_PAGES_TRANSPARENT);
    assert_int_equal(
        dry_pinned_options_parse(&o, "pages:pool,page_mb:1024,page_policy:any", NULL),
        DRY_OK);
    assert_int_equal(o.page_kind, DRY_PAGES_POOL);
    assert_true(o.page_bytes == DRYI_GIB);
    assert_int_equal(o.page_policy, DRY_PAGES_ANY);
    static const char *const wrong[] = {"pages:huge",   "page_policy:", "page_mb:3",
                                        "page_mb:2048", "mode:best",    "backend:gpu"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(dry_pinned_options_parse(&o, wrong[i], NULL), DRY_ERR_ARGUMENT);
    assert_true(o.page_bytes == DRYI_GIB && o.mode == DRY_PINNED_FIT);
}

/* A pool that this machine has not: what may be instead is, and STRICT is refused. */
static void
pages_are_those_of_the_options(void **state)
{
    (void)state;
    struct dry_pages_size sizes[DRY_PAGES_SIZES_MAX];
    size_t count = dry_pages_read_sizes(NULL, -1, sizes);
    for (size_t i = 0; i < count; i++)
        if (sizes[i].kind == DRY_PAGES_POOL &&
            sizes[i].free_count + sizes[i].growth_count)
            skip_because("the pool of huge pages has some");
    struct bench b;
    void *at;
    prepare(&b, NULL);
    b.options.page_kind = DRY_PAGES_POOL;
    create(&b);
    assert_int_equal(dry_pinned_alloc(b.pinned, DRYI_MIB, 0, &at), DRY_OK);
    finish(&b);
    prepare(&b, NULL);
    b.options.page_kind = DRY_PAGES_POOL;
    b.options.page_policy = DRY_PAGES_STRICT;
    create(&b);
    assert_true(dry_pinned_alloc(b.pinned, DRYI_MIB, 0, &at) < 0);
    finish(&b);
}

/* --- copies ----------------------------------------------------------------------------- */

#define BLOCKS 24
#define STREAMS 3
#define STEPS 500

struct copied {
    uint64_t bytes;
    dryi_cuda_address there;
    unsigned char value;
    bool is_used;
};

struct program {
    struct bench b;
    struct random random;
    void *streams[STREAMS];
    struct copied copies[BLOCKS];
};

/* The first and the last byte that arrived. */
static void
assert_arrived(struct program *p, struct copied *c)
{
    unsigned char ends[2] = {0, 0};
    assert_int_equal(p->b.read(&ends[0], c->there, 1), 0);
    assert_int_equal(p->b.read(&ends[1], c->there + c->bytes - 1, 1), 0);
    assert_int_equal(ends[0], c->value);
    assert_int_equal(ends[1], c->value);
    assert_int_equal(p->b.driver.mem_free(c->there), 0);
    c->is_used = false;
}

static uint64_t
choose_bytes(struct program *p)
{
    uint64_t bytes = 1 + random_below(&p->random, 8192);
    if (random_below(&p->random, 3) == 0)
        bytes += random_below(&p->random, DRYI_MIB);
    return bytes;
}

/* Filled, copied on two streams, and freed before either has begun. */
static void
copy_and_free(struct program *p, struct copied *c)
{
    void *at;
    c->bytes = choose_bytes(p);
    enum dry_status status =
        dry_pinned_alloc(p->b.pinned, c->bytes, DRY_PINNED_NO_STREAM, &at);
    if (status == DRY_ERR_NO_SPACE)
        return;
    assert_int_equal(status, DRY_OK);
    c->value = (unsigned char)(1 + random_below(&p->random, 250));
    memset(at, c->value, c->bytes);
    assert_int_equal(p->b.driver.mem_alloc(&c->there, c->bytes), 0);
    for (int i = 0; i < 2; i++) {
        void *stream = p->streams[random_below(&p->random, STREAMS)];
        assert_int_equal(p->b.copy_to(c->there, at, c->bytes, stream), 0);
        assert_int_equal(dry_pinned_record_stream(p->b.pinned, at, (uintptr_t)stream),
                         DRY_OK);
    }
    assert_int_equal(dry_pinned_free(p->b.pinned, at), DRY_OK);
    c->is_used = true;
}

static void
complete_all(struct program *p)
{
    for (size_t i = 0; i < STREAMS; i++)
        p->b.control->complete(p->streams[i]);
    for (size_t i = 0; i < BLOCKS; i++)
        if (p->copies[i].is_used)
            assert_arrived(p, &p->copies[i]);
}

static void
step(struct program *p)
{
    struct copied *c = &p->copies[random_below(&p->random, BLOCKS)];
    if (!c->is_used)
        copy_and_free(p, c);
    else if (random_below(&p->random, 4) == 0)
        p->b.control->complete(p->streams[random_below(&p->random, STREAMS)]);
    if (random_below(&p->random, 60) == 0)
        assert_int_equal(dry_pinned_clear(p->b.pinned), DRY_OK);
    if (random_below(&p->random, 40) == 0)
        complete_all(p);
}

static void
run_program(uint64_t seed, enum dry_pinned_mode mode)
{
    static struct program p;
    p = (struct program){.random = {0}};
    random_init(&p.random, seed);
    prepare(&p.b, NULL);
    p.b.options.mode = mode;
    p.b.options.block_bytes = 8 * DRYI_MIB;
    p.b.options.block_count = 1;
    p.b.options.thread_caches = seed % 2 == 0;
    p.b.options.event_batch = seed % 3 ? 1 : 5;
    create(&p.b);
    be_current(&p.b);
    for (size_t i = 0; i < STREAMS; i++) {
        assert_int_equal(p.b.stream_create(&p.streams[i], 0), 0);
        p.b.control->hold(p.streams[i]);
    }
    for (int i = 0; i < STEPS; i++)
        step(&p);
    assert_int_equal(dry_pinned_check(p.b.pinned, &p.b.err), DRY_OK);
    complete_all(&p);
    assert_int_equal(dry_pinned_clear(p.b.pinned), DRY_OK);
    complete_all(&p); /* events that were due for a batch */
    assert_int_equal(dry_pinned_clear(p.b.pinned), DRY_OK);
    assert_true(read_account(&p.b).registrations == 0 && read_account(&p.b).copies == 0);
    be_current_no_more(&p.b);
    finish(&p.b);
}

static void
blocks_in_flight_are_not_handed_out(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++)
        run_program(seed, seed % 4 == 3 ? DRY_PINNED_BUDDY : DRY_PINNED_FIT);
}

/* --- failures --------------------------------------------------------------------------- */

/* A short life; how many calls said that they failed. */
static unsigned
live(struct bench *b, void *stream)
{
    unsigned failures = 0;
    void *at[4] = {NULL};
    for (size_t i = 0; i < 4; i++) {
        failures += dry_pinned_alloc(b->pinned, (i + 1) * 700000, DRY_PINNED_NO_STREAM,
                                     &at[i]) != DRY_OK;
        if (at[i])
            failures += dry_pinned_record_stream(
                            b->pinned, at[i], (i & 1) ? (uintptr_t)stream : 0) != DRY_OK;
    }
    for (size_t i = 0; i < 4; i++)
        failures += dry_pinned_free(b->pinned, at[i]) != DRY_OK;
    failures += dry_pinned_clear(b->pinned) != DRY_OK;
    assert_int_equal(dry_pinned_check(b->pinned, &b->err), DRY_OK);
    return failures;
}

/* True while `n` is a call that is made. */
static bool
fail_one(uint64_t n, int result)
{
    struct bench b;
    void *stream;
    prepare(&b, NULL);
    be_current(&b);
    assert_int_equal(b.stream_create(&stream, 0), 0);
    uint64_t begin = read_account(&b).calls;
    b.control->fail_at(n, result);
    if (dry_pinned_create(&b.options, &b.pinned, &b.err) == DRY_OK)
        live(&b, stream);
    dry_pinned_destroy(b.pinned);
    bool more = read_account(&b).calls - begin > n;
    b.control->fail_at(UINT64_MAX, 0);
    struct stand_in_account a = read_account(&b);
    /* What the one call was to give back, and no more. */
    assert_true(a.registrations <= 1 && a.events <= 8 && a.contexts <= 2);
    assert_true(a.registrations + (a.events > 0) + a.contexts + a.depth <= 3);
    assert_true(a.misuses == 0);
    b.control->reset(NULL);
    dryi_cuda_driver_close(&b.driver);
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

/* Nobody knows when the work ends, so nothing of it is handed out again. */
static void
broken_context_ends_nothing_else(void **state)
{
    (void)state;
    struct bench b;
    void *at, *other;
    prepare(&b, NULL);
    create(&b);
    assert_int_equal(dry_pinned_alloc(b.pinned, 2 * DRYI_MIB, 0, &at), DRY_OK);
    b.control->hold(NULL);
    assert_int_equal(dry_pinned_free(b.pinned, at), DRY_OK);
    b.control->break_down(DRYI_CUDA_DEINITIALIZED);
    assert_int_equal(dry_pinned_alloc(b.pinned, 2 * DRYI_MIB, 0, &other), DRY_OK);
    assert_ptr_not_equal(at, other); /* out of the other half of the arena */
    assert_true(dry_pinned_alloc(b.pinned, 2 * DRYI_MIB, 0, &at) < 0);
    assert_int_equal(dry_pinned_check(b.pinned, &b.err), DRY_OK);
    dry_pinned_destroy(b.pinned);
    b.control->reset(NULL);
    dryi_cuda_driver_close(&b.driver);
}

static void
child_of_a_fork_ends_its_copy(void **state)
{
    (void)state;
    struct bench b;
    void *at;
    prepare(&b, NULL);
    create(&b);
    assert_int_equal(dry_pinned_alloc(b.pinned, DRYI_MIB, 0, &at), DRY_OK);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        uint64_t before = read_account(&b).calls;
        void *none = NULL;
        bool good = dry_pinned_alloc(b.pinned, DRYI_MIB, 0, &none) == DRY_ERR_UNSUPPORTED;
        dry_pinned_destroy(b.pinned);
        _exit(good && read_account(&b).calls == before ? 17 : 18);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 17);
    memset(at, 1, DRYI_MIB);
    assert_int_equal(dry_pinned_free(b.pinned, at), DRY_OK);
    finish(&b);
}

/* The caller's memory is asked by no thread but the caller's. */
static void
no_memory_for_records_is_said(void **state)
{
    (void)state;
    for (size_t n = 0;; n++) {
        struct bench b;
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        prepare(&b, NULL);
        b.options.memory = &memory;
        b.options.warm_bytes = 4 * DRYI_MIB;
        b.options.in_background = true;
        enum dry_status status = dry_pinned_create(&b.options, &b.pinned, &b.err);
        if (status == DRY_OK)
            live(&b, NULL);
        else
            assert_true(fm.failed && status == DRY_ERR_MEMORY);
        finish(&b);
        failing_memory_finish(&fm);
        if (!fm.failed)
            break;
        assert_true(n < 200);
    }
}

/* --- threads ---------------------------------------------------------------------------- */

static void *
churn(void *self)
{
    struct dry_pinned *pinned = self;
    for (int i = 0; i < 300; i++) {
        void *at[3];
        for (size_t k = 0; k < 3; k++) {
            uint64_t bytes = 5000 * (k + 1) * (k + 1) * (k + 1);
            if (dry_pinned_alloc(pinned, bytes, k, &at[k]) != DRY_OK)
                return NULL;
            memset(at[k], i, bytes);
        }
        for (size_t k = 0; k < 3; k++)
            if (dry_pinned_free(pinned, at[k]) != DRY_OK)
                return NULL;
        if (i % 100 == 99 && dry_pinned_clear(pinned) != DRY_OK)
            return NULL;
    }
    return self;
}

static void
threads_share_a_cache_that_warms(void **state)
{
    (void)state;
    static const struct stand_in_setup setup = {.register_ns = 50000};
    struct bench b;
    prepare(&b, &setup);
    b.options.warm_bytes = 16 * DRYI_MIB;
    b.options.in_background = true;
    create(&b);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, b.pinned), 0);
    for (int i = 0; i < 4; i++) {
        void *result = NULL;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_non_null(result);
    }
    assert_int_equal(dry_pinned_check(b.pinned, &b.err), DRY_OK);
    finish(&b);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(driver_pins_where_there_is_one),
        cmocka_unit_test(without_a_driver_memory_is_locked),
        cmocka_unit_test(driver_that_fails_is_not_passed_over),
        cmocka_unit_test(failed_create_leaves_no_driver_open),
        cmocka_unit_test(text_chooses_pages),
        cmocka_unit_test(pages_are_those_of_the_options),
        cmocka_unit_test(blocks_in_flight_are_not_handed_out),
        cmocka_unit_test(every_driver_call_may_fail),
        cmocka_unit_test(broken_context_ends_nothing_else),
        cmocka_unit_test(child_of_a_fork_ends_its_copy),
        cmocka_unit_test(no_memory_for_records_is_said),
        cmocka_unit_test(threads_share_a_cache_that_warms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
