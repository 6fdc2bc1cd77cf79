/* SPDX-License-Identifier: Apache-2.0 */
#include "prop/torch_ops.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/sim.h>

#include "place/torch/torch.h"
#include "prop/torch_model.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

#define STREAM_HIGH UINT64_C(0x7f0011223344)
#define STREAM_OTHER 11

#define SLOTS 64  /* allocations alive at once */
#define STEPS 600 /* calls of one program */
#define POOLS 3
#define RANGES 1024
#define LAYOUT_MAX 1024

/* Ranges lie this far apart, so that any order of them can be had. */
#define RANGE_STEP (64 * GIB)
#define RANGE_FIRST (UINT64_C(1) << 45)

struct range {
    uint64_t addr, size;
    bool is_reservation;
};

/* The simulated device, watched: it notes ranges for the model and fails when told. */
struct watched {
    struct dry_device sim;
    struct range ranges[RANGES]; /* taken by the place, not yet by the model */
    size_t range_count;
    uint64_t fail_after[MODEL_CALLS];
    uint32_t order; /* of addresses: 0 upwards, 1 downwards, 2 mixed */
    uint32_t range_total;
    bool has_waited; /* so streams may have moved on without our doing */
};

struct slot {
    dryi_block real;
    uint32_t model;
    uint64_t stream;
};

struct pool_slot {
    struct dryi_pool_id id;
    uint32_t users;
    bool begun;
};

struct layout {
    struct dryi_block_info blocks[LAYOUT_MAX];
    size_t count;
    uint64_t end; /* of the last segment */
};

struct ops {
    struct dry_sim *sim;
    struct watched device;
    struct dryi_torch *place;
    struct torch_model *model; /* NULL: the place alone */
    const struct dryi_torch_rules *rules;
    struct slot slots[SLOTS];
    size_t slot_count;
    struct pool_slot pools[POOLS];
    uint64_t pool_total;
    struct dryi_place_event events[MODEL_EVENTS];
    size_t event_count;
    struct layout layout;
    size_t step;
    bool is_traced;
    bool may_lack_memory;
    bool progress_is_told;
    bool order_is_open; /* completions came in another order: some sums differ */
};

static _Noreturn __attribute__((format(printf, 2, 3))) void
differ(const struct ops *ops, const char *format, ...)
{
    fprintf(stderr, "torch_ops: step %zu: ", ops->step);
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}

/* ---- the watched device ---- */

static bool
is_told_to_fail(struct watched *w, enum model_call call)
{
    if (w->fail_after[call] == UINT64_MAX)
        return false;
    return w->fail_after[call]-- == 0;
}

static uint32_t
reverse_bits(uint32_t x, unsigned bits)
{
    uint32_t y = 0;
    for (unsigned i = 0; i < bits; i++)
        y |= (x >> i & 1u) << (bits - 1 - i);
    return y;
}

static uint64_t
choose_address(void *self, enum dry_sim_call call, uint64_t size)
{
    (void)call;
    struct watched *w = self;
    uint32_t i = w->range_total++ % 4096;
    uint32_t at = w->order == 0 ? i : w->order == 1 ? 4095 - i : reverse_bits(i, 12);
    return size <= RANGE_STEP ? RANGE_FIRST + at * RANGE_STEP : 0;
}

static void
note_range(struct watched *w, uint64_t addr, uint64_t size, bool is_reservation)
{
    if (w->range_count == RANGES) {
        fputs("torch_ops: one call takes too many ranges\n", stderr);
        abort();
    }
    w->ranges[w->range_count++] = (struct range){addr, size, is_reservation};
}

static enum dry_status
watch_alloc(void *self, uint64_t size, uint64_t *address)
{
    struct watched *w = self;
    if (is_told_to_fail(w, MODEL_ALLOC))
        return DRY_ERR_NO_SPACE;
    enum dry_status status = w->sim.ops->alloc(w->sim.self, size, address);
    if (status == DRY_OK)
        note_range(w, *address, size, false);
    return status;
}

