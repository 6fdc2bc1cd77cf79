/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A program's page, read by another process: the figures are the pool's, each moment is
 * whole, a killed writer is known, and files that are no pages are refused.
 */
#include "support/cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <drystone/live.h>

#include "support/failing_memory.h"
#include "support/pool_run.h"

#define MIB (UINT64_C(1) << 20)
#define PATH_ROOM 256

static char folder[64];

static int
make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/dev/shm/drystone-test-XXXXXX");
    if (mkdtemp(folder))
        return 0;
    strcpy(folder, "/tmp/drystone-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int
remove_folder(void **state)
{
    (void)state;
    return rmdir(folder); /* fails if a test has left a page */
}

static struct dry_live *
create(void)
{
    struct dry_live_options options;
    struct dry_live *live = NULL;
    struct dry_error err;
    dry_live_options_init(&options);
    options.folder = folder;
    options.rank = 3;
    options.world = 8;
    options.labels = "pod=train-3";
    assert_int_equal(dry_live_create(&options, &live, &err), DRY_OK);
    return live;
}

static struct dry_live_reader *
open_page(const char *name)
{
    struct dry_live_reader *reader = NULL;
    struct dry_error err = {0};
    if (dry_live_open(folder, name, NULL, &reader, &err) != DRY_OK)
        fail_msg("%s", err.text);
    return reader;
}

/* --- figures ------------------------------------------------------------------------------ */

static void
expect_sums(const struct dry_live_source *s, struct dry_pool *pool)
{
    struct dry_stats stats;
    struct dry_pool_explanation why = DRY_INIT(struct dry_pool_explanation);
    dry_pool_get_stats(pool, &stats);
    assert_int_equal(dry_pool_explain(pool, 1, 0, &why), DRY_OK);
    uint64_t reserved = (uint64_t)stats.reserved_bytes.all.current;
    uint64_t allocated = (uint64_t)stats.allocated_bytes.all.current;
    assert_int_equal(s->figures.reserved, reserved);
    assert_int_equal(s->figures.allocated, allocated);
    assert_int_equal(s->figures.active, stats.active_bytes.all.current);
    assert_int_equal(s->figures.requested, stats.requested_bytes.all.current);
    assert_int_equal(s->figures.retries, stats.num_alloc_retries);
    assert_int_equal(s->figures.ooms, stats.num_ooms);
    assert_int_equal(s->detail.pending, s->figures.active - allocated);
    assert_int_equal(s->detail.largest_hole, why.largest_hole_any);
    assert_int_equal(allocated + s->detail.pending + s->detail.releasable +
                         s->detail.stranded,
                     s->detail.reserved);
    if (why.pending_bytes == 0)
        assert_int_equal(s->detail.releasable, why.releasable_bytes);
}

static void
expect_lanes(const struct dry_live_detail *d)
{
    struct dry_live_lane all = {0};
    for (uint32_t i = 0; i < d->lane_count; i++) {
        const struct dry_live_lane *lane = &d->lanes[i];
        assert_int_equal(lane->reserved, lane->allocated + lane->pending +
                                             lane->releasable + lane->stranded);
        assert_true(i == 0 || d->lanes[i - 1].reserved >= lane->reserved);
        all.reserved += lane->reserved;
        all.stranded += lane->stranded;
        all.releasable += lane->releasable;
    }
    assert_int_equal(d->more_lanes, 0);
    assert_int_equal(all.reserved + d->stock, d->reserved);
    assert_int_equal(all.stranded, d->stranded);
    assert_int_equal(all.releasable + d->stock, d->releasable);
}

static void
a_page_has_what_the_pool_counts(void **state)
{
    (void)state;
    static const struct {
        enum dry_placement placement;
        const char *conf;
    } runs[] = {{DRY_PLACEMENT_TORCH, ""},
                {DRY_PLACEMENT_TORCH, "expandable_segments:True"},
                {DRY_PLACEMENT_PAGED, ""}};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
        for (uint64_t seed = 1; seed <= 20; seed++) {
            struct pool_run run;
            struct dry_live_source source;
            uint32_t number;
            pool_run_begin(&run, runs[i].placement, runs[i].conf, 64 * MIB, NULL);
            pool_run_steps(&run, seed, 200 * seed % 997);
            struct dry_live *live = create();
            assert_int_equal(dry_live_add_pool(live, "it", 2, run.pool, &number, NULL),
                             DRY_OK);
            struct dry_live_reader *reader = open_page(dry_live_name(live));
            assert_int_equal(dry_live_count(reader), 1);
            dry_live_update(live);
            assert_int_equal(dry_live_read(reader, number, &source, NULL), DRY_OK);
            assert_string_equal(source.name, "it");
            assert_int_equal(source.device, 2);
            assert_int_equal(source.updates, 1);
            expect_sums(&source, run.pool);
            expect_lanes(&source.detail);
            assert_int_equal(dry_live_read(reader, 1, &source, NULL), DRY_ERR_ARGUMENT);
            dry_live_close(reader);
            dry_live_destroy(live);
            pool_run_end(&run);
        }
}

/* The head, what is put, and the walk that rests. */
static void
what_is_put_is_read(void **state)
{
    (void)state;
    struct dry_live *live = create();
    struct dry_live_source s;
    uint32_t number;
    assert_int_equal(dry_live_add_other(live, "native", 0, &number, NULL), DRY_OK);
    struct dry_live_figures figures = {.reserved = 5, .limit = 9};
    struct dry_live_detail detail = {.reserved = 5, .lane_count = 1, .line_count = 1};
    detail.lanes[0].stranded = 4;
    strcpy(detail.lines[0].text, "train.py:7 step");
    assert_int_equal(dry_live_put(live, number, &figures), DRY_OK);
    assert_int_equal(dry_live_put_detail(live, number, &detail), DRY_OK);
    assert_int_equal(dry_live_put(live, number + 1, &figures), DRY_ERR_ARGUMENT);
    detail.lane_count = DRY_LIVE_LANES_MAX + 1;
    assert_int_equal(dry_live_put_detail(live, number, &detail), DRY_ERR_ARGUMENT);
    dry_live_set_uuid(live, number, "GPU-1");
    struct dry_live_reader *reader = open_page(dry_live_name(live));
    const struct dry_live_program *program = dry_live_get_program(reader);
    assert_int_equal(program->process, getpid());
    assert_int_equal(program->rank, 3);
    assert_int_equal(program->world, 8);
    assert_string_equal(program->labels, "pod=train-3");
    assert_true(program->name[0] != '\0');
    assert_int_equal(dry_live_get_owner(reader), geteuid());
    assert_int_equal(dry_live_read(reader, number, &s, NULL), DRY_OK);
    assert_int_equal(s.figures.limit, 9);
    assert_int_equal(s.detail.lanes[0].stranded, 4);
    assert_string_equal(s.detail.lines[0].text, "train.py:7 step");
    assert_string_equal(s.uuid, "GPU-1");
    assert_true(s.detail.at_ns >= s.updated_ns);
    for (uint32_t i = 1; i < DRY_LIVE_SOURCES_MAX; i++)
        assert_int_equal(dry_live_add_other(live, "more", 0, &number, NULL), DRY_OK);
    assert_int_equal(dry_live_add_other(live, "more", 0, &number, NULL), DRY_ERR_LIMIT);
    assert_int_equal(dry_live_count(reader), DRY_LIVE_SOURCES_MAX);
    dry_live_close(reader);
    dry_live_destroy(live);
}

/* Updates follow a thread of the page's own, and a pool that ends is forgotten first. */
static void
a_thread_updates_the_page(void **state)
{
    (void)state;
    struct pool_run run;
    struct dry_live_source source = {0};
    uint32_t number;
    pool_run_begin(&run, DRY_PLACEMENT_PAGED, "", 64 * MIB, NULL);
    struct dry_live *live = create();
    assert_int_equal(dry_live_add_pool(live, "paged", 0, run.pool, &number, NULL),
                     DRY_OK);
    assert_int_equal(dry_live_start(live, 10, NULL), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_live_start(live, 1000, NULL), DRY_OK);
    assert_int_equal(dry_live_start(live, 1000, NULL), DRY_ERR_ARGUMENT);
    struct dry_live_reader *reader = open_page(dry_live_name(live));
    pool_run_steps(&run, 1, 500);
    uint64_t before = source.updates;
    while (source.updates < before + 3)
        assert_int_equal(dry_live_read(reader, number, &source, NULL), DRY_OK);
    dry_live_stop(live);
    dry_live_forget(live, number);
    pool_run_end(&run);
    dry_live_update(live);
    dry_live_close(reader);
    dry_live_destroy(live);
}

static void
a_pinned_cache_is_a_source(void **state)
{
    (void)state;
    struct dry_pinned_options options;
    struct dry_pinned *pinned;
    struct dry_live_source s;
    void *block;
    uint32_t number;
    dry_pinned_options_init(&options);
    assert_int_equal(dry_pinned_create(&options, &pinned, NULL), DRY_OK);
    assert_int_equal(dry_pinned_alloc(pinned, 3 * MIB, DRY_PINNED_NO_STREAM, &block),
                     DRY_OK);
    struct dry_live *live = create();
    assert_int_equal(dry_live_add_pinned(live, "pinned", pinned, &number, NULL), DRY_OK);
    dry_live_update(live);
    struct dry_live_reader *reader = open_page(dry_live_name(live));
    assert_int_equal(dry_live_read(reader, number, &s, NULL), DRY_OK);
    assert_int_equal(s.kind, DRY_LIVE_PINNED);
    assert_int_equal(s.device, -1);
    assert_true(s.figures.allocated >= 3 * MIB);
    assert_int_equal(s.figures.requested, 3 * MIB);
    assert_int_equal(s.figures.active + s.detail.releasable + s.detail.stranded,
                     s.figures.reserved);
    dry_live_close(reader);
    dry_live_destroy(live);
    dry_pinned_free(pinned, block);
    dry_pinned_destroy(pinned);
}

/* An update leaves alone what is put for a cache that is not of this library. */
static void
figures_of_another_pinned_cache_are_put(void **state)
{
    (void)state;
    struct dry_live_figures figures = {.reserved = 8 * MIB, .limit = DRY_LIVE_UNKNOWN};
    struct dry_live_source s;
    uint32_t number;
    struct dry_live *live = create();
    assert_int_equal(dry_live_add_pinned(live, "pinned", NULL, &number, NULL), DRY_OK);
    assert_int_equal(dry_live_put(live, number, &figures), DRY_OK);
    dry_live_update(live);
    struct dry_live_reader *reader = open_page(dry_live_name(live));
    assert_int_equal(dry_live_read(reader, number, &s, NULL), DRY_OK);
    assert_int_equal(s.kind, DRY_LIVE_PINNED);
    assert_int_equal(s.device, -1);
    assert_int_equal(s.updates, 1);
    assert_int_equal(s.figures.reserved, 8 * MIB);
    dry_live_close(reader);
    dry_live_destroy(live);
}

/* --- one moment --------------------------------------------------------------------------- */

/* Every number of what is put is the same one. */
static void
put_all(struct dry_live *live, uint64_t n)
{
    struct dry_live_figures figures = {.reserved = n, .ooms = n, .driver_frees = n};
    struct dry_live_detail detail = {.reserved = n, .lane_count = DRY_LIVE_LANES_MAX};
    for (uint32_t i = 0; i < DRY_LIVE_LANES_MAX; i++)
        detail.lanes[i] = (struct dry_live_lane){.stream = n, .largest_hole = n};
    dry_live_put(live, 0, &figures);
    dry_live_put_detail(live, 0, &detail);
}

static void
expect_one_moment(const struct dry_live_source *s)
{
    assert_int_equal(s->figures.ooms, s->figures.reserved);
    assert_int_equal(s->figures.driver_frees, s->figures.reserved);
    for (uint32_t i = 0; i < s->detail.lane_count; i++) {
        assert_int_equal(s->detail.lanes[i].stream, s->detail.reserved);
        assert_int_equal(s->detail.lanes[i].largest_hole, s->detail.reserved);
    }
}

/* A child puts without end, and tells its page's name. */
static pid_t
start_writer(char *name, size_t capacity)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        uint32_t number;
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves it alone */
        struct dry_live *live = create();
        if (dry_live_add_other(live, "other", 0, &number, NULL) != DRY_OK)
            _exit(1);
        const char *text = dry_live_name(live);
        if (write(ends[1], text, strlen(text) + 1) < 0)
            _exit(1);
        for (uint64_t n = 1;; n++)
            put_all(live, n);
    }
    ssize_t got = read(ends[0], name, capacity);
    assert_true(got > 0 && name[got - 1] == '\0');
    close(ends[0]);
    close(ends[1]);
    return child;
}

