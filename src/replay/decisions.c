/* SPDX-License-Identifier: Apache-2.0 */

/* Lines are collected in one buffer, which is written out when the next line might not fit. Cost:
   O(1) per action. decisions.h has the format. */
#include "replay/decisions.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/assert.h"

#define LINE_MAX_BYTES 160

void
dryi_decisions_init(struct dryi_decisions *d, const struct dryi_program *program,
                    const struct dry_sink *sink, struct dry_error *err)
{
    d->program = program;
    d->execution = NULL;
    d->sink = sink;
    d->err = err;
    d->status = DRY_OK;
    d->used = 0;
}

static void
flush(struct dryi_decisions *d)
{
    if (d->status == DRY_OK && d->used > 0)
        d->status = d->sink->write(d->sink->self, d->buffer, d->used, d->err);
    d->used = 0;
}

__attribute__((format(printf, 2, 3))) static void
line(struct dryi_decisions *d, const char *format, ...)
{
    if (DECISIONS_BUFFER - d->used < LINE_MAX_BYTES)
        flush(d);
    va_list args;
    va_start(args, format);
    int length = vsnprintf(d->buffer + d->used, LINE_MAX_BYTES, format, args);
    va_end(args);
    DRYI_ASSERT(length > 0 && length < LINE_MAX_BYTES);
    d->used += (size_t)length;
}

static void
on_begin(void *self, const struct dryi_execution *execution)
{
    struct dryi_decisions *d = self;
    d->execution = execution;
}

static uint64_t
id_of(const struct dryi_program *p, uint32_t request)
{
    return p->has_addresses ? request : dryi_program_addr(p, request);
}

void
dryi_decisions_segment(struct dryi_decisions *d, uint32_t segment, uint64_t size,
                       uint64_t stream)
{
    line(d, "segment_alloc %" PRIu32 " %" PRIu64 " %" PRIu64 "\n", segment, size, stream);
}

void
dryi_decisions_alloc(struct dryi_decisions *d, uint32_t request, uint32_t segment,
                     uint64_t offset, uint64_t size)
{
    line(d, "alloc %" PRIu64 " %" PRIu32 " %" PRIu64 " %" PRIu64 "\n",
         id_of(d->program, request), segment, offset, size);
}

void
dryi_decisions_free(struct dryi_decisions *d, uint32_t request)
{
    line(d, "free %" PRIu64 "\n", id_of(d->program, request));
}

static void
on_event(void *self, const struct dryi_place_event *e)
{
    struct dryi_decisions *d = self;
    switch (e->action) {
    case DRY_ACTION_SEGMENT_ALLOC:
        dryi_decisions_segment(d, e->segment, e->size, e->stream);
        break;
    case DRY_ACTION_SEGMENT_FREE:
        line(d, "segment_free %" PRIu32 "\n", e->segment);
        break;
    case DRY_ACTION_SEGMENT_MAP:
    case DRY_ACTION_SEGMENT_UNMAP:
        line(d, "%s %" PRIu32 " %" PRIu64 " %" PRIu64 "\n", dry_action_name(e->action),
             e->segment, e->offset, e->size);
        break;
    case DRY_ACTION_FREE_REQUESTED:
        dryi_decisions_free(d, d->execution->request);
        break;
    case DRY_ACTION_OOM:
        line(d, "oom %" PRIu64 "\n", e->size);
        break;
    case DRY_ACTION_ALLOC: /* written after the operation, when the block is known */
    case DRY_ACTION_FREE_COMPLETED:
    case DRY_ACTION_SNAPSHOT:
    case DRY_ACTION_ANNOTATE:
    case DRY_ACTION_OTHER:
    case DRY_ACTION_LIVE:
    case DRY_ACTION_RECORD_STREAM:
    case DRY_ACTION_STREAM_END:
    case DRY_ACTION_EMPTY_CACHE:
    case DRY_ACTION_POOL_BEGIN:
    case DRY_ACTION_POOL_END:
        break;
    }
}

static enum dry_status
after_op(void *self, size_t op)
{
    struct dryi_decisions *d = self;
    const struct dryi_execution *x = d->execution;
    if (op != NO_OP && d->program->kinds[op] != OP_ALLOC &&
        d->program->kinds[op] != OP_OOM)
        return d->status;
    if (x->handles[x->request] == DRYI_NO_BLOCK)
        return d->status; /* requests of 0 bytes get no block */
    struct dryi_block_info info;
    x->place.ops->get_block(x->place.self, x->handles[x->request], &info);
    dryi_decisions_alloc(d, x->request, info.segment, info.offset, info.size);
    return d->status;
}

enum dry_status
dryi_decisions_end(struct dryi_decisions *d)
{
    flush(d);
    return d->status;
}

static enum dry_status
on_end(void *self)
{
    return dryi_decisions_end(self);
}

struct dryi_listener
dryi_decisions_listener(struct dryi_decisions *d)
{
    return (struct dryi_listener){.begin = on_begin,
                                  .event = on_event,
                                  .after = after_op,
                                  .end = on_end,
                                  .self = d};
}
