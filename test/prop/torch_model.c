/* SPDX-License-Identifier: Apache-2.0 */
#include "prop/torch_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)
#define NONE UINT32_MAX
#define DEFAULT_POOL UINT32_MAX /* of a block: not a private one */

struct use {
    uint64_t stream;
    bool in_scope; /* recorded while a scope was open, where that counts as a capture */
};

struct block {
    bool exists;
    uint64_t addr, size, requested, stream;
    uint32_t pool; /* index in pools, or DEFAULT_POOL */
    uint32_t segment;
    bool is_large, is_expandable, mapped, allocated;
    bool taken; /* found for a request and not yet handed out: in no free set */
    struct use uses[MODEL_USES];
    uint32_t use_count;
    uint32_t event_count;
    uint64_t deferred; /* freed while a scope counted as a capture: its turn; else 0 */
    uint64_t gc_base;
    uint64_t made; /* how many blocks were made before it */
};

struct pool {
    struct dryi_pool_id id;
    uint32_t users;
    bool exists;
    uint64_t made; /* counts from 1 */
};

struct queued { /* an event recorded for a block */
    bool exists;
    uint32_t stream;  /* index in streams */
    uint64_t ordinal; /* in that stream's order */
    uint32_t block;
};

struct stream {
    uint64_t id, recorded, completed;
    uint64_t busy_since; /* its turn among streams with pending frees; 0: none */
};

struct torch_model {
    struct torch_model_options o;
    struct block blocks[MODEL_BLOCKS];
    uint32_t block_top; /* no block lies at or above it */
    uint64_t made_count;
    uint32_t segment_bases; /* segments made so far */
    uint64_t segment_base[MODEL_BLOCKS];
    struct pool pools[MODEL_POOLS];
    uint32_t pool_count;
    uint64_t pools_made;
    uint32_t scopes[MODEL_POOLS];
    uint32_t scope_count;
    /* searches of a pool since the start: default small, default large, then private ones
     */
    uint64_t searches[2 + 2 * MODEL_POOLS];
    struct queued queue[MODEL_EVENTS]; /* in order of recording */
    uint32_t queue_count;
    struct stream streams[MODEL_STREAMS];
    uint32_t stream_count;
    uint64_t deferrals, busy_turns;
    bool has_limit;
    uint64_t limit;
    uint64_t used; /* of the device */
    uint64_t fail_after[MODEL_CALLS];
    struct dry_stats stats;
    struct dryi_place_event events[MODEL_EVENTS];
    size_t event_count;
};

/* A request on its way through the ladder. */
struct request {
    uint64_t size, alloc_size, stream;
    uint32_t pool;
    bool is_large, is_expandable;
    bool rejected;
    uint32_t found;
};

static _Noreturn void
give_up(const char *why)
{
    fprintf(stderr, "torch_model: %s\n", why);
    abort();
}

/* ---- statistics and events ---- */

static void
add(struct dry_stat *s, int64_t amount)
{
    s->current += amount;
    if (amount > 0) {
        s->allocated += amount;
        if (s->current > s->peak)
            s->peak = s->current;
    } else {
        s->freed -= amount;
    }
}

static void
count(struct dry_stat_array *s, bool is_large, int64_t amount)
{
    add(&s->all, amount);
    add(is_large ? &s->large_pool : &s->small_pool, amount);
}

static struct dryi_pool_id
pool_id(const struct torch_model *m, uint32_t pool)
{
    return pool == DEFAULT_POOL ? (struct dryi_pool_id){0, 0} : m->pools[pool].id;
}

static void
tell(struct torch_model *m, enum dry_action action, const struct block *b, uint64_t addr,
     uint64_t size)
{
    if (m->event_count == MODEL_EVENTS)
        give_up("too many events");
    m->events[m->event_count++] = (struct dryi_place_event){
        .action = action,
        .addr = addr,
        .size = size,
        .stream = b->stream,
        .pool = pool_id(m, b->pool),
        .segment = b->segment,
        .offset = b->segment == NONE ? 0 : addr - m->segment_base[b->segment],
    };
}

/* ---- blocks ---- */

/* Like another, but for when it was made. */
static uint32_t
new_block(struct torch_model *m, const struct block *like)
{
    for (uint32_t i = 0; i < MODEL_BLOCKS; i++) {
        if (!m->blocks[i].exists) {
            m->blocks[i] = *like;
            m->blocks[i].exists = true;
            m->blocks[i].made = m->made_count++;
            if (i == m->block_top)
                m->block_top++;
            return i;
        }
    }
    give_up("too many blocks");
}

static uint32_t
prev_of(const struct torch_model *m, uint32_t b)
{
    for (uint32_t i = 0; i < m->block_top; i++) {
        const struct block *x = &m->blocks[i];
        if (x->exists && x->segment == m->blocks[b].segment &&
            x->addr + x->size == m->blocks[b].addr)
            return i;
    }
    return NONE;
}

static uint32_t
next_of(const struct torch_model *m, uint32_t b)
{
    for (uint32_t i = 0; i < m->block_top; i++) {
        const struct block *x = &m->blocks[i];
        if (x->exists && x->segment == m->blocks[b].segment &&
            x->addr == m->blocks[b].addr + m->blocks[b].size)
            return i;
    }
    return NONE;
}

