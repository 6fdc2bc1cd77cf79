/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place/paged, its stream caches used with the cache alone. Blocks that are taken, put, cut and
 * merged there, among requests of the place itself, never overlap. They are counted after a
 * balance, and leave every invariant whole. A seed decides which call comes next. A naive list says
 * what is in use and what lies in a cache.
 */
#include "support/cmocka.h"

#include <string.h>

#include <drystone/sim.h>

#include "base/bits.h"
#include "place/paged/paged.h"
#include "support/random.h"

#define STREAMS 3
#define PIECES_MAX 600
#define USED_MAX 300

struct piece {
    dryi_block block;
    uint64_t address, size;
    unsigned stream;
    bool is_used, is_registered; /* not used: it lies in its cache */
};

struct stage {
    struct random random;
    struct dry_sim *sim;
    struct dryi_place place;
    struct dryi_cache *caches[STREAMS];
    struct piece pieces[PIECES_MAX];
    size_t count, used;
    uint64_t requested, peak_requested, bytes, peak_bytes;
    size_t taken, put, cut, merged, lost, refused; /* how often each happened */
    size_t beside; /* of those cut and merged, with the cache alone */
};

static uint64_t
round_up(uint64_t size)
{
    return (size + 511) & ~UINT64_C(511);
}

static void
forget(struct stage *s, size_t i)
{
    s->pieces[i] = s->pieces[--s->count];
}

static size_t
find_piece(const struct stage *s, uint64_t address)
{
    size_t i = 0;
    while (i < s->count && s->pieces[i].address != address)
        i++;
    return i;
}

/* Forget a cached block that is whole no more, or that the place itself handed out. */
static void
lose(void *self, uint64_t stream, uint64_t address)
{
    struct stage *s = self;
    size_t i = find_piece(s, address);
    assert_true(i < s->count && !s->pieces[i].is_used && s->pieces[i].stream == stream);
    forget(s, i);
    s->lost++;
}

static void
begin(struct stage *s, uint64_t seed, uint64_t capacity)
{
    memset(s, 0, sizeof *s);
    random_init(&s->random, seed);
    struct dry_sim_options so;
    dry_sim_options_init(&so);
    so.capacity_bytes = capacity;
    assert_int_equal(dry_sim_create(&so, &s->sim, NULL), DRY_OK);
    struct dryi_paged_options options = {.device = dry_sim_get_device(s->sim)};
    dryi_paged_conf_init(&options.conf);
    assert_int_equal(dryi_paged_create(&options, &s->place, NULL), DRY_OK);
    s->place.caches->watch(s->place.self, (struct dryi_cache_watcher){lose, s});
    for (unsigned i = 0; i < STREAMS; i++) {
        s->caches[i] = s->place.caches->ask(s->place.self, i);
        assert_non_null(s->caches[i]);
    }
    s->place.caches->share(s->place.self, true);
}

static void
end(struct stage *s)
{
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    s->place.ops->destroy(s->place.self);
    dry_sim_get_account(s->sim, &account);
    assert_true(account.used_bytes == 0 && account.events_live == 0);
    dry_sim_destroy(s->sim);
}

/* Balance, as the pool does before it asks the place itself. */
static void
balance(struct stage *s)
{
    (void)s->place.caches->balance(s->place.self, s->caches, STREAMS);
}

static void
note_use(struct stage *s, uint64_t size)
{
    s->used++;
    s->requested += size;
    s->bytes += round_up(size);
    if (s->requested > s->peak_requested)
        s->peak_requested = s->requested;
    if (s->bytes > s->peak_bytes)
        s->peak_bytes = s->bytes;
}

static void
add(struct stage *s, struct piece piece)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct piece *o = &s->pieces[i];
        assert_true(piece.address + round_up(piece.size) <= o->address ||
                    o->address + round_up(o->size) <= piece.address);
    }
    assert_true(s->count < PIECES_MAX);
    piece.is_used = true;
    s->pieces[s->count++] = piece;
    note_use(s, piece.size);
}

