/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes as a text trace. What is read must hold together: every event is of the one
 * device, has a lane, and a free gives back the size of an allocation that is alive; what
 * is refused must say why and point into the input. Given in two ways, all at once and a
 * few bytes at a time, the answer must be the same.
 */
#include "support/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include <drystone/trace.h>

#include "support/bytes.h"
#include "support/same_trace.h"

static void
require(int condition)
{
    if (!condition)
        abort();
}

/* Blocks follow each other within their segment, and sums are those of the blocks. */
static void
check_map(const struct dry_trace_view *v)
{
    require(v->event_count == 0 && v->dump_count > 0);
    for (size_t i = 0; i < v->segment_count; i++) {
        const struct dry_trace_segment *s = &v->segments[i];
        uint64_t at = s->address, active = 0;
        require(s->block_count > 0 && s->address + s->total_size >= s->address);
        for (size_t k = s->first_block; k < s->first_block + s->block_count; k++) {
            const struct dry_trace_block *b = &v->blocks[k];
            require(k < v->block_count && b->address >= at && b->size > 0);
            at = b->address + b->size;
            active += b->state == DRY_BLOCK_ACTIVE ? b->size : 0;
        }
        require(at <= s->address + s->total_size && active == s->active_size);
    }
}

/* The sum of what lives never goes below nothing. */
static void
check_trace(const struct dry_trace *trace)
{
    const struct dry_trace_view *v = dry_trace_get_view(trace);
    size_t live = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < v->event_count; i++) {
        require(v->lane[i] < v->lane_count && v->time_us[i] >= 0);
        enum dry_action action = v->action[i];
        if (action == DRY_ACTION_ALLOC || action == DRY_ACTION_LIVE) {
            live++;
            bytes += v->size[i];
        }
        if (action == DRY_ACTION_FREE_REQUESTED) {
            require(live > 0);
            live--;
            bytes -= v->size[i];
            require(live > 0 || bytes == 0);
        }
    }
    if (v->kind == DRY_TRACE_BFC)
        check_map(v);
    else
        require(v->segment_count == 0 && v->dump_count == 0);
    require(v->frame_count == 0 && v->kind != DRY_TRACE_BUILT);
    if (v->kind != DRY_TRACE_KINETO)
        require(v->device_count == 1 && v->devices[0].event_count == v->event_count);
}

static enum dry_status
read_bytes(const uint8_t *data, size_t size, size_t step, struct dry_trace **trace,
           struct dry_error *err)
{
    struct bytes_source from;
    struct dry_source source = bytes_source_init(&from, data, size);
    from.step = step;
    return dry_trace_read(&source, NULL, trace, err);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size && data[0] == 0x80)
        return 0; /* a pickle: another target's */
    struct dry_trace *whole = NULL, *pieces = NULL;
    struct dry_error err = {0}, err_of_pieces = {0};
    enum dry_status status = read_bytes(data, size, 0, &whole, &err);
    require(read_bytes(data, size, 7, &pieces, &err_of_pieces) == status);
    if (status == DRY_OK) {
        check_trace(whole);
        require(!same_trace(whole, pieces));
    } else {
        require(err.text[0] && err.offset == err_of_pieces.offset);
        require(strcmp(err.text, err_of_pieces.text) == 0);
        require(err.offset <= size || err.offset == DRY_NO_OFFSET);
    }
    dry_trace_destroy(whole);
    dry_trace_destroy(pieces);
    return 0;
}
