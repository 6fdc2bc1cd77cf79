/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of other ages than the library. This one includes no header of ours: it declares what
 * an older or a newer header would, and opens the shared library as it is today.
 */
#include "support/cmocka.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, ARGUMENT = -1, UNSUPPORTED = -7 };

struct error {
    int status, os_errno;
    uint64_t offset;
    char text[232];
};

/* struct dry_sim_options, before it had `check`. */
struct old_sim_options {
    size_t struct_size;
    const void *memory;
    uint64_t capacity_bytes, total_bytes, granularity_bytes, page_bytes;
    uint64_t (*choose_address)(void *self, int call, uint64_t size);
    void *choose_self;
};

/* The same in years: `later` are members that nobody has thought of. */
struct new_sim_options {
    struct old_sim_options old;
    bool check;
    uint64_t later[3];
};

/* struct dry_pool_options, and dry_pool_counters before it had driver_time_ns. */
struct pool_options {
    size_t struct_size;
    const void *memory;
    struct device {
        const void *ops;
        void *self;
    } device;
    int32_t device_index;
    int placement;
    const char *conf, *compat;
    void (*observe)(void *self, const void *event);
    void *observe_self;
};

struct old_counters {
    size_t struct_size;
    uint64_t reserved_peak_bytes, pages_created, others[10], oom_callbacks_helped;
};

struct new_counters {
    struct old_counters old;
    uint64_t driver_time_ns, later[8];
};