/* Readers see moments while the writer lives; after its death the last one, or half of one. */
static void
a_killed_writer_is_known(void **state)
{
    (void)state;
    unsigned half = 0, whole = 0;
    for (unsigned round = 0; round < 60; round++) {
        char name[PATH_ROOM];
        struct dry_live_source source;
        struct dry_error err;
        uint64_t process = 0;
        pid_t child = start_writer(name, sizeof name);
        struct dry_live_reader *reader = open_page(name);
        assert_true(dry_live_is_alive(reader, &process));
        assert_int_equal(process, child);
        assert_int_equal(dry_live_remove(reader, NULL), DRY_ERR_ARGUMENT);
        for (unsigned i = 0; i < 20 + round; i++)
            if (dry_live_read(reader, 0, &source, NULL) == DRY_OK)
                expect_one_moment(&source);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        assert_false(dry_live_is_alive(reader, &process));
        enum dry_status status = dry_live_read(reader, 0, &source, &err);
        if (status == DRY_OK) {
            whole++;
            expect_one_moment(&source);
        } else {
            half++;
            assert_int_equal(status, DRY_ERR_FORMAT);
            assert_non_null(strstr(err.text, "half written"));
        }
        assert_int_equal(dry_live_remove(reader, NULL), DRY_OK);
        dry_live_close(reader);
    }
    assert_int_equal(half + whole, 60);
}

