/* SPDX-License-Identifier: Apache-2.0 */
#include "prop/place_ops.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "prop/place_state.h"

/* Kinds of calls a program may leave out, as bits of its header. */
#define LACKS_STREAMS 1u
#define LACKS_POOLS 2u
#define LACKS_CAPTURES 4u
#define LACKS_DEVICE_FAULTS 8u
#define LACKS_LIMITS 16u
#define LACKS_MEMORY_FAULTS 32u
#define LACKS_RELEASES 64u
#define LACKS_COMBS 128u

/* Of a place with 2048 blocks, 8 streams and 4 private pools at a time, however long. */
#define RECORDS_MAX (16 * DRYI_MIB)

void
ops_differ(const struct place_ops *ops, const char *format, ...)
{
    fprintf(stderr, "place_ops: step %" PRIu64 " (%s): ", ops->step, ops->call);
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}

/* ---- around every call ---- */

static void
begin_call(struct place_ops *ops, const char *name, uint64_t x, uint64_t y)
{
    ops->call = name;
    ops->refused_before = ops->device.refused;
    ops->full_before = ops->device.full;
    ops->waits_before = ops->device.waits;
    if (ops->memory.failed) { /* there is memory again */
        ops->memory.failed = false;
        ops->memory.left = SIZE_MAX;
    }
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(ops->sim, &account);
    ops->used_before = account.used_bytes;
    if (ops->is_traced)
        fprintf(stderr, "%" PRIu64 ": %s %" PRIu64 " %" PRIu64 "\n", ops->step, name, x,
                y);
}

static bool
was_refused(const struct place_ops *ops)
{
    return ops->memory.failed || ops->device.refused > ops->refused_before;
}

/* O3, but for room. */
static void
require_reason(const struct place_ops *ops, enum dry_status status)
{
    if (status == DRY_OK)
        return;
    if (status == DRY_ERR_MEMORY && ops->memory.failed)
        return;
    if ((status == DRY_ERR_SYSTEM || status == DRY_ERR_NO_SPACE) &&
        ops->device.refused > ops->refused_before)
        return;
    ops_differ(ops, "%s without a reason", dry_status_name(status));
}

static void
require_status(const struct place_ops *ops, enum dry_status status,
               enum dry_status wanted)
{
    if (status == DRY_ERR_MEMORY && ops->memory.failed)
        return;
    if (status != wanted)
        ops_differ(ops, "says %s, must say %s", dry_status_name(status),
                   dry_status_name(wanted));
}

/* Who tells of progress must tell of what waiting has done, too. */
static void
tell_progress(const struct place_ops *ops)
{
    if (!ops->progress_is_told || !ops->place.ops->stream_progressed)
        return;
    for (unsigned i = 0; i < PLACE_STREAMS; i++)
        ops->place.ops->stream_progressed(ops->place.self, place_stream_id(i));
}

static void
end_call(struct place_ops *ops)
{
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(ops->sim, &account);
    if (account.used_bytes > ops->used_before && account.used_bytes > ops->limit)
        ops_differ(ops, "%" PRIu64 " bytes are taken, the limit is %" PRIu64,
                   account.used_bytes, ops->limit);
    if (ops->device.broken)
        ops_differ(ops, "%s", ops->device.broken);
    if (ops->device.waits > ops->waits_before)
        tell_progress(ops);
    ops->tally.faults += was_refused(ops);
    if (ops->memory.failed) {
        ops->memory.failed = false;
        ops->memory.left = SIZE_MAX;
    }
}

/* ---- what the program does with its memory ---- */

static void
require_checker(const struct place_ops *ops, enum dry_status status)
{
    if (status != DRY_OK)
        ops_differ(ops, "the checker says %s", dry_status_name(status));
}

static void
own_block(const struct place_ops *ops, uint32_t slot)
{
    const struct live_list *live = &ops->live;
    const struct live_block *b = &live->blocks[slot];
    require_checker(ops, dry_sim_own(ops->sim, live->begin[slot],
                                     live->end[slot] - live->begin[slot],
                                     place_stream_id(b->stream), b->owner));
}

/* Work put on a captured stream does not run: it becomes a part of the graph. */
static bool
is_captured(const struct place_ops *ops, unsigned stream)
{
    return ops->device.captured >> stream & 1u;
}

