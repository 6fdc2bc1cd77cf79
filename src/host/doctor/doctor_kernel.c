/* SPDX-License-Identifier: Apache-2.0 */

/* Findings on the kernel: its features, boot options and known bugs. */
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "host/doctor/doctor_inside.h"
#include "host/doctor/doctor_text.h"
#include "host/facts/fact_text.h"
#include "host/facts/facts_read.h"

static const struct dryi_check check_version = {
    DRY_DOCTOR_KERNEL, "kernel-version", "what this kernel can do",
    "pages taken with MADV_POPULATE_WRITE (5.14) are refused by a number and not by a "
    "bus error; 5.18 gives back single pages of pools, 6.1 makes huge pages of small "
    "ones on request, 6.7 tells cheaply what is huge, 6.9 interleaves by weight"};
static const struct dryi_check check_pin = {
    DRY_DOCTOR_KERNEL, "kernel-pin", "pinning more than 2 GiB at once",
    "Linux 6.11 to 6.13 refuse to pin more than 2 GiB in one call: cudaHostRegister and "
    "cudaHostAlloc fail, and the error shows at the next kernel launch"};
static const struct dryi_check check_zeroing = {
    DRY_DOCTOR_KERNEL, "init-on-alloc", "zeroes for the kernel's own memory",
    "with init_on_alloc the kernel writes zeroes into all it takes for itself too: "
    "buffers of disks, networks and drivers. Memory for programs is zeroed in any case"};
static const struct dryi_check check_base = {
    DRY_DOCTOR_KERNEL, "base-page", "the base page",
    "programs must ask for its size: with 64 KiB, a huge page is 512 MiB"};
static const struct dryi_check check_gib = {
    DRY_DOCTOR_KERNEL, "gigantic-pages", "pages of 1 GiB",
    "very large tables of weights fit the processor's TLB only with these; processors "
    "and virtual machines without the flag pdpe1gb have none"};
static const struct dryi_check check_iommu = {
    DRY_DOCTOR_KERNEL, "iommu", "translation of what GPUs address",
    "where each pinned page is also entered into the IOMMU's tables, pinning and copies "
    "of small pages take longer, and peers cannot reach each other directly"};

static void
say_ability(struct dry_doctor *d, const char *what, uint32_t major, uint32_t minor)
{
    if (dryi_doctor_kernel_is_before(d, major, minor))
        dryi_doctor_is(d, "no %s", what);
}

static void
check_abilities(struct dry_doctor *d)
{
    const struct dry_doctor_machine *m = &d->machine;
    if (m->kernel_major == 0) {
        dryi_doctor_not_known(d, &check_version, "/proc/sys/kernel/osrelease");
        return;
    }
    dryi_doctor_begin(d, &check_version);
    dryi_doctor_is(d, "Linux %u.%u", m->kernel_major, m->kernel_minor);
    say_ability(d, "MADV_POPULATE_WRITE", 5, 14);
    say_ability(d, "MADV_DONTNEED for pools", 5, 18);
    say_ability(d, "MADV_COLLAPSE", 6, 1);
    say_ability(d, "PAGEMAP_SCAN", 6, 7);
    say_ability(d, "weighted interleaving", 6, 9);
    if (dryi_doctor_kernel_is_before(d, 5, 14)) {
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "5.14 or newer");
        dryi_doctor_fix(d, "# a newer kernel; until then pages are filled more slowly");
    }
    dryi_doctor_end(d);
}

static void
check_pinning(struct dry_doctor *d)
{
    const struct dry_doctor_machine *m = &d->machine;
    if (m->kernel_major == 0 || !dryi_doctor_has_gpu_purpose(d))
        return;
    bool is_broken =
        m->kernel_major == 6 && m->kernel_minor >= 11 && m->kernel_minor <= 13;
    dryi_doctor_begin(d, &check_pin);
    dryi_doctor_is(d, "Linux %u.%u, %s", m->kernel_major, m->kernel_minor,
                   is_broken ? "where it fails" : "where it works");
    if (is_broken) {
        dryi_doctor_judge(d, m->has_nvidia_driver ? DRY_DOCTOR_WRONG
                                                  : DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "6.10 and older, or 6.14 and newer");
        dryi_doctor_fix(d, "# a newer kernel; until then register in pieces of 1 GiB, as "
                           "drystone's pinned cache does");
    }
    dryi_doctor_end(d);
}

enum zeroing { ZEROING_NOT_KNOWN, ZEROING_OFF, ZEROING_ON };

/* Read from /boot whether the kernel was built to zero pages at allocation; distributions
   install the build's configuration there. */
