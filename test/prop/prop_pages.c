/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Random orders for regions on random machines of two nodes, several alive at once, against
 * a model that knows what each node has: what is granted is what was asked for as far as the
 * policy demands, what is said to lie elsewhere does, a strict order for pages of a pool is
 * refused only if it could not be had, and what is given back is there again.
 *
 * DRY_TEST_SEED=N runs one machine; DRY_TEST_ROUNDS=N runs so many.
 */
#include "support/cmocka.h"
#include "support/fake_kernel.h"
#include "support/random.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <drystone/pages.h>

#include "base/bits.h"
#include "host/pages/pages_inside.h"

#define PAGE (2 * DRYI_MIB)
#define REGIONS_MAX 4
#define STEPS 30

static uint64_t seed_now;

static void
require(bool condition, const char *what)
{
    if (!condition)
        fail_msg("seed %llu: %s", (unsigned long long)seed_now, what);
}
#define REQUIRE(condition) require((condition), #condition)

struct machine {
    struct fake_kernel fake;
    struct random random;
    struct dry_pages *regions[REGIONS_MAX];
};

static bool
one_in(struct random *r, uint64_t n)
{
    return random_below(r, n) == 0;
}

static void
make_machine(struct machine *m, uint64_t seed)
{
    struct fake_kernel *f = &m->fake;
    random_init(&m->random, seed);
    struct random *r = &m->random;
    fake_kernel_init(f);
    f->node_free[0] = random_below(r, 20);
    f->node_free[1] = random_below(r, 20);
    if (one_in(r, 3))
        f->cgroup_pages = random_below(r, 20);
    if (one_in(r, 3))
        f->cgroup_reservations = random_below(r, 20);
    if (one_in(r, 4))
        f->bind_errno = one_in(r, 2) ? EPERM : ENOSYS;
    if (one_in(r, 5))
        f->query_errno = EPERM;
    if (one_in(r, 3))
        f->populate_errno = EINVAL;
    if (one_in(r, 3))
        f->huge_part = random_below(r, 101);
    f->thp_disabled = one_in(r, 5);
    f->weights[0] = f->weights[1] = (unsigned)random_below(r, 3);
    f->home_node = (int)random_below(r, 2);
}

static struct dry_pages_options
make_order(struct random *r)
{
    struct dry_pages_options o;
    dry_pages_options_init(&o);
    o.bytes = 1 + random_below(r, 30 * PAGE);
    o.kind = one_in(r, 2) ? DRY_PAGES_POOL : (enum dry_pages_kind)random_below(r, 3);
    o.where = (enum dry_pages_where)random_below(r, 4);
    o.node = o.where == DRY_PAGES_ON_NODE ? (int32_t)random_below(r, 3) : 0;
    if (o.where >= DRY_PAGES_INTERLEAVED)
        o.nodes.words[0] = random_below(r, 8);
    o.policy = (enum dry_pages_policy)random_below(r, 3);
    o.fork = one_in(r, 3) ? (enum dry_pages_fork)random_below(r, 4) : DRY_PAGES_DONTFORK;
    o.thread_count = (uint32_t)random_below(r, 4);
    return o;
}

/* Of the pages the model has for this region, how many lie outside of `nodes`. */
static uint64_t
pages_elsewhere(const struct fake_kernel *f, const struct dry_pages_info *info,
                uint64_t nodes)
{
    uint64_t begin = (uintptr_t)info->address, count = 0;
    for (size_t i = 0; i < f->page_count; i++)
        count += f->pages[i].address >= begin &&
                 f->pages[i].address < begin + info->bytes &&
                 !(nodes >> f->pages[i].node & 1);
    return count;
}

static uint64_t
nodes_of(const struct dry_pages_options *o)
{
    if (o->where == DRY_PAGES_ON_NODE)
        return UINT64_C(1) << o->node;
    return o->nodes.words[0] ? o->nodes.words[0] : 3;
}

static void
check_report(const struct dry_pages_report *report, bool is_granted)
{
    REQUIRE(report->count >= 1 && report->count <= DRY_PAGES_ATTEMPTS_MAX);
    for (size_t i = 0; i < report->count; i++) {
        const struct dry_pages_attempt *a = &report->attempts[i];
        bool is_last = i + 1 == report->count;
        REQUIRE(a->is_granted == (is_last && is_granted));
        REQUIRE(a->is_granted || a->reason != DRY_PAGES_REASON_NONE);
        REQUIRE(i == 0 || a->page_bytes <= report->attempts[i - 1].page_bytes);
    }
}

