/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The kernel reports only ENOMEM or EFAULT; the state of /sys right afterwards shows the
 * cause.
 */
#include <errno.h>
#include <stddef.h>

#include "base/bits.h"
#include "host/pages/pages_inside.h"

static const struct {
    const char *name, *text;
    enum dry_status status;
} reasons[] = {
    [DRY_PAGES_REASON_NONE] = {"none", "nothing is missing", DRY_OK},
    [DRY_PAGES_NO_SUCH_SIZE] = {"no-such-size", "the kernel has no pages of this size",
                                DRY_ERR_UNSUPPORTED},
    [DRY_PAGES_NO_POOL] = {"no-pool", "the pool of huge pages has too few free",
                           DRY_ERR_NO_SPACE},
    [DRY_PAGES_NODE_DRY] = {"node-dry",
                            "the node has too little free memory of this kind",
                            DRY_ERR_NO_SPACE},
    [DRY_PAGES_CGROUP_LIMIT] = {"cgroup", "a control group's limit leaves too little",
                                DRY_ERR_NO_SPACE},
    [DRY_PAGES_CGROUP_RESERVATION] = {"cgroup-rsvd",
                                      "a control group's limit of reserved huge pages "
                                      "leaves too little",
                                      DRY_ERR_NO_SPACE},
    [DRY_PAGES_SECCOMP] = {"seccomp",
                           "this process may not make the calls that place memory on "
                           "nodes (mbind)",
                           DRY_ERR_UNSUPPORTED},
    [DRY_PAGES_THP_OFF] = {"thp-off", "transparent huge pages are off",
                           DRY_ERR_UNSUPPORTED},
    [DRY_PAGES_FRAGMENTED] = {"fragmented", "free memory does not lie in huge pieces",
                              DRY_ERR_NO_SPACE},
    [DRY_PAGES_TIMEOUT] = {"timeout", "filling took longer than was allowed",
                           DRY_ERR_NO_SPACE},
    [DRY_PAGES_NO_SUCH_NODE] = {"no-such-node", "there is no such node with memory",
                                DRY_ERR_UNSUPPORTED},
    [DRY_PAGES_NO_PERMISSION] = {"no-permission",
                                 "the node or the pool is not for this process",
                                 DRY_ERR_SYSTEM},
    [DRY_PAGES_LIMITS] = {"limits", "a resource limit of this process (RLIMIT_AS)",
                          DRY_ERR_NO_SPACE},
    [DRY_PAGES_NO_MEMORY] = {"no-memory", "the machine has too little free memory",
                             DRY_ERR_NO_SPACE},
    [DRY_PAGES_FORK] = {"fork", "such pages cannot behave so at fork",
                        DRY_ERR_UNSUPPORTED},
    [DRY_PAGES_UNPROVEN] = {"unproven", "the kernel does not tell whether it is as asked",
                            DRY_ERR_UNSUPPORTED},
    [DRY_PAGES_REFUSED] = {"refused", "the kernel refuses", DRY_ERR_SYSTEM},
    [DRY_PAGES_CANCELLED] = {"cancelled", "the caller asked to stop", DRY_ERR_CANCELLED},
    [DRY_PAGES_NO_WEIGHTS] = {"no-weights",
                              "this kernel interleaves without weights (6.9 has them)",
                              DRY_ERR_UNSUPPORTED},
};
#define REASON_COUNT (sizeof reasons / sizeof *reasons)

const char *
dry_pages_reason_name(enum dry_pages_reason reason)
{
    return (size_t)reason < REASON_COUNT ? reasons[reason].name : NULL;
}

const char *
dry_pages_reason_text(enum dry_pages_reason reason)
{
    return (size_t)reason < REASON_COUNT ? reasons[reason].text : NULL;
}

enum dry_status
dryi_pages_reason_status(enum dry_pages_reason reason)
{
    return reasons[reason].status;
}

const char *
dry_pages_kind_name(enum dry_pages_kind kind)
{
    static const char *const names[] = {
        [DRY_PAGES_BASE] = "base",
        [DRY_PAGES_TRANSPARENT] = "transparent",
        [DRY_PAGES_POOL] = "pool",
    };
    return (size_t)kind < sizeof names / sizeof *names ? names[kind] : NULL;
}

static bool
is_bound_to_one(const struct dryi_pages_try *t)
{
    return t->order->where == DRY_PAGES_ON_NODE && !t->order->is_everywhere &&
           !t->rung.may_spill;
}

/* Compare with the bytes still to populate plus keep_free_bytes. */
static bool
is_short(const struct dryi_pages_try *t, uint64_t available_bytes)
{
    return available_bytes <
           dryi_add_saturating(t->left_bytes, t->order->options.keep_free_bytes);
}

static enum dry_pages_reason
why_not_pool(const struct dryi_pages_try *t)
{
    enum dry_pages_fork fork = t->order->options.fork;
    if (t->rung.page_bytes == 0)
        return DRY_PAGES_NO_SUCH_SIZE;
    if (fork == DRY_PAGES_INHERIT || fork == DRY_PAGES_WIPE)
        return DRY_PAGES_FORK;
    return DRY_PAGES_REASON_NONE;
}

