/* SPDX-License-Identifier: Apache-2.0 */
/* Memory locked by mlock(), where its pages come from, and how many there may be. */
#include "support/cmocka.h"
#include "support/failing_memory.h"
#include "support/fake_kernel.h"

#include <drystone/pinned.h>
#include <drystone/sim.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bits.h"
#include "host/pinned/pin_source.h"

#define NODE_DIR "/sys/devices/system/node"

struct fixture {
    struct fake_kernel fake;
    struct dryi_pin_lock_options options;
    struct dryi_pin pin;
    struct dryi_pin_range range;
    struct dry_error err;
};

static void
begin(struct fixture *f)
{
    *f = (struct fixture){.pin = {0}};
    fake_kernel_init(&f->fake);
    f->options.pages.kernel = &f->fake.kernel;
    f->options.pages.thread_count = 1;
}

static void
make(struct fixture *f)
{
    assert_int_equal(dryi_pin_make_lock(&f->options, &f->pin, &f->err), DRY_OK);
}

static enum dry_status
take(struct fixture *f, uint64_t bytes, int32_t node)
{
    return f->pin.take(f->pin.self, bytes, node, &f->range, &f->err);
}

static void
give(struct fixture *f)
{
    f->pin.give(f->pin.self, &f->range);
}

static void
end(struct fixture *f)
{
    f->pin.finish(f->pin.self);
    fake_kernel_finish(&f->fake);
}

static uint64_t
locked_bytes(const struct fixture *f)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < f->fake.map_count; i++)
        sum += f->fake.maps[i].is_locked ? f->fake.maps[i].bytes : 0;
    return sum;
}

static void
range_is_locked_whole_and_unlocked_whole(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    f.options.pages.kind = DRY_PAGES_TRANSPARENT;
    make(&f);
    assert_int_equal(take(&f, 5 * DRYI_MIB, -1), DRY_OK);
    assert_true(f.range.bytes == 6 * DRYI_MIB);
    assert_true(f.range.address % (2 * DRYI_MIB) == 0);
    assert_true(locked_bytes(&f) == 6 * DRYI_MIB);
    memset((void *)(uintptr_t)f.range.address, 7, f.range.bytes);
    assert_true(f.fake.advices & 1u << DRYI_ADVISE_DONTFORK);
    assert_true(f.fake.advices & 1u << DRYI_ADVISE_POPULATE_WRITE);
    give(&f);
    /* If unmapping fails, pages are to be emptied, which locked ones cannot be. */
    assert_int_equal(f.fake.unmaps_of_locked, 0);
    end(&f);
}

static void
real_kernel_counts_what_is_locked(void **state)
{
    (void)state;
    struct dryi_kernel kernel;
    dryi_kernel_init(&kernel);
    struct dryi_facts facts = {.kernel = &kernel, .root = ""};
    uint64_t limit;
    assert_int_equal(kernel.get_lock_limit(kernel.self, &limit), 0);
    if (limit < DRYI_MIB || dryi_facts_lock_free_bytes(&facts) < DRYI_MIB)
        skip_because("less than 1 MiB may be locked");
    struct fixture f = {0};
    make(&f);
    uint64_t before = dryi_facts_lock_free_bytes(&facts);
    assert_int_equal(take(&f, DRYI_MIB, -1), DRY_OK);
    /* Who may lock all that there is has no limit to come near to. */
    assert_true(dryi_facts_lock_free_bytes(&facts) ==
                (before == UINT64_MAX ? before : before - DRYI_MIB));
    assert_true(f.pin.available_bytes(f.pin.self, -1) <=
                dryi_facts_lock_free_bytes(&facts));
    unsigned char here[DRYI_MIB / 4096];
    assert_int_equal(mincore((void *)(uintptr_t)f.range.address, DRYI_MIB, here), 0);
    assert_true(here[0] & here[sizeof here / 2] & 1);
    give(&f);
    assert_true(dryi_facts_lock_free_bytes(&facts) == before);
    f.pin.finish(f.pin.self);
}

/* --- limits ----------------------------------------------------------------------------- */

