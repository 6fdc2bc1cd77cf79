/* SPDX-License-Identifier: Apache-2.0 */

/*
 * bench_pinned: measure the pinned cache, a line of JSON a figure.
 *
 *     bench_pinned pairs COUNT       alloc and free of one block, by size and by threads; and of
 *                                    random sizes, 64 blocks in use
 *     bench_pinned pair BYTES COUNT  the same once, for who counts instructions
 *     bench_pinned loop FIRST TAIL   a training loop's requests, under each policy
 *     bench_pinned fill              how much of 28 GiB can be used, and what rounding wastes
 *     bench_pinned real              the loop at 1/64 of its sizes, pinned by mlock
 *     bench_pinned kind              small blocks that stay, among large ones that go
 *
 * The thing that pins is a model: addresses without memory, and a clock. Each call moves
 * the clock by the cost of such a call elsewhere (s/GiB, host of 16 cores, NVIDIA/cudf
 * #23457):
 *
 *     PLAIN   as cudaHostAlloc pins
 *     OURS    with pages filled by threads before they are registered
 *     UNPIN   giving back
 *
 * The policy of PyTorch is written here as a small baseline: powers of two, never cut or
 * joined; a clear gives all free blocks back.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include <drystone/pinned.h>

#include "base/bits.h"
#include "host/pinned/pinned.h"
#include "timing.h"

#define PLAIN 0.49
#define OURS 0.097
#define UNPIN 0.22
#define THREADS_MAX 16

/* --- what pins ------------------------------------------------------------------------------ */

struct model {
    struct dryi_pin pin;
    pthread_mutex_t lock;
    uint64_t next, pinned_bytes, pinned_peak;
    double seconds, pin_cost; /* s/GiB */
    uint64_t clock, lag;      /* an event has passed so many records later */
    bool is_real;
};

static void
account(struct model *m, uint64_t bytes, double cost)
{
    pthread_mutex_lock(&m->lock);
    m->seconds += (double)bytes / (double)DRYI_GIB * cost;
    pthread_mutex_unlock(&m->lock);
}

static enum dry_status
model_take(void *self, uint64_t bytes, int32_t node, struct dryi_pin_range *range,
           struct dry_error *err)
{
    struct model *m = self;
    (void)node;
    (void)err;
    *range = (struct dryi_pin_range){.bytes = bytes};
    if (m->is_real) {
        void *at =
            mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED)
            return DRY_ERR_NO_SPACE;
        if (mlock(at, bytes) != 0) {
            munmap(at, bytes);
            return DRY_ERR_NO_SPACE;
        }
        range->address = (uint64_t)(uintptr_t)at;
    }
    pthread_mutex_lock(&m->lock);
    if (!m->is_real) {
        range->address = m->next;
        m->next += bytes + (UINT64_C(1) << 21);
    }
    m->pinned_bytes += bytes;
    if (m->pinned_bytes > m->pinned_peak)
        m->pinned_peak = m->pinned_bytes;
    pthread_mutex_unlock(&m->lock);
    if (!m->is_real)
        account(m, bytes, m->pin_cost);
    return DRY_OK;
}

static void
model_give(void *self, const struct dryi_pin_range *range)
{
    struct model *m = self;
    if (m->is_real)
        munmap((void *)(uintptr_t)range->address, range->bytes);
    else
        account(m, range->bytes, UNPIN);
    pthread_mutex_lock(&m->lock);
    m->pinned_bytes -= range->bytes;
    pthread_mutex_unlock(&m->lock);
}

static enum dry_status
model_record(void *self, uint64_t stream, uint64_t *event, struct dry_error *err)
{
    struct model *m = self;
    (void)stream;
    (void)err;
    *event = m->clock++;
    return DRY_OK;
}

static int
model_is_done(void *self, uint64_t event)
{
    const struct model *m = self;
    return m->clock - event > m->lag;
}

static void
model_return(void *self, uint64_t event)
{
    (void)self;
    (void)event;
}

