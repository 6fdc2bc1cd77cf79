/* SPDX-License-Identifier: Apache-2.0 */

/*
 * When large blocks are kept whole on fronts, for the next request of their size.
 *
 * That saves a merge, a search and a split. But what is kept whole cannot be part of anything
 * larger, and may stand in the way of it: more is reserved, and pages move that would not have
 * to. Small blocks have an arena of their own, where this is little; of large ones it is
 * percents of all memory. So it is done where it costs next to nothing: where for a while no
 * request has needed pages (a program that warms up needs them all the time), where the device
 * has much room left, where there is no plan, and where these blocks are taken again far more
 * often than they are merged after all, and no more pages move for it. Where pages cannot move it
 * is never done. Threads that share fronts always do it: they would have to meet else.
 */

#include "place/paged_state.h"

/* Of the device or the limit: where less than this is left, none is kept. */
#define NEAR_SHARE 4
/* Where it did not pay it is tried again after so many times as many requests. */
#define PATIENCE 4
#define QUIET_MOST 65536
/* After so many merged after all, or looked for in vain, it is seen whether it pays. */
#define JUDGED_FLUSHED 256
#define JUDGED_MISSED 4096
#define FLUSHED_SPARE 8
#define MOVED_SHARE 4096

void
dryi_paged_whole_limit(struct dryi_paged *p)
{
    uint64_t most = p->limit_bytes < p->device_total ? p->limit_bytes : p->device_total;
    p->whole.most = most - most / NEAR_SHARE;
}

void
dryi_paged_whole_disturb(struct dryi_paged *p)
{
    p->whole.from = p->requests + p->whole.quiet;
}

/*
 * A page that moves costs as much as hundreds of blocks taken again save (doc/benchmarks.md). Of
 * some programs pages move anyway: so what counts is whether more do, a request, while blocks are
 * kept than while they are not.
 */
static bool
moves_pages(const struct whole *w)
{
    const struct whole_phase *kept = &w->phases[1], *merged = &w->phases[0];
    double usual =
        merged->requests ? (double)merged->moved / (double)merged->requests : 0;
    return (double)kept->moved >
           (1.5 * usual + 1.0 / MOVED_SHARE) * (double)kept->requests + FLUSHED_SPARE;
}

/*
 * A block taken again saves some 500 instructions; one that is merged after all costs about as
 * many, and twice that in a request that waits for it; a look in vain costs 50.
 */
static bool
has_paid(const struct whole *w)
{
    return w->flushed <= w->taken / 2 + FLUSHED_SPARE && w->missed / 8 <= w->taken &&
           !moves_pages(w);
}

static bool
judge(struct dryi_paged *p)
{
    struct whole *w = &p->whole;
    uint64_t least = p->conf.whole_after;
    bool is_good = has_paid(w);
    if (is_good) {
        w->quiet = w->quiet / 2 > least ? w->quiet / 2 : least;
    } else {
        if (w->quiet < QUIET_MOST)
            w->quiet = (w->quiet > 0 ? w->quiet : 1) * PATIENCE;
        dryi_paged_whole_disturb(p);
    }
    w->flushed = w->taken = w->missed = 0;
    for (int i = 0; i < 2; i++) { /* what was long ago counts less */
        w->phases[i].requests /= 2;
        w->phases[i].moved /= 2;
    }
    return is_good;
}

/* What has happened since this was last called belongs to what was done then. */
static void
note_phase(struct dryi_paged *p, bool was_kept)
{
    struct whole *w = &p->whole;
    w->phases[was_kept].requests += p->requests - w->noted.requests;
    w->phases[was_kept].moved += p->counters.pages_remapped - w->noted.moved;
    w->noted = (struct whole_phase){p->requests, p->counters.pages_remapped};
}

/* Is it time to say whether it pays? When it begins anew, too, if pages ended it before. */
static bool
is_due(const struct whole *w, bool was_kept)
{
    return was_kept ? w->flushed >= JUDGED_FLUSHED || w->missed >= JUDGED_MISSED
                    : w->flushed + w->taken + w->missed > 0;
}

void
dryi_paged_whole_look(struct dryi_paged *p)
{
    const struct whole *w = &p->whole;
    bool may_keep = p->page_bytes > 0 && p->requests >= w->from && !p->is_full &&
                    tally_all(p, TALLY_RESERVED_BYTES) <= w->most &&
                    !(p->hints && dryi_forecast_is_planned(p->hints));
    bool was_kept = p->front_max == UINT64_MAX, keeps = p->is_shared || may_keep;
    if (!p->is_shared && keeps && is_due(w, was_kept)) {
        note_phase(p, was_kept);
        keeps = judge(p);
    }
    if (keeps == was_kept)
        return;
    note_phase(p, was_kept);
    p->front_max = keeps ? UINT64_MAX : p->conf.small_max; /* all fronts read it */
}