static void
limit_is_named_before_anything_is_filled(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    f.fake.lock_limit = 8 * DRYI_MIB;
    fake_kernel_file(&f.fake, "/proc/self/status",
                     "Name:\tx\nVmLck:\t    4096 kB\nCapEff:\t0000000000003fff\n");
    make(&f);
    struct dryi_facts facts = {.kernel = &f.fake.kernel, .root = ""};
    assert_true(dryi_facts_lock_free_bytes(&facts) == 4 * DRYI_MIB);
    f.range.bytes = 77;
    assert_int_equal(take(&f, 5 * DRYI_MIB, -1), DRY_ERR_NO_SPACE);
    assert_true(f.range.bytes == 77);
    assert_non_null(strstr(f.err.text, "RLIMIT_MEMLOCK (ulimit -l) is 8388608, 4194304"));
    assert_int_equal(f.fake.maps_made, 0);
    assert_true(f.pin.available_bytes(f.pin.self, -1) == 4 * DRYI_MIB);
    end(&f);
}

/* A capability that a user namespace gives is worth nothing to the kernel's limit. */
static void
refused_lock_names_the_limit_and_leaves_nothing(void **state)
{
    (void)state;
    for (uint64_t limit = 0; limit <= 2 * DRYI_MIB; limit += 2 * DRYI_MIB) {
        struct fixture f;
        begin(&f);
        f.fake.lock_limit = limit;
        fake_kernel_file(&f.fake, "/proc/self/status",
                         "VmLck:\t       0 kB\nCapEff:\t000001ffffffffff\n");
        make(&f);
        assert_int_equal(take(&f, 3 * DRYI_MIB, -1), DRY_ERR_NO_SPACE);
        assert_non_null(strstr(f.err.text, "RLIMIT_MEMLOCK"));
        assert_int_equal(f.err.os_errno, limit ? ENOMEM : EPERM);
        assert_true(f.fake.maps_made > 0 && f.fake.map_count == 0);
        end(&f);
    }
}

/* Nobody is told of a limit that is none. */
static void
lock_refused_without_a_limit_says_no_more(void **state)
{
    (void)state;
    bool is_met = false;
    for (size_t n = 0; !is_met; n++) {
        struct fixture f;
        begin(&f);
        make(&f);
        fake_kernel_refuse(&f.fake, n, ENOMEM);
        enum dry_status status = take(&f, DRYI_MIB, -1);
        if (status == DRY_OK)
            give(&f);
        is_met = status != DRY_OK && strstr(f.err.text, "mlock of 1048576 bytes");
        assert_true(!is_met || (status == DRY_ERR_SYSTEM && f.err.os_errno == ENOMEM));
        assert_true(status == DRY_OK || !strstr(f.err.text, "RLIMIT_MEMLOCK"));
        assert_true(f.fake.has_refused);
        end(&f);
    }
}

static void
pool_s_pages_need_no_lock(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    f.fake.lock_limit = 0;
    f.options.pages.kind = DRY_PAGES_POOL;
    f.options.pages.policy = DRY_PAGES_STRICT;
    make(&f);
    assert_true(f.pin.available_bytes(f.pin.self, -1) == 32 * DRYI_MIB);
    assert_true(f.pin.available_bytes(f.pin.self, 1) == 16 * DRYI_MIB);
    assert_int_equal(take(&f, 15 * DRYI_MIB, 1), DRY_OK);
    assert_true(f.range.bytes == 16 * DRYI_MIB);
    assert_int_equal(f.fake.locks, 0);
    assert_true(f.fake.node_free[1] == 0);
    assert_true(f.pin.available_bytes(f.pin.self, 1) == 0);
    assert_true(f.pin.available_bytes(f.pin.self, -1) == 16 * DRYI_MIB);
    give(&f);
    end(&f);
}

/* --- room ------------------------------------------------------------------------------- */

static uint64_t
available_bytes(struct fixture *f, int32_t node)
{
    return f->pin.available_bytes(f->pin.self, node);
}

static void
say_memory(struct fixture *f, uint64_t total_gib, uint64_t available_gib)
{
    char text[128];
    snprintf(text, sizeof text, "MemTotal: %llu kB\nMemAvailable: %llu kB\n",
             (unsigned long long)total_gib << 20,
             (unsigned long long)available_gib << 20);
    fake_kernel_file(&f->fake, "/proc/meminfo", text);
}

