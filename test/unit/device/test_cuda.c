/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA device over the stand-in for its driver (test/stand_in), which refuses and counts
 * what no correct program does.
 */
#include "support/cmocka.h"
#include "support/failing_memory.h"

#include <drystone/cuda.h>
#include <drystone/pool.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/cuda/cuda_driver.h"
#include "os/library.h"
#include "strict/stand_in.h"

#define MIB (UINT64_C(1) << 20)
#define PAGE (2 * MIB)
#define UNKNOWN 999 /* CUDA_ERROR_UNKNOWN */

/* The driver as the test itself uses it, beside the device under test. */
struct bench {
    struct dryi_cuda_driver driver;
    const struct stand_in *control;
    int (*write)(dryi_cuda_address to, const void *from, size_t bytes);
    int (*read)(void *to, dryi_cuda_address from, size_t bytes);
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_destroy)(void *stream);
    struct dry_cuda *cuda;
    struct dry_device d;
};

static const char *
library_path(void)
{
    const char *path = getenv("DRY_TEST_CUDA");
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

static struct bench
make_bench(const char *path, const struct stand_in_setup *setup)
{
    struct bench b = {0};
    assert_int_equal(dryi_cuda_driver_open(&b.driver, path, NULL), DRY_OK);
    const struct stand_in *(*control)(void);
    find(&b, "stand_in_control", &control);
    find(&b, "cuMemcpyHtoD_v2", &b.write);
    find(&b, "cuMemcpyDtoH_v2", &b.read);
    find(&b, "cuStreamCreate", &b.stream_create);
    find(&b, "cuStreamDestroy_v2", &b.stream_destroy);
    b.control = control();
    b.control->reset(setup);
    return b;
}

static struct bench
begin(const struct stand_in_setup *setup)
{
    struct bench b = make_bench(library_path(), setup);
    struct dry_cuda_options o;
    dry_cuda_options_init(&o);
    o.library = library_path();
    struct dry_error err = {0};
    enum dry_status status = dry_cuda_open(&o, &b.cuda, &err);
    if (status != DRY_OK)
        print_error("%s\n", err.text);
    assert_int_equal(status, DRY_OK);
    b.d = dry_cuda_get_device(b.cuda);
    return b;
}

static struct stand_in_account
get_driver_account(const struct bench *b)
{
    struct stand_in_account account;
    b->control->get_account(&account);
    return account;
}

static struct dry_cuda_account
get_account(const struct bench *b)
{
    struct dry_cuda_account account = DRY_INIT(struct dry_cuda_account);
    dry_cuda_get_account(b->cuda, &account);
    return account;
}

static uint64_t
count_things(const struct stand_in_account *a)
{
    return a->ranges + a->reservations + a->mappings + a->handles + a->events;
}

/* Nothing is left at the driver, and nothing wrong was asked of it. */
static void
end(struct bench *b)
{
    struct stand_in_account a = get_driver_account(b);
    if (a.misuses)
        print_error("%s\n", b->control->last_misuse());
    assert_true(a.misuses == 0);
    assert_true(count_things(&a) == 0);
    assert_true(a.used_bytes == 0);
    assert_true(a.depth == 0);
    assert_true(get_account(b).refusals == 0);
    dry_cuda_close(b->cuda);
    assert_true(get_driver_account(b).contexts == 0);
    b->control->reset(NULL);
    dryi_cuda_driver_close(&b->driver);
}

/* Between these two the test may call the driver itself. */
static void
be_current(struct bench *b)
{
    int device;
    void *context;
    assert_int_equal(b->driver.device_get(&device, 0), 0);
    assert_int_equal(b->driver.primary_context_retain(&context, device), 0);
    assert_int_equal(b->driver.context_push(context), 0);
}

static void
be_current_no_more(struct bench *b)
{
    void *context;
    assert_int_equal(b->driver.context_pop(&context), 0);
    assert_int_equal(b->driver.primary_context_release(0), 0);
}

static void
assert_holds(struct bench *b, uint64_t address, const char *text)
{
    char found[16] = "";
    assert_int_equal(b->read(found, address, strlen(text) + 1), 0);
    assert_string_equal(found, text);
}

static void
traits_name_and_version_are_the_driver_s(void **state)
{
    (void)state;
    const struct stand_in_setup setup = {.total_bytes = 48 * MIB};
    struct bench b = begin(&setup);
    struct dry_device_traits traits;
    b.d.ops->get_traits(b.d.self, &traits);
    assert_true(traits.total_bytes == 48 * MIB);
    assert_true(traits.page_bytes == PAGE);
    struct dry_cuda_account a = get_account(&b);
    assert_string_equal(a.name, "Stand-in 0");
    assert_int_equal(a.driver_version, 12040);
    assert_true(a.has_pages && !a.is_gone);
    assert_int_equal(a.last_error, 0);
    end(&b);
}

static void
alloc_and_free_are_the_driver_s(void **state)
{
    (void)state;
    const struct stand_in_setup setup = {.total_bytes = 16 * MIB};
    struct bench b = begin(&setup);
    uint64_t a, c = 7, is_free, total;
    assert_int_equal(b.d.ops->alloc(b.d.self, 10 * MIB, &a), DRY_OK);
    assert_int_equal(b.d.ops->alloc(b.d.self, 8 * MIB, &c), DRY_ERR_NO_SPACE);
    assert_true(c == 7);
    assert_int_equal(get_account(&b).last_error, DRYI_CUDA_OUT_OF_MEMORY);
    b.d.ops->get_info(b.d.self, &is_free, &total);
    assert_true(is_free == 6 * MIB && total == 16 * MIB);
    assert_int_equal(b.d.ops->alloc(b.d.self, 0, &c), DRY_ERR_ARGUMENT);
    assert_int_equal(b.d.ops->alloc(b.d.self, UINT64_MAX, &c), DRY_ERR_NO_SPACE);
    b.d.ops->free(b.d.self, a, 10 * MIB);
    end(&b);
}

static void
pages_keep_what_they_hold_when_moved(void **state)
{
    (void)state;
    struct bench b = begin(NULL);
    uint64_t range, pages[4];
    assert_int_equal(b.d.ops->reserve(b.d.self, 15 * PAGE + 1, &range), DRY_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(b.d.ops->create_page(b.d.self, &pages[i]), DRY_OK);
    assert_true(get_driver_account(&b).used_bytes == 4 * PAGE);
    assert_int_equal(b.d.ops->map_pages(b.d.self, range, pages, 4), DRY_OK);
    be_current(&b);
    static const char *const texts[4] = {"zero", "one", "two", "three"};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(b.write(range + i * PAGE, texts[i], strlen(texts[i]) + 1), 0);
    assert_int_equal(b.d.ops->unmap_pages(b.d.self, range + PAGE, 2), DRY_OK);
    assert_holds(&b, range, "zero");
    assert_int_equal(b.d.ops->unmap_pages(b.d.self, range, 1), DRY_OK);
    assert_int_equal(b.d.ops->unmap_pages(b.d.self, range + 3 * PAGE, 1), DRY_OK);
    const uint64_t mixed[4] = {pages[3], pages[0], pages[1], pages[2]};
    uint64_t elsewhere = range + 12 * PAGE; /* up to the end, which was rounded */
    assert_int_equal(b.d.ops->map_pages(b.d.self, elsewhere, mixed, 4), DRY_OK);
    for (size_t i = 0; i < 4; i++)
        assert_holds(&b, elsewhere + i * PAGE, texts[(i + 3) % 4]);
    be_current_no_more(&b);
    assert_int_equal(b.d.ops->unmap_pages(b.d.self, elsewhere, 4), DRY_OK);
    for (int i = 0; i < 4; i++)
        b.d.ops->release_page(b.d.self, pages[i]);
    b.d.ops->unreserve(b.d.self, range, 15 * PAGE + 1);
    end(&b);
}

static void
map_takes_memory_and_unmap_gives_it_back(void **state)
{
    (void)state;
    const struct stand_in_setup setup = {.total_bytes = 64 * MIB};
    struct bench b = begin(&setup);
    uint64_t range, page = 20 * MIB;
    assert_int_equal(b.d.ops->reserve(b.d.self, 5 * page, &range), DRY_OK);
    assert_int_equal(b.d.ops->map(b.d.self, range, 2 * page, page), DRY_OK);
    struct stand_in_account a = get_driver_account(&b);
    assert_true(a.used_bytes == 2 * page && a.mappings == 2 && a.handles == 2);
    be_current(&b);
    assert_int_equal(b.write(range + page - 4, "over it", 8), 0);
    assert_holds(&b, range + page - 4, "over it");
    be_current_no_more(&b);
    /* The first of two fits and is taken back. */
    assert_int_equal(b.d.ops->map(b.d.self, range + 2 * page, 2 * page, page),
                     DRY_ERR_NO_SPACE);
    assert_true(get_driver_account(&b).used_bytes == 2 * page);
    b.d.ops->unmap(b.d.self, range, page, page);
    assert_true(get_driver_account(&b).used_bytes == page);
    assert_int_equal(b.d.ops->map(b.d.self, range + 2 * page, 2 * page, page), DRY_OK);
    b.d.ops->unmap(b.d.self, range + page, 3 * page, page);
    b.d.ops->unreserve(b.d.self, range, 5 * page);
    end(&b);
}

static void
sizes_that_cannot_be_are_refused_before_the_driver(void **state)
{
    (void)state;
    struct bench b = begin(NULL);
    uint64_t x = 7, range;
    assert_int_equal(b.d.ops->reserve(b.d.self, 4 * PAGE, &range), DRY_OK);
    uint64_t before = get_driver_account(&b).calls;
    assert_int_equal(b.d.ops->reserve(b.d.self, 0, &x), DRY_ERR_ARGUMENT);
    assert_int_equal(b.d.ops->reserve(b.d.self, UINT64_MAX, &x), DRY_ERR_NO_SPACE);
    assert_int_equal(b.d.ops->map(b.d.self, range, 0, PAGE), DRY_ERR_ARGUMENT);
    assert_int_equal(b.d.ops->map(b.d.self, range, PAGE, 0), DRY_ERR_ARGUMENT);
    assert_int_equal(b.d.ops->map(b.d.self, range, 3 * PAGE, 2 * PAGE), DRY_ERR_ARGUMENT);
    assert_int_equal(b.d.ops->map(b.d.self, range, MIB, MIB), DRY_ERR_ARGUMENT);
    assert_int_equal(b.d.ops->map(b.d.self, range + 1, PAGE, PAGE), DRY_ERR_ARGUMENT);
    assert_int_equal(b.d.ops->map_pages(b.d.self, range + 1, &x, 1), DRY_ERR_ARGUMENT);
    assert_int_equal(b.d.ops->map_pages(b.d.self, range, &x, 0), DRY_OK);
    assert_true(get_driver_account(&b).calls == before);
    assert_int_equal(b.d.ops->reserve(b.d.self, UINT64_C(1) << 63, &x), DRY_ERR_NO_SPACE);
    assert_true(x == 7);
    b.d.ops->unreserve(b.d.self, range, 4 * PAGE);
    end(&b);
}

static void
what_the_driver_keeps_is_asked_for_before_giving_up(void **state)
{
    (void)state;
    const struct stand_in_setup setup = {.total_bytes = 32 * MIB,
                                         .pool_keeps_bytes = 10 * MIB,
                                         .graphs_keep_bytes = 10 * MIB};
    struct bench b = begin(&setup);
    uint64_t a, page, none = 7;
    assert_int_equal(b.d.ops->alloc(b.d.self, 30 * MIB, &a), DRY_OK);
    assert_true(get_account(&b).retries == 1);
    assert_int_equal(b.d.ops->create_page(b.d.self, &page), DRY_OK);
    assert_int_equal(b.d.ops->create_page(b.d.self, &none), DRY_ERR_NO_SPACE);
    assert_int_equal(b.d.ops->alloc(b.d.self, MIB, &none), DRY_ERR_NO_SPACE);
    assert_true(get_account(&b).retries == 1); /* nothing was there to be given */
    assert_true(none == 7);
    b.d.ops->release_page(b.d.self, page);
    b.d.ops->free(b.d.self, a, 30 * MIB);
    end(&b);
}

/* Whatever is refused on the way: the memory is there, or nothing has happened. */
static void
retry_may_fail_at_every_call(void **state)
{
    (void)state;
    const struct stand_in_setup setup = {.total_bytes = 32 * MIB,
                                         .pool_keeps_bytes = 10 * MIB,
                                         .graphs_keep_bytes = 10 * MIB};
    uint64_t granted = 0, refused = 0;
    for (uint64_t n = 0; granted + refused == n; n++) {
        struct bench b = begin(&setup);
        uint64_t a = 7, before = get_driver_account(&b).calls;
        b.control->fail_at(n, UNKNOWN);
        enum dry_status status = b.d.ops->alloc(b.d.self, 18 * MIB, &a);
        bool hit = n < get_driver_account(&b).calls - before;
        b.control->fail_at(UINT64_MAX, 0);
        assert_true((status == DRY_OK) == (a != 7));
        assert_true((status == DRY_OK) == (get_driver_account(&b).ranges == 1));
        granted += hit && status == DRY_OK;
        refused += hit && status != DRY_OK;
        if (status == DRY_OK)
            b.d.ops->free(b.d.self, a, 18 * MIB);
        assert_true(get_driver_account(&b).misuses == 0);
        dry_cuda_close(b.cuda);
        dryi_cuda_driver_close(&b.driver);
    }
    assert_true(granted >= 4 && refused >= 3);
}

static void
pages_retry_too(void **state)
{
    (void)state;
    const struct stand_in_setup setup = {.total_bytes = 2 * PAGE,
                                         .pool_keeps_bytes = 2 * PAGE};
    struct bench b = begin(&setup);
    uint64_t range;
    assert_int_equal(b.d.ops->reserve(b.d.self, 2 * PAGE, &range), DRY_OK);
    assert_int_equal(b.d.ops->map(b.d.self, range, 2 * PAGE, PAGE), DRY_OK);
    assert_true(get_account(&b).retries == 1);
    b.d.ops->unmap(b.d.self, range, 2 * PAGE, PAGE);
    b.d.ops->unreserve(b.d.self, range, 2 * PAGE);
    end(&b);
}

static void
driver_that_unmaps_singly_is_asked_singly(void **state)
{
    (void)state;
    const struct stand_in_setup setup = {.unmaps_singly = true};
    struct bench b = begin(&setup);
    uint64_t range;
    assert_int_equal(b.d.ops->reserve(b.d.self, 8 * PAGE, &range), DRY_OK);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(b.d.ops->map(b.d.self, range, 8 * PAGE, 2 * PAGE), DRY_OK);
        uint64_t before = get_driver_account(&b).calls;
        b.d.ops->unmap(b.d.self, range, 8 * PAGE, 2 * PAGE);
        /* push, exchange, unmaps, exchange, pop: once a try more, then never again */
        assert_true(get_driver_account(&b).calls - before == (round == 0 ? 9 : 8));
        assert_true(get_driver_account(&b).mappings == 0);
    }
    uint64_t page;
    assert_int_equal(b.d.ops->create_page(b.d.self, &page), DRY_OK);
    assert_int_equal(b.d.ops->map_pages(b.d.self, range, &page, 1), DRY_OK);
    b.control->fail_at(2, UNKNOWN); /* behind push and exchange */
    assert_int_equal(b.d.ops->unmap_pages(b.d.self, range, 1), DRY_ERR_SYSTEM);
    assert_int_equal(b.d.ops->unmap_pages(b.d.self, range, 2), DRY_ERR_SYSTEM);
    assert_true(get_driver_account(&b).misuses == 1); /* there is no second page */
    b.d.ops->release_page(b.d.self, page);
    b.d.ops->unreserve(b.d.self, range, 8 * PAGE);
    assert_true(get_driver_account(&b).mappings == 0);
    dry_cuda_close(b.cuda);
    dryi_cuda_driver_close(&b.driver);
}

/* --- failures --------------------------------------------------------------------------- */

/* What a run got hold of, and how often it was refused. */
struct run {
    uint64_t failures; /* calls that said so */
    enum dry_status last;
};

static bool
went_well(struct run *run, enum dry_status status)
{
    run->failures += status != DRY_OK;
    if (status != DRY_OK)
        run->last = status;
    return status == DRY_OK;
}

static void
use_pages(struct dry_device d, uint64_t range, struct run *run)
{
    uint64_t pages[3];
    size_t count = 0;
    while (count < 3 && went_well(run, d.ops->create_page(d.self, &pages[count])))
        count++;
    if (went_well(run, d.ops->map_pages(d.self, range, pages, count)) && count) {
        size_t first = count > 1 ? 1 : 0;
        bool rest = went_well(
            run, d.ops->unmap_pages(d.self, range + first * PAGE, count - first));
        if (!rest) /* nothing was changed: again */
            went_well(run,
                      d.ops->unmap_pages(d.self, range + first * PAGE, count - first));
        if (first && !went_well(run, d.ops->unmap_pages(d.self, range, 1)))
            went_well(run, d.ops->unmap_pages(d.self, range, 1));
    }
    while (count > 0)
        d.ops->release_page(d.self, pages[--count]);
    if (went_well(run, d.ops->map(d.self, range, 4 * PAGE, 2 * PAGE)))
        d.ops->unmap(d.self, range, 4 * PAGE, 2 * PAGE);
}

static void
use_streams(struct dry_device d, struct run *run)
{
    uint64_t event;
    if (!went_well(run, d.ops->event_record(d.self, 1, &event)))
        return;
    if (d.ops->stream_id)
        d.ops->stream_id(d.self, 2);
    went_well(run, d.ops->stream_follow(d.self, 2, event));
    d.ops->event_query(d.self, event);
    went_well(run, d.ops->event_wait(d.self, event));
    went_well(run, d.ops->stream_wait(d.self, 2));
    d.ops->event_destroy(d.self, event);
}

/* Every function of the device once. */
static struct run
use_everything(struct dry_device d)
{
    struct run run = {0};
    uint64_t range, address, is_free, total;
    if (went_well(&run, d.ops->alloc(d.self, 3 * MIB, &address)))
        d.ops->free(d.self, address, 3 * MIB);
    d.ops->get_info(d.self, &is_free, &total);
    use_streams(d, &run);
    if (went_well(&run, d.ops->reserve(d.self, 8 * PAGE, &range))) {
        use_pages(d, range, &run);
        d.ops->unreserve(d.self, range, 8 * PAGE);
    }
    return run;
}

/* True while `n` is a call that is made. */
static bool
fail_one(uint64_t n, int result)
{
    struct bench b = make_bench(library_path(), NULL);
    struct dry_cuda_options o;
    dry_cuda_options_init(&o);
    o.library = library_path();
    struct dry_error err = {0};
    b.control->fail_at(n, result);
    enum dry_status status = dry_cuda_open(&o, &b.cuda, &err);
    struct stand_in_account a = get_driver_account(&b);
    if (status != DRY_OK) {
        assert_true(n < a.calls);
        assert_true(a.contexts == 0 && a.misuses == 0 && count_things(&a) == 0);
        assert_true(status == (result == DRYI_CUDA_OUT_OF_MEMORY ? DRY_ERR_NO_SPACE
                                                                 : DRY_ERR_SYSTEM));
        assert_true(err.status == status && strstr(err.text, "CUDA error"));
        dryi_cuda_driver_close(&b.driver);
        return true;
    }
    b.d = dry_cuda_get_device(b.cuda);
    struct run run = use_everything(b.d);
    uint64_t opened = a.calls;
    a = get_driver_account(&b);
    struct dry_cuda_account account = get_account(&b);
    bool hit = n >= opened && n < a.calls;
    if (hit) {
        assert_true(run.failures + account.refusals >= 1);
        assert_int_equal(account.last_error == result ||
                             account.last_error == DRYI_CUDA_INVALID_VALUE,
                         true);
        assert_true(!account.is_gone);
    }
    /* Only what could not be given back is left, and that was counted. */
    if (account.refusals == 0) {
        assert_true(a.misuses == 0 && count_things(&a) == 0 && a.depth == 0);
        assert_true(run.failures == hit);
        if (hit)
            assert_true(run.last == (result == DRYI_CUDA_OUT_OF_MEMORY ? DRY_ERR_NO_SPACE
                                                                       : DRY_ERR_SYSTEM));
    }
    dry_cuda_close(b.cuda);
    uint64_t calls = get_driver_account(&b).calls;
    assert_true(get_driver_account(&b).contexts == (n == calls - 1));
    dryi_cuda_driver_close(&b.driver);
    return n < calls;
}

static void
every_call_may_fail(void **state)
{
    (void)state;
    static const int results[] = {DRYI_CUDA_OUT_OF_MEMORY, DRYI_CUDA_LAUNCH_FAILED,
                                  UNKNOWN};
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        uint64_t n = 0;
        while (fail_one(n, results[i]))
            n++;
        assert_true(n > 80);
    }
}

