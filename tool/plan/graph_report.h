/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_GRAPH_REPORT_H
#define TOOL_GRAPH_REPORT_H

/* `drystone plan` for graphs: make the plan and report it as text or JSON. */

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

struct graph_request {
    const char *path;
    const char *out;       /* path of the plan's file; NULL: none */
    const char *lp;        /* path of the integer program (LP format); NULL: none */
    uint64_t budget_bytes; /* UINT64_MAX: take the file's budget */
    bool json;
};

/* Make and report the plan of a graph. Returns an exit_code. */
int graph_report_make(const struct graph_request *request, json_t *tree);

#endif
