/* SPDX-License-Identifier: Apache-2.0 */

/*
 * place/offline: packings are sound, never below the floor, the same twice; the floor and
 * the check against naive ones; what is refused; every failed allocation.
 */
#include "support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "place/offline/offline.h"
#include "support/failing_memory.h"
#include "support/find_clash.h"
#include "support/random.h"

#define LIVES_MAX 64

struct instance {
    struct dryi_life lives[LIVES_MAX];
    uint64_t offsets[LIVES_MAX];
    size_t count;
    struct dryi_packing packing;
};

static bool
overlaps_in_time(const struct dryi_life *a, const struct dryi_life *b)
{
    return a->begin < a->end && b->begin < b->end && a->begin < b->end &&
           b->begin < a->end;
}

static bool
is_sound_naive(const struct dryi_life *lives, size_t count, const uint64_t *offsets)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (overlaps_in_time(&lives[i], &lives[k]) &&
                offsets[i] < offsets[k] + lives[k].size &&
                offsets[k] < offsets[i] + lives[i].size)
                return false;
        }
    }
    return true;
}

static uint64_t
round_up(uint64_t size, uint64_t alignment)
{
    return (size + alignment - 1) / alignment * alignment;
}

static uint64_t
floor_naive(const struct dryi_life *lives, size_t count, uint64_t alignment)
{
    uint64_t floor = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t live = 0;
        struct dryi_life moment = {lives[i].begin, lives[i].begin + 1, 1};
        for (size_t k = 0; k < count; k++) {
            if (overlaps_in_time(&lives[k], &moment))
                live += round_up(lives[k].size, alignment);
        }
        floor = live > floor ? live : floor;
    }
    return floor;
}

static void
make_instance(struct instance *in, struct random *r, size_t count, uint64_t times)
{
    in->count = count;
    for (size_t i = 0; i < count; i++) {
        uint64_t begin = random_below(r, times);
        in->lives[i] = (struct dryi_life){
            .begin = begin,
            .end = begin + random_below(r, times - begin + 1),
            .size = 1 + random_below(r, random_below(r, 4) ? 2048 : 64 << 10),
        };
    }
}

static void
pack(struct instance *in, struct dryi_packing_options options)
{
    assert_int_equal(dryi_offline_pack(in->lives, in->count, &options, in->offsets,
                                       &in->packing, NULL),
                     DRY_OK);
}

static void
require_sound(const struct instance *in, uint64_t alignment)
{
    uint64_t height = 0, floor, moment;
    assert_false(find_clash(in->lives, in->count, in->offsets).is_found);
    assert_true(is_sound_naive(in->lives, in->count, in->offsets));
    for (size_t i = 0; i < in->count; i++) {
        uint64_t end = in->offsets[i] + round_up(in->lives[i].size, alignment);
        assert_int_equal(in->offsets[i] % alignment, 0);
        if (in->lives[i].begin < in->lives[i].end && end > height)
            height = end;
    }
    assert_int_equal(in->packing.height, height);
    assert_int_equal(in->packing.floor, floor_naive(in->lives, in->count, alignment));
    assert_int_equal(
        dryi_offline_floor(in->lives, in->count, alignment, NULL, &floor, &moment),
        DRY_OK);
    assert_int_equal(in->packing.floor, floor);
    assert_true(height >= floor);
    if (height == floor)
        assert_true(in->packing.is_optimal);
    assert_non_null(in->packing.method);
}

static void
random_lives_are_packed_soundly(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        struct instance in;
        struct random r;
        random_init(&r, seed);
        make_instance(&in, &r, random_below(&r, LIVES_MAX + 1), 1 + random_below(&r, 40));
        uint64_t alignment = UINT64_C(1) << random_below(&r, 12);
        pack(&in, (struct dryi_packing_options){.alignment = alignment,
                                                .effort = seed % 4 ? 20000 : 0});
        require_sound(&in, alignment);
    }
}