static uint64_t
model_available_bytes(void *self, int32_t node)
{
    (void)self;
    (void)node;
    return UINT64_C(1) << 42;
}

static void
model_init(struct model *m, double pin_cost, bool is_real)
{
    memset(m, 0, sizeof *m);
    m->pin = (struct dryi_pin){.self = m,
                               .take = model_take,
                               .give = model_give,
                               .event_record = model_record,
                               .event_is_done = model_is_done,
                               .event_return = model_return,
                               .available_bytes = model_available_bytes};
    pthread_mutex_init(&m->lock, NULL);
    m->next = UINT64_C(1) << 44;
    m->pin_cost = pin_cost;
    m->lag = 8;
    m->is_real = is_real;
}

static struct dry_pinned *
make_cache(struct model *m, const char *options)
{
    struct dry_pinned_options o;
    struct dry_pinned *pinned = NULL;
    dry_pinned_options_init(&o);
    need(dry_pinned_options_parse(&o, options, NULL) == DRY_OK, "options");
    need(dryi_pinned_create(&o, &m->pin, &pinned, NULL) == DRY_OK, "no cache");
    return pinned;
}

/* --- pairs ---------------------------------------------------------------------------------- */

static void *
alloc_one(struct dry_pinned *pinned, uint64_t bytes)
{
    void *at = NULL;
    need(dry_pinned_alloc(pinned, bytes, DRY_PINNED_NO_STREAM, &at) == DRY_OK, "alloc");
    return at;
}

static void
run_pairs(struct dry_pinned *pinned, uint64_t bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        (void)dry_pinned_free(pinned, alloc_one(pinned, bytes));
}

static double
time_pairs(struct dry_pinned *pinned, uint64_t bytes, uint64_t count)
{
    double best = 1e30;
    run_pairs(pinned, bytes, count / 10 + 1);
    for (int round = 0; round < 5; round++) {
        uint64_t begin = now_ns();
        run_pairs(pinned, bytes, count);
        double ns = (double)(now_ns() - begin) / (double)count;
        best = ns < best ? ns : best;
    }
    return best;
}

struct worker {
    struct dry_pinned *pinned;
    uint64_t bytes, count;
    pthread_barrier_t *start;
    uint64_t cpu_ns;
};

static void *
work(void *argument)
{
    struct worker *w = argument;
    run_pairs(w->pinned, w->bytes, 100);
    pthread_barrier_wait(w->start);
    uint64_t begin = read_clock(CLOCK_THREAD_CPUTIME_ID);
    run_pairs(w->pinned, w->bytes, w->count);
    w->cpu_ns = read_clock(CLOCK_THREAD_CPUTIME_ID) - begin;
    return NULL;
}

static void
time_threads(struct dry_pinned *pinned, uint64_t bytes, int count, uint64_t pairs)
{
    pthread_t threads[THREADS_MAX];
    struct worker workers[THREADS_MAX];
    pthread_barrier_t start;
    uint64_t cpu = 0;
    need(pthread_barrier_init(&start, NULL, (unsigned)count) == 0, "no barrier");
    for (int i = 0; i < count; i++) {
        workers[i] = (struct worker){pinned, bytes, pairs, &start, 0};
        need(pthread_create(&threads[i], NULL, work, &workers[i]) == 0, "no thread");
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        cpu += workers[i].cpu_ns;
    }
    pthread_barrier_destroy(&start);
    printf("{\"bench\":\"threads\",\"bytes\":%" PRIu64 ",\"threads\":%d,"
           "\"cpu_ns\":%.1f}\n",
           bytes, count, (double)cpu / (double)(pairs * (uint64_t)count));
}

/* Return the next size to measure, from 4 KiB to 1 GiB. */
static uint64_t
next_size(uint64_t bytes)
{
    return bytes < 256 * DRYI_MIB ? bytes * 16 : bytes * 4;
}

