/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Ranks for the exact search.
 *
 * A good order makes failures rare, but no order suits all problems. A proven order begins with the
 * lives of the fullest section, because no space may be lost there. Among them the longest are
 * first, because they are hardest to place late (Moffitt, ASPLOS 2023, sorts by such keys). The
 * first runs use each rule unchanged. Later runs add noise to the keys, and count a section with
 * repeated failures as fuller. Every third later run orders lives by their height in the best
 * packing so far, because a better one is often similar (Beck, 2007, on solution-guided search).
 *
 * All arithmetic is on integers, so that all machines agree.
 */
#include "place/offline/offline_inside.h"

#include "base/assert.h"
#include "base/bits.h"
#include "base/memory.h"

#define SCALE_BITS 20u /* keys are fractions of the maximum, scaled by 2^20 */
#define SCALE (UINT64_C(1) << SCALE_BITS)
#define RULES 8u
#define NOISES 4u

bool
dryi_ranks_init(struct dryi_ranks *r, const struct dryi_problem *p)
{
    const struct dry_memory *m = &p->memory;
    *r = (struct dryi_ranks){.longest = 1, .largest = 1};
    r->ranks = dryi_memory_zalloc(m, p->count, sizeof *r->ranks);
    r->loads = dryi_memory_zalloc(m, p->section_count, sizeof *r->loads);
    r->fails = dryi_memory_zalloc(m, p->section_count, sizeof *r->fails);
    r->items = dryi_memory_zalloc(m, p->count, 2 * sizeof *r->items);
    if (!r->ranks || !r->loads || !r->fails || !r->items)
        return false;
    for (uint32_t i = 0; i < p->count; i++) {
        for (uint32_t s = p->lo[i]; s < p->hi[i]; s++)
            r->loads[s] += p->sizes[i];
        if (p->durations[i] > r->longest)
            r->longest = p->durations[i];
        if (p->sizes[i] > r->largest)
            r->largest = p->sizes[i];
    }
    return true;
}

void
dryi_ranks_finish(struct dryi_ranks *r, const struct dryi_problem *p)
{
    const struct dry_memory *m = &p->memory;
    dryi_memory_free(m, r->ranks, p->count, sizeof *r->ranks);
    dryi_memory_free(m, r->loads, p->section_count, sizeof *r->loads);
    dryi_memory_free(m, r->fails, p->section_count, sizeof *r->fails);
    dryi_memory_free(m, r->items, p->count, 2 * sizeof *r->items);
}

void
dryi_ranks_fail(struct dryi_ranks *r, uint32_t section)
{
    r->fails[section] += 1024;
}

/* Return value / most, scaled by SCALE. */
static uint64_t
fraction(uint64_t value, uint64_t most)
{
    DRYI_ASSERT_SLOW(most > 0 && value <= most);
    unsigned bits = dryi_log2_floor(most);
    unsigned shift = bits > 40 ? bits - 40 : 0;
    uint64_t divisor = most >> shift;
    return divisor ? ((value >> shift) << SCALE_BITS) / divisor : 0;
}

static uint64_t
next_random(uint64_t *random)
{
    *random += 1;
    return dryi_mix64(*random);
}

/* Return the value times a random factor in [1 - noise/2048, 1 + noise/2048]. */
static uint64_t
blur(uint64_t value, uint64_t noise, uint64_t *random)
{
    DRYI_ASSERT_SLOW(noise < 1024);
    if (noise == 0)
        return value;
    uint64_t factor = 1024 - noise / 2 + next_random(random) % (noise + 1);
    return value * factor / 1024;
}

struct keys {
    uint64_t load; /* load of the fullest section in which the life is alive */
    uint64_t time, span, size; /* fractions, scaled by SCALE */
};

static uint64_t
get_key(const struct keys *k, unsigned rule)
{
    DRYI_ASSERT_SLOW(rule < RULES);
    switch (rule) {
    case 0:
        return (k->load << 10) + k->time;
    case 1:
        return k->time;
    case 2:
        return (k->load << 10) + (k->time * k->size >> SCALE_BITS);
    case 3:
        return k->time * k->size >> SCALE_BITS;
    case 4:
        return k->span;
    case 5:
        return (k->load << 10) + k->span;
    case 6:
        return k->span * k->size >> SCALE_BITS;
    default:
        return k->size;
    }
}

struct turn {
    unsigned rule;
    bool is_guided;
    uint64_t noise, random;
    uint64_t most_fails;
};

static uint64_t
compute_load(const struct dryi_ranks *r, const struct dryi_problem *p, uint32_t i,
             const struct turn *t)
{
    uint64_t most = 0;
    for (uint32_t s = p->lo[i]; s < p->hi[i]; s++) {
        uint64_t load = fraction(r->loads[s], p->bound);
        if (t->most_fails)
            load += fraction(r->fails[s], t->most_fails) / 2;
        most = load > most ? load : most;
    }
    return most;
}

static uint64_t
preference(const struct dryi_ranks *r, const struct dryi_problem *p, uint32_t i,
           struct turn *t)
{
    if (t->is_guided) {
        uint64_t depth = SCALE - fraction(p->offsets[i], p->height);
        return depth + next_random(&t->random) % (1 + t->noise * SCALE / 4096);
    }
    struct keys keys = {
        .load = blur(compute_load(r, p, i, t), t->noise, &t->random),
        .time = blur(fraction(p->durations[i], r->longest), t->noise, &t->random),
        .span =
            blur(fraction(p->hi[i] - p->lo[i], p->section_count), t->noise, &t->random),
        .size = blur(fraction(p->sizes[i], r->largest), t->noise, &t->random),
    };
    return get_key(&keys, t->rule);
}

/* Choose a run's rule and noise. The first RULES runs have no noise. Decays r->fails. */
static struct turn
make_turn(struct dryi_ranks *r, const struct dryi_problem *p, uint64_t run, uint64_t seed)
{
    static const uint64_t noises[NOISES] = {5, 20, 80, 200};
    struct turn t = {.rule = (unsigned)(run % RULES), .random = dryi_mix64(seed)};
    r->is_lowest_first = run / RULES % 2 == 1;
    if (run < RULES)
        return t;
    t.noise = noises[run / RULES % NOISES];
    t.is_guided = run % 3 == 0;
    for (uint32_t s = 0; s < p->section_count; s++) {
        r->fails[s] -= r->fails[s] / 16;
        t.most_fails = r->fails[s] > t.most_fails ? r->fails[s] : t.most_fails;
    }
    return t;
}

void
dryi_ranks_make(struct dryi_ranks *r, const struct dryi_problem *p, uint64_t run,
                uint64_t seed)
{
    DRYI_ASSERT_SLOW(p->bound > 0 && p->bound <= p->height);
    struct turn turn = make_turn(r, p, run, seed);
    for (uint32_t i = 0; i < p->count; i++)
        r->items[i] = (struct dryi_sort_item){~p->sizes[i], i};
    dryi_sort_items(r->items, r->items + p->count, p->count);
    for (uint32_t k = 0; k < p->count; k++)
        r->items[k].key = ~preference(r, p, r->items[k].value, &turn);
    dryi_sort_items(r->items, r->items + p->count, p->count);
    for (uint32_t k = 0; k < p->count; k++)
        r->ranks[r->items[k].value] = k;
}
