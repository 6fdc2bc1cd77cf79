/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Branch and bound over clusters.
 *
 * At a node some clusters are kept and some dropped. The items that are then certainly recomputed
 * take the time `forced`. The value of an open cluster is the time that dropping it alone would
 * certainly add. Open clusters that are not certainly needed add nothing. So no choice below the
 * node takes less than forced + all values - the fractional knapsack of the values. The fractional
 * knapsack takes open clusters by value per byte, the last one in part (Dantzig 1957).
 *
 *   K1  If all certain ones fit, keeping them and dropping the rest meets the bound: solved.
 *   K2  If not, the cluster that fits in part only decides: keep it first, then drop it.
 *   K3  Clusters larger than what is left are dropped at once.
 *   K4  In additive problems, clusters of the same bytes and value are kept in their order:
 *       dropping one drops those after it, keeping one keeps those before it. Blocks that
 *       repeat have many such clusters.
 *   K5  The whole ones plus all later ones that fit are a choice, and may be the best so far.
 *   K6  In other problems values say little, and a minimum cut gives a second bound and a
 *       second choice, which prefers what the cut keeps.
 *
 * Cost: a node is a pass over items and inputs; if values change, a sort and a flow too.
 */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "plan/knapsack/knapsack_state.h"

#define NOBODY UINT32_MAX
#define PRICES 40u /* prices tried at the root */
#define PRICE_MAX (UINT64_C(1) << 62)

struct decision {
    uint32_t at;   /* index in `order` at the time of the decision */
    size_t trail;  /* `trail_count` before */
    uint64_t left; /* budget left before */
    uint64_t bound;
    uint32_t cluster;
};

struct search {
    struct dryi_keep *k;
    uint32_t *order; /* open clusters of the root, by value per byte */
    size_t order_count;
    uint32_t *trail; /* clusters decided since the root */
    size_t trail_count;
    struct decision *decisions;
    size_t decision_count;
    uint8_t *choice; /* scratch for a choice, one per cluster */
    uint32_t *kind;  /* twin clusters (K4) have equal numbers, in additive problems */
    struct dryi_cut *cut; /* NULL: the problem is additive */
    uint8_t *is_cut;      /* the cut keeps the cluster */
    uint64_t left;        /* budget left, in bytes */
};

/* --- the order ------------------------------------------------------------------------------ */

/* Return whether x precedes y by value per byte. The order is total. */
static bool
comes_first(const struct dryi_keep *k, uint32_t x, uint32_t y)
{
    const struct dryi_cluster *a = &k->clusters[x], *b = &k->clusters[y];
    dryi_wide left = (dryi_wide)a->value * b->bytes,
              right = (dryi_wide)b->value * a->bytes;
    if (left != right)
        return left > right;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes;
    return a->value != b->value ? a->value > b->value : x < y;
}

static void
sift(const struct search *s, size_t i, size_t count)
{
    uint32_t *heap = s->order;
    for (size_t child = 2 * i + 1; child < count; child = 2 * i + 1) {
        if (child + 1 < count && comes_first(s->k, heap[child], heap[child + 1]))
            child++;
        if (comes_first(s->k, heap[child], heap[i]))
            return;
        uint32_t other = heap[i];
        heap[i] = heap[child];
        heap[child] = other;
        i = child;
    }
}

/* Sort `order` by comes_first() with a heap (no memory, no recursion). */
static void
sort_order(const struct search *s)
{
    for (size_t i = s->order_count / 2; i-- > 0;)
        sift(s, i, s->order_count);
    for (size_t end = s->order_count; end-- > 1;) {
        uint32_t last = s->order[0];
        s->order[0] = s->order[end];
        s->order[end] = last;
        sift(s, 0, end);
    }
}

/* --- decisions ------------------------------------------------------------------------------ */

static void
decide(struct search *s, uint32_t cluster, enum dryi_keep_state state)
{
    struct dryi_cluster *c = &s->k->clusters[cluster];
    DRYI_ASSERT(c->state == DRYI_KEEP_OPEN);
    c->state = (uint8_t)state;
    s->trail[s->trail_count++] = cluster;
    if (state == DRYI_KEEP_KEPT)
        s->left -= c->bytes;
}

