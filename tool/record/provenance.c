/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of releases as phrases, see provenance.h. */
#include "record/provenance.h"

#include <stdio.h>
#include <string.h>

static void
say_range(const struct dry_releases *r, char *text, size_t capacity)
{
    const char *does = r->reproduces ? "reproduce" : "may have made";
    if (strcmp(r->first, r->last) == 0)
        snprintf(text, capacity, "PyTorch %s %s it", r->first,
                 r->reproduces ? "reproduces" : "made");
    else if (r->has_gap)
        snprintf(text, capacity, "some of PyTorch %s to %s %s it", r->first, r->last,
                 does);
    else
        snprintf(text, capacity, "PyTorch %s to %s all %s it", r->first, r->last, does);
}

void
provenance_say_releases(const struct dry_releases *r, char *text, size_t capacity)
{
    say_range(r, text, capacity);
    size_t used = strlen(text);
    if (r->not_before[0])
        snprintf(text + used, capacity - used, "; %s came with %s", r->not_before,
                 r->first);
}
