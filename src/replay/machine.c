/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The idea stands in machine.h. An operation is a switch to one call of the placement; a
 * handle a request is all that is kept. Cost: O(1) an operation, beside what the
 * placement takes.
 */
#include "replay/machine.h"

#include <string.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/memory.h"

static enum dry_status
make_device(struct dryi_machine *m, const struct dryi_machine_options *options,
            struct dry_error *err)
{
    struct dry_sim_options sim_options;
    dry_sim_options_init(&sim_options);
    sim_options.memory = &m->memory;
    sim_options.capacity_bytes = options->capacity_bytes;
    sim_options.choose_address = options->choose_address;
    sim_options.choose_self = options->choose_self;
    sim_options.check = options->check_order;
    m->checks_order = options->check_order;
    return dry_sim_create(&sim_options, &m->sim, err);
}

static enum dry_status
make_torch(struct dryi_machine *m, const struct dryi_machine_options *options,
           struct dry_error *err)
{
    struct dryi_torch_options torch_options = {
        .conf = options->conf,
        .rules = options->rules,
        .device = dry_sim_get_device(m->sim),
        .memory = &m->memory,
        .observer = options->observer,
        .progress_is_told = true,
    };
    enum dry_status status = dryi_torch_create(&torch_options, &m->torch, err);
    if (status == DRY_OK)
        m->place = dryi_torch_as_place(m->torch);
    return status;
}

static enum dry_status
make_paged(struct dryi_machine *m, const struct dryi_machine_options *options,
           struct dry_error *err)
{
    struct dryi_paged_options paged_options = {
        .conf = options->paged,
        .device = dry_sim_get_device(m->sim),
        .memory = &m->memory,
        .observer = options->observer,
        .progress_is_told = true,
    };
    return dryi_paged_create(&paged_options, &m->place, err);
}

static enum dry_status
make_place(struct dryi_machine *m, const struct dryi_machine_options *options,
           struct dry_error *err)
{
    switch (options->kind) {
    case DRYI_MACHINE_TORCH:
        return make_torch(m, options, err);
    case DRYI_MACHINE_PAGED:
        return make_paged(m, options, err);
    }
    return dryi_fail(err, DRY_ERR_ARGUMENT, "no such place");
}

enum dry_status
dryi_machine_init(struct dryi_machine *m, const struct dryi_program *program,
                  const struct dryi_machine_options *options,
                  const struct dry_memory *memory, struct dry_error *err)
{
    *m = (struct dryi_machine){
        .memory = dryi_memory_or_default(memory), .program = program, .op = NO_OP};
    dryi_intern_init(&m->pools, &m->memory);
    enum dry_status status = make_device(m, options, err);
    if (status == DRY_OK)
        status = make_place(m, options, err);
    if (status == DRY_OK) {
        size_t count = program->request_count + 1;
        m->handles = dryi_memory_zalloc(&m->memory, count, sizeof *m->handles);
        if (m->handles)
            memset(m->handles, 0xff, count * sizeof *m->handles);
        else
            status = dryi_fail_memory(err, "the blocks of a replay");
    }
    if (status != DRY_OK)
        dryi_machine_finish(m);
    return status;
}

void
dryi_machine_finish(struct dryi_machine *m)
{
    if (!m->memory.resize)
        return;
    if (m->place.ops)
        m->place.ops->destroy(m->place.self);
    dry_sim_destroy(m->sim);
    if (m->handles)
        dryi_memory_free(&m->memory, m->handles, m->program->request_count + 1,
                         sizeof *m->handles);
    dryi_memory_free(&m->memory, m->pool_is_held, m->pool_capacity,
                     sizeof *m->pool_is_held);
    dryi_intern_finish(&m->pools);
    *m = (struct dryi_machine){0};
}

/* --- pools -------------------------------------------------------------------------------- */

/* The pool, made where it is not there, with one user more, and a scope that is open. */
static enum dry_status
begin_pool(struct dryi_machine *m, struct dryi_pool_id pool)
{
    if (m->torch)
        return dryi_torch_begin_pool(m->torch, pool);
    const struct dryi_place_ops *ops = m->place.ops;
    enum dry_status status = ops->open_pool(m->place.self, pool, 0);
    if (status != DRY_OK)
        return status;
    status = ops->begin_pool(m->place.self, pool, (struct dryi_stream_filter){0});
    if (status != DRY_OK && ops->release_pool(m->place.self, pool) != DRY_OK)
        return DRY_ERR_ARGUMENT;
    return status;
}

static bool
is_default(struct dryi_pool_id pool)
{
    return pool.a == 0 && pool.b == 0;
}