/* A child of a fork has no part in the page. */
static void
a_child_has_no_part_in_the_page(void **state)
{
    (void)state;
    struct dry_live *live = create();
    struct dry_live_source s;
    uint32_t number;
    int result;
    assert_int_equal(dry_live_add_other(live, "other", 0, &number, NULL), DRY_OK);
    put_all(live, 1);
    pid_t child = fork();
    if (child == 0) {
        put_all(live, 2);
        bool is_refused =
            dry_live_add_other(live, "child", 0, &number, NULL) == DRY_ERR_ARGUMENT &&
            dry_live_start(live, 1000, NULL) == DRY_ERR_ARGUMENT;
        dry_live_update(live);
        dry_live_stop(live);
        dry_live_destroy(live);
        _exit(is_refused ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    uint64_t process;
    struct dry_live_reader *reader = open_page(dry_live_name(live));
    assert_true(dry_live_is_alive(reader, &process));
    assert_int_equal(dry_live_count(reader), 1);
    assert_int_equal(dry_live_read(reader, 0, &s, NULL), DRY_OK);
    assert_int_equal(s.figures.reserved, 1);
    dry_live_close(reader);
    dry_live_destroy(live);
}

/* --- requests ----------------------------------------------------------------------------- */

static void
a_request_is_answered(void **state)
{
    (void)state;
    struct dry_live *live = create();
    struct dry_live_answer answer;
    struct dry_live_reader *reader = open_page(dry_live_name(live));
    char path[PATH_ROOM], small[4], long_path[DRY_LIVE_PATH_BYTES + 1];
    uint64_t number = 0, seen = 0;
    assert_false(dry_live_get_request(live, &seen, path, sizeof path));
    assert_int_equal(dry_live_request(reader, "/tmp/a.pickle", &number, NULL), DRY_OK);
    assert_int_equal(number, 1);
    assert_true(dry_live_get_request(live, &seen, path, sizeof path));
    assert_int_equal(seen, 1);
    assert_string_equal(path, "/tmp/a.pickle");
    assert_true(dry_live_get_request(live, &seen, small, sizeof small));
    assert_string_equal(small, "/tm");
    dry_live_answer(live, seen, ENOSPC, "the disk is full");
    assert_false(dry_live_get_request(live, &seen, path, sizeof path));
    assert_int_equal(dry_live_get_answer(reader, &answer, NULL), DRY_OK);
    assert_int_equal(answer.number, 1);
    assert_int_equal(answer.result, ENOSPC);
    assert_string_equal(answer.text, "the disk is full");
    memset(long_path, 'x', sizeof long_path - 1);
    long_path[sizeof long_path - 1] = '\0';
    assert_int_equal(dry_live_request(reader, long_path, &number, NULL), DRY_ERR_LIMIT);
    assert_int_equal(dry_live_request(reader, "/tmp/b.pickle", &number, NULL), DRY_OK);
    assert_int_equal(number, 2);
    dry_live_close(reader);
    dry_live_destroy(live);
}

/* Root may write any file, so it takes another user's part. */
static void
a_page_that_cannot_be_written_takes_no_request(void **state)
{
    (void)state;
    const uid_t other = 65534;
    const bool is_root = geteuid() == 0;
    struct dry_live *live = create();
    char path[PATH_ROOM];
    struct dry_error err = {0};
    uint64_t number = 7;
    snprintf(path, sizeof path, "%s/%s", folder, dry_live_name(live));
    assert_int_equal(chmod(path, 0400), 0);
    if (is_root) {
        assert_int_equal(chmod(folder, 0755), 0);
        assert_int_equal(chown(path, other, (gid_t)-1), 0);
        assert_int_equal(seteuid(other), 0);
    }
    struct dry_live_reader *reader = open_page(dry_live_name(live));
    enum dry_status status = dry_live_request(reader, "/tmp/a.pickle", &number, &err);
    dry_live_close(reader);
    if (is_root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(status, DRY_ERR_SYSTEM);
    assert_int_equal(err.os_errno, EBADF);
    assert_int_equal(number, 7);
    dry_live_destroy(live);
}

/* --- strangers ---------------------------------------------------------------------------- */

static void
page_path(char *path, const char *name)
{
    snprintf(path, PATH_ROOM, "%s/%s", folder, name);
}

static void
write_file(const char *path, const void *bytes, size_t count)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, count), count);
    close(file);
}

