/* SPDX-License-Identifier: Apache-2.0 */
/* Work is the same whoever does it, goes on where it was cut off, and trusts no store. */
#include "support/cmocka.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/command.h"
#include "work/part.h"
#include "work/store.h"
#include "work/work.h"

/* Squares of numbers; the heaviest are the last. Task `refused` finds no memory. */
struct squares {
    atomic_size_t runs;
    atomic_size_t first; /* that was run, + 1 */
    size_t refused;
    uint64_t stamp;
};

static void
describe(void *self, size_t i, struct work_task *task)
{
    const struct squares *s = self;
    snprintf(task->key, sizeof task->key, "number %zu", i);
    task->stamp = s->stamp;
    task->weight = i;
}

static char *
run(void *self, size_t i)
{
    struct squares *s = self;
    size_t none = 0;
    atomic_compare_exchange_strong(&s->first, &none, i + 1);
    atomic_fetch_add(&s->runs, 1);
    char *text = i == s->refused ? NULL : malloc(32);
    if (text)
        snprintf(text, 32, "%zu", i * i);
    return text;
}

static bool
is_whole(const char *text)
{
    return text[0] >= '0' && text[0] <= '9';
}

static struct work
make_work(struct squares *s, size_t count)
{
    return (struct work){.name = "squares",
                         .count = count,
                         .self = s,
                         .describe = describe,
                         .run = run,
                         .is_whole = is_whole};
}

static void
assert_squares(const struct work_results *results, size_t count)
{
    assert_int_equal(results->count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(strtoull(results->texts[i], NULL, 10), i * i);
}

/* A name that nothing has, for one test. */
static const char *
make_path(void)
{
    static char path[64];
    static unsigned count;
    snprintf(path, sizeof path, "/tmp/drystone-store-%d-%u", (int)getpid(), count++);
    unlink(path);
    return path;
}

static void
every_number_of_threads_gives_the_same(void **state)
{
    (void)state;
    static const unsigned threads[] = {0, 1, 2, 7, 100};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        for (size_t count = 0; count < 300; count = count * 3 + 1) {
            struct squares s = {.refused = SIZE_MAX};
            struct work work = make_work(&s, count);
            struct work_options options = {.threads = threads[i]};
            struct work_results results;
            assert_int_equal(work_run(&work, &options, &results), EXIT_FINE);
            assert_squares(&results, count);
            assert_int_equal(results.done, count);
            assert_int_equal(s.runs, count);
            if (threads[i] == 1)
                assert_int_equal(s.first, count); /* the heaviest */
            work_results_drop(&results);
        }
    }
}

static void
a_task_without_memory_ends_the_work(void **state)
{
    (void)state;
    for (size_t refused = 0; refused < 40; refused++) {
        struct squares s = {.refused = refused};
        struct work work = make_work(&s, 40);
        struct work_options options = {.threads = 3};
        struct work_results results;
        assert_int_equal(work_run(&work, &options, &results), EXIT_MACHINE);
        work_results_drop(&results);
        assert_null(results.texts);
    }
}

static void
a_store_is_gone_on_with(void **state)
{
    (void)state;
    const char *path = make_path();
    struct work_options options = {.threads = 2, .store = path};
    struct work_results results;
    struct squares s = {.refused = 0}; /* the lightest, done last */
    struct work work = make_work(&s, 100);
    assert_int_equal(work_run(&work, &options, &results), EXIT_MACHINE);
    work_results_drop(&results);
    size_t before = s.runs;
    assert_true(before > 1);
    s = (struct squares){.refused = SIZE_MAX};
    assert_int_equal(work_run(&work, &options, &results), EXIT_FINE);
    assert_squares(&results, 100);
    assert_true(s.runs < 100);
    assert_int_equal(results.done, s.runs);
    work_results_drop(&results);

    /* More tasks: those that are new. Another stamp: all. */
    work.count = 110;
    s.runs = 0;
    assert_int_equal(work_run(&work, &options, &results), EXIT_FINE);
    assert_squares(&results, 110);
    assert_int_equal(s.runs, 10);
    work_results_drop(&results);
    s = (struct squares){.refused = SIZE_MAX, .stamp = 1};
    assert_int_equal(work_run(&work, &options, &results), EXIT_FINE);
    assert_squares(&results, 110);
    assert_int_equal(s.runs, 110);
    work_results_drop(&results);
    unlink(path);
}

static int
open_and_close(const char *name, const char *path)
{
    struct store *store;
    int code = store_open(name, path, &store);
    assert_true(code == EXIT_FINE || !store);
    int closed = store_close(store);
    return code == EXIT_FINE ? closed : code;
}

