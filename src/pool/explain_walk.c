/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The walk over one segment, in address order. Runs of unused blocks alternate with blocks in use.
 * If a segment can only be released whole, it counts as one page.
 */

#include "base/bits.h"
#include "pool/explain.h"

/* Offsets are relative to the segment's begin. */
struct walk {
    const struct dryi_explain_request *request;
    struct dryi_explain_sums *sums;
    uint64_t base, page;
    uint64_t unused_from, unused_to; /* the last unused run; unused_to 0: none yet */
    uint64_t pinned;                 /* bytes in this segment */
    /* Blocks in use that end in this page, and that pin no unused memory so far. */
    uint64_t waiting_page, waiting_bytes, waiting_count;
    /* The last block in use, judged once the bytes after it are known. */
    const struct dryi_block_info *last;
    uint64_t before; /* unused bytes directly before it */
    bool last_pins;
};

static void
count_pinners(struct walk *w, uint64_t bytes, uint64_t count)
{
    w->sums->pinner_bytes += bytes;
    w->sums->pinner_count += count;
}

/*
 * Judge the last block in use, with `after` unused bytes following it: would its free join the most
 * unused bytes of all pinning blocks?
 */
static void
judge_last(struct walk *w, uint64_t after, bool pins)
{
    uint64_t gain = w->before + after;
    if (w->last && (pins || w->last_pins) && gain > w->sums->worst_gain) {
        w->sums->worst_gain = gain;
        w->sums->worst_hole = gain + w->last->size;
        w->sums->worst_address = w->last->addr;
    }
    w->last = NULL;
}

static void
take_used(struct walk *w, const struct dryi_block_info *b)
{
    uint64_t from = b->addr - w->base, to = from + b->size;
    if (w->last)
        judge_last(w, 0, false);
    w->last = b;
    w->before = w->unused_to == from && from > 0 ? from - w->unused_from : 0;
    w->last_pins = w->unused_to > dryi_round_down(from, w->page);
    if (w->last_pins) {
        count_pinners(w, b->size, 1);
        return;
    }
    uint64_t page = dryi_round_down(to - 1, w->page);
    if (page != w->waiting_page)
        w->waiting_bytes = w->waiting_count = 0;
    w->waiting_page = page;
    w->waiting_bytes += b->size;
    w->waiting_count++;
}

/* Count an unused range [from, to) between blocks in use or bounds of the segment. */
static void
take_unused(struct walk *w, uint64_t from, uint64_t to)
{
    uint64_t page = dryi_round_down(from, w->page);
    bool shares = from != page && w->waiting_count > 0 && w->waiting_page == page;
    if (shares)
        count_pinners(w, w->waiting_bytes, w->waiting_count);
    w->waiting_bytes = w->waiting_count = 0;
    judge_last(w, to - from, from != page);
    uint64_t begin = dryi_round_up(from, w->page), end = dryi_round_down(to, w->page);
    uint64_t whole = end > begin ? end - begin : 0;
    w->sums->releasable += whole;
    w->sums->pinned += to - from - whole;
    w->unused_from = from;
    w->unused_to = to;
}

/* A pending block may wait for such a stream too. */
static bool
is_fixed(const struct dryi_explain_request *request, const struct dryi_block_info *b)
{
    return request->is_fixed &&
           (b->pending || request->is_fixed(request->self, b->stream));
}

static bool
is_unused(const struct walk *w, const struct dryi_block_info *b)
{
    return !b->allocated && !is_fixed(w->request, b);
}

static void
walk_pins(struct walk *w, const struct dryi_block_info *blocks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!is_unused(w, &blocks[i])) {
            take_used(w, &blocks[i]);
            continue;
        }
        uint64_t from = blocks[i].addr - w->base;
        while (i + 1 < count && is_unused(w, &blocks[i + 1]))
            i++;
        take_unused(w, from, blocks[i].addr + blocks[i].size - w->base);
    }
    judge_last(w, 0, false);
}

static void
raise(uint64_t *most, uint64_t value)
{
    if (value > *most)
        *most = value;
}

static void
count_hole(struct dryi_explain_sums *sums, const struct dryi_explain_request *request,
           const struct dryi_block_info *block, uint64_t size)
{
    raise(&sums->largest_hole_any, size);
    if (!dryi_is_same_pool(block->pool, request->pool) ||
        (block->stream != request->stream && !request->any_stream))
        return;
    if (size < request->oversize)
        raise(&sums->fitting_hole[block->is_large], size);
    else
        raise(&sums->oversized_hole, size);
    if (block->is_large == request->is_large && size < request->hole_limit)
        raise(&sums->largest_hole, size);
}

/* Count adjacent free blocks of one stream as one hole, because a request can join them. */
static void
walk_holes(struct dryi_explain_sums *sums, const struct dryi_explain_request *request,
           const struct dryi_block_info *blocks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct dryi_block_info *b = &blocks[i];
        if (b->pending)
            sums->pending += b->size;
        if (b->allocated || b->pending)
            continue;
        uint64_t size = b->size;
        while (i + 1 < count && !blocks[i + 1].allocated && !blocks[i + 1].pending &&
               blocks[i + 1].stream == b->stream)
            size += blocks[++i].size;
        count_hole(sums, request, b, size);
    }
}

void
dryi_explain_segment(struct dryi_explain_sums *sums,
                     const struct dryi_explain_request *request,
                     const struct dryi_segment_info *segment,
                     const struct dryi_block_info *blocks, size_t count)
{
    sums->segment_bytes += segment->size;
    walk_holes(sums, request, blocks, count);
    if (!dryi_is_default_pool(segment->pool)) {
        for (size_t i = 0; i < count; i++)
            sums->private_free +=
                blocks[i].allocated || blocks[i].pending ? 0 : blocks[i].size;
        return;
    }
    uint64_t page =
        segment->is_expandable ? request->page[segment->is_large] : segment->size;
    struct walk w = {.request = request,
                     .sums = sums,
                     .base = segment->addr,
                     .page = page,
                     .waiting_page = UINT64_MAX};
    walk_pins(&w, blocks, count);
}
