/* SPDX-License-Identifier: Apache-2.0 */

/*
 * diff and explain/align: which lines of two sources are the same, which owners of two
 * files are, sums over random subjects, settings, and memory that runs out.
 */
#include "support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/diff.h>

#include "explain/diff/align.h"
#include "support/failing_memory.h"
#include "support/program.h"
#include "support/random.h"

/* --- lines -------------------------------------------------------------------------------- */

static size_t
read_lines(const char *text, int64_t *lines)
{
    size_t count = 0;
    char *end;
    for (; *text; text = end + (*end == ' '))
        lines[count++] = strtoll(text, &end, 10);
    return count;
}

static const struct {
    const char *base, *lines;
    const char *partners; /* indices into base; - for none */
    int64_t shift;
} alignments[] = {
    {"", "", "", 0},
    {"", "5", "-", 0},
    {"5", "", "", 0},
    {"88", "88", "0", 0},
    {"88", "90", "0", -2},
    {"174 176 181", "174 176 181", "0 1 2", 0},
    {"174 176 181", "180 182 187", "0 1 2", -6},
    {"174 176 181", "176 181", "1 2", 0},
    {"174 176 181", "175 177 178 182", "0 1 - 2", -1},
    /* one source, other lines: what is at its place stays there */
    {"88 90", "88 95", "0 -", 0},
    {"88 90", "90 95", "1 -", 0},
    /* moved by 10, and one line of it edited */
    {"10 20 30 40", "20 30 41 50", "0 1 2 3", -10},
};

static void
lines_are_matched_by_their_shift(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++) {
        int64_t base[16], lines[16];
        size_t partners[16], base_count = read_lines(alignments[i].base, base);
        size_t count = read_lines(alignments[i].lines, lines);
        int64_t shift = dryi_align_lines(base, base_count, lines, count, partners);
        char got[64] = "";
        for (size_t k = 0; k < count; k++) {
            size_t used = strlen(got);
            const char *between = k ? " " : "";
            if (partners[k] == SIZE_MAX)
                snprintf(got + used, sizeof got - used, "%s-", between);
            else
                snprintf(got + used, sizeof got - used, "%s%zu", between, partners[k]);
        }
        assert_string_equal(got, alignments[i].partners);
        assert_int_equal(shift, alignments[i].shift);
    }
}

static size_t
random_lines(struct random *r, int64_t *lines)
{
    size_t count = 0;
    for (int64_t line = 1; line < 60 && count < 12; line++) {
        if (random_below(r, 6) == 0)
            lines[count++] = line;
    }
    return count;
}

/* Nobody is paired twice, pairs of the shift are there, and no shift has more of them. */
static void
alignments_are_sound_and_best(void **state)
{
    (void)state;
    struct random r;
    random_init(&r, 1);
    for (int round = 0; round < 3000; round++) {
        int64_t base[16], lines[16];
        size_t partners[16], base_count = random_lines(&r, base);
        size_t count = random_lines(&r, lines);
        int64_t shift = dryi_align_lines(base, base_count, lines, count, partners);
        bool is_taken[16] = {false};
        size_t by_shift = 0;
        for (size_t i = 0; i < count; i++) {
            if (partners[i] == SIZE_MAX)
                continue;
            assert_true(partners[i] < base_count);
            assert_false(is_taken[partners[i]]);
            is_taken[partners[i]] = true;
            by_shift += base[partners[i]] == lines[i] + shift;
        }
        size_t unshifted = 0;
        for (size_t i = 0; i < count; i++) {
            for (size_t b = 0; b < base_count; b++) {
                unshifted += base[b] == lines[i];
                if (base[b] == lines[i] + shift)
                    assert_int_equal(partners[i], b);
            }
        }
        assert_true(by_shift >= unshifted);
        assert_true(by_shift > 0 || base_count == 0 || count == 0);
    }
}

/* --- diffs -------------------------------------------------------------------------------- */

static uint32_t
end_of(const struct dry_timeline *timeline)
{
    return dry_timeline_get_view(timeline)->event_count;
}

