/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FLEET_FILES_H
#define TOOL_FLEET_FILES_H

/*
 * The files of a job: what DIR, GLOB and FILE stand for.
 *
 * In a folder those files count that may be snapshots by their names: .pickle, .pkl and
 * .trace, packed by gzip or zstd or not. Hidden names, links, and folders deeper than 16 are
 * passed over. A file that is named counts whatever its name is. s3://BUCKET/KEY stands for
 * objects of a store (object_find.h).
 */

#include <regex.h>
#include <stddef.h>
#include <stdint.h>

struct fleet_file {
    char *path;
    uint32_t rank; /* RANK_UNKNOWN */
    uint64_t bytes;
    uint64_t stamp; /* another one after a change: its time; an object's version */
};

struct fleet_files {
    struct fleet_file *files; /* by rank, then by path; each path once */
    size_t count, capacity;
};

/*
 * Find the files that `names` stand for; `pattern` (NULL: none) finds the rank. An
 * exit_code; the reason is on standard error. fleet_files_finish() is due in any case.
 */
int fleet_files_find(struct fleet_files *files, const char *const *names, size_t count,
                     const regex_t *pattern);
void fleet_files_finish(struct fleet_files *files);

#endif
