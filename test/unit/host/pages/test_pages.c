/* SPDX-License-Identifier: Apache-2.0 */

/* Regions of pages on machines that are not here: support/fake_kernel.h. */
#include "support/cmocka.h"
#include "support/failing_memory.h"
#include "support/fake_kernel.h"

#include <drystone/pages.h>

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bits.h"
#include "host/pages/pages_inside.h"

struct fixture {
    struct fake_kernel fake;
    struct dry_pages_options options;
    struct dry_pages *pages;
    struct dry_pages_report report;
    struct dry_pages_info info;
    struct dry_error err;
};

static int
set_up(void **state)
{
    static struct fixture f;
    f = (struct fixture){.info = DRY_INIT(struct dry_pages_info)};
    fake_kernel_init(&f.fake);
    dry_pages_options_init(&f.options);
    f.options.bytes = 4 * DRYI_MIB;
    f.options.thread_count = 1;
    *state = &f;
    return 0;
}

static int
tear_down(void **state)
{
    struct fixture *f = *state;
    dry_pages_destroy(f->pages);
    fake_kernel_finish(&f->fake);
    return 0;
}

static void
ask_for(struct fixture *f, enum dry_pages_kind kind, int node,
        enum dry_pages_policy policy)
{
    f->options.kind = kind;
    f->options.where = node < 0 ? DRY_PAGES_ANYWHERE : DRY_PAGES_ON_NODE;
    f->options.node = node < 0 ? 0 : node;
    f->options.policy = policy;
}

static enum dry_status
create(struct fixture *f)
{
    enum dry_status status =
        dryi_pages_create(&f->options, &f->fake.kernel, &f->pages, &f->report, &f->err);
    if (status == DRY_OK)
        dry_pages_get_info(f->pages, &f->info);
    else
        assert_null(f->pages);
    return status;
}

static void
expect_failure(struct fixture *f, enum dry_status status, enum dry_pages_reason reason)
{
    assert_int_equal(create(f), status);
    assert_int_equal(f->report.count, 1);
    assert_int_equal(f->report.attempts[0].reason, reason);
    assert_false(f->report.attempts[0].is_granted);
    assert_int_equal(f->err.status, status);
    assert_non_null(strstr(f->err.text, dry_pages_reason_text(reason)));
    assert_int_equal(f->fake.map_count, 0);
}

/* Whether attempt `i` was this, and refused for this. */
static void
expect_attempt(const struct fixture *f, size_t i, enum dry_pages_kind kind,
               bool may_spill, enum dry_pages_reason reason)
{
    assert_true(i < f->report.count);
    assert_int_equal(f->report.attempts[i].kind, kind);
    assert_int_equal(f->report.attempts[i].may_spill, may_spill);
    assert_int_equal(f->report.attempts[i].reason, reason);
}

static void
pool_pages_come_from_the_node(void **state)
{
    struct fixture *f = *state;
    f->options.bytes = 3 * DRYI_MIB;
    ask_for(f, DRY_PAGES_POOL, 1, DRY_PAGES_STRICT);
    assert_int_equal(create(f), DRY_OK);
    assert_int_equal(f->info.bytes, 4 * DRYI_MIB);
    assert_int_equal(f->info.requested_bytes, 3 * DRYI_MIB);
    assert_int_equal(f->info.page_bytes, 2 * DRYI_MIB);
    assert_int_equal(f->info.huge_bytes, 4 * DRYI_MIB);
    assert_int_equal((uintptr_t)f->info.address % (2 * DRYI_MIB), 0);
    assert_int_equal(f->fake.node_free[1], 6);
    assert_int_equal(f->fake.node_free[0], 8);
    struct dry_pages_proof proof = DRY_INIT(struct dry_pages_proof);
    assert_int_equal(dry_pages_prove(f->pages, &proof, NULL), DRY_OK);
    assert_int_equal(proof.populated_bytes, 4 * DRYI_MIB);
    assert_int_equal(proof.share_count, 1);
    assert_int_equal(proof.shares[0].node, 1);
    assert_int_equal(proof.shares[0].bytes, 4 * DRYI_MIB);
    assert_int_equal(proof.elsewhere_bytes, 0);
    dry_pages_destroy(f->pages);
    f->pages = NULL;
    assert_int_equal(f->fake.node_free[1], 8);
}

/* 12 of the 16 pages are promised by mmap(), of which node 1 has 8. */
static void
strict_on_a_dry_node_says_so(void **state)
{
    struct fixture *f = *state;
    f->options.bytes = 24 * DRYI_MIB;
    ask_for(f, DRY_PAGES_POOL, 1, DRY_PAGES_STRICT);
    expect_failure(f, DRY_ERR_NO_SPACE, DRY_PAGES_NODE_DRY);
    assert_int_equal(f->report.attempts[0].os_errno, EFAULT);
    assert_int_equal(f->fake.node_free[1], 8);
}

static void
prefer_keeps_the_node_and_takes_smaller_pages(void **state)
{
    struct fixture *f = *state;
    f->options.bytes = 24 * DRYI_MIB;
    ask_for(f, DRY_PAGES_POOL, 1, DRY_PAGES_PREFER);
    assert_int_equal(create(f), DRY_OK);
    expect_attempt(f, 0, DRY_PAGES_POOL, false, DRY_PAGES_NODE_DRY);
    expect_attempt(f, 1, DRY_PAGES_TRANSPARENT, false, DRY_PAGES_REASON_NONE);
    assert_int_equal(f->report.count, 2);
    assert_true(f->report.attempts[1].is_granted);
    assert_int_equal(f->info.kind, DRY_PAGES_TRANSPARENT);
    struct dry_pages_proof proof = DRY_INIT(struct dry_pages_proof);
    assert_int_equal(dry_pages_prove(f->pages, &proof, NULL), DRY_OK);
    assert_int_equal(proof.shares[0].node, 1);
}

