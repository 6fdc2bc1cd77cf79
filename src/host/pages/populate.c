/* SPDX-License-Identifier: Apache-2.0 */

/* Threads share a counter of pieces and a status that says whether and why the work
   ended; the first reason wins. See populate.h. */
#include "host/pages/populate.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/assert.h"

#define TRIES_MAX 100 /* tries of a piece while the kernel returns EAGAIN */
#define SLEEP_LEAST_NS 50000
#define SLEEP_MOST_NS 20000000
#define ZEROES_AT_ONCE 256
#define PIECES_UNASKED 16

/* Values of `ended` that are not an errno. */
enum { NOT_ENDED = 0, BY_TIMEOUT = -1, BY_CALLER = -2 };

struct work {
    const struct dryi_populate *populate;
    uint64_t piece_count;
    atomic_uint_least64_t next_piece;
    atomic_uint_least64_t done_bytes;
    atomic_int ended;
    atomic_uint running; /* number of running threads */
    atomic_bool has_no_populate;
    atomic_bool was_elsewhere;
};

unsigned
dryi_cpus_count(const struct dryi_cpus *cpus)
{
    unsigned count = 0;
    for (size_t i = 0; i < sizeof cpus->words / sizeof *cpus->words; i++)
        count += (unsigned)__builtin_popcountll(cpus->words[i]);
    return count;
}

/* End the work; only the first reason is kept. */
static void
end_work(struct work *w, int why)
{
    int expected = NOT_ENDED;
    atomic_compare_exchange_strong(&w->ended, &expected, why);
}

static bool
is_late(const struct dryi_populate *p)
{
    return p->deadline_ns && p->kernel->time_ns(p->kernel->self) >= p->deadline_ns;
}

/* Populate a piece by writing zeroes. Returns 0 or a negative errno. */
static int
write_piece(struct work *w, uint64_t address, uint64_t bytes)
{
    const struct dryi_populate *p = w->populate;
    const struct dryi_kernel *k = p->kernel;
    uint64_t left = bytes / p->page_bytes;
    while (left > 0 && atomic_load(&w->ended) == NOT_ENDED) {
        size_t count = left < ZEROES_AT_ONCE ? left : ZEROES_AT_ONCE;
        int done = k->write_zeroes(k->self, address, p->page_bytes, count);
        if (done < 0 && done != -EINTR && done != -EAGAIN)
            return done;
        if (done == 0 || done > (int)count)
            return -EFAULT;
        if (is_late(p))
            end_work(w, BY_TIMEOUT);
        if (done < 0)
            continue;
        left -= (uint64_t)done;
        address += (uint64_t)done * p->page_bytes;
    }
    return 0;
}

static int
fill_piece(struct work *w, uint64_t address, uint64_t bytes)
{
    const struct dryi_kernel *k = w->populate->kernel;
    if (atomic_load(&w->has_no_populate))
        return write_piece(w, address, bytes);
    int result = -EAGAIN;
    for (int i = 0; i < TRIES_MAX && (result == -EAGAIN || result == -EINTR); i++)
        result = k->advise(k->self, address, bytes, DRYI_ADVISE_POPULATE_WRITE);
    if (result != -EINVAL)
        return result;
    atomic_store(&w->has_no_populate, true);
    return write_piece(w, address, bytes);
}

static bool
may_go_on(struct work *w, uint64_t piece)
{
    const struct dryi_populate *p = w->populate;
    if (!p->may_go_on || piece == 0 || piece % PIECES_UNASKED != 0)
        return true;
    return p->may_go_on(p->may_go_on_self, p->bytes - atomic_load(&w->done_bytes));
}

/* Populate the next piece. False: none is left, or the work has ended. */
static bool
do_piece(struct work *w)
{
    const struct dryi_populate *p = w->populate;
    if (atomic_load(&w->ended) != NOT_ENDED)
        return false;
    uint64_t piece = atomic_fetch_add(&w->next_piece, 1);
    if (piece >= w->piece_count)
        return false;
    if (is_late(p) || !may_go_on(w, piece)) {
        end_work(w, is_late(p) ? BY_TIMEOUT : ENOMEM);
        return false;
    }
    uint64_t begin = piece * p->piece_bytes, bytes = p->piece_bytes;
    if (bytes > p->bytes - begin)
        bytes = p->bytes - begin;
    int result = fill_piece(w, p->address + begin, bytes);
    if (result < 0) {
        end_work(w, -result);
        return false;
    }
    if (atomic_load(&w->ended) == NOT_ENDED)
        atomic_fetch_add(&w->done_bytes, bytes);
    return true;
}