static void
undo(struct search *s, const struct decision *d)
{
    while (s->trail_count > d->trail)
        s->k->clusters[s->trail[--s->trail_count]].state = DRYI_KEEP_OPEN;
    s->left = d->left;
}

static bool
is_twin(const struct search *s, uint32_t x, uint32_t y)
{
    return s->k->is_additive && s->k->clusters[y].state == DRYI_KEEP_OPEN &&
           s->kind[x] == s->kind[y];
}

/*
 * Keep the cluster and its twins before it (K4), which are adjacent as the order of
 * additive problems never changes. Returns false if they do not fit.
 */
static bool
keep(struct search *s, uint32_t at)
{
    uint32_t first = at;
    while (first > 0 && is_twin(s, s->order[at], s->order[first - 1]))
        first--;
    if (s->k->clusters[s->order[at]].bytes > s->left / (at - first + 1))
        return false;
    for (; first <= at; first++)
        decide(s, s->order[first], DRYI_KEEP_KEPT);
    return true;
}

static void
drop(struct search *s, const struct decision *d)
{
    decide(s, d->cluster, DRYI_KEEP_DROPPED);
    if (!s->k->is_additive)
        return; /* the order may have changed; twins exist only in additive problems */
    for (size_t at = d->at + 1; at < s->order_count; at++) {
        if (!is_twin(s, d->cluster, s->order[at]))
            return;
        decide(s, s->order[at], DRYI_KEEP_DROPPED);
    }
}

/* --- a node --------------------------------------------------------------------------------- */

/* Drop clusters that exceed the budget left (K3). */
static void
drop_too_large(struct search *s)
{
    for (size_t at = 0; at < s->order_count; at++) {
        const struct dryi_cluster *c = &s->k->clusters[s->order[at]];
        if (c->state == DRYI_KEEP_OPEN && c->bytes > s->left)
            decide(s, s->order[at], DRYI_KEEP_DROPPED);
    }
}

struct filling {
    uint64_t values; /* sum over open clusters */
    uint64_t saved; /* the most time that clusters which fit can save, the last in part */
    /* Index in `order` of the first that fits only in part; NOBODY: all fit. */
    uint32_t broken;
};

/* Set `choice` to the clusters that fit whole, including those after the broken one (K5). */
static struct filling
fill(struct search *s)
{
    struct filling f = {.broken = NOBODY};
    uint64_t residual = s->left;
    for (size_t c = 0; c < s->k->cluster_count; c++)
        s->choice[c] = s->k->clusters[c].state == DRYI_KEEP_KEPT;
    for (uint32_t at = 0; at < s->order_count; at++) {
        const struct dryi_cluster *c = &s->k->clusters[s->order[at]];
        if (c->state != DRYI_KEEP_OPEN || !c->is_certain)
            continue;
        f.values += c->value;
        if (c->bytes <= residual) {
            residual -= c->bytes;
            s->choice[s->order[at]] = 1;
            f.saved += f.broken == NOBODY ? c->value : 0;
        } else if (f.broken == NOBODY) {
            f.broken = at;
            f.saved += (uint64_t)((dryi_wide)c->value * residual / c->bytes);
        }
    }
    return f;
}

/* Return the time of `choice`. The states are restored afterwards. */
static uint64_t
time_of_choice(struct search *s)
{
    struct dryi_keep *k = s->k;
    size_t trail = s->trail_count;
    uint64_t left = s->left;
    for (size_t at = 0; at < s->order_count; at++) {
        uint32_t c = s->order[at];
        if (k->clusters[c].state == DRYI_KEEP_OPEN)
            decide(s, c, s->choice[c] ? DRYI_KEEP_KEPT : DRYI_KEEP_DROPPED);
    }
    uint64_t time = dryi_keep_evaluate(k);
    undo(s, &(struct decision){.trail = trail, .left = left});
    return time;
}