static void
any_lets_the_rest_come_from_elsewhere_and_counts_it(void **state)
{
    struct fixture *f = *state;
    f->options.bytes = 24 * DRYI_MIB;
    ask_for(f, DRY_PAGES_POOL, 1, DRY_PAGES_ANY);
    assert_int_equal(create(f), DRY_OK);
    expect_attempt(f, 0, DRY_PAGES_POOL, false, DRY_PAGES_NODE_DRY);
    expect_attempt(f, 1, DRY_PAGES_POOL, true, DRY_PAGES_REASON_NONE);
    assert_int_equal(f->report.attempts[1].node_reason, DRY_PAGES_NODE_DRY);
    assert_int_equal(f->info.elsewhere_bytes, 8 * DRYI_MIB);
    struct dry_pages_proof proof = DRY_INIT(struct dry_pages_proof);
    assert_int_equal(dry_pages_prove(f->pages, &proof, NULL), DRY_OK);
    assert_int_equal(proof.share_count, 2);
    assert_int_equal(proof.shares[0].bytes, 8 * DRYI_MIB);
    assert_int_equal(proof.shares[1].bytes, 16 * DRYI_MIB);
    assert_int_equal(proof.elsewhere_bytes, 8 * DRYI_MIB);
    int32_t nodes[12];
    assert_int_equal(dry_pages_query_nodes(f->pages, 0, 12, nodes, NULL), DRY_OK);
    assert_int_equal(nodes[0], 1);
    assert_int_equal(nodes[11], 0);
    assert_int_equal(dry_pages_query_nodes(f->pages, 1, 12, nodes, NULL),
                     DRY_ERR_ARGUMENT);
}

static void
pool_too_small_is_known_before_a_page_is_taken(void **state)
{
    struct fixture *f = *state;
    f->options.bytes = 34 * DRYI_MIB;
    ask_for(f, DRY_PAGES_POOL, -1, DRY_PAGES_STRICT);
    expect_failure(f, DRY_ERR_NO_SPACE, DRY_PAGES_NO_POOL);
    assert_int_equal(f->report.attempts[0].os_errno, ENOMEM);
}

static void
limits_of_control_groups_are_told_apart(void **state)
{
    struct fixture *f = *state;
    ask_for(f, DRY_PAGES_POOL, -1, DRY_PAGES_STRICT);
    f->fake.cgroup_reservations = 1;
    expect_failure(f, DRY_ERR_NO_SPACE, DRY_PAGES_CGROUP_RESERVATION);
    f->fake.cgroup_reservations = 1000;
    f->fake.cgroup_pages = 1;
    expect_failure(f, DRY_ERR_NO_SPACE, DRY_PAGES_CGROUP_LIMIT);
    assert_int_equal(f->fake.cgroup_pages, 1);
}

static void
address_limit_is_told_apart_from_the_pool(void **state)
{
    struct fixture *f = *state;
    f->fake.address_limit = DRYI_GIB;
    ask_for(f, DRY_PAGES_BASE, -1, DRY_PAGES_STRICT);
    fake_kernel_file(&f->fake, "/proc/meminfo", NULL); /* nothing is known beforehand */
    fake_kernel_file(&f->fake, "/proc/self/cgroup", NULL);
    f->options.bytes = UINT64_C(1) << 46;
    f->options.keep_free_bytes = UINT64_MAX; /* the sum must not wrap around */
    expect_failure(f, DRY_ERR_NO_SPACE, DRY_PAGES_LIMITS);
    assert_int_equal(f->report.attempts[0].os_errno, ENOMEM);
}

static void
sizes_without_a_pool_are_named(void **state)
{
    struct fixture *f = *state;
    ask_for(f, DRY_PAGES_POOL, -1, DRY_PAGES_STRICT);
    f->options.page_bytes = DRYI_GIB;
    expect_failure(f, DRY_ERR_UNSUPPORTED, DRY_PAGES_NO_SUCH_SIZE);
    f->options.policy = DRY_PAGES_PREFER;
    assert_int_equal(create(f), DRY_OK);
    expect_attempt(f, 0, DRY_PAGES_POOL, false, DRY_PAGES_NO_SUCH_SIZE);
    assert_int_equal(f->report.attempts[0].page_bytes, DRYI_GIB);
    expect_attempt(f, 1, DRY_PAGES_POOL, false, DRY_PAGES_REASON_NONE);
    assert_int_equal(f->report.attempts[1].page_bytes, 2 * DRYI_MIB);
}

static struct dry_pages_need
need_of(struct fixture *f)
{
    struct dryi_pages_order order;
    struct dry_pages_need need;
    assert_int_equal(dryi_pages_order_init(&order, &f->options, &f->fake.kernel, NULL),
                     DRY_OK);
    size_t maps_made = f->fake.maps_made;
    dryi_pages_need(&order, &need);
    assert_int_equal(f->fake.maps_made, maps_made);
    return need;
}

static void
assert_command(const struct dry_pages_need *need, size_t part, const char *expected)
{
    char text[160], cut[8];
    assert_int_equal(dry_pages_need_command(need, part, text, sizeof text),
                     strlen(expected));
    assert_string_equal(text, expected);
    assert_int_equal(dry_pages_need_command(need, part, cut, sizeof cut),
                     strlen(expected));
    assert_int_equal(strncmp(cut, expected, sizeof cut - 1), 0);
    assert_int_equal(cut[strlen(expected) < 7 ? strlen(expected) : 7], '\0');
}

#define ON_POOL "/hugepages/hugepages-2048kB/nr_hugepages"

/* The example of the field: 1024 x 1024 x 1024 float32. */
static void
what_a_pool_lacks_is_counted_and_mended(void **state)
{
    struct fixture *f = *state;
    f->options.bytes = 4 * DRYI_GIB;
    ask_for(f, DRY_PAGES_POOL, -1, DRY_PAGES_STRICT);
    struct dry_pages_need need = need_of(f);
    assert_int_equal(need.page_count, 2048);
    assert_int_equal(need.page_bytes, 2 * DRYI_MIB);
    assert_int_equal(need.bytes, 4 * DRYI_GIB);
    assert_int_equal(need.part_count, 1);
    assert_int_equal(need.parts[0].node, -1);
    assert_int_equal(need.parts[0].free_count, 16);
    assert_int_equal(need.missing_count, 2032);
    assert_command(&need, 0, "echo 2048 >/sys/kernel/mm" ON_POOL);
    assert_command(&need, 1, "");
    assert_int_equal(create(f), DRY_ERR_NO_SPACE);
    assert_non_null(strstr(f->err.text, "; 2048 needed, 2032 missing: echo 2048 >/sys"));
    fake_kernel_file(&f->fake,
                     "/sys/kernel/mm/hugepages/hugepages-2048kB/"
                     "nr_overcommit_hugepages",
                     "4000\n");
    need = need_of(f);
    assert_int_equal(need.parts[0].growth_count, 4000);
    assert_int_equal(need.missing_count, 0);
    assert_command(&need, 0, "");
}

