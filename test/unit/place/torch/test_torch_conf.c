/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "place/torch/torch.h"
#include "support/torch_conf.h"

struct outcome {
    enum dry_status status;
    struct dryi_torch_conf conf;
    struct dry_error err;
};

static enum dry_status
apply(struct dryi_torch_conf *conf, const char *text, struct dry_error *err)
{
    return dryi_torch_conf_parse(text, strlen(text), NULL, conf, err);
}

static struct outcome
parse(const char *text)
{
    struct outcome o = {.status = DRY_OK};
    dryi_torch_conf_init(&o.conf);
    o.status = apply(&o.conf, text, &o.err);
    return o;
}

static struct dryi_torch_conf
accept(const char *text)
{
    struct outcome o = parse(text);
    if (o.status != DRY_OK)
        fail_msg("%s: %s", text, o.err.text);
    return o.conf;
}

/* Refused with these words, and nothing changed. */
static void
refuse(const char *text, const char *words)
{
    struct outcome o = parse(text);
    if (o.status != DRY_ERR_FORMAT || o.err.status != DRY_ERR_FORMAT)
        fail_msg("%s: %s", text, dry_status_name(o.status));
    if (!strstr(o.err.text, words))
        fail_msg("%s: \"%s\" does not say \"%s\"", text, o.err.text, words);
    struct dryi_torch_conf fresh;
    dryi_torch_conf_init(&fresh);
    assert_true(is_same_conf(&o.conf, &fresh));
}

static void
defaults_are_those_of_pytorch(void **state)
{
    (void)state;
    struct dryi_torch_conf c = accept("");
    assert_int_equal(c.large_segment_size, 20 * DRYI_MIB);
    assert_true(c.max_split_size == UINT64_MAX);
    assert_int_equal(c.max_non_split_rounding_size, 20 * DRYI_MIB);
    for (int i = 0; i < 16; i++)
        assert_int_equal(c.roundup_power2_divisions[i], 0);
    assert_true(c.garbage_collection_threshold == 0.0);
    assert_false(c.expandable_segments);
    assert_true(c.expandable_reserve_fraction == 0.0);
    assert_int_equal(c.expandable_reserve_bytes, 0);
    assert_true(c.per_process_memory_fraction == 1.0);
    assert_false(c.throw_on_cudamalloc_oom);
}

static void
every_option_is_read(void **state)
{
    (void)state;
    assert_int_equal(accept("large_segment_size_mb:64").large_segment_size,
                     64 * DRYI_MIB);
    assert_int_equal(accept("max_split_size_mb:128").max_split_size, 128 * DRYI_MIB);
    assert_int_equal(accept("max_non_split_rounding_mb:32").max_non_split_rounding_size,
                     32 * DRYI_MIB);
    assert_true(accept("garbage_collection_threshold:0.8").garbage_collection_threshold ==
                0.8);
    assert_int_equal(accept("roundup_power2_divisions:4").roundup_power2_divisions[15],
                     4);
    assert_true(accept("expandable_segments:True").expandable_segments);
    assert_true(accept("expandable_segments_reserve:0.5").expandable_reserve_fraction ==
                0.5);
    assert_int_equal(accept("expandable_segments_reserve:40G").expandable_reserve_bytes,
                     40 * DRYI_GIB);
    assert_int_equal(accept("expandable_segments_reserve:1.5g").expandable_reserve_bytes,
                     1536 * DRYI_MIB);
    assert_true(accept("per_process_memory_fraction:0.7").per_process_memory_fraction ==
                0.7);
    assert_true(accept("throw_on_cudamalloc_oom:True").throw_on_cudamalloc_oom);
}

static void
what_places_nothing_is_checked_and_dropped(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "backend:native",
        "release_lock_on_cudamalloc:True",
        "release_lock_on_hipmalloc:False",
        "graph_capture_record_stream_reuse:True",
        "pinned_use_cuda_host_register:True",
        "pinned_use_hip_host_register:True",
        "pinned_num_register_threads:128",
        "pinned_reserve_segment_size_mb:2048",
        "pinned_use_background_threads:True",
        "pinned_max_round_threshold_mb:0",
        "pinned_max_cached_size_mb:18446744073709551615",
        "pinned_free_catch_all:True",
        "expandable_segments_reserve_by_class:[serving:0.25,train:40G]",
        "expandable_segments_reserve_by_class:[]",
        "expandable_segments_reserve_by_class:[a:junk,b:0.5,]",
    };
    struct dryi_torch_conf fresh;
    dryi_torch_conf_init(&fresh);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct dryi_torch_conf c = accept(texts[i]);
        assert_true(is_same_conf(&c, &fresh));
    }
}