static void
use_block(const struct place_ops *ops, uint32_t slot, unsigned stream)
{
    const struct live_list *live = &ops->live;
    if (is_captured(ops, stream))
        return;
    require_checker(ops, dry_sim_use(ops->sim, place_stream_id(stream), live->begin[slot],
                                     live->end[slot] - live->begin[slot],
                                     live->blocks[slot].owner));
}

/* After the free: a block whose free fails is still its owner's. */
static void
disown_block(const struct place_ops *ops, uint32_t slot)
{
    dry_sim_disown(ops->sim, ops->live.blocks[slot].owner);
}

static void
make_stream_wait(const struct place_ops *ops, unsigned stream, unsigned on)
{
    require_checker(ops, dry_sim_stream_waits(ops->sim, place_stream_id(stream),
                                              place_stream_id(on)));
}

/* O2 */
static void
require_no_finding(struct place_ops *ops)
{
    ops->tally.findings = dry_sim_get_finding_count(ops->sim);
    if (ops->tally.findings == 0 || ops->options.expects_findings)
        return;
    struct dry_sim_finding finding = DRY_INIT(struct dry_sim_finding);
    if (dry_sim_get_finding(ops->sim, 0, &finding) == DRY_OK)
        ops_differ(ops, "%s", finding.text);
    ops_differ(ops, "a finding that is not kept");
}

/* ---- allocate ---- */

static uint64_t
log_uniform(uint64_t low, unsigned octaves, uint32_t a, uint32_t b)
{
    uint64_t base = low << a % octaves;
    return base + (base * b >> 8);
}

static uint64_t
choose_size(const struct place_ops *ops, uint32_t a, uint32_t b)
{
    static const uint64_t odd[] = {1,
                                   511,
                                   512,
                                   513,
                                   64 * DRYI_KIB,
                                   256 * DRYI_KIB - 1,
                                   256 * DRYI_KIB,
                                   256 * DRYI_KIB + 1,
                                   DRYI_MIB,
                                   2 * DRYI_MIB - 512,
                                   2 * DRYI_MIB,
                                   2 * DRYI_MIB + 1,
                                   3 * DRYI_MIB,
                                   4 * DRYI_MIB,
                                   20 * DRYI_MIB,
                                   0};
    uint64_t all = ops->capacity_first;
    uint32_t mix = a < 16 ? 7u : ops->mix % 7u;
    switch (mix) {
    case 0:
        return 1 + ((uint64_t)a * 256 + b) * 4; /* up to 256 KiB */
    case 1:
        return log_uniform(512, 17, a, b);
    case 2:
        return (1 + a % 8) * 2 * DRYI_MIB - (b % 4 == 0 ? 512 : 0);
    case 3: /* a few that return */
        return log_uniform(4096, 14, a % 6 * 5 + ops->mix, a % 6 * 40);
    case 4:
        return all / 64 + all / 2048 * b;
    case 5:
        return all / 65536 * (a * 8 + b % 8) + b;
    case 6: /* one in eight is large */
        return a % 8 == 0 ? all / 32 + all / 8192 * b : log_uniform(256, 12, a, b);
    default:
        return a == 0 && b < 8 ? UINT64_C(1) << (56 + b) : odd[b % 16] + (b >> 6);
    }
}

static struct dryi_pool_id
choose_pool(const struct place_ops *ops, unsigned stream)
{
    for (uint32_t i = ops->scope_count; i-- > 0;) {
        const struct ops_pool *pool = &ops->pools[ops->scopes[i]];
        if (pool->mask >> stream & 1u)
            return pool->id;
    }
    return (struct dryi_pool_id){0, 0};
}

/* There is memory again, and the device does what it can. */
static void
end_faults(struct place_ops *ops)
{
    ops->tally.faults += ops->memory.failed;
    ops->memory.failed = false;
    ops->memory.left = SIZE_MAX;
    ops->device.fail_mask = 0;
}

/*
 * O3 and O4: also where calls were refused on the way, or the host's memory was, for then
 * nobody knows whether there is room.
 */