static void
watch_free(void *self, uint64_t address, uint64_t size)
{
    struct watched *w = self;
    w->sim.ops->free(w->sim.self, address, size);
}

static enum dry_status
watch_reserve(void *self, uint64_t size, uint64_t *address)
{
    struct watched *w = self;
    enum dry_status status = w->sim.ops->reserve(w->sim.self, size, address);
    if (status == DRY_OK)
        note_range(w, *address, size, true);
    return status;
}

static void
watch_unreserve(void *self, uint64_t address, uint64_t size)
{
    struct watched *w = self;
    /* Taken and given back in one call: nobody else has seen it. */
    if (w->range_count > 0 && w->ranges[w->range_count - 1].addr == address)
        w->range_count--;
    w->sim.ops->unreserve(w->sim.self, address, size);
}

static enum dry_status
watch_map(void *self, uint64_t address, uint64_t size, uint64_t page)
{
    struct watched *w = self;
    if (is_told_to_fail(w, MODEL_MAP))
        return DRY_ERR_NO_SPACE;
    return w->sim.ops->map(w->sim.self, address, size, page);
}

static void
watch_unmap(void *self, uint64_t address, uint64_t size, uint64_t page)
{
    struct watched *w = self;
    w->sim.ops->unmap(w->sim.self, address, size, page);
}

static void
watch_get_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
    struct watched *w = self;
    w->sim.ops->get_info(w->sim.self, free_bytes, total_bytes);
}

static enum dry_status
watch_event_record(void *self, uint64_t stream, uint64_t *event)
{
    struct watched *w = self;
    if (is_told_to_fail(w, MODEL_EVENT))
        return DRY_ERR_SYSTEM;
    return w->sim.ops->event_record(w->sim.self, stream, event);
}

static bool
watch_event_query(void *self, uint64_t event)
{
    struct watched *w = self;
    return w->sim.ops->event_query(w->sim.self, event);
}

/* Which stream it moves on is not known here: perhaps any. */
static enum dry_status
watch_event_wait(void *self, uint64_t event)
{
    struct watched *w = self;
    w->has_waited = true;
    return w->sim.ops->event_wait(w->sim.self, event);
}

static void
watch_event_destroy(void *self, uint64_t event)
{
    struct watched *w = self;
    w->sim.ops->event_destroy(w->sim.self, event);
}

static enum dry_status
watch_stream_wait(void *self, uint64_t stream)
{
    struct watched *w = self;
    w->has_waited = true;
    return w->sim.ops->stream_wait(w->sim.self, stream);
}

static const struct dry_device_ops watched_ops = {
    .struct_size = sizeof(struct dry_device_ops),
    .alloc = watch_alloc,
    .free = watch_free,
    .reserve = watch_reserve,
    .unreserve = watch_unreserve,
    .map = watch_map,
    .unmap = watch_unmap,
    .get_info = watch_get_info,
    .event_record = watch_event_record,
    .event_query = watch_event_query,
    .event_wait = watch_event_wait,
    .event_destroy = watch_event_destroy,
    .stream_wait = watch_stream_wait,
};

/* The model asks for the range that the place took. */
static uint64_t
hand_range(void *self, bool is_reservation, uint64_t size)
{
    struct ops *ops = self;
    struct watched *w = &ops->device;
    if (w->range_count == 0)
        differ(ops, "the model takes %s of %" PRIu64 " bytes, the place took none",
               is_reservation ? "a reservation" : "a segment", size);
    struct range range = w->ranges[0];
    w->range_count--;
    memmove(w->ranges, w->ranges + 1, w->range_count * sizeof *w->ranges);
    if (range.is_reservation != is_reservation || range.size != size)
        differ(ops, "the place takes %s of %" PRIu64 " bytes, the model %s of %" PRIu64,
               range.is_reservation ? "a reservation" : "a segment", range.size,
               is_reservation ? "a reservation" : "a segment", size);
    return range.addr;
}

/* ---- comparing ---- */

