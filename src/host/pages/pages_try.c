/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One rung of the ladder: map, bind to nodes, set fork behaviour and page size, populate,
 * and check the result. The first failure unmaps the region and has the reason
 * (pages_reason.c).
 */
#include <errno.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "base/bits.h"
#include "host/pages/pages_inside.h"
#include "host/pages/populate.h"

#define USABLE (PROT_READ | PROT_WRITE)
/* MAP_HUGE_SHIFT: mmap()'s flags contain log2 of the page size here. */
#define HUGE_SHIFT 26
#define THREADS_USEFUL 32

static bool
refuse(struct dryi_pages_try *t, enum dry_pages_reason reason, int os_errno)
{
    t->reason = reason;
    t->os_errno = os_errno;
    return false;
}

static int
get_sharing(const struct dryi_pages_try *t)
{
    return t->order->options.fork == DRY_PAGES_SHARED ? MAP_SHARED : MAP_PRIVATE;
}

static int
map(const struct dryi_pages_try *t, const struct dryi_kernel_map *what, uint64_t *address)
{
    const struct dryi_kernel *k = t->order->facts.kernel;
    return k->map(k->self, what, address);
}

void
dryi_pages_release(const struct dryi_kernel *kernel, uint64_t outer_address,
                   uint64_t outer_bytes)
{
    if (outer_bytes && kernel->unmap(kernel->self, outer_address, outer_bytes) < 0)
        kernel->advise(kernel->self, outer_address, outer_bytes, DRYI_ADVISE_DONTNEED);
}

static void
release(struct dryi_pages_try *t)
{
    dryi_pages_release(t->order->facts.kernel, t->outer_address, t->outer_bytes);
    t->outer_bytes = 0;
}

/* Without MAP_NORESERVE, so that mmap() fails if the pool is too small. The kernel aligns
   the address itself, and never merges such a mapping with another. */
static int
map_pool(struct dryi_pages_try *t)
{
    struct dryi_kernel_map what = {
        .bytes = t->bytes,
        .protection = USABLE,
        .flags = get_sharing(t) | MAP_ANONYMOUS | MAP_HUGETLB |
                 (int)(dryi_log2_floor(t->rung.page_bytes) << HUGE_SHIFT),
    };
    int result = map(t, &what, &t->outer_address);
    if (result < 0)
        return result;
    t->outer_bytes = t->bytes;
    t->address = t->outer_address;
    return 0;
}

/* Reserve addresses first, with space for alignment and an inaccessible page on both
   sides. */
static int
map_anonymous(struct dryi_pages_try *t)
{
    uint64_t base = t->order->base_bytes;
    struct dryi_kernel_map outer = {
        .bytes = t->bytes + t->rung.page_bytes + 2 * base,
        .protection = PROT_NONE,
        .flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
    };
    int result = map(t, &outer, &t->outer_address);
    if (result < 0)
        return result;
    t->outer_bytes = outer.bytes;
    struct dryi_kernel_map inner = {
        .address = dryi_round_up(t->outer_address + base, t->rung.page_bytes),
        .bytes = t->bytes,
        .protection = USABLE,
        .flags = get_sharing(t) | MAP_ANONYMOUS | MAP_FIXED,
    };
    return map(t, &inner, &t->address);
}

static bool
map_region(struct dryi_pages_try *t)
{
    int result = t->rung.kind == DRY_PAGES_POOL ? map_pool(t) : map_anonymous(t);
    if (result == 0)
        return true;
    t->os_errno = -result;
    return refuse(t, dryi_pages_why_not_mapped(t), -result);
}

static int
bind_mode(const struct dryi_pages_try *t)
{
    if (t->order->where == DRY_PAGES_INTERLEAVED || t->is_even)
        return DRYI_BIND_INTERLEAVE;
    if (t->order->where == DRY_PAGES_WEIGHTED)
        return DRYI_BIND_WEIGHTED;
    return t->rung.may_spill ? DRYI_BIND_PREFERRED : DRYI_BIND_STRICTLY;
}

