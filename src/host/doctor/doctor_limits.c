/* SPDX-License-Identifier: Apache-2.0 */

/* Findings on limits of the process and of the machine that programs with much memory run
   into. */
#include <stdio.h>

#include "base/bits.h"
#include "host/doctor/doctor_inside.h"
#include "host/doctor/doctor_text.h"
#include "host/facts/fact_text.h"
#include "host/facts/facts_read.h"

#define VM "/proc/sys/vm/"
#define LIMITS "/proc/self/limits"
#define FILES_MIN 65536
#define MAPS_MIN 262144
#define UNLIMITED UINT64_MAX

static const struct dryi_check check_memlock = {
    DRY_DOCTOR_LIMITS, "memlock", "locked memory (ulimit -l)",
    "mlock, RDMA and io_uring are held to it. CUDA's page-locked memory is not: the "
    "driver pins without asking for this limit"};
static const struct dryi_check check_files = {
    DRY_DOCTOR_LIMITS, "open-files", "open files (ulimit -n)",
    "DataLoader's workers send each tensor as a file descriptor, and shards of a dataset "
    "are files too"};
static const struct dryi_check check_addresses = {
    DRY_DOCTOR_LIMITS, "address-space", "addresses (ulimit -v)",
    "CUDA reserves addresses for the memory of all GPUs, and allocators reserve far more "
    "than they use: reserving is not using"};
static const struct dryi_check check_maps = {
    DRY_DOCTOR_LIMITS, "map-count", "mappings a process may have",
    "expandable segments, files of weights mapped piece by piece and allocators that "
    "give parts back make tens of thousands; the next one is then \"out of memory\""};
static const struct dryi_check check_overcommit = {
    DRY_DOCTOR_LIMITS, "overcommit", "promises of memory",
    "2 counts every reserved address as used: forking a DataLoader's worker then needs "
    "the parent's memory again, and CUDA's reservations fail"};
static const struct dryi_check check_swap = {
    DRY_DOCTOR_LIMITS, "swappiness", "what is swapped out",
    "reading a dataset should cost copies of files and not the program's tensors; "
    "page-locked and huge pages of pools never swap, so that all of it hits the others"};
static const struct dryi_check check_reserve = {
    DRY_DOCTOR_LIMITS, "min-free", "memory the kernel keeps for itself",
    "too little, and bursts of network and disk make everybody wait for reclaim; too "
    "much is lost to all"};
static const struct dryi_check check_shm = {
    DRY_DOCTOR_LIMITS, "shm", "shared memory (/dev/shm)",
    "DataLoader's workers send batches through it; a worker that finds it full is killed "
    "by a bus error. Containers give 64 MiB unless told otherwise"};

/* --- of the process ----------------------------------------------------------------------- */

static const char *
limit_text(uint64_t limit, bool is_bytes, char text[DRYI_BYTES_TEXT])
{
    if (limit == UNLIMITED)
        return "unlimited";
    if (is_bytes)
        return dryi_doctor_bytes(limit, text);
    snprintf(text, DRYI_BYTES_TEXT, "%llu", (unsigned long long)limit);
    return text;
}

/* Begin a finding with the limit's current value; false: not known. */
static bool
begin_limit(struct dry_doctor *d, const struct dryi_check *check, const char *name,
            bool is_bytes, uint64_t *soft, uint64_t *hard)
{
    struct dryi_fact_file file;
    char now[DRYI_BYTES_TEXT], most[DRYI_BYTES_TEXT];
    if (!dryi_facts_read(&d->facts, &file, LIMITS) ||
        !dryi_text_limit(file.text, file.length, name, soft, hard)) {
        dryi_doctor_not_known(d, check, LIMITS);
        return false;
    }
    dryi_doctor_begin(d, check);
    dryi_doctor_is(d, "%s, at most %s", limit_text(*soft, is_bytes, now),
                   limit_text(*hard, is_bytes, most));
    return true;
}

static void
name_limit(uint64_t limit, char text[24])
{
    if (limit == UNLIMITED)
        snprintf(text, 24, "unlimited");
    else
        snprintf(text, 24, "%llu", (unsigned long long)limit);
}

/* Recommend prlimit instead of ulimit: root cannot run a shell built-in in another user's
   shell, and ulimit also lowers the hard limit, which only root could raise again. */
static void
raise_limit(struct dry_doctor *d, const char *option, uint64_t soft, uint64_t hard,
            uint64_t wanted)
{
    char from[24], most[24], to[24], who[24] = "$$";
    if (d->options.process)
        snprintf(who, sizeof who, "%lld", (long long)d->options.process);
    name_limit(soft, from);
    name_limit(hard, most);
    name_limit(wanted, to);
    if (hard >= wanted) {
        dryi_doctor_fix(d, "prlimit --pid %s --%s=%s:", who, option, to);
        dryi_doctor_undo(d, "prlimit --pid %s --%s=%s:", who, option, from);
        return;
    }
    dryi_doctor_needs_root(d);
    dryi_doctor_fix(d, "prlimit --pid %s --%s=%s:%s", who, option, to, to);
    dryi_doctor_undo(d, "prlimit --pid %s --%s=%s:%s", who, option, from, most);
}

