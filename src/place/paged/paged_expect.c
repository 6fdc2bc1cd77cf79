/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Layouts: a period's requests go where an offline packing has them.
 *
 * A layout lies in one segment, at addresses where something is free at the time or will be. Each
 * hint is held against the blocks that are there: whatever the forecast say, a request gets
 * nothing but free memory that its stream may have.
 */

#include "base/assert.h"
#include "base/memory.h"
#include "place/paged/paged_inside.h"

/* --- the block at an address -------------------------------------------------------------- */

static uint64_t *
word_of(const struct layout *layout, unsigned level, size_t at)
{
    return &layout->bits[layout->levels[level] + at / 64];
}

static void
set_bit(const struct layout *layout, size_t at)
{
    for (unsigned level = 0; level < LEVEL_COUNT; level++, at /= 64)
        *word_of(layout, level, at) |= UINT64_C(1) << (at % 64);
}

static void
clear_bit(const struct layout *layout, size_t at)
{
    for (unsigned level = 0; level < LEVEL_COUNT; level++, at /= 64) {
        uint64_t *word = word_of(layout, level, at);
        *word &= ~(UINT64_C(1) << (at % 64));
        if (*word)
            return;
    }
}

/* The last page up to `at` in which a block begins; there is one: segments begin with a block. */
static size_t
find_page(const struct layout *layout, size_t at)
{
    unsigned level = 0;
    uint64_t below = *word_of(layout, 0, at) & (UINT64_MAX >> (63 - at % 64));
    while (below == 0 && ++level < LEVEL_COUNT) {
        at /= 64;
        below = *word_of(layout, level, at) & ((UINT64_C(1) << (at % 64)) - 1);
    }
    DRYI_ASSERT(below != 0);
    at = at / 64 * 64 + dryi_log2_floor(below);
    while (level-- > 0)
        at = at * 64 + dryi_log2_floor(*word_of(layout, level, at * 64));
    return at;
}

static size_t
page_of(const struct dryi_paged *p, uint64_t addr)
{
    return (size_t)((addr - p->segments[p->layout.segment].addr) >> p->page_shift);
}

void
dryi_paged_layout_add(struct dryi_paged *p, uint32_t block)
{
    uint64_t addr = p->blocks[block].addr;
    size_t page = page_of(p, addr);
    uint32_t *last = &p->layout.begins[page];
    if (*last == NONE)
        set_bit(&p->layout, page);
    if (*last == NONE || p->blocks[*last].addr <= addr)
        *last = block;
}

void
dryi_paged_layout_take_out(struct dryi_paged *p, uint32_t block)
{
    const struct block *b = &p->blocks[block];
    size_t page = page_of(p, b->addr);
    uint32_t *last = &p->layout.begins[page];
    if (*last != block)
        return;
    bool is_other = b->prev != NONE && page_of(p, p->blocks[b->prev].addr) == page;
    *last = is_other ? b->prev : NONE;
    if (!is_other)
        clear_bit(&p->layout, page);
}

#define BACK_MAX 32 /* blocks of a page looked at */

/* NONE: many begin in its page. */
static uint32_t
block_at(const struct dryi_paged *p, uint64_t addr)
{
    uint32_t at = p->layout.begins[find_page(&p->layout, page_of(p, addr))];
    for (unsigned i = 0; p->blocks[at].addr > addr; i++) {
        if (i == BACK_MAX)
            return NONE;
        at = p->blocks[at].prev;
    }
    return at;
}

void
dryi_paged_layout_finish(struct dryi_paged *p)
{
    struct layout *layout = &p->layout;
    dryi_memory_free(&p->memory, layout->begins, layout->page_count,
                     sizeof *layout->begins);
    dryi_memory_free(&p->memory, layout->bits, layout->bit_words, sizeof *layout->bits);
    dryi_paged_parking_finish(p);
    *layout = (struct layout){.segment = NONE};
}

