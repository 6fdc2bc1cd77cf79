/* SPDX-License-Identifier: Apache-2.0 */
/* Reading with progress, memory limits, and failures in the file's terms, see load.h. */
#include "record/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/command.h"
#include "base/fail.h"
#include "base/progress.h"
#include "base/report.h"
#include "bucket/object_name.h"
#include "record/nsight.h"

/* Progress counts bytes of the file: the number of unpacked bytes is unknown. */
struct watch {
    const struct input *in;
    struct progress progress;
};

static bool
show_progress(void *self, uint64_t byte_count)
{
    (void)byte_count;
    struct watch *w = self;
    struct input_description d;
    input_describe(w->in, &d);
    return progress_update(&w->progress, d.consumed_bytes);
}

/* Return the memory limit of the container (cgroup v2, then v1), or UINT64_MAX. */
static uint64_t
memory_of_container(void)
{
    static const char *const paths[] = {
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    };
    uint64_t bytes = 0;
    for (size_t i = 0; i < sizeof paths / sizeof *paths && bytes == 0; i++) {
        char line[32];
        FILE *file = fopen(paths[i], "re");
        if (file && fgets(line, sizeof line, file))
            bytes = strtoull(line, NULL, 10); /* 0 for "max" */
        if (file)
            fclose(file);
    }
    return bytes ? bytes : UINT64_MAX;
}

/* A packed file may unpack without end, so memory is limited to 3/4 of the machine. */
uint64_t
load_memory_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    uint64_t bytes = memory_of_container();
    if (pages > 0 && page_bytes > 0 && (uint64_t)pages < bytes / (uint64_t)page_bytes)
        bytes = (uint64_t)pages * (uint64_t)page_bytes;
    return bytes / 4 * 3;
}

/*
 * The limit for a file: columns and tables take a few times its bytes, and packing by
 * more than 64 was never seen. Small files may use 4 GiB in any case.
 */
#define UNFOLDING_MAX 64
#define MEMORY_FOR_SMALL_FILES (UINT64_C(4) << 30)

/* Return the part of `bytes` that a file of this size may use. */
static uint64_t
get_share(uint64_t bytes, uint64_t file_bytes)
{
    uint64_t fair = MEMORY_FOR_SMALL_FILES;
    if (file_bytes == 0) /* size unknown: a pipe */
        return bytes;
    if (file_bytes > fair / UNFOLDING_MAX)
        fair = file_bytes < UINT64_MAX / UNFOLDING_MAX ? file_bytes * UNFOLDING_MAX
                                                       : UINT64_MAX;
    return bytes < fair ? bytes : fair;
}

struct reading {
    const char *path;
    struct dry_trace_options options;
    char note[NSIGHT_NOTE_BYTES]; /* what was left out; empty: nothing */
};

/* Read an input, which `d` describes. SQLite needs a file whose bytes it can read in any order. */
static enum dry_status
read_input(const struct input_description *d, const struct dry_source *source,
           struct reading *r, struct dry_trace **trace, struct dry_error *err)
{
    r->note[0] = '\0';
    if (!d->is_database)
        return dry_trace_read(source, &r->options, trace, err);
    if (d->is_unpacked || d->file_bytes == 0 || object_is_name(r->path) ||
        !strcmp(r->path, "-"))
        return fail_at(
            err, DRY_ERR_UNSUPPORTED, DRY_NO_OFFSET,
            "an SQLite file is read by its name, unpacked and on this machine");
    return nsight_read(r->path, r->options.memory_bytes_max, trace, r->note, err);
}

static enum dry_status
read_trace(const struct input *in, const struct dry_source *source, struct reading *r,
           struct dry_trace **trace, struct dry_error *err)
{
    char what[512];
    snprintf(what, sizeof what, "reading %s", r->path);
    struct input_description d;
    input_describe(in, &d);
    struct watch watch = {.in = in};
    progress_begin(&watch.progress, what, d.file_bytes);
    dry_trace_options_init(&r->options);
    r->options.memory_bytes_max = get_share(load_memory_bytes(), d.file_bytes);
    r->options.progress = show_progress;
    r->options.progress_self = &watch;
    enum dry_status status = read_input(&d, source, r, trace, err);
    progress_end(&watch.progress);
    r->options.progress = NULL;
    r->options.progress_self = NULL; /* it ends here */
    return status;
}

/*
 * Correct the offset of a failure: the reader counts bytes of its input, which may not be
 * those of the file.
 */
static void
place_failure(const struct input_description *d, struct dry_error *err)
{
    uint64_t offset = err->offset;
    bool is_of_file = !d->is_unpacked && !d->is_converted;
    if (offset == DRY_NO_OFFSET || (is_of_file && !d->is_at_fault))
        return;
    err->offset = DRY_NO_OFFSET;
    if (d->is_converted || d->is_at_fault) /* the stream's text names its byte */
        return;
    char text[sizeof err->text];
    snprintf(text, sizeof text, "%s", err->text);
    snprintf(err->text, sizeof err->text, "byte %llu of the unpacked data: %.180s",
             (unsigned long long)offset, text);
}