/* Persist a limit; "*" means every user except root. */
static void
keep_limit(struct dry_doctor *d, const char *item, uint64_t wanted, const char *unit_item)
{
    char to[24];
    name_limit(wanted, to);
    dryi_doctor_persist(d,
                        "/etc/security/limits.d/90-drystone.conf:\n"
                        "* - %s %s\nroot - %s %s\n# of a service: %s=%s",
                        item, to, item, to, unit_item,
                        wanted == UNLIMITED ? "infinity" : to);
}

/* Check the limit of mlock(), which the pinned cache uses on machines without CUDA. */
static void
check_locked(struct dry_doctor *d)
{
    uint64_t soft, hard;
    if (!begin_limit(d, &check_memlock, "Max locked memory", true, &soft, &hard))
        return;
    bool needs_mlock = !d->machine.has_nvidia_driver && d->options.need_count;
    if (needs_mlock && soft != UNLIMITED) {
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "unlimited, where mlock is to hold the memory");
        raise_limit(d, "memlock", soft, hard, UNLIMITED);
        keep_limit(d, "memlock", UNLIMITED, "LimitMEMLOCK");
    }
    dryi_doctor_end(d);
}

static void
check_descriptors(struct dry_doctor *d)
{
    uint64_t soft, hard;
    if (!begin_limit(d, &check_files, "Max open files", false, &soft, &hard))
        return;
    if (soft < FILES_MIN && d->options.purpose == DRY_DOCTOR_TRAINING) {
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "%d or more", FILES_MIN);
        raise_limit(d, "nofile", soft, hard, FILES_MIN);
        keep_limit(d, "nofile", FILES_MIN, "LimitNOFILE");
    }
    dryi_doctor_end(d);
}

static void
check_address_space(struct dry_doctor *d)
{
    uint64_t soft, hard;
    if (!begin_limit(d, &check_addresses, "Max address space", true, &soft, &hard))
        return;
    if (soft != UNLIMITED) {
        dryi_doctor_judge(d, dryi_doctor_has_gpu_purpose(d) ? DRY_DOCTOR_WRONG
                                                            : DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "unlimited");
        raise_limit(d, "as", soft, hard, UNLIMITED);
        keep_limit(d, "as", UNLIMITED, "LimitAS");
    }
    dryi_doctor_end(d);
}

/* --- of the machine ----------------------------------------------------------------------- */

static void
check_mappings(struct dry_doctor *d)
{
    uint64_t now;
    if (!dryi_facts_read_number(&d->facts, &now, VM "max_map_count")) {
        dryi_doctor_not_known(d, &check_maps, VM "max_map_count");
        return;
    }
    dryi_doctor_begin(d, &check_maps);
    dryi_doctor_is(d, "%llu", (unsigned long long)now);
    if (now < MAPS_MIN) {
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "%d or more", MAPS_MIN);
        dryi_doctor_write_number(d, VM "max_map_count", now, MAPS_MIN);
    }
    dryi_doctor_end(d);
}

static void
check_promises(struct dry_doctor *d)
{
    uint64_t now, ratio;
    if (!dryi_facts_read_number(&d->facts, &now, VM "overcommit_memory")) {
        dryi_doctor_not_known(d, &check_overcommit, VM "overcommit_memory");
        return;
    }
    dryi_doctor_begin(d, &check_overcommit);
    dryi_doctor_is(d, "%llu", (unsigned long long)now);
    if (now == 2) {
        if (dryi_facts_read_number(&d->facts, &ratio, VM "overcommit_ratio"))
            dryi_doctor_is(d, "%llu %% of the memory", (unsigned long long)ratio);
        dryi_doctor_judge(d, dryi_doctor_has_gpu_purpose(d) ? DRY_DOCTOR_WRONG
                                                            : DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "0, the kernel's default");
        dryi_doctor_write_number(d, VM "overcommit_memory", now, 0);
    }
    dryi_doctor_end(d);
}