/* Requests of a pool on two streams, small and large; what is refused is left out. */
static void
use_pool(struct dry_pool *pool)
{
    static const uint64_t sizes[] = {512, 3 * MIB, 30 * MIB, 70000, 12 * MIB, MIB};
    struct dry_error err;
    uint64_t blocks[12];
    size_t count = 0;
    for (size_t i = 0; i < 12; i++) {
        uint64_t address;
        if (dry_pool_alloc(pool, sizes[i % 6], i % 2, &address) != DRY_OK)
            continue;
        if (i % 3 == 0)
            (void)dry_pool_record_stream(pool, address, 2);
        blocks[count++] = address;
        assert_int_equal(dry_pool_check(pool, &err), DRY_OK);
        if (i % 4 == 3 && dry_pool_free(pool, blocks[count - 2]) == DRY_OK) {
            blocks[count - 2] = blocks[count - 1];
            count--;
        }
    }
    (void)!dry_pool_empty_cache(pool);
    assert_int_equal(dry_pool_check(pool, &err), DRY_OK);
    while (count > 0)
        (void)dry_pool_free(pool, blocks[--count]);
    (void)!dry_pool_empty_cache(pool);
    assert_int_equal(dry_pool_check(pool, &err), DRY_OK);
}

/* True while `n` is a call that is made. */
static bool
fail_one_under_pool(uint64_t n, int result, enum dry_placement placement,
                    const char *conf)
{
    const struct stand_in_setup setup = {.total_bytes = 200 * MIB};
    struct bench b = begin(&setup);
    struct dry_pool_options o;
    dry_pool_options_init(&o);
    o.device = b.d;
    o.placement = placement;
    o.conf = conf;
    struct dry_pool *pool = NULL;
    b.control->fail_at(n, result);
    uint64_t opened = get_driver_account(&b).calls;
    enum dry_status status = dry_pool_create(&o, &pool, NULL);
    if (status == DRY_OK)
        use_pool(pool);
    dry_pool_destroy(pool);
    struct stand_in_account a = get_driver_account(&b);
    bool hit = n < a.calls - opened;
    struct dry_cuda_account account = get_account(&b);
    if (account.refusals == 0) {
        if (a.misuses)
            print_error("call %llu: %s\n", (unsigned long long)n,
                        b.control->last_misuse());
        assert_true(a.misuses == 0 && a.depth == 0);
        assert_true(count_things(&a) == 0 && a.used_bytes == 0);
    }
    assert_true(hit || account.refusals == 0);
    b.control->fail_at(UINT64_MAX, 0);
    dry_cuda_close(b.cuda);
    dryi_cuda_driver_close(&b.driver);
    return hit;
}