static void
observe(void *self, const struct dryi_place_event *event)
{
    struct ops *ops = self;
    if (ops->event_count == MODEL_EVENTS)
        differ(ops, "too many events");
    ops->events[ops->event_count++] = *event;
}

static bool
is_same_event(const struct dryi_place_event *x, const struct dryi_place_event *y)
{
    return x->action == y->action && x->addr == y->addr && x->size == y->size &&
           x->stream == y->stream && x->pool.a == y->pool.a && x->pool.b == y->pool.b &&
           x->segment == y->segment && x->offset == y->offset;
}

static void
print_event(const char *who, const struct dryi_place_event *e)
{
    fprintf(stderr,
            "%s %s addr %#" PRIx64 " size %" PRIu64 " stream %" PRIu64 " pool %" PRIu64
            ",%" PRIu64 "\n",
            who, dry_action_name(e->action), e->addr, e->size, e->stream, e->pool.a,
            e->pool.b);
}

/*
 * Frees completed at one moment by several streams: PyTorch's order is that of a hash
 * table, the model's that of place/torch/torch.c when it asks all streams. Where it is told of
 * progress, the order is that of the telling; then runs of them are compared by address.
 */
static void
sort_completions(struct dryi_place_event *events, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct dryi_place_event e = events[i];
        size_t at = i;
        for (; at > 0 && e.action == DRY_ACTION_FREE_COMPLETED &&
               events[at - 1].action == DRY_ACTION_FREE_COMPLETED &&
               events[at - 1].addr > e.addr;
             at--)
            events[at] = events[at - 1];
        events[at] = e;
    }
}

static size_t
count_completions(const struct ops *ops)
{
    size_t n = 0;
    for (size_t i = 0; i < ops->event_count; i++)
        n += ops->events[i].action == DRY_ACTION_FREE_COMPLETED;
    return n;
}

static void
compare_events(struct ops *ops)
{
    static struct dryi_place_event events[MODEL_EVENTS];
    size_t count;
    const struct dryi_place_event *model = torch_model_events(ops->model, &count);
    memcpy(events, model, count * sizeof *events);
    if (ops->progress_is_told && count_completions(ops) > 1) {
        ops->order_is_open = true;
        sort_completions(events, count);
        sort_completions(ops->events, ops->event_count);
    }
    size_t i = 0;
    while (i < count && i < ops->event_count &&
           is_same_event(&events[i], &ops->events[i]))
        i++;
    if (i == count && i == ops->event_count)
        return;
    for (size_t k = 0; k < ops->event_count; k++)
        print_event(k == i ? "* place" : "  place", &ops->events[k]);
    for (size_t k = 0; k < count; k++)
        print_event(k == i ? "* model" : "  model", &events[k]);
    differ(ops, "event %zu differs (place %zu events, model %zu)", i, ops->event_count,
           count);
}

struct stats_list {
    int64_t values[DRY_STATS_KEY_COUNT];
    size_t count;
    const struct ops *ops; /* of the second walk: the first one's owner */
};

static void
list_stat(void *self, const char *key, int64_t value)
{
    (void)key;
    struct stats_list *list = self;
    list->values[list->count++] = value;
}

struct stats_check {
    const struct stats_list *model;
    size_t at;
    const struct ops *ops;
};

static void
check_stat(void *self, const char *key, int64_t value)
{
    struct stats_check *check = self;
    int64_t wanted = check->model->values[check->at++];
    bool is_open = check->ops->order_is_open && strncmp(key, "inactive_split", 14) == 0 &&
                   !strstr(key, "current");
    if (value != wanted && !is_open)
        differ(check->ops, "%s is %" PRId64 " in the place, %" PRId64 " in the model",
               key, value, wanted);
}

static void
compare_stats(const struct ops *ops)
{
    struct dry_stats real;
    dryi_torch_get_stats(ops->place, &real);
    if (memcmp(&real, torch_model_stats(ops->model), sizeof real) == 0)
        return;
    struct stats_list list = {.ops = ops};
    dry_stats_visit(torch_model_stats(ops->model), list_stat, &list);
    struct stats_check check = {.model = &list, .ops = ops};
    dry_stats_visit(&real, check_stat, &check);
}