static struct dry_diff *
diff_of(const struct dry_diff_subject *subjects, size_t count, enum dry_owner_key key)
{
    struct dry_diff_options options;
    struct dry_diff *diff;
    struct dry_error err;
    dry_diff_options_init(&options);
    options.key = key;
    if (dry_diff_create(subjects, count, &options, &diff, &err) != DRY_OK)
        fail_msg("%s", err.text);
    return diff;
}

static struct dry_diff *
diff_programs(const struct program *a, const struct program *b, enum dry_owner_key key)
{
    struct dry_diff_subject subjects[] = {
        {.timeline = a->timelines[0], .moment = end_of(a->timelines[0])},
        {.timeline = b->timelines[0], .moment = end_of(b->timelines[0])},
    };
    return diff_of(subjects, 2, key);
}

/* A failing assertion ends the test, which the compiler cannot see: so here and below. */
static const struct dry_diff_row *
find_row(const struct dry_diff *diff, const char *name)
{
    size_t count;
    const struct dry_diff_row *rows = dry_diff_get_rows(diff, &count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    }
    fail_msg("no row %s", name);
    abort();
}

/* One allocation of `size` bytes in this stack. */
static void
allocate_in(struct program *p, uint64_t size, const char *frames)
{
    program_alloc(p, size, program_stack(p, frames));
}

static void
owners_match_across_machines(void **state)
{
    (void)state;
    struct program a, b;
    program_begin(&a, NULL);
    allocate_in(&a, 512, "/home/ada/p/net.py;174;forward\n/home/ada/p/main.py;3;run");
    allocate_in(&a, 1024, "/home/ada/p/net.py;176;forward");
    allocate_in(&a, 4096, "/v/lib/python3.10/site-packages/einops/einops.py;9;einsum");
    allocate_in(&a, 8192, "/tmp/torchinductor_ada/ab/cab1.py;20;call");
    allocate_in(&a, 512, "/home/ada/p/only.py;1;f");
    program_finish(&a);
    program_begin(&b, NULL);
    allocate_in(&b, 1536, "D:\\work\\p\\net.py;180;forward\nD:\\work\\p\\main.py;9;run");
    allocate_in(&b, 1024, "D:\\work\\p\\net.py;182;forward");
    allocate_in(&b, 4096, "D:\\v\\Lib\\site-packages\\einops\\einops.py;9;einsum");
    allocate_in(&b, 8192, "C:\\t\\torchinductor_bob\\xy\\cxy2.py;20;call");
    program_finish(&b);
    struct dry_diff *diff = diff_programs(&a, &b, DRY_OWNER_LINE);
    size_t count;
    const struct dry_diff_row *rows = dry_diff_get_rows(diff, &count);
    assert_int_equal(count, 5);
    assert_string_equal(rows[0].name, "net.py:174 forward");
    assert_int_equal(rows[0].max - rows[0].min, 1024);
    assert_int_equal(rows[0].cell_count, 2);
    assert_int_equal(rows[0].cells[0].line, 174);
    assert_int_equal(rows[0].cells[1].line, 180);
    assert_int_equal(find_row(diff, "net.py:176 forward")->max, 1024);
    assert_int_equal(find_row(diff, "net.py:176 forward")->min, 1024);
    assert_int_equal(find_row(diff, "einops/einops.py:9 einsum")->cell_count, 2);
    assert_int_equal(find_row(diff, "inductor/cab1:20 call")->cell_count, 2);
    const struct dry_diff_row *only = find_row(diff, "only.py:1 f");
    assert_int_equal(only->cell_count, 1);
    assert_int_equal(dry_diff_bytes(only, 0), 512);
    assert_int_equal(dry_diff_bytes(only, 1), 0);
    dry_diff_destroy(diff);
    program_end(&a);
    program_end(&b);
}

