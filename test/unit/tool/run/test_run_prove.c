/* SPDX-License-Identifier: Apache-2.0 */

/* What follows from what was seen of a program, on machines that are not here. */
#include "support/cmocka.h"

#include <string.h>

#include "run/run_prove.h"

#define MIB (UINT64_C(1) << 20)

struct scene {
    struct run_plan plan;
    struct run_sample sample;
    struct run_proof proof;
};

/* On node 1, CPUs 4 to 7, jemalloc and huge pages; the program does as it is told. */
static void
begin(struct scene *s)
{
    memset(s, 0, sizeof *s);
    s->plan.node = 1;
    s->plan.binds_cpus = true;
    s->plan.cpus.words[0] = 0xf0;
    s->plan.memory_mode = RUN_MEMORY_PREFER;
    s->plan.memory_nodes[0] = 2;
    s->plan.malloc = RUN_MALLOC_JEMALLOC;
    s->plan.thp = RUN_THP_ALWAYS;
    run_plan_add(&s->plan, RUN_WHAT_VARIABLE, RUN_SET, "A", "1", "why");
    run_plan_add(&s->plan, RUN_WHAT_VARIABLE, RUN_KEPT, "B", "2", "why");
    s->sample = (struct run_sample){
        .process = 77,
        .resident_bytes = 1000 * MIB,
        .knows_cpus = true,
        .knows_maps = true,
        .knows_pages = true,
        .knows_nodes = true,
        .knows_variables = true,
        .cpus = {{0x30}},
        .thread_count = 3,
        .mallocs = 1u << RUN_MALLOC_JEMALLOC | 1,
        .anonymous_bytes = 900 * MIB,
        .huge_bytes = 800 * MIB,
        .is_thp_enabled = 1,
        .node_bytes = {10 * MIB, 890 * MIB},
        .has_variable = {true},
    };
}

static bool
judge(struct scene *s)
{
    memset(&s->proof, 0, sizeof s->proof);
    run_proof_take(&s->proof, &s->sample);
    return run_proof_judge(&s->proof, &s->plan);
}

static const struct run_finding *
find(const struct scene *s, const char *name)
{
    size_t i = 0;
    while (i < s->proof.finding_count && strcmp(s->proof.findings[i].name, name) != 0)
        i++;
    assert_true(i < s->proof.finding_count);
    return &s->proof.findings[i];
}

static void
assert_verdict(const struct scene *s, const char *name, enum run_verdict verdict)
{
    assert_int_equal(find(s, name)->verdict, verdict);
}

static void
a_program_that_obeys_is_proven(void **state)
{
    (void)state;
    struct scene s;
    begin(&s);
    assert_true(judge(&s));
    assert_int_equal(s.proof.finding_count, 5);
    for (size_t i = 0; i < s.proof.finding_count; i++)
        assert_int_equal(s.proof.findings[i].verdict, RUN_PROVEN);
    assert_string_equal(find(&s, "memory")->text, "98 % of 900.00 MiB lies on node 1");
    assert_string_equal(find(&s, "CPUs")->text, "3 threads on 4-5");
}

static void
nothing_seen_is_no_lie(void **state)
{
    (void)state;
    struct scene s;
    begin(&s);
    assert_true(run_proof_judge(&s.proof, &s.plan));
    assert_int_equal(s.proof.finding_count, 1);
    assert_verdict(&s, "all", RUN_UNPROVEN);
}

static void
a_thread_that_ever_left_has_left(void **state)
{
    (void)state;
    struct scene s;
    begin(&s);
    s.sample.stray_count = 1;
    s.sample.cpus.words[0] = 0x3f;
    run_proof_take(&s.proof, &s.sample);
    s.sample.stray_count = 0;
    s.sample.cpus.words[0] = 0x30;
    run_proof_take(&s.proof, &s.sample);
    assert_false(run_proof_judge(&s.proof, &s.plan));
    assert_verdict(&s, "CPUs", RUN_NOT_SO);
    assert_string_equal(find(&s, "CPUs")->text, "1 thread may run on 0-5");
}

static void
unbound_programs_are_not_asked_for_cpus(void **state)
{
    (void)state;
    struct scene s;
    begin(&s);
    s.plan.node = DRY_TOPOLOGY_NO_NODE;
    s.plan.memory_mode = RUN_MEMORY_KEEP;
    s.sample.stray_count = 3;
    assert_true(judge(&s));
    assert_int_equal(s.proof.finding_count, 3);
}

static void
memory_elsewhere_is_found(void **state)
{
    (void)state;
    struct scene s;
    begin(&s);
    s.sample.node_bytes[0] = 100 * MIB;
    s.sample.node_bytes[1] = 800 * MIB;
    assert_false(judge(&s));
    assert_verdict(&s, "memory", RUN_NOT_SO);
    s.sample.node_bytes[0] = 0;
    s.sample.node_bytes[1] = MIB / 2;
    assert_true(judge(&s));
    assert_verdict(&s, "memory", RUN_UNPROVEN);
    s.sample.knows_nodes = false;
    assert_true(judge(&s));
    assert_verdict(&s, "memory", RUN_UNPROVEN);
}

