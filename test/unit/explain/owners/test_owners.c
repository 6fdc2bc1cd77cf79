/* SPDX-License-Identifier: Apache-2.0 */

/*
 * owners against sums made one allocation after the other: random programs, moments and
 * keys; names of those without a stack; hostile names; real recordings add up.
 */
#include "support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/categories.h>
#include <drystone/owners.h>
#include <drystone/state.h>
#include <drystone/steps.h>

#include "support/bytes.h"
#include "support/failing_memory.h"
#include "support/program.h"
#include "support/random.h"

#define SITE "/v/lib/python3.12/site-packages/"

/* Stacks, and what they are called by each key; the last two have none. */
static const struct {
    const char *frames;
    const char *names[4]; /* line, function, module, inverted line */
} stacks[] = {
    {"/p/net.py;7;forward\n/p/main.py;3;<module>",
     {"net.py:7 forward", "net.py forward", "net.py", "main.py:3 <module>"}},
    {"/p/net.py;9;forward\n/p/main.py;3;<module>",
     {"net.py:9 forward", "net.py forward", "net.py", "main.py:3 <module>"}},
    {SITE "torch/functional.py;407;einsum\n/p/net.py;7;forward\n/p/main.py;4;<module>",
     {"net.py:7 forward", "net.py forward", "net.py", "main.py:4 <module>"}},
    {"/p/loss.py;7;forward",
     {"loss.py:7 forward", "loss.py forward", "loss.py", "loss.py:7 forward"}},
    {"??;0;torch::autograd::generated::MulBackward0::apply(x)",
     {"autograd MulBackward0", "autograd MulBackward0", "autograd",
      "autograd MulBackward0"}},
    {"",
     {"(no Python stack)", "(no Python stack)", "(no Python stack)",
      "(no Python stack)"}},
    {NULL, {"(no stack)", "(no stack)", "(no stack)", "(no stack)"}},
};
#define STACKS (sizeof stacks / sizeof *stacks)

static void
add_stacks(struct program *p, uint32_t ids[STACKS])
{
    for (size_t i = 0; i < STACKS; i++)
        ids[i] = stacks[i].frames ? program_stack(p, stacks[i].frames) : DRY_NONE;
}

static struct dry_owners *
owners_of(const struct dry_timeline *timeline, const struct dry_owners_options *options)
{
    struct dry_owners *owners;
    struct dry_error err;
    if (dry_owners_create(timeline, options, &owners, &err) != DRY_OK)
        fail_msg("%s", err.text);
    return owners;
}

static struct dry_owners *
owners_at(const struct dry_timeline *timeline, uint32_t moment, enum dry_owner_key key)
{
    struct dry_owners_options options;
    dry_owners_options_init(&options);
    options.moment = moment;
    options.key = key;
    return owners_of(timeline, &options);
}

/* --- against the naive sums --------------------------------------------------------------- */

struct naive {
    char name[128];
    uint64_t bytes, requested, largest;
    uint32_t count;
};

static struct naive *
naive_row(struct naive *rows, size_t *count, const char *name)
{
    for (size_t i = 0; i < *count; i++) {
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    }
    rows[*count] = (struct naive){.count = 0};
    snprintf(rows[*count].name, sizeof rows->name, "%s", name);
    return &rows[(*count)++];
}

static void
write_naive_name(char name[128], const struct dry_allocation *a,
                 const uint32_t ids[STACKS], const struct dry_owners_options *o)
{
    size_t column = o->is_inverted ? 3 : o->key <= DRY_OWNER_MODULE ? (size_t)o->key : 0;
    size_t stack = 0;
    while (ids[stack] != a->stack)
        stack++;
    bool is_carried = a->flags & DRY_ALLOCATION_CARRIED_OVER;
    bool has_owner = stack < STACKS - 2;
    snprintf(
        name, 128, "%s%s",
        is_carried && !has_owner ? "(earlier, no stack)" : stacks[stack].names[column],
        has_owner && (a->flags & DRY_ALLOCATION_STACK_OF_FREE) ? " (freed there)" : "");
    if (o->key == DRY_OWNER_SIZE)
        snprintf(name, 128, "%llu B", (unsigned long long)a->requested);
}