static bool
take(struct stage *s, unsigned stream, uint64_t size)
{
    uint64_t address = s->place.caches->take(s->caches[stream], size);
    if (address == 0)
        return false;
    size_t i = find_piece(s, address);
    assert_true(i < s->count && !s->pieces[i].is_used);
    assert_true(s->pieces[i].stream == stream &&
                round_up(s->pieces[i].size) == round_up(size));
    s->pieces[i].is_used = true;
    s->pieces[i].size = size;
    note_use(s, size);
    s->taken++;
    return true;
}

static bool
cut(struct stage *s, unsigned stream, uint64_t size)
{
    const struct dryi_place_ops *ops = s->place.ops;
    struct piece piece = {.size = size, .stream = stream, .is_registered = true};
    bool is_beside = s->place.caches->cut(s->caches[stream], size, false, &piece.block);
    if (!is_beside && !s->place.caches->cut(s->caches[stream], size, true, &piece.block))
        return false;
    s->beside += is_beside;
    piece.address = ops->get_address(s->place.self, piece.block);
    assert_true(find_piece(s, piece.address) == s->count); /* else it was to be taken */
    add(s, piece);
    s->cut++;
    return true;
}

static void
ask(struct stage *s, unsigned stream, uint64_t size)
{
    const struct dryi_place_ops *ops = s->place.ops;
    struct piece piece = {.size = size, .stream = stream};
    balance(s);
    enum dry_status status = ops->alloc(s->place.self, size, stream, &piece.block);
    if (status == DRY_ERR_NO_SPACE) {
        s->refused++;
        return;
    }
    assert_int_equal(status, DRY_OK);
    piece.address = ops->get_address(s->place.self, piece.block);
    piece.is_registered =
        s->place.caches->register_address(s->caches[stream], piece.block);
    add(s, piece);
}

static void
take_one(struct stage *s)
{
    static const uint64_t often[] = {1, 700, 4096, 65536, 65537, 131072, 3 << 20};
    uint64_t size = often[random_below(&s->random, 7)];
    if (random_below(&s->random, 4) == 0)
        size = 1 +
               random_below(&s->random, random_below(&s->random, 2) ? 8 << 20 : 64 << 10);
    unsigned stream = (unsigned)random_below(&s->random, STREAMS);
    if (!take(s, stream, size) && !cut(s, stream, size))
        ask(s, stream, size);
}

static void
give_to_place(struct stage *s, size_t i)
{
    const struct dryi_place_ops *ops = s->place.ops;
    struct piece *p = &s->pieces[i];
    balance(s);
    assert_int_equal(ops->free(s->place.self, p->block), DRY_OK);
    if (p->is_registered && s->place.caches->holds(s->place.self, p->block))
        p->is_used = false;
    else
        forget(s, i);
}

static size_t
any_used(struct stage *s)
{
    size_t i = random_below(&s->random, s->count);
    while (!s->pieces[i].is_used)
        i = i + 1 == s->count ? 0 : i + 1;
    return i;
}

static bool
merge(struct stage *s, size_t i)
{
    const struct piece *p = &s->pieces[i];
    struct dryi_cache *cache = s->caches[p->stream];
    bool is_beside = s->place.caches->merge(cache, p->block, false);
    if (!is_beside && !s->place.caches->merge(cache, p->block, true))
        return false;
    s->beside += is_beside;
    s->merged++;
    forget(s, i);
    return true;
}

static void
give_one(struct stage *s)
{
    const struct dryi_place_ops *ops = s->place.ops;
    size_t i = any_used(s);
    struct piece *p = &s->pieces[i];
    s->used--;
    s->requested -= p->size;
    s->bytes -= round_up(p->size);
    if (p->is_registered && random_below(&s->random, 50) == 0) {
        balance(s);
        assert_int_equal(ops->record_stream(s->place.self, p->block, STREAMS + 1),
                         DRY_OK);
        assert_false(s->place.caches->put(s->caches[p->stream], p->block));
        assert_false(merge(s, i));
        give_to_place(s, i);
        return;
    }
    bool is_put = p->is_registered && random_below(&s->random, 8) > 0 &&
                  s->place.caches->put(s->caches[p->stream], p->block);
    if (is_put) {
        assert_false(merge(s, i)); /* twice */
        p->is_used = false;
        s->put++;
    } else if (!p->is_registered || !merge(s, i)) {
        give_to_place(s, i);
    }
}

