/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Greedy packing: the lives are placed one after the other. Each goes into the lowest gap that fits
 * (first fit) or the smallest (best fit), between placed lives that overlap it in time.
 *
 * Placed lives are kept sorted by offset, in chunks of at most CHUNK entries. A chunk stores the
 * sections in which all, and in which some, of its lives are alive, its highest end and its largest
 * gap. Most chunks are skipped by these alone: no life is alive, or all are and no gap is large
 * enough.
 *
 * Short lives would still visit all chunks, so time is divided into windows, each with its own
 * list. A life in few windows visits their lists, merged by offset; a life in many visits the list
 * of all lives. The number of windows is chosen so that all lists together have at most
 * ENTRIES_A_LIFE entries per life.
 *
 * Cost: a short life visits n / windows entries; a long one n / CHUNK summaries plus the chunks
 * that are partly alive.
 */
#include "place/offline/offline_inside.h"

#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/memory.h"
#include "base/sort.h"

#define CHUNK 128u
#define WINDOWS_MAX 128u
#define MERGED_MAX 4u /* most windows merged for one life */
#define ENTRIES_A_LIFE 4u
#define LARGE 65536u /* number of lives above which only two orders are tried, for time */

struct entry {
    uint64_t offset, end;
    uint32_t lo, hi;
};

struct chunk {
    struct entry *entries; /* sorted by offset */
    uint64_t top;          /* highest end */
    uint64_t gap;          /* largest gap between entries, as if all were alive */
    uint32_t min_lo, max_lo, min_hi, max_hi;
    uint32_t count;
};

struct list {
    struct chunk *chunks; /* sorted by offset */
    size_t chunk_count, chunk_capacity;
    struct entry *entries; /* CHUNK entries per chunk of chunk_capacity */
};

struct greedy {
    struct dryi_problem *problem;
    struct list *lists; /* lists[0]: all lives; then one list per window */
    uint32_t window_count, window_sections;
    struct chunk *chunks; /* shared by all lists */
    struct entry *entries;
    size_t chunk_capacity;
    struct dryi_sort_item *order, *scratch;
    uint64_t *offsets, *conflicts;
};

/* A life to be placed. */
struct request {
    uint64_t size;
    uint32_t lo, hi;
    bool is_best_fit;
};

static void
sum_up(struct chunk *c)
{
    DRYI_ASSERT_SLOW(c->count > 0 && c->count <= CHUNK);
    const struct entry *e = c->entries;
    c->min_lo = c->min_hi = UINT32_MAX;
    c->max_lo = c->max_hi = 0;
    c->gap = 0;
    c->top = e[0].offset;
    for (uint32_t i = 0; i < c->count; i++) {
        if (e[i].offset > c->top && e[i].offset - c->top > c->gap)
            c->gap = e[i].offset - c->top;
        c->top = e[i].end > c->top ? e[i].end : c->top;
        c->min_lo = e[i].lo < c->min_lo ? e[i].lo : c->min_lo;
        c->max_lo = e[i].lo > c->max_lo ? e[i].lo : c->max_lo;
        c->min_hi = e[i].hi < c->min_hi ? e[i].hi : c->min_hi;
        c->max_hi = e[i].hi > c->max_hi ? e[i].hi : c->max_hi;
    }
}