static void
interleaved_memory_is_even(void **state)
{
    (void)state;
    struct scene s;
    begin(&s);
    s.plan.memory_mode = RUN_MEMORY_INTERLEAVE;
    s.plan.memory_nodes[0] = 3;
    assert_false(judge(&s)); /* 10 and 890 MiB */
    assert_verdict(&s, "memory", RUN_NOT_SO);
    s.sample.node_bytes[0] = 400 * MIB;
    s.sample.node_bytes[1] = 500 * MIB;
    assert_true(judge(&s));
    assert_string_equal(find(&s, "memory")->text,
                        "100 % of 900.00 MiB lies on nodes 0-1, at least 44 % on each");
}

static void
a_malloc_that_is_not_there_is_found(void **state)
{
    (void)state;
    struct scene s;
    begin(&s);
    s.sample.mallocs = 1;
    assert_false(judge(&s));
    assert_verdict(&s, "malloc", RUN_NOT_SO);
    s.plan.malloc = RUN_MALLOC_GLIBC;
    assert_true(judge(&s));
    s.sample.mallocs = 1u << RUN_MALLOC_MIMALLOC;
    assert_false(judge(&s));
    assert_string_equal(find(&s, "malloc")->text, "the program brings mimalloc");
    s.plan.malloc = RUN_MALLOC_NONE;
    assert_true(judge(&s));
}

static void
huge_pages_are_judged_by_who_asks(void **state)
{
    (void)state;
    struct scene s;
    static const char name[] = "huge pages";
    begin(&s);
    s.sample.huge_bytes = 100 * MIB;
    assert_false(judge(&s));
    assert_verdict(&s, name, RUN_NOT_SO);
    s.sample.anonymous_bytes = 20 * MIB;
    s.sample.huge_bytes = 0;
    assert_true(judge(&s));
    assert_verdict(&s, name, RUN_UNPROVEN);
    begin(&s);
    s.plan.malloc = RUN_MALLOC_TCMALLOC;
    s.sample.mallocs = 1u << RUN_MALLOC_TCMALLOC;
    s.sample.huge_bytes = 0;
    assert_true(judge(&s));
    assert_verdict(&s, name, RUN_UNPROVEN);
    s.plan.thp = RUN_THP_NEVER;
    assert_true(judge(&s));
    assert_verdict(&s, name, RUN_PROVEN);
    s.sample.huge_bytes = 2 * MIB;
    assert_false(judge(&s));
    assert_verdict(&s, name, RUN_NOT_SO);
}

static void
a_lost_variable_is_named(void **state)
{
    (void)state;
    struct scene s;
    begin(&s);
    s.sample.has_variable[0] = false;
    assert_false(judge(&s));
    assert_string_equal(find(&s, "variables")->text,
                        "0 of 1 are there; A is not, or is changed");
    s.sample.knows_variables = false;
    assert_true(judge(&s));
}

static void
the_end_of_a_program_does_not_count(void **state)
{
    (void)state;
    struct scene s;
    begin(&s);
    run_proof_take(&s.proof, &s.sample);
    s.sample.resident_bytes = 600 * MIB;
    s.sample.process = 78;
    run_proof_take(&s.proof, &s.sample);
    assert_int_equal(s.proof.best.process, 78);
    s.sample.resident_bytes = 400 * MIB;
    s.sample.process = 79;
    run_proof_take(&s.proof, &s.sample);
    assert_int_equal(s.proof.best.process, 78);
}

static void
lists_and_names_are_read_as_written(void **state)
{
    (void)state;
    char text[32];
    uint64_t words[2] = {0x8000000000000107, 1};
    run_format_list(words, 2, text, sizeof text);
    assert_string_equal(text, "0-2,8,63-64");
    assert_int_equal(run_format_list(words, 2, text, 6), 5); /* what fits, whole */
    assert_string_equal(text, "0-2,8");
    static const struct {
        const char *path;
        enum run_malloc kind;
    } names[] = {
        {"/a/libjemalloc.so.2", RUN_MALLOC_JEMALLOC},
        {"libjemalloc.so", RUN_MALLOC_JEMALLOC},
        {"/x.libs/libjemalloc-1f2e.so.2", RUN_MALLOC_JEMALLOC},
        {"/a/libtcmalloc_minimal.so.4.5.10", RUN_MALLOC_TCMALLOC},
        {"/a/libtcmalloc.so.4", RUN_MALLOC_TCMALLOC},
        {"/a/libmimalloc.so.2.0", RUN_MALLOC_MIMALLOC},
        {"/a/libtcmalloc_minimal_debug.so.4", RUN_MALLOC_NONE},
        {"/libjemalloc.so.2/libc.so.6", RUN_MALLOC_NONE},
        {"/a/libjemalloc.so.x", RUN_MALLOC_NONE},
        {"/a/libjemalloc.so.", RUN_MALLOC_NONE},
        {"/a/libjemalloc.a", RUN_MALLOC_NONE},
        {"", RUN_MALLOC_NONE},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(run_malloc_of_path(names[i].path, strlen(names[i].path)),
                         names[i].kind);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_that_obeys_is_proven),
        cmocka_unit_test(nothing_seen_is_no_lie),
        cmocka_unit_test(a_thread_that_ever_left_has_left),
        cmocka_unit_test(unbound_programs_are_not_asked_for_cpus),
        cmocka_unit_test(memory_elsewhere_is_found),
        cmocka_unit_test(interleaved_memory_is_even),
        cmocka_unit_test(a_malloc_that_is_not_there_is_found),
        cmocka_unit_test(huge_pages_are_judged_by_who_asks),
        cmocka_unit_test(a_lost_variable_is_named),
        cmocka_unit_test(the_end_of_a_program_does_not_count),
        cmocka_unit_test(lists_and_names_are_read_as_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
