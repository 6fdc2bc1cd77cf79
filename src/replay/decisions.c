/* SPDX-License-Identifier: Apache-2.0 */
/* Cost: O(1) per action. */
#include "replay/decisions.h"

#include <inttypes.h>
#include <stdio.h>

void
dryi_decisions_init(struct dryi_decisions *d, const struct dryi_program *program,
                    const struct dry_decision_sink *sink, struct dry_error *err)
{
    *d = (struct dryi_decisions){.program = program, .sink = sink, .err = err};
}

void
dryi_decisions_tell(struct dryi_decisions *d, struct dry_decision decision)
{
    if (d->status == DRY_OK)
        d->status = d->sink->take(d->sink->self, &decision, d->err);
}

uint64_t
dryi_decisions_id(const struct dryi_program *p, uint32_t request)
{
    return p->has_addresses ? request : dryi_program_addr(p, request);
}

size_t
dry_decision_write(const struct dry_decision *d, char text[DRY_DECISION_BYTES])
{
    int length = 0;
    text[0] = '\0';
    if (d->action == DRY_ACTION_ALLOC)
        length = snprintf(text, DRY_DECISION_BYTES,
                          "alloc %" PRIu64 " %" PRIu32 " %" PRIu64 " %" PRIu64 "\n",
                          d->request, d->segment, d->offset_bytes, d->size_bytes);
    else if (d->action == DRY_ACTION_FREE_REQUESTED)
        length = snprintf(text, DRY_DECISION_BYTES, "free %" PRIu64 "\n", d->request);
    else if (d->action == DRY_ACTION_OOM)
        length = snprintf(text, DRY_DECISION_BYTES, "oom %" PRIu64 "\n", d->size_bytes);
    else if (d->action == DRY_ACTION_SEGMENT_ALLOC)
        length = snprintf(text, DRY_DECISION_BYTES,
                          "segment_alloc %" PRIu32 " %" PRIu64 " %" PRIu64 "\n",
                          d->segment, d->size_bytes, d->stream);
    else if (d->action == DRY_ACTION_SEGMENT_FREE)
        length =
            snprintf(text, DRY_DECISION_BYTES, "segment_free %" PRIu32 "\n", d->segment);
    else if (d->action == DRY_ACTION_SEGMENT_MAP || d->action == DRY_ACTION_SEGMENT_UNMAP)
        length = snprintf(
            text, DRY_DECISION_BYTES, "%s %" PRIu32 " %" PRIu64 " %" PRIu64 "\n",
            dry_action_name(d->action), d->segment, d->offset_bytes, d->size_bytes);
    return (size_t)length;
}

static void
on_begin(void *self, const struct dryi_execution *execution)
{
    struct dryi_decisions *d = self;
    d->execution = execution;
}

static void
on_event(void *self, const struct dryi_place_event *e)
{
    struct dryi_decisions *d = self;
    struct dry_decision decision = {.action = e->action};
    switch (e->action) {
    case DRY_ACTION_SEGMENT_ALLOC:
        decision.stream = e->stream;
        decision.size_bytes = e->size;
        decision.segment = e->segment;
        break;
    case DRY_ACTION_SEGMENT_MAP:
    case DRY_ACTION_SEGMENT_UNMAP:
        decision.offset_bytes = e->offset;
        decision.size_bytes = e->size;
        decision.segment = e->segment;
        break;
    case DRY_ACTION_SEGMENT_FREE:
        decision.segment = e->segment;
        break;
    case DRY_ACTION_FREE_REQUESTED:
        decision.request = dryi_decisions_id(d->program, d->execution->request);
        break;
    case DRY_ACTION_OOM:
        decision.size_bytes = e->size;
        break;
    case DRY_ACTION_ALLOC: /* told after the operation, when the block is known */
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
        return;
    }
    dryi_decisions_tell(d, decision);
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
    dryi_decisions_tell(
        d, (struct dry_decision){.action = DRY_ACTION_ALLOC,
                                 .segment = info.segment,
                                 .request = dryi_decisions_id(d->program, x->request),
                                 .offset_bytes = info.offset,
                                 .size_bytes = info.size});
    return d->status;
}

static enum dry_status
on_end(void *self)
{
    const struct dryi_decisions *d = self;
    return d->status;
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
