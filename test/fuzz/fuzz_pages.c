/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A region on a machine whose /sys and /proc say anything: six bytes choose the order, the
 * rest, cut at zeroes, is what the files say. Whatever they say, the region is whole or there
 * is none, every refusal has a reason, and nothing stays behind.
 */
#include "support/fake_kernel.h"
#include "support/fuzz.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/pages.h>

#include "host/pages/pages_inside.h"

#define ORDER_BYTES 6

static const char *const paths[] = {
    "/proc/meminfo",
    "/proc/self/status",
    "/proc/self/cgroup",
    "/proc/self/mountinfo",
    "/sys/devices/system/node/has_memory",
    "/sys/devices/system/node/node1/cpulist",
    "/sys/devices/system/node/node1/meminfo",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
    "/cg/memory.max",
    "/cg/memory.current",
    "/cg/memory.stat",
    "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages",
    "/proc/self/numa_maps",
    "/proc/self/smaps",
    "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
    "/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages",
    "/sys/kernel/mm/mempolicy/weighted_interleave/node0",
    "/sys/kernel/mm/transparent_hugepage/shmem_enabled",
};
#define PATH_COUNT (sizeof paths / sizeof *paths)

static void
require(bool condition)
{
    if (!condition)
        abort();
}

/* Each piece up to a zero is a file; an empty one leaves it as it was. */
static void
write_files(struct fake_kernel *fake, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < PATH_COUNT && size; i++) {
        const uint8_t *zero = memchr(data, '\0', size);
        size_t length = zero ? (size_t)(zero - data) : size;
        char text[256];
        size_t kept = length < sizeof text - 1 ? length : sizeof text - 1;
        memcpy(text, data, kept);
        text[kept] = '\0';
        if (kept)
            fake_kernel_file(fake, paths[i], text);
        data += length + (zero != NULL);
        size -= length + (zero != NULL);
    }
}

static void
choose_order(const uint8_t *data, struct fake_kernel *fake, struct dry_pages_options *o)
{
    o->bytes = 1 + (uint64_t)data[0] * 100000;
    o->kind = (enum dry_pages_kind)(data[1] % 3);
    o->where = (enum dry_pages_where)(data[1] / 3 % 4);
    o->node = o->where == DRY_PAGES_ON_NODE ? data[2] % 3 : 0;
    o->nodes.words[0] = data[2] / 4u;
    o->policy = (enum dry_pages_policy)(data[3] % 3);
    o->fork = (enum dry_pages_fork)(data[3] / 3 % 4);
    o->keep_free_bytes = (uint64_t)data[4] << 20;
    o->thread_count = 1;
    fake->weights[0] = fake->weights[1] = data[5] >> 5 & 1u;
    fake->bind_errno = data[5] & 1;       /* EPERM */
    fake->query_errno = data[5] >> 1 & 1; /* EPERM */
    fake->huge_errno = data[5] >> 2 & 1;
    fake->populate_errno = data[5] & 8 ? 22 : 0; /* EINVAL */
    fake->base_bytes = data[5] & 16 ? 65536 : 4096;
}

static void
check_granted(const struct dry_pages *pages, const struct dry_pages_options *o)
{
    struct dry_pages_info info = DRY_INIT(struct dry_pages_info);
    struct dry_pages_proof proof = DRY_INIT(struct dry_pages_proof);
    dry_pages_get_info(pages, &info);
    require(info.report.count > 0 &&
            info.report.attempts[info.report.count - 1].is_granted);
    require(info.bytes >= o->bytes && info.bytes - o->bytes < info.page_bytes);
    require((uintptr_t)info.address % info.page_bytes == 0);
    require(info.huge_bytes <= info.bytes && info.elsewhere_bytes <= info.bytes);
    require(dry_pages_prove(pages, &proof, NULL) == DRY_OK);
    require(proof.populated_bytes <= info.bytes && proof.huge_bytes <= info.bytes);
    require(proof.elsewhere_bytes <= proof.populated_bytes);
}

static void
check_need(const struct dry_pages_options *o, const struct fake_kernel *fake)
{
    struct dryi_pages_order order;
    struct dry_pages_need need = DRY_INIT(struct dry_pages_need);
    char command[160];
    uint64_t pages = 0, missing = 0;
    require(dryi_pages_order_init(&order, o, &fake->kernel, NULL) == DRY_OK);
    dryi_pages_need(&order, &need);
    require(need.bytes >= o->bytes && need.part_count <= DRY_PAGES_SHARES_MAX);
    for (size_t i = 0; i < need.part_count; i++) {
        pages += need.parts[i].page_count;
        missing += need.parts[i].missing_count;
        require(dry_pages_need_command(&need, i, command, sizeof command) <
                sizeof command);
    }
    require(need.part_count == 0 || pages == need.page_count);
    require(missing == need.missing_count && missing <= need.page_count);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fake_kernel fake;
    if (size < ORDER_BYTES)
        return 0;
    struct dry_pages_options o;
    struct dry_pages *pages = NULL;
    struct dry_pages_report report;
    fake_kernel_init(&fake);
    dry_pages_options_init(&o);
    choose_order(data, &fake, &o);
    write_files(&fake, data + ORDER_BYTES, size - ORDER_BYTES);
    check_need(&o, &fake);
    enum dry_status status = dryi_pages_create(&o, &fake.kernel, &pages, &report, NULL);
    require(report.count > 0);
    if (status == DRY_OK)
        check_granted(pages, &o);
    else
        require(!pages && report.attempts[0].reason != DRY_PAGES_REASON_NONE);
    dry_pages_destroy(pages);
    require(fake.map_count == 0 && fake.page_count == 0);
    for (size_t i = 0; i < FAKE_OPENS_MAX; i++)
        require(!fake.opens[i].is_used);
    pthread_mutex_destroy(&fake.lock);
    return 0;
}
