/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where place/paged would put pages: what its searches leave out is no better than what they
 * find, by a model that looks at every run whole and counts its pages one by one.
 */
#include "support/cmocka.h"

#include <drystone/sim.h>

#include "base/bits.h"
#include "place/paged/paged.h"
#include "place/paged/paged_spot.h"
#include "place/paged/paged_stream.h"
#include "place/paged/record/paged_event.h"
#include "place/paged/record/paged_list.h"
#include "support/random.h"

#define STREAMS 2
#define BLOCKS 200
#define PAGE (2 * DRYI_MIB)

struct rig {
    struct random random;
    struct dry_sim *sim;
    struct dryi_place place;
    dryi_block blocks[BLOCKS];
    size_t count;
};

static void
begin(struct rig *rig, uint64_t seed)
{
    random_init(&rig->random, seed);
    struct dry_sim_options so;
    dry_sim_options_init(&so);
    so.capacity_bytes = 1024 * DRYI_MIB;
    assert_int_equal(dry_sim_create(&so, &rig->sim, NULL), DRY_OK);
    struct dryi_paged_options options = {.device = dry_sim_get_device(rig->sim)};
    dryi_paged_conf_init(&options.conf);
    options.conf.plan = false;
    assert_int_equal(dryi_paged_create(&options, &rig->place, NULL), DRY_OK);
    rig->count = 0;
}

static void
end(struct rig *rig)
{
    rig->place.ops->destroy(rig->place.self);
    dry_sim_destroy(rig->sim);
}

/* Make what the stream has freed complete. The memory stays where it is. */
static void
wait_for(struct rig *rig, uint32_t stream)
{
    struct dryi_paged *p = rig->place.self;
    if (stream < p->stream_count && dryi_paged_mark(p, stream) == DRY_OK)
        dryi_paged_wait(p, stream, p->streams[stream].marked);
}

/* Blocks come and go, and some pages go back, so that there are holes between them. */
static void
act(struct rig *rig)
{
    const struct dryi_place_ops *ops = rig->place.ops;
    uint64_t kind = random_below(&rig->random, 20);
    if (kind == 0) {
        uint64_t target = random_below(&rig->random, 1024 * DRYI_MIB);
        (void)ops->trim(rig->place.self, target);
    } else if (kind == 1) {
        wait_for(rig, (uint32_t)random_below(&rig->random, STREAMS));
    } else if (rig->count > 0 && (kind < 8 || rig->count == BLOCKS)) {
        size_t i = random_below(&rig->random, rig->count);
        assert_int_equal(ops->free(rig->place.self, rig->blocks[i]), DRY_OK);
        rig->blocks[i] = rig->blocks[--rig->count];
    } else {
        uint64_t size = 70000 + random_below(&rig->random, 9 * DRYI_MIB);
        if (ops->alloc(rig->place.self, size, random_below(&rig->random, STREAMS),
                       &rig->blocks[rig->count]) == DRY_OK)
            rig->count++;
    }
}

/* --- the model ---------------------------------------------------------------------------- */

static bool
is_part(const struct dryi_paged *p, const struct request *r, enum search_kind kind,
        uint32_t block)
{
    const struct block *b = &p->blocks[block];
    return (b->state == BLOCK_HOLE && kind != SEARCH_FREE) ||
           (b->state == BLOCK_FREE && dryi_paged_is_usable(p, r->list, b));
}

/* May its pages go elsewhere, or must some be had for it? */
static bool
is_counted(const struct dryi_paged *p, enum search_kind kind, const struct block *b)
{
    return b->state == BLOCK_HOLE ||
           (kind != SEARCH_FREE && dryi_paged_is_complete(p, b));
}

/* A run: its first block, and where it ends. */
struct stretch {
    uint32_t first;
    uint64_t begin, end;
};

struct model {
    const struct dryi_paged *p;
    const struct request *r;
    enum search_kind kind;
    struct spot best;
    uint64_t least; /* what any spot costs, those on the bounds of all pages, too */
    uint64_t least_at_blocks; /* what those on the bounds of blocks cost */
    uint32_t longest;         /* a run, in blocks */
};

