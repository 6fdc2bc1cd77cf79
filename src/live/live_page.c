/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Create and destroy the page, and run its thread. The file has its name from the start, but the
 * magic number is written after the head. A reader that opens the file earlier sees no magic
 * number and refuses the page.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"
#include "live/live_name.h"
#include "live/live_put.h"
#include "os/system.h"

/* pages of one process id, including files left by dead processes */
#define NUMBERS_MAX 100
#define NAME_BYTES 64

void
dry_live_options_init_sized(struct dry_live_options *options, size_t struct_size)
{
    const struct dry_live_options defaults = {
        .folder = "/dev/shm",
        .name = "",
        .labels = "",
        .rank = -1,
        .world = -1,
        .detail_rest = 200,
    };
    dryi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

static enum dry_status
fail_child(struct dry_error *err)
{
    return dryi_fail(err, DRY_ERR_ARGUMENT,
                     "this is the child of a fork: the page belongs to the parent");
}

/* --- making ------------------------------------------------------------------------------- */

static void
write_head(struct dry_live *live, const struct dry_live_options *options)
{
    struct dry_live_page *page = dryi_live_page(live);
    page->version = DRY_LIVE_VERSION;
    page->page_bytes = DRY_LIVE_PAGE_BYTES;
    page->program.process = dryi_system_process();
    page->program.started_ns = dryi_system_uptime_ns();
    page->program.rank = options->rank;
    page->program.world = options->world;
    dryi_live_copy_text(page->program.labels, sizeof page->program.labels,
                        options->labels);
    dryi_live_copy_text(page->program.name, sizeof page->program.name, options->name);
    if (!page->program.name[0])
        dryi_system_process_name(page->program.name, sizeof page->program.name);
    __atomic_store_n(&page->magic, DRY_LIVE_MAGIC, __ATOMIC_RELEASE);
}

/* Create the file under the first number whose name is not taken. */
static enum dry_status
make_file(struct dry_live *live, const char *folder)
{
    size_t length = strlen(folder);
    unsigned long long process = dryi_system_process();
    for (unsigned number = 0; number < NUMBERS_MAX; number++) {
        (void)snprintf(live->path, live->path_capacity, "%s/" DRYI_LIVE_PREFIX "%llu-%u",
                       folder, process, number);
        live->name = live->path + length + 1;
        enum dry_status status =
            dryi_shared_file_create(live->path, DRY_LIVE_PAGE_BYTES, &live->file);
        if (status == DRY_OK || errno != EEXIST)
            return status;
    }
    return DRY_ERR_SYSTEM;
}

static void
release(struct dry_live *live)
{
    struct dry_memory memory = live->memory;
    dryi_memory_free(&memory, live->detail, 1, sizeof *live->detail);
    dryi_memory_free(&memory, live->path, 1, live->path_capacity);
    dryi_memory_free(&memory, live, 1, sizeof *live);
}

static struct dry_live *
make(const struct dry_live_options *options)
{
    struct dry_memory memory = dryi_memory_or_default(options->memory);
    struct dry_live *live = dryi_memory_zalloc(&memory, 1, sizeof *live);
    if (!live)
        return NULL;
    live->memory = memory;
    live->path_capacity = strlen(options->folder) + NAME_BYTES;
    live->file.file = -1;
    live->path = dryi_memory_zalloc(&memory, 1, live->path_capacity);
    live->detail = dryi_memory_zalloc(&memory, 1, sizeof *live->detail);
    if (live->path && live->detail)
        return live;
    release(live);
    return NULL;
}

/* Let the thread's waits use CLOCK_MONOTONIC, which changes of the system time do not affect. */
static void
make_locks(struct dry_live *live)
{
    pthread_condattr_t by_clock;
    pthread_condattr_init(&by_clock);
    pthread_condattr_setclock(&by_clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&live->mutex, NULL);
    pthread_cond_init(&live->wakes, &by_clock);
    pthread_condattr_destroy(&by_clock);
}

enum dry_status
dry_live_create(const struct dry_live_options *options, struct dry_live **live,
                struct dry_error *err)
{
    struct dry_live_options o;
    dry_live_options_init(&o);
    enum dry_status status = dryi_sized_take(&o, sizeof o, options, err);
    if (status != DRY_OK)
        return status;
    if (o.detail_rest == 0 || !o.folder)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "a page without a folder or a rest");
    struct dry_live *made = make(&o);
    if (!made)
        return dryi_fail_memory(err, "a page");
    status = make_file(made, o.folder);
    if (status != DRY_OK) {
        (void)dryi_system_fail(err, status, o.folder, "no page could be made");
        release(made);
        return status;
    }
    made->detail_rest = o.detail_rest;
    dryi_fork_mark_init(&made->fork);
    make_locks(made);
    write_head(made, &o);
    *live = made;
    return DRY_OK;
}

void
dry_live_destroy(struct dry_live *live)
{
    if (!live)
        return;
    if (!dryi_fork_mark_is_child(&live->fork)) {
        dry_live_stop(live);
        dryi_shared_file_remove(live->path);
        pthread_cond_destroy(&live->wakes);
        pthread_mutex_destroy(&live->mutex);
    }
    dryi_shared_file_close(&live->file);
    dryi_fork_mark_finish(&live->fork);
    release(live);
}

const char *
dry_live_name(const struct dry_live *live)
{
    return live->name;
}

/* --- sources ------------------------------------------------------------------------------ */

struct kind {
    enum dry_live_kind kind;
    const char *name;
    int32_t device;
    struct dryi_live_origin origin;
};

