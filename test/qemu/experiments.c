/* SPDX-License-Identifier: Apache-2.0 */
#include "qemu/guest.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <drystone/tensor.h>

#include "host/pages/pages_inside.h"
#include "host/pages/populate.h"

#define CGROUP "/sys/fs/cgroup/limited"

struct region {
    struct dry_pages *pages;
    struct dry_pages_info info;
    struct dry_pages_report report;
};

static struct dry_pages_options
pool_options(uint64_t page_count, int node, enum dry_pages_policy policy)
{
    struct dry_pages_options o;
    dry_pages_options_init(&o);
    o.bytes = page_count * 2 * MIB;
    o.kind = DRY_PAGES_POOL;
    o.where = node < 0 ? DRY_PAGES_ANYWHERE : DRY_PAGES_ON_NODE;
    o.node = node < 0 ? 0 : node;
    o.policy = policy;
    o.page_bytes = 2 * MIB;
    return o;
}

static enum dry_status
create(const struct dry_pages_options *o, struct region *r)
{
    struct dry_error err;
    *r = (struct region){.info = DRY_INIT(struct dry_pages_info)};
    enum dry_status status = dry_pages_create(o, &r->pages, &r->report, &err);
    if (status == DRY_OK)
        dry_pages_get_info(r->pages, &r->info);
    for (size_t i = 0; i < r->report.count; i++) {
        const struct dry_pages_attempt *a = &r->report.attempts[i];
        printf("#   %s pages of %llu KiB%s: %s, node %s, errno %d\n",
               dry_pages_kind_name(a->kind), (unsigned long long)a->page_bytes / 1024,
               a->may_spill ? " with others" : "", dry_pages_reason_name(a->reason),
               dry_pages_reason_name(a->node_reason), a->os_errno);
    }
    return status;
}

static void
require_refused(const struct dry_pages_options *o, enum dry_pages_reason reason)
{
    struct region r;
    REQUIRE(create(o, &r) != DRY_OK);
    REQUIRE(r.report.count == 1 && r.report.attempts[0].reason == reason);
}

/* Writes to every page: a process that can be killed by this region would be. */
static void
touch(const struct region *r)
{
    volatile unsigned char *bytes = r->info.address;
    for (uint64_t i = 0; i < r->info.bytes; i += 4096) {
        REQUIRE(bytes[i] == 0);
        bytes[i] = 1;
    }
    REQUIRE(bytes[r->info.bytes - 1] == 0);
}

static struct dry_pages_proof
prove(const struct region *r)
{
    struct dry_pages_proof proof = DRY_INIT(struct dry_pages_proof);
    REQUIRE(dry_pages_prove(r->pages, &proof, NULL) == DRY_OK);
    REQUIRE(proof.knows_nodes && proof.knows_huge);
    for (size_t i = 0; i < proof.share_count; i++)
        printf("#   node %d: %llu KiB\n", (int)proof.shares[i].node,
               (unsigned long long)proof.shares[i].bytes / 1024);
    REQUIRE(proof.populated_bytes == r->info.bytes);
    return proof;
}

static void
require_all_on(const struct region *r, int node)
{
    struct dry_pages_proof proof = prove(r);
    REQUIRE(proof.share_count == 1 && proof.shares[0].node == node);
    REQUIRE(proof.shares[0].bytes == r->info.bytes && proof.elsewhere_bytes == 0);
}

static void
strict_pool_lies_on_its_node(void)
{
    struct dry_pages_options o = pool_options(64, 1, DRY_PAGES_STRICT);
    struct region r;
    REQUIRE(create(&o, &r) == DRY_OK);
    REQUIRE(guest_free_pages(1) == POOL_OF_NODE - 64 &&
            guest_free_pages(0) == POOL_OF_NODE);
    require_all_on(&r, 1);
    REQUIRE(prove(&r).huge_bytes == r.info.bytes);
    touch(&r);
    dry_pages_destroy(r.pages);
}

