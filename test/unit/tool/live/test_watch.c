/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A watch of pages that child processes show: those who live, who ended, who were killed and who
 * are wrong; with and without a driver that lists them.
 */
#include "support/cmocka.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live/live_summary.h"
#include "live/watch.h"

#define GIB (UINT64_C(1) << 30)

static char folder[64], facts[80];

static int
make_folder(void **state)
{
    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    strcpy(folder, "/dev/shm/drystone-test-XXXXXX");
    if (!mkdtemp(folder)) {
        strcpy(folder, "/tmp/drystone-test-XXXXXX");
        if (!mkdtemp(folder))
            return -1;
    }
    (void)snprintf(facts, sizeof facts, "%s/nvml.txt", folder);
    return setenv("DRY_TEST_NVML", facts, 1);
}

static int
remove_folder(void **state)
{
    (void)state;
    (void)unlink(facts);
    return rmdir(folder); /* fails if a page was left */
}

/* --- a program ---------------------------------------------------------------------------- */

struct child {
    pid_t pid;
    int hold, ready; /* a byte into `hold` ends it */
};

static void
show_page(const char *name, uint64_t reserved)
{
    struct dry_live_options options;
    struct dry_live *live;
    uint32_t number;
    struct dry_live_figures figures = {.reserved = reserved, .allocated = reserved / 2};
    struct dry_live_detail detail = {.reserved = reserved, .stranded = reserved / 4};
    figures.limit = DRY_LIVE_UNKNOWN;
    dry_live_options_init(&options);
    options.folder = folder;
    options.name = name;
    options.rank = 2;
    if (dry_live_create(&options, &live, NULL) != DRY_OK ||
        dry_live_add_other(live, "torch", 1, &number, NULL) != DRY_OK ||
        dry_live_put(live, number, &figures) != DRY_OK ||
        dry_live_put_detail(live, number, &detail) != DRY_OK)
        _exit(1);
    dry_live_set_uuid(live, number, "GPU-b");
}

/* `pages` pages of so many bytes each; the program ends without a word when it is let go. */
static struct child
start(const char *name, uint64_t reserved, unsigned pages)
{
    int hold[2], ready[2];
    char byte = 0;
    assert_int_equal(pipe(hold), 0);
    assert_int_equal(pipe(ready), 0);
    struct child child = {.pid = fork(), .hold = hold[1], .ready = ready[0]};
    if (child.pid == 0) {
        (void)close(hold[1]);
        for (unsigned i = 0; i < pages; i++)
            show_page(name, reserved);
        _exit(write(ready[1], "", 1) == 1 && read(hold[0], &byte, 1) == 1 ? 0 : 1);
    }
    (void)close(hold[0]);
    (void)close(ready[1]);
    assert_int_equal(read(child.ready, &byte, 1), 1);
    return child;
}

static void
end(struct child *child)
{
    (void)!write(child->hold, "", 1); /* fails if it was killed */
    (void)close(child->hold);
    (void)close(child->ready);
    assert_int_equal(waitpid(child->pid, NULL, 0), child->pid);
}

static struct watch *
create(bool has_driver)
{
    struct watch_options options = {.folder = folder, .has_driver = has_driver};
    struct watch *watch = watch_create(&options);
    assert_non_null(watch);
    assert_true(watch_sample(watch));
    return watch;
}

/* --- pages -------------------------------------------------------------------------------- */

static void
two_programs_are_there_the_larger_first(void **state)
{
    (void)state;
    struct child a = start("small", GIB, 1), b = start("large", 2 * GIB, 1);
    struct watch *watch = create(false);
    assert_int_equal(watch->process_count, 2);
    assert_non_null(watch->no_driver);
    struct watch_process *p = watch->processes[0];
    assert_int_equal(p->state, WATCH_LIVE);
    assert_int_equal(p->process, b.pid);
    assert_string_equal(p->name, "large");
    assert_int_equal(p->program.rank, 2);
    assert_int_equal(p->source_count, 1);
    assert_int_equal(watch_reserved(p), 2 * GIB);
    assert_int_equal(live_allocated(p), GIB);
    assert_int_equal(live_stranded(p), GIB / 2);
    assert_int_equal(live_headroom(p), WATCH_UNKNOWN);
    assert_string_equal(watch->processes[1]->name, "small");
    assert_ptr_equal(live_find_only(watch, "small"), watch->processes[1]);
    assert_null(live_find_only(watch, "nobody"));
    end(&a);
    end(&b);
    assert_true(watch_sample(watch));
    watch_destroy(watch);
}

