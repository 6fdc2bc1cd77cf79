/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Names of actions, queries of a trace's interned tables, and the budget that counts all
 * of its memory. Cost: O(1) a query.
 */
#include "trace/model/trace.h"

#include "base/assert.h"
#include "base/fail.h"
#include "base/memory.h"

const char *
dry_action_name(enum dry_action action)
{
    static const char *const names[] = {
        [DRY_ACTION_ALLOC] = "alloc",
        [DRY_ACTION_FREE_REQUESTED] = "free_requested",
        [DRY_ACTION_FREE_COMPLETED] = "free_completed",
        [DRY_ACTION_SEGMENT_ALLOC] = "segment_alloc",
        [DRY_ACTION_SEGMENT_FREE] = "segment_free",
        [DRY_ACTION_SEGMENT_MAP] = "segment_map",
        [DRY_ACTION_SEGMENT_UNMAP] = "segment_unmap",
        [DRY_ACTION_SNAPSHOT] = "snapshot",
        [DRY_ACTION_OOM] = "oom",
        [DRY_ACTION_ANNOTATE] = "annotate",
        [DRY_ACTION_OTHER] = "other",
        [DRY_ACTION_LIVE] = "live",
        [DRY_ACTION_RECORD_STREAM] = "record_stream",
        [DRY_ACTION_STREAM_END] = "stream_end",
        [DRY_ACTION_EMPTY_CACHE] = "empty_cache",
        [DRY_ACTION_POOL_BEGIN] = "pool_begin",
        [DRY_ACTION_POOL_END] = "pool_end",
    };
    _Static_assert(sizeof names / sizeof *names == DRY_ACTION_COUNT, "a name each");
    return (unsigned)action < DRY_ACTION_COUNT ? names[action] : "unknown action";
}

static void *
resize_in_budget(void *self, void *old, size_t old_bytes, size_t new_bytes)
{
    struct dryi_budget *budget = self;
    uint64_t kept = budget->used_bytes - (old ? old_bytes : 0);
    if (new_bytes > old_bytes &&
        (kept > budget->limit_bytes || new_bytes > budget->limit_bytes - kept)) {
        budget->is_spent = true;
        return NULL;
    }
    void *block = budget->parent.resize(budget->parent.self, old, old_bytes, new_bytes);
    if (block || new_bytes == 0)
        budget->used_bytes = kept + new_bytes;
    return block;
}

struct dry_memory
dryi_budget_memory(struct dryi_budget *budget)
{
    return (struct dry_memory){.resize = resize_in_budget, .self = budget};
}

enum dry_status
dryi_budget_fail(const struct dryi_budget *budget, const char *noun,
                 struct dry_error *err)
{
    if (!budget->is_spent)
        return dryi_fail_memory(err, noun);
    return dryi_fail(err, DRY_ERR_LIMIT,
                     "%s needs more memory than the %llu bytes allowed", noun,
                     (unsigned long long)budget->limit_bytes);
}

const struct dry_trace_view *
dry_trace_get_view(const struct dry_trace *trace)
{
    return &trace->view;
}

const char *
dry_trace_string(const struct dry_trace *trace, uint32_t string, size_t *length)
{
    if (string < trace->strings.count)
        return dryi_intern_get(&trace->strings, string, length);
    DRYI_ASSERT(string == DRY_NONE);
    if (length)
        *length = 0;
    return NULL;
}

const uint32_t *
dry_trace_stack(const struct dry_trace *trace, uint32_t stack, size_t *count)
{
    DRYI_ASSERT(stack == DRY_NONE || stack < trace->stacks.count);
    *count = 0;
    if (stack >= trace->stacks.count)
        return NULL;
    size_t length;
    const uint32_t *frames = dryi_intern_get(&trace->stacks, stack, &length);
    *count = length / sizeof *frames;
    return frames;
}

const struct dry_note *
dry_trace_note(const struct dry_trace *trace, uint32_t note)
{
    static const struct dry_note nothing = {DRY_NONE, DRY_NONE, DRY_NONE, DRY_NONE, 0};
    DRYI_ASSERT(note == DRY_NONE || note < trace->notes.count);
    if (note >= trace->notes.count)
        return &nothing;
    return dryi_intern_get(&trace->notes, note, NULL);
}

static void
free_events(struct dryi_events *e, const struct dry_memory *m)
{
    dryi_memory_free(m, e->action, e->action_capacity, sizeof *e->action);
    dryi_memory_free(m, e->addr, e->addr_capacity, sizeof *e->addr);
    dryi_memory_free(m, e->size, e->size_capacity, sizeof *e->size);
    dryi_memory_free(m, e->time_us, e->time_capacity, sizeof *e->time_us);
    dryi_memory_free(m, e->lane, e->lane_capacity, sizeof *e->lane);
    dryi_memory_free(m, e->stack, e->stack_capacity, sizeof *e->stack);
    dryi_memory_free(m, e->note, e->note_capacity, sizeof *e->note);
}

void
dry_trace_destroy(struct dry_trace *trace)
{
    if (!trace)
        return;
    const struct dry_memory *m = &trace->memory;
    dryi_intern_finish(&trace->strings);
    dryi_intern_finish(&trace->frames);
    dryi_intern_finish(&trace->stacks);
    dryi_intern_finish(&trace->lanes);
    dryi_intern_finish(&trace->notes);
    dryi_intern_finish(&trace->unknowns);
    free_events(&trace->events, m);
    dryi_memory_free(m, trace->devices, trace->device_capacity, sizeof *trace->devices);
    dryi_memory_free(m, trace->segments, trace->segment_capacity,
                     sizeof *trace->segments);
    dryi_memory_free(m, trace->blocks, trace->block_capacity, sizeof *trace->blocks);
    dryi_memory_free(m, trace->annotations, trace->annotation_capacity,
                     sizeof *trace->annotations);
    dryi_memory_free(m, trace->unknown_rows, trace->unknown_capacity,
                     sizeof *trace->unknown_rows);
    dryi_memory_free(m, trace->lane_rows, trace->view.lane_count,
                     sizeof *trace->lane_rows);
    dryi_memory_free(m, trace->frame_rows, trace->view.frame_count,
                     sizeof *trace->frame_rows);
    DRYI_ASSERT(trace->budget.used_bytes == 0);
    struct dry_memory parent = trace->parent;
    dryi_memory_free(&parent, trace, 1, sizeof *trace);
}

/* --- what was not recorded ---------------------------------------------------------------- */

/* Fewer frees may all have waited for a stream, and been done when the snapshot was taken. */
#define FREES_MIN 8

static bool
has_pending_block(const struct dry_trace_view *v, const struct dry_trace_device *d)
{
    for (size_t i = 0; i < d->segment_count; i++) {
        const struct dry_trace_segment *s = &v->segments[d->first_segment + i];
        for (size_t k = 0; k < s->block_count; k++) {
            if (v->blocks[s->first_block + k].state == DRY_BLOCK_PENDING_FREE)
                return true;
        }
    }
    return false;
}

bool
dryi_trace_lacks_completions(const struct dry_trace_view *v,
                             const struct dry_trace_device *d)
{
    size_t frees = 0;
    for (size_t i = d->first_event; i < d->first_event + d->event_count; i++) {
        if (v->action[i] == DRY_ACTION_FREE_COMPLETED)
            return false;
        frees += v->action[i] == DRY_ACTION_FREE_REQUESTED;
    }
    return frees >= FREES_MIN && v->kind == DRY_TRACE_SNAPSHOT &&
           !has_pending_block(v, d);
}