static void
go_to_cpus(struct work *w)
{
    const struct dryi_populate *p = w->populate;
    if (p->cpus && p->kernel->set_cpus(p->kernel->self, p->cpus) < 0)
        atomic_store(&w->was_elsewhere, true);
}

static void *
thread_body(void *argument)
{
    struct work *w = argument;
    go_to_cpus(w);
    while (do_piece(w))
        continue;
    atomic_fetch_sub(&w->running, 1);
    return NULL;
}

static void
report_progress(struct work *w)
{
    const struct dryi_populate *p = w->populate;
    if (p->progress &&
        p->progress(p->progress_self, atomic_load(&w->done_bytes), p->bytes))
        end_work(w, BY_CALLER);
}

/* Call `progress` while threads work. Without a callback the caller just joins them. */
static void
watch(struct work *w)
{
    const struct dryi_populate *p = w->populate;
    uint64_t sleep_ns = SLEEP_LEAST_NS;
    while (p->progress && atomic_load(&w->running) > 0) {
        p->kernel->sleep_ns(p->kernel->self, sleep_ns);
        report_progress(w);
        if (sleep_ns < SLEEP_MOST_NS)
            sleep_ns *= 2;
    }
}

static void
work_alone(struct work *w)
{
    const struct dryi_populate *p = w->populate;
    const struct dryi_kernel *k = p->kernel;
    struct dryi_cpus before;
    bool goes = p->cpus && p->must_be_local && k->get_cpus(k->self, &before) == 0;
    if (goes)
        go_to_cpus(w);
    else if (p->cpus)
        atomic_store(&w->was_elsewhere, true);
    do
        report_progress(w);
    while (do_piece(w));
    int result = goes ? k->set_cpus(k->self, &before) : 0;
    if (result < 0)
        end_work(w, -result);
}

static uint32_t
start_threads(struct work *w, struct dryi_thread *threads, uint32_t wanted)
{
    const struct dryi_kernel *k = w->populate->kernel;
    uint32_t count = 0;
    while (count < wanted) {
        atomic_fetch_add(&w->running, 1);
        if (k->thread_start(k->self, &threads[count], thread_body, w) < 0) {
            atomic_fetch_sub(&w->running, 1);
            break;
        }
        count++;
    }
    return count;
}

static enum dryi_populate_end
get_end(int ended)
{
    switch (ended) {
    case NOT_ENDED:
        return DRYI_POPULATE_DONE;
    case BY_TIMEOUT:
        return DRYI_POPULATE_TIMEOUT;
    case BY_CALLER:
        return DRYI_POPULATE_CANCELLED;
    default:
        return DRYI_POPULATE_REFUSED;
    }
}

void
dryi_populate_run(const struct dryi_populate *populate,
                  struct dryi_populate_result *result)
{
    struct dryi_thread threads[DRYI_POPULATE_THREADS_MAX];
    struct work w = {.populate = populate};
    DRYI_ASSERT(populate->bytes % populate->page_bytes == 0);
    DRYI_ASSERT(populate->piece_bytes % populate->page_bytes == 0);
    w.piece_count = (populate->bytes + populate->piece_bytes - 1) / populate->piece_bytes;
    uint32_t wanted = populate->thread_count;
    if (wanted > DRYI_POPULATE_THREADS_MAX)
        wanted = DRYI_POPULATE_THREADS_MAX;
    if (wanted > w.piece_count)
        wanted = (uint32_t)w.piece_count;
    uint32_t count = wanted > 1 ? start_threads(&w, threads, wanted) : 0;
    if (count == 0)
        work_alone(&w);
    watch(&w);
    for (uint32_t i = 0; i < count; i++)
        populate->kernel->thread_join(populate->kernel->self, &threads[i]);
    int ended = atomic_load(&w.ended);
    *result = (struct dryi_populate_result){
        .end = get_end(ended),
        .os_errno = ended > 0 ? ended : 0,
        .done_bytes = atomic_load(&w.done_bytes),
        .thread_count = count ? count : 1,
        .was_local = populate->cpus && !atomic_load(&w.was_elsewhere),
    };
}