static void
require_final(struct place_ops *ops, uint64_t size, unsigned stream)
{
    if (ops->device.full > ops->full_before)
        return; /* the device was told to say so, and has what it was asked for */
    if (ops->options.kind == PLACE_TORCH)
        return; /* PyTorch's ladder is known not to look again after its last wait */
    end_faults(ops);
    if (ops->is_traced)
        ops_print_layout(ops);
    tell_progress(ops);
    dryi_block block = DRYI_NO_BLOCK;
    enum dry_status status =
        ops->place.ops->alloc(ops->place.self, size, place_stream_id(stream), &block);
    if (status != DRY_ERR_NO_SPACE && ops->is_traced)
        ops_print_layout(ops);
    if (status != DRY_ERR_NO_SPACE)
        ops_differ(ops, "no room, but the same again says %s", dry_status_name(status));
    ops->tally.no_space++;
    ops->tally.finals++;
    ops_require_full(ops, size);
}

/* The pool asked for, or one that serves others before an OOM, or has no users any more. */
static bool
is_pool_right(const struct place_ops *ops, struct dryi_pool_id id, unsigned stream)
{
    if (ops_same_pool(id, choose_pool(ops, stream)))
        return true;
    for (size_t i = 0; i < OPS_POOLS; i++) {
        const struct ops_pool *pool = &ops->pools[i];
        if (pool->users > 0 && ops_same_pool(pool->id, id))
            return pool->flags & DRYI_POOL_USE_ON_OOM;
    }
    return id.a + id.b > 0;
}

static void
require_block(const struct place_ops *ops, const struct dryi_block_info *info,
              uint64_t size, unsigned stream)
{
    if (!info->allocated || info->pending || !info->mapped || info->requested != size ||
        info->size < size || info->stream != place_stream_id(stream))
        ops_differ(ops, "the block handed out is not the one asked for");
    if (ops->place.ops->open_pool && !is_pool_right(ops, info->pool, stream))
        ops_differ(ops, "the block is of pool %" PRIu64 ",%" PRIu64, info->pool.a,
                   info->pool.b);
    if (info->addr % 512 != 0 || info->size % 512 != 0)
        ops_differ(ops, "the block is not in steps of 512");
    if (ops->told.last_alloc != info->addr)
        ops_differ(ops, "told was another address");
    uint32_t other = live_overlap(&ops->live, info->addr, info->size);
    if (other != LIVE_NONE)
        ops_differ(ops, "%#" PRIx64 " of %" PRIu64 " overlaps what is alive at %#" PRIx64,
                   info->addr, info->size, ops->live.begin[other]);
}

static void
take_block(struct place_ops *ops, dryi_block handle, uint64_t size, unsigned stream)
{
    struct dryi_block_info info;
    ops->place.ops->get_block(ops->place.self, handle, &info);
    require_block(ops, &info, size, stream);
    struct live_block block = {.requested = size,
                               .owner = ++ops->owner_last,
                               .pool = info.pool,
                               .handle = handle,
                               .stream = (uint8_t)stream};
    uint32_t slot = live_add(&ops->live, &block, info.addr, info.size);
    ops->tally.allocs++;
    ops->tally.digest = dryi_mix64(ops->tally.digest ^ info.addr);
    ops->tally.pool_allocs += info.pool.a + info.pool.b > 0;
    if (ops->is_traced)
        fprintf(stderr, "  owner %" PRIu64 ": %#" PRIx64 " of %" PRIu64 "\n", block.owner,
                info.addr, info.size);
    own_block(ops, slot);
    use_block(ops, slot, stream);
}

static void
call_alloc(struct place_ops *ops, uint64_t size, unsigned stream)
{
    begin_call(ops, "alloc", size, place_stream_id(stream));
    dryi_block handle = DRYI_NO_BLOCK;
    uint64_t allocs = ops->told.allocs, ooms = ops->told.ooms;
    enum dry_status status =
        ops->place.ops->alloc(ops->place.self, size, place_stream_id(stream), &handle);
    bool is_block = status == DRY_OK && size > 0;
    if (ops->told.allocs != allocs + is_block ||
        (status == DRY_ERR_NO_SPACE) != (ops->told.ooms > ooms))
        ops_differ(ops, "told were %" PRIu64 " allocs and %" PRIu64 " failures",
                   ops->told.allocs - allocs, ops->told.ooms - ooms);
    if (size >= UINT64_C(1) << 60) {
        require_status(ops, status, DRY_ERR_ARGUMENT);
    } else if (is_block) {
        take_block(ops, handle, size, stream);
    } else if (status == DRY_ERR_NO_SPACE) {
        ops->is_full = true;
        ops->tally.no_space++;
        require_final(ops, size, stream);
    } else {
        require_reason(ops, status);
    }
    if (!is_block && handle != DRYI_NO_BLOCK)
        ops_differ(ops, "a block for nothing");
}

