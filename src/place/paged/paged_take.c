/* SPDX-License-Identifier: Apache-2.0 */

/* Taking free memory of other streams: see paged_take.h. */

#include "place/paged/paged_take.h"

#include "base/assert.h"
#include "place/paged/record/paged_bins.h"
#include "place/paged/record/paged_block.h"
#include "place/paged/record/paged_event.h"
#include "place/paged/record/paged_order.h"

/*
 * Take a block that another stream freed up to some epoch. With `ordered`, that is the epoch after
 * which the request's stream is ordered; otherwise the last complete epoch of the other stream.
 */
static uint32_t
take_foreign(struct dryi_paged *p, const struct request *r, bool ordered)
{
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    uint32_t at = p->arenas[r->arena].lists;
    for (unsigned i = 0; at != NONE && i < VISITS_MAX; i++, at = p->lists[at]->next) {
        const struct free_list *s = p->lists[at];
        if (at == r->list || s->octaves == 0)
            continue;
        if (!ordered && p->streams[s->stream].first_use != NONE)
            dryi_paged_observe(p, s->stream);
        uint64_t epoch = ordered ? dryi_paged_known_epoch(p, r->stream, s->stream)
                                 : p->streams[s->stream].completed;
        if (ordered && epoch == 0)
            continue; /* the request's stream is not ordered after this stream */
        uint32_t found = dryi_paged_list_find_old(p, s, r->bytes, epoch);
        if (found == NONE)
            continue;
        *(ordered ? &p->counters.reused_ordered : &p->counters.reused_passed) += 1;
        return dryi_paged_take_found(p, r, found);
    }
    return NONE;
}

uint32_t
dryi_paged_take_passed(struct dryi_paged *p, const struct request *r)
{
    uint32_t block = NONE;
    if (p->conf.reuse_ordered)
        block = take_foreign(p, r, true);
    if (block == NONE && p->conf.reuse_passed)
        block = take_foreign(p, r, false);
    return block;
}

uint32_t
dryi_paged_take_some(struct dryi_paged *p, const struct request *r)
{
    uint32_t block = dryi_paged_take_own(p, r);
    return block == NONE ? dryi_paged_take_passed(p, r) : block;
}

/*
 * Events visited to find the first of a late enough epoch. The stream's last event is correct too,
 * but waits longer.
 */
#define EVENT_MAX 32

enum dry_status
dryi_paged_follow(struct dryi_paged *p, uint32_t stream, uint32_t on, uint64_t epoch)
{
    DRYI_ASSERT_SLOW(stream != on && epoch <= p->streams[on].epoch);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    enum dry_status status =
        p->streams[on].marked < epoch ? dryi_paged_mark(p, on) : DRY_OK;
    if (status != DRY_OK)
        return status;
    const struct stream *s = &p->streams[on];
    uint32_t use = s->first_use;
    if (use == NONE)
        return DRY_OK; /* no event is pending, so the epoch is complete */
    for (unsigned i = 0; p->uses[use].epoch < epoch; i++)
        use = i < EVENT_MAX ? p->uses[use].next : s->last_use;
    if (!dryi_paged_learn(p, stream, on, 0))
        return DRY_ERR_MEMORY;
    p->counters.driver_calls++;
    status = p->device.ops->stream_follow(p->device.self, p->streams[stream].value,
                                          p->uses[use].event);
    if (status != DRY_OK)
        return status;
    bool learnt = dryi_paged_learn(p, stream, on, p->uses[use].epoch);
    DRYI_ASSERT(learnt);
    (void)learnt;
    return DRY_OK;
}

enum dry_status
dryi_paged_take_waiting(struct dryi_paged *p, const struct request *r, uint32_t *block)
{
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    uint32_t at = p->arenas[r->arena].lists;
    for (unsigned i = 0; at != NONE && i < VISITS_MAX; i++, at = p->lists[at]->next) {
        const struct free_list *s = p->lists[at];
        uint32_t found = NONE;
        if (at != r->list)
            found = dryi_paged_list_find(p, s, r->bytes);
        if (found == NONE || dryi_paged_is_captured(p, s->stream) ||
            dryi_paged_is_captured(p, r->stream))
            continue;
        enum dry_status status =
            dryi_paged_follow(p, r->stream, s->stream, p->streams[s->stream].epoch);
        if (status == DRY_ERR_UNSUPPORTED)
            continue; /* nobody can tell of that one */
        if (status != DRY_OK)
            return status;
        p->counters.reused_waiting++;
        *block = dryi_paged_take_found(p, r, found);
        return DRY_OK;
    }
    return DRY_ERR_NO_SPACE;
}