static void
compare(const struct dry_timeline *timeline, const uint32_t ids[STACKS],
        const struct dry_owners_options *o)
{
    static struct naive rows[PROGRAM_BLOCKS_MAX];
    const struct dry_timeline_view *v = dry_timeline_get_view(timeline);
    size_t row_count = 0, count;
    uint64_t total = 0;
    for (uint32_t i = 0; i < v->allocation_count; i++) {
        const struct dry_allocation *a = &v->allocations[i];
        if (a->begin > o->moment || a->end <= o->moment || a->begin < o->born_from)
            continue;
        char name[128];
        write_naive_name(name, a, ids, o);
        struct naive *row = naive_row(rows, &row_count, name);
        row->bytes += a->size;
        row->requested += a->requested;
        row->count++;
        row->largest = a->size > row->largest ? a->size : row->largest;
        total += a->size;
    }
    struct dry_owners *owners = owners_of(timeline, o);
    const struct dry_owner *got = dry_owners_get(owners, &count);
    assert_int_equal(count, row_count);
    assert_int_equal(dry_owners_total(owners), total);
    for (size_t i = 0; i < count; i++) {
        size_t known = row_count;
        struct naive *row = naive_row(rows, &row_count, got[i].name);
        assert_int_equal(row_count, known); /* no name of its own */
        assert_int_equal(got[i].bytes, row->bytes);
        assert_int_equal(got[i].requested, row->requested);
        assert_int_equal(got[i].count, row->count);
        assert_int_equal(got[i].largest, row->largest);
        assert_int_equal(v->allocations[got[i].largest_allocation].size, row->largest);
        assert_int_equal(strlen(got[i].name), got[i].name_length);
        assert_true(i == 0 || got[i - 1].bytes > got[i].bytes ||
                    (got[i - 1].bytes == got[i].bytes &&
                     strcmp(got[i - 1].name, got[i].name) < 0));
    }
    dry_owners_destroy(owners);
}

static void
make_random(struct program *p, struct random *r, const uint32_t ids[STACKS])
{
    uint64_t live[256];
    size_t count = 0;
    for (int i = 0; i < 200; i++) {
        uint32_t stack = ids[random_below(r, STACKS)];
        uint64_t size = (1 + random_below(r, 6)) * 700;
        if (random_below(r, 3) == 0 && count > 0) {
            size_t which = random_below(r, count);
            program_free(p, live[which], stack);
            live[which] = live[--count];
        } else if (random_below(r, 12) == 0) {
            program_free_older(p, size * 512, stack);
        } else {
            live[count++] = program_alloc(p, size, stack);
        }
    }
    for (int i = 0; i < 5; i++)
        program_older(p, (1 + random_below(r, 6)) * 512, ids[random_below(r, STACKS)]);
}

static void
sums_are_those_of_a_naive_walk(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 24; seed++) {
        struct random r;
        struct program p;
        uint32_t ids[STACKS];
        random_init(&r, seed);
        program_begin(&p, NULL);
        add_stacks(&p, ids);
        make_random(&p, &r, ids);
        program_finish(&p);
        const struct dry_timeline_view *v = dry_timeline_get_view(p.timelines[0]);
        static const enum dry_owner_key keys[] = {DRY_OWNER_LINE, DRY_OWNER_FUNCTION,
                                                  DRY_OWNER_MODULE, DRY_OWNER_SIZE};
        for (size_t k = 0; k < 40; k++) {
            struct dry_owners_options o;
            dry_owners_options_init(&o);
            o.key = keys[k % 4];
            o.is_inverted = k % 4 == 0 && k % 8 == 0;
            o.moment = (uint32_t)random_below(&r, v->dump_moment + 1u);
            o.born_from = k % 3 == 0 ? (uint32_t)random_below(&r, o.moment + 1u) : 0;
            compare(p.timelines[0], ids, &o);
        }
        program_end(&p);
    }
}

/* --- keys --------------------------------------------------------------------------------- */

