/* SPDX-License-Identifier: Apache-2.0 */
/*
 * same CONF SEED CALLS CAPACITY_MIB STREAMS POOLS COMPAT [texts]: place/torch beside PyTorch's
 * own allocator, to the byte. Ends with 3 where PyTorch does not know the options.
 *
 * A random program of so many calls runs on a pool with the torch placement and on PyTorch, each
 * on a simulated device of its own. After each call the address, all statistics and what the
 * device has given have to be the same; now and then, and in the end, the layout: segments,
 * blocks, their sizes and states; and with "texts" PyTorch's, when memory is out.
 *
 * PyTorch's hash tables give the streams that have pending frees an order of their own: with
 * several, what was split and merged on the way (the sums and peaks of inactive_split) may
 * differ, what is there then not.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/pool.h>
#include <drystone/sim.h>
#include <drystone/stats.h>

#include "native.h"
#include "support/random.h"

#define LIVE_MAX 400
#define POOLS_MAX 3
#define PARTS_MAX 65536
#define TEXT_MAX 4096
#define MIB (UINT64_C(1) << 20)
#define LAYOUT_EVERY 256

struct run {
    struct dry_sim *ours, *theirs;
    struct dry_pool *pool;
    struct random random;
    uint64_t call;
    unsigned streams, pool_count;
    int is_expandable, has_texts;
    uint64_t live[LIVE_MAX];
    size_t live_count;
    struct private
    {
        struct dry_pool_id id;
        unsigned users, flags;
        int is_begun;
    }
    pools[POOLS_MAX];
    uint64_t pool_total;
    size_t failed;
};

static uint64_t
draw_size(struct run *r)
{
    static const uint64_t most[] = {512,      MIB,      MIB,      10 * MIB,
                                    10 * MIB, 64 * MIB, 300 * MIB};
    uint64_t kind = random_below(&r->random, 8);
    if (kind < 7)
        return 1 + random_below(&r->random, most[kind]);
    return (1 + random_below(&r->random, 40)) * (MIB / 2); /* limits are at such sizes */
}

static uint64_t
draw_stream(struct run *r)
{
    return random_below(&r->random, r->streams) * 4096;
}

/* --- the same ------------------------------------------------------------------------------- */

struct listed {
    const char *keys[DRY_STATS_KEY_COUNT];
    int64_t values[DRY_STATS_KEY_COUNT];
    size_t count;
};

static void
list(void *self, const char *key, int64_t value)
{
    struct listed *l = self;
    l->keys[l->count] = strdup(key);
    l->values[l->count++] = value;
}

static void
differs(const struct run *r, const char *what)
{
    printf("call %" PRIu64 ": %s\n", r->call, what);
    exit(1);
}

/* What may depend on the order in which streams are looked at. */
static void
forgive(struct dry_stat_array *ours, const struct dry_stat_array *theirs)
{
    struct dry_stat *to[] = {&ours->all, &ours->small_pool, &ours->large_pool};
    const struct dry_stat *from[] = {&theirs->all, &theirs->small_pool,
                                     &theirs->large_pool};
    for (size_t i = 0; i < 3; i++) {
        int64_t current = to[i]->current;
        int is_sum =
            to[i]->allocated - to[i]->freed == from[i]->allocated - from[i]->freed;
        *to[i] = *from[i];
        to[i]->current = is_sum ? current : -1;
    }
}

static void
compare_stats(const struct run *r)
{
    struct dry_stats ours, theirs;
    dry_pool_get_stats(r->pool, &ours);
    theirs = ours;
    native_get_stats(&theirs);
    if (r->streams > 1) {
        forgive(&ours.inactive_split, &theirs.inactive_split);
        forgive(&ours.inactive_split_bytes, &theirs.inactive_split_bytes);
    }
    if (memcmp(&ours, &theirs, sizeof ours) == 0)
        return;
    struct listed a = {.count = 0}, b = {.count = 0};
    dry_stats_visit(&ours, list, &a);
    dry_stats_visit(&theirs, list, &b);
    for (size_t i = 0; i < a.count; i++) {
        if (a.values[i] != b.values[i])
            printf("%s: ours %" PRId64 ", PyTorch's %" PRId64 "\n", a.keys[i],
                   a.values[i], b.values[i]);
    }
    differs(r, "the statistics differ");
}