static void
pool_outlives_every_failure(void **state)
{
    (void)state;
    static const struct {
        enum dry_placement placement;
        const char *conf;
    } pools[] = {{DRY_PLACEMENT_PAGED, ""},
                 {DRY_PLACEMENT_TORCH, ""},
                 {DRY_PLACEMENT_TORCH, "expandable_segments:True"}};
    static const int results[] = {DRYI_CUDA_OUT_OF_MEMORY, UNKNOWN};
    for (size_t i = 0; i < sizeof pools / sizeof *pools; i++) {
        for (size_t k = 0; k < 2; k++) {
            uint64_t n = 0;
            while (fail_one_under_pool(n, results[k], pools[i].placement, pools[i].conf))
                n++;
            assert_true(n > 20 || pools[i].placement == DRY_PLACEMENT_PAGED);
        }
    }
}

static void
broken_context_is_reported_and_counted(void **state)
{
    (void)state;
    struct bench b = begin(NULL);
    uint64_t a, c = 7, event;
    assert_int_equal(b.d.ops->alloc(b.d.self, MIB, &a), DRY_OK);
    assert_int_equal(b.d.ops->event_record(b.d.self, 0, &event), DRY_OK);
    b.control->break_down(DRYI_CUDA_ILLEGAL_ADDRESS);
    struct run run = use_everything(b.d);
    assert_true(run.failures == 3); /* alloc, record, reserve: the rest needs them */
    assert_int_equal(run.last, DRY_ERR_SYSTEM);
    assert_int_equal(b.d.ops->alloc(b.d.self, MIB, &c), DRY_ERR_SYSTEM);
    assert_false(b.d.ops->event_query(b.d.self, event)); /* nobody knows */
    b.d.ops->free(b.d.self, a, MIB);
    struct dry_cuda_account account = get_account(&b);
    assert_true(account.refusals == 3 && !account.is_gone); /* get_info, query, free */
    assert_int_equal(account.last_error, DRYI_CUDA_ILLEGAL_ADDRESS);
    dry_cuda_close(b.cuda);
    b.control->reset(NULL);
    dryi_cuda_driver_close(&b.driver);
}

