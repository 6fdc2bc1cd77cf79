/* SPDX-License-Identifier: Apache-2.0 */

/* Each operation is one switch to a call of the placement. The only state per request is its
   block's handle. Cost: O(1) per operation, plus the placement's own cost. */
#include "replay/execution.h"

#include <string.h>

#include "base/assert.h"
#include "base/device_page.h"
#include "base/fail.h"
#include "base/memory.h"

static enum dry_status
make_device(struct dryi_execution *x, const struct dryi_execution_options *options,
            struct dry_error *err)
{
    struct dry_sim_options sim_options;
    dry_sim_options_init(&sim_options);
    sim_options.memory = &x->memory;
    sim_options.capacity_bytes = options->capacity_bytes;
    sim_options.page_bytes =
        dryi_device_page_bytes(sim_options.page_bytes, options->capacity_bytes);
    sim_options.choose_address = options->choose_address;
    sim_options.choose_self = options->choose_self;
    sim_options.check = options->check_order;
    x->checks_order = options->check_order;
    return dry_sim_create(&sim_options, &x->sim, err);
}

static enum dry_status
make_torch(struct dryi_execution *x, const struct dryi_execution_options *options,
           struct dry_error *err)
{
    struct dryi_torch_options torch_options = {
        .conf = options->conf,
        .rules = options->rules,
        .device = dry_sim_get_device(x->sim),
        .memory = &x->memory,
        .observer = options->observer,
        .progress_is_told = true,
    };
    enum dry_status status = dryi_torch_create(&torch_options, &x->torch, err);
    if (status == DRY_OK)
        x->place = dryi_torch_as_place(x->torch);
    return status;
}

static enum dry_status
make_paged(struct dryi_execution *x, const struct dryi_execution_options *options,
           struct dry_error *err)
{
    struct dryi_paged_options paged_options = {
        .conf = options->paged,
        .device = dry_sim_get_device(x->sim),
        .memory = &x->memory,
        .observer = options->observer,
        .progress_is_told = true,
    };
    return dryi_paged_create(&paged_options, &x->place, err);
}

static enum dry_status
make_place(struct dryi_execution *x, const struct dryi_execution_options *options,
           struct dry_error *err)
{
    switch (options->kind) {
    case DRYI_EXECUTION_TORCH:
        return make_torch(x, options, err);
    case DRYI_EXECUTION_PAGED:
        return make_paged(x, options, err);
    }
    return dryi_fail(err, DRY_ERR_ARGUMENT, "no such place");
}

enum dry_status
dryi_execution_init(struct dryi_execution *x, const struct dryi_program *program,
                    const struct dryi_execution_options *options,
                    const struct dry_memory *memory, struct dry_error *err)
{
    *x = (struct dryi_execution){
        .memory = dryi_memory_or_default(memory), .program = program, .op = NO_OP};
    dryi_intern_init(&x->pools, &x->memory);
    enum dry_status status = make_device(x, options, err);
    if (status == DRY_OK)
        status = make_place(x, options, err);
    if (status == DRY_OK) {
        size_t count = program->request_count + 1;
        x->handles = dryi_memory_zalloc(&x->memory, count, sizeof *x->handles);
        if (x->handles)
            memset(x->handles, 0xff, count * sizeof *x->handles);
        else
            status = dryi_fail_memory(err, "the blocks of a replay");
    }
    if (status != DRY_OK)
        dryi_execution_finish(x);
    return status;
}

void
dryi_execution_finish(struct dryi_execution *x)
{
    if (!x->memory.resize)
        return;
    if (x->place.ops)
        x->place.ops->destroy(x->place.self);
    dry_sim_destroy(x->sim);
    if (x->handles)
        dryi_memory_free(&x->memory, x->handles, x->program->request_count + 1,
                         sizeof *x->handles);
    dryi_memory_free(&x->memory, x->pool_is_held, x->pool_capacity,
                     sizeof *x->pool_is_held);
    dryi_intern_finish(&x->pools);
    *x = (struct dryi_execution){0};
}

