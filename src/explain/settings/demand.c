/* SPDX-License-Identifier: Apache-2.0 */

/* Blocks are rounded to 512 bytes, PyTorch's smallest unit. demand.h has the idea and the cost. */
#include "explain/settings/demand.h"

#include <string.h>

#include "base/bits.h"

#define BLOCK_BYTES UINT64_C(512)
/* Number of size classes around which split sizes are tried. */
#define TOP_CLASSES 3u
#define POWERS 5u
#define POWER_MAX (UINT64_C(32) << (POWERS - 1))
#define INTERVALS 16u

/* --- measuring ---------------------------------------------------------------------------- */

static uint64_t
block_bytes(uint64_t size)
{
    return size < DEVICE_BYTES_MAX ? dryi_round_up(size, BLOCK_BYTES) : size;
}

static size_t
get_class(uint64_t size)
{
    unsigned log = dryi_log2_floor(size);
    unsigned shift = log > DRYI_SIZE_CLASSES_LOG2 ? log - DRYI_SIZE_CLASSES_LOG2 : 0;
    size_t part = (size_t)(size >> shift) & ((1u << DRYI_SIZE_CLASSES_LOG2) - 1);
    return ((size_t)log << DRYI_SIZE_CLASSES_LOG2) + part;
}

static void
count_request(struct dryi_demand *d, uint64_t size)
{
    if (size == 0)
        return;
    struct dryi_size_class *c = &d->classes[get_class(size)];
    c->min = c->count == 0 || size < c->min ? size : c->min;
    c->max = size > c->max ? size : c->max;
    c->count++;
    c->bytes = dryi_add_saturating(c->bytes, size);
}

/* Bytes alive. If the sum overflows, the floor saturates and counting stops. */
struct live {
    uint64_t bytes;
    bool is_lost;
};

static void
take(struct dryi_demand *d, struct live *live, uint64_t size, uint32_t event)
{
    if (live->is_lost)
        return;
    live->is_lost = __builtin_add_overflow(live->bytes, size, &live->bytes);
    if (live->is_lost || live->bytes > d->floor_bytes) {
        d->floor_bytes = live->is_lost ? UINT64_MAX : live->bytes;
        d->floor_event = event;
    }
}

static void
give_back(struct live *live, uint64_t size)
{
    live->bytes -= live->is_lost || size > live->bytes ? 0 : size;
}

/* Count the carried-over allocations as a run on an empty device does: all are placed, then those
   with a pending free are freed. */
static void
take_carried(struct dryi_demand *d, struct live *live, const struct dryi_program *p)
{
    for (size_t i = 0; i < p->carried_count; i++)
        take(d, live, block_bytes(p->sizes[i]), NO_EVENT);
    for (size_t i = 0; i < p->carried_count; i++) {
        if (p->carried[i].pending_stream != NO_STREAM)
            give_back(live, block_bytes(p->sizes[i]));
    }
}

void
dryi_demand_measure(struct dryi_demand *d, const struct dryi_program *p)
{
    memset(d, 0, sizeof *d);
    d->floor_event = NO_EVENT;
    struct live live = {0};
    for (size_t i = 0; i < p->request_count; i++)
        count_request(d, block_bytes(p->sizes[i]));
    take_carried(d, &live, p);
    for (size_t op = 0; op < p->op_count; op++) {
        enum op_kind kind = p->kinds[op];
        if (kind != OP_ALLOC && kind != OP_OOM && kind != OP_FREE)
            continue;
        uint64_t size = block_bytes(p->sizes[p->args[op]]);
        if (kind == OP_OOM && d->oom_request_bytes == 0) {
            d->oom_live_bytes = live.is_lost ? UINT64_MAX : live.bytes;
            d->oom_request_bytes = size;
        }
        if (kind == OP_FREE)
            give_back(&live, size);
        else
            take(d, &live, size, p->events[op]);
    }
}

/* --- split sizes -------------------------------------------------------------------------- */

struct sizes {
    uint32_t mib[2 * TOP_CLASSES + POWERS];
    size_t count;
    uint64_t least, most;
};

static void
offer(struct sizes *s, uint64_t mib)
{
    if (mib < s->least || mib > s->most)
        return;
    for (size_t i = 0; i < s->count; i++) {
        if (s->mib[i] == mib)
            return;
    }
    s->mib[s->count++] = (uint32_t)mib;
}

/* Return the class with the most bytes after `before`, in the order of bytes;
   SIZE_MAX if there is none. */
static size_t
next_top_class(const struct dryi_demand *d, uint64_t size_min, size_t before)
{
    const struct dryi_size_class *all = d->classes;
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < DRYI_SIZE_CLASS_COUNT; i++) {
        if (all[i].count == 0 || all[i].max < size_min)
            continue;
        if (before != SIZE_MAX && (all[i].bytes > all[before].bytes ||
                                   (all[i].bytes == all[before].bytes && i <= before)))
            continue;
        if (best == SIZE_MAX || all[i].bytes > all[best].bytes)
            best = i;
    }
    return best;
}

static uint64_t
largest_size(const struct dryi_demand *d)
{
    for (size_t i = DRYI_SIZE_CLASS_COUNT; i-- > 0;) {
        if (d->classes[i].count > 0)
            return d->classes[i].max;
    }
    return 0;
}

size_t
dryi_demand_split_sizes(const struct dryi_demand *d, uint32_t least, uint32_t *mib,
                        size_t capacity)
{
    uint64_t largest = largest_size(d);
    struct sizes s = {.least = least};
    if (largest < (uint64_t)least * DRYI_MIB)
        return 0;
    /* A split size above the largest request only affects merged blocks. */
    s.most = largest / DRYI_MIB + 1;
    s.most = s.most < UINT32_MAX ? s.most : UINT32_MAX;
    size_t top = SIZE_MAX;
    for (unsigned i = 0; i < TOP_CLASSES; i++) {
        top = next_top_class(d, (uint64_t)least * DRYI_MIB, top);
        if (top == SIZE_MAX)
            break;
        offer(&s, d->classes[top].max / DRYI_MIB + 1);
        offer(&s, d->classes[top].min / DRYI_MIB);
    }
    for (uint64_t power = POWER_MAX; power >= 32; power /= 2)
        offer(&s, power);
    size_t count = s.count < capacity ? s.count : capacity;
    for (size_t i = 0; i < count; i++)
        mib[i] = s.mib[i];
    return count;
}

/* --- rounding ----------------------------------------------------------------------------- */

/* Return the index in the table of roundup_power2_divisions: sizes below 2 MiB, then one index per
   octave, then all sizes from 32 GiB on. */
static unsigned
get_interval(size_t size_class)
{
    size_t log = size_class >> DRYI_SIZE_CLASSES_LOG2;
    size_t index = log > 20 ? log - 20 : 0;
    return index < INTERVALS ? (unsigned)index : INTERVALS - 1;
}

bool
dryi_demand_roundup(const struct dryi_demand *d, uint8_t divisions, unsigned variety_min,
                    uint8_t by_interval[16])
{
    unsigned variety[INTERVALS] = {0}, used_count = 0, chosen_count = 0;
    for (size_t i = 0; i < DRYI_SIZE_CLASS_COUNT; i++)
        variety[get_interval(i)] += d->classes[i].count > 0;
    for (unsigned i = 0; i < INTERVALS; i++) {
        bool is_chosen = i > 0 && variety[i] >= variety_min;
        by_interval[i] = is_chosen ? divisions : 0;
        used_count += variety[i] > 0;
        chosen_count += is_chosen;
    }
    return chosen_count > 0 && chosen_count < used_count;
}