/* Time 64 blocks in use, of sizes up to `bytes`; the oldest is freed for each new one. */
static void
time_ring(struct dry_pinned *pinned, uint64_t bytes, uint64_t count)
{
    enum { LIVE = 64 };
    void *ring[LIVE] = {NULL};
    uint64_t x = 88172645463325252, begin = 0;
    for (uint64_t i = 0; i < count + 16 * LIVE; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        if (i == 16 * LIVE)
            begin = now_ns();
        (void)dry_pinned_free(pinned, ring[i % LIVE]);
        ring[i % LIVE] = alloc_one(pinned, bytes / 2 + x % (bytes / 2) + 1);
    }
    printf("{\"bench\":\"ring\",\"bytes\":%" PRIu64 ",\"ns\":%.1f}\n", bytes,
           (double)(now_ns() - begin) / (double)count);
    for (int i = 0; i < LIVE; i++)
        (void)dry_pinned_free(pinned, ring[i]);
}

static void
bench_pairs(uint64_t count)
{
    struct model m;
    for (int has_thread_caches = 1; has_thread_caches >= 0; has_thread_caches--) {
        for (uint64_t bytes = 4096; bytes <= DRYI_GIB; bytes = next_size(bytes)) {
            model_init(&m, OURS, false);
            struct dry_pinned *p = make_cache(
                &m, has_thread_caches ? "" : "thread_caches:False,arena_mb:1024");
            void *keep = alloc_one(p, bytes > DRYI_MIB ? 5 * DRYI_MIB : 5 * DRYI_KIB);
            double ns = time_pairs(p, bytes, count);
            printf("{\"bench\":\"pair\",\"kind\":\"%s\",\"bytes\":%" PRIu64
                   ",\"ns\":%.1f}\n",
                   has_thread_caches ? "hit" : "split", bytes, ns);
            (void)dry_pinned_free(p, keep);
            dry_pinned_destroy(p);
        }
    }
    for (uint64_t bytes = 4096; bytes <= DRYI_GIB; bytes = next_size(bytes)) {
        model_init(&m, OURS, false);
        struct dry_pinned *p = make_cache(&m, "");
        time_ring(p, bytes, count);
        dry_pinned_destroy(p);
    }
    for (uint64_t bytes = 4096; bytes <= 64 * DRYI_MIB; bytes *= 128) {
        for (int threads = 1; threads <= THREADS_MAX; threads *= 2) {
            model_init(&m, OURS, false);
            struct dry_pinned *p = make_cache(&m, "");
            time_threads(p, bytes, threads, count / 4 + 1);
            dry_pinned_destroy(p);
        }
    }
}

static void
bench_pair(uint64_t bytes, uint64_t count, const char *options)
{
    struct model m;
    model_init(&m, OURS, false);
    struct dry_pinned *p = make_cache(&m, options);
    void *keep = alloc_one(p, bytes);
    run_pairs(p, bytes, count);
    (void)dry_pinned_free(p, keep);
    dry_pinned_destroy(p);
}

/* --- PyTorch's policy ----------------------------------------------------------------------- */

#define TORCH_BLOCKS_MAX 65536

struct torch_block {
    struct dryi_pin_range range;
    uint64_t event;
    bool is_used, is_pending;
    unsigned log2;
};

struct torch {
    struct model *m;
    struct torch_block *blocks;
    size_t count;
};

static size_t
torch_alloc(struct torch *t, uint64_t bytes)
{
    unsigned log2 = bytes > 1 ? dryi_log2_floor(bytes - 1) + 1 : 0;
    size_t spare = t->count;
    for (size_t i = 0; i < t->count; i++) {
        struct torch_block *b = &t->blocks[i];
        if (b->is_pending && model_is_done(t->m, b->event))
            b->is_pending = false;
        if (b->range.bytes == 0)
            spare = i;
        if (b->range.bytes && !b->is_used && !b->is_pending && b->log2 == log2) {
            b->is_used = true;
            return i;
        }
    }
    need(spare < TORCH_BLOCKS_MAX, "too many blocks");
    struct torch_block *b = &t->blocks[spare];
    *b = (struct torch_block){.is_used = true, .log2 = log2};
    uint64_t size = UINT64_C(1) << log2;
    need(model_take(t->m, size < 4096 ? 4096 : size, -1, &b->range, NULL) == DRY_OK,
         "no memory to pin");
    t->count += spare == t->count;
    return spare;
}