static enum dry_status
collect_segment(void *self, const struct dryi_segment_info *segment,
                const struct dryi_block_info *blocks, size_t count)
{
    struct ops *ops = self;
    struct layout *l = &ops->layout;
    if (segment->addr < l->end)
        differ(ops, "the walk is not by address");
    uint64_t at = segment->addr;
    for (size_t i = 0; i < count; i++) {
        if (l->count == LAYOUT_MAX)
            differ(ops, "the layout does not fit");
        if (blocks[i].addr != at || blocks[i].segment != segment->segment ||
            blocks[i].stream != segment->stream ||
            blocks[i].is_large != segment->is_large)
            differ(ops, "block %zu does not belong in segment %#" PRIx64, i,
                   segment->addr);
        at += blocks[i].size;
        l->blocks[l->count++] = blocks[i];
    }
    if (at != segment->addr + segment->size)
        differ(ops, "blocks do not fill segment %#" PRIx64, segment->addr);
    l->end = at;
    return DRY_OK;
}

static bool
is_same_block(const struct dryi_block_info *x, const struct dryi_block_info *y)
{
    bool is_used = x->allocated || x->pending;
    return x->addr == y->addr && x->size == y->size && x->stream == y->stream &&
           (!is_used || x->requested == y->requested) && x->pool.a == y->pool.a &&
           x->pool.b == y->pool.b && x->segment == y->segment && x->offset == y->offset &&
           x->allocated == y->allocated && x->pending == y->pending &&
           x->mapped == y->mapped && x->is_large == y->is_large;
}

static void
print_block(const char *who, const struct dryi_block_info *b)
{
    fprintf(stderr,
            "%s segment %u offset %" PRIu64 " size %" PRIu64 " requested %" PRIu64
            " stream %" PRIu64 " pool %" PRIu64 ",%" PRIu64 "%s%s%s\n",
            who, b->segment, b->offset, b->size, b->requested, b->stream, b->pool.a,
            b->pool.b, b->allocated ? " allocated" : "", b->pending ? " pending" : "",
            b->is_large ? " large" : " small");
}

static void
compare_layout(struct ops *ops)
{
    static struct dryi_block_info model[LAYOUT_MAX];
    size_t count = torch_model_layout(ops->model, model, LAYOUT_MAX);
    struct layout *l = &ops->layout;
    l->count = 0;
    l->end = 0;
    enum dry_status status = dryi_torch_walk(ops->place, collect_segment, ops);
    if (status == DRY_ERR_MEMORY && ops->may_lack_memory)
        return;
    if (status != DRY_OK)
        differ(ops, "the walk fails: %s", dry_status_name(status));
    for (size_t i = 0; i < count && i < l->count; i++) {
        if (!is_same_block(&model[i], &l->blocks[i])) {
            print_block("place", &l->blocks[i]);
            print_block("model", &model[i]);
            differ(ops, "block %zu of the layout differs", i);
        }
    }
    if (count != l->count)
        differ(ops, "the place has %zu mapped blocks, the model %zu", l->count, count);
}

/* After each call: `status` of the place, `wanted` of the model. */
static void
compare(struct ops *ops, enum dry_status status, enum dry_status wanted)
{
    struct dry_error err = {.text = ""};
    enum dry_status checked = dryi_torch_check(ops->place, &err);
    if (checked != DRY_OK && !(checked == DRY_ERR_MEMORY && ops->may_lack_memory))
        differ(ops, "check: %s", err.text);
    if (!ops->model)
        return;
    if (status != wanted)
        differ(ops, "the place says %s, the model %s", dry_status_name(status),
               dry_status_name(wanted));
    compare_events(ops);
    if (ops->device.range_count > 0)
        differ(ops, "the place took a range of %" PRIu64 " bytes, the model did not",
               ops->device.ranges[0].size);
    compare_stats(ops);
    compare_layout(ops);
}