/* Check free memory first: if such a page is missing, the kernel kills a process. */
static enum dry_pages_reason
why_not_anonymous(const struct dryi_pages_try *t)
{
    const struct dryi_pages_order *o = t->order;
    bool is_shared = o->options.fork == DRY_PAGES_SHARED;
    if (t->rung.kind == DRY_PAGES_TRANSPARENT &&
        (is_shared ? o->thp.is_off_for_shared : o->thp.is_off))
        return DRY_PAGES_THP_OFF;
    if (is_short(t, dryi_facts_cgroup_free_bytes(&o->facts)))
        return DRY_PAGES_CGROUP_LIMIT;
    if (is_short(t, dryi_facts_available_bytes(&o->facts, DRYI_ALL_NODES)))
        return DRY_PAGES_NO_MEMORY;
    if (is_bound_to_one(t) &&
        is_short(t, dryi_facts_available_bytes(&o->facts, o->options.node)))
        return DRY_PAGES_NODE_DRY;
    return DRY_PAGES_REASON_NONE;
}

enum dry_pages_reason
dryi_pages_why_not_tried(const struct dryi_pages_try *t)
{
    return t->rung.kind == DRY_PAGES_POOL ? why_not_pool(t) : why_not_anonymous(t);
}

static bool
pool_is_short(const struct dryi_pages_try *t)
{
    struct dryi_pool_facts p;
    if (!dryi_facts_pool(&t->order->facts, t->rung.page_bytes, DRYI_ALL_NODES, &p))
        return false;
    uint64_t unreserved = p.free > p.reserved ? p.free - p.reserved : 0;
    uint64_t growth = p.overcommit > p.surplus ? p.overcommit - p.surplus : 0;
    return dryi_add_saturating(unreserved, growth) < t->bytes / t->rung.page_bytes;
}

static enum dry_pages_reason
why_not_mapped_pool(const struct dryi_pages_try *t)
{
    const struct dryi_facts *facts = &t->order->facts;
    if (pool_is_short(t))
        return DRY_PAGES_NO_POOL;
    if (dryi_facts_cgroup_free_pool_bytes(facts, t->rung.page_bytes, true) < t->bytes)
        return DRY_PAGES_CGROUP_RESERVATION;
    return DRY_PAGES_REASON_NONE;
}

enum dry_pages_reason
dryi_pages_why_not_mapped(const struct dryi_pages_try *t)
{
    const struct dryi_kernel *k = t->order->facts.kernel;
    bool is_pool = t->rung.kind == DRY_PAGES_POOL;
    if (t->os_errno == EPERM || t->os_errno == EACCES)
        return DRY_PAGES_NO_PERMISSION;
    if (t->os_errno == EINVAL && is_pool)
        return DRY_PAGES_NO_SUCH_SIZE;
    if (t->os_errno != ENOMEM)
        return DRY_PAGES_REFUSED;
    enum dry_pages_reason reason =
        is_pool ? why_not_mapped_pool(t) : DRY_PAGES_REASON_NONE;
    if (reason != DRY_PAGES_REASON_NONE)
        return reason;
    uint64_t limit;
    if (k->get_address_limit(k->self, &limit) == 0 && limit != UINT64_MAX)
        return DRY_PAGES_LIMITS;
    return is_pool ? DRY_PAGES_NO_POOL : DRY_PAGES_NO_MEMORY;
}

static enum dry_pages_reason
why_not_filled_pool(const struct dryi_pages_try *t)
{
    const struct dryi_facts *facts = &t->order->facts;
    uint64_t page_bytes = t->rung.page_bytes;
    struct dryi_pool_facts p;
    if (dryi_facts_cgroup_free_pool_bytes(facts, page_bytes, false) < page_bytes)
        return DRY_PAGES_CGROUP_LIMIT;
    if (is_bound_to_one(t) &&
        dryi_facts_pool(facts, page_bytes, t->order->options.node, &p) && p.free == 0)
        return DRY_PAGES_NODE_DRY;
    if (dryi_facts_cgroup_free_bytes(facts) < page_bytes)
        return DRY_PAGES_CGROUP_LIMIT;
    return DRY_PAGES_NO_POOL;
}

/* EFAULT stands for SIGBUS when the kernel itself accesses the page. */
enum dry_pages_reason
dryi_pages_why_not_filled(const struct dryi_pages_try *t)
{
    if (t->os_errno != EFAULT && t->os_errno != ENOMEM && t->os_errno != EAGAIN)
        return DRY_PAGES_REFUSED;
    if (t->rung.kind == DRY_PAGES_POOL)
        return why_not_filled_pool(t);
    enum dry_pages_reason reason = why_not_anonymous(t);
    return reason == DRY_PAGES_REASON_NONE ? DRY_PAGES_NO_MEMORY : reason;
}