static void
giving_back_to_what_is_gone_does_nothing(void **state)
{
    (void)state;
    static const int results[] = {DRYI_CUDA_DEINITIALIZED,
                                  DRYI_CUDA_CONTEXT_IS_DESTROYED};
    for (size_t i = 0; i < 2; i++) {
        struct bench b = begin(NULL);
        uint64_t a, c, range, page, event;
        assert_int_equal(b.d.ops->alloc(b.d.self, MIB, &a), DRY_OK);
        assert_int_equal(b.d.ops->reserve(b.d.self, PAGE, &range), DRY_OK);
        assert_int_equal(b.d.ops->create_page(b.d.self, &page), DRY_OK);
        assert_int_equal(b.d.ops->map_pages(b.d.self, range, &page, 1), DRY_OK);
        b.control->hold(NULL);
        assert_int_equal(b.d.ops->event_record(b.d.self, 0, &event), DRY_OK);
        assert_false(b.d.ops->event_query(b.d.self, event));
        b.control->break_down(results[i]);
        assert_int_equal(b.d.ops->alloc(b.d.self, MIB, &c), DRY_ERR_SYSTEM);
        assert_true(get_account(&b).is_gone);
        uint64_t before = get_driver_account(&b).calls;
        assert_true(b.d.ops->event_query(b.d.self, event)); /* nothing runs any more */
        b.d.ops->event_destroy(b.d.self, event);
        assert_int_equal(b.d.ops->unmap_pages(b.d.self, range, 1), DRY_OK);
        b.d.ops->release_page(b.d.self, page);
        b.d.ops->unreserve(b.d.self, range, PAGE);
        b.d.ops->free(b.d.self, a, MIB);
        assert_int_equal(b.d.ops->create_page(b.d.self, &c), DRY_ERR_SYSTEM);
        struct dry_cuda_account account = get_account(&b);
        assert_true(account.refusals == 0);
        assert_int_equal(account.last_error, results[i]);
        dry_cuda_close(b.cuda);
        assert_true(get_driver_account(&b).calls == before);
        b.control->reset(NULL);
        dryi_cuda_driver_close(&b.driver);
    }
}

