/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any text as a grid of settings. What is taken has combinations within its bounds, whose
 * texts are words alone, no two alike; what is not taken says why.
 */
#include "support/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "sweep/sweep_grid.h"

#define LOOKED_AT 300

static void
require(int condition)
{
    if (!condition)
        abort();
}

/* A text has as many colons outside of lists as it has keys. */
static void
check_conf(const struct sweep_grid *g, size_t combination, const char *conf)
{
    size_t expected = 0, found = 0;
    int depth = 0;
    for (size_t k = 0; k < g->key_count; k++)
        expected += sweep_grid_value(g, combination, k)->text != NULL;
    for (const char *c = conf; *c; c++) {
        require(*c > ' ' && *c < 127);
        depth += (*c == '[') - (*c == ']');
        found += *c == ':' && depth == 0;
    }
    require(depth == 0 && found == expected);
}

static void
check(const struct sweep_grid *g)
{
    char *before = NULL;
    require(g->key_count > 0 && g->combination_count > 0 &&
            g->combination_count <= SWEEP_COMBINATIONS_MAX);
    for (size_t i = 0; i < g->combination_count && i < LOOKED_AT; i++) {
        char *conf = sweep_grid_write(g, i);
        if (!conf)
            break;
        check_conf(g, i, conf);
        require(!before || strcmp(before, conf) != 0);
        free(before);
        before = conf;
    }
    free(before);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[SWEEP_GRID_WHY_BYTES] = "";
    struct sweep_grid g;
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    if (sweep_grid_parse(text, &g, why))
        check(&g);
    else
        require(why[0] != '\0' && strlen(why) < sizeof why);
    sweep_grid_finish(&g);
    free(text);
    return 0;
}