static void
dry_node_is_a_status(void)
{
    struct dry_pages_options o = pool_options(192, 1, DRY_PAGES_STRICT);
    require_refused(&o, DRY_PAGES_NODE_DRY);
    /* Nothing was left behind that would keep the pool from others. */
    o = pool_options(2 * POOL_OF_NODE, -1, DRY_PAGES_STRICT);
    struct region r;
    REQUIRE(create(&o, &r) == DRY_OK);
    touch(&r);
    dry_pages_destroy(r.pages);
}

static void
spill_is_counted(void)
{
    struct dry_pages_options o = pool_options(192, 1, DRY_PAGES_ANY);
    struct region r;
    REQUIRE(create(&o, &r) == DRY_OK);
    REQUIRE(r.report.count == 2 && r.report.attempts[1].may_spill);
    REQUIRE(r.report.attempts[1].node_reason == DRY_PAGES_NODE_DRY);
    REQUIRE(r.info.elsewhere_bytes == 64 * 2 * MIB);
    struct dry_pages_proof proof = prove(&r);
    REQUIRE(proof.share_count == 2 && proof.shares[0].bytes == 64 * 2 * MIB);
    REQUIRE(proof.shares[1].bytes == 128 * 2 * MIB);
    touch(&r);
    dry_pages_destroy(r.pages);
}

static void
prefer_stays_on_the_node(void)
{
    struct dry_pages_options o = pool_options(130, 1, DRY_PAGES_PREFER);
    struct region r;
    REQUIRE(create(&o, &r) == DRY_OK);
    REQUIRE(r.report.attempts[0].reason == DRY_PAGES_NODE_DRY);
    REQUIRE(r.info.kind != DRY_PAGES_POOL);
    require_all_on(&r, 1);
    touch(&r);
    dry_pages_destroy(r.pages);
}

static void
more_than_the_pool_is_refused_at_once(void)
{
    struct dry_pages_options o = pool_options(2048, -1, DRY_PAGES_STRICT);
    require_refused(&o, DRY_PAGES_NO_POOL);
}

/* Not a mapping of ours; the filling must stand it all the same. */
static void
mapping_without_reserve_is_a_status(void)
{
    uint64_t bytes = 300 * 2 * MIB;
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_NORESERVE, -1, 0);
    REQUIRE(at != MAP_FAILED);
    struct dryi_kernel kernel;
    dryi_kernel_init(&kernel);
    for (uint32_t threads = 1; threads <= 2; threads++) {
        struct dryi_populate populate = {
            .kernel = &kernel,
            .address = (uintptr_t)at,
            .bytes = bytes,
            .page_bytes = 2 * MIB,
            .piece_bytes = 16 * MIB,
            .thread_count = threads,
        };
        struct dryi_populate_result result;
        dryi_populate_run(&populate, &result);
        REQUIRE(result.end == DRYI_POPULATE_REFUSED && result.os_errno == EFAULT);
        REQUIRE(result.done_bytes <= 256 * 2 * MIB);
    }
    REQUIRE(munmap(at, bytes) == 0);
}

static int (*real_advise)(void *self, uint64_t address, uint64_t bytes, int advice);

static int
advise_of_before_5_14(void *self, uint64_t address, uint64_t bytes, int advice)
{
    if (advice == DRYI_ADVISE_POPULATE_WRITE)
        return -EINVAL;
    return real_advise(self, address, bytes, advice);
}

static void
old_kernels_are_as_safe(void)
{
    struct dryi_kernel kernel;
    dryi_kernel_init(&kernel);
    real_advise = kernel.advise;
    kernel.advise = advise_of_before_5_14;
    struct dry_pages_options o = pool_options(192, 1, DRY_PAGES_STRICT);
    struct region r = {.info = DRY_INIT(struct dry_pages_info)};
    REQUIRE(dryi_pages_create(&o, &kernel, &r.pages, &r.report, NULL) ==
            DRY_ERR_NO_SPACE);
    REQUIRE(r.report.attempts[0].reason == DRY_PAGES_NODE_DRY);
    o = pool_options(100, 1, DRY_PAGES_STRICT);
    REQUIRE(dryi_pages_create(&o, &kernel, &r.pages, &r.report, NULL) == DRY_OK);
    dry_pages_get_info(r.pages, &r.info);
    REQUIRE(guest_free_pages(1) == POOL_OF_NODE - 100);
    require_all_on(&r, 1);
    touch(&r);
    dry_pages_destroy(r.pages);
}

