/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The idea is in svg_owners.h. Weights are in an array by frame. For each colour, one
 * pass over the frames finds the heaviest that has no colour.
 */
#include "export/svg_owners.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* P. Tol's "muted" scheme, darkest first, for all kinds of colour vision. */
static const char *const fills[SVG_SLOT_COUNT] = {
    "#332288", "#88ccee", "#cc6677", "#117733", "#ddcc77",       "#882255",
    "#44aa99", "#999933", "#aa4499", "#e0e0e0", "url(#carried)",
};

bool
svg_owners_init(struct svg_owners *o, const struct export_job *job)
{
    *o = (struct svg_owners){.job = job, .trace = job->study->subject};
    o->frame_count = dry_trace_get_view(o->trace)->frame_count;
    o->weights = calloc(o->frame_count + (size_t)2, sizeof *o->weights);
    o->slots = calloc(o->frame_count + (size_t)2, sizeof *o->slots);
    return o->weights && o->slots;
}

void
svg_owners_finish(struct svg_owners *o)
{
    free(o->weights);
    free(o->slots);
    o->weights = NULL;
    o->slots = NULL;
}

static uint32_t
owner_of(const struct svg_owners *o, const struct dry_allocation *a)
{
    uint32_t site = export_names_site(o->job->names, a->stack);
    if (site != DRY_NONE && !(a->flags & DRY_ALLOCATION_STACK_OF_FREE))
        return site;
    return a->flags & DRY_ALLOCATION_CARRIED_OVER ? o->frame_count : o->frame_count + 1;
}

void
svg_owners_add(struct svg_owners *o, const struct dry_allocation *a, double weight)
{
    o->weights[owner_of(o, a)] += weight;
}

/* Find the heaviest owner without a colour. Carried-over memory has its own pattern. */
static uint32_t
find_heaviest(const struct svg_owners *o)
{
    uint32_t best = DRY_NONE;
    for (uint32_t i = 0; i < o->frame_count + 2; i++) {
        if (i == o->frame_count || o->slots[i] != SVG_SLOT_OTHER || o->weights[i] <= 0)
            continue;
        if (best == DRY_NONE || o->weights[i] > o->weights[best])
            best = i;
    }
    return best;
}

void
svg_owners_rank(struct svg_owners *o)
{
    memset(o->slots, SVG_SLOT_OTHER, o->frame_count + (size_t)2);
    o->slots[o->frame_count] = SVG_SLOT_CARRIED;
    for (uint8_t i = 0; i < SVG_COLORS; i++) {
        o->owners[i] = find_heaviest(o);
        if (o->owners[i] != DRY_NONE)
            o->slots[o->owners[i]] = i;
    }
    o->other_count = 0;
    for (uint32_t i = 0; i < o->frame_count + 2; i++)
        o->other_count += o->slots[i] == SVG_SLOT_OTHER && o->weights[i] > 0;
}

unsigned
svg_owners_slot(const struct svg_owners *o, const struct dry_allocation *a)
{
    return o->slots[owner_of(o, a)];
}

const char *
svg_slot_fill(unsigned slot)
{
    return fills[slot];
}

const char *
svg_slot_name(const struct svg_owners *o, unsigned slot, char name[EXPORT_NAME_BYTES])
{
    if (slot == SVG_SLOT_CARRIED)
        return "before the recording";
    if (slot == SVG_SLOT_OTHER) {
        snprintf(name, EXPORT_NAME_BYTES, "%zu other line%s", o->other_count,
                 o->other_count == 1 ? "" : "s");
        return name;
    }
    if (o->owners[slot] == o->frame_count + 1)
        return "no stack recorded";
    return export_frame_name(o->job->names, o->owners[slot], name);
}
