/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks of a file with their frames and texts, and pages of its events. */
#include "view/answers.h"

#include <stdlib.h>
#include <string.h>

#include <drystone/owners.h>

/* Texts get numbers in the order in which frames speak of them. */
struct texts {
    const struct dry_trace *trace;
    struct pack *pack;
    unsigned text, from;
    uint32_t *number_of; /* by string of the trace: the text, or DRY_NONE */
    uint32_t count;
};

static uint32_t
find_text(struct texts *t, uint32_t string)
{
    if (string == DRY_NONE)
        return DRY_NONE;
    uint32_t *number = &t->number_of[string];
    if (*number == DRY_NONE) {
        size_t length;
        const char *bytes = dry_trace_string(t->trace, string, &length);
        pack_text(t->pack, t->text, bytes, length);
        pack_u32(t->pack, t->from, (uint32_t)pack_length(t->pack, t->text));
        *number = t->count++;
    }
    return *number;
}

static void
put_frames(struct texts *t, const struct dry_owners *owners)
{
    const struct dry_trace_view *v = dry_trace_get_view(t->trace);
    struct pack *p = t->pack;
    unsigned name = pack_column(p, "frame_name", PACK_U32);
    unsigned file = pack_column(p, "frame_file", PACK_U32);
    unsigned line = pack_column(p, "frame_line", PACK_U32);
    unsigned user = pack_column(p, "frame_user", PACK_U8);
    for (uint32_t i = 0; i < v->frame_count; i++) {
        pack_u32(p, name, find_text(t, v->frames[i].name));
        pack_u32(p, file, find_text(t, v->frames[i].file));
        pack_u32(p, line, v->frames[i].line);
        pack_u8(p, user, dry_owners_frame_kind(owners, i) == DRY_FRAME_USER);
    }
}

static void
put_stacks(struct pack *p, const struct view_file *file, uint32_t depth_max)
{
    const struct dry_trace *trace = file->study.subject;
    uint32_t count = dry_trace_get_view(trace)->stack_count;
    unsigned from = pack_column(p, "stack_from", PACK_U32);
    unsigned frame = pack_column(p, "stack_frame", PACK_U32);
    unsigned site = pack_column(p, "stack_site", PACK_U32);
    pack_u32(p, from, 0);
    for (uint32_t i = 0; i < count; i++) {
        size_t depth;
        const uint32_t *frames = dry_trace_stack(trace, i, &depth);
        uint32_t known_by = export_names_site(&file->names, i);
        for (size_t k = 0; k < depth; k++)
            if (depth_max == 0 || k < depth_max || frames[k] == known_by)
                pack_u32(p, frame, frames[k]);
        pack_u32(p, from, (uint32_t)pack_length(p, frame));
        pack_u32(p, site, known_by);
    }
}

static bool
put_all(struct pack *p, const struct view *view, const struct view_file *file,
        struct texts *t)
{
    struct dry_owners *owners = NULL;
    if (dry_owners_create(file->devices[0].timeline, NULL, &owners, NULL) != DRY_OK)
        return false;
    t->text = pack_column(p, "text", PACK_U8);
    t->from = pack_column(p, "text_from", PACK_U32);
    pack_u32(p, t->from, 0);
    put_frames(t, owners);
    put_stacks(p, file, view->depth_max);
    dry_owners_destroy(owners);
    return true;
}

bool
answer_stacks(const struct view *view, const struct view_file *file,
              struct answer *answer)
{
    struct pack p = {0};
    struct texts t = {.trace = file->study.subject, .pack = &p};
    size_t bytes = dry_trace_get_view(t.trace)->string_count * sizeof *t.number_of;
    t.number_of = malloc(bytes + 1);
    if (t.number_of)
        memset(t.number_of, 0xff, bytes); /* DRY_NONE */
    bool is_fine = t.number_of && put_all(&p, view, file, &t) && pack_write(&p, answer);
    pack_finish(&p);
    free(t.number_of);
    return is_fine;
}

bool
answer_events(const struct view_device *device, uint32_t page, struct answer *answer)
{
    const struct dry_trace_view *v = dry_trace_get_view(device->v->trace);
    struct pack p = {0};
    unsigned action = pack_column(&p, "ev_action", PACK_U8);
    unsigned address = pack_column(&p, "ev_addr", PACK_U64);
    unsigned size = pack_column(&p, "ev_size", PACK_F64);
    unsigned time = pack_column(&p, "ev_time", PACK_F64);
    unsigned stack = pack_column(&p, "ev_stack", PACK_U32);
    unsigned lane = pack_column(&p, "ev_lane", PACK_U32);
    unsigned alloc = pack_column(&p, "ev_alloc", PACK_U32);
    int64_t first_us = dry_timeline_time(device->timeline, 0);
    uint64_t begin = (uint64_t)page * VIEW_EVENTS_A_PAGE;
    for (uint64_t i = begin; i < begin + VIEW_EVENTS_A_PAGE; i++) {
        if (i >= device->v->event_count)
            break;
        size_t at = device->v->first_event + (size_t)i;
        pack_u8(&p, action, v->action[at]);
        pack_u64(&p, address, v->addr[at]);
        pack_f64(&p, size, (double)v->size[at]);
        pack_f64(&p, time, (double)v->time_us[at] - (double)first_us);
        pack_u32(&p, stack, v->stack[at]);
        pack_u32(&p, lane, v->lane[at]);
        pack_u32(&p, alloc, device->v->event_allocation[i]);
    }
    bool is_fine = pack_write(&p, answer);
    pack_finish(&p);
    return is_fine;
}