/* Return the last chunk that begins at or below `offset`; 0 if there is none. */
static size_t
find_chunk(const struct list *g, uint64_t offset)
{
    DRYI_ASSERT_SLOW(g->chunk_count > 0);
    size_t low = 0, high = g->chunk_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (g->chunks[middle].entries[0].offset <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void
split(struct list *g, size_t at)
{
    DRYI_ASSERT(g->chunk_count < g->chunk_capacity);
    DRYI_ASSERT_SLOW(at < g->chunk_count && g->chunks[at].count == CHUNK);
    struct chunk *c = &g->chunks[at];
    memmove(c + 2, c + 1, (g->chunk_count - at - 1) * sizeof *c);
    c[1] = (struct chunk){.entries = g->entries + g->chunk_count * CHUNK,
                          .count = CHUNK / 2};
    c->count -= CHUNK / 2;
    memcpy(c[1].entries, c->entries + c->count, CHUNK / 2 * sizeof *c->entries);
    g->chunk_count++;
    sum_up(c);
    sum_up(c + 1);
}

static void
insert(struct list *g, const struct entry *entry)
{
    DRYI_ASSERT_SLOW(entry->lo < entry->hi && entry->offset < entry->end);
    if (g->chunk_count == 0)
        g->chunks[g->chunk_count++] = (struct chunk){.entries = g->entries};
    size_t at = find_chunk(g, entry->offset);
    if (g->chunks[at].count == CHUNK) {
        split(g, at);
        at = find_chunk(g, entry->offset);
    }
    struct chunk *c = &g->chunks[at];
    uint32_t i = c->count;
    while (i > 0 && c->entries[i - 1].offset > entry->offset)
        i--;
    memmove(c->entries + i + 1, c->entries + i, (c->count - i) * sizeof *entry);
    c->entries[i] = *entry;
    c->count++;
    sum_up(c);
}

struct finder {
    uint64_t cursor; /* all entries below are visited */
    uint64_t best, best_gap;
};

/* Visit an entry that is alive. True: the search is over (first fit found a gap). */
static bool
visit_entry(struct finder *f, const struct request *w, const struct entry *e)
{
    if (e->offset > f->cursor && e->offset - f->cursor >= w->size &&
        e->offset - f->cursor < f->best_gap) {
        f->best = f->cursor;
        f->best_gap = e->offset - f->cursor;
        if (!w->is_best_fit)
            return true;
    }
    f->cursor = e->end > f->cursor ? e->end : f->cursor;
    return false;
}

static bool
is_alive(const struct entry *e, const struct request *w)
{
    return e->lo < w->hi && e->hi > w->lo;
}

static bool
visit_chunk(struct finder *f, const struct request *w, const struct chunk *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        if (is_alive(&c->entries[i], w) && visit_entry(f, w, &c->entries[i]))
            return true;
    }
    return false;
}

/* A position in a list, at the next alive entry. */
struct reader {
    const struct list *list;
    size_t chunk;
    uint32_t entry;
};

/* Return the alive entry at or after the reader's position; NULL: end of the list. */
static const struct entry *
next_alive(struct reader *r, const struct request *w)
{
    for (; r->chunk < r->list->chunk_count; r->chunk++, r->entry = 0) {
        const struct chunk *c = &r->list->chunks[r->chunk];
        if (c->min_lo >= w->hi || c->max_hi <= w->lo)
            continue;
        for (; r->entry < c->count; r->entry++) {
            if (is_alive(&c->entries[r->entry], w))
                return &c->entries[r->entry];
        }
    }
    return NULL;
}

/*
 * Find a gap in the lists of windows first .. last. A life in several windows is visited several
 * times, which is harmless.
 */
static void
find_in_windows(const struct greedy *g, struct finder *f, const struct request *w,
                uint32_t first, uint32_t last)
{
    DRYI_ASSERT_SLOW(first <= last && last - first < MERGED_MAX &&
                     last < g->window_count);
    struct reader readers[MERGED_MAX];
    const struct entry *heads[MERGED_MAX];
    uint32_t count = last - first + 1;
    for (uint32_t i = 0; i < count; i++) {
        readers[i] = (struct reader){.list = &g->lists[1 + first + i]};
        heads[i] = next_alive(&readers[i], w);
    }
    while (true) {
        uint32_t lowest = count;
        for (uint32_t i = 0; i < count; i++) {
            if (heads[i] && (lowest == count || heads[i]->offset < heads[lowest]->offset))
                lowest = i;
        }
        if (lowest == count || visit_entry(f, w, heads[lowest]))
            return;
        readers[lowest].entry++;
        heads[lowest] = next_alive(&readers[lowest], w);
    }
}

static void
find_in_all(const struct greedy *g, struct finder *f, const struct request *w)
{
    const struct list *all = &g->lists[0];
    for (size_t i = 0; i < all->chunk_count; i++) {
        const struct chunk *c = &all->chunks[i];
        if (c->min_lo >= w->hi || c->max_hi <= w->lo)
            continue;
        bool all_alive = c->max_lo < w->hi && c->min_hi > w->lo;
        uint64_t first = c->entries[0].offset;
        if (all_alive && c->gap < w->size &&
            (first <= f->cursor || first - f->cursor < w->size))
            f->cursor = c->top > f->cursor ? c->top : f->cursor;
        else if (visit_chunk(f, w, c))
            return;
    }
}

static uint64_t
find_gap(const struct greedy *g, const struct request *w)
{
    DRYI_ASSERT_SLOW(w->size > 0 && w->lo < w->hi && w->hi <= g->problem->section_count);
    struct finder f = {.best_gap = UINT64_MAX};
    uint32_t first = w->lo / g->window_sections, last = (w->hi - 1) / g->window_sections;
    if (last - first < MERGED_MAX)
        find_in_windows(g, &f, w, first, last);
    else
        find_in_all(g, &f, w);
    return f.best_gap == UINT64_MAX ? f.cursor : f.best;
}

static void
place(struct greedy *g, uint32_t i, uint64_t offset)
{
    const struct dryi_problem *p = g->problem;
    struct entry entry = {offset, offset + p->sizes[i], p->lo[i], p->hi[i]};
    g->offsets[i] = offset;
    insert(&g->lists[0], &entry);
    for (uint32_t s = p->lo[i] / g->window_sections;
         s <= (p->hi[i] - 1) / g->window_sections; s++)
        insert(&g->lists[1 + s], &entry);
}

/* Place all lives in g->order. Returns the height. */
static uint64_t
run(struct greedy *g, bool is_best_fit)
{
    const struct dryi_problem *p = g->problem;
    uint64_t height = 0;
    for (uint32_t s = 0; s <= g->window_count; s++)
        g->lists[s].chunk_count = 0;
    for (uint32_t i = 0; p->fixed && i < p->count; i++) {
        if (p->fixed[i] != DRYI_OFFLINE_ANYWHERE)
            place(g, i, p->fixed[i]);
    }
    for (uint32_t k = 0; k < p->count; k++) {
        uint32_t i = g->order[k].value;
        if (!p->fixed || p->fixed[i] == DRYI_OFFLINE_ANYWHERE) {
            struct request request = {p->sizes[i], p->lo[i], p->hi[i], is_best_fit};
            place(g, i, find_gap(g, &request));
        }
        uint64_t end = g->offsets[i] + p->sizes[i];
        height = end > height ? end : height;
    }
    return height;
}

/* Return a key ordered like a * b, up to rounding: positive doubles order as their bits do. */
static uint64_t
product_key(uint64_t a, uint64_t b)
{
    double product = (double)a * (double)b;
    uint64_t key;
    memcpy(&key, &product, sizeof key);
    return key;
}

enum key { BY_SIZE, BY_AREA, BY_LIFETIME, BY_BEGIN, BY_CONFLICTS, KEY_COUNT };

static uint64_t
get_key(const struct greedy *g, uint32_t i, enum key key)
{
    const struct dryi_problem *p = g->problem;
    switch (key) {
    case BY_SIZE:
        return ~p->sizes[i];
    case BY_AREA:
        return ~product_key(p->sizes[i], p->durations[i]);
    case BY_LIFETIME:
        return ~p->durations[i];
    case BY_CONFLICTS:
        return ~product_key(p->sizes[i], g->conflicts[i]);
    case BY_BEGIN:
    case KEY_COUNT:
    default:
        return p->lo[i];
    }
}

/* Sort by `key`, ties by `second`, then by number. */
static void
sort_lives(struct greedy *g, enum key key, enum key second)
{
    uint32_t n = g->problem->count;
    for (uint32_t i = 0; i < n; i++)
        g->order[i] = (struct dryi_sort_item){get_key(g, i, second), i};
    dryi_sort_items(g->order, g->scratch, n);
    for (uint32_t k = 0; k < n; k++)
        g->order[k].key = get_key(g, g->order[k].value, key);
    dryi_sort_items(g->order, g->scratch, n);
}

/*
 * Count the lives that overlap each life: all but those already ended and those not begun. The
 * items of `order` and `scratch` serve as counters by section.
 */
static void
count_conflicts(struct greedy *g)
{
    const struct dryi_problem *p = g->problem;
    uint64_t ended = 0, begun = 0;
    for (uint32_t s = 0; s <= p->section_count; s++)
        g->order[s].key = g->scratch[s].key = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        g->order[p->hi[i]].key++;
        g->scratch[p->lo[i]].key++;
    }
    for (uint32_t s = 0; s <= p->section_count; s++) {
        ended += g->order[s].key;
        g->order[s].key = ended; /* ends in sections up to s */
        uint64_t here = g->scratch[s].key;
        g->scratch[s].key = begun; /* begins in sections before s */
        begun += here;
    }
    for (uint32_t i = 0; i < p->count; i++) {
        /* At least the life itself. */
        DRYI_ASSERT_SLOW(g->scratch[p->hi[i]].key > g->order[p->lo[i]].key);
        g->conflicts[i] = g->scratch[p->hi[i]].key - g->order[p->lo[i]].key;
    }
}