/* --- the least height, by trying all orders ----------------------------------------------- */

#define SMALL 7

struct brute {
    const struct instance *in;
    uint64_t offsets[SMALL];
    bool is_placed[SMALL];
    uint64_t best;
};

/* On top of everything it overlaps that is placed: the lowest packing comes of some order. */
static uint64_t
top_of(const struct brute *b, size_t i)
{
    uint64_t top = 0;
    for (size_t k = 0; k < b->in->count; k++) {
        uint64_t end = b->offsets[k] + b->in->lives[k].size;
        if (b->is_placed[k] && overlaps_in_time(&b->in->lives[k], &b->in->lives[i]) &&
            end > top)
            top = end;
    }
    return top;
}

/* All permutations of indices (Heap's algorithm, without recursion). */
static uint64_t
least_height(const struct instance *in)
{
    struct brute b = {.in = in, .best = UINT64_MAX};
    size_t order[SMALL] = {0, 1, 2, 3, 4, 5, 6}, counters[SMALL] = {0};
    size_t i = 0;
    do {
        uint64_t height = 0;
        memset(b.is_placed, 0, sizeof b.is_placed);
        for (size_t k = 0; k < in->count; k++) {
            size_t life = order[k];
            b.offsets[life] = top_of(&b, life);
            b.is_placed[life] = true;
            if (in->lives[life].begin < in->lives[life].end &&
                b.offsets[life] + in->lives[life].size > height)
                height = b.offsets[life] + in->lives[life].size;
        }
        b.best = height < b.best ? height : b.best;
        while (i < in->count && counters[i] >= i)
            counters[i++] = 0;
        if (i < in->count) {
            size_t other = i % 2 ? counters[i] : 0, kept = order[other];
            order[other] = order[i];
            order[i] = kept;
            counters[i]++;
        }
        if (i >= in->count)
            break;
        i = 0;
    } while (true);
    return b.best;
}

static void
small_instances_are_solved(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 1500; seed++) {
        struct instance in;
        struct random r;
        random_init(&r, seed);
        make_instance(&in, &r, 1 + random_below(&r, SMALL), 8);
        for (size_t i = 0; i < in.count; i++)
            in.lives[i].size = 1 + random_below(&r, 12);
        pack(&in, (struct dryi_packing_options){.alignment = 1, .effort = 1000000});
        require_sound(&in, 1);
        assert_int_equal(in.packing.height, least_height(&in));
        assert_true(in.packing.is_optimal);
    }
}

/* One of the rare small ones that do not fit into their floor. */
static const struct dryi_life misfits[SMALL] = {
    {1, 2, 9}, {4, 7, 3}, {3, 4, 7}, {5, 6, 5}, {6, 7, 8}, {0, 5, 3}, {3, 6, 3}};

static void
a_height_above_the_floor_is_proved(void **state)
{
    (void)state;
    struct instance in = {.count = SMALL};
    memcpy(in.lives, misfits, sizeof misfits);
    pack(&in, (struct dryi_packing_options){.alignment = 1, .effort = 1000000});
    require_sound(&in, 1);
    assert_true(in.packing.height > in.packing.floor);
    assert_int_equal(in.packing.height, least_height(&in));
    assert_true(in.packing.is_optimal);
}

/* Whatever the effort, what is called the least height is that. */
static void
nothing_is_proved_that_is_wrong(void **state)
{
    (void)state;
    unsigned proved = 0, open = 0;
    for (uint64_t seed = 0; seed < 500; seed++) {
        struct instance in;
        struct random r;
        random_init(&r, seed);
        in.count = SMALL;
        memcpy(in.lives, misfits, sizeof misfits);
        for (size_t i = 0; i < in.count; i++)
            in.lives[i].size = 3 * (in.lives[i].size + random_below(&r, 3));
        pack(&in, (struct dryi_packing_options){.alignment = 1,
                                                .effort = random_below(&r, 20000)});
        require_sound(&in, 1);
        uint64_t least = least_height(&in);
        assert_true(in.packing.height >= least);
        if (in.packing.is_optimal)
            assert_int_equal(in.packing.height, least);
        proved += in.packing.is_optimal && least > in.packing.floor;
        open += !in.packing.is_optimal;
    }
    assert_true(proved > 0);
    assert_true(open > 0);
}