static bool
is_split(const struct torch_model *m, uint32_t b)
{
    return prev_of(m, b) != NONE || next_of(m, b) != NONE;
}

static bool
is_idle(const struct block *b) /* nobody uses it, nobody may still be using it */
{
    return !b->allocated && b->event_count == 0 && b->use_count == 0;
}

static bool
is_free(const struct block *b)
{
    return b->exists && is_idle(b) && b->mapped && !b->taken;
}

static uint64_t *
searches_of(struct torch_model *m, uint32_t pool, bool is_large)
{
    return &m->searches[(pool == DEFAULT_POOL ? 0 : 2 + 2 * pool) + is_large];
}

static void
note_insertion(struct torch_model *m, struct block *b)
{
    b->taken = false;
    b->gc_base = *searches_of(m, b->pool, b->is_large);
}

static bool
is_before(const struct torch_model *m, const struct block *a, const struct block *b)
{
    if (a->stream != b->stream)
        return a->stream < b->stream;
    if (a->size != b->size)
        return a->size < b->size;
    if (m->o.rules->order_by_block)
        return a->made < b->made;
    if (m->o.rules->order_by_counter && a->segment != b->segment)
        return a->segment < b->segment;
    return a->addr < b->addr;
}

/* The free set of a pool, in order. */
static size_t
free_set(const struct torch_model *m, uint32_t pool, bool is_large, uint32_t *set)
{
    size_t n = 0;
    for (uint32_t i = 0; i < m->block_top; i++) {
        const struct block *b = &m->blocks[i];
        if (!is_free(b) || b->pool != pool || b->is_large != is_large)
            continue;
        size_t at = n++;
        for (; at > 0 && is_before(m, b, &m->blocks[set[at - 1]]); at--)
            set[at] = set[at - 1];
        set[at] = i;
    }
    return n;
}

/* The first of the set at or after (stream, size). */
static size_t
lower_bound(const struct torch_model *m, const uint32_t *set, size_t n, uint64_t stream,
            uint64_t size)
{
    size_t i = 0;
    while (i < n) {
        const struct block *b = &m->blocks[set[i]];
        if (b->stream > stream || (b->stream == stream && b->size >= size))
            break;
        i++;
    }
    return i;
}

/* Bytes of `other` swallowed by b. */
static uint64_t
merge(struct torch_model *m, uint32_t b, uint32_t other)
{
    if (other == NONE)
        return 0;
    struct block *dst = &m->blocks[b], *src = &m->blocks[other];
    if (!is_idle(src) || src->mapped != dst->mapped)
        return 0;
    if (src->addr < dst->addr)
        dst->addr = src->addr;
    dst->size += src->size;
    src->exists = false;
    return src->size;
}

static void
complete_free(struct torch_model *m, uint32_t i)
{
    struct block *b = &m->blocks[i];
    tell(m, DRY_ACTION_FREE_COMPLETED, b, b->addr, b->requested);
    uint64_t size = b->size;
    int64_t blocks = 0, bytes = 0;
    uint32_t neighbours[2] = {prev_of(m, i), next_of(m, i)};
    for (int k = 0; k < 2; k++) {
        uint64_t swallowed = merge(m, i, neighbours[k]);
        blocks -= swallowed > 0;
        bytes -= (int64_t)swallowed;
    }
    note_insertion(m, b);
    if (is_split(m, i)) {
        blocks++;
        bytes += (int64_t)b->size;
    }
    if (!b->is_expandable) {
        count(&m->stats.inactive_split, b->is_large, blocks);
        count(&m->stats.inactive_split_bytes, b->is_large, bytes);
    }
    count(&m->stats.active, b->is_large, -1);
    count(&m->stats.active_bytes, b->is_large, -(int64_t)size);
    count(&m->stats.requested_bytes, b->is_large, -(int64_t)b->requested);
}

/* ---- the device ---- */

static bool
is_told_to_fail(struct torch_model *m, enum model_call call)
{
    if (m->fail_after[call] == UINT64_MAX)
        return false;
    return m->fail_after[call]-- == 0;
}

static uint64_t
in_steps(uint64_t bytes, uint64_t step)
{
    return (bytes + step - 1) / step * step;
}

static bool
take_bytes(struct torch_model *m, enum model_call call, uint64_t bytes)
{
    if (is_told_to_fail(m, call) || bytes > m->o.capacity - m->used)
        return false;
    m->used += bytes;
    return true;
}

static uint32_t
stream_index(struct torch_model *m, uint64_t id)
{
    for (uint32_t i = 0; i < m->stream_count; i++) {
        if (m->streams[i].id == id)
            return i;
    }
    if (m->stream_count == MODEL_STREAMS)
        give_up("too many streams");
    m->streams[m->stream_count] = (struct stream){.id = id};
    return m->stream_count++;
}

void
torch_model_complete_stream(struct torch_model *m, uint64_t stream)
{
    struct stream *s = &m->streams[stream_index(m, stream)];
    s->completed = s->recorded;
}

/* ---- events on blocks ---- */

