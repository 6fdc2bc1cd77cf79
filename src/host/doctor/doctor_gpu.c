/* SPDX-License-Identifier: Apache-2.0 */

/* Findings on NVIDIA's driver and the PCI location of its GPUs, from /proc and /sys.
   Facts that only CUDA reports are left to the program. */
#include <stdio.h>

#include "base/bits.h"
#include "host/doctor/doctor_inside.h"
#include "host/doctor/doctor_text.h"
#include "host/facts/fact_text.h"
#include "host/facts/facts_read.h"

#define DRIVER "/proc/driver/nvidia/"
/* Drivers since r580 reject registrations of 2^39 bytes or more. */
#define CAPPED_DRIVER 580
/* The size of a GPU's PCI window unless BARs are resized. */
#define SMALL_WINDOW (UINT64_C(256) << 20)
#define NAMED_MAX 16
#define CAP_BYTES (UINT64_C(1) << 39)

static const struct dryi_check check_driver = {
    DRY_DOCTOR_GPU, "cuda-driver", "NVIDIA's driver",
    "one registration keeps 24 bytes for each 4 KiB, huge pages or not, in one table; "
    "from r580 on 512 GiB and more in one call fail"};
static const struct dryi_check check_zeroing = {
    DRY_DOCTOR_GPU, "cuda-zeroing", "zeroes for the driver's host memory",
    "the driver clears what it allocates (NVreg_InitializeSystemMemoryAllocations=1); "
    "memory of ours that is registered was zeroed by the kernel already, in parallel"};
static const struct dryi_check check_persistence = {
    DRY_DOCTOR_GPU, "cuda-persistence", "a driver that stays awake",
    "without nvidia-persistenced the GPU is put down when its last program ends, and the "
    "next one waits seconds for it"};
static const struct dryi_check check_place = {
    DRY_DOCTOR_GPU, "gpu-node", "the nodes that GPUs hang on",
    "a copy to a GPU from its own node's memory is up to three times as fast; "
    "page-locked pages cannot be moved afterwards"};

static const struct dryi_check check_bar = {
    DRY_DOCTOR_GPU, "gpu-bar", "windows to the GPUs' own memory",
    "network cards and disks that write to a GPU's memory by themselves (GPUDirect) "
    "reach "
    "what is in this window of PCI; page-locked host memory and copies do not need it"};

static size_t
count_gpus(const struct dry_doctor *d)
{
    size_t count = 0;
    for (size_t i = 0; i < d->view->gpu_count; i++)
        count += d->view->gpus[i].vendor == DRY_TOPOLOGY_NVIDIA;
    return count;
}

static void
check_absence(struct dry_doctor *d)
{
    size_t count = count_gpus(d);
    if (!dryi_doctor_has_gpu_purpose(d))
        return;
    if (count == 0) {
        dryi_doctor_not_known(d, &check_driver, DRIVER "version");
        return;
    }
    dryi_doctor_begin(d, &check_driver);
    dryi_doctor_is(d, "none is seen, but %zu GPUs of NVIDIA's are", count);
    dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
    dryi_doctor_should_be(d, "loaded, and /proc/driver/nvidia to be seen");
    dryi_doctor_needs_root(d);
    dryi_doctor_fix(d, "modprobe nvidia");
    dryi_doctor_undo(d, "modprobe -r nvidia");
    dryi_doctor_end(d);
}

static void
check_version(struct dry_doctor *d)
{
    struct dryi_fact_file file;
    uint64_t major, minor;
    if (!d->machine.has_nvidia_driver) {
        check_absence(d);
        return;
    }
    dryi_doctor_begin(d, &check_driver);
    if (dryi_facts_read(&d->facts, &file, DRIVER "version") &&
        dryi_text_driver(file.text, file.length, &major, &minor)) {
        dryi_doctor_is(d, "%llu.%02llu", (unsigned long long)major,
                       (unsigned long long)minor);
        if (major >= CAPPED_DRIVER && d->machine.memory_bytes > CAP_BYTES) {
            dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
            dryi_doctor_should_be(d,
                                  "asked for less than 512 GiB in one call: this machine "
                                  "has room for more");
            dryi_doctor_fix(d,
                            "# register in pieces of 1 GiB, as drystone's pinned cache "
                            "does");
        }
    } else {
        dryi_doctor_judge(d, DRY_DOCTOR_NOT_KNOWN);
        dryi_doctor_is(d, "there, of an unknown version");
    }
    dryi_doctor_end(d);
}