static void
enter_cgroup(const char *file, const char *limit)
{
    char path[128], pid[32];
    mkdir(CGROUP, 0755);
    guest_write("/sys/fs/cgroup/cgroup.subtree_control", "+memory +hugetlb");
    snprintf(path, sizeof path, "%s/%s", CGROUP, file);
    guest_write(path, limit);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    guest_write(CGROUP "/cgroup.procs", pid);
}

static void
leave_cgroup(const char *file)
{
    char path[128], pid[32];
    snprintf(path, sizeof path, "%s/%s", CGROUP, file);
    guest_write(path, "max");
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    guest_write("/sys/fs/cgroup/cgroup.procs", pid);
}

static void
cgroup_limit_is_a_status(void)
{
    enter_cgroup("hugetlb.2MB.max", "67108864");
    struct dry_pages_options o = pool_options(64, -1, DRY_PAGES_STRICT);
    require_refused(&o, DRY_PAGES_CGROUP_LIMIT);
    o = pool_options(32, -1, DRY_PAGES_STRICT);
    struct region r;
    REQUIRE(create(&o, &r) == DRY_OK);
    touch(&r);
    dry_pages_destroy(r.pages);
    leave_cgroup("hugetlb.2MB.max");
}

static void
cgroup_reservation_is_a_status(void)
{
    enter_cgroup("hugetlb.2MB.rsvd.max", "67108864");
    struct dry_pages_options o = pool_options(64, -1, DRY_PAGES_STRICT);
    require_refused(&o, DRY_PAGES_CGROUP_RESERVATION);
    leave_cgroup("hugetlb.2MB.rsvd.max");
}

/* Asking for them would be answered by killing this process. */
static void
memory_limit_is_a_status(void)
{
    enter_cgroup("memory.max", "134217728");
    struct dry_pages_options o;
    dry_pages_options_init(&o);
    o.bytes = 256 * MIB;
    o.kind = DRY_PAGES_BASE;
    o.policy = DRY_PAGES_STRICT;
    require_refused(&o, DRY_PAGES_CGROUP_LIMIT);
    o.kind = DRY_PAGES_TRANSPARENT;
    require_refused(&o, DRY_PAGES_CGROUP_LIMIT);
    leave_cgroup("memory.max");
}

static void
node_without_base_pages_is_a_status(void)
{
    struct dry_pages_options o;
    dry_pages_options_init(&o);
    o.bytes = 900 * MIB;
    o.kind = DRY_PAGES_BASE;
    o.where = DRY_PAGES_ON_NODE;
    o.node = 1;
    o.policy = DRY_PAGES_STRICT;
    require_refused(&o, DRY_PAGES_NODE_DRY);
    o.bytes = 100 * MIB;
    struct region r;
    REQUIRE(create(&o, &r) == DRY_OK);
    require_all_on(&r, 1);
    REQUIRE(prove(&r).huge_bytes == 0);
    touch(&r);
    dry_pages_destroy(r.pages);
}

static int
write_all(void *argument)
{
    const struct region *r = argument;
    volatile unsigned char *bytes = r->info.address;
    for (uint64_t i = 0; i < r->info.bytes; i += 4096)
        bytes[i] = (unsigned char)(bytes[i] + 1);
    return 0;
}

static int
destroy(void *argument)
{
    struct region *r = argument;
    dry_pages_destroy(r->pages);
    return 0;
}