static void
expect_refused(const char *name, enum dry_status wanted, const char *text)
{
    struct dry_live_reader *reader = NULL;
    struct dry_error err = {0};
    assert_int_equal(dry_live_open(folder, name, NULL, &reader, &err), wanted);
    assert_null(reader);
    if (!strstr(err.text, text))
        fail_msg("\"%s\" instead of \"%s\"", err.text, text);
}

static void
files_that_are_no_pages_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"",
                                        "drystone-live-",
                                        "drystone-live-1",
                                        "drystone-live-1-",
                                        "drystone-live--1",
                                        "drystone-live-1-2-3",
                                        "drystone-live-1-2x",
                                        "drystone-live-../1-2",
                                        "drystone-live-12345678901-2",
                                        "other-1-2"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        expect_refused(names[i], DRY_ERR_ARGUMENT, "not a page's name");
    char path[PATH_ROOM], other[PATH_ROOM];
    const char *name = "drystone-live-1-2";
    struct dry_live_page *page = calloc(1, sizeof *page);
    page_path(path, name);
    page_path(other, "other");
    expect_refused(name, DRY_ERR_SYSTEM, "No such file");
    write_file(path, page, sizeof *page - 1);
    expect_refused(name, DRY_ERR_FORMAT, "expected");
    write_file(path, page, sizeof *page);
    expect_refused(name, DRY_ERR_FORMAT, "no page, or not yet");
    page->magic = DRY_LIVE_MAGIC;
    page->version = 2;
    write_file(path, page, sizeof *page);
    expect_refused(name, DRY_ERR_FORMAT, "version 2");
    page->version = DRY_LIVE_VERSION;
    page->page_bytes = DRY_LIVE_PAGE_BYTES;
    memset(page->program.name, 'x', sizeof page->program.name);
    write_file(path, page, sizeof *page);
    expect_refused(name, DRY_ERR_FORMAT, "no end");
    page->program.name[0] = '\0';
    write_file(path, page, sizeof *page);
    assert_int_equal(chmod(path, 0644), 0);
    expect_refused(name, DRY_ERR_FORMAT, "mode 0644");
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(link(path, other), 0);
    expect_refused(name, DRY_ERR_FORMAT, "one name");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(other, path), 0);
    expect_refused(name, DRY_ERR_SYSTEM, "cannot be opened");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(other), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_refused(name, DRY_ERR_FORMAT, "not a plain file");
    assert_int_equal(unlink(path), 0);
    free(page);
}

