/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_NUMA_MAPS_TEXT_H
#define DRYI_HOST_NUMA_MAPS_TEXT_H

/*
 * Sums the bytes of a range by node from /proc/self/numa_maps, for systems that forbid
 * move_pages(). Fed in portions of any size.
 *
 * A line is "7f0000000000 bind:1 anon=5 N0=3 N1=2 kernelpagesize_kB=4": the beginning of
 * a mapping, and its pages on each node, but not its end. The library's regions are
 * between inaccessible pages, or are from a pool, so a mapping that begins in a region
 * also ends there.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DRYI_NUMA_MAPS_LINE_MAX 1024

struct dryi_numa_maps {
    uint64_t begin, end; /* the range */
    /* Called with each mapping's bytes on each node, until the text is_unclear. */
    void (*take)(void *to, int node, uint64_t bytes);
    void *to;
    bool has_lines, is_unclear;
    bool is_cut; /* the line being read exceeds the buffer */
    char line[DRYI_NUMA_MAPS_LINE_MAX];
    size_t line_length;
};

void dryi_numa_maps_init(struct dryi_numa_maps *maps, uint64_t address, uint64_t bytes,
                         void (*take)(void *to, int node, uint64_t bytes), void *to);
void dryi_numa_maps_feed(struct dryi_numa_maps *maps, const char *text, size_t length);
/* End the text; false: the result is not known, and calls of `take` must be ignored. */
bool dryi_numa_maps_end(struct dryi_numa_maps *maps);

#endif