bool
dryi_paged_layout_begin(struct dryi_paged *p, uint32_t segment)
{
    if (p->layout.segment == segment)
        return true;
    dryi_paged_layout_finish(p);
    struct layout layout = {.segment = segment,
                            .page_count = p->segments[segment].page_count};
    size_t words = layout.page_count;
    for (unsigned level = 0; level < LEVEL_COUNT; level++) {
        words = words / 64 + 1;
        layout.levels[level] = layout.bit_words;
        layout.bit_words += words;
    }
    layout.begins =
        dryi_memory_zalloc(&p->memory, layout.page_count, sizeof *layout.begins);
    layout.bits = dryi_memory_zalloc(&p->memory, layout.bit_words, sizeof *layout.bits);
    p->layout = layout;
    if (!layout.begins || !layout.bits) {
        dryi_paged_layout_finish(p);
        return false;
    }
    for (size_t i = 0; i < layout.page_count; i++)
        layout.begins[i] = NONE;
    for (uint32_t at = p->segments[segment].first_block; at != NONE;
         at = p->blocks[at].next)
        dryi_paged_layout_add(p, at);
    return true;
}

const char *
dryi_paged_layout_check(const struct dryi_paged *p)
{
    const struct layout *layout = &p->layout;
    if (layout->segment == NONE)
        return NULL;
    size_t begun = 0, known = 0;
    for (uint32_t at = p->segments[layout->segment].first_block; at != NONE;) {
        uint32_t next = p->blocks[at].next;
        size_t page = page_of(p, p->blocks[at].addr);
        if (next == NONE || page_of(p, p->blocks[next].addr) != page) {
            begun++;
            if (layout->begins[page] != at || find_page(layout, page) != page)
                return "P8: the last block of a page is known";
        }
        at = next;
    }
    for (size_t i = 0; i < layout->page_count; i++)
        known += layout->begins[i] != NONE;
    return known == begun ? NULL : "P8: no block is known that is not there";
}

/* --- its pages ---------------------------------------------------------------------------- */

/* By page of the segment: packed blocks that touch it. */
struct needs {
    int32_t *count; /* one more than there are pages */
    unsigned page_shift;
};

/* Differences, to be summed. */
static void
note_need(void *self, uint64_t offset, uint64_t size)
{
    struct needs *needs = self;
    needs->count[offset >> needs->page_shift]++;
    needs->count[((offset + size - 1) >> needs->page_shift) + 1]--;
}

static bool
is_needed(const struct dryi_paged *p, const struct needs *needs, uint32_t segment,
          uint64_t addr)
{
    return segment == p->layout.segment && needs->count[page_of(p, addr)] > 0;
}

/* The last run of whole pages of a block that the layout does not need. */
static bool
find_surplus(const struct dryi_paged *p, const struct needs *needs, const struct block *b,
             uint64_t *lo, uint64_t *hi)
{
    uint64_t first, end;
    dryi_paged_whole_pages(p, b->addr, block_end(b), &first, &end);
    while (end > first && is_needed(p, needs, b->segment, end - p->page_bytes))
        end -= p->page_bytes;
    *lo = *hi = end;
    while (*lo > first && !is_needed(p, needs, b->segment, *lo - p->page_bytes))
        *lo -= p->page_bytes;
    return *hi > *lo;
}

static uint32_t
last_block(const struct dryi_paged *p, const struct segment *segment)
{
    uint32_t at = segment->first_block;
    while (p->blocks[at].next != NONE)
        at = p->blocks[at].next;
    return at;
}

static bool
is_spare(const struct dryi_paged *p, const struct block *b)
{
    return b->state == BLOCK_FREE && dryi_paged_is_complete(p, b);
}

/*
 * Until so many pages are in stock. From the end to the begin: what is before a block stays
 * when holes merge.
 */