/* ---- free ---- */

static void
note_waiting(struct place_ops *ops, uint32_t slot)
{
    if (ops->live.blocks[slot].recorded == 0)
        return;
    if (ops->waiting_count == OPS_WAITING)
        ops_survey(ops); /* forgets those that wait no more */
    if (ops->waiting_count == OPS_WAITING)
        ops_differ(ops, "too many blocks wait");
    ops->waiting[ops->waiting_count++] = (struct ops_waiting){
        ops->live.begin[slot], ops->live.end[slot] - ops->live.begin[slot],
        ops->live.blocks[slot].requested};
}

static void
free_slot(struct place_ops *ops, uint32_t slot)
{
    begin_call(ops, "free", ops->live.blocks[slot].owner, 0);
    size_t requests = ops->memory.requests;
    uint64_t frees = ops->told.frees;
    enum dry_status status =
        ops->place.ops->free(ops->place.self, ops->live.blocks[slot].handle);
    if (ops->memory.requests > requests)
        ops_differ(ops, "a free takes memory");
    require_reason(ops, status);
    if (ops->told.frees != frees + (status == DRY_OK))
        ops_differ(ops, "told were %" PRIu64 " frees", ops->told.frees - frees);
    if (status != DRY_OK)
        return;
    disown_block(ops, slot);
    note_waiting(ops, slot);
    live_remove(&ops->live, slot);
    ops->tally.frees++;
}

static uint32_t
any_slot(const struct place_ops *ops, uint32_t a, uint32_t b)
{
    return ops->live.dense[(a * 256 + b) % ops->live.count];
}

static void
call_free(struct place_ops *ops, uint32_t how, uint32_t a, uint32_t b)
{
    if (ops->live.count == 0)
        return;
    if (how % 4 == 0)
        free_slot(ops, ops->live.newest);
    else if (how % 4 == 1)
        free_slot(ops, ops->live.oldest);
    else
        free_slot(ops, any_slot(ops, a, b));
}

/* ---- streams ---- */

static unsigned
choose_stream(const struct place_ops *ops, uint32_t a)
{
    return a & 8 ? 0 : a % ops->stream_count;
}

static void
call_stream_waits(struct place_ops *ops, unsigned stream, unsigned on, bool is_told)
{
    if (is_captured(ops, stream) || is_captured(ops, on))
        return;
    begin_call(ops, "stream_waits", place_stream_id(stream), place_stream_id(on));
    make_stream_wait(ops, stream, on);
    if (is_told && ops->place.ops->stream_waits)
        require_reason(ops, ops->place.ops->stream_waits(ops->place.self,
                                                         place_stream_id(stream),
                                                         place_stream_id(on)));
}

/*
 * A stream recorded inside a capture and outside it: PyTorch forgets both with the capture
 * (remove_cudagraph_stream_uses), so there a right program does not do it.
 */
static bool
is_forgotten(const struct place_ops *ops, const struct live_block *block, unsigned stream)
{
    return ops->options.kind == PLACE_TORCH && (block->recorded >> stream & 1u) &&
           (ops->capture_count > 0 || !(block->usable >> stream & 1u));
}

/* The other stream waits first, as every right program does. */
static void
call_record_stream(struct place_ops *ops, uint32_t a, uint32_t b, uint32_t c)
{
    if (ops->live.count == 0)
        return;
    uint32_t slot = any_slot(ops, a, b);
    struct live_block *block = &ops->live.blocks[slot];
    unsigned stream = c % ops->stream_count;
    if (is_forgotten(ops, block, stream))
        return;
    bool is_real = !is_captured(ops, stream) && !is_captured(ops, block->stream);
    if (stream != block->stream)
        call_stream_waits(ops, stream, block->stream, c & 128);
    begin_call(ops, "record_stream", block->owner, place_stream_id(stream));
    enum dry_status status = ops->place.ops->record_stream(ops->place.self, block->handle,
                                                           place_stream_id(stream));
    require_reason(ops, status);
    if (status == DRY_OK && stream != block->stream)
        block->recorded |= 1u << stream;
    if (status != DRY_OK || !is_real)
        return;
    if (stream != block->stream)
        block->usable |= 1u << stream;
    use_block(ops, slot, stream);
}

