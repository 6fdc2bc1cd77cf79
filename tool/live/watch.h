/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_WATCH_H
#define TOOL_WATCH_H

/*
 * The machine's memory now: devices and processes as the driver reports them, allocators
 * from the pages that programs publish, and their trends.
 *
 *     struct watch *watch = watch_create(&options);
 *     while (...) {
 *         watch_sample(watch);
 *         for (size_t i = 0; i < watch->process_count; i++)
 *             ... watch->processes[i] ...
 *     }
 *     watch_destroy(watch);
 *
 * Pages are searched in a folder. For each process that the driver lists and that has no
 * page there, /dev/shm of that process is searched too: it may be in a container. A page
 * of a program that ended is shown once, then its file is removed. Texts in pages are
 * hostile and must be made printable.
 *
 * Threads    One at a time.
 * Units      Bytes, WATCH_UNKNOWN if not reported; seconds.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/field.h>
#include <drystone/live.h>

#include "live/nvml.h"
#include "live/trend.h"

#define WATCH_UNKNOWN UINT64_MAX
#define WATCH_PROCESSES_MAX 4096u
#define WATCH_NO_DEVICE SIZE_MAX

struct watch_device {
    char name[96], uuid[48];
    uint64_t total, used;
    size_t process_count; /* listed by the driver */
};

struct watch_source {
    struct dry_live_source published; /* the source as read from the page */
    size_t device;       /* index in the watch's devices, or WATCH_NO_DEVICE */
    double age_s;        /* since the last update */
    uint64_t limit;      /* limit of the source, else the device's memory */
    uint64_t left_bytes; /* bytes still reservable: below the limit and on the device */
    struct trend_rates rates;
    double seconds_left; /* negative: growth does not reach the limit */
    struct trend trend;
};

/* The figures of a device, and those of a source that are not in its page. */
extern const struct dry_fields watch_device_fields, watch_source_fields;

struct watch_use {
    size_t device;
    uint64_t bytes; /* reported by the driver */
};

enum watch_state {
    WATCH_SEEN,  /* reported by the driver; has no page */
    WATCH_LIVE,  /* has a readable page */
    WATCH_WRONG, /* has a page that cannot be read; see `why` */
    WATCH_ENDED, /* program has ended; shown once */
};

struct watch_process {
    enum watch_state state;
    uint64_t process; /* 0: outside our PID namespace */
    char name[DRY_LIVE_TEXT_BYTES];
    struct dry_live_program program; /* valid if LIVE or ENDED */
    char file_name[64];              /* the page's file name; "": none */
    char why[232];
    struct watch_source *sources;
    size_t source_count;
    struct watch_use *uses;
    size_t use_count;

    struct dry_live_reader *reader; /* private to watch.c from here on */
    uint64_t guest; /* the page is in this process's /dev/shm; 0: the watch's folder */
    uint64_t file_disk,
        file_inode; /* device and inode of the page file: containers share folders */
    size_t source_capacity, use_capacity;
};

struct watch_options {
    const char *folder; /* folder of the pages: "/dev/shm" */
    bool has_driver;    /* query NVML */
};

struct watch {
    struct watch_options options;
    const char *no_driver; /* why there are no devices; NULL: NVML is loaded */
    uint64_t now_ns;       /* CLOCK_BOOTTIME */
    struct watch_device *devices;
    size_t device_count;
    struct watch_process **processes; /* ordered by memory in use, largest first */
    size_t process_count;
    size_t left_out; /* processes beyond WATCH_PROCESSES_MAX */

    struct nvml *nvml; /* private to watch.c */
    size_t process_capacity;
};

/* Create a watch. NULL: memory ran out. */
struct watch *watch_create(const struct watch_options *options);
void watch_destroy(struct watch *watch);
/* Take a sample. False: memory ran out, and the lists are incomplete but valid. */
bool watch_sample(struct watch *watch);

/* Return the bytes that a process reserves, from its sources, else from the driver. */
uint64_t watch_reserved(const struct watch_process *process);

/* Ask a process for a snapshot at `path`. *number identifies the request for
   watch_answered(). Requires a LIVE page. Errors: those of dry_live_request(). */
enum dry_status watch_request(struct watch_process *process, const char *path,
                              uint64_t *number, struct dry_error *err);
/* Tell whether request `number` is answered, and fill `answer` if so. */
bool watch_answered(struct watch_process *process, uint64_t number,
                    struct dry_live_answer *answer);

#endif