static void
what_a_node_lacks_is_counted_there(void **state)
{
    struct fixture *f = *state;
    f->options.bytes = 24 * DRYI_MIB;
    ask_for(f, DRY_PAGES_POOL, 1, DRY_PAGES_STRICT);
    struct dry_pages_need need = need_of(f);
    assert_int_equal(need.part_count, 1);
    assert_int_equal(need.parts[0].node, 1);
    assert_int_equal(need.parts[0].page_count, 12);
    assert_int_equal(need.missing_count, 4);
    assert_command(&need, 0, "echo 12 >/sys/devices/system/node/node1" ON_POOL);
    assert_int_equal(create(f), DRY_ERR_NO_SPACE);
    assert_non_null(strstr(f->err.text, "; 12 needed, 4 missing: echo 12 >/sys/devices/"
                                        "system/node/node1" ON_POOL));
    /* Pages on the node that are promised to somebody else. */
    f->options.bytes = 16 * DRYI_MIB;
    struct dryi_kernel *k = &f->fake.kernel;
    uint64_t promised;
    struct dryi_kernel_map map = {.bytes = 20 * DRYI_MIB,
                                  .protection = PROT_READ | PROT_WRITE,
                                  .flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB |
                                           21 << 26};
    assert_int_equal(k->map(k->self, &map, &promised), 0);
    need = need_of(f);
    assert_int_equal(k->unmap(k->self, promised, map.bytes), 0);
    assert_int_equal(need.parts[0].free_count, 8);
    assert_int_equal(need.missing_count, 2);
    assert_command(&need, 0, "echo 10 >/sys/devices/system/node/node1" ON_POOL);
}

static void
what_interleaving_lacks_is_counted_by_node(void **state)
{
    struct fixture *f = *state;
    f->options.bytes = 42 * DRYI_MIB;
    ask_for(f, DRY_PAGES_POOL, -1, DRY_PAGES_STRICT);
    f->options.where = DRY_PAGES_INTERLEAVED;
    struct dry_pages_need need = need_of(f);
    assert_int_equal(need.part_count, 2);
    assert_int_equal(need.parts[0].page_count, 11);
    assert_int_equal(need.parts[1].page_count, 10);
    assert_int_equal(need.parts[1].node, 1);
    assert_int_equal(need.missing_count, 5);
    assert_command(&need, 0, "echo 11 >/sys/devices/system/node/node0" ON_POOL);
    assert_command(&need, 1, "echo 10 >/sys/devices/system/node/node1" ON_POOL);
    f->options.bytes = 32 * DRYI_MIB;
    assert_int_equal(need_of(f).missing_count, 0);
}

static void
pools_that_are_not_there_are_not_mended(void **state)
{
    struct fixture *f = *state;
    ask_for(f, DRY_PAGES_POOL, -1, DRY_PAGES_STRICT);
    f->options.page_bytes = DRYI_GIB;
    struct dry_pages_need need = need_of(f);
    assert_int_equal(need.page_count, 1);
    assert_int_equal(need.missing_count, 1);
    assert_false(need.parts[0].is_known);
    assert_command(&need, 0, "");
    ask_for(f, DRY_PAGES_POOL, 7, DRY_PAGES_STRICT);
    f->options.page_bytes = 0;
    need = need_of(f);
    assert_int_equal(need.part_count, 1);
    assert_int_equal(need.parts[0].node, 7);
    assert_false(need.parts[0].is_known);
    assert_int_equal(need.missing_count, 2);
    assert_command(&need, 0, "");
    ask_for(f, DRY_PAGES_BASE, -1, DRY_PAGES_STRICT);
    need = need_of(f);
    assert_int_equal(need.part_count, 0);
    assert_int_equal(need.page_count, 1024);
    assert_int_equal(need.missing_count, 0);
    f->options.bytes = 0;
    assert_int_equal(dry_pages_read_need(&f->options, &need, NULL), DRY_ERR_ARGUMENT);
}

static void
ask_for_weights(struct fixture *f, enum dry_pages_policy policy)
{
    ask_for(f, DRY_PAGES_POOL, -1, policy);
    f->options.where = DRY_PAGES_WEIGHTED;
    f->options.bytes = 16 * DRYI_MIB;
}

static void
weights_are_those_of_the_administrator(void **state)
{
    struct fixture *f = *state;
    f->fake.weights[0] = 3;
    f->fake.weights[1] = 1;
    fake_kernel_file(&f->fake, "/sys/kernel/mm/mempolicy/weighted_interleave/node0",
                     "3\n");
    ask_for_weights(f, DRY_PAGES_STRICT);
    struct dry_pages_need need = need_of(f);
    assert_int_equal(need.part_count, 2);
    assert_int_equal(need.parts[0].page_count, 6);
    assert_int_equal(need.parts[1].page_count, 2); /* its weight is not told: 1 */
    f->options.bytes = 30 * DRYI_MIB;
    need = need_of(f);
    assert_int_equal(need.parts[0].page_count, 12);
    assert_int_equal(need.parts[1].page_count, 3);
    f->options.bytes = 16 * DRYI_MIB;
    assert_int_equal(create(f), DRY_OK);
    assert_int_equal(f->info.where, DRY_PAGES_WEIGHTED);
    assert_int_equal(f->fake.node_free[0], 2);
    assert_int_equal(f->fake.node_free[1], 6);
    expect_attempt(f, 0, DRY_PAGES_POOL, false, DRY_PAGES_REASON_NONE);
    assert_int_equal(f->report.attempts[0].node_reason, DRY_PAGES_REASON_NONE);
}

static void
kernels_without_weights_interleave_evenly(void **state)
{
    struct fixture *f = *state;
    ask_for_weights(f, DRY_PAGES_STRICT);
    expect_failure(f, DRY_ERR_UNSUPPORTED, DRY_PAGES_NO_WEIGHTS);
    assert_int_equal(f->err.os_errno, EINVAL);
    assert_int_equal(f->fake.node_free[0], 8);
    f->options.policy = DRY_PAGES_PREFER;
    assert_int_equal(create(f), DRY_OK);
    assert_int_equal(f->report.count, 1);
    assert_int_equal(f->report.attempts[0].reason, DRY_PAGES_REASON_NONE);
    assert_int_equal(f->report.attempts[0].node_reason, DRY_PAGES_NO_WEIGHTS);
    assert_int_equal(f->info.where, DRY_PAGES_INTERLEAVED);
    assert_int_equal(f->fake.node_free[0], 4);
    assert_int_equal(f->fake.node_free[1], 4);
    assert_int_equal(f->info.elsewhere_bytes, 0);
}

/* The default size is the kernel's word, not two MiB. */
static void
no_default_size_is_assumed(void **state)
{
    struct fixture *f = *state;
    ask_for(f, DRY_PAGES_POOL, -1, DRY_PAGES_STRICT);
    fake_kernel_file(&f->fake, "/proc/meminfo", "MemAvailable: 4194304 kB\n");
    expect_failure(f, DRY_ERR_UNSUPPORTED, DRY_PAGES_NO_SUCH_SIZE);
    assert_int_equal(f->fake.maps_made, 0);
}

