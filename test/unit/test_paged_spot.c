/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where place/paged would put pages: what its searches leave out is no better than what they
 * find, by a model that looks at every run whole and counts its pages one by one.
 */
#include "support/cmocka.h"

#include <drystone/sim.h>

#include "base/bits.h"
#include "place/paged_inside.h"
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

/* Blocks come and go, and some pages go back, so that there are holes between them. */
static void
act(struct rig *rig)
{
    const struct dryi_place_ops *ops = rig->place.ops;
    uint64_t kind = random_below(&rig->random, 20);
    if (kind == 0) {
        uint64_t target = random_below(&rig->random, 1024 * DRYI_MIB);
        (void)ops->trim(rig->place.self, target);
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
is_part(const struct dryi_paged *p, const struct request *r, uint32_t block)
{
    const struct block *b = &p->blocks[block];
    return b->state == BLOCK_HOLE ||
           (b->state == BLOCK_FREE && dryi_paged_is_usable(p, r->shelf, b));
}

/* A run: its first block, and where it ends. */
struct stretch {
    uint32_t first;
    uint64_t begin, end;
};

static struct spot
weigh(const struct dryi_paged *p, const struct request *r, const struct stretch *run,
      uint64_t addr)
{
    uint64_t end = addr + r->bytes, lo = addr / PAGE * PAGE,
             hi = (end + PAGE - 1) / PAGE * PAGE;
    struct spot spot = {.addr = addr, .block = NONE};
    for (uint64_t page = lo; page < hi; page += PAGE) {
        for (uint32_t at = run->first; at != NONE && p->blocks[at].addr < run->end;
             at = p->blocks[at].next) {
            const struct block *b = &p->blocks[at];
            bool is_whole = b->addr <= page && page + PAGE <= block_end(b);
            spot.fresh += is_whole && b->state == BLOCK_HOLE;
            spot.cost += is_whole && (b->state == BLOCK_HOLE || dryi_paged_is_over(p, b));
        }
    }
    for (uint32_t at = run->first; at != NONE && p->blocks[at].addr <= addr;
         at = p->blocks[at].next)
        spot.block = at;
    spot.gaps = (unsigned)(addr > run->begin) + (unsigned)(end < run->end);
    uint64_t from = lo > run->begin ? lo : run->begin;
    uint64_t to = hi < run->end ? hi : run->end;
    spot.slack = addr - from + to - end;
    return spot;
}

static bool
is_less(const struct spot *a, const struct spot *b)
{
    const uint64_t x[] = {a->cost, a->fresh, a->gaps, a->slack, a->addr};
    const uint64_t y[] = {b->cost, b->fresh, b->gaps, b->slack, b->addr};
    size_t i = 0;
    while (i < 4 && x[i] == y[i])
        i++;
    return x[i] < y[i];
}

static void
look(const struct dryi_paged *p, const struct request *r, const struct stretch *run,
     struct spot *best)
{
    for (uint32_t at = run->first; at != NONE && p->blocks[at].addr < run->end;
         at = p->blocks[at].next) {
        const struct block *b = &p->blocks[at];
        uint64_t addrs[2] = {b->addr, block_end(b) - r->bytes};
        for (int i = 0; i < (b->next == NONE ? 1 : 2); i++) {
            if (addrs[i] < run->begin || addrs[i] > run->end ||
                run->end - addrs[i] < r->bytes)
                continue;
            struct spot spot = weigh(p, r, run, addrs[i]);
            if (best->block == NONE || is_less(&spot, best))
                *best = spot;
        }
    }
}

/* The best of all; *longest: how long a run was at most. */
static struct spot
look_at_all(const struct dryi_paged *p, const struct request *r, uint32_t *longest)
{
    struct spot best = {.block = NONE};
    uint32_t span = p->arenas[0].spans;
    for (; span != NONE; span = p->spans[span].next) {
        uint32_t at = p->spans[span].first_block;
        while (at != NONE) {
            struct stretch run = {at, p->blocks[at].addr, 0};
            uint32_t length = 0;
            for (; at != NONE && is_part(p, r, at); at = p->blocks[at].next) {
                run.end = block_end(&p->blocks[at]);
                length++;
            }
            if (length > 0)
                look(p, r, &run, &best);
            else
                at = p->blocks[at].next;
            *longest = length > *longest ? length : *longest;
        }
    }
    return best;
}

/* --- tests -------------------------------------------------------------------------------- */

static void
check_request(struct rig *rig, size_t *found, uint32_t *longest)
{
    struct dryi_paged *p = rig->place.self;
    struct request r = {.bytes = (1 + random_below(&rig->random, 24 * 2048)) * GRAIN};
    r.size = r.bytes;
    r.stream = dryi_paged_stream_index(p, random_below(&rig->random, STREAMS));
    r.shelf = dryi_paged_shelf_index(p, 0, r.stream);
    uint32_t length = 0;
    struct spot best = look_at_all(p, &r, &length), spot;
    *longest = length > *longest ? length : *longest;
    assert_int_equal(dryi_paged_spot_find(p, &r, SEARCH_ALL, &spot), DRY_OK);
    assert_int_equal(spot.block == NONE, best.block == NONE);
    if (best.block == NONE)
        return;
    assert_true(spot.addr == best.addr && spot.block == best.block);
    assert_true(spot.cost == best.cost && spot.fresh == best.fresh);
    assert_true(spot.gaps == best.gaps && spot.slack == best.slack);
    ++*found;
    for (int kind = SEARCH_FRESH; kind <= SEARCH_TOUCH; kind++) { /* of some runs alone */
        assert_int_equal(dryi_paged_spot_find(p, &r, (enum search_kind)kind, &spot),
                         DRY_OK);
        if (length > 16) /* of parts of them, whose ends are not the run's */
            spot.gaps = best.gaps, spot.slack = best.slack, spot.addr = best.addr;
        assert_true(spot.block == NONE || !is_less(&spot, &best));
    }
}

static void
nothing_that_is_left_out_is_better(void **state)
{
    (void)state;
    struct rig rig;
    size_t found = 0;
    uint32_t longest = 0;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        begin(&rig, seed);
        for (int i = 0; i < 600; i++) {
            act(&rig);
            if (i >= 60)
                check_request(&rig, &found, &longest);
        }
        end(&rig);
    }
    assert_true(found > 5000);
}

/* Free blocks and holes in turns, broken here and there by what is in use. */
static void
long_runs_are_looked_at_whole(void **state)
{
    (void)state;
    struct rig rig;
    size_t found = 0;
    uint32_t longest = 0;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        begin(&rig, seed);
        struct dryi_place *place = &rig.place;
        for (; rig.count < BLOCKS; rig.count++)
            assert_int_equal(
                place->ops->alloc(place->self,
                                  (2 + random_below(&rig.random, 8)) * PAGE / 4,
                                  rig.count % STREAMS, &rig.blocks[rig.count]),
                DRY_OK);
        for (size_t i = 0; i < BLOCKS; i += 2)
            assert_int_equal(place->ops->free(place->self, rig.blocks[i]), DRY_OK);
        assert_int_equal(place->ops->trim(place->self, 0), DRY_OK);
        for (size_t i = 1; i < BLOCKS; i += 2) {
            if (random_below(&rig.random, 30) > 0)
                assert_int_equal(place->ops->free(place->self, rig.blocks[i]), DRY_OK);
        }
        for (int i = 0; i < 20; i++)
            check_request(&rig, &found, &longest);
        end(&rig);
    }
    assert_true(found == 200 && longest > 100);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_that_is_left_out_is_better),
        cmocka_unit_test(long_runs_are_looked_at_whole),
    };
    return cmocka_run_group_tests_name("paged_spot", tests, NULL, NULL);
}