static void *
call(const char *name)
{
    static void *library;
    if (!library)
        library = dlopen(getenv("DRY_TEST_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    void *found = library ? dlsym(library, name) : NULL;
    if (!found)
        fail_msg("%s: %s", name, dlerror());
    return found;
}

#define CALL(result, name, types, ...)                                                   \
    (((union {                                                                           \
          void *found;                                                                   \
          result(*call) types;                                                           \
      }){.found = call(#name)}                                                           \
          .call)(__VA_ARGS__))

static void
sim_init(void *options, size_t bytes)
{
    CALL(void, dry_sim_options_init_sized, (void *, size_t), options, bytes);
}

static int
sim_create(const void *options, void **sim, struct error *err)
{
    return CALL(int, dry_sim_create, (const void *, void **, struct error *), options,
                sim, err);
}

static void
sim_destroy(void *sim)
{
    CALL(void, dry_sim_destroy, (void *), sim);
}

static bool
is_all(const unsigned char *bytes, size_t count, unsigned char value)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != value)
            return false;
    return true;
}

/* What lies behind the struct is the program's own: here it is no simulation's option. */
static void
older_options_are_all_there_is(void **state)
{
    (void)state;
    struct {
        struct old_sim_options options;
        unsigned char behind[64];
    } old;
    memset(&old, 0xa5, sizeof old);
    sim_init(&old.options, sizeof old.options);
    assert_int_equal(old.options.struct_size, sizeof old.options);
    assert_true(old.options.page_bytes == 2 << 20 && !old.options.memory);
    assert_true(is_all(old.behind, sizeof old.behind, 0xa5));
    void *sim = NULL;
    struct error err;
    assert_int_equal(sim_create(&old.options, &sim, &err), OK);
    assert_true(is_all(old.behind, sizeof old.behind, 0xa5));
    /* `check`, which is not there, is off: owner 0 would be refused. */
    assert_int_equal(CALL(int, dry_sim_own,
                          (void *, uint64_t, uint64_t, uint64_t, uint64_t), sim, 4096, 1,
                          0, 0),
                     OK);
    sim_destroy(sim);
}

static void
newer_options_may_set_what_is_known(void **state)
{
    (void)state;
    struct new_sim_options new;
    memset(&new, 0xa5, sizeof new);
    sim_init(&new, sizeof new);
    assert_int_equal(new.old.struct_size, sizeof new);
    assert_true(is_all((unsigned char *)new.later, sizeof new.later, 0));
    void *sim = NULL;
    struct error err;
    assert_int_equal(sim_create(&new, &sim, &err), OK);
    sim_destroy(sim);
    sim = NULL;
    new.later[2] = 1;
    assert_int_equal(sim_create(&new, &sim, &err), UNSUPPORTED);
    assert_null(sim);
    assert_non_null(strstr(err.text, "lacks"));
}

static void
options_that_nobody_began_are_refused(void **state)
{
    (void)state;
    struct old_sim_options old;
    void *sim = NULL;
    struct error err;
    sim_init(&old, sizeof old);
    old.struct_size = 0;
    assert_int_equal(sim_create(&old, &sim, &err), ARGUMENT);
    assert_non_null(strstr(err.text, "struct_size"));
    assert_null(sim);
}

/* Make a pool with a block in use on a simulation. */
static void *
make_pool(void **sim)
{
    struct pool_options options;
    void *pool = NULL;
    uint64_t address;
    assert_int_equal(sim_create(NULL, sim, NULL), OK);
    CALL(void, dry_pool_options_init_sized, (void *, size_t), &options, sizeof options);
    options.device = CALL(struct device, dry_sim_get_device, (void *), *sim);
    assert_int_equal(CALL(int, dry_pool_create, (const void *, void **, struct error *),
                          &options, &pool, NULL),
                     OK);
    assert_int_equal(CALL(int, dry_pool_alloc, (void *, uint64_t, uint64_t, uint64_t *),
                          pool, 4096, 0, &address),
                     OK);
    return pool;
}

static int
get_counters(void *pool, void *counters)
{
    return CALL(int, dry_pool_get_counters, (void *, void *), pool, counters);
}

static void
results_fill_what_the_program_knows(void **state)
{
    (void)state;
    void *sim, *pool = make_pool(&sim);
    struct new_counters c;
    memset(&c, 0xa5, sizeof c);
    c.old.struct_size = sizeof c.old;
    assert_int_equal(get_counters(pool, &c), OK);
    assert_int_equal(c.old.struct_size, sizeof c.old);
    assert_true(c.old.pages_created > 0 && c.old.oom_callbacks_helped == 0);
    assert_true(
        is_all((unsigned char *)&c + sizeof c.old, sizeof c - sizeof c.old, 0xa5));
    /* One of later: what this library does not know stays as it was. */
    c.old.struct_size = sizeof c;
    assert_int_equal(get_counters(pool, &c), OK);
    assert_true(c.driver_time_ns != UINT64_C(0xa5a5a5a5a5a5a5a5));
    assert_true(is_all((unsigned char *)c.later, sizeof c.later, 0xa5));
    c.old.struct_size = 0;
    c.old.pages_created = 77;
    assert_int_equal(get_counters(pool, &c), ARGUMENT);
    assert_int_equal(c.old.pages_created, 77);
    CALL(void, dry_pool_destroy, (void *), pool);
    sim_destroy(sim);
}

/* struct dry_replay_release, as if it had no `change` yet. */
static void
a_release_has_no_more_than_was_asked(void **state)
{
    (void)state;
    struct {
        size_t struct_size;
        const char *version;
        unsigned char behind[64];
    } old = {.struct_size = offsetof(__typeof__(old), behind)};
    memset(old.behind, 0xa5, sizeof old.behind);
    assert_true(CALL(bool, dry_replay_get_release, (size_t, void *), 0, &old));
    assert_string_equal(old.version, "2.0");
    assert_true(is_all(old.behind, sizeof old.behind, 0xa5));
    old.struct_size = 0;
    assert_false(CALL(bool, dry_replay_get_release, (size_t, void *), 0, &old));
}

/* struct dry_message, as if it ended with `device`. */
struct old_message {
    size_t struct_size;
    int form, backend;
    bool has_device;
    uint32_t device;
    unsigned char behind[64];
};

static void
a_message_has_no_more_than_was_asked(void **state)
{
    (void)state;
    static const char text[] =
        "CUDA out of memory. Tried to allocate 1.00 GiB. GPU 7 has "
        "a total capacity of 2.00 GiB";
    struct old_message old = {.struct_size = offsetof(struct old_message, behind)};
    struct error err;
    memset(old.behind, 0xa5, sizeof old.behind);
    assert_int_equal(CALL(int, dry_message_parse,
                          (const char *, size_t, const void *, void *, struct error *),
                          text, strlen(text), NULL, &old, &err),
                     OK);
    assert_true(old.has_device && old.device == 7);
    assert_true(is_all(old.behind, sizeof old.behind, 0xa5));
    /* What lies behind is no member: no total is written. */
    char written[256];
    CALL(size_t, dry_message_write, (const void *, char *, size_t), &old, written,
         sizeof written);
    assert_null(strstr(written, "total capacity"));
    assert_true(
        CALL(bool, dry_message_is_same, (const void *, const void *), &old, &old));
    old.struct_size = 0;
    assert_false(
        CALL(bool, dry_message_is_same, (const void *, const void *), &old, &old));
    assert_int_equal(CALL(size_t, dry_message_write, (const void *, char *, size_t), &old,
                          written, sizeof written),
                     0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(older_options_are_all_there_is),
        cmocka_unit_test(newer_options_may_set_what_is_known),
        cmocka_unit_test(options_that_nobody_began_are_refused),
        cmocka_unit_test(results_fill_what_the_program_knows),
        cmocka_unit_test(a_release_has_no_more_than_was_asked),
        cmocka_unit_test(a_message_has_no_more_than_was_asked),
    };
    return cmocka_run_group_tests_name("ages", tests, NULL, NULL);
}