/* All uses of a block become events, or none does. */
static enum dry_status
insert_events(struct torch_model *m, uint32_t i)
{
    struct block *b = &m->blocks[i];
    for (uint32_t u = 0; u < b->use_count; u++) {
        if (is_told_to_fail(m, MODEL_EVENT))
            return DRY_ERR_SYSTEM;
    }
    for (uint32_t u = b->use_count; u-- > 0;) {
        if (m->queue_count == MODEL_EVENTS)
            give_up("too many events pending");
        uint32_t stream = stream_index(m, b->uses[u].stream);
        if (!m->streams[stream].busy_since)
            m->streams[stream].busy_since = ++m->busy_turns;
        m->queue[m->queue_count++] = (struct queued){
            .exists = true,
            .stream = stream,
            .ordinal = ++m->streams[stream].recorded,
            .block = i,
        };
    }
    b->event_count = b->use_count;
    b->use_count = 0;
    return DRY_OK;
}

static void
finish_event(struct torch_model *m, uint32_t q)
{
    struct block *b = &m->blocks[m->queue[q].block];
    m->queue[q].exists = false;
    if (--b->event_count == 0)
        complete_free(m, m->queue[q].block);
}

static void
forget_finished_events(struct torch_model *m)
{
    uint32_t kept = 0;
    for (uint32_t q = 0; q < m->queue_count; q++) {
        if (m->queue[q].exists)
            m->queue[kept++] = m->queue[q];
    }
    m->queue_count = kept;
}

static uint32_t
next_deferred(const struct torch_model *m)
{
    uint32_t first = NONE;
    for (uint32_t i = 0; i < m->block_top; i++) {
        const struct block *b = &m->blocks[i];
        if (b->exists && b->deferred &&
            (first == NONE || b->deferred < m->blocks[first].deferred))
            first = i;
    }
    return first;
}

/* What was freed during what counted as a capture: its uses in there are taken as done.
 */
static void
insert_deferred(struct torch_model *m)
{
    for (uint32_t i; (i = next_deferred(m)) != NONE;) {
        struct block *b = &m->blocks[i];
        b->deferred = 0;
        uint32_t kept = 0;
        for (uint32_t u = 0; u < b->use_count; u++) {
            if (!b->uses[u].in_scope)
                b->uses[kept++] = b->uses[u];
        }
        b->use_count = kept;
        if (insert_events(m, i) != DRY_OK)
            give_up("an event of a deferred block fails: the test should not do that");
        if (b->event_count == 0)
            complete_free(m, i);
    }
}

static bool
in_capture(const struct torch_model *m)
{
    return m->o.rules->scope_is_capture && m->scope_count > 0;
}

/*
 * The streams with pending frees, in the order in which they are looked at: PyTorch's is
 * that of a hash table; here as in place/torch/torch.c the one that got busy last comes first.
 */
static uint32_t
busy_streams(const struct torch_model *m, uint32_t *streams)
{
    uint32_t n = 0;
    for (uint32_t s = 0; s < m->stream_count; s++) {
        uint64_t turn = m->streams[s].busy_since;
        if (!turn)
            continue;
        uint32_t at = n++;
        for (; at > 0 && m->streams[streams[at - 1]].busy_since < turn; at--)
            streams[at] = streams[at - 1];
        streams[at] = s;
    }
    return n;
}

static bool
has_queue(const struct torch_model *m, uint32_t stream)
{
    for (uint32_t q = 0; q < m->queue_count; q++) {
        if (m->queue[q].exists && m->queue[q].stream == stream)
            return true;
    }
    return false;
}

/* Each stream's queue in turn, from its front as long as events are done. */
static void
process_events(struct torch_model *m)
{
    insert_deferred(m);
    uint32_t order[MODEL_STREAMS], n = busy_streams(m, order);
    for (uint32_t i = 0; i < n; i++) {
        struct stream *s = &m->streams[order[i]];
        for (uint32_t q = 0; q < m->queue_count; q++) {
            if (!m->queue[q].exists || m->queue[q].stream != order[i])
                continue;
            if (m->queue[q].ordinal > s->completed)
                break;
            finish_event(m, q);
        }
        if (!has_queue(m, order[i]))
            s->busy_since = 0;
    }
    forget_finished_events(m);
}

/* Wait for all, or for those of one private pool. */
static void
synchronize(struct torch_model *m, uint32_t pool)
{
    m->stats.num_sync_all_streams++;
    insert_deferred(m);
    uint32_t order[MODEL_STREAMS], n = busy_streams(m, order);
    for (uint32_t i = 0; i < n; i++) {
        struct stream *s = &m->streams[order[i]];
        for (uint32_t q = 0; q < m->queue_count; q++) {
            const struct queued *e = &m->queue[q];
            if (!e->exists || e->stream != order[i] ||
                (pool != DEFAULT_POOL && m->blocks[e->block].pool != pool))
                continue;
            if (s->completed < e->ordinal)
                s->completed = e->ordinal;
            finish_event(m, q);
        }
        if (pool == DEFAULT_POOL)
            s->busy_since = 0;
    }
    forget_finished_events(m);
}

/* ---- sizes ---- */

static uint64_t
floor_power(uint64_t x)
{
    uint64_t p = 1;
    while (p <= x / 2)
        p *= 2;
    return p;
}

