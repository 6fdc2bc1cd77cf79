/* SPDX-License-Identifier: Apache-2.0 */

/* Marks are found by binary search; joining is one merge. See sim_clock.h. */
#include "device/sim/sim_clock.h"

#include <string.h>

#include "base/memory.h"
#include "base/search.h"

void
dryi_sim_clock_finish(struct dryi_sim_clock *clock, const struct dry_memory *memory)
{
    dryi_memory_free(memory, clock->marks, clock->capacity, sizeof *clock->marks);
    *clock = (struct dryi_sim_clock){0};
}

/* Return the position of the first mark of this stream or a later one. */
static size_t
get_position(const struct dryi_sim_clock *clock, uint32_t stream)
{
    return dryi_count_below(clock->marks, clock->count, sizeof *clock->marks,
                            offsetof(struct dryi_sim_mark, stream), stream);
}

uint64_t
dryi_sim_clock_get(const struct dryi_sim_clock *clock, uint32_t stream)
{
    size_t i = get_position(clock, stream);
    return i < clock->count && clock->marks[i].stream == stream ? clock->marks[i].tick
                                                                : 0;
}

bool
dryi_sim_clock_reserve(struct dryi_sim_clock *clock, const struct dry_memory *memory,
                       size_t count)
{
    return dryi_memory_grow(memory, &clock->marks, &clock->capacity, count,
                            sizeof *clock->marks);
}

/* Return the number of streams with a mark in either clock. */
static size_t
count_both(const struct dryi_sim_clock *a, const struct dryi_sim_clock *b)
{
    size_t count = 0;
    for (size_t i = 0, k = 0; i < a->count || k < b->count; count++) {
        bool from_a =
            k == b->count || (i < a->count && a->marks[i].stream <= b->marks[k].stream);
        bool from_b =
            i == a->count || (k < b->count && b->marks[k].stream <= a->marks[i].stream);
        i += from_a;
        k += from_b;
    }
    return count;
}

/* Merges from the end, so that no mark is overwritten before it is read. */
bool
dryi_sim_clock_join(struct dryi_sim_clock *clock, const struct dry_memory *memory,
                    const struct dryi_sim_clock *other)
{
    if (other->count == 0)
        return true;
    size_t count = count_both(clock, other);
    if (!dryi_sim_clock_reserve(clock, memory, count))
        return false;
    struct dryi_sim_mark *marks = clock->marks;
    size_t i = clock->count, k = other->count, to = count;
    while (k > 0) {
        struct dryi_sim_mark theirs = other->marks[k - 1];
        if (i > 0 && marks[i - 1].stream > theirs.stream) {
            marks[--to] = marks[--i];
            continue;
        }
        if (i > 0 && marks[i - 1].stream == theirs.stream) {
            i--;
            if (marks[i].tick > theirs.tick)
                theirs = marks[i];
        }
        marks[--to] = theirs;
        k--;
    }
    clock->count = count;
    return true;
}

bool
dryi_sim_clock_raise(struct dryi_sim_clock *clock, const struct dry_memory *memory,
                     struct dryi_sim_mark mark)
{
    struct dryi_sim_clock other = {.marks = &mark, .count = 1};
    return dryi_sim_clock_join(clock, memory, &other);
}

bool
dryi_sim_clock_copy(struct dryi_sim_clock *clock, const struct dry_memory *memory,
                    const struct dryi_sim_clock *other)
{
    if (!dryi_sim_clock_reserve(clock, memory, other->count))
        return false;
    if (other->count > 0)
        memcpy(clock->marks, other->marks, other->count * sizeof *other->marks);
    clock->count = other->count;
    return true;
}