/* The mark of a pool the machine keeps in use; NULL when there is no memory. */
static uint8_t *
hold_of(struct dryi_machine *m, struct dryi_pool_id pool)
{
    uint32_t known = m->pools.count;
    uint32_t index = dryi_intern_put(&m->pools, &pool, sizeof pool);
    if (index == DRYI_INTERN_NONE ||
        !dryi_memory_grow(&m->memory, &m->pool_is_held, &m->pool_capacity,
                          (size_t)index + 1, 1))
        return NULL;
    if (index == known)
        m->pool_is_held[index] = 0;
    return &m->pool_is_held[index];
}

/*
 * Enter a private pool for one allocation. A record tells where each block lies, not when
 * scopes began and ended. So a scope is open for one allocation, and every pool keeps
 * exactly one user until its memory is given back.
 */
static enum dry_status
enter_pool(struct dryi_machine *m, struct dryi_pool_id pool)
{
    uint8_t *is_held = hold_of(m, pool);
    if (!is_held)
        return DRY_ERR_MEMORY;
    enum dry_status status = begin_pool(m, pool);
    if (status == DRY_OK && *is_held)
        status = m->place.ops->release_pool(m->place.self, pool);
    *is_held |= status == DRY_OK;
    return status;
}

static enum dry_status
release_pool(struct dryi_machine *m, struct dryi_pool_id pool)
{
    uint8_t *is_held = hold_of(m, pool);
    if (!is_held)
        return DRY_ERR_MEMORY;
    if (!*is_held)
        return DRY_OK;
    *is_held = 0;
    return m->place.ops->release_pool(m->place.self, pool);
}

/* --- operations --------------------------------------------------------------------------- */

/* The owner of a request's memory, for the device to check: a number that is never 0. */
static uint64_t
owner_of(uint32_t request)
{
    return (uint64_t)request + 1;
}

/* Work on all of a block; nothing says when a program used what, so it is all the time. */
static enum dry_status
use_block(struct dryi_machine *m, uint32_t request, uint64_t stream)
{
    if (!m->checks_order || m->handles[request] == DRYI_NO_BLOCK)
        return DRY_OK;
    struct dryi_block_info info;
    m->place.ops->get_block(m->place.self, m->handles[request], &info);
    return dry_sim_use(m->sim, stream, info.addr, info.size, owner_of(request));
}

static enum dry_status
own_block(struct dryi_machine *m, uint32_t request, uint64_t stream)
{
    if (!m->checks_order || m->handles[request] == DRYI_NO_BLOCK)
        return DRY_OK;
    struct dryi_block_info info;
    m->place.ops->get_block(m->place.self, m->handles[request], &info);
    enum dry_status status =
        dry_sim_own(m->sim, info.addr, info.size, stream, owner_of(request));
    return status == DRY_OK ? use_block(m, request, stream) : status;
}

static enum dry_status
disown_block(struct dryi_machine *m, uint32_t request)
{
    const struct dryi_program *p = m->program;
    enum dry_status status =
        use_block(m, request, dryi_program_lane(p, p->lanes[request])->stream);
    if (m->checks_order)
        dry_sim_disown(m->sim, owner_of(request));
    return status;
}

static enum dry_status
alloc_request(struct dryi_machine *m, uint32_t request, dryi_block *block)
{
    const struct dryi_program *p = m->program;
    const struct lane *lane = dryi_program_lane(p, p->lanes[request]);
    bool has_pool = p->has_addresses && !is_default(lane->pool);
    m->request = request;
    if (has_pool) {
        enum dry_status entered = enter_pool(m, lane->pool);
        if (entered == DRY_ERR_MEMORY)
            return entered;
        has_pool = entered == DRY_OK; /* else PyTorch would have raised */
    }
    enum dry_status status =
        m->place.ops->alloc(m->place.self, p->sizes[request], lane->stream, block);
    if (has_pool && m->place.ops->end_pool(m->place.self, lane->pool) != DRY_OK)
        return DRY_ERR_ARGUMENT;
    if (status == DRY_OK)
        return own_block(m, request, lane->stream);
    return status == DRY_ERR_ARGUMENT ? DRY_ERR_NO_SPACE : status; /* 1 EiB and more */
}

static enum dry_status
free_request(struct dryi_machine *m, uint32_t request)
{
    m->request = request;
    enum dry_status status = m->checks_order ? disown_block(m, request) : DRY_OK;
    if (status == DRY_OK)
        status = m->place.ops->free(m->place.self, m->handles[request]);
    if (status == DRY_OK)
        m->handles[request] = DRYI_NO_BLOCK;
    return status;
}

/*
 * A program that uses a block on another stream has made that one wait for the block's own,
 * or it would not find there what was put into it. The record does not tell; the place is
 * not told either, and must be right without.
 */
static enum dry_status
use_elsewhere(struct dryi_machine *m, uint32_t request, uint64_t stream)
{
    const struct dryi_program *p = m->program;
    uint64_t own = dryi_program_lane(p, p->lanes[request])->stream;
    enum dry_status status = dry_sim_stream_waits(m->sim, stream, own);
    return status == DRY_OK ? use_block(m, request, stream) : status;
}