/* --- what fits without a gap -------------------------------------------------------------- */

/* A rectangle of time and space, cut into pieces by straight cuts: its floor is its height. */
static void
cut_up(struct instance *in, struct random *r, size_t count, uint64_t times,
       uint64_t height)
{
    in->lives[0] = (struct dryi_life){0, times, height};
    for (in->count = 1; in->count < count;) {
        size_t widest = 0;
        for (size_t i = 0; i < in->count; i++) {
            const struct dryi_life *a = &in->lives[i], *b = &in->lives[widest];
            if (a->size * (a->end - a->begin) > b->size * (b->end - b->begin))
                widest = i;
        }
        struct dryi_life *old = &in->lives[widest], *new = &in->lives[in->count];
        bool in_time = random_below(r, 2) && old->end - old->begin > 1;
        *new = *old;
        if (in_time) {
            old->end = new->begin =
                old->begin + 1 + random_below(r, old->end - old->begin - 1);
        } else {
            new->size = 1 + random_below(r, old->size - 1);
            old->size -= new->size;
        }
        in->count++;
    }
}

static void
pieces_of_a_rectangle_are_put_together(void **state)
{
    (void)state;
    unsigned searched = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct instance in;
        struct random r;
        random_init(&r, seed);
        cut_up(&in, &r, 30, 100, 1000);
        pack(&in, (struct dryi_packing_options){.alignment = 1, .effort = 100000000});
        require_sound(&in, 1);
        assert_int_equal(in.packing.floor, 1000);
        assert_int_equal(in.packing.height, 1000);
        searched += strcmp(in.packing.method, "exact search") == 0;
    }
    assert_true(searched > 10);
}

/* --- beside the packing ------------------------------------------------------------------- */

static void
the_check_finds_what_the_naive_one_finds(void **state)
{
    (void)state;
    unsigned unsound = 0;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        struct instance in;
        struct random r;
        random_init(&r, seed);
        make_instance(&in, &r, random_below(&r, 12), 10);
        for (size_t i = 0; i < in.count; i++)
            in.offsets[i] = random_below(&r, UINT64_C(1) << (10 + seed % 12));
        struct clash clash = find_clash(in.lives, in.count, in.offsets);
        assert_int_equal(!clash.is_found, is_sound_naive(in.lives, in.count, in.offsets));
        if (!clash.is_found)
            continue;
        unsound++;
        size_t a = clash.first, b = clash.second;
        assert_true(a != b && overlaps_in_time(&in.lives[a], &in.lives[b]));
        assert_true(in.offsets[a] < in.offsets[b] + in.lives[b].size &&
                    in.offsets[b] < in.offsets[a] + in.lives[a].size);
    }
    assert_true(unsound > 300 && unsound < 2900);
}

static void
the_floor_names_its_first_moment(void **state)
{
    (void)state;
    const struct dryi_life lives[] = {
        {0, 10, 512}, {3, 5, 512}, {5, 9, 500}, {20, 30, 1}};
    uint64_t floor, moment;
    assert_int_equal(dryi_offline_floor(lives, 4, 0, NULL, &floor, &moment), DRY_OK);
    assert_int_equal(floor, 1024);
    assert_int_equal(moment, 3);
    assert_int_equal(dryi_offline_floor(lives, 0, 0, NULL, &floor, &moment), DRY_OK);
    assert_int_equal(floor, 0);
}