static void
begin_call(struct ops *ops, const char *name, uint64_t x, uint64_t y)
{
    ops->event_count = 0;
    if (!ops->model)
        ops->device.range_count = 0;
    if (ops->is_traced)
        fprintf(stderr, "%zu: %s %" PRIu64 " %" PRIu64 "\n", ops->step, name, x, y);
}

/* This call may fail for want of memory; then the place must be as it was. */
static void
require_unchanged(const struct ops *ops, enum dry_status status,
                  const struct dry_stats *before)
{
    if (status != DRY_ERR_MEMORY)
        return;
    struct dry_stats after;
    dryi_torch_get_stats(ops->place, &after);
    if (!ops->may_lack_memory)
        differ(ops, "out of memory without a reason");
    if (memcmp(before, &after, sizeof after) != 0 || ops->event_count > 0)
        differ(ops, "a call that had no memory has changed something");
}

/* ---- calls ---- */

static uint64_t
choose_size(uint8_t kind, uint8_t fine)
{
    static const uint64_t bases[] = {
        1,         512,       2 * KIB,   64 * KIB,  512 * KIB, MIB - 512, MIB,
        MIB + 512, 3 * MIB,   9 * MIB,   10 * MIB,  12 * MIB,  19 * MIB,  20 * MIB,
        21 * MIB,  31 * MIB,  32 * MIB,  33 * MIB,  40 * MIB,  60 * MIB,  64 * MIB,
        80 * MIB,  96 * MIB,  128 * MIB, 130 * MIB, 200 * MIB, 5 * MIB,   7 * KIB,
        100,       256 * KIB, 2 * MIB,   0,
    };
    if (kind == 255)
        return fine < 64 ? UINT64_C(1) << 60 : (UINT64_C(1) << 60) - fine;
    uint64_t base = bases[kind % 32];
    switch (fine % 4) {
    case 0:
        return base;
    case 1:
        return base + fine / 4;
    case 2:
        return base + (uint64_t)(fine / 4) * (base / 64 + 1);
    default:
        return base > fine ? base - fine : base;
    }
}

static uint64_t
choose_stream(uint8_t a)
{
    static const uint64_t streams[] = {0, 0, 0, 7, 7, STREAM_HIGH, 0, 7};
    return streams[a % 8];
}

/* A stream that records but never allocates is among these. */
static uint64_t
choose_other_stream(uint8_t a)
{
    return a % 16 == 9 ? STREAM_OTHER : choose_stream(a);
}

/* Whoever tells of progress must tell of what waiting has done, too. */
static void
tell_progress(struct ops *ops)
{
    static const uint64_t streams[] = {0, 7, STREAM_HIGH, STREAM_OTHER};
    if (!ops->progress_is_told || !ops->device.has_waited)
        return;
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        dryi_torch_stream_progressed(ops->place, streams[i]);
    ops->device.has_waited = false;
}

static void
call_alloc(struct ops *ops, uint64_t size, uint64_t stream)
{
    begin_call(ops, "alloc", size, stream);
    if (ops->slot_count == SLOTS)
        return;
    struct slot slot = {.real = DRYI_NO_BLOCK, .stream = stream};
    enum dry_status status = dryi_torch_alloc(ops->place, size, stream, &slot.real);
    enum dry_status wanted = DRY_OK;
    /* What it had done by then, it keeps: events looked at, cached memory given back. */
    if (status == DRY_ERR_MEMORY && !ops->may_lack_memory)
        differ(ops, "out of memory without a reason");
    if (ops->model)
        wanted = torch_model_alloc(ops->model, size, stream, &slot.model);
    compare(ops, status, wanted);
    if (status != DRY_OK || size == 0) {
        if (size == 0 && status == DRY_OK && slot.real != DRYI_NO_BLOCK)
            differ(ops, "a block for nothing");
        return;
    }
    struct dryi_block_info info;
    dryi_torch_get_block(ops->place, slot.real, &info);
    if (!info.allocated || info.requested != size || info.size < size)
        differ(ops, "the block handed out is not the one asked for");
    if (ops->model && info.addr != torch_model_address(ops->model, slot.model))
        differ(ops, "addresses differ: place %#" PRIx64 ", model %#" PRIx64, info.addr,
               torch_model_address(ops->model, slot.model));
    ops->slots[ops->slot_count++] = slot;
}