static void
torch_free(struct torch *t, size_t block, bool is_on_stream)
{
    struct torch_block *b = &t->blocks[block];
    b->is_used = false;
    b->is_pending = is_on_stream;
    if (is_on_stream)
        (void)model_record(t->m, 0, &b->event, NULL);
}

static void
torch_clear(struct torch *t)
{
    for (size_t i = 0; i < t->count; i++) {
        struct torch_block *b = &t->blocks[i];
        if (b->range.bytes == 0 || b->is_used)
            continue;
        model_give(t->m, &b->range);
        b->range.bytes = 0;
    }
}

/* --- a training loop ------------------------------------------------------------------------ */

/*
 * Matrices of a layer like DeepSeek-V3's: hidden 7168, low ranks 1536 and 512 + 64, 128
 * heads of 128 + 64 and 128, experts of 2048. 8 of 256 experts are on this rank.
 */
static const uint64_t matrices[] = {
    UINT64_C(7168) * 1536,        UINT64_C(1536) * 24576, UINT64_C(7168) * 576,
    UINT64_C(512) * 32768,        UINT64_C(16384) * 7168, UINT64_C(7168) * 256,
    UINT64_C(7168) * 2048,        UINT64_C(7168) * 2048,  UINT64_C(2048) * 7168,
    UINT64_C(7168) * 2048,        UINT64_C(7168) * 2048,  UINT64_C(2048) * 7168,
    UINT64_C(7168) * 18432,       UINT64_C(7168),         UINT64_C(1536),
    UINT64_C(129280) * 7168 / 16,
};
#define MATRICES (sizeof matrices / sizeof *matrices)
#define LAYERS 6
#define SHARDS 8 /* ranks that share the optimizer's state */
#define PREFETCH 4
#define WAITING_MAX 4096

struct loop {
    struct model m;
    struct dry_pinned *pinned; /* NULL: torch */
    struct torch torch;
    uint64_t scale;
    uint64_t random;
    uint64_t ours_ns;
    uint64_t requested_now;       /* of blocks in use */
    uint64_t needed, needed_peak; /* of these, and of blocks a stream still uses */
    uint64_t waiting_first, waiting_last;
    struct {
        uint64_t event, bytes;
    } waiting[WAITING_MAX];
    uint64_t requested, rounded; /* of all requests */
};

struct held {
    void *at;
    size_t block;
    uint64_t bytes;
};

static uint64_t
next_random(struct loop *l, uint64_t limit)
{
    l->random = l->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (l->random >> 33) % limit;
}

/* Count blocks that no stream uses any more as not needed. */
static void
end_waits(struct loop *l)
{
    while (l->waiting_first < l->waiting_last) {
        uint64_t at = l->waiting_first % WAITING_MAX;
        if (!model_is_done(&l->m, l->waiting[at].event))
            return;
        l->needed -= l->waiting[at].bytes;
        l->waiting_first++;
    }
}

static void
begin_wait(struct loop *l, uint64_t bytes)
{
    uint64_t at = l->waiting_last++ % WAITING_MAX;
    need(l->waiting_last - l->waiting_first < WAITING_MAX, "too much waits");
    l->waiting[at].event = l->m.clock - 1;
    l->waiting[at].bytes = bytes;
}