static void
forbidden_binding_is_done_by_threads_on_the_node(void **state)
{
    struct fixture *f = *state;
    f->fake.bind_errno = EPERM;
    ask_for(f, DRY_PAGES_POOL, 1, DRY_PAGES_STRICT);
    assert_int_equal(create(f), DRY_OK);
    assert_int_equal(f->fake.node_free[1], 6);
    assert_int_equal(f->fake.last_cpus.words[0], 3); /* given back */
    assert_int_equal(f->report.attempts[0].node_reason, DRY_PAGES_REASON_NONE);
    assert_int_equal(f->report.attempts[0].os_errno, EPERM);
}

/* Memory of an expander: it can be bound to, but nobody runs there. */
static void
nodes_without_cpus_are_filled_from_afar(void **state)
{
    struct fixture *f = *state;
    fake_kernel_file(&f->fake, "/sys/devices/system/node/node1/cpulist", "\n");
    ask_for(f, DRY_PAGES_POOL, 1, DRY_PAGES_STRICT);
    f->options.thread_count = 0;
    assert_int_equal(create(f), DRY_OK);
    assert_int_equal(f->fake.node_free[1], 6);
    assert_int_equal(f->fake.last_cpus.words[0], 0); /* nobody was sent anywhere */
    dry_pages_destroy(f->pages);
    f->pages = NULL;
    f->fake.bind_errno = EPERM;
    expect_failure(f, DRY_ERR_UNSUPPORTED, DRY_PAGES_SECCOMP);
}

/* Placed by first touch, but nobody may look: for STRICT that is not enough. */
static void
forbidden_query_leaves_it_unproven(void **state)
{
    struct fixture *f = *state;
    f->fake.bind_errno = EPERM;
    f->fake.query_errno = EPERM;
    ask_for(f, DRY_PAGES_POOL, 1, DRY_PAGES_STRICT);
    expect_failure(f, DRY_ERR_UNSUPPORTED, DRY_PAGES_SECCOMP);
    f->options.policy = DRY_PAGES_PREFER;
    assert_int_equal(create(f), DRY_OK);
    assert_int_equal(f->report.attempts[0].node_reason, DRY_PAGES_SECCOMP);
    struct dry_pages_proof proof = DRY_INIT(struct dry_pages_proof);
    assert_int_equal(dry_pages_prove(f->pages, &proof, NULL), DRY_OK);
    assert_false(proof.knows_nodes);
    assert_int_equal(proof.populated_bytes, 0);
    int32_t node;
    assert_int_equal(dry_pages_query_nodes(f->pages, 0, 1, &node, &f->err),
                     DRY_ERR_UNSUPPORTED);
    assert_int_equal(f->err.os_errno, EPERM);
}

static void
first_touch_that_went_elsewhere_is_refused(void **state)
{
    struct fixture *f = *state;
    f->fake.bind_errno = ENOSYS;
    f->fake.node_free[1] = 1;
    ask_for(f, DRY_PAGES_POOL, 1, DRY_PAGES_STRICT);
    expect_failure(f, DRY_ERR_NO_SPACE, DRY_PAGES_NODE_DRY);
}

static void
interleaving_needs_the_call(void **state)
{
    struct fixture *f = *state;
    f->options.where = DRY_PAGES_INTERLEAVED;
    f->options.kind = DRY_PAGES_POOL;
    f->options.policy = DRY_PAGES_STRICT;
    dryi_nodes_add(&f->options.nodes, 0);
    f->fake.bind_errno = EPERM;
    expect_failure(f, DRY_ERR_UNSUPPORTED, DRY_PAGES_SECCOMP);
    f->options.policy = DRY_PAGES_ANY;
    assert_int_equal(create(f), DRY_OK);
    assert_true(f->report.attempts[f->report.count - 1].may_spill);
    assert_int_equal(f->report.attempts[f->report.count - 1].node_reason,
                     DRY_PAGES_REASON_NONE); /* it went to node 0 by itself */
}

static void
interleaved_pages_alternate(void **state)
{
    struct fixture *f = *state;
    f->options.bytes = 12 * DRYI_MIB;
    f->options.where = DRY_PAGES_INTERLEAVED;
    f->options.kind = DRY_PAGES_POOL;
    f->options.policy = DRY_PAGES_STRICT;
    assert_int_equal(create(f), DRY_OK);
    assert_int_equal(f->fake.binds, 1);
    int32_t nodes[6];
    assert_int_equal(dry_pages_query_nodes(f->pages, 0, 6, nodes, NULL), DRY_OK);
    for (int i = 0; i < 6; i++)
        assert_int_equal(nodes[i], i % 2);
}

static void
one_node_for_all_needs_no_call(void **state)
{
    struct fixture *f = *state;
    fake_kernel_file(&f->fake, "/sys/devices/system/node/has_memory", "0\n");
    f->fake.bind_errno = EPERM;
    f->options.where = DRY_PAGES_INTERLEAVED;
    f->options.policy = DRY_PAGES_STRICT;
    assert_int_equal(create(f), DRY_OK);
    assert_int_equal(f->fake.binds, 0);
}

static void
nodes_that_are_not_there_or_not_ours_are_told_apart(void **state)
{
    struct fixture *f = *state;
    ask_for(f, DRY_PAGES_BASE, 7, DRY_PAGES_STRICT);
    expect_failure(f, DRY_ERR_UNSUPPORTED, DRY_PAGES_NO_SUCH_NODE);
    fake_kernel_file(&f->fake, "/proc/self/status", "Mems_allowed_list:\t0\n");
    ask_for(f, DRY_PAGES_BASE, 1, DRY_PAGES_PREFER);
    expect_failure(f, DRY_ERR_SYSTEM, DRY_PAGES_NO_PERMISSION);
    f->options.policy = DRY_PAGES_ANY;
    assert_int_equal(create(f), DRY_OK);
    assert_int_equal(f->info.where, DRY_PAGES_ANYWHERE);
    assert_int_equal(f->report.attempts[0].node_reason, DRY_PAGES_NO_PERMISSION);
}

static void
old_kernels_write_where_newer_ones_populate(void **state)
{
    struct fixture *f = *state;
    f->fake.populate_errno = EINVAL;
    ask_for(f, DRY_PAGES_POOL, 1, DRY_PAGES_STRICT);
    assert_int_equal(create(f), DRY_OK);
    assert_true(f->fake.zero_writes > 0);
    assert_int_equal(f->fake.node_free[1], 6);
    dry_pages_destroy(f->pages);
    f->pages = NULL;
    f->options.bytes = 24 * DRYI_MIB;
    expect_failure(f, DRY_ERR_NO_SPACE, DRY_PAGES_NODE_DRY);
}