static enum zeroing
read_build(const struct dry_doctor *d)
{
    static const char option[] = "CONFIG_INIT_ON_ALLOC_DEFAULT_ON";
    struct dryi_fact_file release, config;
    struct dryi_doctor_piece name;
    char path[192];
    size_t at = 0;
    if (!dryi_facts_read(&d->facts, &release, "/proc/sys/kernel/osrelease") ||
        !dryi_doctor_piece_next(release.text, release.length, &at, &name) ||
        name.length > 128 || memchr(name.bytes, '/', name.length))
        return ZEROING_NOT_KNOWN;
    snprintf(path, sizeof path, "/boot/config-%.*s", (int)name.length, name.bytes);
    if (!dryi_facts_read_lines(&d->facts, &config, path, option))
        return ZEROING_NOT_KNOWN;
    bool is_on = dryi_doctor_piece_find(config.text, config.length,
                                        "CONFIG_INIT_ON_ALLOC_DEFAULT_ON=y");
    return is_on ? ZEROING_ON : ZEROING_OFF;
}

static enum zeroing
read_zeroing(const struct dry_doctor *d)
{
    struct dryi_fact_file file;
    struct dryi_doctor_piece value;
    if (!dryi_facts_read(&d->facts, &file, "/proc/cmdline") ||
        !dryi_text_boot_option(file.text, file.length, "init_on_alloc", &value))
        return read_build(d);
    bool is_off = dryi_doctor_piece_is(value, "0") || dryi_doctor_piece_is(value, "off");
    return is_off ? ZEROING_OFF : ZEROING_ON;
}

static void
check_zeroes(struct dry_doctor *d)
{
    enum zeroing now = read_zeroing(d);
    dryi_doctor_begin(d, &check_zeroing);
    if (now == ZEROING_NOT_KNOWN) {
        dryi_doctor_judge(d, DRY_DOCTOR_NOT_KNOWN);
        dryi_doctor_is(d, "as the kernel was built; the command line does not say");
    } else if (now == ZEROING_OFF) {
        dryi_doctor_is(d, "off");
    } else {
        dryi_doctor_is(d, "on");
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "off, where nobody untrusted uses the machine");
        dryi_doctor_fix_at_boot(d, "init_on_alloc=0");
    }
    dryi_doctor_end(d);
}

static void
check_base_page(struct dry_doctor *d)
{
    const struct dry_doctor_machine *m = &d->machine;
    char base[DRYI_BYTES_TEXT], huge[DRYI_BYTES_TEXT];
    if (m->base_page_bytes == 0) {
        dryi_doctor_not_known(d, &check_base, "its size");
        return;
    }
    dryi_doctor_begin(d, &check_base);
    dryi_doctor_is(d, "%s", dryi_doctor_bytes(m->base_page_bytes, base));
    if (m->huge_page_bytes)
        dryi_doctor_is(d, "a huge one is %s",
                       dryi_doctor_bytes(m->huge_page_bytes, huge));
    dryi_doctor_end(d);
}

/* Check for support of 1 GiB pages, on x86 only: other processors do not list it. */
static void
check_gigantic(struct dry_doctor *d)
{
    struct dryi_fact_file file;
    if (!dryi_facts_read_lines(&d->facts, &file, "/proc/cpuinfo", "flags\t") ||
        file.length == 0)
        return;
    bool has_them = dryi_doctor_piece_find(file.text, file.length, "pdpe1gb");
    dryi_doctor_begin(d, &check_gib);
    dryi_doctor_is(d, "the processor has %s", has_them ? "them" : "none");
    if (!has_them && d->options.page_bytes == DRYI_GIB) {
        dryi_doctor_judge(d, DRY_DOCTOR_WRONG);
        dryi_doctor_should_be(d, "there, for pages of 1 GiB");
        dryi_doctor_fix(
            d, "# of a virtual machine: pass the processor's flag on (-cpu host)");
    }
    dryi_doctor_end(d);
}

/* Read the IOMMU's mode for the first GPU's group. Without one, read that of the first
   group, since groups usually have the same mode. */
static bool
read_translation(const struct dry_doctor *d, struct dryi_fact_file *file)
{
    for (size_t i = 0; i < d->view->gpu_count; i++) {
        const struct dry_topology_gpu *gpu = &d->view->gpus[i];
        if (gpu->vendor == DRY_TOPOLOGY_NVIDIA &&
            dryi_facts_read(&d->facts, file, "/sys/bus/pci/devices/%s/iommu_group/type",
                            gpu->address))
            return true;
    }
    return dryi_facts_read(&d->facts, file, "/sys/kernel/iommu_groups/0/type");
}

static void
check_translation(struct dry_doctor *d)
{
    struct dryi_fact_file file;
    if (!d->machine.has_nvidia_driver || !read_translation(d, &file))
        return;
    size_t at = 0;
    struct dryi_doctor_piece type;
    if (!dryi_doctor_piece_next(file.text, file.length, &at, &type))
        return;
    bool is_direct = dryi_doctor_piece_is(type, "identity");
    dryi_doctor_begin(d, &check_iommu);
    dryi_doctor_is(d, "%s", is_direct ? "as they are" : "translated");
    if (!is_direct) {
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "as they are, where no virtual machine gets the GPU");
        dryi_doctor_fix_at_boot(d, "iommu.passthrough=1");
    }
    dryi_doctor_end(d);
}

void
dryi_doctor_check_kernel(struct dry_doctor *d)
{
    check_abilities(d);
    check_pinning(d);
    check_zeroes(d);
    check_base_page(d);
    check_gigantic(d);
    check_translation(d);
}
