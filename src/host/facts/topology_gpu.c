/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finds GPUs by their PCI properties, without a driver's library. Class 0x03 is a display
 * controller (0x0302: without a connector); 0x12 is a processing accelerator, used by
 * AMD's newest GPUs. (PCI Code and ID Assignment Specification)
 */
#include "host/facts/topology_gpu.h"

#include <stdio.h>
#include <string.h>

#include "host/facts/fact_text.h"
#include "host/facts/facts_read.h"
#include "host/facts/topology_text.h"

#define DEVICES "/sys/bus/pci/devices"
#define DEVICES_MAX 65536 /* stop here, since a folder might never end */
#define VENDOR_NVIDIA 0x10deu
#define VENDOR_AMD 0x1002u
#define CLASS_DISPLAY 0x03u
#define CLASS_ACCELERATOR 0x12u

static bool
read_hex(const struct dryi_facts *facts, const char *name, const char *what,
         uint32_t *number)
{
    struct dryi_fact_file file;
    return dryi_facts_read(facts, &file, DEVICES "/%s/%s", name, what) &&
           dryi_topology_hex(file.text, file.length, number);
}

static bool
is_gpu(const struct dryi_facts *facts, const char *name, struct dry_topology_gpu *gpu)
{
    uint32_t class, vendor;
    if (!read_hex(facts, name, "class", &class) ||
        (class >> 16 != CLASS_DISPLAY && class >> 16 != CLASS_ACCELERATOR) ||
        !read_hex(facts, name, "vendor", &vendor) ||
        !read_hex(facts, name, "device", &gpu->device))
        return false;
    if (vendor == VENDOR_NVIDIA && class >> 16 == CLASS_DISPLAY) {
        gpu->vendor = DRY_TOPOLOGY_NVIDIA;
        return true;
    }
    gpu->vendor = DRY_TOPOLOGY_AMD;
    return vendor == VENDOR_AMD;
}

static void
read_place(const struct dryi_facts *facts, const char *name, struct dry_topology_gpu *gpu)
{
    struct dryi_fact_file file;
    gpu->node = DRY_TOPOLOGY_NO_NODE;
    if (dryi_facts_read(facts, &file, DEVICES "/%s/numa_node", name))
        (void)dryi_topology_node(file.text, file.length, &gpu->node);
    gpu->knows_cpus =
        dryi_facts_read(facts, &file, DEVICES "/%s/local_cpulist", name) &&
        dryi_fact_list(file.text, file.length, gpu->cpus.words, DRY_TOPOLOGY_CPUS_MAX);
}

/* Insert a GPU in order of its key; if there are too many, the last is dropped. */
static void
insert(struct dryi_topology_gpus *g, uint64_t key, const struct dry_topology_gpu *gpu)
{
    size_t at = g->count;
    while (at > 0 && g->keys[at - 1] > key)
        at--;
    if (at == DRY_TOPOLOGY_GPUS_MAX)
        return;
    g->count += g->count < DRY_TOPOLOGY_GPUS_MAX;
    size_t behind = g->count - at - 1;
    memmove(&g->keys[at + 1], &g->keys[at], behind * sizeof *g->keys);
    memmove(&g->gpus[at + 1], &g->gpus[at], behind * sizeof *g->gpus);
    g->keys[at] = key;
    g->gpus[at] = *gpu;
}

static int
take_device(void *to, const char *name)
{
    struct dryi_topology_gpus *g = to;
    struct dry_topology_gpu gpu = {.address = {0}};
    uint64_t key;
    if (dryi_topology_pci(name, strlen(name), &key) && is_gpu(g->facts, name, &gpu)) {
        read_place(g->facts, name, &gpu);
        snprintf(gpu.address, sizeof gpu.address, "%s", name);
        insert(g, key, &gpu);
    }
    return ++g->seen == DEVICES_MAX;
}

void
dryi_topology_find_gpus(struct dryi_topology_gpus *gpus)
{
    const struct dryi_kernel *k = gpus->facts->kernel;
    char path[2048];
    int length = snprintf(path, sizeof path, "%s" DEVICES, gpus->facts->root);
    if (length > 0 && (size_t)length < sizeof path)
        (void)k->list(k->self, path, take_device, gpus);
}
