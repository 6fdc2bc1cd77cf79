/* SPDX-License-Identifier: Apache-2.0 */
#include "prop/place_live.h"

#include <string.h>

void
live_init(struct live_list *list)
{
    memset(list, 0, sizeof *list);
    list->oldest = list->newest = LIVE_NONE;
}

static uint32_t
take_slot(struct live_list *list)
{
    if (list->empty_count > 0)
        return list->empty[--list->empty_count];
    return list->slot_count < LIVE_MAX ? list->slot_count++ : LIVE_NONE;
}

uint32_t
live_add(struct live_list *list, const struct live_block *block, uint64_t addr,
         uint64_t size)
{
    uint32_t slot = take_slot(list);
    if (slot == LIVE_NONE)
        return slot;
    struct live_block *b = &list->blocks[slot];
    *b = *block;
    b->previous = list->newest;
    b->next = LIVE_NONE;
    b->at = list->count;
    if (list->newest != LIVE_NONE)
        list->blocks[list->newest].next = slot;
    else
        list->oldest = slot;
    list->newest = slot;
    list->dense[list->count++] = slot;
    list->begin[slot] = addr;
    list->end[slot] = addr + size;
    list->requested_bytes += b->requested;
    list->size_bytes += size;
    if (list->size_bytes > list->size_peak)
        list->size_peak = list->size_bytes;
    if (list->count > list->count_peak)
        list->count_peak = list->count;
    return slot;
}

void
live_remove(struct live_list *list, uint32_t slot)
{
    const struct live_block *b = &list->blocks[slot];
    if (b->previous != LIVE_NONE)
        list->blocks[b->previous].next = b->next;
    else
        list->oldest = b->next;
    if (b->next != LIVE_NONE)
        list->blocks[b->next].previous = b->previous;
    else
        list->newest = b->previous;
    uint32_t last = list->dense[--list->count];
    list->dense[b->at] = last;
    list->blocks[last].at = b->at;
    list->requested_bytes -= b->requested;
    list->size_bytes -= list->end[slot] - list->begin[slot];
    list->begin[slot] = list->end[slot] = 0;
    list->empty[list->empty_count++] = slot;
}

uint32_t
live_overlap(const struct live_list *list, uint64_t addr, uint64_t size)
{
    uint64_t end = addr + size;
    for (uint32_t i = 0; i < list->slot_count; i++) {
        if (list->begin[i] < end && addr < list->end[i])
            return i;
    }
    return LIVE_NONE;
}
