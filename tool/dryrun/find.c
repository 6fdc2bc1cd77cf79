/* SPDX-License-Identifier: Apache-2.0 */
/* See find.h. */
#include "dryrun/find.h"

#define LEAP                                                                             \
    8 /* the line is extrapolated to this multiple of the largest number that fitted */

struct find
find_begin(uint64_t first, uint64_t last)
{
    return (struct find){.first = first, .last = last};
}

/* Extrapolate the line through the last two numbers that fitted to `torch_bytes` bytes. Returns
   0 if there are not two, or if memory did not grow. */
static uint64_t
follow_line(const struct find *f, uint64_t torch_bytes)
{
    if (f->below == 0 || f->low_bytes <= f->below_bytes)
        return 0;
    if (torch_bytes <= f->low_bytes)
        return f->low;
    double slope = (double)(f->low_bytes - f->below_bytes) / (double)(f->low - f->below);
    double steps = (double)(torch_bytes - f->low_bytes) / slope;
    double most = (double)f->low * LEAP;
    return f->low + (uint64_t)(steps < most ? steps : most);
}

uint64_t
find_next(struct find *f, uint64_t torch_bytes)
{
    if (f->low == 0)
        return f->high ? 0 : f->first;
    uint64_t end = f->high ? f->high : f->last + 1;
    if (f->low + 1 >= end)
        return 0;
    uint64_t line = f->bisects ? 0 : follow_line(f, torch_bytes);
    f->was_line = line != 0;
    if (line == 0)
        line = f->high ? f->low + (f->high - f->low) / 2 : f->low * 2;
    if (line <= f->low)
        line = f->low + 1;
    return line < end ? line : end - 1;
}

/* Record a result. If the extrapolated number did not fit, the line is unreliable, so the
   next number bisects. */
void
find_note(struct find *f, uint64_t number, bool fits, uint64_t reserved)
{
    if (!fits) {
        f->high = number;
        f->bisects = f->was_line && !f->bisects;
        return;
    }
    f->bisects = false;
    f->below = f->low;
    f->below_bytes = f->low_bytes;
    f->low = number;
    f->low_bytes = reserved;
}