static void
check(struct stage *s)
{
    struct dry_error err;
    struct dry_stats stats;
    balance(s);
    if (s->place.ops->check(s->place.self, &err) != DRY_OK)
        fail_msg("%s", err.text);
    s->place.ops->get_stats(s->place.self, &stats);
    assert_int_equal(stats.allocation.all.current, s->used);
    assert_true((uint64_t)stats.requested_bytes.all.peak >= s->peak_requested);
    uint64_t peak = (uint64_t)stats.allocated_bytes.all.peak;
    uint64_t above = (uint64_t)stats.reserved_bytes.all.peak / 64;
    above = above > 2 << 20 ? above : 2 << 20;
    assert_true(peak >= s->peak_bytes && peak <= s->peak_bytes + above);
    if (stats.active_bytes.all.current == stats.allocated_bytes.all.current) {
        assert_int_equal(stats.requested_bytes.all.current, s->requested);
    } else {
        dryi_block block; /* pending blocks need the place */
        assert_false(s->place.caches->cut(s->caches[0], 512, true, &block));
        dry_sim_complete_stream(s->sim, STREAMS + 1);
        s->place.ops->process_events(s->place.self);
    }
}

static void
caches_beside_the_place_are_what_a_list_says(void **state)
{
    (void)state;
    static struct stage s;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        begin(&s, seed, seed % 4 ? UINT64_C(8) << 30 : UINT64_C(500) << 20);
        for (int i = 0; i < 4000; i++) {
            bool grows = i / 500 % 2 == 0;
            uint64_t below = grows ? 40 : 60;
            if (s.used > 0 &&
                (s.used == USED_MAX || random_below(&s.random, 100) < below))
                give_one(&s);
            else
                take_one(&s);
            if (i % 61 == 0)
                check(&s);
        }
        check(&s);
        assert_true(s.taken > 100 && s.put > 100 && s.cut > 100 && s.merged > 100 &&
                    s.lost > 100 && s.beside > 100 && s.beside < s.cut + s.merged);
        end(&s);
    }
}

/* --- nobody shares ------------------------------------------------------------------------ */

/* A block in use at both places. */
struct pair {
    dryi_block block, twin;
    uint64_t address, size;
    unsigned stream;
    bool is_registered, is_found;
};

static bool
finds(const struct stage *s, uint64_t address, dryi_block block)
{
    return s->place.ops->find(s->place.self, address) == block;
}

static void
ask_both(struct stage *s, struct stage *twin, struct pair *pair)
{
    struct dryi_cache_block got;
    enum dry_status status =
        dryi_paged_cache_alloc(s->caches[pair->stream], pair->size, true, &got);
    assert_int_equal(
        twin->place.ops->alloc(twin->place.self, pair->size, pair->stream, &pair->twin),
        status);
    pair->size = status == DRY_OK ? pair->size : 0;
    s->refused += status != DRY_OK;
    if (status != DRY_OK)
        return;
    assert_true(got.address ==
                twin->place.ops->get_address(twin->place.self, pair->twin));
    assert_true(got.address == s->place.ops->get_address(s->place.self, got.block));
    pair->is_found = finds(s, got.address, got.block);
    struct dryi_block_info info; /* small requests may have a large block */
    s->place.ops->get_block(s->place.self, got.block, &info);
    assert_true(info.size >= round_up(pair->size));
    assert_true(pair->is_found == (info.size > s->place.cache_max));
    size_t i = find_piece(s, got.address);
    assert_int_equal(got.was_registered, pair->is_found || i < s->count);
    assert_false(pair->is_found && (got.is_registered || i < s->count));
    if (got.was_registered && !pair->is_found) {
        assert_true(!s->pieces[i].is_used && s->pieces[i].stream == pair->stream &&
                    round_up(s->pieces[i].size) == round_up(pair->size));
        forget(s, i);
        s->taken++;
    }
    pair->block = got.block;
    pair->address = got.address;
    pair->is_registered = got.is_registered;
}