static void
every_refusal_says_why(void **state)
{
    (void)state;
    refuse("no_such_option:1", "Unrecognized key");
    refuse("expandable_segments_handle_type:posix_fd", "Unrecognized key");
    refuse("large_segment_size_mb:10", "large_segment_size_mb must be > 10 MB");
    refuse("max_split_size_mb:19", "max_split_size_mb too small, must be >= 20");
    refuse("max_non_split_rounding_mb:19",
           "max_non_split_rounding_mb too small, must be >=");
    refuse("garbage_collection_threshold:0", "garbage_collect_threshold is invalid");
    refuse("garbage_collection_threshold:1", "garbage_collect_threshold is invalid");
    refuse("garbage_collection_threshold:nan", "garbage_collect_threshold is invalid");
    refuse("per_process_memory_fraction:1.01", "per_process_memory_fraction is invalid");
    refuse("per_process_memory_fraction:-0.1", "per_process_memory_fraction is invalid");
    refuse("roundup_power2_divisions:3", "divisions has to be power of 2");
    refuse("roundup_power2_divisions:0", "divisions has to be power of 2");
    refuse("roundup_power2_divisions:[256:3]", "power of 2 or 0 to disable");
    refuse("roundup_power2_divisions:[3:4]", "intervals have to be power of 2");
    refuse("roundup_power2_divisions:[0:4]", "intervals have to be power of 2");
    refuse("expandable_segments:true", "Expected 'True' or 'False' at index 2");
    refuse("backend:other", "Unknown allocator backend");
    refuse("backend:hipMallocAsync", "Unknown allocator backend");
    refuse("pinned_num_register_threads:3", "has to be power of 2");
    refuse("pinned_num_register_threads:256", "less than or equal to 128");
    refuse("pinned_reserve_segment_size_mb:0", "has to be greater than 0");
}

static void
the_drivers_allocator_is_not_ours(void **state)
{
    (void)state;
    assert_int_equal(parse("backend:cudaMallocAsync").status, DRY_ERR_UNSUPPORTED);
    /* What is wrong before it is said first: keys are checked one pass earlier. */
    refuse("backend:cudaMallocAsync,nonsense:1", "Unrecognized key");
}

static void
running_out_of_tokens_is_an_error(void **state)
{
    (void)state;
    refuse("expandable_segments", "Index out of bounds");
    refuse("expandable_segments:", "Index out of bounds");
    refuse("large_segment_size_mb:", "Index out of bounds");
    refuse("roundup_power2_divisions:[", "closing bracket");
    refuse("roundup_power2_divisions:[256", "Index out of bounds");
    refuse("roundup_power2_divisions:[256:", "Index out of bounds");
    refuse("roundup_power2_divisions:[256:4", "Index out of bounds");
    refuse("roundup_power2_divisions:[256:4,", "closing bracket");
    refuse("expandable_segments_reserve_by_class:[a:0.5", "closing bracket");
    refuse("expandable_segments_reserve_by_class:a", "Index out of bounds");
    struct outcome o = parse("max_split_size_mb");
    assert_int_equal(o.err.offset, strlen("max_split_size_mb"));
}

static void
numbers_are_read_as_c_reads_them(void **state)
{
    (void)state;
    assert_int_equal(accept("max_split_size_mb:32MB").max_split_size, 32 * DRYI_MIB);
    assert_int_equal(accept("max_split_size_mb:+0032").max_split_size, 32 * DRYI_MIB);
    /* "-1" wraps to 2^64 - 1 and is lowered to the largest number of MiB there is. */
    assert_true(accept("max_split_size_mb:-1").max_split_size ==
                UINT64_MAX / DRYI_MIB * DRYI_MIB);
    assert_int_equal(accept("roundup_power2_divisions:-18446744073709551608")
                         .roundup_power2_divisions[0],
                     8);
    assert_true(accept("garbage_collection_threshold:.5x").garbage_collection_threshold ==
                0.5);
    assert_true(
        accept("garbage_collection_threshold:0x1p-1").garbage_collection_threshold ==
        0.5);
    assert_true(
        accept("garbage_collection_threshold:5e-1").garbage_collection_threshold == 0.5);
    refuse("max_split_size_mb:18446744073709551616", "out of range");
    refuse("max_split_size_mb:-18446744073709551616", "out of range");
    refuse("max_split_size_mb:x32", "expected a number");
    refuse("max_split_size_mb:--32", "expected a number");
    refuse("max_split_size_mb:0x40", "too small");
    refuse("garbage_collection_threshold:half", "expected a number");
    refuse("garbage_collection_threshold:1e-400", "out of range");
    refuse("per_process_memory_fraction:1e400", "out of range");
}

