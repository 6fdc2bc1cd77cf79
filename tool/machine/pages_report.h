/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PAGES_REPORT_H
#define TOOL_PAGES_REPORT_H

/* The pages that a machine has, and the reports of --bench, for people and for programs. */

#include <jansson.h>

#include <drystone/topology.h>

#include "base/term.h"
#include "machine/pages_bench.h"

/*
 * Print an empty line and the pages of the machine and of each node. Returns false if there
 * was no memory.
 */
bool pages_report_list(const struct dry_topology_view *view, const char *root,
                       const struct term *term);
/* Return the pages of a node, or of the machine, -1; and all nodes with theirs. */
json_t *pages_report_sizes(const char *root, int32_t node);
json_t *pages_report_nodes(const struct dry_topology_view *view, const char *root);

/* Print what was measured. The schema is drystone.pages-bench/1. Returns an exit code. */
int pages_report_bench(const struct bench *bench, const struct dry_topology_view *view);
int pages_report_bench_json(const struct bench *bench,
                            const struct dry_topology_view *view);
/*
 * Print the times of malloc in this process: {"here": [...]} in the same schema, or a line
 * each.
 */
int pages_report_here(const double ns[BENCH_SIZES], bool is_json);

#endif
