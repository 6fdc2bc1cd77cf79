/* SPDX-License-Identifier: Apache-2.0 */

/*
 * graph_lp linear N BUDGET | random SEED BUDGET: write the program of a graph to stdout, and
 * the best time, or "none", to stderr. For golden/graph_lp.py, which has it solved by others.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/graph.h>

#include "support/random.h"

static void
require(int condition)
{
    if (!condition)
        abort();
}

static void
make_linear(struct dry_graph *graph, uint32_t n)
{
    struct dry_graph_node node = {.time_ns = 1, .bytes = 1 << 20};
    for (uint32_t i = 0; i < 2 * n + 1; i++)
        require(dry_graph_add(graph, &node, NULL) == DRY_OK);
    for (uint32_t i = 0; i < 2 * n; i++)
        require(dry_graph_connect(graph, i, i + 1, NULL) == DRY_OK);
    for (uint32_t i = 0; i < n; i++)
        require(dry_graph_connect(graph, i, 2 * n - i, NULL) == DRY_OK);
}

static void
make_random(struct dry_graph *graph, uint64_t seed)
{
    struct random r;
    random_init(&r, seed);
    uint32_t count = 3 + (uint32_t)random_below(&r, 5);
    for (uint32_t i = 0; i < count; i++) {
        struct dry_graph_node node = {
            .time_ns = 1 + random_below(&r, 9),
            .bytes = 512 * random_below(&r, 6),
            .tmp_bytes = random_below(&r, 4) ? 0 : 512 * random_below(&r, 4),
            .is_fixed = random_below(&r, 10) == 0,
            .is_output = random_below(&r, 10) == 0,
        };
        require(dry_graph_add(graph, &node, NULL) == DRY_OK);
        for (uint32_t k = 0; k < i; k++) {
            if (random_below(&r, 5) < 2)
                require(dry_graph_connect(graph, k, i, NULL) == DRY_OK);
        }
    }
}

static bool
write_text(void *self, const char *text, size_t length)
{
    return fwrite(text, 1, length, self) != length;
}

static void
print_best(const struct dry_graph *graph, uint64_t budget)
{
    struct dry_graph_options options;
    struct dry_graph_plan *plan;
    dry_graph_options_init(&options);
    options.budget_bytes = budget;
    enum dry_status status = dry_graph_plan_create(graph, &options, &plan, NULL);
    if (status == DRY_ERR_NO_SPACE) {
        fputs("none\n", stderr);
        return;
    }
    require(status == DRY_OK && dry_graph_plan_get_summary(plan)->is_proved);
    fprintf(stderr, "%" PRIu64 "\n", dry_graph_plan_get_summary(plan)->cost.time_ns);
    dry_graph_plan_destroy(plan);
}

int
main(int argc, char **argv)
{
    struct dry_graph *graph;
    if (argc != 4)
        return 2;
    uint64_t number = strtoull(argv[2], NULL, 10), budget = strtoull(argv[3], NULL, 10);
    require(dry_graph_create(NULL, &graph, NULL) == DRY_OK);
    if (strcmp(argv[1], "linear") == 0)
        make_linear(graph, (uint32_t)number);
    else
        make_random(graph, number);
    require(dry_graph_seal(graph, NULL, NULL) == DRY_OK);
    struct dry_graph_writer writer = {write_text, stdout};
    require(dry_graph_write_lp(graph, budget, &writer, NULL) == DRY_OK);
    print_best(graph, budget);
    dry_graph_destroy(graph);
    return 0;
}
