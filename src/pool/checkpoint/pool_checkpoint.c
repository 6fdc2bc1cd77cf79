/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Checkpoints of private pools. The place restores the blocks. This file stores the walk of a pool
 * with the addresses handed out, and updates the address table during a restore.
 *
 * An address from dry_pool_alloc_aligned() can be inside its block. So a checkpoint stores the
 * address of each block, and a restore looks up all addresses before it begins.
 */

#include <drystone/pool.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/memory.h"
#include "pool/history.h"
#include "pool/pool_address.h"
#include "pool/pool_lock.h"

struct dry_pool_checkpoint {
    struct dry_memory memory;
    struct dry_pool *pool;
    struct dryi_pool_id id;
    uint64_t hold;                  /* result of the place's hold_pool */
    struct dryi_block_info *blocks; /* all of the pool, by address */
    uint64_t *addresses; /* address handed out if the block was in use, else 0 */
    size_t count, used_count;
    size_t capacity, address_capacity;
};

/* --- taking ------------------------------------------------------------------------------- */

static enum dry_status
keep_blocks(void *visitor, const struct dryi_segment_info *segment,
            const struct dryi_block_info *blocks, size_t count)
{
    struct dry_pool_checkpoint *c = visitor;
    if (!dryi_is_same_pool(segment->pool, c->id))
        return DRY_OK;
    if (!dryi_memory_grow(&c->memory, &c->blocks, &c->capacity, c->count + count,
                          sizeof *c->blocks) ||
        !dryi_memory_grow(&c->memory, &c->addresses, &c->address_capacity,
                          c->count + count, sizeof *c->addresses))
        return DRY_ERR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        if (blocks[i].pending)
            return DRY_END;
        c->used_count += blocks[i].allocated;
        c->addresses[c->count] = 0;
        c->blocks[c->count++] = blocks[i];
    }
    return DRY_OK;
}

/* Return the index of the block that begins at this address. Requires that there is one. */
static size_t
find_saved(const struct dry_pool_checkpoint *c, uint64_t begin)
{
    DRYI_ASSERT_SLOW(c->count > 0);
    size_t lo = 0, hi = c->count;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (c->blocks[mid].addr <= begin)
            lo = mid;
        else
            hi = mid;
    }
    DRYI_ASSERT_SLOW(c->blocks[lo].addr == begin);
    return lo;
}

/* Does this slot belong to a block in use of the checkpoint's pool? */
static bool
is_of_pool(const struct dry_pool_checkpoint *c, const struct dryi_pool_slot *slot,
           struct dryi_block_info *info)
{
    const struct dryi_place *place = &c->pool->place;
    if (!slot->key || !dryi_pool_slot_is_used(c->pool, slot))
        return false;
    place->ops->get_block(place->self, slot->block, info);
    return dryi_is_same_pool(info->pool, c->id);
}

static void
keep_addresses(struct dry_pool_checkpoint *c)
{
    const struct dryi_pool_caches *f = &c->pool->caches;
    for (uint32_t i = 0; i <= f->count; i++) {
        const struct dryi_pool_table *table = &f->all[i]->table;
        for (size_t k = 0; k < table->slot_count; k++) {
            struct dryi_block_info info;
            if (is_of_pool(c, &table->slots[k], &info))
                c->addresses[find_saved(c, info.addr)] =
                    dryi_pool_slot_address(&table->slots[k]);
        }
    }
}

static enum dry_status
fill(struct dry_pool_checkpoint *c, struct dry_error *err)
{
    const struct dryi_place *place = &c->pool->place;
    enum dry_status status = place->ops->walk(place->self, keep_blocks, c);
    if (status == DRY_END)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "a block of the pool waits for another stream");
    if (status != DRY_OK)
        return dryi_fail(err, status, "the pool cannot be walked");
    keep_addresses(c);
    return DRY_OK;
}

static void
let_go(struct dry_pool_checkpoint *c)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(c->pool));
    const struct dryi_place *place = &c->pool->place;
    if (place->ops->unhold_pool)
        place->ops->unhold_pool(place->self, c->id, c->hold);
}

static void
free_checkpoint(struct dry_pool_checkpoint *c)
{
    struct dry_memory m = c->memory;
    dryi_memory_free(&m, c->blocks, c->capacity, sizeof *c->blocks);
    dryi_memory_free(&m, c->addresses, c->address_capacity, sizeof *c->addresses);
    dryi_memory_free(&m, c, 1, sizeof *c);
}

/* Hold the pool, and store its blocks. Requires the lock. */
static enum dry_status
take(struct dry_pool_checkpoint *c, struct dry_error *err)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(c->pool));
    const struct dryi_place *place = &c->pool->place;
    enum dry_status status = place->ops->hold_pool(place->self, c->id, &c->hold);
    if (status == DRY_ERR_ARGUMENT)
        return dryi_fail(err, status, "there is no such private pool, or nobody uses it");
    if (status != DRY_OK)
        return dryi_fail(err, status, "an event could not be recorded");
    status = fill(c, err);
    if (status != DRY_OK)
        let_go(c);
    return status;
}

enum dry_status
dry_pool_checkpoint_private(struct dry_pool *pool, struct dry_pool_id id,
                            struct dry_pool_checkpoint **checkpoint,
                            struct dry_error *err)
{
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return dryi_fail(err, status,
                         "the pool belongs to the process that forked this one");
    struct dry_pool_checkpoint *c = dryi_memory_zalloc(&pool->memory, 1, sizeof *c);
    if (c) {
        c->memory = pool->memory;
        c->pool = pool;
        c->id = (struct dryi_pool_id){id.a, id.b};
        status = take(c, err);
    } else {
        status = dryi_fail_memory(err, "a checkpoint");
    }
    if (status == DRY_OK)
        *checkpoint = c;
    else if (c)
        free_checkpoint(c);
    dryi_pool_leave(pool);
    return status;
}