/* With no page to spare, where a copy at a write has to kill somebody. */
static void
fork_with_shared_pages_kills_nobody(void)
{
    struct dry_pages_options o = pool_options(2 * POOL_OF_NODE, -1, DRY_PAGES_STRICT);
    o.fork = DRY_PAGES_SHARED;
    struct region r;
    REQUIRE(create(&o, &r) == DRY_OK);
    REQUIRE(guest_fork(write_all, &r) == 0);
    REQUIRE(((volatile unsigned char *)r.info.address)[4096] == 1);
    REQUIRE(guest_fork(destroy, &r) == 0);
    REQUIRE(write_all(&r) == 0);
    REQUIRE(((volatile unsigned char *)r.info.address)[4096] == 2);
    dry_pages_destroy(r.pages);
}

static void
fork_without_the_pages_leaves_them_to_the_parent(void)
{
    struct dry_pages_options o = pool_options(2 * POOL_OF_NODE, -1, DRY_PAGES_STRICT);
    struct region r;
    REQUIRE(create(&o, &r) == DRY_OK);
    REQUIRE(guest_fork(destroy, &r) == 0);
    REQUIRE(write_all(&r) == 0);
    REQUIRE(prove(&r).populated_bytes == r.info.bytes);
    dry_pages_destroy(r.pages);
    o.fork = DRY_PAGES_INHERIT;
    require_refused(&o, DRY_PAGES_FORK);
}

static void
odd_length_goes_back_whole(void)
{
    struct dry_pages_options o = pool_options(1, 0, DRY_PAGES_STRICT);
    o.bytes = 3 * MIB;
    struct region r;
    REQUIRE(create(&o, &r) == DRY_OK);
    REQUIRE(r.info.bytes == 4 * MIB && r.info.requested_bytes == 3 * MIB);
    REQUIRE(guest_free_pages(0) == POOL_OF_NODE - 2);
    touch(&r);
    dry_pages_destroy(r.pages);
    REQUIRE(guest_free_pages(0) == POOL_OF_NODE);
}

static void
gigabyte_pages_are_pages_too(void)
{
    struct dry_pages_options o = pool_options(1, 0, DRY_PAGES_STRICT);
    o.page_bytes = 1024 * MIB;
    struct region r, second;
    REQUIRE(create(&o, &r) == DRY_OK);
    REQUIRE(r.info.bytes == 1024 * MIB && r.info.page_bytes == 1024 * MIB);
    REQUIRE((uintptr_t)r.info.address % (1024 * MIB) == 0);
    ((volatile unsigned char *)r.info.address)[r.info.bytes - 1] = 1;
    struct dry_pages_proof proof = DRY_INIT(struct dry_pages_proof);
    REQUIRE(dry_pages_prove(r.pages, &proof, NULL) == DRY_OK);
    REQUIRE(proof.elsewhere_bytes == 0 && proof.huge_bytes == r.info.bytes);
    require_refused(&o, DRY_PAGES_NO_POOL);
    o.policy = DRY_PAGES_PREFER;
    REQUIRE(create(&o, &second) == DRY_OK);
    REQUIRE(second.info.kind == DRY_PAGES_POOL && second.info.page_bytes == 2 * MIB);
    dry_pages_destroy(second.pages);
    dry_pages_destroy(r.pages);
}

static void
interleaved_pages_lie_evenly(void)
{
    struct dry_pages_options o = pool_options(64, -1, DRY_PAGES_STRICT);
    o.where = DRY_PAGES_INTERLEAVED;
    struct region r;
    REQUIRE(create(&o, &r) == DRY_OK);
    struct dry_pages_proof proof = prove(&r);
    REQUIRE(proof.share_count == 2 && proof.shares[0].bytes == proof.shares[1].bytes);
    int32_t nodes[64];
    REQUIRE(dry_pages_query_nodes(r.pages, 0, 64, nodes, NULL) == DRY_OK);
    for (int i = 1; i < 64; i++)
        REQUIRE(nodes[i] == 1 - nodes[i - 1]);
    dry_pages_destroy(r.pages);
    /* Over node 1 alone, which is too small: the kernel goes elsewhere, we do not. */
    o = pool_options(130, -1, DRY_PAGES_STRICT);
    o.where = DRY_PAGES_INTERLEAVED;
    o.nodes.words[0] = 2;
    require_refused(&o, DRY_PAGES_NODE_DRY);
}