struct rule {
    enum key key, second;
    bool is_best_fit;
    const char *method;
};

static void
run_rules(struct greedy *g)
{
    static const struct rule rules[] = {
        {BY_SIZE, BY_BEGIN, false, "greedy by size"},
        {BY_SIZE, BY_LIFETIME, false, "greedy by size, then lifetime"},
        {BY_AREA, BY_SIZE, false, "greedy by area"},
        {BY_LIFETIME, BY_SIZE, false, "greedy by lifetime"},
        {BY_CONFLICTS, BY_SIZE, false, "greedy by conflicts"},
        {BY_BEGIN, BY_SIZE, true, "greedy by begin, best fit"},
        {BY_SIZE, BY_LIFETIME, true, "greedy by size, best fit"},
        {BY_AREA, BY_SIZE, true, "greedy by area, best fit"},
        {BY_LIFETIME, BY_SIZE, true, "greedy by lifetime, best fit"},
        {BY_CONFLICTS, BY_SIZE, true, "greedy by conflicts, best fit"},
        {BY_BEGIN, BY_SIZE, false, "greedy by begin"},
    };
    struct dryi_problem *p = g->problem;
    size_t rule_count = sizeof rules / sizeof *rules;
    if (p->count > LARGE)
        rule_count = 2;
    for (size_t i = 0; i < rule_count && p->height > p->wanted; i++) {
        sort_lives(g, rules[i].key, rules[i].second);
        uint64_t height = run(g, rules[i].is_best_fit);
        if (height < p->height) {
            p->height = height;
            p->method = rules[i].method;
            memcpy(p->offsets, g->offsets, p->count * sizeof *g->offsets);
        }
    }
}

