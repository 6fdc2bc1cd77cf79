/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Ordering between streams: the epoch of another stream up to which a stream is ordered after it.
 * If many streams wait for one stream in turn, each inherits the orders of those before it.
 * Therefore each stream has its own list of orders, which ends with the stream (paged_stream.c).
 */

#include "place/paged/record/paged_order.h"

#include "base/assert.h"
#include "base/memory.h"

static uint64_t
order_key(uint32_t stream, uint32_t on)
{
    return (uint64_t)stream << 32 | on;
}

uint64_t
dryi_paged_known_epoch(const struct dryi_paged *p, uint32_t stream, uint32_t on)
{
    DRYI_ASSERT_SLOW(stream < p->stream_count && on < p->stream_count);
    if (p->order_ids.count == 0)
        return 0;
    const uint32_t *order = dryi_map_find(&p->order_ids, order_key(stream, on));
    return order ? p->orders[*order].epoch : 0;
}

/* Make the record of an order; NONE: out of memory. */
static uint32_t
make_order(struct dryi_paged *p, uint32_t stream, uint32_t on)
{
    uint32_t order = p->dead_order;
    if (order == NONE) {
        order = p->order_count;
        if (!dryi_memory_grow(&p->memory, &p->orders, &p->order_capacity,
                              (size_t)order + 1, sizeof *p->orders))
            return NONE;
    }
    if (!dryi_map_put(&p->order_ids, order_key(stream, on), order))
        return NONE;
    if (order == p->dead_order)
        p->dead_order = p->orders[order].next;
    else
        p->order_count++;
    p->orders[order] = (struct order){.on = on, .next = p->streams[stream].orders};
    p->streams[stream].orders = order;
    return order;
}

bool
dryi_paged_learn(struct dryi_paged *p, uint32_t stream, uint32_t on, uint64_t epoch)
{
    DRYI_ASSERT_SLOW(stream != on);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    const uint32_t *known = dryi_map_find(&p->order_ids, order_key(stream, on));
    uint32_t order = known ? *known : make_order(p, stream, on);
    if (order != NONE && p->orders[order].epoch < epoch)
        p->orders[order].epoch = epoch;
    return order != NONE;
}

void
dryi_paged_orders_forget(struct dryi_paged *p, uint32_t stream)
{
    DRYI_ASSERT_SLOW(stream < p->stream_count);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    uint32_t *first = &p->streams[stream].orders;
    while (*first != NONE) {
        uint32_t order = *first;
        *first = p->orders[order].next;
        dryi_map_take(&p->order_ids, order_key(stream, p->orders[order].on));
        p->orders[order].next = p->dead_order;
        p->dead_order = order;
    }
}

void
dryi_paged_tell_forecast(struct dryi_paged *p, uint32_t from, uint32_t to, uint64_t epoch)
{
    if (p->forecast)
        dryi_forecast_passed(p->forecast, from, to, epoch);
}