static void
stacks_are_told_apart_whole(void **state)
{
    (void)state;
    struct program p;
    uint32_t ids[STACKS];
    size_t count;
    program_begin(&p, NULL);
    add_stacks(&p, ids);
    for (size_t i = 0; i < STACKS; i++)
        program_alloc(&p, UINT64_C(512) << i, ids[i]);
    program_finish(&p);
    struct dry_owners *owners =
        owners_at(p.timelines[0], (uint32_t)STACKS, DRY_OWNER_STACK);
    const struct dry_owner *rows = dry_owners_get(owners, &count);
    assert_int_equal(count, STACKS);
    assert_string_equal(rows[6].name, "net.py:7 forward < main.py:3 <module>");
    assert_string_equal(rows[4].name, "net.py:7 forward < main.py:4 <module>");
    assert_string_equal(rows[4].what, "einsum");
    assert_string_equal(rows[2].name, "autograd MulBackward0");
    assert_string_equal(rows[1].name, "(no Python stack)");
    assert_string_equal(rows[0].name, "(no stack)");
    assert_int_equal(rows[4].stack, ids[2]);
    assert_int_equal(rows[4].frame, DRY_NONE);
    dry_owners_destroy(owners);
    owners = owners_at(p.timelines[0], (uint32_t)STACKS, DRY_OWNER_LINE);
    rows = dry_owners_get(owners, &count);
    for (size_t i = 0; i < count; i++) {
        bool has_frame = rows[i].frame != DRY_NONE;
        assert_int_equal(has_frame, rows[i].name[0] != '(');
        if (strcmp(rows[i].name, "loss.py:7 forward") == 0)
            assert_int_equal(dry_owners_frame_kind(owners, rows[i].frame),
                             DRY_FRAME_USER);
        if (strcmp(rows[i].name, "autograd MulBackward0") == 0)
            assert_int_equal(dry_owners_frame_kind(owners, rows[i].frame),
                             DRY_FRAME_NATIVE);
    }
    dry_owners_destroy(owners);
    program_end(&p);
}

/* Where no stacks were recorded, no thread's is missing. */
static void
a_trace_without_frames_has_no_stacks(void **state)
{
    (void)state;
    struct program p;
    size_t count;
    program_begin(&p, NULL);
    program_alloc(&p, 512, program_stack(&p, ""));
    program_alloc(&p, 512, DRY_NONE);
    program_finish(&p);
    struct dry_owners *owners = owners_at(p.timelines[0], 2, DRY_OWNER_LINE);
    const struct dry_owner *rows = dry_owners_get(owners, &count);
    assert_int_equal(count, 1);
    assert_string_equal(rows[0].name, "(no stack)");
    assert_int_equal(rows[0].count, 2);
    dry_owners_destroy(owners);
    program_end(&p);
}

static void
steps_are_those_of_birth(void **state)
{
    (void)state;
    struct program p;
    struct dry_steps *steps;
    struct dry_error err;
    size_t count;
    program_begin(&p, NULL);
    uint32_t stack = program_stack(&p, stacks[0].frames);
    for (int i = 0; i < 5; i++)
        program_alloc(&p, 512, stack);
    program_older(&p, 1024, DRY_NONE);
    program_finish(&p);
    assert_int_equal(dry_steps_create(p.timelines[0], NULL, &steps, &err), DRY_OK);
    struct dry_owners_options o;
    dry_owners_options_init(&o);
    o.key = DRY_OWNER_STEP;
    o.moment = 5;
    o.steps = steps;
    struct dry_owners *owners = owners_of(p.timelines[0], &o);
    const struct dry_owner *rows = dry_owners_get(owners, &count);
    uint64_t in_steps = 0;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].name, "(before the recording)") == 0)
            assert_int_equal(rows[i].bytes, 1024);
        else
            assert_int_equal(strncmp(rows[i].name, "step ", 5), 0);
        in_steps += strncmp(rows[i].name, "step ", 5) == 0 ? rows[i].bytes : 0;
    }
    assert_int_equal(in_steps, 5 * 512);
    dry_owners_destroy(owners);
    dry_steps_destroy(steps);
    program_end(&p);
}