/* What the guest's kernel has (none before Linux 6.9), it does or says. */
static void
weights_are_kept_or_known_to_be_missing(void)
{
    struct dry_pages_options o = pool_options(64, -1, DRY_PAGES_PREFER);
    o.where = DRY_PAGES_WEIGHTED;
    bool has_weights = access("/sys/kernel/mm/mempolicy", F_OK) == 0;
    struct region r;
    REQUIRE(create(&o, &r) == DRY_OK);
    REQUIRE(r.report.count == 1 &&
            r.report.attempts[0].node_reason ==
                (has_weights ? DRY_PAGES_REASON_NONE : DRY_PAGES_NO_WEIGHTS));
    REQUIRE(prove(&r).share_count == 2 && r.info.kind == DRY_PAGES_POOL);
    dry_pages_destroy(r.pages);
    o.policy = DRY_PAGES_STRICT;
    if (!has_weights)
        require_refused(&o, DRY_PAGES_NO_WEIGHTS);
}

static void
transparent_pages_are_proven_by_smaps(void)
{
    struct dry_pages_options o;
    dry_pages_options_init(&o);
    o.bytes = 64 * MIB;
    o.where = DRY_PAGES_ON_NODE;
    o.node = 1;
    o.policy = DRY_PAGES_STRICT;
    struct region r, other;
    REQUIRE(create(&o, &r) == DRY_OK);
    REQUIRE(create(&o, &other) == DRY_OK); /* a neighbour must not be counted */
    REQUIRE(r.info.huge_bytes == 64 * MIB);
    REQUIRE(prove(&r).huge_bytes == 64 * MIB);
    require_all_on(&r, 1);
    touch(&r);
    dry_pages_destroy(other.pages);
    dry_pages_destroy(r.pages);
    guest_write("/sys/kernel/mm/transparent_hugepage/enabled", "never");
    require_refused(&o, DRY_PAGES_THP_OFF);
    guest_write("/sys/kernel/mm/transparent_hugepage/enabled", "madvise");
}