static void
call_free(struct ops *ops, uint8_t a)
{
    begin_call(ops, "free", a, 0);
    if (ops->slot_count == 0)
        return;
    struct slot *slot = &ops->slots[a % ops->slot_count];
    enum dry_status status = dryi_torch_free(ops->place, slot->real);
    enum dry_status wanted =
        ops->model ? torch_model_free(ops->model, slot->model) : status;
    compare(ops, status, wanted);
    if (status == DRY_OK)
        *slot = ops->slots[--ops->slot_count];
}

static void
call_record_stream(struct ops *ops, uint8_t a, uint8_t b)
{
    begin_call(ops, "record_stream", a, choose_other_stream(b));
    if (ops->slot_count == 0)
        return;
    struct slot *slot = &ops->slots[a % ops->slot_count];
    uint64_t stream = choose_other_stream(b);
    struct dry_stats before;
    dryi_torch_get_stats(ops->place, &before);
    enum dry_status status = dryi_torch_record_stream(ops->place, slot->real, stream);
    require_unchanged(ops, status, &before);
    enum dry_status wanted =
        ops->model ? torch_model_record_stream(ops->model, slot->model, stream) : status;
    compare(ops, status, wanted);
}

static void
call_complete(struct ops *ops, uint8_t a)
{
    uint64_t stream = choose_other_stream(a);
    begin_call(ops, "complete", stream, 0);
    dry_sim_complete_stream(ops->sim, stream);
    if (ops->progress_is_told)
        dryi_torch_stream_progressed(ops->place, stream);
    if (ops->model)
        torch_model_complete_stream(ops->model, stream);
}

static bool
any_scope(const struct ops *ops)
{
    for (size_t i = 0; i < POOLS; i++) {
        if (ops->pools[i].begun)
            return true;
    }
    return false;
}

static void
call_empty_cache(struct ops *ops, uint8_t a)
{
    struct dryi_pool_id id = {0, 0};
    if (a % 4 == 3)
        id = ops->pools[a / 4 % POOLS].id;
    /* There PyTorch stops with an internal assertion: nothing to agree on. */
    if (id.a + id.b > 0 && ops->rules->scope_is_capture && any_scope(ops))
        return;
    begin_call(ops, "empty_cache", id.a, id.b);
    enum dry_status status = dryi_torch_empty_cache(ops->place, id);
    if (ops->model)
        torch_model_empty_cache(ops->model, id);
    compare(ops, status, DRY_OK);
}

static void
call_begin(struct ops *ops, uint8_t a)
{
    struct pool_slot *pool = &ops->pools[a % POOLS];
    if (pool->users == 0) { /* PyTorch never begins a pool again that has no users left */
        uint64_t n = ++ops->pool_total;
        if (n >= MODEL_POOLS)
            return;
        pool->id = a & 64 ? (struct dryi_pool_id){n, 0} : (struct dryi_pool_id){0, n};
    }
    begin_call(ops, "begin", pool->id.a, pool->id.b);
    enum dry_status status = dryi_torch_begin_pool(ops->place, pool->id);
    enum dry_status wanted =
        ops->model ? torch_model_begin_pool(ops->model, pool->id) : status;
    compare(ops, status, wanted);
    if (status == DRY_OK) {
        pool->users++;
        pool->begun = true;
    }
}

static void
call_end(struct ops *ops, uint8_t a)
{
    struct pool_slot *pool = &ops->pools[a % POOLS];
    if (pool->id.a + pool->id.b == 0)
        return;
    begin_call(ops, "end", pool->id.a, pool->id.b);
    enum dry_status status = dryi_torch_end_pool(ops->place, pool->id);
    enum dry_status wanted =
        ops->model ? torch_model_end_pool(ops->model, pool->id) : status;
    compare(ops, status, wanted);
    if ((status == DRY_OK) != pool->begun)
        differ(ops, "end of a pool that is %sbegun: %s", pool->begun ? "" : "not ",
               dry_status_name(status));
    pool->begun = false;
}

