/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PAGES_REPORT_H
#define TOOL_PAGES_REPORT_H

/* The machine's page sizes, and the results of --bench, as text and as JSON. */

#include <jansson.h>

#include <drystone/topology.h>

#include "base/term.h"
#include "machine/pages_bench.h"

/* Print an empty line, then the pages of the machine and of each node. Returns false if
   memory ran out. */
bool pages_report_list(const struct dry_topology_view *view, const char *root,
                       const struct term *term);
/* Return the pages of a node (or of the machine, -1), and all nodes with their pages, as
   JSON. NULL: memory ran out. */
json_t *pages_report_sizes(const char *root, int32_t node);
json_t *pages_report_nodes(const struct dry_topology_view *view, const char *root);

/* Print benchmark results as text, or as drystone.pages-bench/1. Returns an exit code. */
int pages_report_bench(const struct bench *bench, const struct dry_topology_view *view);
int pages_report_bench_json(const struct bench *bench,
                            const struct dry_topology_view *view);
/* Print the malloc times of this process, one line each or as {"here": [...]} of the same
   schema. Returns an exit code. */
int pages_report_here(const double ns[BENCH_SIZES], bool is_json);

#endif