static void
check_swapping(struct dry_doctor *d)
{
    struct dryi_fact_file file;
    uint64_t now, total, free;
    char all[DRYI_BYTES_TEXT], used[DRYI_BYTES_TEXT];
    if (!dryi_facts_read_number(&d->facts, &now, VM "swappiness") ||
        !dryi_facts_read(&d->facts, &file, "/proc/meminfo") ||
        !dryi_fact_keyed(file.text, file.length, "SwapTotal", &total) ||
        !dryi_fact_keyed(file.text, file.length, "SwapFree", &free)) {
        dryi_doctor_not_known(d, &check_swap, VM "swappiness");
        return;
    }
    dryi_doctor_begin(d, &check_swap);
    if (total == 0) {
        dryi_doctor_is(d, "there is no swap");
        dryi_doctor_end(d);
        return;
    }
    uint64_t gone = total > free ? total - free : 0;
    dryi_doctor_is(d, "%llu, %s of %s used", (unsigned long long)now,
                   dryi_doctor_bytes(gone, used), dryi_doctor_bytes(total, all));
    if (now > 10) {
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "10 or less");
        dryi_doctor_write_number(d, VM "swappiness", now, 10);
    }
    dryi_doctor_end(d);
}

/* Return 1/1024 of the memory, within 64 MiB to 1 GiB. */
static uint64_t
reserve_for(uint64_t memory_bytes)
{
    uint64_t bytes = memory_bytes / 1024;
    bytes = bytes < 64 * DRYI_MIB ? 64 * DRYI_MIB : bytes;
    return bytes > DRYI_GIB ? DRYI_GIB : bytes;
}

static void
check_kept(struct dry_doctor *d)
{
    uint64_t now, memory = d->machine.memory_bytes;
    char text[DRYI_BYTES_TEXT];
    if (!dryi_facts_read_number(&d->facts, &now, VM "min_free_kbytes") || memory == 0 ||
        now > UINT64_MAX / DRYI_KIB) {
        dryi_doctor_not_known(d, &check_reserve, VM "min_free_kbytes");
        return;
    }
    uint64_t bytes = now * DRYI_KIB, wanted = reserve_for(memory);
    dryi_doctor_begin(d, &check_reserve);
    dryi_doctor_is(d, "%s", dryi_doctor_bytes(bytes, text));
    bool is_little = memory >= 64 * DRYI_GIB && bytes < 64 * DRYI_MIB;
    if (is_little || bytes > memory / 20) {
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "about %s, a thousandth",
                              dryi_doctor_bytes(wanted, text));
        dryi_doctor_write_number(d, VM "min_free_kbytes", now, wanted / DRYI_KIB);
    }
    dryi_doctor_end(d);
}

static void
judge_shm(struct dry_doctor *d, uint64_t bytes)
{
    uint64_t wanted = d->machine.memory_bytes / 2;
    char text[DRYI_BYTES_TEXT];
    if (bytes >= 8 * DRYI_GIB || (wanted && bytes >= wanted / 2))
        return;
    bool is_wrong = bytes < DRYI_GIB && d->options.purpose == DRY_DOCTOR_TRAINING;
    dryi_doctor_judge(d, is_wrong ? DRY_DOCTOR_WRONG : DRY_DOCTOR_COULD_BE_BETTER);
    wanted = wanted ? wanted : 8 * DRYI_GIB;
    dryi_doctor_should_be(d, "half of the memory (%s), or 8 GiB at least",
                          dryi_doctor_bytes(wanted, text));
    dryi_doctor_needs_root(d);
    dryi_doctor_fix(d, "mount -o remount,size=%lluM /dev/shm",
                    (unsigned long long)(wanted / DRYI_MIB));
    dryi_doctor_fix(d, "# of a container: docker run --shm-size=%lluM ..., or --ipc=host",
                    (unsigned long long)(wanted / DRYI_MIB));
    dryi_doctor_undo(d, "mount -o remount,size=%lluk /dev/shm",
                     (unsigned long long)(bytes / DRYI_KIB));
    dryi_doctor_persist(d,
                        "/etc/fstab:\n"
                        "tmpfs /dev/shm tmpfs nosuid,nodev,size=%lluM 0 0",
                        (unsigned long long)(wanted / DRYI_MIB));
}

static void
check_shared(struct dry_doctor *d)
{
    struct dryi_fact_file file;
    char text[DRYI_BYTES_TEXT];
    uint64_t bytes;
    if (!dryi_facts_read_lines(&d->facts, &file, "/proc/self/mountinfo", " /dev/shm ") ||
        !dryi_text_mount_size(file.text, file.length, "/dev/shm", &bytes)) {
        dryi_doctor_not_known(d, &check_shm, "its size in /proc/self/mountinfo");
        return;
    }
    dryi_doctor_begin(d, &check_shm);
    if (bytes == UNLIMITED) {
        dryi_doctor_is(d, "half of the memory, the kernel's default");
    } else {
        dryi_doctor_is(d, "%s", dryi_doctor_bytes(bytes, text));
        judge_shm(d, bytes);
    }
    dryi_doctor_end(d);
}

void
dryi_doctor_check_limits(struct dry_doctor *d)
{
    check_locked(d);
    check_descriptors(d);
    check_address_space(d);
    check_mappings(d);
    check_promises(d);
    check_swapping(d);
    check_kept(d);
    check_shared(d);
}