static int
bind_region(const struct dryi_pages_try *t)
{
    const struct dryi_kernel *k = t->order->facts.kernel;
    struct dryi_kernel_map range = {.address = t->address, .bytes = t->bytes};
    return k->bind(k->self, &range, bind_mode(t), t->order->nodes.words,
                   DRY_PAGES_NODES_MAX);
}

/* Interleave evenly after EINVAL, which means that the kernel does not support weights,
   or these nodes. */
static int
bind_region_evenly(struct dryi_pages_try *t)
{
    t->is_even = true;
    t->node_reason = DRY_PAGES_NO_WEIGHTS;
    int result = bind_region(t);
    if (result == 0 && t->order->options.policy == DRY_PAGES_STRICT)
        refuse(t, DRY_PAGES_NO_WEIGHTS, EINVAL);
    return result;
}

/*
 * Set the region's memory policy. If that is forbidden, threads on the node's CPUs
 * populate it: by default a page comes from the node of the thread that touches it first.
 */
static bool
place_region(struct dryi_pages_try *t)
{
    const struct dryi_pages_order *o = t->order;
    if (o->where == DRY_PAGES_ANYWHERE || o->is_everywhere)
        return true;
    int result = bind_region(t);
    if (result == -EINVAL && o->where == DRY_PAGES_WEIGHTED)
        result = bind_region_evenly(t);
    if (result == 0) {
        t->is_bound = true;
        return t->reason == DRY_PAGES_REASON_NONE;
    }
    if (result == -EPERM || result == -ENOSYS) {
        t->by_first_touch = o->where == DRY_PAGES_ON_NODE;
        t->node_reason = DRY_PAGES_SECCOMP;
        t->os_errno = -result;
        return t->by_first_touch || t->rung.may_spill ||
               refuse(t, DRY_PAGES_SECCOMP, -result);
    }
    return refuse(t, result == -EINVAL ? DRY_PAGES_NO_SUCH_NODE : DRY_PAGES_REFUSED,
                  -result);
}

static int
advise(const struct dryi_pages_try *t, int advice)
{
    const struct dryi_kernel *k = t->order->facts.kernel;
    return k->advise(k->self, t->address, t->bytes, advice);
}

static bool
choose_fork(struct dryi_pages_try *t)
{
    enum dry_pages_fork fork = t->order->options.fork;
    if (fork == DRY_PAGES_INHERIT || fork == DRY_PAGES_SHARED)
        return true;
    int result =
        advise(t, fork == DRY_PAGES_WIPE ? DRYI_ADVISE_WIPEONFORK : DRYI_ADVISE_DONTFORK);
    return result == 0 || refuse(t, DRY_PAGES_FORK, -result);
}

/* Kernels without transparent huge pages know neither advice; base pages need none
   there. */
static bool
choose_pages(struct dryi_pages_try *t)
{
    if (t->rung.kind == DRY_PAGES_POOL)
        return true;
    bool is_huge = t->rung.kind == DRY_PAGES_TRANSPARENT;
    int result = advise(t, is_huge ? DRYI_ADVISE_HUGE : DRYI_ADVISE_NO_HUGE);
    if (result == 0 || (!is_huge && result == -EINVAL))
        return true;
    return refuse(t, is_huge ? DRY_PAGES_THP_OFF : DRY_PAGES_REFUSED, -result);
}

/* Find the CPUs of the node on which this thread may run; false: none, or not known. */
static bool
find_cpus(const struct dryi_pages_try *t, struct dryi_cpus *cpus)
{
    const struct dryi_pages_order *o = t->order;
    const struct dryi_kernel *k = o->facts.kernel;
    struct dryi_cpus of_node;
    if (k->get_cpus(k->self, cpus) < 0) {
        *cpus = (struct dryi_cpus){{1}};
        return false;
    }
    if (o->where != DRY_PAGES_ON_NODE ||
        !dryi_facts_node_cpus(&o->facts, o->options.node, &of_node))
        return false;
    struct dryi_cpus both = *cpus;
    for (size_t i = 0; i < sizeof both.words / sizeof *both.words; i++)
        both.words[i] &= of_node.words[i];
    if (dryi_cpus_count(&both) == 0)
        return false;
    *cpus = both;
    return true;
}