static void
time_out_gives_everything_back(void **state)
{
    struct fixture *f = *state;
    f->options.bytes = 32 * DRYI_MIB; /* two pieces */
    f->options.timeout_ms = 1000;
    f->fake.time_step_ns = 600000000;
    ask_for(f, DRY_PAGES_POOL, -1, DRY_PAGES_STRICT);
    expect_failure(f, DRY_ERR_NO_SPACE, DRY_PAGES_TIMEOUT);
    f->options.policy = DRY_PAGES_PREFER;
    assert_int_equal(create(f), DRY_ERR_NO_SPACE);
    assert_int_equal(f->report.count, 3); /* each had its time */
    assert_int_equal(f->report.attempts[2].reason, DRY_PAGES_TIMEOUT);
}

static bool
stop_at_once(void *self, uint64_t done_bytes, uint64_t bytes)
{
    int *calls = self;
    assert_true(done_bytes <= bytes);
    return ++*calls > 0;
}

static void
caller_may_stop_it(void **state)
{
    struct fixture *f = *state;
    int calls = 0;
    f->options.progress = stop_at_once;
    f->options.progress_self = &calls;
    ask_for(f, DRY_PAGES_POOL, -1, DRY_PAGES_PREFER);
    expect_failure(f, DRY_ERR_CANCELLED, DRY_PAGES_CANCELLED);
    assert_int_equal(calls, 1); /* the ladder ends there */
}

/* Somebody else takes what was there. */
static bool
lose_memory(void *self, uint64_t done_bytes, uint64_t bytes)
{
    struct fake_kernel *fake = self;
    if (done_bytes > bytes / 2)
        fake_kernel_file(fake, "/proc/meminfo", "MemAvailable: 100000 kB\n");
    return false;
}

static void
filling_stops_where_memory_goes(void **state)
{
    struct fixture *f = *state;
    f->options.bytes = 600 * DRYI_MIB;
    f->options.progress = lose_memory;
    f->options.progress_self = &f->fake;
    ask_for(f, DRY_PAGES_BASE, 1, DRY_PAGES_STRICT);
    expect_failure(f, DRY_ERR_NO_SPACE, DRY_PAGES_NO_MEMORY);
    assert_true(f->fake.maps_made > 0);
}

static bool
watch_progress(void *self, uint64_t done_bytes, uint64_t bytes)
{
    uint64_t *last = self;
    assert_true(done_bytes >= *last && done_bytes <= bytes);
    *last = done_bytes;
    return false;
}

static void
progress_goes_up_to_the_whole(void **state)
{
    struct fixture *f = *state;
    uint64_t last = 0;
    f->options.bytes = 32 * DRYI_MIB;
    f->options.progress = watch_progress;
    f->options.progress_self = &last;
    ask_for(f, DRY_PAGES_POOL, -1, DRY_PAGES_STRICT);
    assert_int_equal(create(f), DRY_OK);
    assert_int_equal(last, 32 * DRYI_MIB);
}

static void
transparent_pages_that_are_off_are_not_tried(void **state)
{
    struct fixture *f = *state;
    ask_for(f, DRY_PAGES_TRANSPARENT, -1, DRY_PAGES_STRICT);
    fake_kernel_file(&f->fake, "/sys/kernel/mm/transparent_hugepage/enabled",
                     "always madvise [never]\n");
    expect_failure(f, DRY_ERR_UNSUPPORTED, DRY_PAGES_THP_OFF);
    /* One size may be on where the rest is off, and off where the rest is on. */
    const char *size = "/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled";
    fake_kernel_file(&f->fake, size, "always inherit [madvise] never\n");
    assert_int_equal(create(f), DRY_OK);
    dry_pages_destroy(f->pages);
    f->pages = NULL;
    fake_kernel_file(&f->fake, size, "always [inherit] madvise never\n");
    expect_failure(f, DRY_ERR_UNSUPPORTED, DRY_PAGES_THP_OFF);
    fake_kernel_file(&f->fake, "/sys/kernel/mm/transparent_hugepage/enabled",
                     "[always] madvise never\n");
    fake_kernel_file(&f->fake, size, "always inherit madvise [never]\n");
    expect_failure(f, DRY_ERR_UNSUPPORTED, DRY_PAGES_THP_OFF);
    fake_kernel_file(&f->fake, size, NULL);
    f->fake.thp_disabled = true;
    expect_failure(f, DRY_ERR_UNSUPPORTED, DRY_PAGES_THP_OFF);
    assert_int_equal(f->fake.maps_made, 2); /* by the one that was on */
    f->fake.thp_disabled = false;
    f->options.fork = DRY_PAGES_SHARED; /* shmem_enabled is never */
    expect_failure(f, DRY_ERR_UNSUPPORTED, DRY_PAGES_THP_OFF);
}

static void
shared_memory_has_switches_of_its_own(void **state)
{
    struct fixture *f = *state;
    const char *all = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
    const char *size =
        "/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/shmem_enabled";
    ask_for(f, DRY_PAGES_TRANSPARENT, -1, DRY_PAGES_STRICT);
    f->options.fork = DRY_PAGES_SHARED;
    fake_kernel_file(&f->fake, "/sys/kernel/mm/transparent_hugepage/enabled",
                     "always madvise [never]\n");
    fake_kernel_file(&f->fake, size, "always [inherit] within_size advise never\n");
    expect_failure(f, DRY_ERR_UNSUPPORTED, DRY_PAGES_THP_OFF);
    fake_kernel_file(&f->fake, size, "always inherit within_size [advise] never\n");
    assert_int_equal(create(f), DRY_OK);
    dry_pages_destroy(f->pages);
    f->pages = NULL;
    fake_kernel_file(&f->fake, all, "always advise never [deny] force\n");
    expect_failure(f, DRY_ERR_UNSUPPORTED, DRY_PAGES_THP_OFF);
    fake_kernel_file(&f->fake, size, NULL);
    fake_kernel_file(&f->fake, all, "always [advise] never deny force\n");
    assert_int_equal(create(f), DRY_OK);
}