/* The last user may leave only a pool that nobody allocates to, as in PyTorch. */
static void
call_release(struct ops *ops, uint8_t a)
{
    struct pool_slot *pool = &ops->pools[a % POOLS];
    if (pool->id.a + pool->id.b == 0 || pool->users == pool->begun)
        return;
    begin_call(ops, "release", pool->id.a, pool->id.b);
    enum dry_status status = dryi_torch_release_pool(ops->place, pool->id);
    enum dry_status wanted =
        ops->model ? torch_model_release_pool(ops->model, pool->id) : status;
    compare(ops, status, wanted);
    if (status == DRY_OK)
        pool->users--;
}

static void
call_set_fraction(struct ops *ops, uint8_t a)
{
    double fraction = a % 8 == 7 ? 1.0 : (a % 16 == 8 ? 1.5 : (double)a / 255.0);
    begin_call(ops, "set_fraction", a, 0);
    enum dry_status status = dryi_torch_set_fraction(ops->place, fraction);
    enum dry_status wanted =
        ops->model ? torch_model_set_fraction(ops->model, fraction) : status;
    compare(ops, status, wanted);
}

/* Where a scope defers events, nobody says what a failing one means: leave those alone.
 */
static void
call_fail(struct ops *ops, uint8_t a, uint8_t b)
{
    enum model_call call = (enum model_call)(a % MODEL_CALLS);
    if (call == MODEL_EVENT && ops->rules->scope_is_capture)
        return;
    begin_call(ops, "fail", call, b % 4);
    ops->device.fail_after[call] = b % 4;
    if (ops->model)
        torch_model_fail_at(ops->model, call, b % 4);
}

static void
run_step(struct ops *ops, uint8_t op, uint8_t a, uint8_t b)
{
    if (op < 110)
        call_alloc(ops, choose_size(a, b), choose_stream(op));
    else if (op < 190)
        call_free(ops, a);
    else if (op < 206)
        call_record_stream(ops, a, b);
    else if (op < 216)
        call_complete(ops, a);
    else if (op < 222)
        call_empty_cache(ops, a);
    else if (op < 228)
        call_begin(ops, a);
    else if (op < 234)
        call_end(ops, a);
    else if (op < 240)
        call_release(ops, a);
    else if (op < 244)
        call_set_fraction(ops, a);
    else if (op < 250)
        call_fail(ops, a, b);
    else
        call_complete(ops, 0);
    tell_progress(ops);
}

/* ---- the program ---- */

static const char *const conf_pieces[] = {
    "expandable_segments:True",
    "max_split_size_mb:32",
    "max_split_size_mb:128",
    "max_split_size_mb:20",
    "garbage_collection_threshold:0.5",
    "garbage_collection_threshold:0.01",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:[1:8,4:16,>:2]",
    "large_segment_size_mb:12",
    "large_segment_size_mb:64",
    "max_non_split_rounding_mb:64",
    "max_non_split_rounding_mb:-1",
    "per_process_memory_fraction:0.7",
    "throw_on_cudamalloc_oom:True",
    "expandable_segments_reserve:0.25",
    "expandable_segments_reserve:0.05G",
};
#define PIECES (sizeof conf_pieces / sizeof *conf_pieces)

static void
choose_conf(const uint8_t *header, const struct dryi_torch_rules *rules,
            struct dryi_torch_conf *conf)
{
    char text[512] = "";
    uint32_t bits = (uint32_t)(header[1] | header[2] << 8);
    for (size_t i = 0; i < PIECES; i++) {
        if (!(bits >> i & 1u))
            continue;
        if (text[0])
            strcat(text, ",");
        strcat(text, conf_pieces[i]);
    }
    dryi_torch_conf_init(conf);
    /* Some combinations are refused; the defaults are then as good as any. */
    enum dry_status status = dryi_torch_conf_parse(text, strlen(text), rules, conf, NULL);
    (void)status;
}

