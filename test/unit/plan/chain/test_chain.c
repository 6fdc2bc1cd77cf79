/* SPDX-License-Identifier: Apache-2.0 */

/*
 * plan/chain: what comes in comes out, whatever the caller does with its copy; what is refused
 * and how it is said; the hash; every failed allocation.
 */
#include "support/cmocka.h"

#include <string.h>

#include <drystone/chain.h>

#include "plan/chain/chain_state.h"
#include "support/failing_memory.h"

#define BITS63 (UINT64_MAX >> 1)

static const struct dry_stage_option two_options[] = {
    {"sac", 40, 3, 11, 0, 0, false},
    {"offload", 50, 0, 12, 20, 0, false},
};

static const struct dry_stage block = {
    .name = "block",
    .forward_ns = 5,
    .backward_ns = 10,
    .output_bytes = 30,
    .gradient_bytes = 31,
    .saved_bytes = 70,
    .forward_tmp_bytes = 7,
    .backward_tmp_bytes = 9,
    .grads_bytes = 4,
    .options = two_options,
    .option_count = 2,
};

static struct dry_chain *
make_chain(const struct dry_chain_frame *frame)
{
    struct dry_chain *chain;
    assert_int_equal(dry_chain_create(frame, NULL, &chain, NULL), DRY_OK);
    return chain;
}

static uint64_t
hash_of(const struct dry_stage *stage, size_t repeat)
{
    struct dry_chain *chain = make_chain(NULL);
    assert_int_equal(dry_chain_add(chain, stage, repeat, NULL), DRY_OK);
    uint64_t hash = dry_chain_get_hash(chain);
    dry_chain_destroy(chain);
    return hash;
}

/* --- what is kept ------------------------------------------------------------------------- */

static void
stages_are_copied_with_names_and_options(void **state)
{
    (void)state;
    char name[] = "mine";
    struct dry_stage_option options[2] = {two_options[0], two_options[1]};
    struct dry_stage stage = block;
    struct dry_chain_frame frame = {1, 2, 3, 4};
    struct dry_chain *chain = make_chain(&frame);
    stage.name = name;
    stage.options = options;
    assert_int_equal(dry_chain_add(chain, &stage, 3, NULL), DRY_OK);
    memset(name, 'x', sizeof name - 1);
    memset(options, 0, sizeof options);
    memset(&frame, 0, sizeof frame);
    assert_int_equal(dry_chain_get_count(chain), 3);
    assert_int_equal(dry_chain_get_time(chain), 45);
    assert_int_equal(dry_chain_get_frame(chain)->step_bytes, 4);
    for (size_t i = 0; i < 3; i++) {
        const struct dry_stage *got = dry_chain_get_stage(chain, i);
        assert_string_equal(got->name, "mine");
        assert_int_equal(got->gradient_bytes, 31);
        assert_string_equal(got->options[1].name, "offload");
        assert_int_equal(got->options[1].offload_bytes, 20);
    }
    assert_null(dry_chain_get_stage(chain, 3));
    dry_chain_destroy(chain);
    dry_chain_destroy(NULL);
}

static void
a_stage_of_the_chain_can_be_added_again(void **state)
{
    (void)state;
    struct dry_chain *chain = make_chain(NULL);
    assert_int_equal(dry_chain_add(chain, &block, 1, NULL), DRY_OK);
    for (unsigned i = 0; i < 200; i++)
        assert_int_equal(dry_chain_add(chain, dry_chain_get_stage(chain, 0), 1, NULL),
                         DRY_OK);
    assert_int_equal(dry_chain_get_count(chain), 201);
    assert_int_equal(dry_chain_get_stage(chain, 200)->options[0].saved_bytes, 40);
    assert_int_equal(dry_chain_get_hash(chain), hash_of(&block, 201));
    dry_chain_destroy(chain);
}

static void
equal_stages_are_of_one_kind_whatever_their_names(void **state)
{
    (void)state;
    struct dry_chain *chain = make_chain(NULL);
    struct dry_stage other = block, named = block;
    other.forward_tmp_bytes++;
    named.name = NULL;
    assert_int_equal(dry_chain_add(chain, &block, 2, NULL), DRY_OK);
    assert_int_equal(dry_chain_add(chain, &other, 1, NULL), DRY_OK);
    assert_int_equal(dry_chain_add(chain, &named, 1, NULL), DRY_OK);
    static const uint32_t kinds[] = {0, 0, 1, 0};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(chain->kinds[i], kinds[i]);
    dry_chain_destroy(chain);
}

/* --- the hash ----------------------------------------------------------------------------- */

static void
the_hash_is_the_same_on_every_machine(void **state)
{
    (void)state;
    /* Written to plan files: these numbers never change. */
    assert_int_equal(hash_of(&block, 1), UINT64_C(0xd865f4b2c9a49fdd));
    assert_int_equal(hash_of(&block, 24), UINT64_C(0x87a7f75aa8c9f09e));
}