static uint64_t
round_size(const struct torch_model *m, uint64_t size)
{
    if (size < 512)
        return 512;
    size_t index = 0;
    while (index < 15 && size >> (21 + index))
        index++;
    uint64_t divisions = m->o.conf.roundup_power2_divisions[index];
    if (divisions <= 1 || size <= 512 * divisions)
        return in_steps(size, 512);
    uint64_t power = floor_power(size);
    if (power == size)
        return size;
    uint64_t step = power / divisions;
    return step == 0 ? 2 * power : in_steps(size, step);
}

static uint64_t
segment_size(const struct torch_model *m, uint64_t size)
{
    if (size <= MIB)
        return 2 * MIB;
    if (size < 10 * MIB)
        return m->o.conf.large_segment_size;
    return in_steps(size, 2 * MIB);
}

static uint64_t
slack(const struct torch_model *m)
{
    return m->o.rules->slack_is_option ? m->o.conf.max_non_split_rounding_size : 20 * MIB;
}

/* ---- finding ---- */

static uint64_t
expandable_size(const struct torch_model *m, uint32_t b)
{
    uint32_t next = next_of(m, b);
    bool grows = next != NONE && !m->blocks[next].mapped;
    return m->blocks[b].size + (grows ? m->blocks[next].size : 0);
}

static bool
gc_is_on(const struct torch_model *m)
{
    return m->has_limit && m->o.conf.garbage_collection_threshold > 0;
}

static bool
find_free(struct torch_model *m, struct request *r)
{
    if (gc_is_on(m))
        ++*searches_of(m, r->pool, r->is_large);
    static uint32_t set[MODEL_BLOCKS];
    size_t n = free_set(m, r->pool, r->is_large, set);
    size_t i = lower_bound(m, set, n, r->stream, r->size);
    if (i == n || m->blocks[set[i]].stream != r->stream)
        return false;
    if (r->is_expandable) {
        while (m->blocks[set[i]].is_expandable && i + 1 < n &&
               m->blocks[set[i + 1]].stream == r->stream &&
               expandable_size(m, set[i + 1]) < expandable_size(m, set[i]))
            i++;
    } else {
        while (i < n && m->blocks[set[i]].is_expandable &&
               m->blocks[set[i]].stream == r->stream)
            i++;
        if (i == n || m->blocks[set[i]].stream != r->stream)
            return false;
    }
    struct block *b = &m->blocks[set[i]];
    uint64_t max = m->o.conf.max_split_size;
    if (r->size < max && b->size >= max)
        return false;
    if (r->size >= max && b->size >= r->size + slack(m))
        return false;
    b->taken = true;
    r->found = set[i];
    return true;
}

/* ---- giving back ---- */

static void
release_segment(struct torch_model *m, uint32_t i)
{
    struct block *b = &m->blocks[i];
    m->stats.num_device_free++;
    tell(m, DRY_ACTION_SEGMENT_FREE, b, b->addr, b->size);
    m->used -= in_steps(b->size, m->o.granularity);
    count(&m->stats.segment, b->is_large, -1);
    count(&m->stats.reserved_bytes, b->is_large, -(int64_t)b->size);
    if (b->size >= m->o.conf.max_split_size)
        add(&m->stats.oversize_segments, -1);
    b->exists = false;
}

static uint64_t
reserved(const struct torch_model *m)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < m->block_top; i++) {
        if (m->blocks[i].exists && m->blocks[i].mapped)
            sum += m->blocks[i].size;
    }
    return sum;
}

static uint64_t
page_size(const struct torch_model *m, bool is_large)
{
    return is_large ? m->o.conf.large_segment_size : 2 * MIB;
}

/* A free remainder of b's segment. */
static void
add_free(struct torch_model *m, const struct block *b, uint64_t addr, uint64_t size)
{
    if (size == 0)
        return;
    uint32_t i = new_block(m, b);
    m->blocks[i].addr = addr;
    m->blocks[i].size = size;
    m->blocks[i].requested = 0;
    note_insertion(m, &m->blocks[i]);
}

static void
unmap(struct torch_model *m, uint32_t i)
{
    struct block *b = &m->blocks[i];
    uint64_t page = page_size(m, b->is_large), base = m->segment_base[b->segment];
    uint64_t begin = base + in_steps(b->addr - base, page);
    uint64_t end = base + (b->addr + b->size - base) / page * page;
    if (begin >= end)
        return;
    torch_model_complete_stream(m, b->stream); /* the driver waits for it */
    struct block whole = *b;
    add_free(m, &whole, whole.addr, begin - whole.addr);
    add_free(m, &whole, end, whole.addr + whole.size - end);
    b->addr = begin;
    b->size = end - begin;
    b->mapped = false;
    m->used -= end - begin;
    (void)merge(m, i, prev_of(m, i));
    (void)merge(m, i, next_of(m, i));
    count(&m->stats.reserved_bytes, b->is_large, -(int64_t)(end - begin));
    m->stats.num_device_free++;
    tell(m, DRY_ACTION_SEGMENT_UNMAP, b, begin, end - begin);
    if (!is_split(m, i))
        b->exists = false; /* nothing is left: the reservation goes too */
}

