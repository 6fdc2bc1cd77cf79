/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_NUMA_MAPS_TEXT_H
#define DRYI_HOST_NUMA_MAPS_TEXT_H

/*
 * How many bytes of a range lie on which node, from /proc/self/numa_maps: what is left to look
 * at where move_pages() is forbidden. Fed in pieces of any size.
 *
 * A line is "7f0000000000 bind:1 anon=5 N0=3 N1=2 kernelpagesize_kB=4": where a mapping begins
 * and how many of its pages each node has; not where it ends. Our regions stand between
 * addresses without access, or are of a pool, so that none that begins in one ends outside.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DRYI_NUMA_MAPS_LINE_MAX 1024

struct dryi_numa_maps {
    uint64_t begin, end; /* the range */
    /* Called with each node's bytes of each mapping; not called again once it is unclear. */
    void (*take)(void *to, int node, uint64_t bytes);
    void *to;
    bool has_lines, is_unclear;
    bool is_cut; /* the line being read is longer than we keep */
    char line[DRYI_NUMA_MAPS_LINE_MAX];
    size_t line_length;
};

void dryi_numa_maps_init(struct dryi_numa_maps *maps, uint64_t address, uint64_t bytes,
                         void (*take)(void *to, int node, uint64_t bytes), void *to);
void dryi_numa_maps_feed(struct dryi_numa_maps *maps, const char *text, size_t length);
/* The end of the text; false: not known, what was taken is of no use. */
bool dryi_numa_maps_end(struct dryi_numa_maps *maps);

#endif
