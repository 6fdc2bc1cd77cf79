/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of addresses, see memory.h. Cost: a search, and a move of what lies behind. */
#include "memory.h"

#include <stdlib.h>
#include <string.h>

void *
standin_grow(void *array, size_t *capacity, size_t count, size_t item)
{
    if (count < *capacity)
        return array;
    size_t wanted = *capacity ? *capacity * 2 : 64;
    void *more = realloc(array, wanted * item);
    if (!more)
        abort();
    *capacity = wanted;
    return more;
}

size_t
standin_intervals_find(const struct intervals *set, uint64_t at)
{
    size_t low = 0, high = set->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (set->items[middle].end <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Replace the intervals [first, last) by `count` of `by`, at most two. */
static void
replace(struct intervals *set, size_t first, size_t last, const struct interval *by,
        size_t count)
{
    set->items =
        standin_grow(set->items, &set->capacity, set->count + 1, sizeof *set->items);
    for (size_t i = first; i < last; i++)
        set->bytes -= set->items[i].end - set->items[i].begin;
    for (size_t i = 0; i < count; i++)
        set->bytes += by[i].end - by[i].begin;
    memmove(set->items + first + count, set->items + last,
            (set->count - last) * sizeof *set->items);
    memcpy(set->items + first, by, count * sizeof *by);
    set->count = set->count + count - (last - first);
}

void
standin_intervals_add(struct intervals *set, uint64_t begin, uint64_t end)
{
    size_t first = standin_intervals_find(set, begin ? begin - 1 : 0), last = first;
    for (; last < set->count && set->items[last].begin <= end; last++) {
        const struct interval *old = &set->items[last];
        begin = old->begin < begin ? old->begin : begin;
        end = old->end > end ? old->end : end;
    }
    replace(set, first, last, &(struct interval){begin, end}, 1);
}

void
standin_intervals_cut(struct intervals *set, uint64_t begin, uint64_t end)
{
    size_t first = standin_intervals_find(set, begin), last = first, count = 0;
    struct interval rest[2];
    while (last < set->count && set->items[last].begin < end)
        last++;
    if (last == first || begin >= end)
        return;
    struct interval left = set->items[first], right = set->items[last - 1];
    if (left.begin < begin)
        rest[count++] = (struct interval){left.begin, begin};
    if (right.end > end)
        rest[count++] = (struct interval){end, right.end};
    replace(set, first, last, rest, count);
}

bool
standin_intervals_have(const struct intervals *set, uint64_t begin, uint64_t end)
{
    size_t i = standin_intervals_find(set, begin);
    return begin == end ||
           (i < set->count && set->items[i].begin <= begin && set->items[i].end >= end);
}