static struct spot
weigh(const struct model *m, const struct stretch *run, uint64_t addr)
{
    const struct dryi_paged *p = m->p;
    uint64_t end = addr + m->r->bytes, lo = addr / PAGE * PAGE,
             hi = (end + PAGE - 1) / PAGE * PAGE;
    struct spot spot = {.addr = addr, .block = NONE};
    for (uint64_t page = lo; page < hi; page += PAGE) {
        for (uint32_t at = run->first; at != NONE && p->blocks[at].addr < run->end;
             at = p->blocks[at].next) {
            const struct block *b = &p->blocks[at];
            bool is_whole = b->addr <= page && page + PAGE <= block_end(b);
            spot.fresh += is_whole && b->state == BLOCK_HOLE;
            spot.cost += is_whole && is_counted(p, m->kind, b);
        }
    }
    for (uint32_t at = run->first; at != NONE && p->blocks[at].addr <= addr;
         at = p->blocks[at].next)
        spot.block = at;
    return spot;
}

static bool
is_less(const struct spot *a, const struct spot *b)
{
    const uint64_t x[] = {a->cost, a->fresh, a->addr};
    const uint64_t y[] = {b->cost, b->fresh, b->addr};
    size_t i = 0;
    while (i < 2 && x[i] == y[i])
        i++;
    return x[i] < y[i];
}

/* What one of a spot's ends is at: the search looks at the latter two. */
enum bound {
    AT_ANY_PAGE,
    AT_WHOLE_PAGES, /* those that are counted begin or end there */
    AT_BLOCK,
};

static void
try_at(struct model *m, const struct stretch *run, uint64_t addr, enum bound bound)
{
    if (addr < run->begin || addr > run->end || run->end - addr < m->r->bytes)
        return;
    struct spot spot = weigh(m, run, addr);
    if (spot.cost < m->least)
        m->least = spot.cost;
    if (bound == AT_BLOCK && spot.cost < m->least_at_blocks)
        m->least_at_blocks = spot.cost;
    if (bound != AT_ANY_PAGE && (m->best.block == NONE || is_less(&spot, &m->best)))
        m->best = spot;
}

static void
visit_run(struct model *m, const struct stretch *run)
{
    const struct dryi_paged *p = m->p;
    uint64_t bytes = m->r->bytes;
    for (uint32_t at = run->first; at != NONE && p->blocks[at].addr < run->end;
         at = p->blocks[at].next) {
        const struct block *b = &p->blocks[at];
        uint64_t lo = (b->addr + PAGE - 1) / PAGE * PAGE, hi = block_end(b) / PAGE * PAGE;
        try_at(m, run, b->addr, AT_BLOCK);
        if (lo < hi && is_counted(p, m->kind, b)) {
            try_at(m, run, hi, AT_WHOLE_PAGES);
            try_at(m, run, lo - bytes, AT_WHOLE_PAGES);
        }
        if (b->state == BLOCK_FREE || b->next != NONE)
            try_at(m, run, block_end(b) - bytes, AT_BLOCK);
        for (uint64_t page = lo; page < hi && b->state == BLOCK_FREE; page += PAGE) {
            try_at(m, run, page, AT_ANY_PAGE);
            try_at(m, run, page - bytes, AT_ANY_PAGE);
        }
    }
}

static void
note_lives(struct model *m)
{
    const struct dryi_paged *p = m->p;
    uint32_t segment = p->arenas[0].segments;
    for (; segment != NONE; segment = p->segments[segment].next) {
        uint32_t at = p->segments[segment].first_block;
        while (at != NONE) {
            struct stretch run = {at, p->blocks[at].addr, 0};
            uint32_t length = 0;
            for (; at != NONE && is_part(p, m->r, m->kind, at); at = p->blocks[at].next) {
                run.end = block_end(&p->blocks[at]);
                length++;
            }
            if (length > 0)
                visit_run(m, &run);
            else
                at = p->blocks[at].next;
            m->longest = length > m->longest ? length : m->longest;
        }
    }
}

/* --- tests -------------------------------------------------------------------------------- */

struct seen {
    size_t found, found_free, found_between; /* spots; between bounds of blocks alone */
    uint32_t length, longest; /* of runs, in blocks: the longest now, and ever */
};

