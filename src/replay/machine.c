/* SPDX-License-Identifier: Apache-2.0 */
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
    return dry_sim_create(&sim_options, &m->sim, err);
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
    if (status == DRY_OK) {
        struct dryi_torch_options torch_options = {
            .conf = options->conf,
            .rules = options->rules,
            .device = dry_sim_get_device(m->sim),
            .memory = &m->memory,
            .observer = options->observer,
            .progress_is_told = true,
        };
        status = dryi_torch_create(&torch_options, &m->place, err);
    }
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
    dryi_torch_destroy(m->place);
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
 * A record tells where each block lies, not when scopes began and ended: a scope is open for
 * one allocation, and every pool keeps exactly one user until its memory is given back.
 */
static enum dry_status
enter_pool(struct dryi_machine *m, struct dryi_pool_id pool)
{
    uint8_t *is_held = hold_of(m, pool);
    if (!is_held)
        return DRY_ERR_MEMORY;
    enum dry_status status = dryi_torch_begin_pool(m->place, pool);
    if (status == DRY_OK && *is_held)
        status = dryi_torch_release_pool(m->place, pool);
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
    return dryi_torch_release_pool(m->place, pool);
}

/* --- operations --------------------------------------------------------------------------- */

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
        dryi_torch_alloc(m->place, p->sizes[request], lane->stream, block);
    if (has_pool && dryi_torch_end_pool(m->place, lane->pool) != DRY_OK)
        return DRY_ERR_ARGUMENT;
    return status == DRY_ERR_ARGUMENT ? DRY_ERR_NO_SPACE : status; /* 1 EiB and more */
}

static enum dry_status
free_request(struct dryi_machine *m, uint32_t request)
{
    m->request = request;
    enum dry_status status = dryi_torch_free(m->place, m->handles[request]);
    if (status == DRY_OK)
        m->handles[request] = DRYI_NO_BLOCK;
    return status;
}

static void
finish_stream(struct dryi_machine *m, uint64_t stream)
{
    dry_sim_complete_stream(m->sim, stream);
    dryi_torch_stream_progressed(m->place, stream);
}

/* A scope stated by the program itself (plain traces): the place counts its users. */
static enum dry_status
scope_op(struct dryi_machine *m, bool begins, struct dryi_pool_id pool)
{
    enum dry_status status = begins ? dryi_torch_begin_pool(m->place, pool)
                                    : dryi_torch_end_pool(m->place, pool);
    if (status == DRY_OK && !begins)
        status = dryi_torch_release_pool(m->place, pool);
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
        return dryi_torch_record_stream(m->place, m->handles[arg], m->stream);
    case OP_STREAM_DONE:
        finish_stream(m, dryi_program_stream(p, arg));
        return DRY_OK;
    case OP_EMPTY_CACHE:
        return dryi_torch_empty_cache(m->place, (struct dryi_pool_id){0, 0});
    case OP_DEVICE_FULL:
        return DRY_OK;
    case OP_POOL_BEGIN:
    case OP_POOL_END:
        return scope_op(m, kind == OP_POOL_BEGIN, dryi_program_lane(p, arg)->pool);
    case OP_POOL_RELEASE:
        return release_pool(m, dryi_program_lane(p, arg)->pool);
    case OP_EMPTY_POOL:
        return dryi_torch_empty_cache(m->place, dryi_program_lane(p, arg)->pool);
    }
    return DRY_OK;
}

/* --- beginnings --------------------------------------------------------------------------- */

/* Ghosts whose free was asked before the window wait for a stream of their own. */
enum dry_status
dryi_machine_begin_pending_frees(struct dryi_machine *m)
{
    const struct dryi_program *p = m->program;
    enum dry_status status = DRY_OK;
    for (uint32_t g = 0; g < p->ghost_count && status == DRY_OK; g++) {
        if (p->ghosts[g].pending_stream == NO_STREAM)
            continue;
        uint64_t stream = dryi_program_stream(p, p->ghosts[g].pending_stream);
        status = dryi_torch_record_stream(m->place, m->handles[g], stream);
        if (status == DRY_OK)
            status = free_request(m, g);
    }
    return status;
}

enum dry_status
dryi_machine_place_ghost(struct dryi_machine *m, uint32_t ghost)
{
    return alloc_request(m, ghost, &m->handles[ghost]);
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
    enum dry_status status = dryi_torch_restore(m->place, origin->segments,
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