static void
child_of_a_fork_leaves_the_driver_alone(void **state)
{
    (void)state;
    struct bench b = begin(NULL);
    uint64_t a;
    assert_int_equal(b.d.ops->alloc(b.d.self, MIB, &a), DRY_OK);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        uint64_t c, before = get_driver_account(&b).calls;
        bool good = b.d.ops->alloc(b.d.self, MIB, &c) == DRY_ERR_SYSTEM;
        b.d.ops->free(b.d.self, a, MIB);
        good = good && get_account(&b).is_gone && get_account(&b).refusals == 0;
        dry_cuda_close(b.cuda);
        good = good && get_driver_account(&b).calls == before;
        _exit(good ? 17 : 18);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 17);
    assert_false(get_account(&b).is_gone);
    b.d.ops->free(b.d.self, a, MIB);
    end(&b);
}

/* --- what there may be instead ------------------------------------------------------------ */

static void
device_without_pages_has_alloc_alone(void **state)
{
    (void)state;
    struct stand_in_setup setup = {.no_virtual_memory = true};
    struct bench b = begin(&setup);
    struct dry_device_traits traits;
    b.d.ops->get_traits(b.d.self, &traits);
    assert_true(traits.page_bytes == 0);
    assert_false(get_account(&b).has_pages);
    uint64_t x;
    assert_int_equal(b.d.ops->reserve(b.d.self, PAGE, &x), DRY_ERR_UNSUPPORTED);
    assert_int_equal(b.d.ops->map(b.d.self, PAGE, PAGE, PAGE), DRY_ERR_UNSUPPORTED);
    assert_int_equal(b.d.ops->create_page(b.d.self, &x), DRY_ERR_UNSUPPORTED);
    assert_int_equal(b.d.ops->map_pages(b.d.self, PAGE, &x, 1), DRY_ERR_UNSUPPORTED);
    assert_int_equal(b.d.ops->unmap_pages(b.d.self, PAGE, 1), DRY_ERR_UNSUPPORTED);
    assert_int_equal(b.d.ops->alloc(b.d.self, MIB, &x), DRY_OK);
    b.d.ops->free(b.d.self, x, MIB);
    end(&b);
}