static void
spend(struct search *s)
{
    struct dryi_keep *k = s->k;
    uint64_t visits = 2 * (k->count + k->first[k->count]) + 4 * k->cluster_count;
    k->effort -= visits < k->effort ? visits : k->effort;
    k->nodes++;
}

static void
offer(struct search *s)
{
    struct dryi_keep *k = s->k;
    uint64_t time = time_of_choice(s);
    if (time < k->best_time) {
        k->best_time = time;
        memcpy(k->best, s->choice, k->cluster_count);
    }
}

/* Offer a choice that keeps what the cut keeps and fits, then everything else that fits. */
static void
offer_cut(struct search *s)
{
    struct dryi_keep *k = s->k;
    uint64_t residual = s->left;
    for (size_t c = 0; c < k->cluster_count; c++)
        s->choice[c] = k->clusters[c].state == DRYI_KEEP_KEPT;
    for (unsigned pass = 0; pass < 2; pass++) {
        for (size_t at = 0; at < s->order_count; at++) {
            uint32_t c = s->order[at];
            if (k->clusters[c].state != DRYI_KEEP_OPEN || s->choice[c] ||
                k->clusters[c].bytes > residual || (pass == 0 && !s->is_cut[c]))
                continue;
            s->choice[c] = 1;
            residual -= k->clusters[c].bytes;
        }
    }
    offer(s);
}

/* Compute the cut's bound, and offer its choice. *bytes: what the cut keeps. */
static uint64_t
bound_cut(struct search *s, uint64_t *bytes)
{
    struct dryi_keep *k = s->k;
    uint64_t bound = dryi_cut_bound(s->cut, s->left);
    *bytes = 0;
    memset(s->is_cut, 0, k->cluster_count);
    for (uint32_t i = 0; i < k->count; i++) {
        if (k->clusters[k->cluster[i]].state != DRYI_KEEP_OPEN ||
            !dryi_cut_is_kept(s->cut, i))
            continue;
        s->is_cut[k->cluster[i]] = 1;
        *bytes += k->items[i].bytes;
    }
    offer_cut(s);
    return bound;
}

/*
 * Find the best price by bisection between one whose cut exceeds the budget and one whose
 * cut fits. The first guess is the time of all items over the bytes of all.
 */
static uint64_t
find_price(struct search *s)
{
    uint64_t low = 0, high = 0, time = 0, bytes = 1, best = 0, best_price = 0;
    for (size_t i = 0; i < s->k->count; i++) {
        time += s->k->items[i].time_ns;
        bytes += s->k->items[i].bytes;
    }
    dryi_wide guess = ((dryi_wide)time << 32) / bytes;
    uint64_t price = guess < PRICE_MAX ? (uint64_t)guess : PRICE_MAX;
    for (unsigned n = 0; n < PRICES && s->k->effort > 0; n++) {
        dryi_cut_set_price(s->cut, price);
        uint64_t bound = bound_cut(s, &bytes);
        if (bound > best) {
            best = bound;
            best_price = price;
        }
        *(bytes > s->left ? &low : &high) = price;
        if (high == 0)
            price = price < PRICE_MAX / 4 ? price * 4 + 1 : PRICE_MAX;
        else
            price = low == 0 ? price / 4 : low + (high - low) / 2;
        if (price == low || price == high)
            break;
    }
    dryi_cut_set_price(s->cut, best_price);
    return best;
}

/* Return the better of `bound` and the cut's (K6). */
static uint64_t
bound_by_cut(struct search *s, uint64_t bound)
{
    uint64_t bytes;
    uint64_t other = s->k->nodes == 1 ? find_price(s) : bound_cut(s, &bytes);
    return other > bound ? other : bound;
}