static void
free_both(struct stage *s, struct stage *twin, const struct pair *pair)
{
    const struct dryi_place_ops *ops = s->place.ops;
    bool is_put = pair->is_registered && random_below(&s->random, 4) > 0 &&
                  s->place.caches->put(s->caches[pair->stream], pair->block);
    assert_true(finds(s, pair->address, pair->block) == pair->is_found);
    if (pair->is_found && random_below(&s->random, 4) > 0)
        assert_int_equal(dryi_paged_free_found(s->place.self, pair->address), DRY_OK);
    else if (!is_put)
        assert_int_equal(ops->free(s->place.self, pair->block), DRY_OK);
    assert_false(pair->is_found && finds(s, pair->address, pair->block));
    assert_int_equal(ops->free(twin->place.self, pair->twin), DRY_OK);
    if (!pair->is_registered || !s->place.caches->holds(s->place.self, pair->block))
        return;
    assert_true(s->count < PIECES_MAX);
    s->pieces[s->count++] = (struct piece){.address = pair->address,
                                           .size = pair->size,
                                           .stream = pair->stream,
                                           .block = pair->block};
    s->put += is_put;
}

static void
check_both(struct stage *s, struct stage *twin)
{
    struct dry_stats stats, twins;
    assert_int_equal(s->place.ops->check(s->place.self, NULL), DRY_OK);
    s->place.ops->get_stats(s->place.self, &stats);
    twin->place.ops->get_stats(twin->place.self, &twins);
    assert_memory_equal(&stats, &twins, sizeof stats);
}

static uint64_t
size_of_either_kind(struct random *random)
{
    static const uint64_t often[] = {1, 512, 700, 4096, 65536, 3 << 20};
    uint64_t most = random_below(random, 2) ? 8 << 20 : 64 << 10;
    return random_below(random, 2) ? often[random_below(random, 6)]
                                   : 1 + random_below(random, most);
}

static void
alone_a_request_at_a_cache_is_one_at_the_place(void **state)
{
    (void)state;
    static struct stage s, twin;
    static struct pair pairs[USED_MAX];
    for (uint64_t seed = 1; seed <= 10; seed++) {
        uint64_t capacity = seed % 3 ? UINT64_C(8) << 30 : UINT64_C(150) << 20;
        begin(&s, seed, capacity);
        begin(&twin, seed, capacity);
        s.place.caches->share(s.place.self, false);
        twin.place.caches->share(twin.place.self, false);
        memset(pairs, 0, sizeof pairs);
        for (int i = 0; i < 4000; i++) {
            struct pair *pair = &pairs[random_below(&s.random, USED_MAX)];
            if (pair->size > 0) {
                free_both(&s, &twin, pair);
                pair->size = 0;
            } else {
                pair->size = size_of_either_kind(&s.random);
                pair->stream = (unsigned)random_below(&s.random, STREAMS);
                ask_both(&s, &twin, pair);
            }
            if (i % 97 == 0)
                check_both(&s, &twin);
        }
        check_both(&s, &twin);
        assert_true(s.taken > 100 && s.put > 100 && s.lost > 100);
        assert_true((s.refused > 0) == (seed % 3 == 0));
        end(&s);
        end(&twin);
    }
}

static void
note_action(void *self, const struct dryi_place_event *event)
{
    *(unsigned *)self += event->action == DRY_ACTION_ALLOC;
}