/* --- pools -------------------------------------------------------------------------------- */

/* Open a private pool's scope; create the pool if it does not exist. Adds one user to the pool. */
static enum dry_status
begin_pool(struct dryi_execution *x, struct dryi_pool_id pool)
{
    if (x->torch)
        return dryi_torch_begin_pool(x->torch, pool);
    const struct dryi_place_ops *ops = x->place.ops;
    enum dry_status status = ops->open_pool(x->place.self, pool, 0);
    if (status != DRY_OK)
        return status;
    status = ops->begin_pool(x->place.self, pool, (struct dryi_stream_filter){0});
    if (status != DRY_OK && ops->release_pool(x->place.self, pool) != DRY_OK)
        return DRY_ERR_ARGUMENT;
    return status;
}

/* Return the flag that says whether the execution is a user of the pool; 0 for a new pool. Returns
   NULL if memory ran out. */
static uint8_t *
get_hold(struct dryi_execution *x, struct dryi_pool_id pool)
{
    uint32_t known = x->pools.count;
    uint32_t index = dryi_intern_put(&x->pools, &pool, sizeof pool);
    if (index == DRYI_INTERN_NONE ||
        !dryi_memory_grow(&x->memory, &x->pool_is_held, &x->pool_capacity,
                          (size_t)index + 1, 1))
        return NULL;
    if (index == known)
        x->pool_is_held[index] = 0;
    return &x->pool_is_held[index];
}

/*
 * Open a private pool's scope for one allocation. A record tells each block's pool, but not when
 * scopes began and ended. So the scope is opened for each allocation, and the execution stays the
 * pool's one user until its memory is released.
 */
static enum dry_status
enter_pool(struct dryi_execution *x, struct dryi_pool_id pool)
{
    uint8_t *is_held = get_hold(x, pool);
    if (!is_held)
        return DRY_ERR_MEMORY;
    enum dry_status status = begin_pool(x, pool);
    if (status == DRY_OK && *is_held)
        status = x->place.ops->release_pool(x->place.self, pool);
    *is_held |= status == DRY_OK;
    return status;
}

static enum dry_status
release_pool(struct dryi_execution *x, struct dryi_pool_id pool)
{
    uint8_t *is_held = get_hold(x, pool);
    if (!is_held)
        return DRY_ERR_MEMORY;
    if (!*is_held)
        return DRY_OK;
    *is_held = 0;
    return x->place.ops->release_pool(x->place.self, pool);
}

/* --- operations --------------------------------------------------------------------------- */

/* Return a request's owner number for the device's checks; 0 would mean no owner. */
static uint64_t
get_owner(uint32_t request)
{
    return (uint64_t)request + 1;
}

/* Report a use of the whole block to the device. A record does not tell when the program used a
   block, so every operation on the block counts as a use. */
static enum dry_status
use_block(struct dryi_execution *x, uint32_t request, uint64_t stream)
{
    if (!x->checks_order || x->handles[request] == DRYI_NO_BLOCK)
        return DRY_OK;
    struct dryi_block_info info;
    x->place.ops->get_block(x->place.self, x->handles[request], &info);
    return dry_sim_use(x->sim, stream, info.addr, info.size, get_owner(request));
}

static enum dry_status
own_block(struct dryi_execution *x, uint32_t request, uint64_t stream)
{
    if (!x->checks_order || x->handles[request] == DRYI_NO_BLOCK)
        return DRY_OK;
    struct dryi_block_info info;
    x->place.ops->get_block(x->place.self, x->handles[request], &info);
    enum dry_status status =
        dry_sim_own(x->sim, info.addr, info.size, stream, get_owner(request));
    return status == DRY_OK ? use_block(x, request, stream) : status;
}