static void
check_clearing(struct dry_doctor *d)
{
    struct dryi_fact_file file;
    uint64_t is_on;
    if (!dryi_facts_read_lines(&d->facts, &file, DRIVER "params",
                               "InitializeSystemMemoryAllocations") ||
        !dryi_fact_keyed(file.text, file.length, "InitializeSystemMemoryAllocations",
                         &is_on))
        return;
    dryi_doctor_begin(d, &check_zeroing);
    dryi_doctor_is(d, "%s", is_on ? "on" : "off");
    dryi_doctor_end(d);
}

static void
check_daemon(struct dry_doctor *d)
{
    struct dryi_fact_file file;
    const char *pid = "/run/nvidia-persistenced/nvidia-persistenced.pid";
    if (!d->machine.has_nvidia_driver)
        return;
    dryi_doctor_begin(d, &check_persistence);
    if (dryi_facts_read(&d->facts, &file, "%s", pid)) {
        dryi_doctor_is(d, "nvidia-persistenced runs");
    } else {
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_is(d, "nvidia-persistenced is not seen here");
        dryi_doctor_should_be(d, "running, on the host");
        dryi_doctor_needs_root(d);
        dryi_doctor_fix(d, "systemctl enable --now nvidia-persistenced");
        dryi_doctor_undo(d, "systemctl disable --now nvidia-persistenced");
    }
    dryi_doctor_end(d);
}

static void
check_nodes(struct dry_doctor *d)
{
    if (d->view->gpu_count == 0)
        return;
    size_t unknown = 0;
    dryi_doctor_begin(d, &check_place);
    for (size_t i = 0; i < d->view->gpu_count; i++) {
        const struct dry_topology_gpu *gpu = &d->view->gpus[i];
        if (gpu->node == DRY_TOPOLOGY_NO_NODE)
            unknown++;
        else if (i < NAMED_MAX)
            dryi_doctor_is(d, "%s: node %d", gpu->address, (int)gpu->node);
    }
    if (unknown)
        dryi_doctor_is(d, "of %zu it is not known", unknown);
    if (unknown && d->machine.node_count > 1) {
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "known: nvidia-smi topo -m may tell");
    }
    dryi_doctor_end(d);
}

/* Judge the windows' sizes. GPUs without a window, or with unreadable files, are
   skipped. */
static void
check_windows(struct dry_doctor *d)
{
    size_t small = 0, named = 0;
    if (!dryi_doctor_has_gpu_purpose(d))
        return;
    for (size_t i = 0; i < d->view->gpu_count; i++) {
        const char *address = d->view->gpus[i].address;
        struct dryi_fact_file file;
        char size[DRYI_BYTES_TEXT];
        uint64_t bytes;
        if (!dryi_facts_read(&d->facts, &file, "/sys/bus/pci/devices/%s/resource",
                             address) ||
            !dryi_text_window(file.text, file.length, &bytes))
            continue;
        if (named == 0)
            dryi_doctor_begin(d, &check_bar);
        small += bytes <= SMALL_WINDOW;
        if (named++ < NAMED_MAX || (bytes <= SMALL_WINDOW && small == 1))
            dryi_doctor_is(d, "%s: %s", address, dryi_doctor_bytes(bytes, size));
    }
    if (small) {
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "as large as the GPU's memory, if GPUDirect is used; "
                                 "else nothing is lost");
        dryi_doctor_fix(d,
                        "# in the firmware's settings: Above 4G Decoding and Resizable "
                        "BAR on; of a virtual machine in its host's");
    }
    if (named)
        dryi_doctor_end(d);
}

void
dryi_doctor_check_gpu(struct dry_doctor *d)
{
    check_version(d);
    check_clearing(d);
    check_daemon(d);
    check_nodes(d);
    check_windows(d);
}
