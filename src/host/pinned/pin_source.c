/* SPDX-License-Identifier: Apache-2.0 */

/* Regions for a pin, on the GPU's node if the caller gives none. Free memory is read
   again for each query. */
#include "host/pinned/pin_source.h"

#include <string.h>

#include <drystone/pinned.h>

#include "base/ascii.h"
#include "base/assert.h"
#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "host/facts/fact_text.h"
#include "host/facts/facts_read.h"
#include "host/pages/pages_inside.h"

enum dry_status
dryi_pin_source_init(struct dryi_pin_source *source, const struct dryi_pin_pages *options,
                     struct dry_error *err)
{
    struct dryi_pin_source s = {.gpu_node = -1};
    s.memory = dryi_memory_or_default(options->memory);
    if (options->kernel)
        s.kernel = *options->kernel;
    else
        dryi_kernel_init(&s.kernel);
    const char *root = options->root ? options->root : "";
    s.root_length = strlen(root);
    s.root = dryi_memory_zalloc(&s.memory, s.root_length + 1, 1);
    if (!s.root)
        return dryi_fail_memory(err, "a source of pages");
    memcpy(s.root, root, s.root_length);
    dry_pages_options_init(&s.pages);
    s.pages.kind = options->kind;
    s.pages.page_bytes = options->page_bytes;
    s.pages.policy = options->policy;
    s.pages.thread_count = options->thread_count;
    s.pages.timeout_ms = options->timeout_ms;
    *source = s;
    return DRY_OK;
}

void
dryi_pin_source_finish(struct dryi_pin_source *source)
{
    if (source->root)
        dryi_memory_free(&source->memory, source->root, source->root_length + 1, 1);
    source->root = NULL;
}

struct dryi_facts
dryi_pin_source_facts(const struct dryi_pin_source *source)
{
    DRYI_ASSERT_SLOW(source->root);
    return (struct dryi_facts){.kernel = &source->kernel, .root = source->root};
}

void
dryi_pin_source_settle(struct dryi_pin_source *source, int32_t node)
{
    struct dryi_facts facts = dryi_pin_source_facts(source);
    struct dry_pages_nodes existing, allowed;
    if (dryi_facts_nodes(&facts, &existing, &allowed) && dryi_nodes_have(&allowed, node))
        source->gpu_node = node;
}

enum dry_status
dryi_pin_source_take(const struct dryi_pin_source *source, uint64_t bytes, int32_t node,
                     struct dry_pages **pages, struct dry_error *err)
{
    DRYI_ASSERT_SLOW(bytes > 0 && node >= DRY_PINNED_NO_NODE);
    struct dry_pages_options o = source->pages;
    o.memory = &source->memory;
    o.root = source->root;
    o.bytes = bytes;
    o.node = node == DRY_PINNED_ANY_NODE ? source->gpu_node : node;
    o.where = o.node >= 0 ? DRY_PAGES_ON_NODE : DRY_PAGES_ANYWHERE;
    /* Copies are fastest from the GPU's node, but memory on another node is better than
       none. */
    if (node < 0 && o.node >= 0 && o.policy == DRY_PAGES_PREFER)
        o.policy = DRY_PAGES_ANY;
    return dryi_pages_create(&o, &source->kernel, pages, NULL, err);
}

/* --- how much there may be -------------------------------------------------------------- */

#define RESERVE_BYTES (4 * DRYI_GIB)

static uint64_t
get_reserve(const struct dryi_facts *facts, uint64_t available)
{
    struct dryi_fact_file file;
    uint64_t total = available;
    if (dryi_facts_read(facts, &file, "/proc/meminfo"))
        (void)dryi_fact_keyed(file.text, file.length, "MemTotal", &total);
    uint64_t fixed = dryi_min(RESERVE_BYTES, total / 4);
    return total / 10 > fixed ? total / 10 : fixed;
}

static uint64_t
find_free_of_machine(const struct dryi_facts *facts, int32_t node)
{
    uint64_t available_bytes = dryi_facts_available_bytes(facts, DRYI_ALL_NODES);
    if (available_bytes != UINT64_MAX) {
        uint64_t reserve = get_reserve(facts, available_bytes);
        available_bytes = available_bytes > reserve ? available_bytes - reserve : 0;
    }
    if (node >= 0)
        available_bytes =
            dryi_min(available_bytes, dryi_facts_available_bytes(facts, node));
    return dryi_min(available_bytes, dryi_facts_cgroup_free_bytes(facts));
}