/* Process a node. Returns false if no choice below it can improve on the best. */
static bool
expand(struct search *s)
{
    struct dryi_keep *k = s->k;
    spend(s);
    drop_too_large(s);
    uint64_t forced = dryi_keep_evaluate(k);
    if (!k->is_additive)
        sort_order(s);
    struct filling f = fill(s);
    uint64_t bound = forced + f.values - f.saved;
    if (k->nodes == 1)
        k->bound = bound;
    if (bound >= k->best_time)
        return false;
    offer(s);
    if (s->cut && bound < k->best_time)
        bound = bound_by_cut(s, bound);
    if (k->nodes == 1)
        k->bound = bound;
    if (bound >= k->best_time)
        return false;
    DRYI_ASSERT(f.broken != NOBODY); /* K1: otherwise the bound was met */
    s->decisions[s->decision_count++] =
        (struct decision){f.broken, s->trail_count, s->left, bound, s->order[f.broken]};
    return keep(s, f.broken);
}

static bool
retreat(struct search *s)
{
    if (s->decision_count == 0)
        return false;
    struct decision d = s->decisions[--s->decision_count];
    undo(s, &d);
    drop(s, &d);
    return true;
}

/* Bound the open nodes: they are below the oldest decision, whose bound holds for all of them. */
static void
settle_bound(struct search *s, bool is_done)
{
    struct dryi_keep *k = s->k;
    if (!is_done && s->decision_count > 0 && s->decisions[0].bound > k->bound)
        k->bound = s->decisions[0].bound;
    if (is_done || k->bound > k->best_time)
        k->bound = k->best_time;
}

static void
run(struct search *s)
{
    bool is_done = false;
    while (!is_done && s->k->effort > 0) {
        if (!expand(s))
            is_done = !retreat(s);
    }
    settle_bound(s, is_done);
}

static void
init_order(struct search *s)
{
    struct dryi_keep *k = s->k;
    for (uint32_t c = 0; c < k->cluster_count; c++) {
        if (k->clusters[c].state == DRYI_KEEP_OPEN)
            s->order[s->order_count++] = c;
    }
    dryi_keep_evaluate(k);
    sort_order(s);
    for (size_t at = 1; at < s->order_count; at++) {
        const struct dryi_cluster *a = &k->clusters[s->order[at - 1]];
        const struct dryi_cluster *b = &k->clusters[s->order[at]];
        bool is_same = a->bytes == b->bytes && a->value == b->value;
        s->kind[s->order[at]] = s->kind[s->order[at - 1]] + !is_same;
    }
}

enum dry_status
dryi_keep_search(struct dryi_keep *k)
{
    const struct dry_memory *m = &k->memory;
    size_t count = k->cluster_count;
    struct search s = {.k = k, .left = k->budget - k->always};
    s.order = dryi_memory_zalloc(m, count, sizeof *s.order);
    s.trail = dryi_memory_zalloc(m, count, sizeof *s.trail);
    s.decisions = dryi_memory_zalloc(m, count, sizeof *s.decisions);
    s.choice = dryi_memory_zalloc(m, count, sizeof *s.choice);
    s.kind = dryi_memory_zalloc(m, count, sizeof *s.kind);
    s.is_cut = dryi_memory_zalloc(m, count, sizeof *s.is_cut);
    s.cut = k->is_additive ? NULL : dryi_cut_create(k);
    bool is_fine = s.order && s.trail && s.decisions && s.choice && s.kind && s.is_cut &&
                   (s.cut || k->is_additive);
    if (is_fine) {
        k->best_time = UINT64_MAX;
        k->effort = k->effort ? k->effort : 1; /* the root is always processed */
        init_order(&s);
        run(&s);
        undo(&s, &(struct decision){.left = k->budget - k->always});
    }
    dryi_cut_destroy(s.cut);
    dryi_memory_free(m, s.is_cut, count, sizeof *s.is_cut);
    dryi_memory_free(m, s.kind, count, sizeof *s.kind);
    dryi_memory_free(m, s.choice, count, sizeof *s.choice);
    dryi_memory_free(m, s.decisions, count, sizeof *s.decisions);
    dryi_memory_free(m, s.trail, count, sizeof *s.trail);
    dryi_memory_free(m, s.order, count, sizeof *s.order);
    return is_fine ? DRY_OK : DRY_ERR_MEMORY;
}