static uint32_t
thread_count(const struct dryi_pages_try *t, const struct dryi_cpus *cpus)
{
    if (t->order->options.thread_count)
        return t->order->options.thread_count;
    unsigned count = dryi_cpus_count(cpus);
    return count < 1 ? 1 : count > THREADS_USEFUL ? THREADS_USEFUL : count;
}

static uint64_t
get_deadline(const struct dryi_pages_try *t, uint64_t now_ns)
{
    uint64_t timeout_ms = t->order->options.timeout_ms;
    return timeout_ms ? dryi_add_saturating(now_ns, timeout_ms * 1000000) : 0;
}

static bool
judge_filling(struct dryi_pages_try *t, const struct dryi_populate_result *result)
{
    t->thread_count = result->thread_count;
    t->was_local = result->was_local;
    t->left_bytes = t->bytes - result->done_bytes;
    switch (result->end) {
    case DRYI_POPULATE_DONE:
        return true;
    case DRYI_POPULATE_TIMEOUT:
        return refuse(t, DRY_PAGES_TIMEOUT, 0);
    case DRYI_POPULATE_CANCELLED:
        return refuse(t, DRY_PAGES_CANCELLED, 0);
    case DRYI_POPULATE_REFUSED:
        break;
    }
    t->os_errno = result->os_errno;
    return refuse(t, dryi_pages_why_not_filled(t), result->os_errno);
}

/* Check free memory again, because other programs allocate meanwhile and the kernel never
   refuses these pages. */
static bool
may_go_on(const void *self, uint64_t left_bytes)
{
    struct dryi_pages_try t = *(const struct dryi_pages_try *)self;
    t.left_bytes = left_bytes;
    return dryi_pages_why_not_tried(&t) == DRY_PAGES_REASON_NONE;
}

/* Populate the region; `again`: touch pages that all exist. */
static bool
fill_region(struct dryi_pages_try *t, uint64_t deadline_ns, bool again)
{
    const struct dryi_pages_order *o = t->order;
    struct dryi_cpus cpus;
    bool is_local = find_cpus(t, &cpus);
    bool is_pool = t->rung.kind == DRY_PAGES_POOL;
    uint64_t page = t->rung.page_bytes;
    struct dryi_populate populate = {
        .kernel = o->facts.kernel,
        .address = t->address,
        .bytes = t->bytes,
        .page_bytes = is_pool ? page : o->base_bytes,
        .piece_bytes = page > DRYI_POPULATE_PIECE ? page : DRYI_POPULATE_PIECE,
        .cpus = is_local ? &cpus : NULL,
        .must_be_local = t->by_first_touch,
        .thread_count = thread_count(t, &cpus),
        .deadline_ns = deadline_ns,
        .may_go_on = is_pool || again ? NULL : may_go_on,
        .may_go_on_self = t,
        .progress = again ? NULL : o->options.progress,
        .progress_self = o->options.progress_self,
    };
    struct dryi_populate_result result;
    dryi_populate_run(&populate, &result);
    return judge_filling(t, &result);
}

/* Collapse step by step. EINVAL can also mean a page that cannot be moved, so only EINVAL
   for every step means an older kernel. */
int
dryi_pages_collapse(const struct dryi_kernel *kernel, uint64_t address, uint64_t bytes,
                    uint64_t step, uint64_t deadline_ns)
{
    int unknown = 0;
    bool is_known = false;
    for (uint64_t at = 0; at < bytes; at += step) {
        if (deadline_ns && kernel->time_ns(kernel->self) >= deadline_ns)
            return 0;
        int result =
            kernel->advise(kernel->self, address + at, step, DRYI_ADVISE_COLLAPSE);
        if (result == -ENOSYS || result == -EPERM)
            return result;
        is_known |= result != -EINVAL;
        if (result == -EINVAL)
            unknown = result;
        if (!is_known && at >= 7 * step)
            break;
    }
    return is_known ? 0 : unknown;
}

