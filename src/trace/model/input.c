/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The idea is in input.h. Unread bytes move to the front of the window before a fill.
 * Cost: O(bytes read); a fill moves fewer bytes than it was asked for.
 */
#include "trace/model/input.h"

#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"

#define WINDOW_BYTES (256 * DRYI_KIB)
#define PROGRESS_BYTES (16 * DRYI_MIB)

enum dry_status
dryi_input_init(struct dryi_input *in, const struct dry_source *source,
                const struct dry_memory *memory, const struct dry_trace_options *options,
                struct dry_error *err)
{
    *in = (struct dryi_input){
        .source = *source,
        .memory = *memory,
        .item_bytes_max = options->string_bytes_max,
        .progress = options->progress,
        .progress_self = options->progress_self,
        .progress_next = PROGRESS_BYTES,
    };
    if (!dryi_memory_grow(memory, &in->window, &in->capacity, WINDOW_BYTES, 1))
        return dryi_fail_memory(err, "the input window");
    return DRY_OK;
}

void
dryi_input_finish(struct dryi_input *in)
{
    dryi_memory_free(&in->memory, in->window, in->capacity, 1);
    in->window = NULL;
    in->capacity = in->at = in->end = 0;
}

static void
slide(struct dryi_input *in)
{
    if (in->at == 0)
        return;
    memmove(in->window, in->window + in->at, in->end - in->at);
    in->window_offset += in->at;
    in->end -= in->at;
    in->at = 0;
}

/* Grow a window that is full with one item, up to twice its size. */
static enum dry_status
widen(struct dryi_input *in, size_t count, struct dry_error *err)
{
    if (count > in->item_bytes_max)
        return dryi_fail_at(err, DRY_ERR_LIMIT, dryi_input_offset(in),
                            "an item of %zu bytes, the limit is %zu", count,
                            in->item_bytes_max);
    size_t wanted = in->capacity * 2 < count ? in->capacity * 2 : count;
    if (!dryi_memory_grow(&in->memory, &in->window, &in->capacity, wanted, 1))
        return dryi_fail_memory(err, "the input window");
    return DRY_OK;
}

static enum dry_status
read_some(struct dryi_input *in, struct dry_error *err)
{
    size_t free_bytes = in->capacity - in->end;
    size_t got = 0;
    enum dry_status status =
        in->source.read(in->source.self, in->window + in->end, free_bytes, &got, err);
    if (status != DRY_OK)
        return status;
    DRYI_ASSERT(got <= free_bytes);
    in->end += got;
    in->is_at_end = got == 0;
    uint64_t seen = in->window_offset + in->end;
    if (!in->progress || seen < in->progress_next)
        return DRY_OK;
    in->progress_next = seen + PROGRESS_BYTES;
    if (in->progress(in->progress_self, seen))
        return dryi_fail_at(err, DRY_ERR_CANCELLED, seen, "cancelled");
    return DRY_OK;
}

enum dry_status
dryi_input_fill(struct dryi_input *in, size_t count, struct dry_error *err)
{
    if (dryi_input_unread(in) >= count || in->is_at_end)
        return DRY_OK;
    slide(in);
    enum dry_status status = DRY_OK;
    while (status == DRY_OK && in->end < count && !in->is_at_end) {
        if (in->end == in->capacity)
            status = widen(in, count, err);
        if (status == DRY_OK)
            status = read_some(in, err);
    }
    return status;
}