static void
available_bytes_leave_a_reserve_to_the_machine(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    make(&f);
    say_memory(&f, 32, 20);
    assert_true(available_bytes(&f, -1) == 16 * DRYI_GIB); /* less 4 GiB */
    say_memory(&f, 200, 120);
    assert_true(available_bytes(&f, -1) == 100 * DRYI_GIB); /* less a tenth */
    say_memory(&f, 8, 5);
    assert_true(available_bytes(&f, -1) == 3 * DRYI_GIB); /* less a quarter */
    say_memory(&f, 200, 19);
    assert_true(available_bytes(&f, -1) == 0);
    fake_kernel_file(&f.fake, "/proc/meminfo", NULL);
    assert_true(available_bytes(&f, -1) == UINT64_MAX); /* nobody tells */
    end(&f);
}

static void
available_bytes_are_the_least_of_node_groups_and_machine(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    make(&f);
    say_memory(&f, 32, 20);
    assert_true(available_bytes(&f, 1) == 2 * DRYI_GIB);
    assert_true(available_bytes(&f, 7) == 16 * DRYI_GIB); /* there is no such file */
    fake_kernel_file(&f.fake, "/cg/memory.max", "1073741824\n");
    fake_kernel_file(&f.fake, "/cg/memory.current", "73741824\n");
    assert_true(available_bytes(&f, 1) == 1000000000);
    assert_true(available_bytes(&f, -1) == 1000000000);
    end(&f);
}

static void
available_bytes_of_a_pool_are_its_free_pages_and_what_may_replace_them(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    f.options.pages.kind = DRY_PAGES_POOL;
    make(&f);
    say_memory(&f, 32, 5);
    fake_kernel_file(
        &f.fake, "/proc/meminfo",
        "MemTotal: 33554432 kB\nMemAvailable: 5242880 kB\nHugepagesize: 2048 kB\n");
    assert_true(available_bytes(&f, -1) == 32 * DRYI_MIB + DRYI_GIB);
    f.fake.cgroup_pages = 3;
    assert_true(available_bytes(&f, -1) == 6 * DRYI_MIB + DRYI_GIB);
    f.fake.cgroup_reservations = 1;
    assert_true(available_bytes(&f, 0) == 2 * DRYI_MIB + DRYI_GIB);
    f.fake.cgroup_pages = f.fake.cgroup_reservations = 1000;
    end(&f);
}

/* --- nodes ------------------------------------------------------------------------------ */

static struct dryi_pin_source
make_source(struct fixture *f, enum dry_pages_policy policy)
{
    struct dryi_pin_source source;
    begin(f);
    f->options.pages.kind = DRY_PAGES_POOL;
    f->options.pages.policy = policy;
    assert_int_equal(dryi_pin_source_init(&source, &f->options.pages, NULL), DRY_OK);
    return source;
}

static struct dry_pages_info
take_pages(const struct dryi_pin_source *source, uint64_t bytes, int32_t node,
           struct dry_pages **pages)
{
    struct dry_pages_info info = DRY_INIT(struct dry_pages_info);
    struct dry_error err;
    assert_int_equal(dryi_pin_source_take(source, bytes, node, pages, &err), DRY_OK);
    dry_pages_get_info(*pages, &info);
    return info;
}

static void
pages_are_on_the_gpu_s_node_as_far_as_there_are(void **state)
{
    (void)state;
    struct fixture f;
    struct dryi_pin_source source = make_source(&f, DRY_PAGES_PREFER);
    dryi_pin_source_settle(&source, 1);
    assert_int_equal(source.gpu_node, 1);
    struct dry_pages *near, *rest;
    struct dry_pages_info info = take_pages(&source, 12 * DRYI_MIB, -1, &near);
    assert_true(info.elsewhere_bytes == 0 && f.fake.node_free[1] == 2);
    info = take_pages(&source, 8 * DRYI_MIB, -1, &rest);
    assert_true(info.elsewhere_bytes == 4 * DRYI_MIB && f.fake.node_free[0] == 6);
    dry_pages_destroy(rest);
    assert_true(f.fake.node_free[1] == 2);
    info = take_pages(&source, 4 * DRYI_MIB, DRY_PINNED_NO_NODE, &rest);
    assert_int_equal(info.where, DRY_PAGES_ANYWHERE);
    dry_pages_destroy(rest);
    /* Who names a node is given no other's. */
    info = take_pages(&source, 8 * DRYI_MIB, 1, &rest);
    assert_int_not_equal(info.kind, DRY_PAGES_POOL);
    dry_pages_destroy(rest);
    dry_pages_destroy(near);
    dryi_pin_source_finish(&source);
    fake_kernel_finish(&f.fake);
}

