/* SPDX-License-Identifier: Apache-2.0 */

/* One pass computes the lives, place/offline packs them. Cost: O(operations), plus the packing. */
#include "replay/packing.h"

#include "base/fail.h"
#include "base/memory.h"

static bool
carried_lives(const struct dryi_program *p, uint32_t request)
{
    return p->carried[request].pending_stream == NO_STREAM;
}

/* Return whether operation `op` frees a request that got no memory. */
static bool
is_vain_free(const struct dryi_program *p, size_t op)
{
    return op > 0 && p->kinds[op - 1] == OP_OOM && p->args[op - 1] == p->args[op];
}

/* --- lives -------------------------------------------------------------------------------- */

/* Set the life of each request. A request that never got memory keeps size 0. */
static void
follow(const struct dryi_program *p, struct dryi_life *lives)
{
    uint64_t end = p->op_count + 1;
    for (uint32_t i = 0; i < p->carried_count; i++) {
        if (carried_lives(p, i))
            lives[i] = (struct dryi_life){.end = end, .size = p->sizes[i]};
    }
    for (size_t op = 0; op < p->op_count; op++) {
        uint32_t request = p->args[op];
        uint64_t now = op + 1;
        if (p->kinds[op] == OP_ALLOC)
            lives[request] =
                (struct dryi_life){.begin = now, .end = end, .size = p->sizes[request]};
        else if (p->kinds[op] == OP_FREE)
            lives[request].end = now;
    }
}

/* Move the lives of size > 0 to the front; requests[i] becomes the request of life i. */
static size_t
compact(struct dryi_life *lives, uint32_t *requests, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (lives[i].size == 0)
            continue;
        lives[kept] = lives[i];
        requests[kept++] = (uint32_t)i;
    }
    return kept;
}

static enum dry_status
pack(struct dryi_packed_program *packed, struct dryi_life *lives, uint32_t *requests,
     const struct dryi_packing_options *options, struct dry_error *err)
{
    size_t count = compact(lives, requests, packed->request_count);
    uint64_t *offsets = packed->offsets;
    enum dry_status status =
        dryi_offline_pack(lives, count, options, offsets, &packed->packing, err);
    if (status == DRY_ERR_ARGUMENT)
        return dryi_fail(err, DRY_ERR_LIMIT, "the sizes cannot be added up");
    if (status != DRY_OK)
        return status;
    /* Reorder offsets from lives to requests in place. Go from the end: a life's index is
       never above its request's. */
    size_t next = packed->request_count;
    for (size_t i = count; i-- > 0;) {
        while (next - 1 > requests[i])
            offsets[--next] = DRYI_NOWHERE;
        offsets[--next] = offsets[i];
    }
    while (next > 0)
        offsets[--next] = DRYI_NOWHERE;
    return DRY_OK;
}

enum dry_status
dryi_packed_program_init(struct dryi_packed_program *packed, const struct dryi_program *p,
                         const struct dryi_packing_options *options,
                         struct dry_error *err)
{
    *packed =
        (struct dryi_packed_program){.memory = dryi_memory_or_default(options->memory)};
    const struct dry_memory *memory = &packed->memory;
    size_t count = p->request_count, capacity = count + 1;
    packed->request_count = count;
    packed->offsets = dryi_memory_zalloc(memory, capacity, sizeof *packed->offsets);
    struct dryi_life *lives = dryi_memory_zalloc(memory, capacity, sizeof *lives);
    uint32_t *requests = dryi_memory_zalloc(memory, capacity, sizeof *requests);
    enum dry_status status;
    if (!packed->offsets || !lives || !requests) {
        status = dryi_fail_memory(err, "the lives of a program");
    } else {
        follow(p, lives);
        status = pack(packed, lives, requests, options, err);
    }
    dryi_memory_free(memory, lives, capacity, sizeof *lives);
    dryi_memory_free(memory, requests, capacity, sizeof *requests);
    if (status != DRY_OK)
        dryi_packed_program_finish(packed);
    return status;
}

void
dryi_packed_program_finish(struct dryi_packed_program *packed)
{
    if (!packed->memory.resize)
        return;
    dryi_memory_free(&packed->memory, packed->offsets, packed->request_count + 1,
                     sizeof *packed->offsets);
    *packed = (struct dryi_packed_program){0};
}

/* --- peak of live bytes ------------------------------------------------------------------- */

static bool
add(uint64_t *live, uint64_t *peak, uint64_t size)
{
    if (*live > UINT64_MAX - size)
        return false;
    *live += size;
    *peak = *live > *peak ? *live : *peak;
    return true;
}

uint64_t
dryi_program_live_peak(const struct dryi_program *p)
{
    uint64_t live = 0, peak = 0;
    for (uint32_t i = 0; i < p->carried_count; i++) {
        if (carried_lives(p, i) && !add(&live, &peak, p->sizes[i]))
            return 0;
    }
    for (size_t op = 0; op < p->op_count; op++) {
        if (p->kinds[op] == OP_ALLOC && !add(&live, &peak, p->sizes[p->args[op]]))
            return 0;
        if (p->kinds[op] == OP_FREE && !is_vain_free(p, op))
            live -= p->sizes[p->args[op]];
    }
    return peak;
}