static void
check_granted(struct machine *m, const struct dry_pages_options *o,
              const struct dry_pages *pages)
{
    const struct fake_kernel *f = &m->fake;
    struct dry_pages_info info = DRY_INIT(struct dry_pages_info);
    struct dry_pages_proof proof = DRY_INIT(struct dry_pages_proof);
    dry_pages_get_info(pages, &info);
    const struct dry_pages_attempt *last = &info.report.attempts[info.report.count - 1];
    check_report(&info.report, true);
    REQUIRE(info.bytes >= o->bytes && info.bytes - o->bytes < info.page_bytes);
    REQUIRE((uintptr_t)info.address % info.page_bytes == 0);
    REQUIRE(info.kind <= o->kind);
    REQUIRE(dry_pages_prove(pages, &proof, NULL) == DRY_OK);
    if (proof.knows_nodes)
        REQUIRE(proof.populated_bytes == info.bytes);
    if (o->policy == DRY_PAGES_STRICT) {
        REQUIRE(info.kind == o->kind && info.report.count == 1);
        REQUIRE(last->reason == DRY_PAGES_REASON_NONE);
        REQUIRE(info.kind == DRY_PAGES_BASE || info.huge_bytes == info.bytes);
    }
    if (info.where == DRY_PAGES_ANYWHERE || info.kind != DRY_PAGES_POOL)
        return;
    uint64_t elsewhere = pages_elsewhere(f, &info, nodes_of(o)) * PAGE;
    if (o->policy == DRY_PAGES_STRICT ||
        (o->policy == DRY_PAGES_PREFER && last->node_reason == DRY_PAGES_REASON_NONE))
        REQUIRE(elsewhere == 0);
    if (last->node_reason != DRY_PAGES_SECCOMP && last->node_reason != DRY_PAGES_UNPROVEN)
        REQUIRE(info.elsewhere_bytes == elsewhere);
    if (last->node_reason == DRY_PAGES_REASON_NONE)
        REQUIRE(elsewhere == 0);
}

/* Whether a strict order for the pool can be had, of a machine that forbids nothing. */
static bool
could_be_had(const struct fake_kernel *f, const struct dry_pages_options *o)
{
    uint64_t count = (o->bytes + PAGE - 1) / PAGE, promised = 0;
    for (size_t i = 0; i < f->map_count; i++)
        promised += f->maps[i].is_pool ? f->maps[i].bytes / PAGE : 0;
    if (o->fork == DRY_PAGES_INHERIT || o->fork == DRY_PAGES_WIPE)
        return false;
    if (count > f->cgroup_pages || count + promised > f->cgroup_reservations)
        return false;
    uint64_t free_pages = f->node_free[0] + f->node_free[1];
    if (o->where == DRY_PAGES_ON_NODE)
        free_pages = o->node < 2 ? f->node_free[o->node] : 0;
    return count <= free_pages;
}

static void
create(struct machine *m, size_t slot)
{
    struct fake_kernel *f = &m->fake;
    struct dry_pages_options o = make_order(&m->random);
    struct dry_pages_report report;
    uint64_t before = f->node_free[0] + f->node_free[1];
    size_t maps_before = f->map_count;
    bool is_possible = could_be_had(f, &o);
    enum dry_status status =
        dryi_pages_create(&o, &f->kernel, &m->regions[slot], &report, NULL);
    if (status == DRY_OK) {
        check_granted(m, &o, m->regions[slot]);
    } else {
        check_report(&report, false);
        REQUIRE(f->node_free[0] + f->node_free[1] == before);
        REQUIRE(f->map_count == maps_before);
    }
    bool is_free = f->bind_errno == 0 || o.where == DRY_PAGES_ANYWHERE;
    if (o.kind == DRY_PAGES_POOL && o.policy == DRY_PAGES_STRICT && is_free &&
        o.where < DRY_PAGES_INTERLEAVED)
        REQUIRE((status == DRY_OK) == is_possible);
    /* Base pages are always to be had here, and then so is something. */
    if (o.policy == DRY_PAGES_ANY)
        REQUIRE(status == DRY_OK);
}

static void
run_machine(uint64_t seed)
{
    static struct machine m;
    m = (struct machine){0};
    seed_now = seed;
    make_machine(&m, seed);
    uint64_t free_0 = m.fake.node_free[0], free_1 = m.fake.node_free[1];
    for (int step = 0; step < STEPS; step++) {
        size_t slot = random_below(&m.random, REGIONS_MAX);
        if (!m.regions[slot]) {
            create(&m, slot);
            continue;
        }
        dry_pages_destroy(m.regions[slot]);
        m.regions[slot] = NULL;
    }
    for (size_t i = 0; i < REGIONS_MAX; i++)
        dry_pages_destroy(m.regions[i]);
    REQUIRE(m.fake.node_free[0] == free_0 && m.fake.node_free[1] == free_1);
    fake_kernel_finish(&m.fake);
}

static void
regions_are_what_their_orders_say(void **state)
{
    (void)state;
    const char *seed = getenv("DRY_TEST_SEED"), *rounds = getenv("DRY_TEST_ROUNDS");
    if (seed) {
        run_machine(strtoull(seed, NULL, 10));
        return;
    }
    uint64_t count = rounds ? strtoull(rounds, NULL, 10) : 300;
    for (uint64_t i = 0; i < count; i++)
        run_machine(i);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_are_what_their_orders_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
