/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests with only the cache locked; see pool_cache.h. An alloc finds its cache in a hash table
 * by stream, a free by two hints. Both are read without a lock. So a cache is checked again under
 * its lock: it may be closed, or belong to another stream by then.
 */

#include "pool/pool_cache.h"

#include "base/assert.h"
#include "base/bits.h"
#include "base/memory.h"
#include "pool/pool_lock.h"
#include "pool/pool_stream.h"

/* --- stream caches ------------------------------------------------------------------------ */

/* Return the entry of the stream's cache, or the empty one for it. NULL: the table is full. */
static _Atomic(struct dryi_pool_cache *) *
find_entry(struct dryi_pool_caches *f, uint64_t stream)
{
    uint64_t hash = dryi_mix64(stream);
    for (size_t i = 0; i < 2 * DRYI_POOL_CACHES; i++) {
        size_t at = (hash + i) % (2 * DRYI_POOL_CACHES);
        const struct dryi_pool_cache *cache =
            atomic_load_explicit(&f->by_stream[at], memory_order_acquire);
        if (!cache ||
            atomic_load_explicit(&cache->stream, memory_order_relaxed) == stream)
            return &f->by_stream[at];
    }
    return NULL;
}

/* Return the stream's cache; NULL: none. */
static struct dryi_pool_cache *
get_cache(struct dryi_pool_caches *f, uint64_t number)
{
    _Atomic(struct dryi_pool_cache *) *at = find_entry(f, number);
    struct dryi_pool_cache *cache =
        at ? atomic_load_explicit(at, memory_order_acquire) : NULL;
    /* Without the lock, an entry that was empty may hold another stream's cache by now. */
    bool is_its =
        cache && atomic_load_explicit(&cache->stream, memory_order_relaxed) == number;
    return is_its ? cache : NULL;
}

static bool
is_listed(const struct dryi_pool_caches *f, const struct dryi_pool_cache *cache)
{
    uint32_t i = 0;
    while (i < f->open_count && f->open[i] != cache)
        i++;
    return i < f->open_count;
}

#define CACHE_IDLE 4096 /* look-ups served by other caches after which a cache is idle */
#define CACHE_TURNS                                                                      \
    16 /* failed look-ups after which one cache is examined for idleness */

/*
 * Return a cache that was long unused and has no address in its table, with its blocks flushed.
 * NULL: none in this turn.
 */
static struct dryi_pool_cache *
find_idle(struct dry_pool *pool)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&pool->lock));
    struct dryi_pool_caches *f = &pool->caches;
    if (++f->misses % CACHE_TURNS != 0)
        return NULL;
    f->turn = f->turn % f->count + 1;
    struct dryi_pool_cache *cache = f->all[f->turn];
    if (cache->is_open || is_listed(f, cache) || f->finds - cache->found_at < CACHE_IDLE)
        return NULL;
    pool->place.caches->flush(cache->at_place);
    return cache->table.count == 0 ? cache : NULL;
}

/*
 * Rebuild the hash table. A thread that searches it without the lock may miss its cache; it then
 * takes the lock.
 */
static void
list_streams(struct dryi_pool_caches *f)
{
    for (size_t i = 0; i < 2 * DRYI_POOL_CACHES; i++)
        atomic_store_explicit(&f->by_stream[i], NULL, memory_order_relaxed);
    for (uint32_t i = 1; i <= f->count; i++) {
        uint64_t stream = atomic_load_explicit(&f->all[i]->stream, memory_order_relaxed);
        atomic_store_explicit(find_entry(f, stream), f->all[i], memory_order_release);
    }
}

/* Give an idle cache to another stream. */
static void
give_to(struct dry_pool *pool, struct dryi_pool_cache *idle, struct dryi_cache *cache,
        uint64_t stream)
{
    DRYI_ASSERT_SLOW(idle->table.count == 0);
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    dryi_lock_take(
        /* No other cache is locked; a thread without the pool's lock may be using this one. */
        &idle->lock);
    struct dryi_cache *before = idle->at_place;
    idle->at_place = cache;
    atomic_store_explicit(&idle->stream, stream, memory_order_relaxed);
    dryi_lock_give(&idle->lock);
    pool->place.caches->give_back(before);
    list_streams(&pool->caches);
}

static struct dryi_pool_cache *
make_cache(struct dry_pool *pool, uint64_t stream)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    struct dryi_pool_caches *f = &pool->caches;
    struct dryi_pool_cache *made = NULL;
    bool is_full = f->count == DRYI_POOL_CACHES;
    if (is_full)
        made = find_idle(pool);
    if (is_full && !made)
        return NULL;
    struct dryi_cache *cache = pool->place.caches->ask(pool->place.self, stream);
    if (!cache)
        return NULL;
    if (made) {
        give_to(pool, made, cache, stream);
        return made;
    }
    made = dryi_memory_zalloc(&pool->memory, 1, sizeof *made);
    if (!made) {
        pool->place.caches->give_back(cache);
        return NULL;
    }
    made->at_place = cache;
    atomic_init(&made->stream, stream);
    dryi_lock_init(&made->lock);
    dryi_pool_table_init(&made->table, &pool->memory);
    f->all[++f->count] = made;
    made->number = f->count;
    atomic_store_explicit(find_entry(f, stream), made, memory_order_release);
    return made;
}