static void
release_pool_blocks(struct torch_model *m, uint32_t pool, bool is_large)
{
    static uint32_t set[MODEL_BLOCKS];
    size_t n = free_set(m, pool, is_large, set);
    for (size_t k = 0; k < n; k++) {
        if (!m->blocks[set[k]].is_expandable && !is_split(m, set[k]))
            release_segment(m, set[k]);
    }
    for (size_t k = 0; k < n; k++) {
        if (m->blocks[set[k]].exists && m->blocks[set[k]].is_expandable)
            unmap(m, set[k]);
    }
}

static bool
is_default(struct dryi_pool_id id)
{
    return id.a == 0 && id.b == 0;
}

static bool
is_same(struct dryi_pool_id x, struct dryi_pool_id y)
{
    return x.a == y.a && x.b == y.b;
}

/* Addresses that could not be mapped do not keep a pool alive. */
static bool
has_memory(const struct torch_model *m, uint32_t pool)
{
    for (uint32_t i = 0; i < m->block_top; i++) {
        const struct block *b = &m->blocks[i];
        if (b->exists && b->mapped && b->pool == pool)
            return true;
    }
    return false;
}

/* The pool made first of those made after `made`, or NONE. */
static uint32_t
next_pool(const struct torch_model *m, uint64_t made)
{
    uint32_t best = NONE;
    for (uint32_t p = 0; p < m->pool_count; p++) {
        if (m->pools[p].exists && m->pools[p].made > made &&
            (best == NONE || m->pools[p].made < m->pools[best].made))
            best = p;
    }
    return best;
}

static void
release_cached(struct torch_model *m, struct dryi_pool_id id)
{
    if (is_default(id) && !in_capture(m)) {
        synchronize(m, DEFAULT_POOL);
        release_pool_blocks(m, DEFAULT_POOL, true);
        release_pool_blocks(m, DEFAULT_POOL, false);
    }
    for (uint32_t p = next_pool(m, 0); p != NONE; p = next_pool(m, m->pools[p].made)) {
        if (m->pools[p].users > 0)
            continue;
        if (!is_default(id)) {
            if (!is_same(m->pools[p].id, id))
                continue;
            synchronize(m, p);
        }
        release_pool_blocks(m, p, false);
        release_pool_blocks(m, p, true);
        if (!has_memory(m, p))
            m->pools[p].exists = false;
    }
}

static void
collect_garbage(struct torch_model *m)
{
    uint64_t threshold =
        (uint64_t)(m->o.conf.garbage_collection_threshold * (double)m->limit);
    uint64_t total = reserved(m);
    if (total <= threshold)
        return;
    static uint32_t set[MODEL_BLOCKS];
    size_t n = free_set(m, DEFAULT_POOL, true, set);
    uint64_t now = *searches_of(m, DEFAULT_POOL, true);
    uint64_t age = 0, blocks = 0, reclaimed = 0;
    for (size_t k = 0; k < n; k++) {
        if (!is_split(m, set[k])) {
            age += now - m->blocks[set[k]].gc_base;
            blocks++;
        }
    }
    for (bool freed = true; freed && blocks > 0 && reclaimed < total - threshold;) {
        double oldest = (double)age / (double)blocks;
        freed = false;
        for (size_t k = 0; k < n; k++) {
            struct block *b = &m->blocks[set[k]];
            if (!b->exists || b->is_expandable || is_split(m, set[k]) ||
                (double)(now - b->gc_base) < oldest)
                continue;
            freed = true;
            reclaimed += b->size;
            age -= now - b->gc_base;
            blocks--;
            release_segment(m, set[k]);
        }
    }
}

/* The smallest oversize block that suffices, else the largest ones until they do. */
static bool
release_available(struct torch_model *m, const struct request *r)
{
    uint64_t max = m->o.conf.max_split_size;
    if (max == UINT64_MAX)
        return false;
    uint64_t wanted = r->size < max ? max : r->size;
    static uint32_t set[MODEL_BLOCKS];
    size_t n = free_set(m, r->pool, r->is_large, set);
    size_t i = lower_bound(m, set, n, r->stream, wanted);
    if (i < n && m->blocks[set[i]].stream == r->stream &&
        !m->blocks[set[i]].is_expandable) {
        release_segment(m, set[i]);
        return true;
    }
    uint64_t released = 0;
    while (released < wanted && i > 0) {
        const struct block *b = &m->blocks[set[--i]];
        if (b->size < max || b->stream != r->stream)
            break;
        if (b->is_expandable)
            continue;
        released += b->size;
        release_segment(m, set[i]);
    }
    return released >= wanted;
}

/* ---- taking ---- */

static uint32_t
new_segment(struct torch_model *m, const struct request *r, uint64_t size)
{
    if (m->segment_bases == MODEL_BLOCKS)
        give_up("too many segments");
    m->segment_base[m->segment_bases] =
        m->o.take_range(m->o.take_self, r->is_expandable, size);
    struct block whole = {
        .addr = m->segment_base[m->segment_bases],
        .size = size,
        .stream = r->stream,
        .pool = r->pool,
        .segment = m->segment_bases++,
        .is_large = r->is_large,
        .is_expandable = r->is_expandable,
        .mapped = !r->is_expandable,
        .taken = !r->is_expandable,
    };
    uint32_t i = new_block(m, &whole);
    return i;
}