static enum dry_status
disown_block(struct dryi_execution *x, uint32_t request)
{
    const struct dryi_program *p = x->program;
    enum dry_status status =
        use_block(x, request, dryi_program_lane(p, p->lanes[request])->stream);
    if (x->checks_order)
        dry_sim_disown(x->sim, get_owner(request));
    return status;
}

static enum dry_status
alloc_request(struct dryi_execution *x, uint32_t request, dryi_block *block)
{
    const struct dryi_program *p = x->program;
    const struct lane *lane = dryi_program_lane(p, p->lanes[request]);
    bool has_pool = p->has_addresses && !dryi_is_default_pool(lane->pool);
    x->request = request;
    if (has_pool) {
        enum dry_status entered = enter_pool(x, lane->pool);
        if (entered == DRY_ERR_MEMORY)
            return entered;
        has_pool = entered == DRY_OK; /* if not, PyTorch would have raised an exception */
    }
    enum dry_status status =
        x->place.ops->alloc(x->place.self, p->sizes[request], lane->stream, block);
    if (has_pool && x->place.ops->end_pool(x->place.self, lane->pool) != DRY_OK)
        return DRY_ERR_ARGUMENT;
    if (status == DRY_OK)
        return own_block(x, request, lane->stream);
    /* sizes of 1 EiB and more */
    return status == DRY_ERR_ARGUMENT ? DRY_ERR_NO_SPACE : status;
}

static enum dry_status
free_request(struct dryi_execution *x, uint32_t request)
{
    x->request = request;
    enum dry_status status = x->checks_order ? disown_block(x, request) : DRY_OK;
    if (status == DRY_OK)
        status = x->place.ops->free(x->place.self, x->handles[request]);
    if (status == DRY_OK)
        x->handles[request] = DRYI_NO_BLOCK;
    return status;
}

/*
 * Record a use on another stream. A program that does so has made that stream wait for the block's
 * own stream, or the data would be undefined. The record does not show the wait. The placement is
 * not told of it either, and must be right without it.
 */
static enum dry_status
use_elsewhere(struct dryi_execution *x, uint32_t request, uint64_t stream)
{
    const struct dryi_program *p = x->program;
    uint64_t own = dryi_program_lane(p, p->lanes[request])->stream;
    enum dry_status status = dry_sim_stream_waits(x->sim, stream, own);
    return status == DRY_OK ? use_block(x, request, stream) : status;
}

static enum dry_status
record_stream(struct dryi_execution *x, uint32_t request, uint64_t stream)
{
    enum dry_status status = DRY_OK;
    if (x->checks_order)
        status = use_elsewhere(x, request, stream);
    if (status == DRY_OK)
        status = x->place.ops->record_stream(x->place.self, x->handles[request], stream);
    return status;
}

static void
finish_stream(struct dryi_execution *x, uint64_t stream)
{
    dry_sim_complete_stream(x->sim, stream);
    x->place.ops->stream_progressed(x->place.self, stream);
}

/* Begin or end a scope that a plain trace states. The placement counts the pool's users. */
static enum dry_status
scope_op(struct dryi_execution *x, bool begins, struct dryi_pool_id pool)
{
    enum dry_status status =
        begins ? begin_pool(x, pool) : x->place.ops->end_pool(x->place.self, pool);
    if (status == DRY_OK && !begins)
        status = x->place.ops->release_pool(x->place.self, pool);
    return status == DRY_ERR_ARGUMENT ? DRY_OK : status;
}