/* A page whose bytes are those of chance is read without harm, or refused. */
static void
pages_of_chance_do_no_harm(void **state)
{
    (void)state;
    struct dry_live *live = create();
    struct dry_live_page *good = malloc(sizeof *good), *bad = malloc(sizeof *bad);
    char path[PATH_ROOM];
    uint32_t number;
    assert_int_equal(dry_live_add_other(live, "other", 0, &number, NULL), DRY_OK);
    put_all(live, 7);
    page_path(path, dry_live_name(live));
    int file = open(path, O_RDONLY);
    assert_int_equal(read(file, good, sizeof *good), sizeof *good);
    close(file);
    dry_live_destroy(live);
    struct random random;
    random_init(&random, 20261127);
    unsigned refused = 0;
    const char *name = "drystone-live-1-1";
    page_path(path, name);
    for (unsigned round = 0; round < 2000; round++) {
        *bad = *good;
        size_t capacity = round % 2
                              ? sizeof *bad
                              : offsetof(struct dry_live_page, slots) +
                                    offsetof(struct dry_live_slot, source.detail.lanes);
        for (unsigned n = 1 + (unsigned)random_below(&random, 8); n > 0; n--)
            ((unsigned char *)bad)[random_below(&random, capacity)] =
                (unsigned char)random_below(&random, 256);
        write_file(path, bad, sizeof *bad);
        struct dry_live_reader *reader = NULL;
        struct dry_live_answer answer;
        if (dry_live_open(folder, name, NULL, &reader, NULL) != DRY_OK) {
            refused++;
            continue;
        }
        for (uint32_t i = 0; i < dry_live_count(reader); i++) {
            struct dry_live_source s;
            if (dry_live_read(reader, i, &s, NULL) != DRY_OK) {
                refused++;
                continue;
            }
            assert_true(s.detail.lane_count <= DRY_LIVE_LANES_MAX);
            assert_true(s.detail.line_count <= DRY_LIVE_LINES_MAX);
            assert_true(strnlen(s.name, sizeof s.name) < sizeof s.name);
        }
        (void)!dry_live_get_answer(reader, &answer, NULL);
        dry_live_close(reader);
    }
    assert_true(refused > 0);
    unlink(path);
    free(good);
    free(bad);
}