/* Where one subject has two files of a name, the other's goes by its folder, too. */
static void
files_of_one_name_stay_apart(void **state)
{
    (void)state;
    struct program a, b;
    program_begin(&a, NULL);
    allocate_in(&a, 512, "/p/enc/net.py;1;f");
    allocate_in(&a, 1024, "/p/dec/net.py;1;f");
    program_finish(&a);
    program_begin(&b, NULL);
    allocate_in(&b, 2048, "/q/dec/net.py;1;f");
    program_finish(&b);
    struct dry_diff *diff = diff_programs(&a, &b, DRY_OWNER_LINE);
    size_t count;
    dry_diff_get_rows(diff, &count);
    assert_int_equal(count, 2);
    assert_int_equal(find_row(diff, "enc/net.py:1 f")->cell_count, 1);
    assert_int_equal(find_row(diff, "dec/net.py:1 f")->cell_count, 2);
    dry_diff_destroy(diff);
    program_end(&a);
    program_end(&b);
}

/* Devices of one file ran one source: line 90 is not line 88 moved. */
static void
lines_of_one_trace_do_not_move(void **state)
{
    (void)state;
    struct program p;
    program_begin(&p, NULL);
    allocate_in(&p, 512, "/p/net.py;88;f");
    program_begin_device(&p);
    allocate_in(&p, 512, "/p/net.py;90;f");
    program_begin_device(&p);
    allocate_in(&p, 512, "/p/net.py;90;f");
    program_finish(&p);
    struct dry_diff_subject subjects[3];
    for (size_t i = 0; i < 3; i++)
        subjects[i] = (struct dry_diff_subject){.timeline = p.timelines[i], .moment = 1};
    struct dry_diff *diff = diff_of(subjects, 3, DRY_OWNER_LINE);
    size_t count;
    dry_diff_get_rows(diff, &count);
    assert_int_equal(count, 2);
    assert_int_equal(find_row(diff, "net.py:88 f")->cell_count, 1);
    assert_int_equal(find_row(diff, "net.py:90 f")->cell_count, 2);
    assert_int_equal(find_row(diff, "net.py:90 f")->outlier, 0);
    assert_int_equal(find_row(diff, "net.py:88 f")->outlier, 0);
    dry_diff_destroy(diff);
    program_end(&p);
}

static void
equal_subjects_have_no_spread(void **state)
{
    (void)state;
    struct program p;
    program_begin(&p, NULL);
    allocate_in(&p, 512, "/p/net.py;88;f");
    program_older(&p, 4096, DRY_NONE);
    program_finish(&p);
    struct dry_diff *diff = diff_programs(&p, &p, DRY_OWNER_FUNCTION);
    size_t count, facts;
    const struct dry_diff_row *rows = dry_diff_get_rows(diff, &count);
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(rows[i].min, rows[i].max);
    const struct dry_diff_fact *fact = dry_diff_get_facts(diff, &facts);
    for (size_t i = 0; i < facts; i++)
        assert_true(fact[i].is_equal);
    dry_diff_destroy(diff);
    program_end(&p);
}

static const struct dry_diff_fact *
find_fact(const struct dry_diff *diff, const char *name)
{
    size_t count;
    const struct dry_diff_fact *facts = dry_diff_get_facts(diff, &count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(facts[i].name, name) == 0)
            return &facts[i];
    }
    fail_msg("no fact %s", name);
    abort();
}