static uint64_t
reserve_size(const struct torch_model *m, bool is_large)
{
    const struct dryi_torch_conf *c = &m->o.conf;
    uint64_t full = m->o.total + m->o.total / 8, bytes = full;
    if (c->expandable_reserve_bytes)
        bytes = c->expandable_reserve_bytes;
    else if (c->expandable_reserve_fraction > 0) {
        double exact = c->expandable_reserve_fraction * (double)m->o.total;
        bytes = exact >= 0x1p64 ? UINT64_MAX : (uint64_t)exact;
    }
    return in_steps(bytes < full ? bytes : full, page_size(m, is_large));
}

static bool
has_room(const struct torch_model *m, uint32_t b, uint64_t size)
{
    uint64_t bytes = 0;
    for (; b != NONE && is_idle(&m->blocks[b]) && bytes < size; b = next_of(m, b))
        bytes += m->blocks[b].size;
    return bytes >= size;
}

/* The lowest place with room in a reservation of this pool and stream; else a new one. */
static uint32_t
find_expandable(struct torch_model *m, const struct request *r)
{
    uint64_t after = 0;
    for (;;) {
        uint32_t lowest = NONE;
        for (uint32_t i = 0; i < m->block_top; i++) {
            const struct block *b = &m->blocks[i];
            if (b->exists && !b->mapped && b->pool == r->pool &&
                b->is_large == r->is_large && b->stream == r->stream &&
                b->addr >= after && (lowest == NONE || b->addr < m->blocks[lowest].addr))
                lowest = i;
        }
        if (lowest == NONE)
            break;
        after = m->blocks[lowest].addr + 1;
        uint32_t before = prev_of(m, lowest);
        if (before != NONE && is_idle(&m->blocks[before]))
            lowest = before;
        if (has_room(m, lowest, r->size))
            return lowest;
    }
    uint64_t size = reserve_size(m, r->is_large);
    return size < r->size ? NONE : new_segment(m, r, size);
}

static bool
map(struct torch_model *m, uint32_t i, uint64_t wanted)
{
    struct block *b = &m->blocks[i];
    uint64_t size = in_steps(wanted, page_size(m, b->is_large));
    if (!take_bytes(m, MODEL_MAP, size))
        return false;
    uint64_t addr = b->addr;
    if (size < b->size) {
        uint32_t rest = new_block(m, b);
        m->blocks[rest].addr += size;
        m->blocks[rest].size -= size;
        b->size = size;
    }
    b->mapped = true;
    (void)merge(m, i, prev_of(m, i));
    (void)merge(m, i, next_of(m, i));
    note_insertion(m, b);
    count(&m->stats.reserved_bytes, b->is_large, (int64_t)size);
    m->stats.num_device_alloc++;
    tell(m, DRY_ACTION_SEGMENT_MAP, b, addr, size);
    return true;
}

static uint64_t
least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool
take_expandable(struct torch_model *m, struct request *r)
{
    uint32_t b = find_expandable(m, r);
    if (b == NONE)
        return false;
    if (!m->blocks[b].mapped && !map(m, b, least(m->blocks[b].size, r->size)))
        return false;
    while (m->blocks[b].size < r->size) {
        uint32_t next = next_of(m, b);
        if (!map(m, next, least(r->size - m->blocks[b].size, m->blocks[next].size)))
            return false;
        b = next;
    }
    m->blocks[b].taken = true;
    r->found = b;
    return true;
}

static bool
take_segment(struct torch_model *m, struct request *r)
{
    uint64_t size = r->alloc_size;
    if (!take_bytes(m, MODEL_ALLOC, in_steps(size, m->o.granularity)))
        return false;
    r->found = new_segment(m, r, size);
    count(&m->stats.segment, r->is_large, 1);
    count(&m->stats.reserved_bytes, r->is_large, (int64_t)size);
    if (size >= m->o.conf.max_split_size)
        add(&m->stats.oversize_segments, 1);
    m->stats.num_device_alloc++;
    const struct block *b = &m->blocks[r->found];
    tell(m, DRY_ACTION_SEGMENT_ALLOC, b, b->addr, b->size);
    return true;
}

static bool
take_new(struct torch_model *m, struct request *r, bool is_retry)
{
    m->stats.num_alloc_retries += is_retry;
    uint64_t after = reserved(m) + r->alloc_size;
    if (m->has_limit && after > m->limit)
        return false;
    if (m->o.conf.throw_on_cudamalloc_oom &&
        after > (uint64_t)(m->o.conf.per_process_memory_fraction * (double)m->o.total)) {
        m->stats.num_oom_rejections++;
        r->rejected = true;
        return false;
    }
    return r->is_expandable ? take_expandable(m, r) : take_segment(m, r);
}

static bool
climb_ladder(struct torch_model *m, struct request *r)
{
    if (find_free(m, r))
        return true;
    if (gc_is_on(m))
        collect_garbage(m);
    if (take_new(m, r, false))
        return true;
    if (r->rejected)
        return false;
    if (release_available(m, r) && take_new(m, r, false))
        return true;
    if (in_capture(m))
        return false;
    release_cached(m, (struct dryi_pool_id){0, 0});
    return take_new(m, r, true);
}