static void
strict_pages_are_on_the_gpu_s_node_or_nowhere(void **state)
{
    (void)state;
    struct fixture f;
    struct dryi_pin_source source = make_source(&f, DRY_PAGES_STRICT);
    dryi_pin_source_settle(&source, 0);
    struct dry_pages *pages;
    assert_int_equal(dryi_pin_source_take(&source, 18 * DRYI_MIB, -1, &pages, NULL),
                     DRY_ERR_NO_SPACE);
    take_pages(&source, 16 * DRYI_MIB, -1, &pages);
    assert_true(f.fake.node_free[0] == 0);
    dry_pages_destroy(pages);
    dryi_pin_source_finish(&source);
    fake_kernel_finish(&f.fake);
}

static void
the_gpu_s_node_is_a_node_of_ours(void **state)
{
    (void)state;
    struct fixture f;
    struct dryi_pin_source source = make_source(&f, DRY_PAGES_PREFER);
    static const int32_t none[] = {-1, 2, 1023, 1024, INT32_MAX};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        dryi_pin_source_settle(&source, none[i]);
        assert_int_equal(source.gpu_node, -1);
    }
    fake_kernel_file(&f.fake, "/proc/self/status", "Mems_allowed_list:\t0\n");
    dryi_pin_source_settle(&source, 1);
    assert_int_equal(source.gpu_node, -1);
    dryi_pin_source_settle(&source, 0);
    assert_int_equal(source.gpu_node, 0);
    dryi_pin_source_finish(&source);
    fake_kernel_finish(&f.fake);
}

