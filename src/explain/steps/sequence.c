/* SPDX-License-Identifier: Apache-2.0 */

/* A stack's id is its symbol; a map numbers pairs of stack and size. A counting sort finds the
   occurrences of each symbol. Cost: O(symbols + allocations). sequence.h has the idea. */
#include "explain/steps/sequence.h"

#include "base/fail.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/search.h"

/* Number keys in order of first appearance. Returns false if memory ran out. */
static bool
number_key(struct dryi_map *map, uint64_t key, uint32_t *number)
{
    const uint32_t *known = dryi_map_find(map, key);
    *number = known ? *known : (uint32_t)map->count;
    return known || dryi_map_put(map, key, *number);
}

static uint32_t
count_born_before(const struct dry_timeline_view *v, uint32_t until)
{
    return (uint32_t)dryi_count_below(
        v->allocations, v->allocation_count - v->carried_over_count,
        sizeof *v->allocations, offsetof(struct dry_allocation, begin), until);
}

static bool
fill_by_stack(struct dryi_sequence *s, const struct dry_timeline_view *v)
{
    uint32_t stack_count = dry_trace_get_view(v->trace)->stack_count;
    s->symbol_count = stack_count + 1;
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t stack = v->allocations[i].stack;
        s->symbols[i] = stack < stack_count ? stack : stack_count;
    }
    return true;
}

/* Number the first of equal stacks apart from its repetitions: code that allocates several times in
   a row then leaves one symbol that occurs once. */
static bool
fill_by_run(struct dryi_sequence *s, const struct dry_timeline_view *v)
{
    bool is_ok = fill_by_stack(s, v);
    uint32_t before = DRY_NONE;
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t symbol = s->symbols[i];
        s->symbols[i] += symbol == before ? s->symbol_count : 0;
        before = symbol;
    }
    s->symbol_count *= 2;
    return is_ok;
}

static bool
fill_by_size(struct dryi_sequence *s, const struct dry_timeline_view *v)
{
    struct dryi_map sizes, pairs;
    dryi_map_init(&sizes, &s->memory);
    dryi_map_init(&pairs, &s->memory);
    bool is_ok = true;
    for (uint32_t i = 0; i < s->count && is_ok; i++) {
        const struct dry_allocation *a = &v->allocations[i];
        uint32_t size;
        is_ok = number_key(&sizes, a->requested, &size) &&
                number_key(&pairs, (uint64_t)a->stack << 32 | size, &s->symbols[i]);
    }
    s->symbol_count = (uint32_t)pairs.count + 1;
    dryi_map_finish(&sizes);
    dryi_map_finish(&pairs);
    return is_ok;
}

/* Collect the occurrences of each symbol by a counting sort. */
static bool
index_places(struct dryi_sequence *s)
{
    s->counts = dryi_memory_zalloc(&s->memory, s->symbol_count, sizeof *s->counts);
    s->begins = dryi_memory_zalloc(&s->memory, s->symbol_count, sizeof *s->begins);
    s->places = dryi_memory_zalloc(&s->memory, (size_t)s->count + 1, sizeof *s->places);
    if (!s->counts || !s->begins || !s->places)
        return false;
    for (uint32_t i = 0; i < s->count; i++)
        s->counts[s->symbols[i]]++;
    uint32_t begin = 0;
    for (uint32_t symbol = 0; symbol < s->symbol_count; symbol++) {
        s->begins[symbol] = begin;
        begin += s->counts[symbol];
        s->used_count += s->counts[symbol] > 0;
    }
    for (uint32_t i = 0; i < s->count; i++)
        s->places[s->begins[s->symbols[i]]++] = i;
    for (uint32_t symbol = 0; symbol < s->symbol_count; symbol++)
        s->begins[symbol] -= s->counts[symbol];
    return true;
}

enum dry_status
dryi_sequence_init(struct dryi_sequence *s, const struct dry_timeline *timeline,
                   enum dryi_alphabet alphabet, uint32_t until,
                   const struct dry_memory *memory, struct dry_error *err)
{
    const struct dry_timeline_view *v = dry_timeline_get_view(timeline);
    *s = (struct dryi_sequence){.memory = *memory, .count = count_born_before(v, until)};
    s->symbols = dryi_memory_zalloc(memory, (size_t)s->count + 1, sizeof *s->symbols);
    bool (*const fill[])(struct dryi_sequence *, const struct dry_timeline_view *) = {
        [DRYI_ALPHABET_STACK] = fill_by_stack,
        [DRYI_ALPHABET_STACK_SIZE] = fill_by_size,
        [DRYI_ALPHABET_STACK_RUN] = fill_by_run};
    if (s->symbols && fill[alphabet](s, v) && index_places(s))
        return DRY_OK;
    dryi_sequence_finish(s);
    return dryi_fail_memory(err, "the order of the allocations");
}

void
dryi_sequence_finish(struct dryi_sequence *s)
{
    const struct dry_memory *m = &s->memory;
    size_t count = (size_t)s->count + 1;
    dryi_memory_free(m, s->symbols, count, sizeof *s->symbols);
    dryi_memory_free(m, s->places, count, sizeof *s->places);
    dryi_memory_free(m, s->counts, s->symbol_count, sizeof *s->counts);
    dryi_memory_free(m, s->begins, s->symbol_count, sizeof *s->begins);
    *s = (struct dryi_sequence){.memory = s->memory};
}

/* The counts of a symbol in the current part and the one before; `part` counts from 1. */
struct tally {
    uint32_t part, count, count_before;
};

static bool
is_also_before(struct tally *t, uint32_t part)
{
    if (t->part != part) {
        t->count_before = t->part + 1 == part ? t->count : 0;
        t->part = part;
        t->count = 0;
    }
    t->count++;
    return t->count <= t->count_before;
}

bool
dryi_sequence_compare(const struct dryi_sequence *s, const uint32_t *begins,
                      uint32_t part_count, uint32_t *shared)
{
    struct tally *tallies =
        dryi_memory_zalloc(&s->memory, s->symbol_count, sizeof *tallies);
    if (!tallies)
        return false;
    for (uint32_t p = 0; p < part_count; p++) {
        uint32_t end = p + 1 < part_count ? begins[p + 1] : s->count;
        shared[p] = 0;
        for (uint32_t i = begins[p]; i < end; i++)
            shared[p] += is_also_before(&tallies[s->symbols[i]], p + 1);
    }
    dryi_memory_free(&s->memory, tallies, s->symbol_count, sizeof *tallies);
    return true;
}