/* What is found of all spots. */
static struct spot
check_all(struct dryi_paged *p, const struct request *r, enum search_kind kind,
          struct seen *seen)
{
    struct model m = {.p = p,
                      .r = r,
                      .kind = kind,
                      .best.block = NONE,
                      .least = UINT64_MAX,
                      .least_at_blocks = UINT64_MAX};
    note_lives(&m);
    seen->length = m.longest;
    seen->longest = m.longest > seen->longest ? m.longest : seen->longest;
    struct spot spot;
    assert_int_equal(dryi_paged_spot_find(p, r, kind, &spot), DRY_OK);
    assert_int_equal(spot.block == NONE, m.best.block == NONE);
    if (spot.block == NONE)
        return spot;
    const struct spot *best = &m.best;
    assert_true(spot.cost == m.least);
    assert_true(spot.addr == best->addr && spot.block == best->block);
    assert_true(spot.cost == best->cost && spot.fresh == best->fresh);
    seen->found_between += m.least_at_blocks > m.least;
    return spot;
}

static void
check_request(struct rig *rig, struct seen *seen)
{
    struct dryi_paged *p = rig->place.self;
    struct request r = {.bytes = (1 + random_below(&rig->random, 24 * 2048)) * GRAIN};
    r.size = r.bytes;
    r.stream = dryi_paged_stream_index(p, random_below(&rig->random, STREAMS));
    r.list = dryi_paged_list_index(p, 0, r.stream);
    seen->found_free += check_all(p, &r, SEARCH_FREE, seen).block != NONE;
    struct spot best = check_all(p, &r, SEARCH_ALL, seen), spot;
    if (best.block == NONE)
        return;
    seen->found++;
    for (int kind = SEARCH_FRESH; kind <= SEARCH_TOUCH; kind++) { /* of some runs alone */
        assert_int_equal(dryi_paged_spot_find(p, &r, (enum search_kind)kind, &spot),
                         DRY_OK);
        if (seen->length > 16) /* of parts of them, whose ends are not the run's */
            spot.addr = best.addr;
        assert_true(spot.block == NONE || !is_less(&spot, &best));
    }
}

static void
nothing_that_is_left_out_is_better(void **state)
{
    (void)state;
    struct rig rig;
    struct seen seen = {0};
    for (uint64_t seed = 1; seed <= 30; seed++) {
        begin(&rig, seed);
        for (int i = 0; i < 600; i++) {
            act(&rig);
            if (i >= 60)
                check_request(&rig, &seen);
        }
        end(&rig);
    }
    assert_true(seen.found > 5000 && seen.found_free > 1000);
}

/*
 * Look at a row of free blocks and holes in turns, broken here and there by blocks in use, as its
 * last is. All uses of one stream are complete.
 */
static void
check_row(struct seen *seen, uint64_t seed, size_t count)
{
    struct rig rig;
    begin(&rig, seed);
    const struct dryi_place_ops *ops = rig.place.ops;
    void *place = rig.place.self;
    for (; rig.count < count; rig.count++) {
        uint64_t size = (2 + random_below(&rig.random, 8)) * PAGE / 4;
        assert_int_equal(
            ops->alloc(place, size, rig.count / 2 % STREAMS, &rig.blocks[rig.count]),
            DRY_OK);
    }
    for (size_t i = 0; i < count; i += 2)
        assert_int_equal(ops->free(place, rig.blocks[i]), DRY_OK);
    assert_int_equal(ops->trim(place, 0), DRY_OK);
    for (size_t i = 1; i + 1 < count; i += 2) {
        if (random_below(&rig.random, 30) > 0)
            assert_int_equal(ops->free(place, rig.blocks[i]), DRY_OK);
    }
    wait_for(&rig, (uint32_t)random_below(&rig.random, STREAMS + 1));
    for (int i = 0; i < 20; i++)
        check_request(&rig, seen);
    end(&rig);
}

static void
long_runs_are_looked_at_whole(void **state)
{
    (void)state;
    struct seen seen = {0};
    for (uint64_t seed = 1; seed <= 30; seed++)
        check_row(&seen, seed, BLOCKS);
    assert_true(seen.found == 600 && seen.longest > 100);
}

/* Where there are few others, the best of all may begin or end amid a block. */
static void
spots_between_whole_pages_are_looked_at(void **state)
{
    (void)state;
    struct seen seen = {0};
    for (uint64_t seed = 1; seed <= 1000; seed++)
        check_row(&seen, seed, 10);
    assert_true(seen.found == 20000 && seen.found_between > 10);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_that_is_left_out_is_better),
        cmocka_unit_test(long_runs_are_looked_at_whole),
        cmocka_unit_test(spots_between_whole_pages_are_looked_at),
    };
    return cmocka_run_group_tests_name("paged_spot", tests, NULL, NULL);
}