static void
call_use(struct place_ops *ops, uint32_t a, uint32_t b, uint32_t c)
{
    if (ops->live.count == 0)
        return;
    uint32_t slot = any_slot(ops, a, b);
    const struct live_block *block = &ops->live.blocks[slot];
    unsigned stream = c % ops->stream_count;
    begin_call(ops, "use", block->owner, place_stream_id(stream));
    use_block(ops, slot, block->usable >> stream & 1u ? stream : block->stream);
}

static void
call_complete(struct place_ops *ops, uint32_t a, uint32_t b)
{
    uint64_t stream = place_stream_id(a % ops->stream_count);
    begin_call(ops, "complete", stream, b % 4);
    if (b % 4 == 0)
        dry_sim_complete_stream(ops->sim, stream);
    else
        dry_sim_advance_stream(ops->sim, stream, b % 4);
    tell_progress(ops);
    if (a & 128)
        ops->place.ops->process_events(ops->place.self);
}

/* ---- releases and limits ---- */

static void
call_empty_cache(struct place_ops *ops, uint32_t a)
{
    struct dryi_pool_id id = {0, 0};
    if (a % 4 == 3)
        id = ops->pools[a / 4 % OPS_POOLS].id;
    /* There PyTorch stops with an internal assertion: nothing to agree on. */
    if (id.a + id.b > 0 && ops->options.kind == PLACE_TORCH && ops->scope_count > 0)
        return;
    begin_call(ops, "empty_cache", id.a, id.b);
    enum dry_status status = ops->place.ops->empty_cache(ops->place.self, id);
    require_reason(ops, status);
    if (status == DRY_OK && id.a + id.b == 0 && ops->options.kind == PLACE_PAGED &&
        !was_refused(ops))
        ops_require_trimmed(ops, 0);
}

static void
call_trim(struct place_ops *ops, uint32_t a)
{
    if (!ops->place.ops->trim)
        return;
    uint64_t target = ops->capacity_first / 256 * a;
    begin_call(ops, "trim", target, 0);
    enum dry_status status = ops->place.ops->trim(ops->place.self, target);
    require_reason(ops, status);
    if (status == DRY_OK && ops->options.kind == PLACE_PAGED && !was_refused(ops))
        ops_require_trimmed(ops, target);
}

static void
call_set_limit(struct place_ops *ops, uint32_t a)
{
    if (!ops->place.ops->set_limit)
        return;
    ops->limit = a % 4 == 0 ? UINT64_MAX : ops->capacity_first / 256 * a;
    begin_call(ops, "set_limit", ops->limit, 0);
    ops->place.ops->set_limit(ops->place.self, ops->limit, ops->limit);
}

static void
call_set_capacity(struct place_ops *ops, uint32_t a)
{
    ops->capacity = a % 2 == 0 ? ops->capacity_first : ops->capacity_first / 256 * a;
    begin_call(ops, "set_capacity", ops->capacity, 0);
    dry_sim_set_capacity(ops->sim, ops->capacity);
}

/* ---- private pools ---- */

/* A place without open_pool makes a pool with its first begin. */
static void
call_open(struct place_ops *ops, uint32_t a, uint32_t b)
{
    struct ops_pool *pool = &ops->pools[a % OPS_POOLS];
    if (!ops->place.ops->open_pool)
        return;
    struct ops_pool opened = *pool;
    if (pool->users == 0) {
        uint64_t n = ++ops->pool_total;
        opened.id = a & 64 ? (struct dryi_pool_id){n, 0} : (struct dryi_pool_id){0, n};
        opened.flags = b % 8;
        opened.mapped_bytes = 0;
    }
    begin_call(ops, "open_pool", opened.id.a, opened.id.b);
    enum dry_status status =
        ops->place.ops->open_pool(ops->place.self, opened.id, opened.flags);
    require_reason(ops, status);
    if (status != DRY_OK)
        return;
    opened.users++;
    *pool = opened;
}

static bool
covers(void *self, uint64_t stream)
{
    const uint32_t *mask = self;
    return *mask >> place_stream_index(stream) & 1u;
}