static struct held
hold(struct loop *l, uint64_t bytes)
{
    struct held h = {.bytes = bytes / l->scale ? bytes / l->scale : 1};
    uint64_t begin = now_ns();
    if (l->pinned)
        h.at = alloc_one(l->pinned, h.bytes);
    else
        h.block = torch_alloc(&l->torch, h.bytes);
    l->ours_ns += now_ns() - begin;
    l->requested += h.bytes;
    l->rounded += l->pinned ? dry_pinned_round_size(l->pinned, h.bytes)
                            : l->torch.blocks[h.block].range.bytes;
    l->requested_now += h.bytes;
    l->needed += h.bytes;
    end_waits(l);
    if (l->needed > l->needed_peak)
        l->needed_peak = l->needed;
    return h;
}

static void
drop(struct loop *l, struct held *h, bool is_on_stream)
{
    uint64_t begin = now_ns();
    if (!l->pinned) {
        torch_free(&l->torch, h->block, is_on_stream);
    } else {
        if (is_on_stream)
            need(dry_pinned_record_stream(l->pinned, h->at, 0) == DRY_OK, "record");
        (void)dry_pinned_free(l->pinned, h->at);
    }
    l->ours_ns += now_ns() - begin;
    l->requested_now -= h->bytes;
    if (is_on_stream)
        begin_wait(l, h->bytes);
    else
        l->needed -= h->bytes;
    *h = (struct held){0};
}

/* Load tokens, masks, and images whose sides differ from batch to batch. */
static size_t
load_batch(struct loop *l, struct held *batch)
{
    uint64_t side = 192 + 16 * next_random(l, 5);
    batch[0] = hold(l, UINT64_C(8) * 4096 * 8);
    batch[1] = hold(l, UINT64_C(8) * 4096 * 8);
    batch[2] = hold(l, UINT64_C(8) * 4096);
    batch[3] = hold(l, UINT64_C(48) * 3 * side * side * 4);
    batch[4] = hold(l, 300 + next_random(l, 3000));
    return 5;
}

/* Copy gradients out and parameters in, a layer at a time, two layers in flight. */
static void
offload_step(struct loop *l)
{
    struct held ring[2][MATRICES] = {{{0}}};
    for (size_t layer = 0; layer < LAYERS + 2; layer++) {
        struct held *now = ring[layer % 2];
        for (size_t i = 0; i < MATRICES; i++) {
            if (now[i].bytes)
                drop(l, &now[i], true);
            if (layer < LAYERS)
                now[i] = hold(l, matrices[i] * (layer % 3 ? 2 : 4) / (i % 2 ? 1 : 2));
        }
    }
}

struct training {
    struct held state[LAYERS * MATRICES * 3], batches[PREFETCH][8];
    struct held staged[LAYERS * MATRICES];
    size_t batch_counts[PREFETCH];
};

static void
begin_training(struct loop *l, struct training *t)
{
    for (size_t i = 0; i < LAYERS * MATRICES * 3; i++) {
        uint64_t count = matrices[i / 3 % MATRICES];
        t->state[i] = hold(l, (count * 4 + SHARDS - 1) / SHARDS);
    }
}

static void
train(struct loop *l, struct training *t, uint64_t step)
{
    size_t at = step % PREFETCH;
    for (size_t i = 0; i < t->batch_counts[at]; i++)
        drop(l, &t->batches[at][i], true);
    t->batch_counts[at] = load_batch(l, t->batches[at]);
    offload_step(l);
    bool is_saving = step % 10 == 5;
    for (size_t i = 0; i < LAYERS * MATRICES; i++) {
        if (t->staged[i].bytes)
            drop(l, &t->staged[i], false);
        if (is_saving)
            t->staged[i] = hold(l, matrices[i % MATRICES] * 4 / SHARDS);
    }
}

static void
end_training(struct loop *l, struct training *t)
{
    for (size_t at = 0; at < PREFETCH; at++)
        for (size_t i = 0; i < t->batch_counts[at]; i++)
            drop(l, &t->batches[at][i], true);
    for (size_t i = 0; i < LAYERS * MATRICES; i++)
        if (t->staged[i].bytes)
            drop(l, &t->staged[i], false);
}