static enum dry_status
unmap_surplus(struct dryi_paged *p, const struct needs *needs, uint32_t segment,
              uint64_t want)
{
    uint32_t prev = NONE;
    for (uint32_t at = last_block(p, &p->segments[segment]); at != NONE; at = prev) {
        prev = p->blocks[at].prev;
        uint64_t lo, hi;
        bool is_whole = !is_spare(p, &p->blocks[at]);
        while (!is_whole && p->stock_count < want &&
               find_surplus(p, needs, &p->blocks[at], &lo, &hi)) {
            uint64_t most = (want - p->stock_count) << p->page_shift;
            lo = hi - lo > most ? hi - most : lo;
            is_whole = lo == p->blocks[at].addr; /* all of it becomes a hole */
            enum dry_status status = dryi_paged_unmap(p, at, lo, hi);
            if (status != DRY_OK)
                return status;
        }
    }
    return DRY_OK;
}

/* Pages that could go from under free blocks. */
static uint64_t
count_surplus(const struct dryi_paged *p, const struct needs *needs)
{
    uint64_t count = 0;
    for (uint32_t i = p->arenas[0].segments; i != NONE; i = p->segments[i].next) {
        for (uint32_t at = p->segments[i].first_block; at != NONE;
             at = p->blocks[at].next) {
            struct block b = p->blocks[at];
            uint64_t lo, hi;
            while (is_spare(p, &b) && find_surplus(p, needs, &b, &lo, &hi)) {
                count += (hi - lo) >> p->page_shift;
                if (lo == b.addr)
                    break;
                b.size = lo - b.addr;
            }
        }
    }
    return count;
}

static uint64_t
count_missing(const struct dryi_paged *p, const struct needs *needs)
{
    const struct segment *segment = &p->segments[p->layout.segment];
    uint64_t count = 0;
    for (size_t i = 0; i < segment->page_count; i++)
        count += needs->count[i] > 0 && segment->pages[i] == 0;
    return count;
}

static enum dry_status
map_missing(struct dryi_paged *p, const struct needs *needs)
{
    const struct segment *segment = &p->segments[p->layout.segment];
    for (size_t i = 0; i < segment->page_count;) {
        size_t first = i;
        while (i < segment->page_count && needs->count[i] > 0 && segment->pages[i] == 0)
            i++;
        if (i == first) {
            i++;
            continue;
        }
        uint64_t lo = segment->addr + ((uint64_t)first << p->page_shift);
        uint64_t hi = segment->addr + ((uint64_t)i << p->page_shift);
        uint32_t block =
            block_at(p, lo); /* holes begin at pages: it is the first there */
        if (block == NONE || !dryi_paged_block_reserve(p, 2))
            return DRY_ERR_MEMORY;
        DRYI_ASSERT(p->blocks[block].state == BLOCK_HOLE);
        enum dry_status status =
            dryi_paged_map(p, block, lo, hi, p->arenas[0].shared, &block);
        if (status != DRY_OK)
            return status;
    }
    return DRY_OK;
}

/*
 * The layout's pages under it; of all others of the default pool's large ones, what is beyond
 * the peak of live bytes goes to the device.
 */
static enum dry_status
move_pages(struct dryi_paged *p, const struct needs *needs)
{
    uint64_t missing = count_missing(p, needs);
    uint64_t live = stat_all(p, STAT_ALLOCATED_BYTES) >> p->page_shift;
    if (missing > p->page_count - live) /* waiting would not help */
        return DRY_ERR_NO_SPACE;
    dryi_paged_wait_all(p);
    dryi_paged_sweep(p);
    uint64_t spare = count_surplus(p, needs) + p->stock_count;
    if (missing > spare)
        return DRY_ERR_NO_SPACE;
    uint64_t peak = (dryi_paged_active_peak(p) + p->page_mask) >> p->page_shift;
    uint64_t beyond = p->page_count > peak ? p->page_count - peak : 0;
    uint64_t surplus = spare - missing < beyond ? spare - missing : beyond;
    enum dry_status status = DRY_OK;
    uint32_t segment = p->arenas[0].segments;
    for (; segment != NONE && status == DRY_OK; segment = p->segments[segment].next)
        status = unmap_surplus(p, needs, segment, missing + surplus);
    if (status == DRY_OK)
        status = map_missing(p, needs);
    for (; surplus > 0 && p->stock_count > 0 && status == DRY_OK; surplus--)
        dryi_paged_page_release(p);
    return status;
}