/* The file of a page that is cut while it is open is an error, not the end of the reader. */
static void
a_file_that_shrinks_is_an_error(void **state)
{
    (void)state;
    struct dry_live_page *page = calloc(1, sizeof *page);
    char path[PATH_ROOM];
    const char *name = "drystone-live-1-3";
    struct dry_live_source source;
    page->magic = DRY_LIVE_MAGIC;
    page->version = DRY_LIVE_VERSION;
    page->page_bytes = DRY_LIVE_PAGE_BYTES;
    page->source_count = 1;
    page_path(path, name);
    write_file(path, page, sizeof *page);
    struct dry_live_reader *reader = open_page(name);
    struct dry_error err;
    page->slots[0].sequence = 1;
    write_file(path, page, sizeof *page);
    assert_int_equal(dry_live_read(reader, 0, &source, &err), DRY_ERR_FORMAT);
    assert_non_null(strstr(err.text, "half written"));
    assert_int_equal(truncate(path, offsetof(struct dry_live_page, slots)), 0);
    errno = EINTR;
    assert_int_equal(dry_live_read(reader, 0, &source, &err), DRY_ERR_SYSTEM);
    assert_int_equal(err.os_errno, ENODATA);
    dry_live_close(reader);
    unlink(path);
    free(page);
}