/* An observer hears of a request that a stream cache serves, too. */
static void
alone_every_request_is_told(void **state)
{
    (void)state;
    static struct stage s;
    begin(&s, 1, UINT64_C(8) << 30);
    const struct dryi_place_ops *ops = s.place.ops;
    s.place.caches->share(s.place.self, false);
    struct dryi_cache_block first, again;
    assert_int_equal(dryi_paged_cache_alloc(s.caches[0], 4096, true, &first), DRY_OK);
    assert_true(first.is_registered && !first.was_registered);
    assert_true(s.place.caches->put(s.caches[0], first.block));
    s.pieces[s.count++] = (struct piece){.address = first.address, .size = 4096};
    unsigned told = 0;
    ops->set_observer(s.place.self, (struct dryi_place_observer){note_action, &told});
    assert_int_equal(dryi_paged_cache_alloc(s.caches[0], 4096, true, &again), DRY_OK);
    assert_int_equal(told, 1);
    assert_true(again.address == first.address && again.was_registered && s.lost == 0);
    ops->set_observer(s.place.self, (struct dryi_place_observer){0});
    assert_int_equal(dryi_paged_cache_alloc(s.caches[0], UINT64_C(1) << 60, true, &again),
                     DRY_ERR_ARGUMENT);
    end(&s);
}

/* A large block lies in a cache only if its size is asked for again and again. */
static void
large_blocks_stay_only_if_wanted(void **state)
{
    (void)state;
    static struct stage s;
    begin(&s, 1, UINT64_C(8) << 30);
    const struct dryi_place_ops *ops = s.place.ops;
    ask(&s, 0, 64 << 20); /* there is enough to cut from */
    assert_true(merge(&s, 0));
    assert_true(cut(&s, 0, 10 << 20));
    assert_false(s.place.caches->put(s.caches[0], s.pieces[0].block));
    assert_true(merge(&s, 0));
    for (int i = 0; i < 2; i++) { /* wanted from now on */
        assert_false(take(&s, 0, 10 << 20));
        assert_true(cut(&s, 0, 10 << 20));
    }
    for (int i = 0; i < 2; i++) {
        assert_true(s.place.caches->put(s.caches[0], s.pieces[i].block));
        s.pieces[i].is_used = false;
        assert_true(s.place.caches->holds(s.place.self, s.pieces[i].block));
    }
    assert_true(cut(&s, 0, 4 << 20)); /* there is more than the caches hold */
    assert_int_equal(s.lost, 0);
    assert_true(take(&s, 0, 10 << 20));
    assert_true(s.pieces[1].is_used);
    balance(&s);
    assert_int_equal(ops->check(s.place.self, NULL), DRY_OK);
    end(&s);
}

/* Put two large blocks into the cache of stream 0, on a device of 64 MiB. */
static void
put_two_large(struct stage *s)
{
    begin(s, 1, 64 << 20);
    ask(s, 0, 60 << 20);
    assert_true(merge(s, 0));
    for (int i = 0; i < 2; i++) {
        assert_false(take(s, 0, 20 << 20));
        assert_true(cut(s, 0, 20 << 20));
    }
    for (int i = 0; i < 2; i++) {
        assert_true(s->place.caches->put(s->caches[0], s->pieces[i].block));
        s->pieces[i].is_used = false;
    }
    balance(s);
}

static void
large_blocks_of_a_cache_serve_others(void **state)
{
    (void)state;
    static struct stage s;
    put_two_large(&s);
    ask(&s, 1, 44 << 20);
    balance(&s);
    assert_int_equal(s.place.ops->check(s.place.self, NULL), DRY_OK);
    end(&s);
}

static void
large_blocks_of_a_cache_go_with_the_cache(void **state)
{
    (void)state;
    static struct stage s;
    put_two_large(&s);
    const struct dryi_place_ops *ops = s.place.ops;
    assert_int_equal(ops->empty_cache(s.place.self, (struct dryi_pool_id){0}), DRY_OK);
    struct dry_stats stats;
    ops->get_stats(s.place.self, &stats);
    assert_int_equal(stats.reserved_bytes.all.current, 0);
    end(&s);
}