bool
dryi_paged_layout_bring_pages(struct dryi_paged *p)
{
    size_t count = p->layout.page_count + 1;
    struct needs needs = {.page_shift = p->page_shift};
    needs.count = dryi_memory_zalloc(&p->memory, count, sizeof *needs.count);
    if (!needs.count)
        return false;
    dryi_forecast_walk(p->forecast, note_need, &needs);
    for (size_t i = 1; i < count; i++)
        needs.count[i] += needs.count[i - 1];
    enum dry_status status = move_pages(p, &needs);
    dryi_memory_free(&p->memory, needs.count, count, sizeof *needs.count);
    return status == DRY_OK;
}

/* --- requests ----------------------------------------------------------------------------- */

#define PARTS_MAX 32 /* blocks that a packed one is put together from */
#define WAITS_SPARE 4

/* So many waits a period as there are places that need one, and a few more. */
static bool
may_wait(struct dryi_paged *p)
{
    struct layout *layout = &p->layout;
    if (!p->conf.reuse_waiting || layout->streams < 2)
        return false;
    if (p->requests - layout->waits_since >= layout->period) {
        layout->waits_since = p->requests;
        layout->waits = 0;
    }
    return layout->waits < layout->handed + WAITS_SPARE;
}

/* A range of the layout's, and what lies there. */
struct range {
    struct spot spot;
    /* Blocks of other streams that can be waited for: each stream's newest epoch. */
    uint32_t streams[DRYI_PACKING_STREAMS_MAX];
    uint64_t epochs[DRYI_PACKING_STREAMS_MAX];
    uint32_t stream_count;
    uint32_t parked; /* a block that waits for its successor, and is in the way; NONE */
};

/* False: it is not of a stream that can be waited for. */
static bool
note_wait(const struct dryi_paged *p, const struct block *b, struct range *range)
{
    const struct free_list *s = p->lists[b->list];
    uint32_t i = 0;
    if (s->kind != FREE_STREAM)
        return false;
    while (i < range->stream_count && range->streams[i] != s->stream)
        i++;
    if (i == DRYI_PACKING_STREAMS_MAX)
        return false;
    if (i == range->stream_count) {
        range->streams[range->stream_count++] = s->stream;
        range->epochs[i] = 0;
    }
    if (range->epochs[i] < b->epoch)
        range->epochs[i] = b->epoch;
    return true;
}

/* Is all of the range free for the request, or free for it after a wait? */
static bool
can_lie(const struct dryi_paged *p, const struct request *r, uint64_t addr,
        struct range *range)
{
    uint64_t end = addr + r->bytes;
    uint64_t lo = page_floor(p, addr), hi = page_ceil(p, end);
    uint32_t at = block_at(p, addr);
    range->spot = (struct spot){.block = at, .addr = addr};
    range->stream_count = 0;
    range->parked = NONE;
    for (unsigned i = 0; at != NONE && p->blocks[at].addr < end; i++) {
        const struct block *b = &p->blocks[at];
        bool is_hole = b->state == BLOCK_HOLE;
        range->parked = b->state == BLOCK_PARKED ? at : NONE;
        if (i == PARTS_MAX || (!is_hole && b->state != BLOCK_FREE))
            return false;
        if (!is_hole && !dryi_paged_is_usable(p, r->list, b) && !note_wait(p, b, range))
            return false;
        if (is_hole) {
            uint64_t from = b->addr > lo ? b->addr : lo;
            uint64_t to = block_end(b) < hi ? block_end(b) : hi;
            range->spot.fresh += (to - from) >> p->page_shift;
        }
        at = b->next;
    }
    return range->spot.block != NONE;
}