static void
call_begin(struct place_ops *ops, uint32_t a, uint32_t b)
{
    struct ops_pool *pool = &ops->pools[a % OPS_POOLS];
    bool is_made = pool->users > 0, makes = !ops->place.ops->open_pool;
    if (!is_made && makes)
        pool->id = (struct dryi_pool_id){0, ++ops->pool_total};
    struct dryi_pool_id id = pool->id;
    if (!is_made && !makes) /* never opened */
        id = (struct dryi_pool_id){UINT64_MAX, a};
    begin_call(ops, "begin_pool", id.a, id.b);
    bool is_begun = pool->is_begun;
    if (!is_begun)
        pool->mask = b % 4 == 0 || makes ? UINT32_MAX : b;
    struct dryi_stream_filter filter = {.covers = b % 4 == 0 ? NULL : covers,
                                        .self = &pool->mask};
    enum dry_status status = ops->place.ops->begin_pool(ops->place.self, id, filter);
    bool is_right = !is_begun && (is_made || makes);
    require_status(ops, status, is_right ? DRY_OK : DRY_ERR_ARGUMENT);
    if (status != DRY_OK)
        return;
    pool->users += makes;
    pool->is_begun = true;
    ops->scopes[ops->scope_count++] = a % OPS_POOLS;
}

static void
drop_scope(struct place_ops *ops, uint32_t index)
{
    uint32_t i = 0;
    while (ops->scopes[i] != index)
        i++;
    ops->scope_count--;
    for (; i < ops->scope_count; i++)
        ops->scopes[i] = ops->scopes[i + 1];
}

static void
call_end(struct place_ops *ops, uint32_t a)
{
    struct ops_pool *pool = &ops->pools[a % OPS_POOLS];
    if (pool->id.a + pool->id.b == 0)
        return;
    begin_call(ops, "end_pool", pool->id.a, pool->id.b);
    enum dry_status status = ops->place.ops->end_pool(ops->place.self, pool->id);
    require_status(ops, status, pool->is_begun ? DRY_OK : DRY_ERR_ARGUMENT);
    if (status != DRY_OK)
        return;
    pool->is_begun = false;
    drop_scope(ops, a % OPS_POOLS);
}

/* The last user may leave only a pool that nobody allocates to, as in PyTorch. */
static void
call_release(struct place_ops *ops, uint32_t a)
{
    struct ops_pool *pool = &ops->pools[a % OPS_POOLS];
    if (pool->users == 0 || (pool->is_begun && pool->users == 1))
        return;
    begin_call(ops, "release_pool", pool->id.a, pool->id.b);
    enum dry_status status = ops->place.ops->release_pool(ops->place.self, pool->id);
    require_status(ops, status, DRY_OK);
    pool->users -= status == DRY_OK;
}

/* ---- captures ---- */

static void
watch_captures(struct place_ops *ops)
{
    ops->device.captured = 0;
    for (uint32_t i = 0; i < ops->capture_count; i++)
        ops->device.captured |= ops->captures[i];
}

static void
call_begin_capture(struct place_ops *ops, uint32_t a)
{
    if (!ops->place.ops->begin_capture || ops->capture_count == OPS_CAPTURES)
        return;
    begin_call(ops, "begin_capture", a, ops->capture_count);
    uint32_t *mask = &ops->captures[ops->capture_count];
    *mask = a % 8 == 0 ? UINT32_MAX : a;
    struct dryi_stream_filter filter = {.covers = a % 8 == 0 ? NULL : covers,
                                        .self = mask};
    enum dry_status status = ops->place.ops->begin_capture(ops->place.self, filter);
    require_reason(ops, status);
    ops->capture_count += status == DRY_OK;
    watch_captures(ops);
}

static void
call_end_capture(struct place_ops *ops)
{
    if (ops->capture_count == 0)
        return;
    begin_call(ops, "end_capture", ops->capture_count, 0);
    ops->capture_count--;
    watch_captures(ops);
    enum dry_status status = ops->place.ops->end_capture(ops->place.self);
    require_reason(ops, status);
    ops->capture_count += status != DRY_OK;
    watch_captures(ops);
}

/* ---- combs ---- */

/* Of what is alive so many in 256 go, whichever those are. */
static void
free_some(struct place_ops *ops, uint32_t seed, uint32_t share)
{
    for (uint32_t i = ops->live.count; i-- > 0;) {
        uint32_t slot = ops->live.dense[i];
        if (dryi_mix64(ops->live.blocks[slot].owner ^ seed) % 256 >= share)
            continue;
        free_slot(ops, slot);
        end_call(ops);
    }
}

