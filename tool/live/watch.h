/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_WATCH_H
#define TOOL_WATCH_H

/*
 * All that is known of the machine's memory now: devices and processes by the driver, allocators
 * by the pages of programs, and how each goes.
 *
 *     struct watch *watch = watch_create(&options);
 *     while (...) {
 *         watch_look(watch);
 *         for (size_t i = 0; i < watch->process_count; i++)
 *             ... watch->processes[i] ...
 *     }
 *     watch_destroy(watch);
 *
 * Pages are looked for in a folder, and in the /dev/shm of each process that the driver lists and
 * that has no page there: a container's. A page whose program has ended is shown once, as ended,
 * and then its file is removed. Texts of pages are hostile: print them as such.
 *
 * Threads    One at a time.
 * Units      Bytes, WATCH_UNKNOWN where nobody tells; seconds.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/live.h>

#include "live/nvml.h"
#include "live/trend.h"

#define WATCH_UNKNOWN UINT64_MAX
#define WATCH_PROCESSES_MAX 4096u
#define WATCH_NO_DEVICE SIZE_MAX

struct watch_device {
    char name[96], uuid[48];
    uint64_t total, used;
    size_t process_count; /* that the driver lists */
};

struct watch_source {
    struct dry_live_source page; /* what the page has */
    size_t device;               /* index in the watch's; WATCH_NO_DEVICE */
    double age_s;                /* since the last update */
    uint64_t limit;              /* the source's own, else the device's */
    uint64_t room; /* what more may be reserved: of the limit, and of the device */
    struct trend_rates rates;
    double seconds_left; /* negative: not in sight */
    struct trend trend;
};

struct watch_use {
    size_t device;
    uint64_t bytes; /* by the driver */
};

enum watch_state {
    WATCH_SEEN,  /* by the driver alone: it has no page */
    WATCH_LIVE,  /* its page is read */
    WATCH_WRONG, /* it has a page that cannot be used: `why` */
    WATCH_ENDED, /* shown this once */
};

struct watch_process {
    enum watch_state state;
    uint64_t process; /* 0: not of this PID namespace */
    char name[DRY_LIVE_TEXT_BYTES];
    struct dry_live_program program; /* LIVE, ENDED */
    char page[64];                   /* the page's file name; "" if none */
    char why[232];
    struct watch_source *sources;
    size_t source_count;
    struct watch_use *uses;
    size_t use_count;

    struct dry_live_reader *reader; /* watch.c's own from here on */
    uint64_t guest; /* whose /dev/shm the page is in; 0: the watch's folder */
    uint64_t page_disk,
        page_inode; /* its file: processes of a container share a folder */
    size_t source_room, use_room;
};

struct watch_options {
    const char *folder; /* "/dev/shm" */
    bool has_driver;    /* ask NVML */
};

struct watch {
    struct watch_options options;
    const char *no_driver; /* why there are no devices; NULL: there is a driver */
    uint64_t now_ns;       /* CLOCK_BOOTTIME */
    struct watch_device *devices;
    size_t device_count;
    struct watch_process **processes; /* by use of memory, the most first */
    size_t process_count;
    size_t left_out; /* processes beyond WATCH_PROCESSES_MAX */

    struct nvml *nvml; /* watch.c's own */
    size_t process_room;
};

/* NULL: there is no memory. */
struct watch *watch_create(const struct watch_options *options);
void watch_destroy(struct watch *watch);
/* Look again. False: there is no memory, and what could be seen is there. */
bool watch_look(struct watch *watch);

/* The bytes that a process reserves: by its sources, else by the driver. */
uint64_t watch_reserved(const struct watch_process *process);

/*
 * Ask a process whose page is LIVE for a snapshot in `path`; *number is that of the wish, for
 * watch_answered(). Errors: those of dry_live_wish().
 */
enum dry_status watch_wish(struct watch_process *process, const char *path,
                           uint64_t *number, struct dry_error *err);
/* True: wish `number` has its answer. */
bool watch_answered(struct watch_process *process, uint64_t number,
                    struct dry_live_answer *answer);

#endif