/* What kept huge pages away at first may be gone later. */
static void
pages_are_collapsed_when_asked_again(void **state)
{
    struct fixture *f = *state;
    uint64_t huge = 77;
    f->fake.huge_part = 50;
    ask_for(f, DRY_PAGES_TRANSPARENT, -1, DRY_PAGES_PREFER);
    assert_int_equal(create(f), DRY_OK);
    f->fake.huge_part = 100;
    f->fake.collapses = 0;
    assert_int_equal(dry_pages_collapse(f->pages, 0, &huge, &f->err), DRY_OK);
    assert_int_equal(f->fake.collapses, 2);
    assert_int_equal(huge, f->info.bytes);
    f->fake.collapse_errno = ENOMEM; /* there is none, which is no error */
    f->fake.huge_part = 50;
    assert_int_equal(dry_pages_collapse(f->pages, 0, &huge, &f->err), DRY_OK);
    assert_true(huge < f->info.bytes);
    f->fake.collapses = 0;
    f->fake.time_step_ns = 2000000;
    assert_int_equal(dry_pages_collapse(f->pages, 1, &huge, &f->err), DRY_OK);
    assert_int_equal(f->fake.collapses, 0);
    huge = 77;
    f->fake.time_step_ns = 0;
    f->fake.collapse_errno = EINVAL;
    assert_int_equal(dry_pages_collapse(f->pages, 0, &huge, &f->err),
                     DRY_ERR_UNSUPPORTED);
    assert_int_equal(f->err.os_errno, EINVAL);
    f->fake.collapse_errno = 0;
    f->fake.huge_errno = ENOTTY;
    assert_int_equal(dry_pages_collapse(f->pages, 0, &huge, &f->err),
                     DRY_ERR_UNSUPPORTED);
    assert_int_equal(huge, 77);
}

static void
only_transparent_pages_are_collapsed(void **state)
{
    struct fixture *f = *state;
    uint64_t huge = 77;
    ask_for(f, DRY_PAGES_BASE, -1, DRY_PAGES_STRICT);
    assert_int_equal(create(f), DRY_OK);
    assert_int_equal(dry_pages_collapse(f->pages, 0, &huge, &f->err),
                     DRY_ERR_UNSUPPORTED);
    dry_pages_destroy(f->pages);
    f->pages = NULL;
    ask_for(f, DRY_PAGES_POOL, -1, DRY_PAGES_STRICT);
    assert_int_equal(create(f), DRY_OK);
    assert_int_equal(dry_pages_collapse(f->pages, 0, &huge, &f->err), DRY_OK);
    assert_int_equal(huge, f->info.bytes);
    assert_int_equal(f->fake.collapses, 0);
}

static void
huge_pages_in_part_are_strict_to_nobody_but_strict(void **state)
{
    struct fixture *f = *state;
    f->fake.huge_part = 50;
    ask_for(f, DRY_PAGES_TRANSPARENT, -1, DRY_PAGES_STRICT);
    expect_failure(f, DRY_ERR_NO_SPACE, DRY_PAGES_FRAGMENTED);
    assert_int_equal(f->fake.collapses, 2); /* each of two pages */
    f->options.policy = DRY_PAGES_PREFER;
    assert_int_equal(create(f), DRY_OK);
    assert_true(f->report.attempts[0].is_granted);
    assert_int_equal(f->report.attempts[0].reason, DRY_PAGES_FRAGMENTED);
    assert_true(f->info.huge_bytes > DRYI_MIB && f->info.huge_bytes < 3 * DRYI_MIB);
}

/* smaps of Linux 6.1 leaves out the huge pages that NUMA balancing has marked. */
static void
huge_pages_that_are_marked_are_huge(void **state)
{
    struct fixture *f = *state;
    f->fake.marks_huge = true;
    ask_for(f, DRY_PAGES_TRANSPARENT, -1, DRY_PAGES_STRICT);
    assert_int_equal(create(f), DRY_OK);
    assert_int_equal(f->info.huge_bytes, f->info.bytes);
    assert_int_equal(f->report.attempts[0].reason, DRY_PAGES_REASON_NONE);
}

/* Neither PAGEMAP_SCAN nor smaps. */
static void
huge_pages_nobody_may_count_are_unproven(void **state)
{
    struct fixture *f = *state;
    f->fake.huge_errno = ENOTTY;
    ask_for(f, DRY_PAGES_TRANSPARENT, -1, DRY_PAGES_STRICT);
    expect_failure(f, DRY_ERR_UNSUPPORTED, DRY_PAGES_UNPROVEN);
    f->options.policy = DRY_PAGES_PREFER;
    assert_int_equal(create(f), DRY_OK);
    assert_int_equal(f->report.attempts[0].reason, DRY_PAGES_UNPROVEN);
    assert_int_equal(f->info.huge_bytes, 0);
}

static void
pools_know_neither_copies_nor_wiping(void **state)
{
    struct fixture *f = *state;
    const enum dry_pages_fork impossible[] = {DRY_PAGES_INHERIT, DRY_PAGES_WIPE};
    ask_for(f, DRY_PAGES_POOL, -1, DRY_PAGES_STRICT);
    for (size_t i = 0; i < 2; i++) {
        f->options.fork = impossible[i];
        expect_failure(f, DRY_ERR_UNSUPPORTED, DRY_PAGES_FORK);
    }
    f->options.fork = DRY_PAGES_SHARED;
    assert_int_equal(create(f), DRY_OK);
    assert_true(f->fake.maps[0].is_shared);
    assert_int_equal(f->fake.advices >> DRYI_ADVISE_DONTFORK & 1, 0);
}

static void
advice_on_fork_is_given(void **state)
{
    struct fixture *f = *state;
    ask_for(f, DRY_PAGES_BASE, -1, DRY_PAGES_STRICT);
    f->options.fork = DRY_PAGES_WIPE;
    assert_int_equal(create(f), DRY_OK);
    assert_int_equal(f->fake.advices >> DRYI_ADVISE_WIPEONFORK & 1, 1);
    dry_pages_destroy(f->pages);
    f->pages = NULL;
    f->options.fork = DRY_PAGES_DONTFORK;
    assert_int_equal(create(f), DRY_OK);
    assert_int_equal(f->fake.advices >> DRYI_ADVISE_DONTFORK & 1, 1);
}

static void
base_pages_are_asked_for_only_where_there_are_some(void **state)
{
    struct fixture *f = *state;
    ask_for(f, DRY_PAGES_BASE, 1, DRY_PAGES_STRICT);
    fake_kernel_file(&f->fake, "/sys/devices/system/node/node1/meminfo",
                     "Node 1 MemFree: 50000 kB\nNode 1 Inactive(file): 10000 kB\n");
    expect_failure(f, DRY_ERR_NO_SPACE, DRY_PAGES_NODE_DRY);
    fake_kernel_file(&f->fake, "/proc/meminfo", "MemAvailable: 50000 kB\n");
    expect_failure(f, DRY_ERR_NO_SPACE, DRY_PAGES_NO_MEMORY);
    fake_kernel_file(&f->fake, "/cg/memory.max", "67108864\n");
    fake_kernel_file(&f->fake, "/cg/memory.current", "1000000\n");
    expect_failure(f, DRY_ERR_NO_SPACE, DRY_PAGES_CGROUP_LIMIT);
    assert_int_equal(f->fake.maps_made, 0);
    f->options.keep_free_bytes = 0;
    assert_int_equal(create(f), DRY_OK);
}

