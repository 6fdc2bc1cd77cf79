/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Evaluates a choice, complete or partial: which items are certainly recomputed. A
 * recomputed item wants its inputs, which precede it, so one backward pass finds all.
 *
 * Cost: items and inputs.
 */
#include <string.h>

#include "plan/knapsack/knapsack_state.h"

uint64_t
dryi_keep_evaluate(struct dryi_keep *k)
{
    uint64_t time = 0;
    memset(k->is_wanted, 0, k->count);
    for (size_t c = 0; c < k->cluster_count; c++) {
        k->clusters[c].value = 0;
        k->clusters[c].is_certain = false;
    }
    for (size_t i = k->count; i-- > 0;) {
        struct dryi_cluster *c = &k->clusters[k->cluster[i]];
        if (c->state == DRYI_KEEP_KEPT || (k->items[i].is_unread && !k->is_wanted[i]))
            continue;
        if (c->state == DRYI_KEEP_OPEN) {
            c->is_certain = true;
            c->value += k->items[i].time_ns;
            continue;
        }
        time += k->items[i].time_ns;
        for (uint32_t e = k->first[i]; e < k->first[i + 1]; e++)
            k->is_wanted[k->inputs[e]] = 1;
    }
    return time;
}