static void
compare_devices(const struct run *r)
{
    struct dry_sim_account ours = DRY_INIT(struct dry_sim_account);
    struct dry_sim_account theirs = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(r->ours, &ours);
    dry_sim_get_account(r->theirs, &theirs);
    if (ours.used_bytes != theirs.used_bytes)
        differs(r, "the devices have given different amounts");
}

struct layout {
    struct dry_pool_segment *segments;
    struct dry_pool_part *parts;
    size_t segment_count, part_count;
};

static void
note(void *self, const struct dry_pool_segment *segment,
     const struct dry_pool_part *parts, size_t count)
{
    struct layout *l = self;
    native_need(l->part_count + count <= PARTS_MAX, "the layout has too many parts");
    struct dry_pool_segment *to = &l->segments[l->segment_count++];
    memset(to, 0, sizeof *to);
    to->address = segment->address;
    to->size = segment->size;
    to->stream = segment->stream;
    to->pool = segment->pool;
    to->is_large = segment->is_large;
    to->is_expandable = segment->is_expandable;
    for (size_t i = 0; i < count; i++) {
        struct dry_pool_part *part = &l->parts[l->part_count++];
        memset(part, 0, sizeof *part);
        part->address = parts[i].address;
        part->size = parts[i].size;
        part->is_active = parts[i].is_active;
        part->is_pending = parts[i].is_pending;
        if (part->is_active || part->is_pending)
            part->requested = parts[i].requested;
    }
}

static enum dry_status
note_ours(void *self, const struct dry_pool_segment *segment,
          const struct dry_pool_part *parts, size_t count)
{
    note(self, segment, parts, count);
    return DRY_OK;
}

static void
make_layout(struct layout *l)
{
    l->segments = calloc(PARTS_MAX, sizeof *l->segments);
    l->parts = calloc(PARTS_MAX, sizeof *l->parts);
    native_need(l->segments && l->parts, "no memory");
}

static void
compare_layouts(const struct run *r)
{
    struct layout ours = {0}, theirs = {0};
    make_layout(&ours);
    make_layout(&theirs);
    native_need(dry_pool_walk(r->pool, note_ours, &ours) == DRY_OK, "no walk");
    native_walk(note, &theirs);
    if (ours.segment_count != theirs.segment_count ||
        memcmp(ours.segments, theirs.segments,
               ours.segment_count * sizeof *ours.segments) != 0)
        differs(r, "the segments differ");
    if (ours.part_count != theirs.part_count ||
        memcmp(ours.parts, theirs.parts, ours.part_count * sizeof *ours.parts) != 0)
        differs(r, "the blocks differ");
    free(ours.segments);
    free(ours.parts);
    free(theirs.segments);
    free(theirs.parts);
}

/* PyTorch's text begins ours. */
static void
compare_texts(const struct run *r, uint64_t size, uint64_t stream)
{
    struct dry_pool_explanation explanation = DRY_INIT(struct dry_pool_explanation);
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    char ours[TEXT_MAX];
    dry_sim_get_account(r->ours, &account);
    native_need(dry_pool_explain(r->pool, size, stream, &explanation) == DRY_OK,
                "no explanation");
    dry_pool_format_oom(&explanation, 0, account.used_bytes,
                        r->is_expandable ? DRY_OOM_HINT_RESERVE : DRY_OOM_HINT_EXPANDABLE,
                        ours, sizeof ours);
    const char *theirs = native_last_text();
    if (strncmp(ours, theirs, strlen(theirs)) == 0)
        return;
    printf("ours: %s\nPyTorch's: %s\n", ours, theirs);
    differs(r, "the texts differ");
}

