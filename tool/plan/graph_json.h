/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_GRAPH_JSON_H
#define TOOL_GRAPH_JSON_H

/* A graph from its file, "ckpt-graph/1", see drystone-chain(5). */

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include <drystone/graph.h>

#include "plan/chain_json.h"

struct graph_file {
    struct dry_graph *graph; /* sealed */
    size_t edge_count;       /* as the file has them */
    uint64_t always_bytes;   /* there whatever the plan */
    struct chain_budget budget;
};

/* Tell whether a tree says that it is a graph. */
bool graph_json_is(const json_t *tree);

/* FORMAT, with the key's way; LIMIT. graph_file_finish() is due after DRY_OK. */
DRY_CHECK_RESULT enum dry_status graph_json_read(json_t *tree,
                                                 const struct dry_memory *memory,
                                                 struct graph_file *file,
                                                 struct dry_error *err);
void graph_file_finish(struct graph_file *file);

#endif
