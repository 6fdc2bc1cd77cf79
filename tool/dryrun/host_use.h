/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_HOST_USE_H
#define TOOL_HOST_USE_H

/*
 * Host memory that a program and all its descendants take, while the program runs.
 *
 *     struct host_watch watch = {.out = out};
 *     ... host_watch_look(&watch, child), again and again
 *     host_watch_end(&watch); use(&watch.use)
 *
 * Memory counts if the kernel cannot take it back: anonymous pages and shared ones, a page of
 * several processes once. Pages of files, such as libraries and mapped weights, do not count.
 * Mapped files of /dev/shm count whole. Sums are what was seen at one look. The peak of one
 * process is the kernel's, less the most that its files took, so that no look has to meet it.
 *
 * A process that has written PID.host into `out` is not looked at any more: from then on the
 * dry run's own work, a snapshot, takes memory.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HOST_GROWN_SHARE 16 /* another look is due if memory grew by 1/16 */

struct host_use {
    uint64_t peak_bytes;   /* most of all processes at one time, or of one at its peak */
    uint64_t shared_bytes; /* most of shared memory at one time */
    uint64_t children_bytes; /* most of the processes that one with a device started */
    uint64_t child_bytes;    /* most of one of these */
    size_t child_count;      /* most of these at one time */
};

struct host_process {
    pid_t pid;
    uint64_t file_bytes; /* the most that pages of files took */
    bool is_done;        /* PID.host is there */
};

struct host_watch {
    const char *out; /* the folder of PID.begun and PID.host */
    struct host_use use;
    struct host_process *processes;
    size_t count;
    uint64_t rough_ns;    /* time of the next look at sums */
    uint64_t next_ns;     /* time of the next look at pages, unless memory has grown */
    uint64_t rough_bytes; /* at the last look for which memory had grown */
};

/* Look at a process and its descendants, unless the last look was just now. Sums that the kernel
   keeps tell whether memory has grown by a sixteenth; else pages are looked at more rarely. Each kind
   of look takes at most a fiftieth of the time, and a moment more each time that memory grows. A file that cannot be read counts as nothing. */
void host_watch_look(struct host_watch *watch, pid_t root);
/* Take the peaks that processes left in PID.host ("PEAK FILES", bytes), and free all but `use`. */
void host_watch_end(struct host_watch *watch);

#endif