static bool
is_free_now(const struct dryi_paged *p, const struct request *r, uint64_t addr,
            struct range *range)
{
    return can_lie(p, r, addr, range) && range->stream_count == 0;
}

/*
 * As can_lie(), but that what waits for its successor in the range does so no more: the program is not
 * as expected.
 */
static bool
make_way(struct dryi_paged *p, const struct request *r, uint64_t addr,
         struct range *range)
{
    while (!can_lie(p, r, addr, range)) {
        if (range->parked == NONE)
            return false;
        dryi_paged_unpark(p, range->parked);
    }
    return true;
}

/* What the range needs that is not over: the request's stream comes behind it. */
static bool
wait_for(struct dryi_paged *p, const struct request *r, const struct range *range)
{
    for (uint32_t i = 0; i < range->stream_count; i++) {
        uint32_t on = range->streams[i];
        dryi_paged_observe(p, on);
        if (range->epochs[i] <= p->streams[on].completed && p->conf.reuse_passed) {
            p->counters.reused_passed++;
            continue;
        }
        if (!may_wait(p) ||
            dryi_paged_follow(p, r->stream, on, range->epochs[i]) != DRY_OK)
            return false;
        p->counters.reused_waiting++;
        p->layout.waits++;
    }
    return true;
}

/* At the address; NONE: it cannot lie there. */
DRYI_NOINLINE static uint32_t
take_at(struct dryi_paged *p, const struct request *r, uint64_t addr)
{
    struct range range;
    const struct spot *spot = &range.spot;
    bool moved = false;
    if (!make_way(p, r, addr, &range))
        return NONE;
    if (range.stream_count > 0 &&
        (!wait_for(p, r, &range) || !is_free_now(p, r, addr, &range)))
        return NONE;
    if (spot->fresh > 0 &&
        (dryi_paged_fund(p, r, spot, &moved) != DRY_OK ||
         (moved && (!is_free_now(p, r, addr, &range) || spot->fresh > p->stock_count))))
        return NONE;
    uint32_t block;
    return dryi_paged_spot_take(p, r, spot, &block) == DRY_OK ? block : NONE;
}

/* What waits for this very request, else what lies there. */
static uint32_t
take_forecast(struct dryi_paged *p, const struct request *r, const struct dryi_hint *hint)
{
    uint32_t block = dryi_paged_parked_find(p, hint->step);
    if (block != NONE && p->blocks[block].size == r->bytes &&
        p->blocks[block].list == r->list) { /* keys are hashes */
        dryi_paged_parked_pop(p, hint->step);
        return block;
    }
    if (p->layout.segment == NONE)
        return NONE;
    const struct segment *segment = &p->segments[p->layout.segment];
    if (hint->offset > segment->size || r->bytes > segment->size - hint->offset)
        return NONE;
    return take_at(p, r, segment->addr + hint->offset);
}

uint32_t
dryi_paged_take_expected(struct dryi_paged *p, struct request *r)
{
    if (p->capture_count > 0) {
        dryi_paged_unpark_all(p);
        return NONE;
    }
    if (dryi_forecast_is_ready(p->forecast))
        dryi_paged_layout_make(p);
    struct dryi_hint hint = dryi_forecast_request(p->forecast, r->bytes, r->stream);
    r->has_ticket = true;
    r->ticket = hint.ticket;
    r->successor = NONE;
    /* The best fit for what the layout does not expect may be among what waits. */
    if (hint.step == DRYI_STEP_NONE && p->layout.parked_count > 0)
        dryi_paged_unpark_all(p);
    if (hint.offset == DRYI_HINT_NONE)
        return NONE;
    uint32_t block = take_forecast(p, r, &hint);
    if (block == NONE) {
        p->counters.hints_refused++;
        dryi_forecast_refused(p->forecast);
        return NONE;
    }
    p->counters.hints_taken++;
    r->successor = hint.successor;
    return block;
}