/* --- calls ---------------------------------------------------------------------------------- */

static void
call_alloc(struct run *r)
{
    uint64_t size = draw_size(r), stream = draw_stream(r), ours = 0, theirs = 0;
    enum dry_status status = dry_pool_alloc(r->pool, size, stream, &ours);
    enum dry_status native = native_alloc(size, stream, &theirs);
    if (status != native || ours != theirs) {
        printf("%" PRIu64 " bytes on stream %" PRIu64 ": ours %s, %#" PRIx64
               ", PyTorch's %s, %#" PRIx64 "\n",
               size, stream, dry_status_name(status), ours, dry_status_name(native),
               theirs);
        if (native != DRY_OK)
            printf("PyTorch: %s\n", native_last_text());
        differs(r, status == native ? "the addresses differ" : "one has failed");
    }
    if (status == DRY_OK) {
        r->live[r->live_count++] = ours;
        return;
    }
    r->failed++;
    if (r->has_texts)
        compare_texts(r, size, stream);
}

static void
call_free(struct run *r)
{
    uint64_t *at = &r->live[random_below(&r->random, r->live_count)];
    native_need(dry_pool_free(r->pool, *at) == DRY_OK, "a free was refused");
    native_free(*at);
    *at = r->live[--r->live_count];
}

static void
call_record(struct run *r)
{
    uint64_t at = r->live[random_below(&r->random, r->live_count)],
             stream = draw_stream(r);
    native_need(dry_pool_record_stream(r->pool, at, stream) == DRY_OK,
                "a stream was refused");
    native_record_stream(at, stream);
}

/*
 * Where a pool has lost its last user another begins. One alone is what others may fall back on:
 * among several PyTorch takes the first in the order of its hash table.
 */
static void
begin_pool(struct run *r, struct private *p)
{
    if (p->users == 0) {
        p->id = (struct dry_pool_id){0, ++r->pool_total};
        p->flags = p == r->pools                 ? DRY_POOL_USE_ON_OOM
                   : random_below(&r->random, 2) ? DRY_POOL_NO_SPLIT
                                                 : 0;
        p->flags = native_open_pool(p->id, p->flags);
        native_need(dry_pool_open_private(r->pool, p->id, p->flags) == DRY_OK, "no pool");
        p->users++;
    }
    native_need(dry_pool_open_private(r->pool, p->id, 0) == DRY_OK, "no pool");
    native_need(dry_pool_begin_private(r->pool, p->id, NULL) == DRY_OK,
                "a begin was refused");
    native_begin_pool(p->id);
    p->users++;
    p->is_begun = 1;
}

static void
call_pool(struct run *r)
{
    struct private *p = &r->pools[random_below(&r->random, r->pool_count)];
    /* One without users that others may fall back on: PyTorch ends in an assertion of its own. */
    unsigned kept = p->flags & DRY_POOL_USE_ON_OOM ? 1 : 0;
    if (!p->is_begun && random_below(&r->random, 2)) {
        begin_pool(r, p);
    } else if (p->is_begun) {
        native_need(dry_pool_end_private(r->pool, p->id) == DRY_OK, "an end was refused");
        native_end_pool(p->id);
        p->is_begun = 0;
    } else if (p->users > kept) {
        native_need(dry_pool_release_private(r->pool, p->id) == DRY_OK,
                    "a release was refused");
        native_release_pool(p->id);
        p->users--;
    }
}

/* An old release, whose texts are not ours, may not be asked while a pool is begun. */
static void
call_empty(struct run *r)
{
    int is_begun = 0;
    for (unsigned i = 0; i < r->pool_count; i++)
        is_begun = is_begun || r->pools[i].is_begun;
    if (is_begun && !r->has_texts)
        return;
    native_need(dry_pool_empty_cache(r->pool) == DRY_OK, "nothing is given back");
    native_empty_cache();
}

