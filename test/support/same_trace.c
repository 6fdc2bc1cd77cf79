/* SPDX-License-Identifier: Apache-2.0 */
#include "support/same_trace.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct pair {
    const struct dry_trace *a, *b;
    const struct dry_trace_view *va, *vb;
    uint32_t *stacks; /* a's stack -> b's stack known to be the same, plus 1 */
};

static bool
same_string(const struct pair *p, uint32_t a, uint32_t b)
{
    if ((a == DRY_NONE) != (b == DRY_NONE))
        return false;
    if (a == DRY_NONE)
        return true;
    size_t la, lb;
    const char *sa = dry_trace_string(p->a, a, &la);
    const char *sb = dry_trace_string(p->b, b, &lb);
    return la == lb && memcmp(sa, sb, la) == 0;
}

static bool
same_frame(const struct pair *p, uint32_t a, uint32_t b)
{
    const struct dry_frame *fa = &p->va->frames[a], *fb = &p->vb->frames[b];
    return fa->line == fb->line && same_string(p, fa->name, fb->name) &&
           same_string(p, fa->file, fb->file) && same_string(p, fa->extra, fb->extra) &&
           fa->flags == fb->flags;
}

static bool
same_stack(const struct pair *p, uint32_t a, uint32_t b)
{
    if (a == DRY_NONE || b == DRY_NONE)
        return a == b;
    if (p->stacks[a] == b + 1)
        return true;
    size_t ca, cb;
    const uint32_t *fa = dry_trace_stack(p->a, a, &ca);
    const uint32_t *fb = dry_trace_stack(p->b, b, &cb);
    bool same = ca == cb;
    for (size_t i = 0; i < ca && same; i++)
        same = same_frame(p, fa[i], fb[i]);
    if (same)
        p->stacks[a] = b + 1;
    return same;
}

static bool
same_lane(const struct pair *p, uint32_t a, uint32_t b)
{
    return memcmp(&p->va->lanes[a], &p->vb->lanes[b], sizeof *p->va->lanes) == 0;
}

static bool
same_note(const struct pair *p, uint32_t a, uint32_t b)
{
    const struct dry_note *na = dry_trace_note(p->a, a), *nb = dry_trace_note(p->b, b);
    return na->flags == nb->flags && same_string(p, na->action_name, nb->action_name) &&
           same_string(p, na->compile_context, nb->compile_context) &&
           same_string(p, na->user_metadata, nb->user_metadata) &&
           same_string(p, na->extra, nb->extra);
}

static const char *
compare_event(const struct pair *p, size_t i)
{
    const struct dry_trace_view *a = p->va, *b = p->vb;
    if (a->action[i] != b->action[i])
        return "action";
    if (a->addr[i] != b->addr[i])
        return "addr";
    if (a->size[i] != b->size[i])
        return "size";
    if (a->time_us[i] != b->time_us[i])
        return "time_us";
    if (!same_lane(p, a->lane[i], b->lane[i]))
        return "lane";
    if (!same_stack(p, a->stack[i], b->stack[i]))
        return "stack";
    return same_note(p, a->note[i], b->note[i]) ? NULL : "note";
}

static bool
same_block(const struct pair *p, const struct dry_trace_block *a,
           const struct dry_trace_block *b)
{
    return a->address == b->address && a->size == b->size &&
           a->requested_size == b->requested_size && a->state == b->state &&
           same_stack(p, a->stack, b->stack) && same_string(p, a->extra, b->extra);
}

static bool
same_segment(const struct pair *p, const struct dry_trace_segment *a,
             const struct dry_trace_segment *b)
{
    return a->address == b->address && a->total_size == b->total_size &&
           a->allocated_size == b->allocated_size && a->active_size == b->active_size &&
           a->requested_size == b->requested_size && same_lane(p, a->lane, b->lane) &&
           same_stack(p, a->stack, b->stack) && same_string(p, a->extra, b->extra) &&
           a->first_block == b->first_block && a->block_count == b->block_count &&
           a->device == b->device && a->is_large == b->is_large &&
           a->is_expandable == b->is_expandable && a->pool_id_known == b->pool_id_known &&
           a->expandable_known == b->expandable_known;
}

static bool
same_annotation(const struct pair *p, const struct dry_trace_annotation *a,
                const struct dry_trace_annotation *b)
{
    return a->time_us == b->time_us && a->device == b->device &&
           same_string(p, a->name, b->name) && same_string(p, a->stage, b->stage) &&
           same_string(p, a->extra, b->extra);
}

static bool
same_settings(const struct pair *p)
{
    const struct dry_trace_settings *a = &p->va->settings, *b = &p->vb->settings;
    return a->known == b->known && same_string(p, a->conf, b->conf) &&
           a->max_split_size == b->max_split_size &&
           memcmp(&a->garbage_collection_threshold, &b->garbage_collection_threshold,
                  sizeof a->garbage_collection_threshold) == 0 &&
           a->expandable_segments == b->expandable_segments &&
           a->roundup_known == b->roundup_known &&
           memcmp(a->roundup_power2_divisions, b->roundup_power2_divisions,
                  sizeof a->roundup_power2_divisions) == 0 &&
           same_string(p, a->extra, b->extra);
}

/* Where an empty range begins says nothing. */
static bool
same_device(const struct dry_trace_device *a, const struct dry_trace_device *b)
{
    return a->device == b->device && a->event_count == b->event_count &&
           (a->event_count == 0 || a->first_event == b->first_event) &&
           a->segment_count == b->segment_count &&
           (a->segment_count == 0 || a->first_segment == b->first_segment);
}

static const char *
compare_shape(const struct pair *p)
{
    const struct dry_trace_view *a = p->va, *b = p->vb;
    if (a->event_count != b->event_count || a->device_count != b->device_count ||
        a->segment_count != b->segment_count || a->block_count != b->block_count ||
        a->annotation_count != b->annotation_count)
        return "a count";
    if (a->is_bare_list != b->is_bare_list || a->has_traces != b->has_traces ||
        a->has_settings != b->has_settings || a->has_annotations != b->has_annotations ||
        a->has_host != b->has_host)
        return "the shape";
    if (!same_string(p, a->top_extra, b->top_extra))
        return "top_extra";
    if (!same_settings(p))
        return "settings";
    for (size_t i = 0; i < a->device_count; i++) {
        if (!same_device(&a->devices[i], &b->devices[i]))
            return "a device";
    }
    return NULL;
}

static const char *
compare(const struct pair *p)
{
    const struct dry_trace_view *a = p->va, *b = p->vb;
    const char *what = compare_shape(p);
    for (size_t i = 0; !what && i < a->event_count; i++)
        what = compare_event(p, i);
    for (size_t i = 0; !what && i < a->segment_count; i++)
        what = same_segment(p, &a->segments[i], &b->segments[i]) ? NULL : "a segment";
    for (size_t i = 0; !what && i < a->block_count; i++)
        what = same_block(p, &a->blocks[i], &b->blocks[i]) ? NULL : "a block";
    for (size_t i = 0; !what && i < a->annotation_count; i++)
        what = same_annotation(p, &a->annotations[i], &b->annotations[i])
                   ? NULL
                   : "an annotation";
    return what;
}

const char *
same_trace(const struct dry_trace *a, const struct dry_trace *b)
{
    struct pair p = {a, b, dry_trace_get_view(a), dry_trace_get_view(b), NULL};
    p.stacks = calloc((size_t)p.va->stack_count + 1, sizeof *p.stacks);
    if (!p.stacks)
        abort();
    const char *what = compare(&p);
    free(p.stacks);
    return what;
}