/*
 * Add a cache to the open caches. Locks of caches are taken in the order of their numbers, so its
 * lock cannot be taken here. The cache is opened when the pool is unlocked.
 */
static void
open_cache(struct dryi_pool_caches *f, struct dryi_pool_cache *cache)
{
    DRYI_ASSERT_SLOW(f->open_count < DRYI_POOL_CACHES && cache->number > 0);
    uint32_t at = f->open_count++;
    for (; at > 0 && f->open[at - 1]->number > cache->number; at--) {
        f->open[at] = f->open[at - 1];
        f->open_caches[at] = f->open_caches[at - 1];
    }
    f->open[at] = cache;
    f->open_caches[at] = cache->at_place;
    cache->idle = 0;
    f->alone = 0;
}

struct dryi_pool_cache *
dryi_pool_cache_find(struct dry_pool *pool, uint64_t number, uint64_t handle)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    struct dryi_pool_caches *f = &pool->caches;
    if (!pool->place.caches)
        return &f->others;
    f->finds++;
    struct dryi_pool_cache *cache = get_cache(f, number);
    if (!cache)
        cache = make_cache(pool, number);
    if (!cache)
        return &f->others;
    cache->found_at = f->finds;
    if (dryi_pool_caches_are_shared(f) && !cache->is_open && !is_listed(f, cache))
        open_cache(f, cache);
    cache->handle = handle;
    f->last = dryi_pool_caches_are_shared(f) || pool->scopes ? NULL : cache;
    return cache;
}

void
dryi_pool_caches_init(struct dry_pool *pool)
{
    struct dryi_pool_caches *f = &pool->caches;
    dryi_pool_table_init(&f->others.table, &pool->memory);
    f->all[0] = &f->others;
}

void
dryi_pool_caches_finish(struct dry_pool *pool)
{
    struct dryi_pool_caches *f = &pool->caches;
    for (uint32_t i = 1; i <= f->count; i++) {
        dryi_lock_finish(&f->all[i]->lock);
        dryi_pool_table_finish(&f->all[i]->table);
        dryi_memory_free(&pool->memory, f->all[i], 1, sizeof *f->all[i]);
    }
    dryi_pool_table_finish(&f->others.table);
    f->count = 0;
}

/* --- addresses ---------------------------------------------------------------------------- */

void
dryi_pool_cache_forget(struct dry_pool *pool, uint64_t stream, uint64_t address)
{
    struct dryi_pool_cache *f = get_cache(&pool->caches, stream);
    struct dryi_pool_slot *slot = f ? dryi_pool_table_seek(&f->table, address) : NULL;
    if (slot)
        dryi_pool_table_remove(&f->table, slot);
}

/* Return the thread's hint: the cache that it last used. */
static _Atomic uint8_t *
thread_hint(struct dry_pool *pool)
{
    return &pool->caches
                .thread_hints[dryi_spread(dryi_thread_self(), DRYI_POOL_THREAD_BITS)];
}

/* --- requests ----------------------------------------------------------------------------- */

/* Hand out a registered block of the cache. Requires the cache's lock. */
static inline bool
hand_out(const struct dry_pool *pool, const struct dryi_pool_cache *f, uint64_t size,
         uint64_t *address)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&f->lock));
    uint64_t found = pool->place.caches->take(f->at_place, size);
    if (found == 0)
        return false;
    *address = found;
    return true;
}

/*
 * Does the cache serve this stream? It may have been given to another stream with the same handle.
 * Requires the cache's lock.
 */
static bool
serves(const struct dryi_pool_cache *cache, uint64_t number, uint64_t stream)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&cache->lock));
    return cache->is_open && cache->handle == stream &&
           atomic_load_explicit(&cache->stream, memory_order_relaxed) == number;
}

/*
 * May the cache serve another request without all locks? This is limited, because idle caches are
 * detected only with all locks held.
 */
static bool
goes_beside(const struct dryi_pool_cache *cache)
{
    return cache->beside < DRYI_POOL_IDLE_MAX;
}

/*
 * Cut a block from the stream's free memory. Without the pool's lock no memory may be allocated, so
 * the table must have space already.
 */
static bool
cut_at(struct dry_pool *pool, struct dryi_pool_cache *f, uint64_t size, bool has_pool,
       struct dryi_pool_entry *entry)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&f->lock));
    DRYI_ASSERT_SLOW(!has_pool || dryi_lock_is_taken(&pool->lock));
    bool has_room = has_pool ? dryi_pool_table_reserve(&f->table)
                             : dryi_pool_table_has_room(&f->table);
    entry->is_registered = true;
    bool is_cut = has_room && goes_beside(f) &&
                  pool->place.caches->cut(f->at_place, size, has_pool, &entry->block);
    f->beside += is_cut;
    return is_cut;
}