static double
seconds_of(const struct loop *l)
{
    return l->m.seconds + (double)l->ours_ns / 1e9;
}

struct policy {
    const char *name, *options; /* NULL: PyTorch's */
    double cost;
};

static void
begin_loop(struct loop *l, const struct policy *policy, bool is_real)
{
    *l = (struct loop){.scale = is_real ? 64 : 1, .random = 1};
    model_init(&l->m, policy->cost, is_real);
    l->torch = (struct torch){.m = &l->m,
                              .blocks = take(TORCH_BLOCKS_MAX, sizeof *l->torch.blocks)};
    uint64_t begin = now_ns();
    if (policy->options)
        l->pinned = make_cache(&l->m, policy->options);
    l->ours_ns += now_ns() - begin;
}

/* Clear after the streams are done with everything. */
static void
clear_loop(struct loop *l)
{
    l->m.clock += 1000;
    if (l->pinned)
        (void)dry_pinned_clear(l->pinned);
    else
        torch_clear(&l->torch);
}

static void
end_loop(struct loop *l)
{
    dry_pinned_destroy(l->pinned);
    free(l->torch.blocks);
}

static void
run_loop(const struct policy *policy, uint64_t first, uint64_t tail, bool is_real)
{
    static struct training t;
    static struct loop l;
    t = (struct training){0};
    begin_loop(&l, policy, is_real);
    begin_training(&l, &t);
    for (uint64_t step = 0; step < first; step++)
        train(&l, &t, step);
    double first_seconds = seconds_of(&l);
    for (uint64_t step = first; step < first + tail; step++)
        train(&l, &t, step);
    double tail_seconds = seconds_of(&l) - first_seconds;
    uint64_t before = l.m.pinned_bytes;
    end_training(&l, &t);
    clear_loop(&l);
    printf("{\"bench\":\"%s\",\"policy\":\"%s\",\"pin_cost\":%.3f,\"first_s\":%.4f,"
           "\"tail_s\":%.6f,\"needed_peak\":%" PRIu64 ",\"pinned_peak\":%" PRIu64
           ",\"before_clear\":%" PRIu64 ",\"after_clear\":%" PRIu64
           ",\"needed_after\":%" PRIu64 ",\"rounded_ratio\":%.4f}\n",
           is_real ? "real" : "loop", policy->name, policy->cost, first_seconds,
           tail_seconds, l.needed_peak, l.m.pinned_peak, before, l.m.pinned_bytes,
           l.requested_now, (double)l.rounded / (double)l.requested);
    end_loop(&l);
}

static void
bench_loop(uint64_t first, uint64_t tail)
{
    static const struct policy policies[] = {
        {"powers of two", NULL, PLAIN},
        {"powers of two, our pinning", NULL, OURS},
        {"buddy 4 GiB x 7, T 4 MiB",
         "BUDDY_BLOCK_SIZE_MB:4096,BUDDY_BLOCK_COUNT:7,BUDDY_THRESHOLD_MB:4", OURS},
        {"buddy 4 GiB x 7, T 0",
         "BUDDY_BLOCK_SIZE_MB:4096,BUDDY_BLOCK_COUNT:7,BUDDY_THRESHOLD_MB:0", OURS},
        {"fit", "", OURS},
        {"fit, plain pinning", "", PLAIN},
    };
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
        run_loop(&policies[i], first, tail, false);
}

static void
bench_real(void)
{
    static const struct policy policies[] = {
        {"powers of two", NULL, 0},
        {"buddy 64 MiB x 7, T 64 KiB",
         "mode:buddy,block_mb:64,block_count:7,threshold_kb:64", 0},
        {"fit", "threshold_kb:64", 0},
    };
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
        run_loop(&policies[i], 20, 20, true);
}

/* --- small blocks among large ones ------------------------------------------------------- */

/*
 * Blocks of kilobytes that stay lie between matrices that go, at the sizes that pytorch #181094
 * reports: some 3.7 GiB stay, as powers of two. Matrices pass in waves: one holds `wave_bytes`,
 * as powers of two, and goes before the next one comes.
 */