static void
old_driver_serves_what_it_has(void **state)
{
    (void)state;
    const char *old = getenv("DRY_TEST_CUDA_OLD");
    assert_non_null(old);
    struct bench b = make_bench(old, NULL);
    assert_true(b.driver.mem_create == NULL);
    struct dry_cuda_options o;
    dry_cuda_options_init(&o);
    o.library = old;
    struct dry_error err;
    o.shareable = true;
    assert_int_equal(dry_cuda_open(&o, &b.cuda, &err), DRY_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "shareable"));
    o.shareable = false;
    assert_int_equal(dry_cuda_open(&o, &b.cuda, &err), DRY_OK);
    b.d = dry_cuda_get_device(b.cuda);
    assert_false(get_account(&b).has_pages);
    assert_true(b.d.ops->stream_id == NULL);
    struct run run = use_everything(b.d);
    assert_true(run.failures == 1); /* reserve */
    assert_int_equal(run.last, DRY_ERR_UNSUPPORTED);
    end(&b);
}

static struct stand_in_account
open_and_create_with(const struct stand_in_setup *setup,
                     const struct dry_cuda_options *options)
{
    struct bench b = make_bench(library_path(), setup);
    assert_int_equal(dry_cuda_open(options, &b.cuda, NULL), DRY_OK);
    b.d = dry_cuda_get_device(b.cuda);
    uint64_t page;
    assert_int_equal(b.d.ops->create_page(b.d.self, &page), DRY_OK);
    struct stand_in_account a = get_driver_account(&b);
    b.d.ops->release_page(b.d.self, page);
    end(&b);
    return a;
}

static void
options_choose_the_kind_of_pages(void **state)
{
    (void)state;
    struct dry_cuda_options o;
    dry_cuda_options_init(&o);
    o.library = library_path();
    struct stand_in_setup setup = {0};
    struct stand_in_account a = open_and_create_with(&setup, &o);
    assert_true(a.gpu_direct_pages == 0 && a.shareable_pages == 0);
    o.gpu_direct = true;
    o.shareable = true;
    a = open_and_create_with(&setup, &o);
    assert_true(a.gpu_direct_pages == 1 && a.shareable_pages == 1);
    setup.no_gpu_direct = true; /* where the device can, it says */
    a = open_and_create_with(&setup, &o);
    assert_true(a.gpu_direct_pages == 0 && a.shareable_pages == 1);

    setup.no_posix_handles = true;
    struct bench b = make_bench(library_path(), &setup);
    struct dry_error err;
    assert_int_equal(dry_cuda_open(&o, &b.cuda, &err), DRY_ERR_UNSUPPORTED);
    assert_true(get_driver_account(&b).contexts == 0);
    o.shareable = false;
    o.no_pages = true;
    assert_int_equal(dry_cuda_open(&o, &b.cuda, &err), DRY_OK);
    assert_false(get_account(&b).has_pages);
    end(&b);
}

static void
larger_granularity_makes_larger_pages(void **state)
{
    (void)state;
    struct stand_in_setup setup = {.granularity = 4 * MIB};
    struct bench b = begin(&setup);
    struct dry_device_traits traits;
    b.d.ops->get_traits(b.d.self, &traits);
    assert_true(traits.page_bytes == 4 * MIB);
    end(&b);
    setup.granularity = 3 * MIB;
    b = make_bench(library_path(), &setup);
    struct dry_cuda_options o;
    dry_cuda_options_init(&o);
    o.library = library_path();
    assert_int_equal(dry_cuda_open(&o, &b.cuda, NULL), DRY_ERR_UNSUPPORTED);
    dryi_cuda_driver_close(&b.driver);
    setup.granularity = MIB / 2;
    b = begin(&setup);
    b.d.ops->get_traits(b.d.self, &traits);
    assert_true(traits.page_bytes == PAGE);
    end(&b);
}

static void
what_is_not_there_is_said(void **state)
{
    (void)state;
    struct dry_cuda *cuda = NULL;
    struct dry_error err;
    struct dry_cuda_options o;
    dry_cuda_options_init(&o);
    assert_string_equal(o.library, "libcuda.so.1");
    o.library = "libthere-is-none.so.9";
    assert_int_equal(dry_cuda_open(&o, &cuda, &err), DRY_ERR_UNSUPPORTED);
    const char *named = strstr(err.text, o.library);
    assert_non_null(named);
    assert_null(strstr(named + 1, o.library)); /* once */
    o.library = "libc.so.6";                   /* a library, but not a driver */
    assert_int_equal(dry_cuda_open(&o, &cuda, &err), DRY_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "cu"));
    o.library = NULL;
    assert_int_equal(dry_cuda_open(&o, &cuda, &err), DRY_ERR_ARGUMENT);
    o.library = library_path();
    o.struct_size = 0;
    assert_int_equal(dry_cuda_open(&o, &cuda, &err), DRY_ERR_ARGUMENT);
    o.struct_size = sizeof o;

    struct stand_in_setup setup = {.device_count = 2};
    struct bench b = make_bench(library_path(), &setup);
    o.device = 2;
    assert_int_equal(dry_cuda_open(&o, &cuda, &err), DRY_ERR_UNSUPPORTED);
    assert_string_equal(err.text, "no device 2: the driver shows 2");
    o.device = -1;
    assert_int_equal(dry_cuda_open(&o, &cuda, &err), DRY_ERR_UNSUPPORTED);
    o.device = 0;
    setup.init_result = DRYI_CUDA_NO_DEVICE;
    b.control->reset(&setup);
    assert_int_equal(dry_cuda_open(&o, &cuda, &err), DRY_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "CUDA_ERROR_NO_DEVICE"));
    setup.init_result = UNKNOWN;
    b.control->reset(&setup);
    assert_int_equal(dry_cuda_open(&o, &cuda, &err), DRY_ERR_SYSTEM);
    assert_int_equal(err.os_errno, 0);
    assert_non_null(strstr(err.text, "CUDA error 999"));
    assert_null(cuda);
    dry_cuda_close(NULL);
    dryi_cuda_driver_close(&b.driver);
}

/* --- streams ---------------------------------------------------------------------------- */