/* Blocks of whole pages, in a row if there is room. */
static void
fill_up(struct place_ops *ops, uint32_t a, uint32_t b)
{
    uint64_t size = (1 + b % 2) * (ops->page_bytes ? ops->page_bytes : 2 * DRYI_MIB);
    ops->is_full = false;
    while (!ops->is_full && ops->live.count < ops->live_max) {
        call_alloc(ops, size, choose_stream(ops, a));
        end_call(ops);
    }
}

/*
 * All is full, then some go, and their pages, then others: so there are runs of many blocks and
 * holes. Then somebody wants all that is left, and if that is too much something less.
 */
static void
call_comb(struct place_ops *ops, uint32_t a, uint32_t b, uint32_t c)
{
    fill_up(ops, a, b);
    free_some(ops, a, 64 + a % 129);
    if (b % 4 > 0)
        call_trim(ops, b % 4 > 1 ? 0 : b);
    end_call(ops);
    if (b % 8 < 6)
        free_some(ops, b, b % 8 < 4 ? 254 : 240);
    uint64_t used = ops->live.size_bytes;
    uint64_t left = used < ops->capacity ? ops->capacity - used : 0;
    uint64_t step =
        (1 + c % 16) * ((ops->page_bytes ? ops->page_bytes : 2 * DRYI_MIB) / 8);
    for (int i = 0; i < 12 && left > step && ops->live.count < ops->live_max; i++) {
        call_alloc(ops, left, choose_stream(ops, a));
        end_call(ops);
        left -= step;
    }
}

/* ---- faults ---- */

static void
call_fail(struct place_ops *ops, uint32_t a, uint32_t b, uint32_t c)
{
    if (ops->options.no_faults)
        return;
    begin_call(ops, "fail", a, b);
    struct place_device *d = &ops->device;
    if (a & 1) {
        ops->memory.left = ops->features & LACKS_MEMORY_FAULTS ? SIZE_MAX : b % 8;
        return;
    }
    if (ops->features & LACKS_DEVICE_FAULTS)
        return;
    d->fail_mask = a & 2 ? PLACE_CALL_ANY : 1u << (a >> 2) % 9;
    d->fail_after = b % 8;
    d->fail_count = c % 4;
    d->fail_status = c & 128 ? DRY_ERR_SYSTEM : DRY_ERR_NO_SPACE;
}

/* ---- the program ---- */

static void
run_stream_call(struct place_ops *ops, uint32_t op, const uint8_t *at)
{
    if (op < 8)
        call_record_stream(ops, at[1], at[2], at[3]);
    else if (op < 12)
        call_use(ops, at[1], at[2], at[3]);
    else if (op < 15)
        call_stream_waits(ops, at[1] % ops->stream_count, at[2] % ops->stream_count,
                          true);
    else
        call_complete(ops, at[1], at[2]);
}

static void
run_release_call(struct place_ops *ops, uint32_t op, const uint8_t *at)
{
    if (op < 3)
        call_empty_cache(ops, at[1]);
    else if (op < 6)
        call_trim(ops, at[1]);
    else if (ops->features & LACKS_LIMITS)
        return;
    else if (op < 7)
        call_set_limit(ops, at[1]);
    else
        call_set_capacity(ops, at[1]);
}

static void
run_pool_call(struct place_ops *ops, uint32_t op, const uint8_t *at)
{
    if (op < 2)
        call_open(ops, at[1], at[2]);
    else if (op < 6)
        call_begin(ops, at[1], at[2]);
    else if (op < 12)
        call_end(ops, at[1]);
    else
        call_release(ops, at[1]);
}

/* Rare calls are one in 16 of what they would be: a change of limits is an event. */
static void
run_rare_call(struct place_ops *ops, const uint8_t *at)
{
    uint32_t op = at[0] & 15u, kind = at[3] & 15u;
    if (kind < 5 && !(ops->features & LACKS_POOLS))
        run_pool_call(ops, op, at);
    else if (kind < 7 && !(ops->features & LACKS_CAPTURES) && op < 8)
        call_begin_capture(ops, at[1]);
    else if (kind < 8 && !(ops->features & LACKS_CAPTURES))
        call_end_capture(ops);
    else if (kind < 11)
        call_fail(ops, at[1], at[2], at[3] >> 4);
    else if (kind < 12 && !(ops->features & LACKS_RELEASES))
        run_release_call(ops, op & 7, at);
    else if (op < 2 && !(ops->features & LACKS_COMBS))
        call_comb(ops, at[1], at[2], at[3] >> 4);
}