static uint64_t
free_of_pool(const struct dryi_facts *facts, uint64_t page_bytes, int32_t node)
{
    DRYI_ASSERT_SLOW(page_bytes > 0);
    struct dryi_pool_facts p, of_node;
    if (!dryi_facts_pool(facts, page_bytes, DRYI_ALL_NODES, &p))
        return 0;
    uint64_t count = p.free > p.reserved ? p.free - p.reserved : 0;
    if (node >= 0 && dryi_facts_pool(facts, page_bytes, node, &of_node))
        count = dryi_min(count, of_node.free);
    return count > UINT64_MAX / page_bytes ? UINT64_MAX : count * page_bytes;
}

static uint64_t
find_free_of_pool(const struct dryi_facts *facts, uint64_t page_bytes, int32_t node)
{
    if (page_bytes == 0)
        page_bytes = dryi_facts_default_pool(facts);
    if (page_bytes == 0)
        return 0;
    uint64_t available_bytes = free_of_pool(facts, page_bytes, node);
    available_bytes = dryi_min(
        available_bytes, dryi_facts_cgroup_free_pool_bytes(facts, page_bytes, true));
    return dryi_min(available_bytes,
                    dryi_facts_cgroup_free_pool_bytes(facts, page_bytes, false));
}

uint64_t
dryi_pin_source_available_bytes(const struct dryi_pin_source *source, int32_t node)
{
    struct dryi_facts facts = dryi_pin_source_facts(source);
    if (source->pages.kind != DRY_PAGES_POOL)
        return find_free_of_machine(&facts, node);
    uint64_t available_bytes = find_free_of_pool(&facts, source->pages.page_bytes, node);
    if (source->pages.policy == DRY_PAGES_STRICT)
        return available_bytes;
    return dryi_add_saturating(available_bytes, find_free_of_machine(&facts, node));
}

#define STATUS "/proc/self/status"
#define MAY_LOCK_ANY 14 /* CAP_IPC_LOCK, linux/capability.h */

static bool
may_lock_any(const struct dryi_facts *facts)
{
    static const char key[] = "CapEff:\t";
    struct dryi_fact_file file;
    uint64_t mask;
    if (!dryi_facts_read_lines(facts, &file, STATUS, "CapEff:"))
        return false;
    size_t at = 0, length;
    const char *line;
    if (!dryi_fact_line(file.text, file.length, &at, &line, &length) ||
        length < sizeof key || memcmp(line, key, sizeof key - 1) != 0)
        return false;
    at = sizeof key - 1;
    return dryi_fact_hexadecimal(line + at, length - at, &mask) &&
           (mask >> MAY_LOCK_ANY & 1);
}

uint64_t
dryi_facts_lock_free_bytes(const struct dryi_facts *facts)
{
    const struct dryi_kernel *k = facts->kernel;
    struct dryi_fact_file file;
    uint64_t limit, locked = 0;
    if (k->get_lock_limit(k->self, &limit) < 0 || limit == UINT64_MAX ||
        may_lock_any(facts))
        return UINT64_MAX;
    if (dryi_facts_read_lines(facts, &file, STATUS, "VmLck:"))
        (void)dryi_fact_keyed(file.text, file.length, "VmLck", &locked);
    return limit > locked ? limit - locked : 0;
}

/* --- where a device is ------------------------------------------------------------------ */

#define PCI_ID_MAX 16

/* Convert a PCI id to the kernel's folder name: lower case, a domain of four digits.
   False: not an id; so the name cannot contain other path components. */
static bool
name_of_pci_id(const char *id, char name[PCI_ID_MAX])
{
    size_t length = strnlen(id, PCI_ID_MAX);
    if (length == 16 && strncmp(id, "0000", 4) == 0) {
        id += 4;
        length -= 4;
    }
    if (length != 12)
        return false;
    static const char form[] = "xxxx:xx:xx.x";
    for (size_t i = 0; i < length; i++) {
        char c = dryi_to_lower(id[i]);
        bool is_digit = dryi_is_digit(c) || (c >= 'a' && c <= 'f');
        if (form[i] == 'x' ? !is_digit : c != form[i])
            return false;
        name[i] = c;
    }
    name[length] = '\0';
    return true;
}

int32_t
dryi_facts_pci_node(const struct dryi_facts *facts, const char *id)
{
    char name[PCI_ID_MAX];
    uint64_t node;
    /* In virtual machines numa_node is -1, which does not parse as a number. */
    if (!name_of_pci_id(id, name) ||
        !dryi_facts_read_number(facts, &node, "/sys/bus/pci/devices/%s/numa_node",
                                name) ||
        node >= DRY_PAGES_NODES_MAX)
        return -1;
    return (int32_t)node;
}