static void
names_are_no_part_of_the_hash_and_all_else_is(void **state)
{
    (void)state;
    struct dry_stage_option options[2] = {two_options[0], two_options[1]};
    struct dry_stage stage = block;
    stage.saved_bytes = options[1].saved_bytes = 1000;
    stage.options = options;
    uint64_t hash = hash_of(&stage, 2);
    stage.name = "another";
    options[0].name = NULL;
    assert_true(hash_of(&stage, 2) == hash);
    assert_true(hash_of(&stage, 3) != hash);
    uint64_t *numbers[] = {
        &stage.forward_ns,         &stage.backward_ns,
        &stage.output_bytes,       &stage.gradient_bytes,
        &stage.saved_bytes,        &stage.forward_tmp_bytes,
        &stage.backward_tmp_bytes, &stage.grads_bytes,
        &options[0].saved_bytes,   &options[0].recompute_ns,
        &options[1].offload_bytes, &options[1].backward_tmp_bytes,
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        ++*numbers[i];
        assert_true(hash_of(&stage, 2) != hash);
        --*numbers[i];
    }
    options[1].forward_tmp_bytes = stage.forward_tmp_bytes + 1; /* nobody reads it */
    assert_true(hash_of(&stage, 2) == hash);
    options[1].has_forward_tmp = true;
    uint64_t second = hash_of(&stage, 2);
    assert_true(second != hash);
    options[1].has_forward_tmp = false;
    options[0].forward_tmp_bytes = stage.forward_tmp_bytes + 1;
    options[0].has_forward_tmp = true;
    assert_true(hash_of(&stage, 2) != hash && hash_of(&stage, 2) != second);
    options[0].forward_tmp_bytes--; /* what the stage's forward takes anyway */
    assert_true(hash_of(&stage, 2) == hash);
    stage.is_fixed = true;
    assert_true(hash_of(&stage, 2) != hash);
    stage.is_fixed = false;
    stage.option_count = 1;
    assert_true(hash_of(&stage, 2) != hash);
    struct dry_chain_frame frame = {.step_bytes = 1};
    struct dry_chain *chain = make_chain(&frame), *plain = make_chain(NULL);
    assert_true(dry_chain_get_hash(chain) != dry_chain_get_hash(plain));
    dry_chain_destroy(chain);
    dry_chain_destroy(plain);
}

/* --- what is refused ---------------------------------------------------------------------- */

/* The stage is refused, by a text with these two words, and the chain is as it was. */
static void
require_refused(const struct dry_stage *stage, size_t repeat, enum dry_status status,
                const char *word)
{
    struct dry_chain *chain = make_chain(NULL);
    struct dry_error err;
    assert_int_equal(dry_chain_add(chain, &block, 2, NULL), DRY_OK);
    assert_int_equal(dry_chain_add(chain, stage, repeat, &err), status);
    assert_int_equal(err.status, status);
    assert_non_null(strstr(err.text, "stage 2 (block)"));
    assert_non_null(strstr(err.text, word));
    assert_int_equal(dry_chain_get_count(chain), 2);
    assert_int_equal(dry_chain_get_time(chain), 30);
    assert_true(dry_chain_get_hash(chain) == hash_of(&block, 2));
    dry_chain_destroy(chain);
}

static void
contradictions_are_refused_by_stage_and_field(void **state)
{
    (void)state;
    struct dry_stage_option options[2] = {two_options[0], two_options[1]};
    struct dry_stage stage = block;
    stage.options = options;
    stage.saved_bytes = 29;
    require_refused(&stage, 1, DRY_ERR_ARGUMENT, "saved_bytes, 29");
    stage.saved_bytes = 30;
    options[1].saved_bytes = 29;
    require_refused(&stage, 1, DRY_ERR_ARGUMENT, "option 2: saved_bytes, 29");
    options[1].saved_bytes = 49;
    require_refused(&stage, 1, DRY_ERR_ARGUMENT, "option 2: offload_bytes, 20");
    options[1].saved_bytes = 50;
    require_refused(&stage, 0, DRY_ERR_ARGUMENT, "repeat is 0");
    stage.options = NULL;
    require_refused(&stage, 1, DRY_ERR_ARGUMENT, "options is NULL");
}

static void
too_many_are_refused(void **state)
{
    (void)state;
    struct dry_stage stage = block;
    stage.option_count = DRY_STAGE_OPTIONS_MAX + 1;
    require_refused(&stage, 1, DRY_ERR_LIMIT, "option_count is 65");
    require_refused(&block, DRY_CHAIN_STAGES_MAX - 1, DRY_ERR_LIMIT, "repeat is 99999");
    require_refused(&block, SIZE_MAX, DRY_ERR_LIMIT, "repeat is");
    struct dry_chain *chain = make_chain(NULL);
    assert_int_equal(dry_chain_add(chain, &block, DRY_CHAIN_STAGES_MAX, NULL), DRY_OK);
    assert_int_equal(dry_chain_add(chain, &block, 1, NULL), DRY_ERR_LIMIT);
    dry_chain_destroy(chain);
}

