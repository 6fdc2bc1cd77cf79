/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cmocka.h"

#include <string.h>

#include <drystone/drystone.h>

#include "base/sized.h"

struct old_options {
    size_t struct_size;
    uint64_t first;
};

struct options {
    size_t struct_size;
    uint64_t first, second;
};

struct new_options {
    size_t struct_size;
    uint64_t first, second, third;
};

static struct options
defaults(void)
{
    return (struct options){sizeof(struct options), 1, 2};
}

static void
null_means_defaults(void **state)
{
    (void)state;
    struct options o = defaults();
    assert_int_equal(dryi_sized_take(&o, sizeof o, NULL, NULL), DRY_OK);
    assert_true(o.first == 1 && o.second == 2);
}

static void
smaller_struct_keeps_later_defaults(void **state)
{
    (void)state;
    struct options o = defaults();
    struct old_options from = {sizeof from, 10};
    assert_int_equal(dryi_sized_take(&o, sizeof o, &from, NULL), DRY_OK);
    assert_true(o.first == 10 && o.second == 2);
    assert_int_equal(o.struct_size, sizeof o);
}

static void
larger_struct_needs_a_zero_tail(void **state)
{
    (void)state;
    struct options o = defaults();
    struct new_options from = {sizeof from, 10, 20, 0};
    assert_int_equal(dryi_sized_take(&o, sizeof o, &from, NULL), DRY_OK);
    assert_true(o.first == 10 && o.second == 20);
    from.third = UINT64_C(1) << 63;
    from.first = 99;
    struct dry_error err;
    assert_int_equal(dryi_sized_take(&o, sizeof o, &from, &err), DRY_ERR_UNSUPPORTED);
    assert_true(o.first == 10);
}

static void
uninitialised_struct_is_refused(void **state)
{
    (void)state;
    struct options o = defaults();
    struct options from = {.first = 99, .second = 99};
    struct dry_error err;
    assert_int_equal(dryi_sized_take(&o, sizeof o, &from, &err), DRY_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "struct_size"));
    assert_int_equal(dryi_sized_give(&from, &o, sizeof o), DRY_ERR_ARGUMENT);
    assert_true(o.first == 1 && o.second == 2 && from.first == 99 && from.second == 99);
}

static void
init_writes_the_struct_and_no_more(void **state)
{
    (void)state;
    const struct options known = defaults();
    struct new_options all = {9, 9, 9, 9};
    dryi_sized_init(&all, sizeof(struct old_options), &known, sizeof known);
    assert_true(all.struct_size == sizeof(struct old_options) && all.first == 1);
    assert_true(all.second == 9 && all.third == 9);
    dryi_sized_init(&all, sizeof all, &known, sizeof known);
    assert_true(all.struct_size == sizeof all && all.first == 1);
    assert_true(all.second == 2 && all.third == 0);
}

static void
results_fill_what_both_sides_know(void **state)
{
    (void)state;
    const struct options known = defaults();
    struct new_options all = {sizeof(struct old_options), 9, 9, 9};
    assert_int_equal(dryi_sized_give(&all, &known, sizeof known), DRY_OK);
    assert_true(all.struct_size == sizeof(struct old_options) && all.first == 1);
    assert_true(all.second == 9 && all.third == 9);
    all.struct_size = sizeof all;
    assert_int_equal(dryi_sized_give(&all, &known, sizeof known), DRY_OK);
    assert_true(all.struct_size == sizeof all && all.second == 2 && all.third == 9);
}

static void
macro_begins_a_struct(void **state)
{
    (void)state;
    struct options o = DRY_INIT(struct options);
    assert_true(o.struct_size == sizeof o && o.first == 0 && o.second == 0);
}

/* <drystone/status.h> says so of everything that is destroyed or closed. */
static void
to_destroy_null_is_nothing(void **state)
{
    (void)state;
    dry_categories_destroy(NULL);
    dry_chain_destroy(NULL);
    dry_cuda_close(NULL);
    dry_diff_destroy(NULL);
    dry_doctor_destroy(NULL);
    dry_drawing_destroy(NULL);
    dry_estimate_destroy(NULL);
    dry_explanation_destroy(NULL);
    dry_graph_destroy(NULL);
    dry_graph_plan_destroy(NULL);
    dry_host_device_destroy(NULL);
    dry_message_finder_destroy(NULL);
    dry_owners_destroy(NULL);
    dry_pages_destroy(NULL);
    dry_pinned_destroy(NULL);
    dry_plan_destroy(NULL);
    dry_pool_destroy(NULL);
    dry_recommend_destroy(NULL);
    dry_replay_destroy(NULL);
    dry_sim_destroy(NULL);
    dry_state_destroy(NULL);
    dry_steps_destroy(NULL);
    dry_tensor_destroy(NULL);
    dry_timeline_destroy(NULL);
    dry_topology_destroy(NULL);
    dry_trace_builder_destroy(NULL);
    dry_trace_destroy(NULL);
}

static void
to_create_by_default_no_options_are_needed(void **state)
{
    (void)state;
    struct dry_sim *sim = NULL;
    struct dry_host_device *host = NULL;
    struct dry_pool *pool = NULL;
    assert_int_equal(dry_sim_create(NULL, &sim, NULL), DRY_OK);
    assert_int_equal(dry_host_device_create(NULL, &host, NULL), DRY_OK);
    assert_int_equal(dry_pool_create(NULL, &pool, NULL), DRY_ERR_ARGUMENT); /* a device */
    assert_null(pool);
    dry_host_device_destroy(host);
    dry_sim_destroy(sim);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_means_defaults),
        cmocka_unit_test(smaller_struct_keeps_later_defaults),
        cmocka_unit_test(larger_struct_needs_a_zero_tail),
        cmocka_unit_test(uninitialised_struct_is_refused),
        cmocka_unit_test(init_writes_the_struct_and_no_more),
        cmocka_unit_test(results_fill_what_both_sides_know),
        cmocka_unit_test(macro_begins_a_struct),
        cmocka_unit_test(to_destroy_null_is_nothing),
        cmocka_unit_test(to_create_by_default_no_options_are_needed),
    };
    return cmocka_run_group_tests_name("sized", tests, NULL, NULL);
}
