/* SPDX-License-Identifier: Apache-2.0 */
/* Answers with the stacks of a file, their frames and texts, and pages of events. */
#include "view/answers.h"

#include <string.h>

#include <drystone/owners.h>

#include "view/texts.h"

#define NAME_BYTES 1024 /* the limit of <drystone/owners.h> for a name */

/*
 * Write each frame's name in two texts, as in `drystone top`: the file, with as many
 * folders as needed to identify it, and the function. Joined names would not be shared
 * between frames, and a file can have a million frames with long names.
 */
static void
put_names(struct texts *t, const struct dry_owners *owners)
{
    uint32_t count = dry_trace_get_view(t->trace)->frame_count;
    unsigned module = pack_column(t->pack, "frame_module", PACK_U32);
    unsigned function = pack_column(t->pack, "frame_func", PACK_U32);
    for (uint32_t i = 0; i < count; i++) {
        char file[NAME_BYTES], name[NAME_BYTES];
        size_t length =
            dry_owners_write_frame(owners, i, DRY_OWNER_MODULE, file, sizeof file);
        size_t name_length =
            dry_owners_write_frame(owners, i, DRY_OWNER_FUNCTION, name, sizeof name);
        bool has_file = name_length >= length && memcmp(name, file, length) == 0;
        size_t begin = has_file ? length + (name[length] == ' ') : 0;
        pack_u32(t->pack, module, texts_find(t, file, has_file ? length : 0));
        pack_u32(t->pack, function, texts_find(t, name + begin, name_length - begin));
    }
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
        pack_u32(p, name, texts_find_string(t, v->frames[i].name));
        pack_u32(p, file, texts_find_string(t, v->frames[i].file));
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
    put_frames(t, owners);
    put_names(t, owners);
    put_stacks(p, file, view->depth_max);
    dry_owners_destroy(owners);
    return true;
}

bool
answer_stacks(const struct view *view, const struct view_file *file,
              struct answer *answer)
{
    struct pack p = {0};
    struct texts t;
    bool is_fine = texts_init(&t, file->study.subject, &p) &&
                   put_all(&p, view, file, &t) && pack_write(&p, answer);
    pack_finish(&p);
    texts_finish(&t);
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
    uint64_t begin = (uint64_t)page * VIEW_EVENTS_PER_ANSWER;
    for (uint64_t i = begin; i < begin + VIEW_EVENTS_PER_ANSWER; i++) {
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