/* --- lists, failures ---------------------------------------------------------------------- */

static enum dry_status
count_name(void *self, const char *name)
{
    unsigned *count = self;
    assert_non_null(strstr(name, "drystone-live-"));
    return ++*count < 2 ? DRY_OK : DRY_END;
}

static void
pages_are_listed(void **state)
{
    (void)state;
    char path[PATH_ROOM];
    unsigned count = 0;
    struct dry_live *live[3];
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(dry_live_list(folder, count_name, &count, NULL), DRY_OK);
        assert_int_equal(count, i > 1 ? 1 : i);
        count = 0;
        live[i] = create();
        if (i == 1) {
            dry_live_destroy(live[1]);
            live[1] = NULL;
        }
    }
    page_path(path, "drystone-live-x");
    write_file(path, "", 0);
    assert_int_equal(dry_live_list(folder, count_name, &count, NULL), DRY_END);
    assert_int_equal(count, 2);
    unlink(path);
    dry_live_destroy(live[0]);
    dry_live_destroy(live[2]);
    struct dry_error err;
    assert_int_equal(dry_live_list("/nowhere", count_name, &count, &err), DRY_ERR_SYSTEM);
    assert_int_equal(err.os_errno, ENOENT);
}

static void
without_memory_there_is_no_page(void **state)
{
    (void)state;
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct dry_live_options options;
        struct dry_live *live = NULL;
        struct dry_live_reader *reader = NULL;
        dry_live_options_init(&options);
        options.folder = folder;
        options.memory = &memory;
        enum dry_status status = dry_live_create(&options, &live, NULL);
        if (status == DRY_OK)
            status = dry_live_open(folder, dry_live_name(live), &memory, &reader, NULL);
        dry_live_close(reader);
        dry_live_destroy(live);
        failing_memory_finish(&fm);
        if (!fm.failed) {
            assert_int_equal(status, DRY_OK);
            break;
        }
        assert_int_equal(status, DRY_ERR_MEMORY);
    }
    struct dry_live_options options;
    struct dry_live *live = NULL;
    struct dry_error err;
    dry_live_options_init(&options);
    options.folder = "/nowhere";
    assert_int_equal(dry_live_create(&options, &live, &err), DRY_ERR_SYSTEM);
    assert_int_equal(err.os_errno, ENOENT);
    options.detail_rest = 0;
    assert_int_equal(dry_live_create(&options, &live, &err), DRY_ERR_ARGUMENT);
    assert_null(live);
    dry_live_destroy(NULL);
    dry_live_close(NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_has_what_the_pool_counts),
        cmocka_unit_test(what_is_put_is_read),
        cmocka_unit_test(a_thread_updates_the_page),
        cmocka_unit_test(a_pinned_cache_is_a_source),
        cmocka_unit_test(figures_of_another_pinned_cache_are_put),
        cmocka_unit_test(a_child_has_no_part_in_the_page),
        cmocka_unit_test(a_request_is_answered),
        cmocka_unit_test(a_page_that_cannot_be_written_takes_no_request),
        cmocka_unit_test(files_that_are_no_pages_are_refused),
        cmocka_unit_test(pages_of_chance_do_no_harm),
        cmocka_unit_test(a_file_that_shrinks_is_an_error),
        cmocka_unit_test(a_killed_writer_is_known),
        cmocka_unit_test(pages_are_listed),
        cmocka_unit_test(without_memory_there_is_no_page),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