#define KIND_BYTES (28 * DRYI_GIB) /* of all waves */
#define KIND_STAYS (UINT64_C(2745) * DRYI_MIB)
#define KIND_MAX 32768

struct kind {
    struct loop loop;
    struct held stay[KIND_MAX], wave[KIND_MAX];
    size_t stay_count, matrix_count; /* the latter of all waves */
    uint64_t passed_bytes, stay_bytes;
};

/* Return a matrix's bytes in fp32, among those above 4 MiB. */
static uint64_t
next_matrix(struct kind *k)
{
    uint64_t bytes = 0;
    while (bytes <= 4 * DRYI_MIB)
        bytes = matrices[k->matrix_count++ % MATRICES] * 4;
    return bytes;
}

/* Hold blocks of up to 1 MiB until the share of what has passed so far is there. */
static void
hold_those_that_stay(struct kind *k)
{
    double share = (double)k->passed_bytes / (double)KIND_BYTES;
    while ((double)k->stay_bytes < share * (double)KIND_STAYS) {
        uint64_t low = DRYI_KIB << next_random(&k->loop, 10);
        uint64_t bytes = low + next_random(&k->loop, low) + 1;
        need(k->stay_count < KIND_MAX, "too many blocks");
        k->stay[k->stay_count++] = hold(&k->loop, bytes);
        k->stay_bytes += bytes;
    }
}

static void
pass_wave(struct kind *k, uint64_t wave_bytes)
{
    size_t count = 0;
    for (uint64_t sum = 0; sum < wave_bytes;) {
        uint64_t bytes = next_matrix(k);
        uint64_t rounded = UINT64_C(2) << dryi_log2_floor(bytes - 1);
        sum += rounded;
        k->passed_bytes += rounded;
        k->wave[count++] = hold(&k->loop, bytes);
        hold_those_that_stay(k);
    }
    while (count)
        drop(&k->loop, &k->wave[--count], true);
    k->loop.m.clock += 1000;
}

static void
run_kind(const struct policy *policy, uint64_t wave_bytes)
{
    static struct kind k;
    struct loop *l = &k.loop;
    k.stay_count = k.matrix_count = 0;
    k.passed_bytes = k.stay_bytes = 0;
    begin_loop(l, policy, false);
    while (k.passed_bytes < KIND_BYTES)
        pass_wave(&k, wave_bytes);
    clear_loop(l);
    printf("{\"bench\":\"kind\",\"wave\":%" PRIu64 ",\"policy\":\"%s\",\"blocks\":%zu,"
           "\"pinned_peak\":%" PRIu64 ",\"after_clear\":%" PRIu64
           ",\"needed_after\":%" PRIu64 "}\n",
           wave_bytes, policy->name, k.stay_count, l->m.pinned_peak, l->m.pinned_bytes,
           l->requested_now);
    end_loop(l);
}

static void
bench_kind(void)
{
    static const struct policy policies[] = {
        {"powers of two", NULL, PLAIN},
        {"buddy 4 GiB x 7, T 4 MiB",
         "BUDDY_BLOCK_SIZE_MB:4096,BUDDY_BLOCK_COUNT:7,BUDDY_THRESHOLD_MB:4", OURS},
        {"buddy 4 GiB x 7, T 0",
         "BUDDY_BLOCK_SIZE_MB:4096,BUDDY_BLOCK_COUNT:7,BUDDY_THRESHOLD_MB:0", OURS},
        {"fit", "", OURS},
    };
    static const uint64_t waves[] = {4 * DRYI_GIB, KIND_BYTES};
    for (size_t w = 0; w < sizeof waves / sizeof *waves; w++)
        for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
            run_kind(&policies[i], waves[w]);
}

/* --- waste ---------------------------------------------------------------------------------- */

enum sizes { LOG_UNIFORM, UNIFORM, WEIGHTS, IMAGES, SIZES_COUNT };