static void
settings_and_lanes_are_compared(void **state)
{
    (void)state;
    struct dry_trace_settings settings = {.known = true,
                                          .conf = DRY_NONE,
                                          .max_split_size = -1,
                                          .expandable_segments = true,
                                          .extra = DRY_NONE};
    struct program a, b;
    program_begin(&a, &settings);
    program_alloc(&a, 512, DRY_NONE);
    program_lane(&a, 7, 0);
    program_alloc(&a, 512, DRY_NONE);
    program_lane(&a, 0, 3);
    program_alloc(&a, 512, DRY_NONE);
    program_finish(&a);
    program_begin(&b, NULL);
    program_alloc(&b, 512, DRY_NONE);
    program_finish(&b);
    struct dry_diff *diff = diff_programs(&a, &b, DRY_OWNER_MODULE);
    const struct dry_diff_fact *fact = find_fact(diff, "expandable_segments");
    assert_true(fact->is_equal);
    assert_false(fact->is_known);
    assert_string_equal(fact->values[0], "True");
    assert_string_equal(fact->values[1], "unknown");
    assert_true(find_fact(diff, "PYTORCH_CUDA_ALLOC_CONF")->is_equal);
    assert_string_equal(find_fact(diff, "max_split_size")->values[0], "-1");
    assert_false(find_fact(diff, "streams")->is_equal);
    assert_true(find_fact(diff, "streams")->is_known);
    assert_string_equal(find_fact(diff, "streams")->values[0], "2");
    assert_string_equal(find_fact(diff, "streams")->values[1], "1");
    assert_string_equal(find_fact(diff, "private pools")->values[0], "1");
    assert_string_equal(find_fact(diff, "private pools")->values[1], "0");
    dry_diff_destroy(diff);
    program_end(&a);
    program_end(&b);
}

/* --- random subjects ---------------------------------------------------------------------- */

#define LINES 12

static int
compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void
check_row(const struct dry_diff_row *row, size_t count)
{
    uint64_t bytes[DRY_DIFF_SUBJECTS_MAX], sorted[DRY_DIFF_SUBJECTS_MAX];
    uint64_t farthest = 0;
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = bytes[i] = dry_diff_bytes(row, i);
    qsort(sorted, count, sizeof *sorted, compare_u64);
    assert_int_equal(row->min, sorted[0]);
    assert_int_equal(row->max, sorted[count - 1]);
    assert_int_equal(row->median, sorted[(count - 1) / 2]);
    assert_int_equal(row->spread, row->max - row->min);
    for (size_t i = 0; i < count; i++) {
        uint64_t distance =
            bytes[i] > row->median ? bytes[i] - row->median : row->median - bytes[i];
        farthest = distance > farthest ? distance : farthest;
    }
    uint64_t b = bytes[row->outlier];
    assert_int_equal(b > row->median ? b - row->median : row->median - b, farthest);
}

/* Sixty-four devices; every line in every one of them as added up by hand. */
static void
sums_are_those_of_a_naive_walk(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++) {
        struct random r;
        struct program p;
        size_t devices = seed == 0 ? DRY_DIFF_SUBJECTS_MAX : 1 + seed * 2, count;
        static uint64_t bytes[DRY_DIFF_SUBJECTS_MAX][LINES];
        memset(bytes, 0, sizeof bytes);
        random_init(&r, seed);
        program_begin(&p, NULL);
        for (size_t d = 0; d < devices; d++) {
            if (d > 0)
                program_begin_device(&p);
            for (int i = 0; i < 20; i++) {
                size_t line = random_below(&r, LINES);
                uint64_t size = 512 * (1 + random_below(&r, 9));
                program_alloc(
                    &p, size,
                    program_stack_of(&p, "/p/net.py", (uint32_t)line + 1, "f", 1));
                bytes[d][line] += size;
            }
        }
        program_finish(&p);
        struct dry_diff_subject subjects[DRY_DIFF_SUBJECTS_MAX];
        for (size_t d = 0; d < devices; d++)
            subjects[d] =
                (struct dry_diff_subject){.timeline = p.timelines[d], .moment = 20};
        struct dry_diff *diff = diff_of(subjects, devices, DRY_OWNER_LINE);
        const struct dry_diff_row *rows = dry_diff_get_rows(diff, &count);
        for (size_t i = 0; i < count; i++) {
            size_t line = rows[i].cells[0].line - 1;
            for (uint32_t d = 0; d < devices; d++)
                assert_int_equal(dry_diff_bytes(&rows[i], d), bytes[d][line]);
            check_row(&rows[i], devices);
            if (i > 0)
                assert_true(rows[i - 1].spread >= rows[i].spread);
        }
        const struct dry_diff_row *total = dry_diff_get_total(diff);
        assert_int_equal(total->cell_count, devices);
        check_row(total, devices);
        for (size_t d = 0; d < devices; d++) {
            uint64_t sum = 0;
            for (size_t line = 0; line < LINES; line++)
                sum += bytes[d][line];
            assert_int_equal(total->cells[d].bytes, sum);
        }
        dry_diff_destroy(diff);
        program_end(&p);
    }
}