static uint64_t
make_stream(struct bench *b)
{
    void *stream;
    assert_int_equal(b->stream_create(&stream, 0), 0);
    return (uintptr_t)stream;
}

static void *
handle(uint64_t stream)
{
    return (void *)(uintptr_t)stream;
}

static void
events_pass_in_stream_order(void **state)
{
    (void)state;
    struct bench b = begin(NULL);
    be_current(&b);
    uint64_t one = make_stream(&b), two = make_stream(&b), e[3];
    b.control->hold(handle(one));
    assert_int_equal(b.d.ops->event_record(b.d.self, one, &e[0]), DRY_OK);
    assert_int_equal(b.d.ops->stream_follow(b.d.self, two, e[0]), DRY_OK);
    assert_int_equal(b.d.ops->event_record(b.d.self, two, &e[1]), DRY_OK);
    assert_false(b.d.ops->event_query(b.d.self, e[0]));
    assert_false(b.d.ops->event_query(b.d.self, e[1]));
    b.d.ops->event_wait(b.d.self, e[0]);
    assert_true(b.d.ops->event_query(b.d.self, e[0]));
    assert_true(b.d.ops->event_query(b.d.self, e[1]));
    assert_int_equal(b.d.ops->event_record(b.d.self, one, &e[2]), DRY_OK);
    assert_false(b.d.ops->event_query(b.d.self, e[2]));
    b.d.ops->stream_wait(b.d.self, one);
    assert_true(b.d.ops->event_query(b.d.self, e[2]));
    for (int i = 0; i < 3; i++)
        b.d.ops->event_destroy(b.d.self, e[i]);
    assert_int_equal(b.d.ops->event_record(b.d.self, 0, &e[0]), DRY_OK);
    assert_true(b.d.ops->event_query(b.d.self, e[0]));
    b.d.ops->event_destroy(b.d.self, e[0]);
    be_current_no_more(&b);
    end(&b);
}

/* It ends at once, what it was given does not. */
static void
destroyed_stream_is_waited_for_with_all_others(void **state)
{
    (void)state;
    struct bench b = begin(NULL);
    be_current(&b);
    uint64_t stream = make_stream(&b), event;
    b.control->hold(handle(stream));
    assert_int_equal(b.d.ops->event_record(b.d.self, stream, &event), DRY_OK);
    assert_int_equal(b.stream_destroy(handle(stream)), 0);
    assert_false(b.d.ops->event_query(b.d.self, event));
    b.control->capture(true); /* of somebody else */
    assert_int_equal(b.d.ops->wait_all(b.d.self), DRY_OK);
    b.control->capture(false);
    assert_true(b.d.ops->event_query(b.d.self, event));
    b.d.ops->event_destroy(b.d.self, event);
    b.control->fail_at(2, UNKNOWN); /* after the context and the capture mode */
    assert_int_equal(b.d.ops->wait_all(b.d.self), DRY_ERR_SYSTEM);
    be_current_no_more(&b);
    end(&b);
}

/* Another thread, whose own stream the driver says nothing of. */
struct asker {
    struct bench *bench;
    uint64_t *id;
};

static void *
ask_refused(void *self)
{
    const struct asker *a = self;
    a->bench->control->fail_at(2, UNKNOWN);
    *a->id = a->bench->d.ops->stream_id(a->bench->d.self, 2);
    return NULL;
}