static bool
should_split(const struct torch_model *m, const struct request *r)
{
    uint64_t rest = m->blocks[r->found].size - r->size;
    if (!r->is_large || r->is_expandable)
        return rest >= 512;
    return r->size < m->o.conf.max_split_size && rest > MIB;
}

/* The front is handed out; the rest stays the block it was, back in the free set. */
static uint32_t
split(struct torch_model *m, const struct request *r)
{
    struct block *rest = &m->blocks[r->found];
    bool was_split = is_split(m, r->found);
    uint32_t i = new_block(m, rest);
    m->blocks[i].size = r->size;
    rest->addr += r->size;
    rest->size -= r->size;
    note_insertion(m, rest);
    if (rest->is_expandable)
        return i;
    if (was_split) {
        count(&m->stats.inactive_split_bytes, r->is_large, -(int64_t)r->size);
    } else {
        count(&m->stats.inactive_split, r->is_large, 1);
        count(&m->stats.inactive_split_bytes, r->is_large, (int64_t)rest->size);
    }
    return i;
}

static uint32_t
hand_out(struct torch_model *m, const struct request *r, uint64_t requested)
{
    uint32_t i = r->found;
    if (should_split(m, r)) {
        i = split(m, r);
    } else if (!m->blocks[i].is_expandable && is_split(m, i)) {
        count(&m->stats.inactive_split, r->is_large, -1);
        count(&m->stats.inactive_split_bytes, r->is_large, -(int64_t)m->blocks[i].size);
    }
    struct block *b = &m->blocks[i];
    b->allocated = true;
    b->taken = false;
    b->requested = requested;
    tell(m, DRY_ACTION_ALLOC, b, b->addr, requested);
    count(&m->stats.allocation, b->is_large, 1);
    count(&m->stats.allocated_bytes, b->is_large, (int64_t)b->size);
    count(&m->stats.active, b->is_large, 1);
    count(&m->stats.active_bytes, b->is_large, (int64_t)b->size);
    count(&m->stats.requested_bytes, b->is_large, (int64_t)requested);
    if (b->size >= m->o.conf.max_split_size)
        add(&m->stats.oversize_allocations, 1);
    return i;
}

static enum dry_status
run_out(struct torch_model *m, const struct request *r)
{
    if (r->rejected)
        return DRY_ERR_NO_SPACE;
    struct block asking = {.stream = r->stream, .pool = r->pool, .segment = NONE};
    tell(m, DRY_ACTION_OOM, &asking, m->o.capacity - m->used, r->size);
    m->stats.num_ooms++;
    return DRY_ERR_NO_SPACE;
}

/* ---- calls ---- */

enum dry_status
torch_model_alloc(struct torch_model *m, uint64_t size, uint64_t stream, uint32_t *block)
{
    m->event_count = 0;
    *block = NONE;
    if (size >= UINT64_C(1) << 60)
        return DRY_ERR_ARGUMENT;
    if (size == 0)
        return DRY_OK;
    if (!in_capture(m))
        process_events(m);
    struct request r = {.size = round_size(m, size), .stream = stream, .found = NONE};
    r.pool = m->scope_count == 0             ? DEFAULT_POOL
             : m->o.rules->scopes_last_first ? m->scopes[m->scope_count - 1]
                                             : m->scopes[0];
    r.is_large = r.size > MIB;
    r.alloc_size = segment_size(m, r.size);
    r.is_expandable = m->o.conf.expandable_segments;
    if (!climb_ladder(m, &r))
        return run_out(m, &r);
    *block = hand_out(m, &r, size);
    return DRY_OK;
}

enum dry_status
torch_model_free(struct torch_model *m, uint32_t block)
{
    m->event_count = 0;
    struct block *b = &m->blocks[block];
    bool deferred = b->use_count > 0 && in_capture(m);
    if (b->use_count > 0 && !deferred) {
        enum dry_status status = insert_events(m, block);
        if (status != DRY_OK)
            return status;
    }
    b->allocated = false;
    count(&m->stats.allocation, b->is_large, -1);
    count(&m->stats.allocated_bytes, b->is_large, -(int64_t)b->size);
    tell(m, DRY_ACTION_FREE_REQUESTED, b, b->addr, b->requested);
    if (b->size >= m->o.conf.max_split_size)
        add(&m->stats.oversize_allocations, -1);
    if (deferred)
        b->deferred = ++m->deferrals;
    else if (b->event_count == 0)
        complete_free(m, block);
    return DRY_OK;
}

enum dry_status
torch_model_record_stream(struct torch_model *m, uint32_t block, uint64_t stream)
{
    m->event_count = 0;
    struct block *b = &m->blocks[block];
    if (stream == b->stream)
        return DRY_OK;
    for (uint32_t u = 0; u < b->use_count; u++) {
        if (b->uses[u].stream == stream) {
            b->uses[u].in_scope |= in_capture(m);
            return DRY_OK;
        }
    }
    if (b->use_count == MODEL_USES)
        give_up("too many streams on a block");
    (void)stream_index(m, stream);
    b->uses[b->use_count++] = (struct use){.stream = stream, .in_scope = in_capture(m)};
    return DRY_OK;
}

