/* SPDX-License-Identifier: Apache-2.0 */

/* Both lists ascend, so one pass over both evaluates a shift. align.h has
   the rules and the cost. */
#include "explain/diff/align.h"

#include <stdbool.h>

/* Only shifts that align one of the first or last ENDS lines of both lists are tried. */
#define ENDS 4u

struct lines {
    const int64_t *base, *lines;
    size_t base_count, line_count;
};

/* Count the pairs under a shift. If `partners` is not NULL, store them there. */
static size_t
match(const struct lines *l, int64_t shift, size_t *partners)
{
    size_t count = 0, b = 0;
    for (size_t i = 0; i < l->line_count; i++) {
        int64_t wanted = l->lines[i] + shift;
        while (b < l->base_count && l->base[b] < wanted)
            b++;
        bool is_pair = b < l->base_count && l->base[b] == wanted;
        count += is_pair;
        if (partners)
            partners[i] = is_pair ? b : SIZE_MAX;
    }
    return count;
}

/* Return the index of the n-th of the first and last ENDS lines; SIZE_MAX if there are fewer. */
static size_t
pick_end(size_t count, size_t n)
{
    if (count <= 2 * (size_t)ENDS)
        return n < count ? n : SIZE_MAX;
    return n < ENDS ? n : count - 1 - (n - ENDS);
}

static int64_t
magnitude(int64_t shift)
{
    return shift < 0 ? -shift : shift;
}

static int64_t
find_shift(const struct lines *l)
{
    int64_t best = 0;
    size_t best_count = match(l, 0, NULL);
    for (size_t i = 0; i < (size_t)2 * ENDS * 2 * ENDS; i++) {
        size_t b = pick_end(l->base_count, i / (2 * (size_t)ENDS));
        size_t k = pick_end(l->line_count, i % (2 * (size_t)ENDS));
        if (b == SIZE_MAX || k == SIZE_MAX)
            continue;
        int64_t shift = l->base[b] - l->lines[k];
        size_t count = match(l, shift, NULL);
        if (count > best_count ||
            (count == best_count && magnitude(shift) < magnitude(best))) {
            best = shift;
            best_count = count;
        }
    }
    return best;
}

/* Return whether `from` (ascending) contains the value. *at only increases between
   calls, so a pass is linear. */
static bool
holds(const int64_t *from, size_t count, int64_t value, size_t *at)
{
    while (*at < count && from[*at] < value)
        ++*at;
    return *at < count && from[*at] == value;
}

/* Pair the remaining lines in order, if both sides have equally many. Otherwise there is no
   evidence for any pair. */
static void
pair_the_rest(const struct lines *l, int64_t shift, size_t *partners)
{
    size_t line = 0, in_base = 0, in_lines = 0;
    for (size_t b = 0; b < l->base_count; b++) {
        if (holds(l->lines, l->line_count, l->base[b] - shift, &in_lines))
            continue;
        while (holds(l->base, l->base_count, l->lines[line] + shift, &in_base))
            line++;
        partners[line++] = b;
    }
}

int64_t
dryi_align_lines(const int64_t *base, size_t base_count, const int64_t *lines,
                 size_t line_count, size_t *partners)
{
    struct lines l = {base, lines, base_count, line_count};
    int64_t shift = find_shift(&l);
    size_t count = match(&l, shift, partners);
    if (shift != 0 && base_count == line_count && count < line_count)
        pair_the_rest(&l, shift, partners);
    return shift;
}