/* Drivers differ in what they say of a handle that is none any more. */
static void
destroyed_stream_does_not_end_the_device(void **state)
{
    (void)state;
    struct bench b = begin(NULL);
    be_current(&b);
    uint64_t stream = make_stream(&b);
    b.control->fail_at(0, DRYI_CUDA_CONTEXT_IS_DESTROYED);
    assert_true(b.d.ops->stream_id(b.d.self, stream) == stream);
    assert_false(get_account(&b).is_gone);
    assert_true(get_account(&b).refusals == 1);
    assert_true(b.d.ops->stream_id(b.d.self, stream) != stream);
    b.control->fail_at(2, UNKNOWN); /* after the context and the capture mode */
    uint64_t mine = b.d.ops->stream_id(b.d.self, 2), others = mine;
    assert_true(mine > 1u << 20);
    pthread_t thread;
    assert_int_equal(
        pthread_create(&thread, NULL, ask_refused, &(struct asker){&b, &others}), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(others > 1u << 20 && others != mine);
    be_current_no_more(&b);
    dry_cuda_close(b.cuda);
    b.control->reset(NULL);
    dryi_cuda_driver_close(&b.driver);
}

/* The driver's answer would end the capture. */
static void
stream_under_capture_keeps_its_id(void **state)
{
    (void)state;
    struct bench b = begin(NULL);
    be_current(&b);
    uint64_t known = make_stream(&b), fresh = make_stream(&b);
    uint64_t id = b.d.ops->stream_id(b.d.self, known);
    assert_true(id != known);
    b.control->capture(true);
    assert_true(b.d.ops->stream_id(b.d.self, known) == id);
    assert_true(b.d.ops->stream_id(b.d.self, fresh) == fresh);
    b.control->capture(false);
    assert_true(b.d.ops->stream_id(b.d.self, known) == id);
    assert_true(b.d.ops->stream_id(b.d.self, fresh) != fresh);
    be_current_no_more(&b);
    end(&b);
}

static void
stream_ids_never_come_again(void **state)
{
    (void)state;
    struct bench b = begin(NULL);
    be_current(&b);
    uint64_t stream = make_stream(&b);
    uint64_t id = b.d.ops->stream_id(b.d.self, stream);
    assert_true(b.d.ops->stream_id(b.d.self, stream) == id);
    uint64_t calls = get_driver_account(&b).calls;
    assert_true(b.d.ops->stream_id(b.d.self, 0) != id);
    assert_true(b.d.ops->stream_id(b.d.self, 0) == b.d.ops->stream_id(b.d.self, 1));
    assert_true(get_driver_account(&b).calls == calls); /* hot, so none */
    assert_true(b.d.ops->stream_id(b.d.self, stream) == id);
    assert_true(get_driver_account(&b).calls == calls + 2);
    uint64_t thread_id = b.d.ops->stream_id(b.d.self, 2);
    assert_true(thread_id != id && thread_id != 2);
    assert_int_equal(b.stream_destroy(handle(stream)), 0);
    assert_true(make_stream(&b) == stream); /* the handle does */
    assert_true(b.d.ops->stream_id(b.d.self, stream) != id);
    be_current_no_more(&b);
    end(&b);
}

static void
capture_under_way_is_not_spoilt(void **state)
{
    (void)state;
    struct bench b = begin(NULL);
    uint64_t event;
    assert_int_equal(b.d.ops->event_record(b.d.self, 0, &event), DRY_OK);
    b.control->capture(true);
    uint64_t a;
    assert_int_equal(b.d.ops->alloc(b.d.self, MIB, &a), DRY_OK);
    assert_true(b.d.ops->event_query(b.d.self, event));
    b.d.ops->free(b.d.self, a, MIB);
    b.d.ops->event_destroy(b.d.self, event);
    assert_true(get_driver_account(&b).misuses == 0);
    /* The thread's own mode is what it was: relaxed for the device alone. */
    int mode = 0;
    assert_int_equal(b.driver.exchange_capture_mode(&mode), 0);
    assert_int_equal(mode, 0);
    b.control->capture(false);
    end(&b);
}

static void
former_context_is_current_again(void **state)
{
    (void)state;
    const struct stand_in_setup setup = {.device_count = 2, .total_bytes = 64 * MIB};
    struct bench b = begin(&setup);
    struct dry_cuda_options o;
    dry_cuda_options_init(&o);
    o.library = library_path();
    o.device = 1;
    struct dry_cuda *other;
    assert_int_equal(dry_cuda_open(&o, &other, NULL), DRY_OK);
    struct dry_device d = dry_cuda_get_device(other);
    be_current(&b); /* of device 0 */
    uint64_t a, c, is_free, total;
    assert_int_equal(d.ops->alloc(d.self, 60 * MIB, &a), DRY_OK);
    assert_int_equal(b.d.ops->alloc(b.d.self, 50 * MIB, &c), DRY_OK);
    struct run run = use_everything(d); /* some of it finds the device full */
    assert_true(run.failures > 0 && run.last == DRY_ERR_NO_SPACE);
    d.ops->get_info(d.self, &is_free, &total);
    assert_true(is_free == 4 * MIB);
    size_t here, all;
    assert_int_equal(b.driver.mem_get_info(&here, &all), 0);
    assert_true(here == 14 * MIB);
    be_current_no_more(&b);
    d.ops->free(d.self, a, 60 * MIB);
    b.d.ops->free(b.d.self, c, 50 * MIB);
    dry_cuda_close(other);
    end(&b);
}

static void *
churn(void *self)
{
    const struct dry_device *d = self;
    for (int i = 0; i < 200; i++)
        if (use_everything(*d).failures)
            return NULL;
    return self;
}

static void
threads_share_a_device(void **state)
{
    (void)state;
    struct bench b = begin(NULL);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, &b.d), 0);
    for (int i = 0; i < 4; i++) {
        void *result = NULL;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_non_null(result);
    }
    end(&b);
}

static void
running_out_of_memory_is_reported(void **state)
{
    (void)state;
    struct bench b = make_bench(library_path(), NULL);
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct dry_cuda_options o;
        dry_cuda_options_init(&o);
        o.library = library_path();
        o.memory = &memory;
        struct dry_cuda *cuda = NULL;
        enum dry_status status = dry_cuda_open(&o, &cuda, NULL);
        if (status == DRY_OK) {
            struct dry_device d = dry_cuda_get_device(cuda);
            assert_true(use_everything(d).failures == 0);
            dry_cuda_close(cuda);
        }
        failing_memory_finish(&fm);
        assert_true(get_driver_account(&b).contexts == 0);
        if (!fm.failed) {
            assert_int_equal(status, DRY_OK);
            assert_true(n == 1); /* the device itself: calls take no memory */
            break;
        }
        assert_int_equal(status, DRY_ERR_MEMORY);
    }
    dryi_cuda_driver_close(&b.driver);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traits_name_and_version_are_the_driver_s),
        cmocka_unit_test(alloc_and_free_are_the_driver_s),
        cmocka_unit_test(pages_keep_what_they_hold_when_moved),
        cmocka_unit_test(map_takes_memory_and_unmap_gives_it_back),
        cmocka_unit_test(sizes_that_cannot_be_are_refused_before_the_driver),
        cmocka_unit_test(what_the_driver_keeps_is_asked_for_before_giving_up),
        cmocka_unit_test(retry_may_fail_at_every_call),
        cmocka_unit_test(pages_retry_too),
        cmocka_unit_test(driver_that_unmaps_singly_is_asked_singly),
        cmocka_unit_test(every_call_may_fail),
        cmocka_unit_test(pool_outlives_every_failure),
        cmocka_unit_test(broken_context_is_reported_and_counted),
        cmocka_unit_test(giving_back_to_what_is_gone_does_nothing),
        cmocka_unit_test(child_of_a_fork_leaves_the_driver_alone),
        cmocka_unit_test(device_without_pages_has_alloc_alone),
        cmocka_unit_test(old_driver_serves_what_it_has),
        cmocka_unit_test(options_choose_the_kind_of_pages),
        cmocka_unit_test(larger_granularity_makes_larger_pages),
        cmocka_unit_test(what_is_not_there_is_said),
        cmocka_unit_test(events_pass_in_stream_order),
        cmocka_unit_test(destroyed_stream_is_waited_for_with_all_others),
        cmocka_unit_test(destroyed_stream_does_not_end_the_device),
        cmocka_unit_test(stream_under_capture_keeps_its_id),
        cmocka_unit_test(stream_ids_never_come_again),
        cmocka_unit_test(capture_under_way_is_not_spoilt),
        cmocka_unit_test(former_context_is_current_again),
        cmocka_unit_test(threads_share_a_device),
        cmocka_unit_test(running_out_of_memory_is_reported),
    };
    return cmocka_run_group_tests_name("cuda", tests, NULL, NULL);
}