static void
impossible_options_are_refused(void **state)
{
    (void)state;
    struct program p;
    program_begin(&p, NULL);
    program_alloc(&p, 512, DRY_NONE);
    program_finish(&p);
    struct dry_owners *owners = NULL;
    struct dry_error err;
    struct dry_owners_options o;
    for (int i = 0; i < 4; i++) {
        dry_owners_options_init(&o);
        o.key = i == 0   ? DRY_OWNER_STEP
                : i == 1 ? DRY_OWNER_CATEGORY
                : i == 2 ? (enum dry_owner_key)DRY_OWNER_KEY_COUNT
                         : DRY_OWNER_LINE;
        o.moment = i == 3 ? 3 : 0;
        assert_int_equal(dry_owners_create(p.timelines[0], &o, &owners, &err),
                         DRY_ERR_ARGUMENT);
        assert_null(owners);
    }
    dry_owners_destroy(NULL);
    assert_string_equal(dry_owner_key_name(DRY_OWNER_MODULE), "module");
    assert_string_equal(dry_owner_key_name((enum dry_owner_key)99), "unknown");
    program_end(&p);
}

/* --- hostile ------------------------------------------------------------------------------ */

static void
names_have_an_end(void **state)
{
    (void)state;
    enum { LENGTH = 1 << 20 };
    char *name = malloc(LENGTH);
    memset(name, 'n', LENGTH);
    name[7] = '\0';
    struct program p;
    size_t count;
    program_begin(&p, NULL);
    for (uint32_t i = 1; i <= 500; i++)
        program_alloc(&p, 512, program_stack_of(&p, "/p/net.py", i, name, LENGTH));
    program_finish(&p);
    for (unsigned key = DRY_OWNER_LINE; key <= DRY_OWNER_STACK; key++) {
        struct dry_owners *owners =
            owners_at(p.timelines[0], 500, (enum dry_owner_key)key);
        const struct dry_owner *rows = dry_owners_get(owners, &count);
        assert_true(count == 500 || count == 1);
        for (size_t i = 0; i < count; i++)
            assert_in_range(rows[i].name_length, 6, 1023);
        dry_owners_destroy(owners);
    }
    free(name);
    program_end(&p);
}

static void
an_empty_device_has_no_owners(void **state)
{
    (void)state;
    struct program p;
    size_t count;
    program_begin(&p, NULL);
    program_free(&p, program_alloc(&p, 512, DRY_NONE), DRY_NONE);
    program_finish(&p);
    struct dry_owners *owners = owners_at(p.timelines[0], 0, DRY_OWNER_LINE);
    dry_owners_get(owners, &count);
    assert_int_equal(count, 0);
    assert_int_equal(dry_owners_total(owners), 0);
    dry_owners_destroy(owners);
    program_end(&p);
}

static void
each_request_for_memory_may_fail(void **state)
{
    (void)state;
    struct program p;
    uint32_t ids[STACKS];
    program_begin(&p, NULL);
    add_stacks(&p, ids);
    for (size_t i = 0; i < 200; i++)
        program_alloc(&p, 512 * (i + 1), ids[i % STACKS]);
    program_finish(&p);
    for (unsigned key = DRY_OWNER_LINE; key <= DRY_OWNER_SIZE; key++) {
        if (key == DRY_OWNER_CATEGORY)
            continue;
        size_t n = 0;
        for (bool failed = true; failed; n++) {
            struct failing_memory fm;
            struct dry_memory memory = failing_memory_init(&fm, n);
            struct dry_owners_options o;
            struct dry_owners *owners = NULL;
            struct dry_error err;
            dry_owners_options_init(&o);
            o.memory = &memory;
            o.key = (enum dry_owner_key)key;
            o.moment = 200;
            enum dry_status status = dry_owners_create(p.timelines[0], &o, &owners, &err);
            dry_owners_destroy(owners);
            failing_memory_finish(&fm);
            failed = fm.failed;
            assert_int_equal(status, failed ? DRY_ERR_MEMORY : DRY_OK);
        }
        assert_true(n > 8);
    }
    program_end(&p);
}