static void
a_bad_reserve_is_ignored(void **state)
{
    (void)state;
    static const char *const values[] = {"0",   "-1",   "abc", "G",    "1e999", "0x1p1",
                                         "inf", "0.5k", "1e",  "40GB", "nan",   "-2G"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char text[80] = "expandable_segments_reserve:0.5,expandable_segments_reserve:";
        strcat(text, values[i]);
        struct dryi_torch_conf c = accept(text);
        assert_true(c.expandable_reserve_fraction == 0.5);
        assert_int_equal(c.expandable_reserve_bytes, 0);
    }
    struct dryi_torch_conf c = accept("expandable_segments_reserve:1e20G");
    assert_true(c.expandable_reserve_bytes == UINT64_MAX);
    c = accept("expandable_segments_reserve:2G,expandable_segments_reserve:0.25");
    assert_int_equal(c.expandable_reserve_bytes, 0);
    assert_true(c.expandable_reserve_fraction == 0.25);
}

static void
white_space_is_dropped_and_marks_are_not_checked(void **state)
{
    (void)state;
    assert_true(accept(" expandable_segments : T\true\n").expandable_segments);
    assert_int_equal(accept("max_split_ size_mb : 6 4").max_split_size, 64 * DRYI_MIB);
    assert_true(accept("expandable_segments,True").expandable_segments);
    assert_true(accept("expandable_segments[True").expandable_segments);
    struct dryi_torch_conf c = accept("max_split_size_mb:64:expandable_segments:True");
    assert_true(c.expandable_segments);
    assert_int_equal(c.max_split_size, 64 * DRYI_MIB);
    c = accept("max_split_size_mb:64,"); /* a comma at the end hurts nobody */
    assert_int_equal(c.max_split_size, 64 * DRYI_MIB);
    /* '=' is no mark: it belongs to the key. */
    refuse("expandable_segments=True", "Unrecognized key");
    /* a semicolon hides the next option, and its value is then a key */
    refuse("max_split_size_mb:64;expandable_segments:True", "Unrecognized key");
    refuse(",", "Unrecognized key");
}

static void
bytes_that_are_no_text_do_no_harm(void **state)
{
    (void)state;
    struct dryi_torch_conf c;
    dryi_torch_conf_init(&c);
    static const char zero_inside[] = "max_split_size_mb:64\0junk";
    assert_int_equal(
        dryi_torch_conf_parse(zero_inside, sizeof zero_inside - 1, NULL, &c, NULL),
        DRY_OK);
    assert_int_equal(c.max_split_size, 64 * DRYI_MIB);
    static const char zero_in_key[] = "expandable_segments\0:True";
    assert_int_equal(
        dryi_torch_conf_parse(zero_in_key, sizeof zero_in_key - 1, NULL, &c, NULL),
        DRY_ERR_FORMAT);
    struct outcome o = parse("\x1b[31mred:1");
    assert_int_equal(o.status, DRY_ERR_FORMAT);
    assert_null(strchr(o.err.text, '\x1b'));
}

static void
a_megabyte_is_read_in_linear_time(void **state)
{
    (void)state;
    size_t size = 1 << 20;
    char *text = malloc(size);
    assert_non_null(text);
    struct dryi_torch_conf c;
    static const char fillers[] = {',', ':', '[', ']', ' ', 'x', '9', '\0'};
    for (size_t i = 0; i < sizeof fillers; i++) {
        memset(text, fillers[i], size);
        memcpy(text, "max_split_size_mb:", 18);
        dryi_torch_conf_init(&c);
        enum dry_status status = dryi_torch_conf_parse(text, size, NULL, &c, NULL);
        assert_int_equal(status, DRY_ERR_FORMAT);
    }
    /* white space only is an empty string, however long */
    memset(text, ' ', size);
    assert_int_equal(dryi_torch_conf_parse(text, size, NULL, &c, NULL), DRY_OK);
    free(text);
}