/* Make and free so many blocks that stream caches can have records of their own. */
static void
make_records(struct stage *s)
{
    const struct dryi_place_ops *ops = s->place.ops;
    size_t first = s->count;
    for (int i = 0; i < 300; i++)
        ask(s, 2, 512);
    for (size_t i = first + 300; i-- > first;) {
        s->used--;
        give_to_place(s, i);
    }
    assert_int_equal(ops->empty_cache(s->place.self, (struct dryi_pool_id){0}), DRY_OK);
    s->place.caches->share(s->place.self, false);
    s->place.caches->share(s->place.self, true);
}

/*
 * Blocks of two streams lie side by side: the first merge or cut needs the place. Later ones need
 * their cache alone, on either side.
 */
static void
neighbours_need_the_place_once(void **state)
{
    (void)state;
    static struct stage s;
    begin(&s, 1, UINT64_C(8) << 30);
    const struct dryi_place_ops *ops = s.place.ops;
    dryi_block block[2];
    make_records(&s);
    for (unsigned i = 0; i < 2; i++) {
        ask(&s, i, 6 << 20);
        block[i] = s.pieces[i].block;
    }
    assert_true(s.pieces[1].address == s.pieces[0].address + (6 << 20));
    assert_false(s.place.caches->merge(s.caches[0], block[0], false));
    assert_false(s.place.caches->merge(s.caches[1], block[1], false));
    assert_true(s.place.caches->merge(s.caches[0], block[0], true));
    assert_true(s.place.caches->merge(s.caches[1], block[1], false));
    for (unsigned i = 0; i < 2; i++) {
        dryi_block cut, all;
        assert_true(s.place.caches->cut(s.caches[i], 2 << 20, false, &cut));
        assert_true(s.place.caches->merge(s.caches[i], cut, false));
        assert_true(s.place.caches->cut(s.caches[i], 6 << 20, false, &all));
        assert_true(ops->get_address(s.place.self, all) == s.pieces[i].address);
        assert_true(s.place.caches->merge(s.caches[i], all, false));
    }
    balance(&s);
    assert_int_equal(ops->check(s.place.self, NULL), DRY_OK);
    assert_int_equal(ops->stream_waits(s.place.self, 0, 1), DRY_OK);
    uint64_t address = s.pieces[0].address;
    struct dry_sim_account before = DRY_INIT(struct dry_sim_account);
    struct dry_sim_account after = DRY_INIT(struct dry_sim_account);
    s.count = 0;
    dry_sim_get_account(s.sim, &before);
    ask(&s, 0, 12 << 20); /* a stream that may have both has them as one */
    dry_sim_get_account(s.sim, &after);
    assert_true(s.pieces[0].address == address);
    assert_true(after.calls[DRY_SIM_MAP_PAGES] == before.calls[DRY_SIM_MAP_PAGES]);
    balance(&s);
    assert_int_equal(ops->check(s.place.self, NULL), DRY_OK);
    end(&s);
}

/* A merge between two free blocks takes in the second: what lies behind the second counts, too. */
static void
what_is_behind_the_next_one_counts(void **state)
{
    (void)state;
    static struct stage s;
    begin(&s, 1, UINT64_C(8) << 30);
    const struct dryi_place_ops *ops = s.place.ops;
    make_records(&s);
    for (unsigned i = 0; i < 4; i++)
        ask(&s, i / 3, 6 << 20);
    assert_true(s.pieces[3].address == s.pieces[0].address + (18 << 20));
    assert_int_equal(ops->free(s.place.self, s.pieces[2].block), DRY_OK);
    assert_true(s.place.caches->merge(s.caches[0], s.pieces[0].block, false));
    assert_false(s.place.caches->merge(s.caches[0], s.pieces[1].block, false));
    assert_true(s.place.caches->merge(s.caches[0], s.pieces[1].block, true));
    assert_true(s.place.caches->merge(s.caches[1], s.pieces[3].block, true));
    balance(&s);
    assert_int_equal(ops->check(s.place.self, NULL), DRY_OK);
    s.place.caches->share(s.place.self, false); /* and no divider is left */
    assert_int_equal(ops->check(s.place.self, NULL), DRY_OK);
    end(&s);
}

/*
 * Memory that another stream has freed, though its uses are complete, is left to that stream while
 * its cache is used.
 */