/* 1 is no limit, in old releases all of the device. */
static void
call_fraction(struct run *r)
{
    double fraction = 0.5 + 0.1 * (double)random_below(&r->random, 6);
    native_need(dry_pool_set_fraction(r->pool, fraction) == DRY_OK,
                "a fraction was refused");
    native_set_fraction(fraction);
}

/*
 * With pools to its end: before 2.13 blocks freed while one is begun have their events recorded
 * later, in the order of a hash table.
 */
static void
call_advance(struct run *r)
{
    uint64_t stream = draw_stream(r), events = random_below(&r->random, 4);
    if (r->pool_count > 0)
        events = UINT64_MAX;
    dry_sim_advance_stream(r->ours, stream, events);
    dry_sim_advance_stream(r->theirs, stream, events);
}

static void
call_once(struct run *r)
{
    uint64_t kind = random_below(&r->random, 1000);
    if (kind < 520 && r->live_count < LIVE_MAX) {
        call_alloc(r);
    } else if (kind < 955 && r->live_count > 0) {
        call_free(r);
    } else if (kind < 975 && r->live_count > 0 && r->streams > 1) {
        call_record(r);
    } else if (kind < 988) {
        call_advance(r);
    } else if (kind < 998 && r->pool_count > 0) {
        call_pool(r);
    } else if (kind == 998 && r->has_texts) {
        call_fraction(r);
    } else if (kind == 999) {
        call_empty(r);
    }
}

static struct dry_sim *
make_device(uint64_t capacity)
{
    struct dry_sim_options options;
    dry_sim_options_init(&options);
    options.capacity_bytes = capacity;
    struct dry_sim *sim;
    native_need(dry_sim_create(&options, &sim, NULL) == DRY_OK, "no device");
    return sim;
}

static void
start(struct run *r, const char *conf, const char *compat)
{
    struct dry_pool_options options;
    dry_pool_options_init(&options);
    options.device = dry_sim_get_device(r->ours);
    options.placement = DRY_PLACEMENT_TORCH;
    options.conf = conf;
    options.compat = compat;
    struct dry_error err;
    if (dry_pool_create(&options, &r->pool, &err) != DRY_OK)
        native_need(0, err.text);
    native_set_device(dry_sim_get_device(r->theirs));
    if (native_start(conf) != DRY_OK) {
        puts(native_last_text());
        exit(3);
    }
}

int
main(int argc, char **argv)
{
    if (argc < 8 || argc > 9 || (argc == 9 && strcmp(argv[8], "texts") != 0)) {
        fputs("usage: same CONF SEED CALLS CAPACITY_MIB STREAMS POOLS COMPAT [texts]\n",
              stderr);
        return 2;
    }
    uint64_t calls = strtoull(argv[3], NULL, 10);
    uint64_t capacity = strtoull(argv[4], NULL, 10) * MIB;
    struct run r = {.ours = make_device(capacity),
                    .theirs = make_device(capacity),
                    .streams = (unsigned)strtoul(argv[5], NULL, 10),
                    .pool_count = (unsigned)strtoul(argv[6], NULL, 10),
                    .is_expandable = strstr(argv[1], "expandable_segments:True") != NULL,
                    .has_texts = argc == 9};
    random_init(&r.random, strtoull(argv[2], NULL, 10));
    native_need(r.streams > 0 && r.pool_count <= POOLS_MAX,
                "streams or pools are too many");
    start(&r, argv[1], argv[7]);
    for (; r.call < calls; r.call++) {
        call_once(&r);
        compare_stats(&r);
        compare_devices(&r);
        if (r.call % LAYOUT_EVERY == 0)
            compare_layouts(&r);
    }
    compare_layouts(&r);
    printf("%" PRIu64 " calls the same, %zu of them out of memory\n", calls, r.failed);
    return 0;
}