/* Of a group of its own, below one with a limit, in version 1 and in version 2. */
static void
every_group_above_counts(void **state)
{
    struct fixture *f = *state;
    f->options.keep_free_bytes = 0;
    ask_for(f, DRY_PAGES_BASE, -1, DRY_PAGES_STRICT);
    fake_kernel_file(&f->fake, "/proc/self/cgroup", "0::/a/b\n");
    fake_kernel_file(&f->fake, "/cg/a/b/memory.max", "max\n");
    fake_kernel_file(&f->fake, "/cg/a/b/memory.current", "5\n");
    fake_kernel_file(&f->fake, "/cg/a/memory.max", "5000000\n");
    fake_kernel_file(&f->fake, "/cg/a/memory.current", "4500000\n");
    expect_failure(f, DRY_ERR_NO_SPACE, DRY_PAGES_CGROUP_LIMIT);
    fake_kernel_file(&f->fake, "/cg/a/memory.stat",
                     "anon 1\nactive_file 9\ninactive_file 4400000\n");
    assert_int_equal(create(f), DRY_OK);
    dry_pages_destroy(f->pages);
    f->pages = NULL;
    fake_kernel_file(&f->fake, "/proc/self/cgroup", "4:cpu,memory:/box/c\n0::/\n");
    fake_kernel_file(&f->fake, "/proc/self/mountinfo",
                     "1 2 0:3 /box /one rw shared:1 master:2 - cgroup x rw,memory\n");
    fake_kernel_file(&f->fake, "/one/c/memory.limit_in_bytes", "9223372036854771712\n");
    fake_kernel_file(&f->fake, "/one/c/memory.usage_in_bytes", "1\n");
    assert_int_equal(create(f), DRY_OK);
    dry_pages_destroy(f->pages);
    f->pages = NULL;
    fake_kernel_file(&f->fake, "/one/c/memory.limit_in_bytes", "1000000\n");
    expect_failure(f, DRY_ERR_NO_SPACE, DRY_PAGES_CGROUP_LIMIT);
}

/* Of an arm64 kernel with base pages of 64 KiB, where a huge one is 512 MiB. */
static void
sizes_are_those_of_the_machine(void **state)
{
    struct fixture *f = *state;
    f->fake.base_bytes = 64 * DRYI_KIB;
    fake_kernel_file(&f->fake, "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
                     "536870912\n");
    fake_kernel_file(&f->fake, "/sys/kernel/mm/hugepages/hugepages-524288kB/nr_hugepages",
                     "0\n");
    fake_kernel_file(&f->fake, "/proc/meminfo",
                     "MemAvailable: 4194304 kB\nHugepagesize: 524288 kB\n");
    ask_for(f, DRY_PAGES_POOL, -1, DRY_PAGES_PREFER);
    struct dryi_pages_order order = {
        .facts = {.kernel = &f->fake.kernel, .root = ""},
        .options = f->options,
        .base_bytes = f->fake.base_bytes,
        .thp = {.huge_bytes = 512 * DRYI_MIB},
    };
    struct dryi_rung rungs[DRY_PAGES_ATTEMPTS_MAX];
    assert_int_equal(dryi_pages_ladder(&order, rungs), 4);
    assert_int_equal(rungs[0].page_bytes, 512 * DRYI_MIB);
    assert_int_equal(rungs[1].page_bytes, 2 * DRYI_MIB);
    assert_int_equal(rungs[2].kind, DRY_PAGES_TRANSPARENT);
    assert_int_equal(rungs[3].page_bytes, 64 * DRYI_KIB);
    /* Not from 2 MiB to 512 MiB. */
    order.options.page_bytes = 2 * DRYI_MIB;
    assert_int_equal(dryi_pages_ladder(&order, rungs), 2);
    assert_int_equal(rungs[1].kind, DRY_PAGES_BASE);
    ask_for(f, DRY_PAGES_BASE, -1, DRY_PAGES_STRICT);
    f->options.bytes = 1;
    assert_int_equal(create(f), DRY_OK);
    assert_int_equal(f->info.bytes, 64 * DRYI_KIB);
    assert_int_equal((uintptr_t)f->info.address % (64 * DRYI_KIB), 0);
}

static void
impossible_options_are_refused_before_anything(void **state)
{
    struct fixture *f = *state;
    const struct dry_pages_options good = f->options;
    struct dry_pages_options bad[10];
    for (size_t i = 0; i < 10; i++)
        bad[i] = good;
    bad[0].bytes = 0;
    bad[1].bytes = UINT64_MAX;
    bad[2].kind = (enum dry_pages_kind)3;
    bad[3].where = (enum dry_pages_where)4;
    bad[4].policy = (enum dry_pages_policy)3;
    bad[5].fork = (enum dry_pages_fork)4;
    bad[6].page_bytes = 2 * DRYI_MIB; /* of transparent pages */
    bad[7].kind = DRY_PAGES_POOL;
    bad[7].page_bytes = 3 * DRYI_MIB;
    bad[8].where = DRY_PAGES_ON_NODE;
    bad[8].node = DRY_PAGES_NODES_MAX;
    bad[9].where = DRY_PAGES_ON_NODE;
    bad[9].node = -1;
    for (size_t i = 0; i < 10; i++) {
        f->options = bad[i];
        f->report.count = 99;
        assert_int_equal(create(f), DRY_ERR_ARGUMENT);
        assert_int_equal(f->report.count, 0);
    }
    assert_int_equal(f->fake.maps_made, 0);
}

/* In a child the addresses may be somebody else's. */
static void
child_gives_nothing_back(void **state)
{
    struct fixture *f = *state;
    ask_for(f, DRY_PAGES_BASE, -1, DRY_PAGES_STRICT);
    assert_int_equal(create(f), DRY_OK);
    struct fake_map outer = f->fake.maps[0];
    f->fake.process = 2;
    struct dry_pages_proof proof = DRY_INIT(struct dry_pages_proof);
    uint64_t huge;
    assert_int_equal(dry_pages_prove(f->pages, &proof, NULL), DRY_ERR_UNSUPPORTED);
    assert_int_equal(dry_pages_collapse(f->pages, 0, &huge, NULL), DRY_ERR_UNSUPPORTED);
    /* The object knows the process that made it by its own copy of the table. */
    dry_pages_destroy(f->pages);
    f->pages = NULL;
    assert_int_equal(f->fake.map_count, 2);
    f->fake.kernel.unmap(&f->fake, outer.address, outer.bytes);
}

