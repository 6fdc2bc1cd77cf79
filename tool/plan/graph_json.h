/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_GRAPH_JSON_H
#define TOOL_GRAPH_JSON_H

/* Read a graph of operations from its file, "ckpt-graph/1"; see drystone-chain(5). */

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include <drystone/graph.h>

#include "plan/chain_json.h"

struct graph_file {
    struct dry_graph *graph; /* sealed: no nodes or edges can be added */
    size_t edge_count;       /* edges in the file, without those added for views */
    uint64_t always_bytes;   /* bytes held under every plan */
    struct chain_budget budget;
};

/* Tell whether a JSON tree declares itself a graph. */
bool graph_json_is(const json_t *tree);

/* Read a graph. Errors: FORMAT with the key's JSON path; LIMIT. After DRY_OK, call
   graph_file_finish(). */
DRY_CHECK_RESULT enum dry_status graph_json_read(json_t *tree,
                                                 const struct dry_memory *memory,
                                                 struct graph_file *file,
                                                 struct dry_error *err);
void graph_file_finish(struct graph_file *file);

#endif