/* --- real recordings ---------------------------------------------------------------------- */

/* The frame of an owner has the owner's name. */
static void
check_frame_name(const struct dry_owners *owners, const struct dry_owner *row,
                 enum dry_owner_key key)
{
    static const char suffix[] = " (freed there)";
    if (row->frame == DRY_NONE)
        return;
    size_t length = row->name_length - (row->is_of_free ? sizeof suffix - 1 : 0);
    char text[1024], part[5];
    assert_int_equal(dry_owners_write_frame(owners, row->frame, key, text, sizeof text),
                     length);
    assert_memory_equal(text, row->name, length);
    assert_true(dry_owners_write_frame(owners, row->frame, key, part, sizeof part) < 5);
    assert_memory_equal(part, row->name, strlen(part));
}

static void
check_recording(const char *name)
{
    size_t count;
    unsigned char *bytes = bytes_of_trace(name, &count);
    if (!bytes)
        skip_because("%s is not in $DRY_TEST_TRACES", name);
    struct bytes_source from;
    struct dry_source source = bytes_source_init(&from, bytes, count);
    struct dry_trace *trace = NULL;
    struct dry_replay *replay = NULL;
    struct dry_timeline *timeline = NULL;
    struct dry_state *of_peak = NULL;
    struct dry_error err;
    if (dry_trace_read(&source, NULL, &trace, &err) != DRY_OK ||
        dry_replay_create(trace, NULL, &replay, &err) != DRY_OK ||
        dry_timeline_create(replay, NULL, &timeline, &err) != DRY_OK)
        fail_msg("%s: %s", name, err.text);
    uint32_t peak = dry_timeline_get_view(timeline)->peaks[DRY_CURVE_ACTIVE].moment;
    assert_int_equal(dry_state_create(timeline, peak, &of_peak, &err), DRY_OK);
    for (unsigned key = DRY_OWNER_LINE; key <= DRY_OWNER_SIZE; key++) {
        if (key == DRY_OWNER_CATEGORY)
            continue;
        struct dry_owners *owners = owners_at(timeline, peak, (enum dry_owner_key)key);
        const struct dry_owner *rows = dry_owners_get(owners, &count);
        uint64_t sum = 0;
        for (size_t i = 0; i < count; i++)
            sum += rows[i].bytes;
        for (size_t i = 0; i < count; i++)
            check_frame_name(owners, &rows[i], (enum dry_owner_key)key);
        assert_int_equal(sum, dry_owners_total(owners));
        assert_int_equal(sum, dry_timeline_height(timeline, DRY_CURVE_ACTIVE, peak));
        if (of_peak->overlap_count == 0)
            assert_int_equal(sum, of_peak->active + of_peak->unplaced_bytes);
        dry_owners_destroy(owners);
    }
    dry_state_destroy(of_peak);
    dry_timeline_destroy(timeline);
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
    free(bytes);
}

static void
recordings_add_up_to_what_is_active(void **state)
{
    (void)state;
    static const char *const names[] = {
        "pytorch/decomfl.pickle",
        "pytorch/transformer-medium-512-train.pickle",
        "pytorch/transformer-medium-128-infer.pickle",
        "pytorch/python-stacks-only.pickle",
        "pytorch/late-start.pickle",
        "pytorch/tiny-cs336.pickle",
        "pytorch/compile-context.pickle",
        "pytorch/segments-only-fragmented.pickle",
        "pytorch/old-format-full-card.pickle",
        "pytorch/synthetic-inconsistent.pickle",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        check_recording(names[i]);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_of_a_naive_walk),
        cmocka_unit_test(stacks_are_told_apart_whole),
        cmocka_unit_test(a_trace_without_frames_has_no_stacks),
        cmocka_unit_test(steps_are_those_of_birth),
        cmocka_unit_test(impossible_options_are_refused),
        cmocka_unit_test(names_have_an_end),
        cmocka_unit_test(an_empty_device_has_no_owners),
        cmocka_unit_test(each_request_for_memory_may_fail),
        cmocka_unit_test(recordings_add_up_to_what_is_active),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