static void
fixed_lives_stay(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 500; seed++) {
        struct instance in;
        struct random r;
        uint64_t fixed[LIVES_MAX], next = 0;
        random_init(&r, seed);
        make_instance(&in, &r, 1 + random_below(&r, LIVES_MAX), 20);
        for (size_t i = 0; i < in.count; i++) {
            fixed[i] = DRYI_OFFLINE_ANYWHERE;
            if (random_below(&r, 3))
                continue;
            fixed[i] = next + 512 * random_below(&r, 8);
            next = round_up(fixed[i] + in.lives[i].size, 512);
        }
        pack(&in, (struct dryi_packing_options){.fixed = fixed, .effort = 10000});
        require_sound(&in, 512);
        for (size_t i = 0; i < in.count; i++) {
            if (fixed[i] != DRYI_OFFLINE_ANYWHERE)
                assert_int_equal(in.offsets[i], fixed[i]);
        }
    }
}

static void
the_same_twice(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct instance in, again;
        struct random r;
        random_init(&r, seed);
        make_instance(&in, &r, LIVES_MAX, 60);
        again = in;
        pack(&in, (struct dryi_packing_options){.effort = 300000});
        pack(&again, (struct dryi_packing_options){.effort = 300000});
        assert_memory_equal(in.offsets, again.offsets, sizeof in.offsets);
        assert_string_equal(in.packing.method, again.packing.method);
    }
}

static enum dry_status
try_one(struct dryi_life life, uint64_t alignment, uint64_t offset)
{
    struct dryi_life lives[2] = {life, {0, 1, UINT64_C(1) << 61}};
    uint64_t fixed[2] = {offset, DRYI_OFFLINE_ANYWHERE};
    uint64_t offsets[2] = {77, 77};
    struct dryi_packing packing;
    struct dry_error err;
    struct dryi_packing_options options = {.alignment = alignment, .fixed = fixed};
    enum dry_status status =
        dryi_offline_pack(lives, 2, &options, offsets, &packing, &err);
    if (status != DRY_OK) {
        assert_int_equal(offsets[0], 77);
        assert_true(err.text[0] != '\0');
    }
    return status;
}

static void
bad_input_is_refused(void **state)
{
    (void)state;
    const uint64_t any = DRYI_OFFLINE_ANYWHERE, half = UINT64_C(1) << 61;
    assert_int_equal(try_one((struct dryi_life){1, 2, half}, 512, any), DRY_OK);
    assert_int_equal(try_one((struct dryi_life){1, 2, half + 1}, 512, any),
                     DRY_ERR_ARGUMENT);
    assert_int_equal(try_one((struct dryi_life){1, 2, UINT64_MAX}, 512, any),
                     DRY_ERR_ARGUMENT);
    assert_int_equal(try_one((struct dryi_life){2, 1, 1}, 512, any), DRY_ERR_ARGUMENT);
    assert_int_equal(try_one((struct dryi_life){1, 2, 0}, 512, any), DRY_ERR_ARGUMENT);
    assert_int_equal(try_one((struct dryi_life){1, 2, 1}, 3, any), DRY_ERR_ARGUMENT);
    assert_int_equal(try_one((struct dryi_life){1, 2, 1}, 512, 100), DRY_ERR_ARGUMENT);
    assert_int_equal(try_one((struct dryi_life){1, 2, 1}, 512, UINT64_C(1) << 63),
                     DRY_ERR_ARGUMENT);
    uint64_t floor, moment;
    const struct dryi_life bad = {2, 1, 1};
    assert_int_equal(dryi_offline_floor(&bad, 1, 0, NULL, &floor, &moment),
                     DRY_ERR_ARGUMENT);
}

static void
nothing_is_packed_into_nothing(void **state)
{
    (void)state;
    struct dryi_packing packing;
    struct dryi_packing_options options = {0};
    assert_int_equal(dryi_offline_pack(NULL, 0, &options, NULL, &packing, NULL), DRY_OK);
    assert_int_equal(packing.height, 0);
    assert_true(packing.is_optimal);
}

