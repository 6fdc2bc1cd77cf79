/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The knapsack as a table over a grid, for the gap that branch and bound left.
 *
 * With sizes rounded up to units, every choice of the table fits. Rounded down, the table saves at
 * least as much as any choice that fits, which gives a bound. If the greatest common divisor of
 * the sizes is a large enough unit, nothing is rounded and the result is optimal.
 *
 * Cost: two passes of clusters x slots; one bit each to reconstruct the choice.
 */
#include <string.h>

#include "base/bits.h"
#include "base/memory.h"
#include "plan/knapsack/knapsack_state.h"

#define SLOTS_MAX 10000u
#define CLUSTERS_MAX 20000u
#define BITS_MAX (UINT64_C(1) << 28)

struct table {
    struct dryi_keep *k;
    uint64_t left; /* budget left, in bytes */
    uint64_t unit;
    uint64_t slots;   /* number of slots in `left` */
    uint64_t *saved;  /* [slots used]: the most time saved */
    uint64_t *way;    /* a bit for each cluster and slot count: the cluster is kept */
    size_t row_words; /* 64-bit elements of `way` for each cluster */
};

static bool
is_item(const struct table *t, size_t c)
{
    const struct dryi_cluster *cluster = &t->k->clusters[c];
    return cluster->state == DRYI_KEEP_OPEN && cluster->bytes <= t->left;
}

static void
choose_unit(struct table *t)
{
    uint64_t divisor = 0, items = 1;
    for (size_t c = 0; c < t->k->cluster_count; c++) {
        if (is_item(t, c)) {
            divisor = dryi_common_divisor(t->k->clusters[c].bytes, divisor);
            items++;
        }
    }
    uint64_t slots = BITS_MAX / items < SLOTS_MAX ? BITS_MAX / items : SLOTS_MAX;
    uint64_t unit = t->left / slots + (t->left % slots > 0);
    t->unit = divisor > unit ? divisor : unit;
    t->unit = t->unit ? t->unit : 1;
    if (divisor && t->left / divisor <= slots)
        t->unit = divisor;
    t->slots = t->left / t->unit;
}

static void
add(struct table *t, size_t c, uint64_t width, bool has_way)
{
    uint64_t value = t->k->clusters[c].value;
    for (uint64_t slot = t->slots + 1; slot-- > width;) {
        uint64_t other = t->saved[slot - width] + value;
        if (other <= t->saved[slot])
            continue;
        t->saved[slot] = other;
        if (has_way)
            t->way[c * t->row_words + slot / 64] |= UINT64_C(1) << slot % 64;
    }
}

/* Return the most time that can be saved, with sizes rounded up (recording `way`) or down. */
static uint64_t
fill(struct table *t, bool is_up)
{
    memset(t->saved, 0, (t->slots + 1) * sizeof *t->saved);
    for (size_t c = 0; c < t->k->cluster_count; c++) {
        if (!is_item(t, c))
            continue;
        uint64_t bytes = t->k->clusters[c].bytes;
        uint64_t width = bytes / t->unit + (is_up && bytes % t->unit > 0);
        if (width <= t->slots)
            add(t, c, width, is_up);
    }
    return t->saved[t->slots];
}

/* Set the states of the clusters to the table's choice, then keep everything else that fits. */
static void
take(struct table *t)
{
    uint64_t slot = t->slots, left = t->left;
    for (size_t c = t->k->cluster_count; c-- > 0;) {
        if (!(t->way[c * t->row_words + slot / 64] >> slot % 64 & 1))
            continue;
        uint64_t bytes = t->k->clusters[c].bytes;
        t->k->clusters[c].state = DRYI_KEEP_KEPT;
        slot -= bytes / t->unit + (bytes % t->unit > 0);
        left -= bytes;
    }
    for (size_t c = 0; c < t->k->cluster_count; c++) {
        struct dryi_cluster *cluster = &t->k->clusters[c];
        if (cluster->state != DRYI_KEEP_OPEN)
            continue;
        bool is_kept = cluster->bytes <= left;
        cluster->state = is_kept ? DRYI_KEEP_KEPT : DRYI_KEEP_DROPPED;
        left -= is_kept ? cluster->bytes : 0;
    }
}

static void
improve(struct table *t)
{
    struct dryi_keep *k = t->k;
    uint64_t all = dryi_keep_evaluate(k); /* also sets the clusters' values */
    for (size_t c = 0; c < k->cluster_count; c++)
        all += k->clusters[c].value;
    uint64_t bound = all - fill(t, false);
    fill(t, true);
    take(t);
    uint64_t time = dryi_keep_evaluate(k);
    if (time < k->best_time) {
        k->best_time = time;
        for (size_t c = 0; c < k->cluster_count; c++)
            k->best[c] = k->clusters[c].state == DRYI_KEEP_KEPT;
    }
    bound = bound > k->bound ? bound : k->bound;
    k->bound = bound < k->best_time ? bound : k->best_time;
}

enum dry_status
dryi_keep_table(struct dryi_keep *k)
{
    struct table t = {.k = k, .left = k->budget - k->always};
    if (k->cluster_count > CLUSTERS_MAX)
        return DRY_OK;
    choose_unit(&t);
    t.row_words = (size_t)(t.slots / 64 + 1);
    size_t slot_count = (size_t)t.slots + 1, words = t.row_words * k->cluster_count;
    t.saved = dryi_memory_zalloc(&k->memory, slot_count, sizeof *t.saved);
    t.way = dryi_memory_zalloc(&k->memory, words, sizeof *t.way);
    bool is_fine = t.saved && t.way;
    if (is_fine)
        improve(&t);
    dryi_memory_free(&k->memory, t.way, words, sizeof *t.way);
    dryi_memory_free(&k->memory, t.saved, slot_count, sizeof *t.saved);
    return is_fine ? DRY_OK : DRY_ERR_MEMORY;
}