static void
numbers_beyond_63_bits_are_refused(void **state)
{
    (void)state;
    struct dry_stage_option options[1] = {{"sac", 40, 3, 11, 0, 0, true}};
    struct dry_stage stage = block;
    stage.options = options;
    stage.option_count = 1;
    uint64_t *numbers[] = {
        &stage.forward_ns,
        &stage.backward_ns,
        &stage.gradient_bytes,
        &stage.saved_bytes,
        &stage.forward_tmp_bytes,
        &stage.backward_tmp_bytes,
        &stage.grads_bytes,
        &options[0].saved_bytes,
        &options[0].recompute_ns,
        &options[0].offload_bytes,
        &options[0].backward_tmp_bytes,
        &options[0].forward_tmp_bytes,
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        uint64_t kept = *numbers[i];
        *numbers[i] = BITS63 + 1;
        require_refused(&stage, 1, DRY_ERR_LIMIT, "63 bits");
        *numbers[i] = kept;
    }
}

/* Each by itself fits, what a plan may need at once does not. */
static void
sums_beyond_63_bits_are_refused(void **state)
{
    (void)state;
    struct dry_stage_option option = {"sac", 40, 0, 0, 0, 0, true};
    struct dry_stage stage = {.name = "block", .options = &option};
    uint64_t *numbers[] = {
        &stage.forward_ns,          &stage.backward_ns,        &stage.gradient_bytes,
        &stage.saved_bytes,         &stage.forward_tmp_bytes,  &stage.backward_tmp_bytes,
        &stage.grads_bytes,         &option.saved_bytes,       &option.recompute_ns,
        &option.backward_tmp_bytes, &option.forward_tmp_bytes,
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        stage.option_count = i < 7 ? 0 : 1;
        uint64_t kept = *numbers[i];
        *numbers[i] = BITS63 / 2;
        require_refused(&stage, 3, DRY_ERR_LIMIT, "63 bits");
        *numbers[i] = BITS63 / (DRY_CHAIN_STAGES_MAX - 2) + 1;
        require_refused(&stage, DRY_CHAIN_STAGES_MAX - 2, DRY_ERR_LIMIT, "63 bits");
        *numbers[i] = kept;
    }
    struct dry_chain_frame frame = {BITS63, 0, 1, 0};
    struct dry_chain *chain;
    assert_int_equal(dry_chain_create(&frame, NULL, &chain, NULL), DRY_ERR_LIMIT);
}

/* --- what autograd saves ------------------------------------------------------------------ */

static void
saved_bytes_of_a_module_become_a_stage_s(void **state)
{
    (void)state;
    struct dry_saved saved = {100, 30, 20, true, false};
    assert_int_equal(dry_stage_saved(&saved), 90);
    saved.has_output = true;
    assert_int_equal(dry_stage_saved(&saved), 70);
    saved.has_input = false;
    assert_int_equal(dry_stage_saved(&saved), 100);
    saved = (struct dry_saved){29, 30, 20, true, false};
    assert_true(dry_stage_saved(&saved) == UINT64_MAX);
    saved = (struct dry_saved){UINT64_MAX, 0, 20, true, false};
    assert_true(dry_stage_saved(&saved) == UINT64_MAX);
}

static void
no_memory_leaves_the_chain_as_it_was(void **state)
{
    (void)state;
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct dry_chain *chain = NULL;
        enum dry_status status = dry_chain_create(NULL, &memory, &chain, NULL);
        size_t count = 0;
        for (size_t i = 0; i < 40 && status == DRY_OK; i++) {
            struct dry_stage stage = block;
            stage.grads_bytes = i;
            status = dry_chain_add(chain, &stage, 3, NULL);
            count += status == DRY_OK ? 3 : 0;
        }
        if (chain) {
            assert_int_equal(dry_chain_get_count(chain), count);
            assert_int_equal(dry_chain_get_time(chain), 15 * count);
        }
        dry_chain_destroy(chain);
        failing_memory_finish(&fm);
        assert_int_equal(status, fm.failed ? DRY_ERR_MEMORY : DRY_OK);
        if (!fm.failed)
            break;
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_are_copied_with_names_and_options),
        cmocka_unit_test(a_stage_of_the_chain_can_be_added_again),
        cmocka_unit_test(equal_stages_are_of_one_kind_whatever_their_names),
        cmocka_unit_test(the_hash_is_the_same_on_every_machine),
        cmocka_unit_test(names_are_no_part_of_the_hash_and_all_else_is),
        cmocka_unit_test(contradictions_are_refused_by_stage_and_field),
        cmocka_unit_test(too_many_are_refused),
        cmocka_unit_test(numbers_beyond_63_bits_are_refused),
        cmocka_unit_test(sums_beyond_63_bits_are_refused),
        cmocka_unit_test(saved_bytes_of_a_module_become_a_stage_s),
        cmocka_unit_test(no_memory_leaves_the_chain_as_it_was),
    };
    return cmocka_run_group_tests_name("chain", tests, NULL, NULL);
}
