/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs of a part of a program, which are the runs of a shorter one, and several threads on
 * one replay. The thread sanitizer is the judge of these; without it, figures are equal.
 */
#include "support/cmocka.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <drystone/drystone.h>

#include "support/bytes.h"

#define EVENTS 60

static const char *const confs[] = {"", "expandable_segments:True",
                                    "max_split_size_mb:20"};
#define CONF_COUNT (sizeof confs / sizeof *confs)

/* Write the first `count` events of a program: blocks of all sizes, most given back. */
static void
write_program(char *text, size_t capacity, int count)
{
    size_t used = (size_t)snprintf(text, capacity, "i 1000 9000000 0 0\n");
    for (int i = 1; i < count; i++) {
        bool is_free = i % 3 == 2;
        int id = is_free ? i - 1 : i;
        long size = (long)(i * 7919 % 97 + 1) * 300000;
        used += (size_t)snprintf(text + used, capacity - used, "%c %d %ld 0 %d\n",
                                 is_free ? 'f' : 'a', id, size, i);
    }
}

static struct dry_replay *
make_replay(int count, struct dry_trace **trace)
{
    char text[8192];
    struct dry_replay *replay;
    struct dry_error err;
    write_program(text, sizeof text, count);
    *trace = bytes_read_trace(text, strlen(text));
    if (dry_replay_create(*trace, NULL, &replay, &err) != DRY_OK)
        fail_msg("%s", err.text);
    return replay;
}

static struct dry_run
run_part(struct dry_replay *replay, const char *conf, size_t end_event)
{
    struct dry_run_options options;
    struct dry_run run = {.oom = true};
    struct dry_error err;
    dry_run_options_init(&options);
    options.conf = conf;
    options.find_capacity = true;
    options.end_event = end_event;
    if (dry_replay_run(replay, &options, &run, &err) != DRY_OK)
        run.oom = true; /* a thread may not call cmocka */
    return run;
}

static bool
is_equal(const struct dry_run *a, const struct dry_run *b)
{
    return !a->oom && !b->oom && a->reserved_peak_bytes == b->reserved_peak_bytes &&
           a->reserved_end_bytes == b->reserved_end_bytes &&
           a->allocated_peak_bytes == b->allocated_peak_bytes &&
           a->capacity_bytes == b->capacity_bytes && a->op_count == b->op_count &&
           a->driver_calls == b->driver_calls && a->driver_time_ns == b->driver_time_ns;
}

static void
a_part_runs_as_a_shorter_program(void **state)
{
    (void)state;
    struct dry_trace *whole, *shorter;
    struct dry_replay *replay = make_replay(EVENTS, &whole);
    for (int count = 1; count <= EVENTS; count++) {
        struct dry_replay *other = make_replay(count, &shorter);
        for (size_t i = 0; i < CONF_COUNT; i++) {
            struct dry_run part = run_part(replay, confs[i], (size_t)count);
            struct dry_run all = run_part(other, confs[i], DRY_EVENT_NONE);
            assert_true(is_equal(&part, &all));
        }
        dry_replay_destroy(other);
        dry_trace_destroy(shorter);
    }
    dry_replay_destroy(replay);
    dry_trace_destroy(whole);
}

static void
a_packing_has_no_part(void **state)
{
    (void)state;
    struct dry_trace *trace;
    struct dry_replay *replay = make_replay(EVENTS, &trace);
    struct dry_run_options options;
    struct dry_run run;
    struct dry_error err;
    dry_run_options_init(&options);
    options.place = "offline";
    options.end_event = 10;
    assert_int_equal(dry_replay_run(replay, &options, &run, &err), DRY_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "whole program"));
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
}

struct hand {
    pthread_t thread;
    struct dry_replay *replay;
    struct dry_run runs[CONF_COUNT];
};

static void *
run_all(void *self)
{
    struct hand *h = self;
    for (size_t i = 0; i < CONF_COUNT; i++)
        h->runs[i] = run_part(h->replay, confs[i], DRY_EVENT_NONE);
    return NULL;
}

static void
threads_share_a_replay(void **state)
{
    (void)state;
    struct dry_trace *trace;
    struct hand hands[4];
    struct dry_replay *replay = make_replay(EVENTS, &trace);
    for (size_t i = 0; i < 4; i++) {
        hands[i].replay = replay;
        assert_int_equal(pthread_create(&hands[i].thread, NULL, run_all, &hands[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(hands[i].thread, NULL), 0);
        for (size_t j = 0; j < CONF_COUNT; j++)
            assert_true(is_equal(&hands[i].runs[j], &hands[0].runs[j]));
    }
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_runs_as_a_shorter_program),
        cmocka_unit_test(a_packing_has_no_part),
        cmocka_unit_test(threads_share_a_replay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
