/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PAGES_REPORT_H
#define TOOL_PAGES_REPORT_H

/* The reports of `drystone pages` and of its bench, for people and for programs. */

#include <drystone/topology.h>

#include "machine/pages_bench.h"

/*
 * Print what pages there are, of the machine and of each node. Each function returns an
 * exit code.
 */
int pages_report_list(const struct dry_topology_view *view, const char *root);
int pages_report_list_json(const struct dry_topology_view *view, const char *root);

/* Print what was measured. The schema is drystone.pages-bench/1. */
int pages_report_bench(const struct bench *bench, const struct dry_topology_view *view);
int pages_report_bench_json(const struct bench *bench,
                            const struct dry_topology_view *view);
/*
 * Print the times of malloc in this process: {"here": [...]} in the same schema, or a line
 * each.
 */
int pages_report_here(const double ns[BENCH_SIZES], bool is_json);

#endif