enum shape { EQUAL, NESTED, STAIRS };

static void
pack_many(size_t count, enum shape shape)
{
    struct dryi_life *lives = calloc(count, sizeof *lives);
    uint64_t *offsets = calloc(count, sizeof *offsets);
    struct dryi_packing_options options = {.effort = 1000000};
    struct dryi_packing packing;
    assert_non_null(lives);
    assert_non_null(offsets);
    for (size_t i = 0; i < count; i++) {
        lives[i] = shape == EQUAL    ? (struct dryi_life){7, 9, 512}
                   : shape == NESTED ? (struct dryi_life){i, 2 * count - i, 1000 + i % 7}
                                     : (struct dryi_life){i, i + 100, 512 * (1 + i % 5)};
    }
    assert_int_equal(dryi_offline_pack(lives, count, &options, offsets, &packing, NULL),
                     DRY_OK);
    assert_false(find_clash(lives, count, offsets).is_found);
    if (shape != STAIRS)
        assert_int_equal(packing.height, packing.floor);
    free(lives);
    free(offsets);
}

static void
many_lives_take_no_square(void **state)
{
    (void)state;
    pack_many(100000, EQUAL);
    pack_many(100000, NESTED);
    pack_many(100000, STAIRS);
}

static bool
stop_at_once(void *self, double done)
{
    unsigned *calls = self;
    (void)done;
    ++*calls;
    return true;
}

static void
a_search_can_be_ended(void **state)
{
    (void)state;
    unsigned calls = 0;
    for (uint64_t seed = 0; seed < 200 && !calls; seed++) {
        struct instance in;
        struct random r;
        random_init(&r, seed);
        cut_up(&in, &r, LIVES_MAX, 1000, 1000000);
        pack(&in, (struct dryi_packing_options){.alignment = 1,
                                                .effort = UINT64_C(1) << 60,
                                                .progress = stop_at_once,
                                                .progress_self = &calls});
        require_sound(&in, 1);
    }
    assert_int_equal(calls, 1);
}

static void
every_failed_allocation_comes_back(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 3; kind++) {
        struct instance in;
        struct random r;
        random_init(&r, 12);
        make_instance(&in, &r, 40, 30);
        uint64_t fixed[LIVES_MAX], moment, floor;
        memset(fixed, 0xff, sizeof fixed);
        for (size_t n = 0;; n++) {
            struct failing_memory fm;
            struct dry_memory memory = failing_memory_init(&fm, n);
            struct dryi_packing_options options = {
                .memory = &memory, .effort = 100000, .fixed = kind == 1 ? fixed : NULL};
            enum dry_status status =
                kind == 2
                    ? dryi_offline_floor(in.lives, in.count, 0, &memory, &floor, &moment)
                    : dryi_offline_pack(in.lives, in.count, &options, in.offsets,
                                        &in.packing, NULL);
            failing_memory_finish(&fm);
            if (!fm.failed) {
                assert_int_equal(status, DRY_OK);
                break;
            }
            assert_int_equal(status, DRY_ERR_MEMORY);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_lives_are_packed_soundly),
        cmocka_unit_test(small_instances_are_solved),
        cmocka_unit_test(a_height_above_the_floor_is_proved),
        cmocka_unit_test(nothing_is_proved_that_is_wrong),
        cmocka_unit_test(pieces_of_a_rectangle_are_put_together),
        cmocka_unit_test(the_check_finds_what_the_naive_one_finds),
        cmocka_unit_test(the_floor_names_its_first_moment),
        cmocka_unit_test(fixed_lives_stay),
        cmocka_unit_test(the_same_twice),
        cmocka_unit_test(bad_input_is_refused),
        cmocka_unit_test(nothing_is_packed_into_nothing),
        cmocka_unit_test(many_lives_take_no_square),
        cmocka_unit_test(a_search_can_be_ended),
        cmocka_unit_test(every_failed_allocation_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