static enum dry_status
record_stream(struct dryi_machine *m, uint32_t request, uint64_t stream)
{
    enum dry_status status = DRY_OK;
    if (m->checks_order)
        status = use_elsewhere(m, request, stream);
    if (status == DRY_OK)
        status = m->place.ops->record_stream(m->place.self, m->handles[request], stream);
    return status;
}

static void
finish_stream(struct dryi_machine *m, uint64_t stream)
{
    dry_sim_complete_stream(m->sim, stream);
    m->place.ops->stream_progressed(m->place.self, stream);
}

/* A scope stated by the program itself (plain traces): the place counts its users. */
static enum dry_status
scope_op(struct dryi_machine *m, bool begins, struct dryi_pool_id pool)
{
    enum dry_status status =
        begins ? begin_pool(m, pool) : m->place.ops->end_pool(m->place.self, pool);
    if (status == DRY_OK && !begins)
        status = m->place.ops->release_pool(m->place.self, pool);
    return status == DRY_ERR_ARGUMENT ? DRY_OK : status;
}

enum dry_status
dryi_machine_do(struct dryi_machine *m, size_t op)
{
    const struct dryi_program *p = m->program;
    uint32_t arg = p->args[op];
    m->op = op;
    enum op_kind kind = p->kinds[op];
    switch (kind) {
    case OP_ALLOC:
    case OP_OOM:
        return alloc_request(m, arg, &m->handles[arg]);
    case OP_FREE:
        return free_request(m, arg);
    case OP_STREAM:
        m->stream = dryi_program_stream(p, arg);
        return DRY_OK;
    case OP_RECORD_STREAM:
        return record_stream(m, arg, m->stream);
    case OP_STREAM_DONE:
        finish_stream(m, dryi_program_stream(p, arg));
        return DRY_OK;
    case OP_EMPTY_CACHE:
        return m->place.ops->empty_cache(m->place.self, (struct dryi_pool_id){0, 0});
    case OP_DEVICE_FULL:
        return DRY_OK;
    case OP_POOL_BEGIN:
    case OP_POOL_END:
        return scope_op(m, kind == OP_POOL_BEGIN, dryi_program_lane(p, arg)->pool);
    case OP_POOL_RELEASE:
        return release_pool(m, dryi_program_lane(p, arg)->pool);
    case OP_EMPTY_POOL:
        return m->place.ops->empty_cache(m->place.self, dryi_program_lane(p, arg)->pool);
    }
    return DRY_OK;
}

/* --- beginnings --------------------------------------------------------------------------- */

/* A carried-over allocation whose free was asked before the window waits for a stream. */
enum dry_status
dryi_machine_begin_pending_frees(struct dryi_machine *m)
{
    const struct dryi_program *p = m->program;
    enum dry_status status = DRY_OK;
    for (uint32_t i = 0; i < p->carried_count && status == DRY_OK; i++) {
        if (p->carried[i].pending_stream == NO_STREAM)
            continue;
        uint64_t stream = dryi_program_stream(p, p->carried[i].pending_stream);
        status = record_stream(m, i, stream);
        if (status == DRY_OK)
            status = free_request(m, i);
    }
    return status;
}

enum dry_status
dryi_machine_place_carried(struct dryi_machine *m, uint32_t request)
{
    return alloc_request(m, request, &m->handles[request]);
}

enum dry_status
dryi_machine_begin_at(struct dryi_machine *m, const struct dryi_origin *origin,
                      struct dry_error *err)
{
    size_t count = origin->block_count + 1;
    dryi_block *handles = dryi_memory_zalloc(&m->memory, count, sizeof *handles);
    if (!handles)
        return dryi_fail_memory(err, "the layout before the window");
    dry_sim_adopt(m->sim, origin->reserved);
    enum dry_status status = dryi_torch_restore(m->torch, origin->segments,
                                                origin->segment_count, handles, err);
    for (size_t i = 0; i < origin->block_count && status == DRY_OK; i++) {
        if (origin->block_requests[i] != DRYI_NO_BLOCK)
            m->handles[origin->block_requests[i]] = handles[i];
    }
    dryi_memory_free(&m->memory, handles, count, sizeof *handles);
    for (size_t i = 0; i < origin->segment_count && status == DRY_OK; i++) {
        if (!is_default(origin->segments[i].segment.pool)) {
            uint8_t *is_held = hold_of(m, origin->segments[i].segment.pool);
            if (!is_held)
                return dryi_fail_memory(err, "the pools before the window");
            *is_held = 1; /* restored with one user */
        }
    }
    return status == DRY_OK ? dryi_machine_begin_pending_frees(m) : status;
}

/* --- what it cost ------------------------------------------------------------------------- */

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