/* --- memory ----------------------------------------------------------------------------- */

/* Return the number of entries in all windows for a given window length in sections. */
static uint64_t
count_entries(const struct dryi_problem *p, uint32_t sections)
{
    uint64_t entries = 0;
    for (uint32_t i = 0; i < p->count; i++)
        entries += (p->hi[i] - 1) / sections - p->lo[i] / sections + 1;
    return entries;
}

static void
choose_windows(struct greedy *g)
{
    const struct dryi_problem *p = g->problem;
    g->window_sections = p->section_count / WINDOWS_MAX + 1;
    while (count_entries(p, g->window_sections) > ENTRIES_A_LIFE * (uint64_t)p->count)
        g->window_sections *= 2; /* ends: a single window has one entry per life */
    g->window_count = (p->section_count - 1) / g->window_sections + 1;
    DRYI_ASSERT_SLOW(g->window_count <= WINDOWS_MAX);
}

/* Return the chunks needed for `count` entries: all but the last are at least half full. */
static size_t
chunks_for(size_t count)
{
    return count / (CHUNK / 2) + 2;
}

static void
share_chunks(struct greedy *g)
{
    const struct dryi_problem *p = g->problem;
    size_t given = 0;
    for (uint32_t w = 0; w <= g->window_count; w++)
        g->lists[w].chunk_capacity = w ? 0 : p->count;
    for (uint32_t i = 0; i < p->count; i++) {
        for (uint32_t w = p->lo[i] / g->window_sections;
             w <= (p->hi[i] - 1) / g->window_sections; w++)
            g->lists[1 + w].chunk_capacity++;
    }
    for (uint32_t w = 0; w <= g->window_count; w++) {
        struct list *list = &g->lists[w];
        list->chunk_capacity = chunks_for(list->chunk_capacity);
        list->chunks = g->chunks + given;
        list->entries = g->entries + given * CHUNK;
        given += list->chunk_capacity;
    }
    DRYI_ASSERT(given <= g->chunk_capacity);
}

