/* SPDX-License-Identifier: Apache-2.0 */

/* What doctor says of a real kernel with two nodes, and that what it wants to write mends it. */
#include "qemu/guest.h"

#include <string.h>

#include <drystone/doctor.h>

static struct dry_doctor *
examine(uint64_t bytes, int32_t node)
{
    struct dry_doctor_options options;
    struct dry_doctor *doctor = NULL;
    struct dry_error err;
    dry_doctor_options_init(&options);
    options.needs_bytes = &bytes;
    options.need_count = 1;
    options.node = node;
    REQUIRE(dry_doctor_create(&options, &doctor, &err) == DRY_OK);
    return doctor;
}

static struct dry_doctor_finding
get(const struct dry_doctor *doctor, const char *id)
{
    struct dry_doctor_finding f = DRY_INIT(struct dry_doctor_finding);
    f.id = "";
    size_t count = dry_doctor_get_finding_count(doctor), i = 0;
    for (; i < count; i++) {
        dry_doctor_get_finding(doctor, i, &f);
        if (strcmp(f.id, id) == 0)
            break;
    }
    REQUIRE(i < count);
    return f;
}

void
doctor_counts_the_pages_of_a_node(void)
{
    struct dry_doctor_row row = DRY_INIT(struct dry_doctor_row);
    struct dry_doctor *doctor = examine(100 << 20, 1);
    REQUIRE(get(doctor, "pool-need").verdict == DRY_DOCTOR_GOOD);
    REQUIRE(get(doctor, "mempolicy").verdict == DRY_DOCTOR_GOOD);
    dry_doctor_destroy(doctor);
    doctor = examine(300 << 20, 1);
    REQUIRE(get(doctor, "pool-need").verdict == DRY_DOCTOR_WRONG);
    dry_doctor_get_row(doctor, 0, &row);
    REQUIRE(row.node == 1 && row.needed_count == 150 && row.missing_count == 150 - 128);
    dry_doctor_destroy(doctor);
}

void
doctor_mends_what_it_finds(void)
{
    static const char path[] = "/sys/kernel/mm/transparent_hugepage/enabled";
    struct dry_doctor_change c = DRY_INIT(struct dry_doctor_change);
    guest_write(path, "never");
    struct dry_doctor *doctor = examine(1, 0);
    struct dry_doctor_finding f = get(doctor, "thp-enabled");
    REQUIRE(f.verdict == DRY_DOCTOR_WRONG && f.change_count == 1);
    dry_doctor_get_change(doctor, f.first_change, &c);
    REQUIRE(strcmp(c.path, path) == 0 && strcmp(c.old_value, "never") == 0);
    guest_write(c.path, c.new_value);
    dry_doctor_destroy(doctor);
    doctor = examine(1, 0);
    REQUIRE(get(doctor, "thp-enabled").verdict == DRY_DOCTOR_GOOD);
    dry_doctor_destroy(doctor);
    guest_write(path, "madvise"); /* as the machine was booted */
}