static void
check_divisions(const char *text, const uint64_t wanted[16])
{
    struct dryi_torch_conf c = accept(text);
    for (int i = 0; i < 16; i++) {
        if (c.roundup_power2_divisions[i] != wanted[i])
            fail_msg("%s: interval %d is %llu", text, i,
                     (unsigned long long)c.roundup_power2_divisions[i]);
    }
}

static void
lists_of_divisions_have_their_quirks(void **state)
{
    (void)state;
    /* The first entry fills all below it, `>` all above the last. */
    check_divisions("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
                    (uint64_t[16]){1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8, 8});
    /* Between two listed keys nothing is filled. */
    check_divisions("roundup_power2_divisions:[4:8,64:2]",
                    (uint64_t[16]){8, 8, 8, 0, 0, 0, 2});
    /* Only the first entry fills downwards. */
    check_divisions("roundup_power2_divisions:[1:8,8:4]", (uint64_t[16]){8, 0, 0, 4});
    /* `>` alone counts from interval 0, and fills from 1. */
    check_divisions("roundup_power2_divisions:[>:2]",
                    (uint64_t[16]){0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2});
    /* Keys beyond the last interval are the last one; then `>` has nothing left to fill.
     */
    check_divisions("roundup_power2_divisions:[1048576:4,>:2]",
                    (uint64_t[16]){4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4});
    /* The comma between entries may be anything, and may not be missing. */
    check_divisions("roundup_power2_divisions:[1:8:8:4]", (uint64_t[16]){8, 0, 0, 4});
    check_divisions("roundup_power2_divisions:[]", (uint64_t[16]){0});
    check_divisions("roundup_power2_divisions:[64:0]", (uint64_t[16]){0});
}