void
torch_model_empty_cache(struct torch_model *m, struct dryi_pool_id pool)
{
    m->event_count = 0;
    release_cached(m, pool);
}

static uint32_t
find_pool(const struct torch_model *m, struct dryi_pool_id id)
{
    for (uint32_t p = 0; p < m->pool_count; p++) {
        if (m->pools[p].exists && is_same(m->pools[p].id, id))
            return p;
    }
    return NONE;
}

static uint32_t
find_scope(const struct torch_model *m, uint32_t pool)
{
    for (uint32_t s = 0; s < m->scope_count; s++) {
        if (m->scopes[s] == pool)
            return s;
    }
    return NONE;
}

/*
 * PyTorch goes through pools without users in the order of a hash table; here as in
 * place/torch/torch.c in the order in which they were made. Slots that nothing refers to are
 * reused.
 */
static uint32_t
new_pool(struct torch_model *m)
{
    for (uint32_t p = 0; p < MODEL_POOLS; p++) {
        bool is_referred_to = m->pools[p].exists;
        for (uint32_t i = 0; i < m->block_top; i++)
            is_referred_to |= m->blocks[i].exists && m->blocks[i].pool == p;
        if (is_referred_to)
            continue;
        if (p == m->pool_count)
            m->pool_count++;
        *searches_of(m, p, false) = *searches_of(m, p, true) = 0;
        return p;
    }
    give_up("too many pools");
}

enum dry_status
torch_model_begin_pool(struct torch_model *m, struct dryi_pool_id id)
{
    m->event_count = 0;
    uint32_t p = find_pool(m, id);
    if (p != NONE && (find_scope(m, p) != NONE || m->pools[p].users == 0))
        return DRY_ERR_ARGUMENT;
    if (p == NONE) {
        p = new_pool(m);
        m->pools[p] = (struct pool){.id = id, .exists = true, .made = ++m->pools_made};
    }
    m->pools[p].users++;
    m->scopes[m->scope_count++] = p;
    return DRY_OK;
}

enum dry_status
torch_model_end_pool(struct torch_model *m, struct dryi_pool_id id)
{
    m->event_count = 0;
    uint32_t p = find_pool(m, id);
    uint32_t s = p == NONE ? NONE : find_scope(m, p);
    if (s == NONE)
        return DRY_ERR_ARGUMENT;
    m->scope_count--;
    for (; s < m->scope_count; s++)
        m->scopes[s] = m->scopes[s + 1];
    return DRY_OK;
}

enum dry_status
torch_model_release_pool(struct torch_model *m, struct dryi_pool_id id)
{
    m->event_count = 0;
    uint32_t p = find_pool(m, id);
    if (p == NONE || m->pools[p].users == 0)
        return DRY_ERR_ARGUMENT;
    m->pools[p].users--;
    return DRY_OK;
}

enum dry_status
torch_model_set_fraction(struct torch_model *m, double fraction)
{
    m->event_count = 0;
    if (!(fraction >= 0.0 && fraction <= 1.0))
        return DRY_ERR_ARGUMENT;
    m->has_limit = fraction < 1.0;
    m->limit = (uint64_t)round(fraction * (double)m->o.total);
    return DRY_OK;
}

void
torch_model_fail_at(struct torch_model *m, enum model_call call, uint64_t n)
{
    m->fail_after[call] = n;
}

struct torch_model *
torch_model_create(const struct torch_model_options *options)
{
    struct torch_model *m = calloc(1, sizeof *m);
    if (!m)
        give_up("no memory");
    m->o = *options;
    for (int call = 0; call < MODEL_CALLS; call++)
        m->fail_after[call] = UINT64_MAX;
    m->stats.max_split_size = (int64_t)m->o.conf.max_split_size;
    (void)torch_model_set_fraction(m, m->o.conf.per_process_memory_fraction);
    return m;
}

void
torch_model_destroy(struct torch_model *m)
{
    free(m);
}

uint64_t
torch_model_address(const struct torch_model *m, uint32_t block)
{
    return m->blocks[block].addr;
}

const struct dry_stats *
torch_model_stats(const struct torch_model *m)
{
    return &m->stats;
}

const struct dryi_place_event *
torch_model_events(const struct torch_model *m, size_t *event_count)
{
    *event_count = m->event_count;
    return m->events;
}

size_t
torch_model_layout(const struct torch_model *m, struct dryi_block_info *blocks,
                   size_t capacity)
{
    size_t n = 0;
    for (uint32_t i = 0; i < m->block_top; i++) {
        const struct block *b = &m->blocks[i];
        if (!b->exists || !b->mapped)
            continue;
        if (n == capacity)
            give_up("the layout does not fit");
        size_t at = n++;
        for (; at > 0 && blocks[at - 1].addr > b->addr; at--)
            blocks[at] = blocks[at - 1];
        blocks[at] = (struct dryi_block_info){
            .addr = b->addr,
            .size = b->size,
            .requested = b->requested,
            .stream = b->stream,
            .pool = pool_id(m, b->pool),
            .segment = b->segment,
            .offset = b->addr - m->segment_base[b->segment],
            .allocated = b->allocated,
            .pending = !b->allocated && !is_idle(b),
            .mapped = true,
            .is_large = b->is_large,
        };
    }
    return n;
}