/* Enter the address of a block just cut. Returns the address. */
static uint64_t
enter_cut(struct dry_pool *pool, struct dryi_pool_cache *f, struct dryi_pool_entry *entry)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&f->lock));
    entry->address = pool->place.ops->get_address(pool->place.self, entry->block);
    dryi_pool_put(pool, f, *entry);
    return entry->address;
}

bool
dryi_pool_cache_alloc(struct dry_pool *pool, uint64_t size, uint64_t stream,
                      uint64_t *address)
{
    uint64_t number = dryi_pool_get_number(pool, stream);
    struct dryi_pool_cache *f = get_cache(&pool->caches, number);
    if (!f)
        return false;
    dryi_lock_take(&f->lock);
    bool is_done = false;
    if (serves(f, number, stream)) {
        struct dryi_pool_entry entry;
        is_done = hand_out(pool, f, size, address);
        if (!is_done && cut_at(pool, f, size, false, &entry)) {
            *address = enter_cut(pool, f, &entry);
            is_done = true;
        }
    }
    dryi_lock_give(&f->lock);
    dryi_pool_note_hint(thread_hint(pool), f);
    return is_done;
}

bool
dryi_pool_cache_cut(struct dry_pool *pool, uint64_t size, uint64_t stream,
                    uint64_t *address)
{
    uint64_t number = dryi_pool_get_number(pool, stream);
    struct dryi_pool_cache *f = get_cache(&pool->caches, number);
    if (!f)
        return false;
    dryi_lock_take(&pool->lock);
    dryi_lock_take(&f->lock);
    struct dryi_pool_entry entry;
    bool is_done = serves(f, number, stream) && cut_at(pool, f, size, true, &entry);
    dryi_lock_give(&pool->lock); /* the rest needs only the cache's lock */
    if (is_done)
        *address = enter_cut(pool, f, &entry);
    dryi_lock_give(&f->lock);
    return is_done;
}

bool
dryi_pool_cache_free_alone(struct dry_pool *pool, const struct dryi_pool_found *found)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    return found->slot && dryi_pool_slot_is_registered(found->slot) &&
           !dryi_pool_caches_are_shared(&pool->caches) &&
           pool->place.caches->put(found->cache->at_place, found->slot->block);
}

/*
 * Try to free a block at this cache. Returns false if the address is not in its table. *is_done:
 * the block was freed.
 */
static bool
free_at(const struct dry_pool *pool, struct dryi_pool_cache *f, uint64_t address,
        bool has_pool, bool *is_done)
{
    DRYI_ASSERT_SLOW(!has_pool || dryi_lock_is_taken(&pool->lock));
    if (f->number == 0)
        return false;
    dryi_lock_take(&f->lock);
    struct dryi_pool_slot *slot =
        f->is_open ? dryi_pool_table_seek(&f->table, address) : NULL;
    if (slot && dryi_pool_slot_is_registered(slot)) {
        const struct dryi_cache_ops *caches = pool->place.caches;
        bool is_put = caches->put(f->at_place, slot->block);
        bool is_merged = !is_put && goes_beside(f) &&
                         caches->merge(f->at_place, slot->block, has_pool);
        if (is_merged) {
            dryi_pool_table_remove(&f->table, slot);
            f->beside++;
        }
        *is_done = is_put || is_merged;
    }
    dryi_lock_give(&f->lock);
    return slot != NULL;
}

/* Guess two caches, the more likely one first. Number 0: no guess, or equal to the first. */
static void
guess_caches(struct dry_pool *pool, uint64_t address, struct dryi_pool_cache *guesses[2])
{
    guesses[0] = dryi_pool_hinted(pool, thread_hint(pool));
    guesses[1] = dryi_pool_hinted(pool, dryi_pool_hint(pool, address));
    if (guesses[1] == guesses[0])
        guesses[1] = &pool->caches.others;
}

bool
dryi_pool_cache_free(struct dry_pool *pool, uint64_t address)
{
    struct dryi_pool_cache *guesses[2];
    guess_caches(pool, address, guesses);
    bool is_done = false;
    if (!free_at(pool, guesses[0], address, false, &is_done))
        free_at(pool, guesses[1], address, false, &is_done);
    return is_done;
}

bool
dryi_pool_cache_merge(struct dry_pool *pool, uint64_t address)
{
    bool is_done = false;
    const struct dryi_pool_caches *caches = &pool->caches;
    struct dryi_pool_cache *guesses[2];
    dryi_lock_take(&pool->lock);
    guess_caches(pool, address, guesses);
    bool is_found = free_at(pool, guesses[0], address, true, &is_done) ||
                    free_at(pool, guesses[1], address, true, &is_done) ||
                    dryi_pool_table_seek(&caches->others.table, address);
    for (uint32_t i = 1; i <= caches->count && !is_found; i++) {
        is_found = free_at(pool, caches->all[i], address, true, &is_done);
        if (is_found)
            dryi_pool_note(pool, address, caches->all[i]);
    }
    dryi_lock_give(&pool->lock);
    return is_done;
}