static void
shared_memory_is_huge_by_its_own_switch(void)
{
    struct dry_pages_options o;
    dry_pages_options_init(&o);
    o.bytes = 16 * MIB;
    o.policy = DRY_PAGES_STRICT;
    o.fork = DRY_PAGES_SHARED;
    require_refused(&o, DRY_PAGES_THP_OFF);
    guest_write("/sys/kernel/mm/transparent_hugepage/enabled", "never");
    guest_write("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "advise");
    struct region r;
    REQUIRE(create(&o, &r) == DRY_OK);
    REQUIRE(r.info.huge_bytes == 16 * MIB);
    touch(&r);
    dry_pages_destroy(r.pages);
    guest_write("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "never");
    guest_write("/sys/kernel/mm/transparent_hugepage/enabled", "madvise");
}

/* Base pages are put under a part of it, as if the kernel had found no others. */
static void
base_pages_are_collapsed_when_asked_again(void)
{
    struct dry_pages_options o;
    dry_pages_options_init(&o);
    o.bytes = 16 * MIB;
    o.policy = DRY_PAGES_STRICT;
    struct region r;
    uint64_t huge;
    REQUIRE(create(&o, &r) == DRY_OK);
    REQUIRE(madvise(r.info.address, 6 * MIB, MADV_DONTNEED) == 0);
    REQUIRE(madvise(r.info.address, r.info.bytes, MADV_NOHUGEPAGE) == 0);
    touch(&r);
    REQUIRE(madvise(r.info.address, r.info.bytes, MADV_HUGEPAGE) == 0);
    REQUIRE(prove(&r).huge_bytes == 10 * MIB);
    REQUIRE(dry_pages_collapse(r.pages, 0, &huge, NULL) == DRY_OK);
    REQUIRE(huge == 16 * MIB && prove(&r).huge_bytes == 16 * MIB);
    REQUIRE(((volatile unsigned char *)r.info.address)[4096] == 1);
    dry_pages_destroy(r.pages);
}

/* Then the kernel takes pages at mmap(), before it can be told from where. */
static void
locked_future_memory_is_placed_too(void)
{
    static const unsigned kinds[] = {DRY_PAGES_BASE, DRY_PAGES_TRANSPARENT,
                                     DRY_PAGES_POOL};
    REQUIRE(mlockall(MCL_FUTURE) == 0);
    for (size_t i = 0; i < 3; i++) {
        for (int node = 0; node < 2; node++) {
            struct dry_pages_options o = pool_options(10, node, DRY_PAGES_STRICT);
            struct region r;
            o.kind = (enum dry_pages_kind)kinds[i];
            o.page_bytes = 0;
            REQUIRE(create(&o, &r) == DRY_OK);
            require_all_on(&r, node);
            touch(&r);
            dry_pages_destroy(r.pages);
        }
    }
}

static void
time_out_gives_the_pool_back(void)
{
    struct dry_pages_options o = pool_options(200, -1, DRY_PAGES_STRICT);
    o.timeout_ms = 1;
    require_refused(&o, DRY_PAGES_TIMEOUT);
}

/* Types what is said to mend it: "echo NUMBER >FILE". */
static void
follow(const struct dry_pages_need *need)
{
    char command[160], number[32], path[120];
    REQUIRE(need->part_count == 1 && need->missing_count > 0);
    REQUIRE(dry_pages_need_command(need, 0, command, sizeof command) < sizeof command);
    printf("#   %s\n", command);
    REQUIRE(sscanf(command, "echo %31[0-9] >%119s", number, path) == 2);
    guest_write(path, number);
}

static void
restore_pools(void)
{
    char number[32];
    snprintf(number, sizeof number, "%d", POOL_OF_NODE);
    for (int node = 0; node < 2; node++) {
        char path[120];
        snprintf(path, sizeof path,
                 "/sys/devices/system/node/node%d/hugepages/hugepages-2048kB/"
                 "nr_hugepages",
                 node);
        guest_write(path, number);
    }
}

static void
what_a_node_lacks_is_mended_by_the_command(void)
{
    struct dry_pages_options o = pool_options(192, 1, DRY_PAGES_STRICT);
    struct dry_pages_need need = DRY_INIT(struct dry_pages_need);
    struct region r;
    REQUIRE(dry_pages_read_need(&o, &need, NULL) == DRY_OK);
    REQUIRE(need.page_count == 192 && need.missing_count == 192 - POOL_OF_NODE);
    require_refused(&o, DRY_PAGES_NODE_DRY);
    follow(&need);
    REQUIRE(dry_pages_read_need(&o, &need, NULL) == DRY_OK && need.missing_count == 0);
    REQUIRE(create(&o, &r) == DRY_OK);
    require_all_on(&r, 1);
    dry_pages_destroy(r.pages);
    restore_pools();
}

/* A byte of every page, by who consumes it; then it goes back. */
static void
consume(struct dry_dlpack_versioned *managed)
{
    volatile unsigned char *bytes = managed->tensor.data;
    REQUIRE(managed->tensor.strides[0] == 1024 * 1024);
    for (uint64_t i = 0; i < 4096 * MIB; i += 2 * MIB)
        bytes[i] = 1;
    REQUIRE(bytes[4096 * MIB - 1] == 0);
    managed->deleter(managed);
}

static void
require_tensor(const struct dry_tensor_options *o)
{
    struct dry_tensor *tensor = NULL;
    struct dry_dlpack_versioned *managed = NULL;
    struct dry_tensor_info info = DRY_INIT(struct dry_tensor_info);
    struct dry_pages_proof proof = DRY_INIT(struct dry_pages_proof);
    REQUIRE(dry_tensor_create(o, &tensor, NULL, NULL) == DRY_OK);
    dry_tensor_get_info(tensor, &info);
    REQUIRE(dry_pages_prove(info.pages, &proof, NULL) == DRY_OK);
    REQUIRE(proof.bytes == 4096 * MIB && proof.huge_bytes == proof.bytes);
    REQUIRE(proof.populated_bytes == proof.bytes);
    REQUIRE(dry_tensor_export(tensor, NULL, &managed, NULL) == DRY_OK);
    dry_tensor_destroy(tensor);
    consume(managed);
}

/* 1024 x 1024 x 1024 float32: it says what is missing, and has it when that is done. */
static void
tensor_of_four_gibibytes_gets_its_2048_pages(void)
{
    const int64_t shape[] = {1024, 1024, 1024};
    struct dry_pages_options pages = pool_options(0, -1, DRY_PAGES_STRICT);
    struct dry_tensor_options o;
    dry_tensor_options_init(&o);
    o.pages = &pages;
    o.form.ndim = 3;
    o.form.shape = shape;
    REQUIRE(dry_dtype_parse("float32", &o.form.dtype, NULL) == DRY_OK);
    struct dry_pages_need need = DRY_INIT(struct dry_pages_need);
    struct dry_tensor *tensor = NULL;
    struct dry_pages_report report;
    struct dry_error err;
    REQUIRE(dry_tensor_read_need(&o, &need, NULL) == DRY_OK);
    REQUIRE(need.page_count == 2048 && need.missing_count == 2048 - 2 * POOL_OF_NODE);
    REQUIRE(dry_tensor_create(&o, &tensor, &report, &err) == DRY_ERR_NO_SPACE);
    REQUIRE(report.attempts[0].reason == DRY_PAGES_NO_POOL);
    printf("#   %s\n", err.text);
    REQUIRE(strstr(err.text, "2048 needed, 1792 missing: echo 2048 >/sys/kernel/mm"));
    struct dryi_kernel kernel;
    dryi_kernel_init(&kernel);
    struct dryi_facts facts = {.kernel = &kernel, .root = ""};
    if (dryi_facts_available_bytes(&facts, DRYI_ALL_NODES) < 4352 * MIB) {
        printf("#   this guest has too little memory for it\n");
        return;
    }
    follow(&need);
    REQUIRE(dry_tensor_read_need(&o, &need, NULL) == DRY_OK && need.missing_count == 0);
    require_tensor(&o);
    restore_pools();
}

/* EPERM for each number. */
static void
forbid(const unsigned *calls, size_t count)
{
    struct sock_filter code[16] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    };
    size_t n = 1;
    for (size_t i = 0; i < count; i++) {
        code[n++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
                                                 SECCOMP_RET_ERRNO | (unsigned)EPERM);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = (unsigned short)n, .filter = code};
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    REQUIRE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
}

static void
first_touch_serves_where_binding_is_forbidden(void)
{
    static const unsigned calls[] = {SYS_mbind, SYS_set_mempolicy, SYS_get_mempolicy};
    forbid(calls, 3);
    struct dry_pages_options o = pool_options(100, 1, DRY_PAGES_STRICT);
    struct region r;
    REQUIRE(create(&o, &r) == DRY_OK);
    require_all_on(&r, 1);
    touch(&r);
    dry_pages_destroy(r.pages);
    o = pool_options(192, 1, DRY_PAGES_STRICT); /* goes to node 0, which is seen */
    require_refused(&o, DRY_PAGES_NODE_DRY);
    o = pool_options(100, 0, DRY_PAGES_STRICT);
    o.thread_count = 1;
    REQUIRE(create(&o, &r) == DRY_OK);
    require_all_on(&r, 0);
    dry_pages_destroy(r.pages);
}

/* As under the usual filter of containers: neither binding nor asking page by page. */
static void
numa_maps_tells_where_move_pages_may_not(void)
{
    static const unsigned calls[] = {SYS_mbind, SYS_move_pages};
    forbid(calls, 2);
    struct dry_pages_options o = pool_options(10, 1, DRY_PAGES_STRICT);
    struct region r;
    REQUIRE(create(&o, &r) == DRY_OK);
    REQUIRE(guest_free_pages(1) == POOL_OF_NODE - 10);
    require_all_on(&r, 1);
    dry_pages_destroy(r.pages);
    o = pool_options(192, 1, DRY_PAGES_STRICT);
    require_refused(&o, DRY_PAGES_NODE_DRY);
    o.policy = DRY_PAGES_ANY;
    REQUIRE(create(&o, &r) == DRY_OK);
    REQUIRE(r.info.elsewhere_bytes == 64 * 2 * MIB);
    dry_pages_destroy(r.pages);
    o.bytes = 20 * MIB;
    o.kind = DRY_PAGES_TRANSPARENT;
    o.page_bytes = 0;
    o.policy = DRY_PAGES_STRICT;
    REQUIRE(create(&o, &r) == DRY_OK);
    require_all_on(&r, 1);
    dry_pages_destroy(r.pages);
}

const struct experiment guest_experiments[] = {
    {"doctor_counts_the_pages_of_a_node", doctor_counts_the_pages_of_a_node},
    {"doctor_mends_what_it_finds", doctor_mends_what_it_finds},
    {"strict_pool_lies_on_its_node", strict_pool_lies_on_its_node},
    {"dry_node_is_a_status", dry_node_is_a_status},
    {"spill_is_counted", spill_is_counted},
    {"prefer_stays_on_the_node", prefer_stays_on_the_node},
    {"more_than_the_pool_is_refused_at_once", more_than_the_pool_is_refused_at_once},
    {"mapping_without_reserve_is_a_status", mapping_without_reserve_is_a_status},
    {"old_kernels_are_as_safe", old_kernels_are_as_safe},
    {"cgroup_limit_is_a_status", cgroup_limit_is_a_status},
    {"cgroup_reservation_is_a_status", cgroup_reservation_is_a_status},
    {"memory_limit_is_a_status", memory_limit_is_a_status},
    {"node_without_base_pages_is_a_status", node_without_base_pages_is_a_status},
    {"fork_with_shared_pages_kills_nobody", fork_with_shared_pages_kills_nobody},
    {"fork_without_the_pages_leaves_them_to_the_parent",
     fork_without_the_pages_leaves_them_to_the_parent},
    {"odd_length_goes_back_whole", odd_length_goes_back_whole},
    {"gigabyte_pages_are_pages_too", gigabyte_pages_are_pages_too},
    {"interleaved_pages_lie_evenly", interleaved_pages_lie_evenly},
    {"weights_are_kept_or_known_to_be_missing", weights_are_kept_or_known_to_be_missing},
    {"transparent_pages_are_proven_by_smaps", transparent_pages_are_proven_by_smaps},
    {"shared_memory_is_huge_by_its_own_switch", shared_memory_is_huge_by_its_own_switch},
    {"base_pages_are_collapsed_when_asked_again",
     base_pages_are_collapsed_when_asked_again},
    {"locked_future_memory_is_placed_too", locked_future_memory_is_placed_too},
    {"time_out_gives_the_pool_back", time_out_gives_the_pool_back},
    {"what_a_node_lacks_is_mended_by_the_command",
     what_a_node_lacks_is_mended_by_the_command},
    {"tensor_of_four_gibibytes_gets_its_2048_pages",
     tensor_of_four_gibibytes_gets_its_2048_pages},
    {"first_touch_serves_where_binding_is_forbidden",
     first_touch_serves_where_binding_is_forbidden},
    {"numa_maps_tells_where_move_pages_may_not",
     numa_maps_tells_where_move_pages_may_not},
};
const unsigned guest_experiment_count =
    sizeof guest_experiments / sizeof *guest_experiments;