static uint64_t
choose_size(struct loop *l, enum sizes sizes)
{
    static const uint64_t weights[] = {259 * DRYI_MIB / 2, 112 * DRYI_MIB, 609 * DRYI_MIB,
                                       193 * DRYI_MIB / 2};
    uint64_t r = next_random(l, UINT64_C(1) << 30);
    if (sizes == LOG_UNIFORM) { /* 64 KiB to 512 MiB */
        unsigned octave = (unsigned)(r % 13);
        uint64_t low = UINT64_C(65536) << octave;
        return low + (r * low >> 30);
    }
    if (sizes == UNIFORM)
        return DRYI_MIB + (r * (63 * DRYI_MIB) >> 30);
    if (sizes == WEIGHTS)
        return weights[r % 4];
    uint64_t side = 160 + r % 225;
    return UINT64_C(64) * 3 * side * side * 4;
}

/* Take more and more, three freed for five taken, until 28 GiB have no room. */
static void
fill(struct loop *l, enum sizes sizes, const char *policy)
{
    enum { HELD_MAX = 65536 };
    struct held *held = take(HELD_MAX, sizeof *held);
    size_t count = 0;
    for (;;) {
        if (next_random(l, 8) < 3 && count) {
            size_t i = next_random(l, count);
            drop(l, &held[i], false);
            held[i] = held[--count];
            continue;
        }
        void *at = NULL;
        uint64_t bytes = choose_size(l, sizes);
        need(count < HELD_MAX, "too many blocks");
        if (dry_pinned_alloc(l->pinned, bytes, DRY_PINNED_NO_STREAM, &at) != DRY_OK)
            break;
        l->requested += bytes;
        l->rounded += dry_pinned_round_size(l->pinned, bytes);
        l->needed += bytes;
        l->requested_now += bytes;
        held[count++] = (struct held){.at = at, .bytes = bytes};
    }
    static const char *const names[] = {"log-uniform 64 KiB-512 MiB", "uniform 1-64 MiB",
                                        "weights", "image batches"};
    printf("{\"bench\":\"fill\",\"sizes\":\"%s\",\"policy\":\"%s\","
           "\"rounded_ratio\":%.4f,\"usable\":%.4f}\n",
           names[sizes], policy, (double)l->rounded / (double)l->requested,
           (double)l->requested_now / (28.0 * (double)DRYI_GIB));
    free(held);
}

static void
bench_fill(void)
{
    static const char *const policies[][2] = {
        {"fit", "budget_mb:28672"},
        {"fit, warm", "budget_mb:28672,warm_mb:28672"},
        {"buddy", "budget_mb:28672,mode:buddy,block_mb:4096,block_count:7"},
    };
    static struct loop l;
    for (int sizes = 0; sizes < SIZES_COUNT; sizes++) {
        for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
            l = (struct loop){.scale = 1, .random = 7};
            model_init(&l.m, OURS, false);
            l.pinned = make_cache(&l.m, policies[i][1]);
            fill(&l, (enum sizes)sizes, policies[i][0]);
            dry_pinned_destroy(l.pinned);
        }
    }
}

int
main(int count, char **arguments)
{
    const char *mode = count > 1 ? arguments[1] : "";
    uint64_t first = count > 2 ? strtoull(arguments[2], NULL, 10) : 0;
    uint64_t second = count > 3 ? strtoull(arguments[3], NULL, 10) : 0;
    if (strcmp(mode, "pairs") == 0 && first)
        bench_pairs(first);
    else if (strcmp(mode, "pair") == 0 && first)
        bench_pair(first, second, count > 4 ? arguments[4] : "");
    else if (strcmp(mode, "loop") == 0 && first)
        bench_loop(first, second);
    else if (strcmp(mode, "fill") == 0)
        bench_fill();
    else if (strcmp(mode, "real") == 0)
        bench_real();
    else if (strcmp(mode, "kind") == 0)
        bench_kind();
    else
        return 2;
    return 0;
}
