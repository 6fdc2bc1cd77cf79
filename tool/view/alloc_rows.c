/* SPDX-License-Identifier: Apache-2.0 */
/* The table of allocations in a pack; see answers.h. */
#include "view/answers.h"

enum {
    ID,
    ADDRESS,
    SIZE,
    REQUESTED,
    BEGIN,
    FREED,
    END,
    LANE,
    STACK,
    FLAGS,
    CATEGORY,
    COLUMN_COUNT
};

static const struct {
    const char *name;
    enum pack_type type;
} columns[COLUMN_COUNT] = {
    [ID] = {"alloc_id", PACK_U32},
    [ADDRESS] = {"alloc_addr", PACK_U64},
    [SIZE] = {"alloc_size", PACK_F64},
    [REQUESTED] = {"alloc_req", PACK_F64},
    [BEGIN] = {"alloc_begin", PACK_U32},
    [FREED] = {"alloc_freed", PACK_U32},
    [END] = {"alloc_end", PACK_U32},
    [LANE] = {"alloc_lane", PACK_U32},
    [STACK] = {"alloc_stack", PACK_U32},
    [FLAGS] = {"alloc_flags", PACK_U32},
    [CATEGORY] = {"alloc_category", PACK_U8},
};

void
alloc_rows_begin(struct alloc_rows *rows, struct pack *pack, struct view_device *device)
{
    *rows = (struct alloc_rows){.pack = pack, .device = device, .first = pack->count};
    for (unsigned i = 0; i < COLUMN_COUNT; i++)
        pack_column(pack, columns[i].name, columns[i].type);
}

static void
put_row(struct alloc_rows *rows, uint32_t number)
{
    const struct dry_allocation *a = &rows->device->v->allocations[number];
    struct pack *p = rows->pack;
    unsigned at = rows->first;
    pack_u32(p, at + ID, number);
    pack_u64(p, at + ADDRESS, a->address);
    pack_f64(p, at + SIZE, (double)a->size);
    pack_f64(p, at + REQUESTED, (double)a->requested);
    pack_u32(p, at + BEGIN, a->begin);
    pack_u32(p, at + FREED, a->freed);
    pack_u32(p, at + END, a->end);
    pack_u32(p, at + LANE, a->lane);
    pack_u32(p, at + STACK, a->stack);
    pack_u32(p, at + FLAGS, a->flags);
    pack_u8(p, at + CATEGORY,
            dry_categories_get(rows->device->categories)[number].category);
}

uint32_t
alloc_rows_find(struct alloc_rows *rows, uint32_t number)
{
    uint32_t *row = &rows->device->row_of[number];
    if (*row == DRY_NONE) {
        *row = rows->count++;
        put_row(rows, number);
    }
    return *row;
}

void
alloc_rows_end(struct alloc_rows *rows)
{
    const struct pack_column *ids = &rows->pack->columns[rows->first + ID];
    const uint32_t *numbers = (const uint32_t *)(const void *)ids->bytes;
    size_t count = pack_length(rows->pack, rows->first + ID);
    if (rows->pack->has_failed) { /* the column of IDs is incomplete: reset all rows */
        for (uint32_t i = 0; i < rows->device->v->allocation_count; i++)
            rows->device->row_of[i] = DRY_NONE;
        return;
    }
    for (size_t i = 0; i < count; i++)
        rows->device->row_of[numbers[i]] = DRY_NONE;
}