/* --- failures ----------------------------------------------------------------------------- */

static void
impossible_options_are_refused(void **state)
{
    (void)state;
    struct program p;
    program_begin(&p, NULL);
    program_alloc(&p, 512, DRY_NONE);
    program_finish(&p);
    struct dry_diff_subject subjects[DRY_DIFF_SUBJECTS_MAX + 1];
    for (size_t i = 0; i <= DRY_DIFF_SUBJECTS_MAX; i++)
        subjects[i] = (struct dry_diff_subject){.timeline = p.timelines[0]};
    struct dry_diff_options o;
    struct dry_diff *diff = NULL;
    struct dry_error err;
    dry_diff_options_init(&o);
    assert_int_equal(dry_diff_create(subjects, 0, &o, &diff, &err), DRY_ERR_ARGUMENT);
    assert_int_equal(
        dry_diff_create(subjects, DRY_DIFF_SUBJECTS_MAX + 1, &o, &diff, &err),
        DRY_ERR_ARGUMENT);
    o.key = DRY_OWNER_STEP;
    assert_int_equal(dry_diff_create(subjects, 2, &o, &diff, &err), DRY_ERR_ARGUMENT);
    o.key = DRY_OWNER_CATEGORY; /* without categories */
    assert_int_equal(dry_diff_create(subjects, 2, &o, &diff, &err), DRY_ERR_ARGUMENT);
    o.key = DRY_OWNER_LINE;
    subjects[1].moment = 3;
    assert_int_equal(dry_diff_create(subjects, 2, &o, &diff, &err), DRY_ERR_ARGUMENT);
    assert_null(diff);
    dry_diff_destroy(NULL);
    program_end(&p);
}

static void
each_request_for_memory_may_fail(void **state)
{
    (void)state;
    struct program a, b;
    program_begin(&a, NULL);
    program_begin(&b, NULL);
    for (uint32_t i = 1; i < 30; i++) {
        program_alloc(&a, 512, program_stack_of(&a, "/p/net.py", i * 3, "f", 1));
        program_alloc(&b, 512 * i, program_stack_of(&b, "/q/net.py", i * 3 + 5, "f", 1));
    }
    program_finish(&a);
    program_finish(&b);
    struct dry_diff_subject subjects[] = {
        {.timeline = a.timelines[0], .moment = 29},
        {.timeline = b.timelines[0], .moment = 29},
    };
    size_t n = 0;
    for (bool failed = true; failed; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct dry_diff_options o;
        struct dry_diff *diff = NULL;
        struct dry_error err;
        dry_diff_options_init(&o);
        o.memory = &memory;
        enum dry_status status = dry_diff_create(subjects, 2, &o, &diff, &err);
        dry_diff_destroy(diff);
        failing_memory_finish(&fm);
        failed = fm.failed;
        assert_int_equal(status, failed ? DRY_ERR_MEMORY : DRY_OK);
    }
    assert_true(n > 20);
    program_end(&a);
    program_end(&b);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_matched_by_their_shift),
        cmocka_unit_test(alignments_are_sound_and_best),
        cmocka_unit_test(owners_match_across_machines),
        cmocka_unit_test(files_of_one_name_stay_apart),
        cmocka_unit_test(lines_of_one_trace_do_not_move),
        cmocka_unit_test(equal_subjects_have_no_spread),
        cmocka_unit_test(settings_and_lanes_are_compared),
        cmocka_unit_test(sums_are_those_of_a_naive_walk),
        cmocka_unit_test(impossible_options_are_refused),
        cmocka_unit_test(each_request_for_memory_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