static void
pci_ids_lead_to_nodes(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    struct dryi_facts facts = {.kernel = &f.fake.kernel, .root = ""};
    static const char path[] = "/sys/bus/pci/devices/0000:3b:0a.0/numa_node";
    fake_kernel_file(&f.fake, path, "1\n");
    assert_int_equal(dryi_facts_pci_node(&facts, "0000:3B:0A.0"), 1);
    assert_int_equal(dryi_facts_pci_node(&facts, "0000:3b:0a.0"), 1);
    assert_int_equal(dryi_facts_pci_node(&facts, "00000000:3B:0A.0"), 1);
    static const char *const others[] = {
        "",
        "0000:3B:0A.1",
        "0001:3B:0A.0",
        "0000:3B:0A",
        "0000:3B:0A.00",
        "../../../etc",
        "0000:3B:0A/0",
        "0000:3G:0A.0",
        "00010000:3B:0A.0",
        "000000000000000000000000000000000000000000000000000000",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(dryi_facts_pci_node(&facts, others[i]), -1);
    static const char *const unknown[] = {"-1\n", "\n", "x\n", "1024\n",
                                          "18446744073709551616\n"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        fake_kernel_file(&f.fake, path, unknown[i]);
        assert_int_equal(dryi_facts_pci_node(&facts, "0000:3B:0A.0"), -1);
    }
    fake_kernel_finish(&f.fake);
}

/* --- events ----------------------------------------------------------------------------- */

static void
without_a_device_every_use_is_over(void **state)
{
    (void)state;
    struct fixture f;
    uint64_t event = 7;
    begin(&f);
    make(&f);
    assert_int_equal(f.pin.event_record(f.pin.self, 3, &event, &f.err), DRY_OK);
    assert_int_equal(f.pin.event_is_done(f.pin.self, event), 1);
    f.pin.event_return(f.pin.self, event);
    end(&f);
}

static void
device_s_streams_are_waited_for(void **state)
{
    (void)state;
    struct fixture f;
    struct dry_sim_options so;
    struct dry_sim *sim;
    dry_sim_options_init(&so);
    assert_int_equal(dry_sim_create(&so, &sim, NULL), DRY_OK);
    begin(&f);
    f.options.device = dry_sim_get_device(sim);
    make(&f);
    uint64_t event;
    assert_int_equal(f.pin.event_record(f.pin.self, 5, &event, &f.err), DRY_OK);
    assert_int_equal(f.pin.event_is_done(f.pin.self, event), 0);
    dry_sim_complete_stream(sim, 5);
    assert_int_equal(f.pin.event_is_done(f.pin.self, event), 1);
    f.pin.event_return(f.pin.self, event);
    end(&f);
    dry_sim_destroy(sim);
}

/* --- failures --------------------------------------------------------------------------- */

static void
every_call_refused_leaves_nothing_behind(void **state)
{
    (void)state;
    static const int errors[] = {ENOMEM, EPERM, EAGAIN, EINVAL};
    static const uint64_t limits[] = {DRYI_GIB, DRYI_GIB, UINT64_MAX, UINT64_MAX};
    for (size_t e = 0; e < sizeof errors / sizeof *errors; e++) {
        size_t n = 0;
        for (bool more = true; more; n++) {
            struct fixture f;
            begin(&f);
            f.fake.lock_limit = limits[e];
            f.options.pages.kind = DRY_PAGES_TRANSPARENT;
            make(&f);
            fake_kernel_refuse(&f.fake, n, errors[e]);
            enum dry_status status = take(&f, 3 * DRYI_MIB, 1);
            if (status == DRY_OK)
                give(&f);
            else
                assert_true(f.err.status == status && f.err.text[0]);
            (void)available_bytes(&f, 1);
            more = f.fake.has_refused;
            end(&f);
            assert_true(n < 2000);
        }
        assert_true(n > 20);
    }
}

static void
no_memory_for_records_is_said(void **state)
{
    (void)state;
    for (size_t n = 0;; n++) {
        struct fixture f;
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        begin(&f);
        f.options.pages.memory = &memory;
        f.options.pages.root = "";
        enum dry_status status = dryi_pin_make_lock(&f.options, &f.pin, &f.err);
        if (status == DRY_OK) {
            status = take(&f, DRYI_MIB, -1);
            if (status == DRY_OK)
                give(&f);
            f.pin.finish(f.pin.self);
        }
        assert_int_equal(status, fm.failed ? DRY_ERR_MEMORY : DRY_OK);
        failing_memory_finish(&fm);
        fake_kernel_finish(&f.fake);
        if (!fm.failed)
            break;
    }
}

static void
child_of_a_fork_unlocks_nothing(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    make(&f);
    assert_int_equal(take(&f, DRYI_MIB, -1), DRY_OK);
    f.fake.process = 2;
    give(&f);
    assert_true(locked_bytes(&f) == DRYI_MIB);
    f.fake.kernel.unmap(&f.fake, f.fake.maps[0].address, f.fake.maps[0].bytes);
    end(&f);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(range_is_locked_whole_and_unlocked_whole),
        cmocka_unit_test(real_kernel_counts_what_is_locked),
        cmocka_unit_test(limit_is_named_before_anything_is_filled),
        cmocka_unit_test(refused_lock_names_the_limit_and_leaves_nothing),
        cmocka_unit_test(lock_refused_without_a_limit_says_no_more),
        cmocka_unit_test(pool_s_pages_need_no_lock),
        cmocka_unit_test(available_bytes_leave_a_reserve_to_the_machine),
        cmocka_unit_test(available_bytes_are_the_least_of_node_groups_and_machine),
        cmocka_unit_test(
            available_bytes_of_a_pool_are_its_free_pages_and_what_may_replace_them),
        cmocka_unit_test(pages_are_on_the_gpu_s_node_as_far_as_there_are),
        cmocka_unit_test(strict_pages_are_on_the_gpu_s_node_or_nowhere),
        cmocka_unit_test(the_gpu_s_node_is_a_node_of_ours),
        cmocka_unit_test(pci_ids_lead_to_nodes),
        cmocka_unit_test(without_a_device_every_use_is_over),
        cmocka_unit_test(device_s_streams_are_waited_for),
        cmocka_unit_test(every_call_refused_leaves_nothing_behind),
        cmocka_unit_test(no_memory_for_records_is_said),
        cmocka_unit_test(child_of_a_fork_unlocks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