/* In the child of a fork only memory is freed: the lock's owner may not exist there. */
void
dry_pool_checkpoint_destroy(struct dry_pool_checkpoint *c)
{
    if (!c)
        return;
    struct dry_pool *pool = c->pool;
    bool is_parent = dryi_pool_enter(pool) == DRY_OK;
    if (is_parent)
        let_go(c);
    free_checkpoint(c);
    if (is_parent)
        dryi_pool_leave(pool);
}

/* --- going back --------------------------------------------------------------------------- */

struct restore {
    const struct dry_pool_checkpoint *c;
    const struct dry_pool_restore_visitor *visitor;
    struct dryi_map blocks; /* block in use at the begin -> index in `addresses` */
    uint64_t *addresses;
    size_t count, capacity;
    uint32_t context; /* context of the restoring request */
};

static bool
note_used(struct restore *r, const struct dryi_pool_slot *slot)
{
    const struct dry_memory *m = &r->c->memory;
    if (r->count >= UINT32_MAX ||
        !dryi_memory_grow(m, &r->addresses, &r->capacity, r->count + 1,
                          sizeof *r->addresses) ||
        !dryi_map_put(&r->blocks, slot->block, (uint32_t)r->count))
        return false;
    r->addresses[r->count++] = dryi_pool_slot_address(slot);
    return true;
}

/* Note the addresses of all blocks in use. False: out of memory. */
static bool
note_all_used(struct restore *r)
{
    const struct dryi_pool_caches *f = &r->c->pool->caches;
    for (uint32_t i = 0; i <= f->count; i++) {
        const struct dryi_pool_table *table = &f->all[i]->table;
        for (size_t k = 0; k < table->slot_count; k++) {
            struct dryi_block_info info;
            if (is_of_pool(r->c, &table->slots[k], &info) &&
                !note_used(r, &table->slots[k]))
                return false;
        }
    }
    return true;
}

/* Reserve space for all restored blocks in the table of streams without a cache. */
static bool
reserve_slots(const struct restore *r)
{
    struct dryi_pool_table *table = &r->c->pool->caches.all[0]->table;
    size_t wanted = table->count + r->c->used_count;
    while (wanted >= table->slot_count / 2) {
        if (!dryi_pool_table_grow(table))
            return false;
    }
    return true;
}

/* Set the next event's context. Frees get the request's only if frees are asked about. */
static void
on_begin(void *self, enum dry_action action)
{
    const struct restore *r = self;
    struct dry_pool *pool = r->c->pool;
    bool is_asked = action == DRY_ACTION_ALLOC ||
                    atomic_load_explicit(&pool->asks_free, memory_order_relaxed);
    pool->asking = is_asked ? r->context : DRY_NONE;
}

static void
on_freed(void *self, dryi_block block)
{
    const struct restore *r = self;
    const uint32_t *at = dryi_map_find(&r->blocks, block);
    DRYI_ASSERT(at);
    uint64_t address = r->addresses[*at];
    struct dryi_pool_found found = dryi_pool_seek(r->c->pool, address);
    DRYI_ASSERT(found.slot && found.slot->block == block);
    dryi_pool_table_remove(&found.cache->table, found.slot);
    r->visitor->freed(r->visitor->self, address);
}

static void
on_made(void *self, dryi_block block, size_t index)
{
    const struct restore *r = self;
    DRYI_ASSERT_SLOW(index < r->c->count);
    struct dry_pool *pool = r->c->pool;
    uint64_t address = r->c->addresses[index];
    dryi_pool_put(pool, pool->caches.all[0],
                  (struct dryi_pool_entry){.address = address, .block = block});
    r->visitor->live(r->visitor->self, address);
}

static enum dry_status
restore(struct restore *r, struct dry_error *err)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(r->c->pool));
    const struct dry_pool_checkpoint *c = r->c;
    const struct dryi_place *place = &c->pool->place;
    dryi_map_init(&r->blocks, &c->memory);
    enum dry_status status = DRY_OK;
    if (note_all_used(r) && reserve_slots(r)) {
        struct dryi_restore_watcher watcher = {
            .begin = on_begin, .freed = on_freed, .made = on_made, .self = r};
        struct dryi_restored wanted = {
            .pool = c->id, .hold = c->hold, .blocks = c->blocks, .count = c->count};
        status = place->ops->restore_pool(place->self, &wanted, &watcher, err);
    } else {
        status = dryi_fail_memory(err, "a pool's blocks in use");
    }
    dryi_map_finish(&r->blocks);
    dryi_memory_free(&c->memory, r->addresses, r->capacity, sizeof *r->addresses);
    return status;
}

enum dry_status
dry_pool_restore_private(const struct dry_pool_checkpoint *checkpoint,
                         const struct dry_pool_restore_visitor *visitor,
                         struct dry_error *err)
{
    struct dry_pool *pool = checkpoint->pool;
    struct dryi_asked asked = {.context = DRY_NONE};
    if (atomic_load_explicit(&pool->asks_alloc, memory_order_relaxed))
        asked = dryi_history_ask(pool);
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return dryi_fail(err, status,
                         "the pool belongs to the process that forked this one");
    dryi_history_begin(pool, &asked);
    struct restore r = {.c = checkpoint, .visitor = visitor, .context = asked.context};
    status = restore(&r, err);
    dryi_history_end(pool, &asked);
    dryi_pool_leave(pool);
    return status;
}