/* One call refused, with each errno that some path treats apart. */
static void
refuse_each(void **state, enum dry_pages_kind kind, enum dry_pages_policy policy,
            uint32_t thread_count)
{
    static const int errors[] = {ENOMEM, EPERM, EINVAL, EFAULT, EAGAIN, ENOSYS};
    struct fixture *f = *state;
    fake_kernel_finish(&f->fake);
    for (size_t e = 0; e < sizeof errors / sizeof *errors; e++) {
        size_t n = 0;
        for (bool more = true; more; n++) {
            fake_kernel_init(&f->fake);
            fake_kernel_refuse(&f->fake, n, errors[e]);
            ask_for(f, kind, 1, policy);
            f->options.bytes = 32 * DRYI_MIB;
            f->options.thread_count = thread_count;
            f->fake.node_free[1] = 20;
            enum dry_status status = create(f);
            assert_true(f->report.count > 0);
            assert_int_equal(f->report.attempts[f->report.count - 1].is_granted,
                             status == DRY_OK);
            if (status == DRY_OK && policy == DRY_PAGES_STRICT)
                assert_int_equal(f->info.kind, kind);
            if (status != DRY_OK)
                assert_int_not_equal(f->report.attempts[0].reason, DRY_PAGES_REASON_NONE);
            dry_pages_destroy(f->pages);
            f->pages = NULL;
            more = f->fake.has_refused;
            assert_true(n < 5000);
            fake_kernel_finish(&f->fake);
        }
        assert_true(n > 20);
    }
    fake_kernel_init(&f->fake);
}

static void
every_call_refused_leaves_nothing_behind(void **state)
{
    for (int kind = DRY_PAGES_BASE; kind <= DRY_PAGES_POOL; kind++)
        for (int policy = DRY_PAGES_PREFER; policy <= DRY_PAGES_ANY; policy++)
            refuse_each(state, (enum dry_pages_kind)kind, (enum dry_pages_policy)policy,
                        1);
}

static void
every_call_refused_to_threads_leaves_nothing_behind(void **state)
{
    refuse_each(state, DRY_PAGES_POOL, DRY_PAGES_ANY, 2);
    refuse_each(state, DRY_PAGES_TRANSPARENT, DRY_PAGES_STRICT, 2);
}

static void
no_memory_for_the_record_maps_nothing(void **state)
{
    struct fixture *f = *state;
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        f->options.memory = &memory;
        enum dry_status status = create(f);
        dry_pages_destroy(f->pages);
        f->pages = NULL;
        failing_memory_finish(&fm);
        if (!fm.failed)
            break;
        assert_int_equal(status, DRY_ERR_MEMORY);
        assert_int_equal(f->fake.maps_made, 0);
    }
    f->options.memory = NULL;
}

static void
every_reason_has_words(void **state)
{
    (void)state;
    for (int i = 0; i <= DRY_PAGES_NO_WEIGHTS; i++) {
        const char *text = dry_pages_reason_text((enum dry_pages_reason)i);
        assert_non_null(text);
        assert_true(strlen(text) > 10 && text[strlen(text) - 1] != '.');
        assert_non_null(dry_pages_reason_name((enum dry_pages_reason)i));
        for (int j = 0; j < i; j++)
            assert_string_not_equal(dry_pages_reason_name((enum dry_pages_reason)i),
                                    dry_pages_reason_name((enum dry_pages_reason)j));
    }
    assert_null(dry_pages_reason_text((enum dry_pages_reason)(DRY_PAGES_NO_WEIGHTS + 1)));
    assert_null(dry_pages_kind_name((enum dry_pages_kind)3));
    assert_string_equal(dry_pages_kind_name(DRY_PAGES_POOL), "pool");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pool_pages_come_from_the_node),
        TEST(strict_on_a_dry_node_says_so),
        TEST(prefer_keeps_the_node_and_takes_smaller_pages),
        TEST(any_lets_the_rest_come_from_elsewhere_and_counts_it),
        TEST(pool_too_small_is_known_before_a_page_is_taken),
        TEST(limits_of_control_groups_are_told_apart),
        TEST(address_limit_is_told_apart_from_the_pool),
        TEST(sizes_without_a_pool_are_named),
        TEST(what_a_pool_lacks_is_counted_and_mended),
        TEST(what_a_node_lacks_is_counted_there),
        TEST(what_interleaving_lacks_is_counted_by_node),
        TEST(pools_that_are_not_there_are_not_mended),
        TEST(weights_are_those_of_the_administrator),
        TEST(kernels_without_weights_interleave_evenly),
        TEST(no_default_size_is_assumed),
        TEST(forbidden_binding_is_done_by_threads_on_the_node),
        TEST(nodes_without_cpus_are_filled_from_afar),
        TEST(forbidden_query_leaves_it_unproven),
        TEST(first_touch_that_went_elsewhere_is_refused),
        TEST(interleaving_needs_the_call),
        TEST(interleaved_pages_alternate),
        TEST(one_node_for_all_needs_no_call),
        TEST(nodes_that_are_not_there_or_not_ours_are_told_apart),
        TEST(old_kernels_write_where_newer_ones_populate),
        TEST(time_out_gives_everything_back),
        TEST(caller_may_stop_it),
        TEST(filling_stops_where_memory_goes),
        TEST(progress_goes_up_to_the_whole),
        TEST(transparent_pages_that_are_off_are_not_tried),
        TEST(shared_memory_has_switches_of_its_own),
        TEST(pages_are_collapsed_when_asked_again),
        TEST(only_transparent_pages_are_collapsed),
        TEST(huge_pages_in_part_are_strict_to_nobody_but_strict),
        TEST(huge_pages_that_are_marked_are_huge),
        TEST(huge_pages_nobody_may_count_are_unproven),
        TEST(pools_know_neither_copies_nor_wiping),
        TEST(advice_on_fork_is_given),
        TEST(base_pages_are_asked_for_only_where_there_are_some),
        TEST(every_group_above_counts),
        TEST(sizes_are_those_of_the_machine),
        TEST(impossible_options_are_refused_before_anything),
        TEST(child_gives_nothing_back),
        TEST(every_call_refused_leaves_nothing_behind),
        TEST(every_call_refused_to_threads_leaves_nothing_behind),
        TEST(no_memory_for_the_record_maps_nothing),
        TEST(every_reason_has_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