static void
an_end_is_shown_once_and_cleaned_up(void **state)
{
    (void)state;
    struct child a = start("ends", GIB, 1), b = start("killed", GIB, 1);
    struct watch *watch = create(false);
    (void)kill(b.pid, SIGKILL);
    end(&a);
    end(&b);
    assert_true(watch_sample(watch));
    assert_int_equal(watch->process_count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(watch->processes[i]->state, WATCH_ENDED);
        assert_int_equal(watch_reserved(watch->processes[i]), GIB);
    }
    assert_true(watch_sample(watch));
    assert_int_equal(watch->process_count, 0);
    watch_destroy(watch);
    watch = create(false);
    assert_int_equal(watch->process_count, 0);
    watch_destroy(watch);
}

static void
a_wrong_page_says_why_and_stays(void **state)
{
    (void)state;
    char path[128];
    (void)snprintf(path, sizeof path, "%s/drystone-live-77-0", folder);
    int file = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(file >= 0);
    (void)close(file);
    struct watch *watch = create(false);
    for (int i = 0; i < 3; i++) {
        assert_true(watch_sample(watch));
        assert_int_equal(watch->process_count, 1);
        assert_int_equal(watch->processes[0]->state, WATCH_WRONG);
        assert_non_null(strstr(watch->processes[0]->why, "0 bytes"));
    }
    assert_int_equal(chmod(path, 0644), 0);
    assert_true(watch_sample(watch));
    assert_non_null(strstr(watch->processes[0]->why, "0644"));
    watch_destroy(watch);
    assert_int_equal(unlink(path), 0);
}

static void
two_pages_of_one_program_are_two_lines(void **state)
{
    (void)state;
    struct child a = start("twice", GIB, 2);
    struct watch *watch = create(false);
    assert_int_equal(watch->process_count, 2);
    assert_int_equal(watch->processes[0]->process, a.pid);
    assert_int_equal(watch->processes[1]->process, a.pid);
    assert_string_not_equal(watch->processes[0]->file_name,
                            watch->processes[1]->file_name);
    end(&a);
    assert_true(watch_sample(watch));
    watch_destroy(watch);
}

/* --- the driver --------------------------------------------------------------------------- */

static void
write_facts(const struct child *child)
{
    FILE *file = fopen(facts, "w");
    assert_non_null(file);
    fprintf(file,
            "device NVIDIA_A GPU-a %llu %llu\ndevice NVIDIA_B GPU-b %llu %llu\n"
            "process 1 %d %llu\nprocess 0 %d %llu\n",
            8ull * GIB, 1ull * GIB, 4ull * GIB, 3ull * GIB, (int)child->pid, 2ull * GIB,
            (int)getpid(), 1ull * GIB);
    assert_int_equal(fclose(file), 0);
}

static void
the_driver_knows_devices_and_all_others(void **state)
{
    (void)state;
    struct child a = start("train", GIB, 1);
    write_facts(&a);
    struct watch *watch = create(true);
    assert_null(watch->no_driver);
    assert_int_equal(watch->device_count, 2);
    assert_string_equal(watch->devices[1].name, "NVIDIA B");
    assert_int_equal(watch->devices[1].used, 3 * GIB);
    assert_int_equal(watch->process_count, 2);
    for (size_t i = 0; i < 2; i++) {
        struct watch_process *p = watch->processes[i];
        assert_int_equal(p->use_count, 1);
        if (p->process == (uint64_t)a.pid) {
            assert_int_equal(p->state, WATCH_LIVE);
            assert_int_equal(p->sources[0].device, 1);
            assert_int_equal(p->sources[0].limit, 4 * GIB);
            assert_int_equal(p->sources[0].left_bytes, GIB);
            assert_int_equal(p->uses[0].bytes, 2 * GIB);
            assert_true(live_share(&p->sources[0]) == 0.75);
        } else {
            assert_int_equal(p->state, WATCH_SEEN);
            assert_int_equal(p->process, getpid());
            assert_int_equal(watch_reserved(p), GIB);
            assert_int_equal(live_allocated(p), WATCH_UNKNOWN);
        }
    }
    end(&a);
    assert_true(watch_sample(watch));
    watch_destroy(watch);
}