static int
report_unread(const char *command, const char *path, const struct input_description *d,
              struct dry_error *err)
{
    place_failure(d, err);
    return report_error(command, path, err);
}

static void
write_offset(struct dry_error *err)
{
    char text[sizeof err->text];
    if (err->offset == DRY_NO_OFFSET)
        return;
    snprintf(text, sizeof text, "%s", err->text);
    snprintf(err->text, sizeof err->text, "byte %llu: %.180s",
             (unsigned long long)err->offset, text);
    err->offset = DRY_NO_OFFSET;
}

enum dry_status
load_trace_quietly(const char *path, uint64_t memory_bytes_max, struct dry_trace **trace,
                   struct input_content *content, struct dry_error *err)
{
    struct input *in = NULL;
    struct dry_source source;
    *err = (struct dry_error){.offset = DRY_NO_OFFSET};
    enum dry_status status =
        input_open_hashed(path, memory_bytes_max / 2, &in, &source, err);
    if (status != DRY_OK) {
        err->offset = DRY_NO_OFFSET;
        return status;
    }
    struct input_description d;
    input_describe(in, &d);
    struct reading reading = {.path = path};
    dry_trace_options_init(&reading.options);
    reading.options.memory_bytes_max = get_share(memory_bytes_max, d.file_bytes);
    status = read_input(&d, &source, &reading, trace, err);
    if (status == DRY_OK)
        status = input_read_content(in, content, err);
    input_describe(in, &d);
    if (status != DRY_OK) {
        place_failure(&d, err);
        write_offset(err);
    }
    input_close(in);
    return status;
}

int
load_trace(const char *command, const char *path, struct dry_trace **trace,
           struct input_description *about)
{
    struct dry_error err = {.offset = DRY_NO_OFFSET};
    struct input *in = NULL;
    struct dry_source source;
    if (input_open(path, load_memory_bytes() / 2, &in, &source, &err) != DRY_OK) {
        err.offset = DRY_NO_OFFSET; /* the text names it if it matters */
        return report_error(command, path, &err);
    }
    struct reading reading = {.path = path};
    enum dry_status status = read_trace(in, &source, &reading, trace, &err);
    struct input_description d;
    input_describe(in, &d);
    if (about)
        *about = d;
    int code = status == DRY_OK ? EXIT_FINE : report_unread(command, path, &d, &err);
    if (code == EXIT_FINE && reading.note[0])
        report_failure(command, path, EXIT_FINE, "%s", reading.note);
    input_close(in);
    return code;
}

/* Count the devices without the host, which is last: its memory is of another kind. */
static size_t
count_devices(const struct dry_trace_view *v)
{
    size_t count = v->device_count;
    return count > 0 && v->devices[count - 1].device == DRY_DEVICE_HOST ? count - 1
                                                                        : count;
}

int
load_report_no_device(const char *command, const char *path,
                      const struct dry_trace *trace, int64_t device)
{
    const struct dry_trace_view *v = dry_trace_get_view(trace);
    size_t count = count_devices(v);
    long long missing = device;
    if (count == 0)
        return report_usage(command, "%s has no device %lld, nor any other", path,
                            missing);
    int first = v->devices[0].device, last = v->devices[count - 1].device;
    if (count == 1)
        return report_usage(command, "%s has no device %lld; there is one in it, %d",
                            path, missing, first);
    return report_usage(command, "%s has no device %lld; there are %zu in it, %d to %d",
                        path, missing, count, first, last);
}

static bool
has_device(const struct dry_trace_view *v, int64_t device)
{
    for (size_t i = 0; i < v->device_count; i++) {
        if (v->devices[i].device == device)
            return true;
    }
    return false;
}

int
load_replay(const struct load_replay *wanted, const struct dry_trace *trace,
            struct dry_replay **replay)
{
    struct dry_replay_options options;
    struct dry_error err;
    const char *command = wanted->command;
    dry_replay_options_init(&options);
    if (dry_trace_get_view(trace)->device_count == 0)
        return report_failure(command, wanted->path, EXIT_INPUT,
                              "nothing to replay: no events and no segments");
    if (wanted->compat && strcmp(wanted->compat, "auto") != 0)
        options.compat = wanted->compat;
    if (wanted->device != LOAD_BUSIEST_DEVICE) {
        if (!has_device(dry_trace_get_view(trace), wanted->device))
            return load_report_no_device(command, wanted->path, trace, wanted->device);
        options.device = (int32_t)wanted->device;
    }
    options.progress = wanted->progress ? progress_update : NULL;
    options.progress_self = wanted->progress;
    enum dry_status status = dry_replay_create(trace, &options, replay, &err);
    if (status == DRY_ERR_ARGUMENT)
        return report_usage(command, "%s", err.text);
    return status == DRY_OK ? EXIT_FINE : report_error(command, wanted->path, &err);
}