/* Add a source. Increment the count last, so that readers see only complete sources. */
static enum dry_status
add(struct dry_live *live, const struct kind *kind, uint32_t *number,
    struct dry_error *err)
{
    if (dryi_fork_mark_is_child(&live->fork))
        return fail_child(err);
    pthread_mutex_lock(&live->mutex);
    uint32_t n = live->origin_count;
    if (n < DRY_LIVE_SOURCES_MAX) {
        struct dry_live_source *source = dryi_live_begin(live, n);
        source->kind = kind->kind;
        source->device = kind->device;
        dryi_live_copy_text(source->name, sizeof source->name, kind->name);
        source->figures.limit = DRY_LIVE_UNKNOWN;
        dryi_live_end(live, n);
        live->origins[n] = kind->origin;
        live->origin_count = n + 1;
        __atomic_store_n(&dryi_live_page(live)->source_count, n + 1, __ATOMIC_RELEASE);
        *number = n;
    }
    pthread_mutex_unlock(&live->mutex);
    if (n == DRY_LIVE_SOURCES_MAX)
        return dryi_fail(err, DRY_ERR_LIMIT, "a page has %u sources at most",
                         DRY_LIVE_SOURCES_MAX);
    return DRY_OK;
}

enum dry_status
dry_live_add_pool(struct dry_live *live, const char *name, int32_t device,
                  struct dry_pool *pool, uint32_t *number, struct dry_error *err)
{
    struct kind kind = {DRY_LIVE_POOL, name, device, {.pool = pool}};
    return add(live, &kind, number, err);
}

enum dry_status
dry_live_add_pinned(struct dry_live *live, const char *name, struct dry_pinned *pinned,
                    uint32_t *number, struct dry_error *err)
{
    struct kind kind = {DRY_LIVE_PINNED, name, -1, {.pinned = pinned}};
    return add(live, &kind, number, err);
}

enum dry_status
dry_live_add_other(struct dry_live *live, const char *name, int32_t device,
                   uint32_t *number, struct dry_error *err)
{
    struct kind kind = {DRY_LIVE_OTHER, name, device, {0}};
    return add(live, &kind, number, err);
}

void
dry_live_forget(struct dry_live *live, uint32_t number)
{
    if (dryi_fork_mark_is_child(&live->fork))
        return;
    pthread_mutex_lock(&live->mutex);
    if (number < live->origin_count)
        live->origins[number] = (struct dryi_live_origin){0};
    pthread_mutex_unlock(&live->mutex);
}

void
dry_live_set_uuid(struct dry_live *live, uint32_t number, const char *uuid)
{
    if (dryi_fork_mark_is_child(&live->fork))
        return;
    pthread_mutex_lock(&live->mutex);
    if (number < live->origin_count) {
        struct dry_live_source *source = dryi_live_begin(live, number);
        dryi_live_copy_text(source->uuid, sizeof source->uuid, uuid);
        dryi_live_end(live, number);
    }
    pthread_mutex_unlock(&live->mutex);
}

/* --- updates ------------------------------------------------------------------------------ */

static void
update(struct dry_live *live)
{
    for (uint32_t i = 0; i < live->origin_count; i++)
        dryi_live_update_source(live, i);
}

void
dry_live_update(struct dry_live *live)
{
    if (dryi_fork_mark_is_child(&live->fork))
        return;
    pthread_mutex_lock(&live->mutex);
    update(live);
    pthread_mutex_unlock(&live->mutex);
}

static struct timespec
later(uint64_t interval_us)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)(interval_us / 1000000);
    at.tv_nsec += (long)(interval_us % 1000000) * 1000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_nsec -= 1000000000;
        at.tv_sec++;
    }
    return at;
}

static void *
run(void *self)
{
    struct dry_live *live = self;
    pthread_mutex_lock(&live->mutex);
    while (!live->is_stopping) {
        update(live);
        struct timespec next = later(live->interval_us);
        while (!live->is_stopping &&
               pthread_cond_timedwait(&live->wakes, &live->mutex, &next) != ETIMEDOUT)
            continue;
    }
    pthread_mutex_unlock(&live->mutex);
    return NULL;
}

enum dry_status
dry_live_start(struct dry_live *live, uint64_t interval_us, struct dry_error *err)
{
    if (interval_us < 1000 || interval_us > UINT32_MAX)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "an interval of %llu us: 1000 to 4294967295 are possible",
                         (unsigned long long)interval_us);
    if (dryi_fork_mark_is_child(&live->fork))
        return fail_child(err);
    pthread_mutex_lock(&live->mutex);
    bool was_running = live->is_running;
    if (!was_running) {
        live->interval_us = interval_us;
        live->is_stopping = false;
        live->is_running = dryi_thread_start(&live->thread, run, live);
    }
    bool is_running = live->is_running;
    pthread_mutex_unlock(&live->mutex);
    if (was_running)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "a thread updates the page already");
    return is_running ? DRY_OK : dryi_fail(err, DRY_ERR_SYSTEM, "there is no thread");
}

void
dry_live_stop(struct dry_live *live)
{
    if (dryi_fork_mark_is_child(&live->fork))
        return;
    pthread_mutex_lock(&live->mutex);
    bool was_running = live->is_running;
    live->is_running = false;
    live->is_stopping = true;
    pthread_cond_signal(&live->wakes);
    pthread_mutex_unlock(&live->mutex);
    if (was_running)
        dryi_thread_join(&live->thread);
}