enum dry_status
dryi_execution_do(struct dryi_execution *x, size_t op)
{
    const struct dryi_program *p = x->program;
    uint32_t arg = p->args[op];
    x->op = op;
    enum op_kind kind = p->kinds[op];
    switch (kind) {
    case OP_ALLOC:
    case OP_OOM:
        return alloc_request(x, arg, &x->handles[arg]);
    case OP_FREE:
        return free_request(x, arg);
    case OP_STREAM:
        x->stream = dryi_program_stream(p, arg);
        return DRY_OK;
    case OP_RECORD_STREAM:
        return record_stream(x, arg, x->stream);
    case OP_STREAM_DONE:
        finish_stream(x, dryi_program_stream(p, arg));
        return DRY_OK;
    case OP_EMPTY_CACHE:
        return x->place.ops->empty_cache(x->place.self, (struct dryi_pool_id){0, 0});
    case OP_DEVICE_FULL:
        return DRY_OK;
    case OP_POOL_BEGIN:
    case OP_POOL_END:
        return scope_op(x, kind == OP_POOL_BEGIN, dryi_program_lane(p, arg)->pool);
    case OP_POOL_RELEASE:
        return release_pool(x, dryi_program_lane(p, arg)->pool);
    case OP_EMPTY_POOL:
        return x->place.ops->empty_cache(x->place.self, dryi_program_lane(p, arg)->pool);
    }
    return DRY_OK;
}

/* --- beginnings --------------------------------------------------------------------------- */

/* Free carried-over allocations whose free was requested before the window and
   still waits for a stream. */
enum dry_status
dryi_execution_begin_pending_frees(struct dryi_execution *x)
{
    const struct dryi_program *p = x->program;
    enum dry_status status = DRY_OK;
    for (uint32_t i = 0; i < p->carried_count && status == DRY_OK; i++) {
        if (p->carried[i].pending_stream == NO_STREAM)
            continue;
        uint64_t stream = dryi_program_stream(p, p->carried[i].pending_stream);
        status = record_stream(x, i, stream);
        if (status == DRY_OK)
            status = free_request(x, i);
    }
    return status;
}

enum dry_status
dryi_execution_place_carried(struct dryi_execution *x, uint32_t request)
{
    return alloc_request(x, request, &x->handles[request]);
}

enum dry_status
dryi_execution_begin_at(struct dryi_execution *x,
                        const struct dryi_initial_layout *layout, struct dry_error *err)
{
    size_t count = layout->block_count + 1;
    dryi_block *handles = dryi_memory_zalloc(&x->memory, count, sizeof *handles);
    if (!handles)
        return dryi_fail_memory(err, "the layout before the window");
    dry_sim_adopt(x->sim, layout->reserved);
    enum dry_status status = dryi_torch_restore(x->torch, layout->segments,
                                                layout->segment_count, handles, err);
    for (size_t i = 0; i < layout->block_count && status == DRY_OK; i++) {
        if (layout->block_requests[i] != DRYI_NO_BLOCK)
            x->handles[layout->block_requests[i]] = handles[i];
    }
    dryi_memory_free(&x->memory, handles, count, sizeof *handles);
    for (size_t i = 0; i < layout->segment_count && status == DRY_OK; i++) {
        if (!dryi_is_default_pool(layout->segments[i].segment.pool)) {
            uint8_t *is_held = get_hold(x, layout->segments[i].segment.pool);
            if (!is_held)
                return dryi_fail_memory(err, "the pools before the window");
            *is_held = 1; /* a restored pool has one user */
        }
    }
    return status == DRY_OK ? dryi_execution_begin_pending_frees(x) : status;
}

/* --- driver calls ------------------------------------------------------------------------- */

uint64_t
dryi_driver_calls(const struct dry_sim_account *account)
{
    static const enum dry_sim_call counted[] = {
        DRY_SIM_ALLOC,     DRY_SIM_FREE,        DRY_SIM_RESERVE,     DRY_SIM_UNRESERVE,
        DRY_SIM_MAP,       DRY_SIM_UNMAP,       DRY_SIM_CREATE_PAGE, DRY_SIM_RELEASE_PAGE,
        DRY_SIM_MAP_PAGES, DRY_SIM_UNMAP_PAGES,
    };
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
        sum += account->calls[counted[i]];
    return sum;
}