static void
run_sql(const char *path, const char *sql)
{
    sqlite3 *handle;
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    assert_int_equal(sqlite3_exec(handle, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(handle);
}

static void
a_broken_result_is_done_again(void **state)
{
    (void)state;
    const char *path = make_path();
    struct squares s = {.refused = SIZE_MAX};
    struct work work = make_work(&s, 20);
    struct work_options options = {.threads = 2, .store = path};
    struct work_results results;
    static const size_t runs[] = {20, 20 + 3,
                                  20 + 3}; /* the third finds all whole again */
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        assert_int_equal(work_run(&work, &options, &results), EXIT_FINE);
        assert_squares(&results, 20);
        assert_int_equal(s.runs, runs[i]);
        work_results_drop(&results);
        if (i == 0)
            run_sql(path, "UPDATE result SET text = 'broken' WHERE key LIKE '%7';"
                          "UPDATE result SET text = NULL WHERE key LIKE '%13'");
    }
    unlink(path);
}

static void
what_is_not_a_store_of_this_command_is_refused(void **state)
{
    (void)state;
    const char *path = make_path();
    assert_int_equal(open_and_close("fleet", path), EXIT_FINE);
    assert_int_equal(open_and_close("fleet", path), EXIT_FINE);
    assert_int_equal(open_and_close("sweep", path), EXIT_INPUT);
    run_sql(path, "UPDATE work SET version = 9");
    assert_int_equal(open_and_close("fleet", path), EXIT_INPUT);
    run_sql(path, "DROP TABLE work");
    assert_int_equal(open_and_close("fleet", path), EXIT_INPUT);
    unlink(path);

    run_sql(path, "CREATE TABLE photos(a)");
    assert_int_equal(open_and_close("fleet", path), EXIT_INPUT);
    unlink(path);

    FILE *file = fopen(path, "w");
    for (int i = 0; i < 10000; i++)
        fputs("no database", file);
    fclose(file);
    assert_int_equal(open_and_close("fleet", path), EXIT_INPUT);
    unlink(path);
    assert_int_equal(open_and_close("fleet", "/nowhere/at/all.sqlite"), EXIT_MACHINE);
}

static void
a_store_keeps_texts_as_they_are(void **state)
{
    (void)state;
    const char *path = make_path();
    struct store *store;
    char *text;
    assert_int_equal(store_open("fleet", path, &store), EXIT_FINE);
    assert_int_equal(store_put(store, "it's; DROP TABLE \"x\"", UINT64_MAX, "a"),
                     EXIT_FINE);
    assert_int_equal(store_put(store, "k", 1, "first"), EXIT_FINE);
    assert_int_equal(store_put(store, "k", 2, ""), EXIT_FINE);
    assert_int_equal(store_find(store, "k", 1, &text), EXIT_FINE);
    assert_null(text);
    assert_int_equal(store_close(store), EXIT_FINE);
    assert_int_equal(store_open("fleet", path, &store), EXIT_FINE);
    assert_int_equal(store_find(store, "k", 2, &text), EXIT_FINE);
    assert_string_equal(text, "");
    free(text);
    assert_int_equal(store_find(store, "it's; DROP TABLE \"x\"", UINT64_MAX, &text),
                     EXIT_FINE);
    assert_string_equal(text, "a");
    free(text);
    assert_int_equal(store_close(store), EXIT_FINE);
    unlink(path);
}

static int64_t
count_rows(const char *path)
{
    sqlite3 *handle;
    sqlite3_stmt *row;
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(handle, "SELECT count(*) FROM result", -1, &row, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    int64_t count = sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    sqlite3_close(handle);
    return count;
}

/* Start a process that does the squares once `gate` is closed. */
static pid_t
start_squares(const int gate[2], const char *path)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    char none;
    struct squares s = {.refused = SIZE_MAX};
    struct work work = make_work(&s, 40);
    struct work_options options = {.threads = 2, .store = path};
    struct work_results results;
    close(gate[1]);
    if (read(gate[0], &none, 1) != 0)
        _exit(99);
    _exit(work_run(&work, &options, &results));
}

static void
a_store_may_be_made_by_many_at_once(void **state)
{
    (void)state;
    enum { PROCESSES = 16 };
    for (int round = 0; round < 5; round++) {
        const char *path = make_path();
        pid_t children[PROCESSES];
        int gate[2], status;
        assert_int_equal(pipe(gate), 0);
        for (int i = 0; i < PROCESSES; i++)
            children[i] = start_squares(gate, path);
        close(gate[0]);
        close(gate[1]);
        for (int i = 0; i < PROCESSES; i++) {
            assert_int_equal(waitpid(children[i], &status, 0), children[i]);
            assert_int_equal(status, 0);
        }
        assert_int_equal(count_rows(path), 40);
        unlink(path);
    }
}

static void
change(const char *path, const char *sql)
{
    sqlite3 *handle;
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    assert_int_equal(sqlite3_exec(handle, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(handle);
}

/* What could not be written is written later, and the failed try keeps no lock. */
static void
a_write_that_failed_is_tried_again(void **state)
{
    (void)state;
    const char *path = make_path();
    struct store *store;
    char *text;
    assert_int_equal(store_open("fleet", path, &store), EXIT_FINE);
    assert_int_equal(store_put(store, "a", 1, "first"), EXIT_FINE);
    assert_int_equal(store_put(store, "b", 1, "second"), EXIT_FINE);
    change(path, "ALTER TABLE result RENAME TO gone");
    assert_int_not_equal(store_find(store, "b", 1, &text), EXIT_FINE);
    change(path, "ALTER TABLE gone RENAME TO result");
    assert_int_equal(store_close(store), EXIT_FINE);
    assert_int_equal(count_rows(path), 2);
    unlink(path);
}

/* One that waits for its next result keeps no other from writing. */
static void
two_commands_write_a_store_in_turn(void **state)
{
    (void)state;
    const char *path = make_path();
    struct store *stores[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(store_open("fleet", path, &stores[i]), EXIT_FINE);
    assert_int_equal(store_put(stores[0], "a", 1, "first"), EXIT_FINE);
    assert_int_equal(store_put(stores[1], "b", 1, "second"), EXIT_FINE);
    for (int i = 0; i < 2; i++)
        assert_int_equal(store_close(stores[i]), EXIT_FINE);
    assert_int_equal(count_rows(path), 2);
    unlink(path);
}

static void
parts_are_the_whole(void **state)
{
    (void)state;
    const char *path = make_path();
    char part[32], file[128];
    struct work_results results;
    struct squares s = {.refused = SIZE_MAX};
    struct work work = make_work(&s, 50);
    struct work_options options = {.threads = 2, .store = path, .part = part};
    for (int i = 0; i < 7; i += i == 2 ? 2 : 1) { /* all but the third */
        snprintf(part, sizeof part, "%d/7", i);
        for (int times = 0; times < 2; times++) {
            assert_int_equal(work_run(&work, &options, &results), EXIT_FINE);
            assert_true(results.is_elsewhere);
            work_results_drop(&results);
        }
    }
    assert_int_equal(s.runs, 50 - 7); /* a part that is complete is not done again */
    options.part = NULL;
    options.does_merge = true;
    assert_int_equal(work_run(&work, &options, &results), EXIT_FINE);
    assert_false(results.is_elsewhere);
    assert_squares(&results, 50);
    assert_int_equal(results.done, 7);
    work_results_drop(&results);

    /* A part of another run beside them is not mixed in. */
    snprintf(part, sizeof part, "1/3");
    options = (struct work_options){.threads = 1, .store = path, .part = part};
    assert_int_equal(work_run(&work, &options, &results), EXIT_FINE);
    work_results_drop(&results);
    options = (struct work_options){.threads = 1, .store = path, .does_merge = true};
    assert_int_equal(work_run(&work, &options, &results), EXIT_INPUT);
    work_results_drop(&results);
    for (int count = 3; count < 8; count += 4) {
        for (int i = 0; i < count; i++) {
            snprintf(file, sizeof file, "%s.part-%d-of-%d", path, i, count);
            unlink(file);
        }
    }
    assert_int_equal(work_run(&work, &options, &results), EXIT_INPUT); /* none is there */
    work_results_drop(&results);
    unlink(path);
}

static void
a_part_that_was_cut_off_is_not_complete(void **state)
{
    (void)state;
    const char *path = make_path();
    char file[128];
    struct work_results results;
    struct squares s = {.refused = 1}; /* of part 0 of 2 the last but one */
    struct work work = make_work(&s, 40);
    struct work_options options = {.threads = 1, .store = path, .part = "0/2"};
    assert_int_equal(work_run(&work, &options, &results), EXIT_MACHINE);
    work_results_drop(&results);
    snprintf(file, sizeof file, "%s.part-0-of-2", path);
    assert_int_not_equal(access(file, F_OK), 0);
    s = (struct squares){.refused = SIZE_MAX};
    assert_int_equal(work_run(&work, &options, &results), EXIT_FINE);
    work_results_drop(&results);
    assert_int_equal(access(file, F_OK), 0);
    assert_true(s.runs > 0 && s.runs < 20);
    unlink(file);
}

/* An environment for part_parse(). */
static const char *const *environment;

static char *
get(const char *name)
{
    for (size_t i = 0; environment[i]; i += 2)
        if (strcmp(environment[i], name) == 0)
            return (char *)(uintptr_t)environment[i + 1];
    return NULL;
}

static void
parts_are_told_or_found(void **state)
{
    (void)state;
    static const char *const none[] = {NULL};
    static const char *const mpi[] = {"OMPI_COMM_WORLD_RANK", "2", "OMPI_COMM_WORLD_SIZE",
                                      "4", NULL};
    static const char *const array[] = {"SLURM_ARRAY_TASK_ID", "0",
                                        "SLURM_ARRAY_TASK_COUNT", "9", NULL};
    static const char *const batch[] = {"SLURM_PROCID", "0", "SLURM_NTASKS", "64", NULL};
    static const char *const index[] = {"JOB_COMPLETION_INDEX", "5", NULL};
    static const char *const alone[] = {"RANK", "0", "WORLD_SIZE", "1", NULL};
    static const char *const junk[] = {"RANK", "0x1", "WORLD_SIZE",
                                       "99999999999999999999", NULL};
    static const struct {
        const char *text;
        const char *const *environment;
        size_t number, count; /* count 0: refused */
    } cases[] = {
        {"0/1", none, 0, 1},
        {"7/8", mpi, 7, 8},
        {"8/8", none, 0, 0},
        {"/8", none, 0, 0},
        {"1/", none, 0, 0},
        {"1/0", none, 0, 0},
        {"-1/8", none, 0, 0},
        {"1/8x", none, 0, 0},
        {"1", none, 0, 0},
        {"", none, 0, 0},
        {"auto", none, 0, 0},
        {"auto", mpi, 2, 4},
        {"auto/4", mpi, 2, 4},
        {"auto/5", mpi, 0, 0},
        {"auto", array, 0, 9},
        {"auto", batch, 0, 0},
        {"auto", index, 0, 0},
        {"auto/6", index, 5, 6},
        {"auto/5", index, 0, 0},
        {"auto", alone, 0, 0},
        {"auto", junk, 0, 0},
        {"auto/x", index, 0, 0},
        {"autos", mpi, 0, 0},
        {"1000001/1000002", none, 0, 0},
        {"1/99999999999999999999999", none, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct part part;
        const char *why = NULL;
        environment = cases[i].environment;
        assert_int_equal(part_parse(cases[i].text, get, &part, &why), cases[i].count > 0);
        assert_int_equal(!why, cases[i].count > 0);
        if (why)
            continue;
        assert_int_equal(part.number, cases[i].number);
        assert_int_equal(part.count, cases[i].count);
    }
    struct part part;
    environment = batch; /* the script of a batch job is one process */
    assert_null(part_find_launcher(get, false, &part));
    environment = index;
    assert_null(part_find_launcher(get, false, &part));
    environment = mpi;
    assert_true(part_find_launcher(get, false, &part)->starts_ranks);
}

static void
one_of_many_is_refused(void **state)
{
    (void)state;
    struct squares s = {.refused = SIZE_MAX};
    struct work work = make_work(&s, 5);
    struct work_options options = {.threads = 1};
    struct work_results results;
    setenv("RANK", "1", 1); /* torchrun has no MPI, whatever the tool is built with */
    setenv("WORLD_SIZE", "2", 1);
    assert_int_equal(work_run(&work, &options, &results), EXIT_USAGE);
    work_results_drop(&results);
    unsetenv("RANK");
    unsetenv("WORLD_SIZE");
    assert_int_equal(s.runs, 0);
    options.part = "0/2"; /* without a store */
    assert_int_equal(work_run(&work, &options, &results), EXIT_USAGE);
    work_results_drop(&results);
}

static void
one_of_many_may_work_alone(void **state)
{
    (void)state;
    struct squares s = {.refused = SIZE_MAX};
    struct work work = make_work(&s, 5);
    struct work_options options = {.threads = 1, .is_local = true};
    struct work_results results;
    setenv("RANK", "1", 1);
    setenv("WORLD_SIZE", "2", 1);
    assert_int_equal(work_run(&work, &options, &results), EXIT_FINE);
    unsetenv("RANK");
    unsetenv("WORLD_SIZE");
    assert_squares(&results, 5);
    assert_false(results.is_elsewhere);
    work_results_drop(&results);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_of_threads_gives_the_same),
        cmocka_unit_test(a_task_without_memory_ends_the_work),
        cmocka_unit_test(a_store_is_gone_on_with),
        cmocka_unit_test(a_broken_result_is_done_again),
        cmocka_unit_test(what_is_not_a_store_of_this_command_is_refused),
        cmocka_unit_test(a_store_keeps_texts_as_they_are),
        cmocka_unit_test(a_store_may_be_made_by_many_at_once),
        cmocka_unit_test(a_write_that_failed_is_tried_again),
        cmocka_unit_test(two_commands_write_a_store_in_turn),
        cmocka_unit_test(parts_are_the_whole),
        cmocka_unit_test(a_part_that_was_cut_off_is_not_complete),
        cmocka_unit_test(parts_are_told_or_found),
        cmocka_unit_test(one_of_many_is_refused),
        cmocka_unit_test(one_of_many_may_work_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
