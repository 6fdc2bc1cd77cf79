/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_GRAPH_REPORT_H
#define TOOL_GRAPH_REPORT_H

/* `drystone plan` of a graph: the plan made, and told as text or JSON. */

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

struct graph_request {
    const char *path;
    const char *out;       /* NULL: no file */
    const char *lp;        /* likewise; the problem as a program */
    uint64_t budget_bytes; /* UINT64_MAX: the file's */
    bool json;
};

/* An exit_code. */
int graph_report_make(const struct graph_request *request, json_t *tree);

#endif