static bool
judge_pages(struct dryi_pages_try *t, uint64_t deadline_ns)
{
    const struct dryi_facts *facts = &t->order->facts;
    if (t->rung.kind == DRY_PAGES_POOL)
        t->huge_bytes = t->bytes;
    if (t->rung.kind != DRY_PAGES_TRANSPARENT)
        return true;
    bool knows = dryi_pages_count_huge(facts, t->address, t->bytes, &t->huge_bytes);
    if (knows && t->huge_bytes < t->bytes) {
        dryi_pages_collapse(facts->kernel, t->address, t->bytes, t->rung.page_bytes,
                            deadline_ns);
        /* NUMA balancing marks huge pages to see which threads use them. smaps of Linux
           6.1 omits marked pages until they are used again. */
        if (!fill_region(t, deadline_ns, true))
            return false;
        knows = dryi_pages_count_huge(facts, t->address, t->bytes, &t->huge_bytes);
    }
    if (knows && t->huge_bytes == t->bytes)
        return true;
    t->reason = knows ? DRY_PAGES_FRAGMENTED : DRY_PAGES_UNPROVEN;
    return t->order->options.policy != DRY_PAGES_STRICT;
}

/* Check where the pages are. A strict binding needs no check. If other nodes were
   allowed, their share is reported; otherwise pages elsewhere fail the try. */
static bool
judge_places(struct dryi_pages_try *t)
{
    const struct dryi_pages_order *o = t->order;
    if (o->where == DRY_PAGES_ANYWHERE || o->is_everywhere)
        return true;
    if (t->is_bound && bind_mode(t) == DRYI_BIND_STRICTLY)
        return true;
    struct dryi_pages_places places = {
        .kernel = o->facts.kernel,
        .address = t->address,
        .bytes = t->bytes,
        .step = t->rung.kind == DRY_PAGES_POOL ? t->rung.page_bytes : o->base_bytes,
    };
    struct dryi_pages_survey survey;
    bool knows = dryi_pages_survey_nodes(&places, &o->nodes, &survey) &&
                 survey.populated_bytes == t->bytes;
    t->elsewhere_bytes = knows ? survey.elsewhere_bytes : 0;
    bool is_whole = knows && t->elsewhere_bytes == 0;
    if (is_whole) {
        t->node_reason = t->is_even ? DRY_PAGES_NO_WEIGHTS : DRY_PAGES_REASON_NONE;
        return true;
    }
    if (knows && (t->is_bound || (t->by_first_touch && t->was_local)))
        t->node_reason = DRY_PAGES_NODE_DRY;
    else if (t->node_reason == DRY_PAGES_REASON_NONE)
        t->node_reason = DRY_PAGES_UNPROVEN;
    if (t->rung.may_spill || (!knows && o->options.policy == DRY_PAGES_PREFER))
        return true;
    return refuse(t, t->node_reason, t->os_errno);
}

static bool
make_region(struct dryi_pages_try *t)
{
    const struct dryi_kernel *k = t->order->facts.kernel;
    if (!map_region(t) || !place_region(t) || !choose_fork(t) || !choose_pages(t))
        return false;
    uint64_t begin_ns = k->time_ns(k->self);
    uint64_t deadline_ns = get_deadline(t, begin_ns);
    if (!fill_region(t, deadline_ns, false))
        return false;
    bool is_made = judge_pages(t, deadline_ns);
    t->populate_ns = k->time_ns(k->self) - begin_ns;
    return is_made && judge_places(t);
}

bool
dryi_pages_try_run(struct dryi_pages_try *t)
{
    uint64_t step = t->rung.page_bytes ? t->rung.page_bytes : t->order->base_bytes;
    t->bytes = dryi_round_up(t->order->options.bytes, step);
    t->left_bytes = t->bytes;
    t->reason = dryi_pages_why_not_tried(t);
    if (t->reason != DRY_PAGES_REASON_NONE)
        return false;
    if (make_region(t)) {
        DRYI_ASSERT(t->address % t->rung.page_bytes == 0);
        DRYI_ASSERT(t->address >= t->outer_address &&
                    t->address + t->bytes <= t->outer_address + t->outer_bytes);
        return true;
    }
    DRYI_ASSERT(t->reason != DRY_PAGES_REASON_NONE);
    release(t);
    return false;
}
