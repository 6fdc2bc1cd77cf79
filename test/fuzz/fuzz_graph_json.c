/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes as a graph. What is taken is sealed: its order has all nodes once, each after what
 * it reads, and running them in that order is a plan that the evaluation takes.
 */
#include "support/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "plan/graph_json.h"

#define TEXT_BYTES_MAX 4096

static void
require(int condition)
{
    if (!condition)
        abort();
}

static void
check_graph(const struct dry_graph *graph)
{
    size_t count = dry_graph_get_count(graph);
    const uint32_t *order = dry_graph_get_order(graph);
    struct dry_graph_cost cost;
    struct dry_error err;
    uint32_t node = UINT32_MAX;
    require(count > 0 && count <= DRY_GRAPH_NODES_MAX && order);
    require(dry_graph_evaluate(graph, order, count, NULL, &cost, &err) == DRY_OK);
    require(cost.rerun_count == 0 && cost.time_ns == cost.base_ns);
    require(dry_graph_get_floor(graph, &node) <= cost.peak_bytes && node < count);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct graph_file file;
    struct dry_error err = {.text = ""};
    json_t *tree;
    if (size > TEXT_BYTES_MAX)
        return 0;
    /* A copy, so that a byte too far is seen. */
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    if (json_in_parse(text, size, &tree, &err) == DRY_OK) {
        (void)graph_json_is(tree);
        if (graph_json_read(tree, NULL, &file, &err) == DRY_OK) {
            check_graph(file.graph);
            graph_file_finish(&file);
        } else {
            require(err.text[0] != '\0');
        }
        json_decref(tree);
    }
    free(text);
    return 0;
}