static bool
take_memory(struct greedy *g, size_t items)
{
    const struct dryi_problem *p = g->problem;
    const struct dry_memory *m = &p->memory;
    choose_windows(g);
    g->chunk_capacity = chunks_for(p->count) + 2 * (size_t)g->window_count +
                        (size_t)(count_entries(p, g->window_sections) / (CHUNK / 2));
    g->lists = dryi_memory_zalloc(m, (size_t)g->window_count + 1, sizeof *g->lists);
    g->chunks = dryi_memory_zalloc(m, g->chunk_capacity, sizeof *g->chunks);
    g->entries = dryi_memory_zalloc(m, g->chunk_capacity, CHUNK * sizeof *g->entries);
    g->order = dryi_memory_zalloc(m, items, sizeof *g->order);
    g->scratch = dryi_memory_zalloc(m, items, sizeof *g->scratch);
    g->offsets = dryi_memory_zalloc(m, items, sizeof *g->offsets);
    g->conflicts = dryi_memory_zalloc(m, items, sizeof *g->conflicts);
    return g->lists && g->chunks && g->entries && g->order && g->scratch && g->offsets &&
           g->conflicts;
}

static void
give_memory_back(struct greedy *g, size_t items)
{
    const struct dry_memory *m = &g->problem->memory;
    dryi_memory_free(m, g->lists, (size_t)g->window_count + 1, sizeof *g->lists);
    dryi_memory_free(m, g->chunks, g->chunk_capacity, sizeof *g->chunks);
    dryi_memory_free(m, g->entries, g->chunk_capacity, CHUNK * sizeof *g->entries);
    dryi_memory_free(m, g->order, items, sizeof *g->order);
    dryi_memory_free(m, g->scratch, items, sizeof *g->scratch);
    dryi_memory_free(m, g->offsets, items, sizeof *g->offsets);
    dryi_memory_free(m, g->conflicts, items, sizeof *g->conflicts);
}

enum dry_status
dryi_offline_greedy(struct dryi_problem *p)
{
    DRYI_ASSERT_SLOW(p->section_count > 0 && p->section_count <= p->count);
    DRYI_ASSERT_SLOW(p->bound <= p->wanted);
    struct greedy g = {.problem = p};
    size_t items = (size_t)p->count + 1; /* counters per section need one more */
    p->height = UINT64_MAX;
    bool has_memory = take_memory(&g, items);
    if (has_memory) {
        share_chunks(&g);
        count_conflicts(&g);
        run_rules(&g);
    }
    give_memory_back(&g, items);
    return has_memory ? DRY_OK : DRY_ERR_MEMORY;
}
