/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FLEET_FILES_H
#define TOOL_FLEET_FILES_H

/*
 * The files of a job: those that DIR, GLOB and FILE arguments name.
 *
 * In a folder, files count whose names end in .pickle, .pkl or .trace, also if packed by
 * gzip or zstd. Hidden names, links, and folders deeper than 16 are skipped. A file that
 * is named counts whatever its name is. s3://BUCKET/KEY names objects of a store
 * (object_find.h).
 */

#include <regex.h>
#include <stddef.h>
#include <stdint.h>

struct fleet_file {
    char *path;
    uint32_t rank; /* or RANK_UNKNOWN */
    uint64_t bytes;
    uint64_t stamp; /* changes with the content: file time or object version */
};

struct fleet_files {
    struct fleet_file *files; /* sorted by rank, then by path; no path twice */
    size_t count, capacity;
};

/*
 * Find the files that `names` stand for. `pattern` finds the rank in a path; NULL: use
 * rank_name_find(). Returns an exit_code, after printing the reason to standard error.
 * Call fleet_files_finish() in any case.
 */
int fleet_files_find(struct fleet_files *files, const char *const *names, size_t count,
                     const regex_t *pattern);
void fleet_files_finish(struct fleet_files *files);

#endif