static void
neighbours_are_left_alone(void **state)
{
    (void)state;
    static struct stage s;
    begin(&s, 1, UINT64_C(8) << 30);
    const struct dryi_place_ops *ops = s.place.ops;
    make_records(&s);
    ask(&s, 0, 6 << 20);
    ask(&s, 1, 6 << 20);
    ask(&s, 2, 512);
    assert_int_equal(ops->free(s.place.self, s.pieces[1].block), DRY_OK);
    /* An event follows the free. */
    assert_int_equal(ops->record_stream(s.place.self, s.pieces[2].block, 1), DRY_OK);
    assert_int_equal(ops->free(s.place.self, s.pieces[2].block), DRY_OK);
    for (uint64_t stream = 0; stream < STREAMS; stream++)
        dry_sim_complete_stream(s.sim, stream);
    ops->process_events(s.place.self);
    for (int i = 0; i < 2; i++) /* from now on the size is wanted */
        assert_int_equal(s.place.caches->take(s.caches[0], 6 << 20), 0);
    assert_true(s.place.caches->put(s.caches[0], s.pieces[0].block));
    s.pieces[0].is_used = false;
    size_t lost = s.lost;
    dryi_block block;
    assert_true(s.place.caches->cut(s.caches[0], 300 << 10, true, &block));
    assert_int_equal(s.lost, lost + 1);
    assert_true(s.place.caches->cut(s.caches[1], 300 << 10, true, &block));
    assert_true(ops->get_address(s.place.self, block) == s.pieces[1].address);
    end(&s);
}

/*
 * Memory that one cache after the other takes, and puts back before the next one does, is no peak
 * of all together.
 */
static void
peaks_of_caches_hardly_add_up(void **state)
{
    (void)state;
    static struct stage s;
    begin(&s, 1, UINT64_C(8) << 30);
    const struct dryi_place_ops *ops = s.place.ops;
    for (size_t i = 0; i < 64 * STREAMS; i++)
        ask(&s, (unsigned)(i / 64), 65536);
    for (size_t i = 0; i < s.count; i++)
        assert_true(s.place.caches->put(s.caches[s.pieces[i].stream], s.pieces[i].block));
    balance(&s);
    ops->reset_stats(s.place.self, true, false);
    size_t taken = 0;
    for (size_t i = 0; i < s.count; i++) {
        bool is_taken = s.place.caches->take(s.caches[i / 64], 65536) != 0;
        taken += is_taken;
        if (i % 64 == 63) { /* the newest lie on top */
            for (size_t k = i + 1 - 64; k <= i; k++)
                (void)s.place.caches->put(s.caches[i / 64], s.pieces[k].block);
        }
    }
    balance(&s);
    struct dry_stats stats;
    ops->get_stats(s.place.self, &stats);
    assert_int_equal(stats.allocation.all.current, 0);
    assert_true(taken > 0 && stats.allocated_bytes.all.peak <= 2 << 20);
    end(&s);
}

/*
 * A request of the place itself merges free blocks across a divider, if the uses of one are
 * complete.
 */
static void
what_is_over_is_merged_before_pages_are_asked_for(void **state)
{
    (void)state;
    static struct stage s;
    begin(&s, 1, UINT64_C(8) << 30);
    const struct dryi_place_ops *ops = s.place.ops;
    make_records(&s);
    ask(&s, 2, UINT64_C(4) << 30); /* a cache may take more before a balance */
    ask(&s, 0, 6 << 20);
    ask(&s, 1, 6 << 20);
    ask(&s, 1, 2 << 20); /* so that no pages come behind them */
    uint64_t address = s.pieces[1].address;
    assert_true(s.pieces[2].address == address + (6 << 20));
    assert_true(s.place.caches->merge(s.caches[0], s.pieces[1].block, true));
    assert_true(s.place.caches->merge(s.caches[1], s.pieces[2].block, false));
    ask(&s, 2, 512);
    assert_int_equal(ops->record_stream(s.place.self, s.pieces[4].block, 1), DRY_OK);
    assert_int_equal(ops->free(s.place.self, s.pieces[4].block), DRY_OK);
    dry_sim_complete_stream(s.sim, 1);
    ops->process_events(s.place.self);
    dryi_block block;
    balance(&s);
    assert_false(s.place.caches->cut(s.caches[0], 12 << 20, true, &block));
    s.count = 0;
    for (uint64_t i = 0; i < 4;
         i++) /* one request in as many as there are dividers does it */
        ask(&s, 0, (64 + i) << 20);
    balance(&s);
    assert_int_equal(ops->check(s.place.self, NULL), DRY_OK);
    assert_true(s.place.caches->cut(s.caches[0], 12 << 20, true, &block));
    assert_true(ops->get_address(s.place.self, block) == address);
    end(&s);
}