static void
a_driver_that_fails_is_none(void **state)
{
    (void)state;
    (void)unlink(facts);
    struct watch *watch = create(true);
    assert_string_equal(watch->no_driver, "the NVIDIA driver's NVML does not answer");
    assert_int_equal(watch->device_count, 0);
    watch_destroy(watch);
}

/* --- requests ----------------------------------------------------------------------------- */

static void
a_request_is_answered(void **state)
{
    (void)state;
    struct dry_live_options options;
    struct dry_live *live;
    dry_live_options_init(&options);
    options.folder = folder;
    assert_int_equal(dry_live_create(&options, &live, NULL), DRY_OK);
    struct watch *watch = create(false);
    struct watch_process *p = watch->processes[0];
    struct dry_live_answer answer;
    uint64_t request, seen;
    char path[64];
    assert_int_equal(watch_request(p, "/x/y.pickle", &request, NULL), DRY_OK);
    assert_false(watch_answered(p, request, &answer));
    assert_true(dry_live_get_request(live, &seen, path, sizeof path));
    assert_string_equal(path, "/x/y.pickle");
    dry_live_answer(live, seen, 0, "42 MiB");
    assert_true(watch_answered(p, request, &answer));
    assert_int_equal(answer.result, 0);
    assert_string_equal(answer.text, "42 MiB");
    watch_destroy(watch);
    dry_live_destroy(live);
}

/* --- words -------------------------------------------------------------------------------- */

static void
sizes_have_three_digits(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } sizes[] = {{0, "0 B"},
                 {999, "999 B"},
                 {1000, "0.98 KiB"},
                 {1536, "1.50 KiB"},
                 {10 * 1024 + 100, "10.1 KiB"},
                 {999 * GIB, "999 GiB"},
                 {1023 * GIB, "1.00 TiB"},
                 {WATCH_UNKNOWN - 1, "16.0 EiB"},
                 {WATCH_UNKNOWN, "-"}};
    char text[TERM_NUMBER_BYTES];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        assert_string_equal(live_format_bytes(sizes[i].bytes, text), sizes[i].text);
    assert_string_equal(live_format_seconds(119, text), "119 s");
    assert_string_equal(live_format_seconds(180, text), "3 min");
    assert_string_equal(live_format_seconds(1e18, text), "years");
}

static void
long_names_lose_their_middle(void **state)
{
    (void)state;
    char text[LIVE_TEXT_BYTES], long_name[400];
    live_cut(text, "train.py", 8);
    assert_string_equal(text, "train.py");
    live_cut(text, "a\x1b[2Jb", 20);
    assert_string_equal(text, "a?[2Jb");
    memset(long_name, 'x', sizeof long_name);
    long_name[sizeof long_name - 1] = '\0';
    live_cut(text, long_name, 12);
    assert_string_equal(text, "xxx…xxxxxxxx");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_programs_are_there_the_larger_first),
        cmocka_unit_test(an_end_is_shown_once_and_cleaned_up),
        cmocka_unit_test(a_wrong_page_says_why_and_stays),
        cmocka_unit_test(two_pages_of_one_program_are_two_lines),
        cmocka_unit_test(the_driver_knows_devices_and_all_others),
        cmocka_unit_test(a_driver_that_fails_is_none),
        cmocka_unit_test(a_request_is_answered),
        cmocka_unit_test(sizes_have_three_digits),
        cmocka_unit_test(long_names_lose_their_middle),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