static enum dry_status
create(struct ops *ops, const uint8_t *header, const struct dry_memory *memory)
{
    static const uint64_t capacities[] = {32 * MIB,  100 * MIB, 256 * MIB, 300 * MIB,
                                          640 * MIB, GIB,       2 * GIB,   16 * GIB};
    size_t rules_count;
    const struct dryi_torch_rules *all = dryi_torch_rules_all(&rules_count);
    ops->rules = &all[header[0] % rules_count];
    struct dry_sim_options sim_options;
    dry_sim_options_init(&sim_options);
    sim_options.memory = memory;
    sim_options.capacity_bytes = capacities[header[3] % 8];
    sim_options.choose_address = choose_address;
    sim_options.choose_self = &ops->device;
    ops->device.order = header[4] % 3;
    for (int call = 0; call < MODEL_CALLS; call++)
        ops->device.fail_after[call] = UINT64_MAX;
    enum dry_status status = dry_sim_create(&sim_options, &ops->sim, NULL);
    if (status != DRY_OK)
        return status;
    ops->device.sim = dry_sim_get_device(ops->sim);
    struct dryi_torch_options options = {
        .rules = ops->rules,
        .device = {.ops = &watched_ops, .self = &ops->device},
        .memory = memory,
        .observer = {.event = observe, .self = ops},
        .progress_is_told = header[5] & 1,
    };
    ops->progress_is_told = options.progress_is_told;
    choose_conf(header, ops->rules, &options.conf);
    status = dryi_torch_create(&options, &ops->place, NULL);
    if (status != DRY_OK) {
        dry_sim_destroy(ops->sim);
        return status;
    }
    struct torch_model_options model_options = {
        .conf = options.conf,
        .rules = ops->rules,
        .capacity = sim_options.capacity_bytes,
        .total = sim_options.capacity_bytes,
        .granularity = sim_options.granularity_bytes,
        .take_range = hand_range,
        .take_self = ops,
    };
    if (!ops->may_lack_memory)
        ops->model = torch_model_create(&model_options);
    return DRY_OK;
}

/* What was taken has been given back, whatever was still in use. */
static void
destroy(struct ops *ops)
{
    dryi_torch_destroy(ops->place);
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(ops->sim, &account);
    if (account.used_bytes || account.reserved_address_bytes || account.events_live)
        differ(ops,
               "after destroy the device has %" PRIu64 " bytes, %" PRIu64
               " bytes of addresses and %" PRIu64 " events taken",
               account.used_bytes, account.reserved_address_bytes, account.events_live);
    dry_sim_destroy(ops->sim);
    if (ops->model)
        torch_model_destroy(ops->model);
}

static void
run_steps(struct ops *ops, const uint8_t *data, size_t size)
{
    const uint8_t *at = data + OPS_HEADER, *end = data + size;
    for (; end - at >= 3 && ops->step < STEPS; at += 3, ops->step++)
        run_step(ops, at[0], at[1], at[2]);
}

static struct ops *
new_ops(void)
{
    struct ops *ops = calloc(1, sizeof *ops);
    if (!ops)
        abort();
    ops->is_traced = getenv("DRY_OPS_TRACE") != NULL;
    return ops;
}

void
torch_ops_run(const uint8_t *data, size_t size)
{
    if (size < OPS_HEADER)
        return;
    struct ops *ops = new_ops();
    if (create(ops, data, NULL) != DRY_OK)
        differ(ops, "the place cannot be created");
    compare(ops, DRY_OK, DRY_OK);
    run_steps(ops, data, size);
    destroy(ops);
    free(ops);
}

void
torch_ops_run_alone(const uint8_t *data, size_t size, const struct dry_memory *memory,
                    uint64_t call)
{
    if (size < OPS_HEADER)
        return;
    struct ops *ops = new_ops();
    ops->may_lack_memory = true;
    if (create(ops, data, memory) == DRY_OK) {
        dry_sim_fail_at(ops->sim, call);
        run_steps(ops, data, size);
        destroy(ops);
    }
    free(ops);
}