/* A block that lies in the cache, though its address is not registered, is cut whole. */
static void
unknown_blocks_come_from_the_cache(void **state)
{
    (void)state;
    static struct stage s;
    begin(&s, 1, UINT64_C(8) << 30);
    const struct dryi_place_ops *ops = s.place.ops;
    ask(&s, 0, 4096);
    ask(&s, 0, 4096);
    dryi_block block = s.pieces[0].block, cut;
    balance(&s);
    assert_int_equal(ops->record_stream(s.place.self, block, 1), DRY_OK);
    assert_int_equal(ops->free(s.place.self, block), DRY_OK);
    dry_sim_complete_stream(s.sim, 1);
    ops->process_events(s.place.self);
    assert_true(s.place.caches->holds(s.place.self, block));
    assert_int_equal(s.place.caches->take(s.caches[0], 4096), 0);
    assert_true(s.place.caches->cut(s.caches[0], 4000, false, &cut) && cut == block);
    assert_true(s.place.caches->put(s.caches[0], block));
    assert_true(s.place.caches->take(s.caches[0], 4096) == s.pieces[0].address);
    balance(&s);
    assert_int_equal(ops->check(s.place.self, NULL), DRY_OK);
    end(&s);
}

/*
 * Cut and merge are for threads that share the caches. While caches are not shared, the place cuts,
 * merges and counts.
 */
static void
alone_nothing_is_cut(void **state)
{
    (void)state;
    static struct stage s;
    begin(&s, 1, UINT64_C(8) << 30);
    const struct dryi_place_ops *ops = s.place.ops;
    dryi_block block;
    assert_false(s.place.caches->cut(s.caches[0], 1000, true,
                                     &block)); /* there is no memory yet */
    ask(&s, 0, 1 << 20);
    ask(&s, 0, 1 << 20);
    assert_true(s.place.caches->merge(s.caches[0], s.pieces[0].block, true));
    balance(&s);
    s.place.caches->share(s.place.self, false);
    assert_false(s.place.caches->cut(s.caches[0], 1 << 20, true, &block));
    assert_false(s.place.caches->merge(s.caches[0], s.pieces[1].block, true));
    assert_int_equal(ops->free(s.place.self, s.pieces[1].block), DRY_OK);
    end(&s);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peaks_of_caches_hardly_add_up),
        cmocka_unit_test(caches_beside_the_place_are_what_a_list_says),
        cmocka_unit_test(alone_a_request_at_a_cache_is_one_at_the_place),
        cmocka_unit_test(alone_every_request_is_told),
        cmocka_unit_test(large_blocks_stay_only_if_wanted),
        cmocka_unit_test(large_blocks_of_a_cache_serve_others),
        cmocka_unit_test(large_blocks_of_a_cache_go_with_the_cache),
        cmocka_unit_test(neighbours_need_the_place_once),
        cmocka_unit_test(what_is_behind_the_next_one_counts),
        cmocka_unit_test(neighbours_are_left_alone),
        cmocka_unit_test(what_is_over_is_merged_before_pages_are_asked_for),
        cmocka_unit_test(unknown_blocks_come_from_the_cache),
        cmocka_unit_test(alone_nothing_is_cut),
    };
    return cmocka_run_group_tests_name("paged_cache", tests, NULL, NULL);
}
