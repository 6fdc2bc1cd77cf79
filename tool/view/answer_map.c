/* SPDX-License-Identifier: Apache-2.0 */
/* The answer `map`: the memory layout at a moment, and the owners. */
#include <jansson.h>

#include "view/answers.h"

#include <drystone/owners.h>
#include <drystone/state.h>

#include "base/json_out.h"

#define OWNERS_MAX 500 /* rows; further owners are summed in one row */

enum { SEGMENT_LARGE = 1, SEGMENT_EXPANDABLE = 2, SEGMENT_PRIVATE = 4 };

static void
put_segments(struct pack *p, const struct dry_state *s)
{
    unsigned address = pack_column(p, "seg_addr", PACK_U64);
    unsigned size = pack_column(p, "seg_size", PACK_F64);
    unsigned lane = pack_column(p, "seg_lane", PACK_U32);
    unsigned flags = pack_column(p, "seg_flags", PACK_U8);
    for (size_t i = 0; i < s->segment_count; i++) {
        const struct dry_state_segment *g = &s->segments[i];
        pack_u64(p, address, g->address);
        pack_f64(p, size, (double)g->size);
        pack_u32(p, lane, g->lane);
        pack_u8(p, flags,
                (uint8_t)((g->is_large ? SEGMENT_LARGE : 0) |
                          (g->is_expandable ? SEGMENT_EXPANDABLE : 0) |
                          (g->is_private ? SEGMENT_PRIVATE : 0)));
    }
}

static void
put_pinners(struct pack *p, const struct dry_state *s)
{
    unsigned segment = pack_column(p, "pin_seg", PACK_U32);
    unsigned used = pack_column(p, "pin_used", PACK_F64);
    unsigned bytes = pack_column(p, "pin_bytes", PACK_F64);
    for (size_t i = 0; i < s->pinner_count; i++) {
        pack_u32(p, segment, (uint32_t)s->pinners[i].segment);
        pack_f64(p, used, (double)s->pinners[i].used);
        pack_f64(p, bytes, (double)s->pinners[i].pinned);
    }
}

static void
put_blocks(struct pack *p, struct view_device *device, const struct dry_state *s)
{
    unsigned segment = pack_column(p, "block_seg", PACK_U32);
    unsigned offset = pack_column(p, "block_offset", PACK_F64);
    unsigned size = pack_column(p, "block_size", PACK_F64);
    unsigned state = pack_column(p, "block_state", PACK_U8);
    unsigned alloc = pack_column(p, "block_alloc", PACK_U32);
    struct alloc_rows rows;
    alloc_rows_begin(&rows, p, device);
    for (size_t i = 0; i < s->segment_count; i++) {
        const struct dry_state_segment *g = &s->segments[i];
        for (size_t k = 0; k < g->block_count; k++) {
            const struct dry_state_block *b = &s->blocks[g->first_block + k];
            bool is_known = b->allocation != DRY_NONE;
            pack_u32(p, segment, (uint32_t)i);
            pack_f64(p, offset, (double)(b->address - g->address));
            pack_f64(p, size, (double)b->size);
            pack_u8(p, state, (uint8_t)b->state);
            pack_u32(p, alloc,
                     is_known ? alloc_rows_find(&rows, b->allocation) : DRY_NONE);
        }
    }
    alloc_rows_end(&rows);
}

bool
answer_map(struct view_device *device, uint32_t moment, struct answer *answer)
{
    struct dry_state *state = NULL;
    if (dry_state_create(device->timeline, moment, &state, NULL) != DRY_OK)
        return false;
    struct pack p = {0};
    put_segments(&p, state);
    put_pinners(&p, state);
    put_blocks(&p, device, state);
    bool is_fine = pack_write(&p, answer);
    pack_finish(&p);
    dry_state_destroy(state);
    return is_fine;
}

static json_t *
number_or_null(uint32_t number)
{
    return number == DRY_NONE ? json_null() : json_integer((json_int_t)number);
}

static json_t *
make_owner(const struct dry_owner *o)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:o}", "line",
                     json_out_text(o->name, o->name_length), "operation",
                     json_out_text(o->what, o->what_length), "bytes",
                     json_out_number(o->bytes), "requested_bytes",
                     json_out_number(o->requested), "count", (json_int_t)o->count,
                     "largest_bytes", json_out_number(o->largest), "stack",
                     number_or_null(o->stack), "frame", number_or_null(o->frame));
}

bool
answer_owners(const struct view_device *device, uint32_t moment, struct answer *answer)
{
    struct dry_owners_options options;
    struct dry_owners *owners = NULL;
    dry_owners_options_init(&options);
    options.moment = moment;
    if (dry_owners_create(device->timeline, &options, &owners, NULL) != DRY_OK)
        return false;
    size_t count;
    const struct dry_owner *rows = dry_owners_get(owners, &count);
    json_t *list = json_array();
    uint64_t rest = 0;
    for (size_t i = 0; i < count; i++) {
        if (i < OWNERS_MAX)
            json_array_append_new(list, make_owner(&rows[i]));
        else
            rest += rows[i].bytes;
    }
    json_t *root =
        json_pack("{s:i, s:o, s:o, s:I, s:o}", "moment", (int)moment, "total_bytes",
                  json_out_number(dry_owners_total(owners)), "owners", list, "others",
                  (json_int_t)(count > OWNERS_MAX ? count - OWNERS_MAX : 0),
                  "others_bytes", json_out_number(rest));
    dry_owners_destroy(owners);
    return answer_json(root, answer);
}