static void
the_rest_of_divisions_took_the_last_before_2_10(void **state)
{
    (void)state;
    static const char text[] = "roundup_power2_divisions:[256:1,512:2,>:8]";
    static const struct {
        const char *release;
        uint64_t last;
    } cases[] = {{"2.0", 8}, {"2.9.1", 8}, {"2.10", 2}, {"2.15", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dryi_torch_conf c;
        struct dry_error err;
        dryi_torch_conf_init(&c);
        assert_int_equal(dryi_torch_conf_parse(text, sizeof text - 1,
                                               dryi_torch_rules_find(cases[i].release),
                                               &c, &err),
                         DRY_OK);
        assert_true(c.roundup_power2_divisions[8] == 1);
        assert_true(c.roundup_power2_divisions[9] == cases[i].last);
        assert_true(c.roundup_power2_divisions[10] == 8);
    }
}

static void
the_large_segment_is_read_before_everything(void **state)
{
    (void)state;
    struct dryi_torch_conf c = accept("max_split_size_mb:64,large_segment_size_mb:64");
    assert_int_equal(c.max_split_size, 64 * DRYI_MIB);
    assert_int_equal(c.max_non_split_rounding_size, 64 * DRYI_MIB);
    refuse("max_split_size_mb:32,large_segment_size_mb:64", "must be >= 64");
    c = accept("max_split_size_mb:12,large_segment_size_mb:12");
    assert_int_equal(c.max_split_size, 12 * DRYI_MIB);
    /* The pass looks at every token, values too. */
    refuse("backend:large_segment_size_mb:5", "must be > 10 MB");
    /* The last one counts. */
    c = accept("large_segment_size_mb:64,large_segment_size_mb:32");
    assert_int_equal(c.large_segment_size, 32 * DRYI_MIB);
}

static void
a_second_string_resets_some_and_keeps_others(void **state)
{
    (void)state;
    struct dryi_torch_conf c = accept(
        "large_segment_size_mb:40,max_split_size_mb:64,max_non_split_rounding_mb:80,"
        "garbage_collection_threshold:0.5,roundup_power2_divisions:4,"
        "expandable_segments:True,per_process_memory_fraction:0.5,"
        "throw_on_cudamalloc_oom:True,expandable_segments_reserve:0.5");
    assert_int_equal(apply(&c, "backend:native", NULL), DRY_OK);
    assert_true(c.max_split_size == UINT64_MAX);
    assert_true(c.garbage_collection_threshold == 0.0);
    assert_int_equal(c.roundup_power2_divisions[3], 0);
    assert_int_equal(c.large_segment_size, 40 * DRYI_MIB);
    assert_int_equal(c.max_non_split_rounding_size, 40 * DRYI_MIB);
    assert_true(c.expandable_segments);
    assert_true(c.per_process_memory_fraction == 0.5);
    assert_true(c.throw_on_cudamalloc_oom);
    assert_true(c.expandable_reserve_fraction == 0.5);
    /* and it is the kept segment size that bounds the next string */
    struct dry_error err;
    assert_int_equal(apply(&c, "max_split_size_mb:32", &err), DRY_ERR_FORMAT);
    assert_non_null(strstr(err.text, "must be >= 40"));
}

static void
the_least_split_size_depends_on_the_release(void **state)
{
    (void)state;
    static const char text[] = "max_split_size_mb:20";
    struct dryi_torch_conf c;
    struct dry_error err;
    dryi_torch_conf_init(&c);
    const struct dryi_torch_rules *old = dryi_torch_rules_find("2.9");
    assert_int_equal(dryi_torch_conf_parse(text, strlen(text), old, &c, &err),
                     DRY_ERR_FORMAT);
    assert_non_null(strstr(err.text, "must be > 20"));
    const struct dryi_torch_rules *rules = dryi_torch_rules_find("2.10");
    assert_int_equal(dryi_torch_conf_parse(text, strlen(text), rules, &c, &err), DRY_OK);
    assert_int_equal(c.max_split_size, 20 * DRYI_MIB);
}

static void
releases_are_found_by_the_newest_row_not_after_them(void **state)
{
    (void)state;
    static const struct {
        const char *release, *row;
    } cases[] = {
        {"2.0", "2.0"},     {"2.0.1", "2.0"},     {"2.5.1", "2.0"},
        {"2.6", "2.6"},     {"2.6.0", "2.6"},     {"2.9.1+cu128", "2.6"},
        {"2.10", "2.10"},   {"2.11", "2.11"},     {"2.12.1", "2.12"},
        {"2.13.0", "2.13"}, {"2.15.0a0", "2.13"}, {"2.15.3", "2.13"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct dryi_torch_rules *rules = dryi_torch_rules_find(cases[i].release);
        assert_non_null(rules);
        assert_string_equal(rules->release, cases[i].row);
    }
    static const char *const none[] = {"",     "2",    "1.13.1", "2.",  "main",
                                       ".5",   "-2.1", " 2.1",   "2.x", "2.99999",
                                       "v2.1", "2.16", "2.100",  "3.0"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        if (dryi_torch_rules_find(none[i]))
            fail_msg("\"%s\" is taken for a release", none[i]);
    }
    assert_null(dryi_torch_rules_find(NULL));
}

static void
rows_are_ordered_and_the_last_is_the_newest_code(void **state)
{
    (void)state;
    size_t count;
    const struct dryi_torch_rules *all = dryi_torch_rules_all(&count);
    assert_true(count >= 2);
    for (size_t i = 0; i < count; i++)
        assert_ptr_equal(dryi_torch_rules_find(all[i].release), &all[i]);
    const struct dryi_torch_rules *newest = &all[count - 1];
    assert_true(newest->order_by_counter && newest->slack_is_option);
    assert_true(newest->scopes_last_first && newest->split_min_allowed);
    assert_false(newest->scope_is_capture);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_of_pytorch),
        cmocka_unit_test(every_option_is_read),
        cmocka_unit_test(what_places_nothing_is_checked_and_dropped),
        cmocka_unit_test(every_refusal_says_why),
        cmocka_unit_test(the_drivers_allocator_is_not_ours),
        cmocka_unit_test(running_out_of_tokens_is_an_error),
        cmocka_unit_test(numbers_are_read_as_c_reads_them),
        cmocka_unit_test(a_bad_reserve_is_ignored),
        cmocka_unit_test(white_space_is_dropped_and_marks_are_not_checked),
        cmocka_unit_test(bytes_that_are_no_text_do_no_harm),
        cmocka_unit_test(a_megabyte_is_read_in_linear_time),
        cmocka_unit_test(lists_of_divisions_have_their_quirks),
        cmocka_unit_test(the_rest_of_divisions_took_the_last_before_2_10),
        cmocka_unit_test(the_large_segment_is_read_before_everything),
        cmocka_unit_test(a_second_string_resets_some_and_keeps_others),
        cmocka_unit_test(the_least_split_size_depends_on_the_release),
        cmocka_unit_test(releases_are_found_by_the_newest_row_not_after_them),
        cmocka_unit_test(rows_are_ordered_and_the_last_is_the_newest_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