void
place_ops_step(struct place_ops *ops, const uint8_t at[PLACE_OPS_STEP])
{
    uint32_t op = at[0];
    begin_call(ops, "nothing", 0, 0);
    bool is_full = ops->is_full || ops->live.count >= ops->live_max;
    ops->is_full = false; /* who was refused frees first */
    if (op < 112 && !is_full)
        call_alloc(ops, choose_size(ops, at[1], at[2]), choose_stream(ops, at[3]));
    else if (op < 208)
        call_free(ops, at[3], at[1], at[2]);
    else if (op < 240 && !(ops->features & LACKS_STREAMS))
        run_stream_call(ops, (op - 208) / 2, at);
    else
        run_rare_call(ops, at);
    end_call(ops);
    require_no_finding(ops);
    if (ops->step % ops->options.survey_every == 0)
        ops_survey(ops);
    ops->step++;
    ops->tally.calls++;
}

struct place_ops *
place_ops_create(const struct place_ops_options *options,
                 const uint8_t header[PLACE_OPS_HEADER])
{
    struct place_ops *ops = calloc(1, sizeof *ops);
    if (!ops)
        abort();
    ops->options = *options;
    ops->call = "create";
    ops->is_traced = getenv("DRY_OPS_TRACE") != NULL;
    live_init(&ops->live);
    ops_make(ops, header);
    ops_survey(ops);
    return ops;
}

static void
note_counters(struct place_ops *ops)
{
    if (!ops->place.ops->get_counters)
        return;
    struct dry_pool_counters c = DRY_INIT(struct dry_pool_counters);
    ops->place.ops->get_counters(ops->place.self, &c);
    ops->tally.remapped = c.pages_remapped;
    ops->tally.reused_ordered = c.reused_ordered;
    ops->tally.reused_passed = c.reused_passed;
    ops->tally.reused_waiting = c.reused_waiting;
}

/* What a program does before it ends: all work is over, nobody uses anything. */
static void
come_to_rest(struct place_ops *ops)
{
    const struct dry_device *device = &ops->device.below;
    for (unsigned i = 0; i < PLACE_STREAMS; i++)
        device->ops->stream_wait(device->self, place_stream_id(i));
    for (uint32_t i = 0; i < ops->live.count; i++)
        disown_block(ops, ops->live.dense[i]);
}

void
place_ops_destroy(struct place_ops *ops, struct place_ops_tally *tally)
{
    begin_call(ops, "destroy", 0, 0);
    ops->device.fail_mask = 0;
    ops->device.captured = 0;
    ops_survey(ops);
    note_counters(ops);
    come_to_rest(ops);
    ops->place.ops->destroy(ops->place.self);
    require_no_finding(ops);
    ops->tally.record_bytes = ops->memory.peak_bytes;
    if (ops->memory.peak_bytes > RECORDS_MAX)
        ops_differ(ops, "records took %zu bytes: they pile up", ops->memory.peak_bytes);
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(ops->sim, &account);
    if (account.used_bytes || account.reserved_address_bytes || account.events_live ||
        account.pages_live || ops->memory.live_bytes)
        ops_differ(ops,
                   "not given back: %" PRIu64 " bytes, %" PRIu64
                   " bytes of addresses, %" PRIu64 " events, %" PRIu64
                   " pages, %zu bytes of memory",
                   account.used_bytes, account.reserved_address_bytes,
                   account.events_live, account.pages_live, ops->memory.live_bytes);
    dry_sim_destroy(ops->sim);
    if (tally)
        *tally = ops->tally;
    free(ops);
}

void
place_ops_run(const struct place_ops_options *options, const uint8_t *data, size_t size)
{
    if (size < PLACE_OPS_HEADER)
        return;
    struct place_ops *ops = place_ops_create(options, data);
    for (size_t at = PLACE_OPS_HEADER; size - at >= PLACE_OPS_STEP; at += PLACE_OPS_STEP)
        place_ops_step(ops, data + at);
    place_ops_destroy(ops, NULL);
}
