/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Functions shared by several topics: sizes and shares as text, and properties of options
 * and machine. This file calls no other of the doctor. Calls are at most linear in the
 * options.
 */
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "host/doctor/doctor_inside.h"

const char *
dryi_doctor_bytes(uint64_t bytes, char text[DRYI_BYTES_TEXT])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    unsigned shift = 0;
    while (shift < 60 && bytes >> shift >= 1024)
        shift += 10;
    uint64_t whole = bytes >> shift, rest = bytes - (whole << shift);
    /* hundredths of 2^shift; the product is below 2^60 * 100, so it fits */
    uint64_t hundredths =
        shift ? (rest >> (shift > 10 ? shift - 10 : 0)) * 100 / 1024 : 0;
    if (hundredths)
        snprintf(text, DRYI_BYTES_TEXT, "%llu.%02llu %s", (unsigned long long)whole,
                 (unsigned long long)hundredths, units[shift / 10]);
    else
        snprintf(text, DRYI_BYTES_TEXT, "%llu %s", (unsigned long long)whole,
                 units[shift / 10]);
    return text;
}

const char *
dryi_doctor_page(uint64_t page_bytes, char text[DRYI_BYTES_TEXT])
{
    unsigned shift = page_bytes >= DRYI_GIB ? 30 : page_bytes >= DRYI_MIB ? 20 : 10;
    snprintf(text, DRYI_BYTES_TEXT, "%llu%c", (unsigned long long)(page_bytes >> shift),
             "KMG"[shift / 10 - 1]);
    return text;
}

uint64_t
dryi_doctor_percent(uint64_t part, uint64_t whole)
{
    if (whole == 0)
        return 0;
    if (part <= UINT64_MAX / 100)
        return part * 100 / whole;
    return whole >= 100 ? part / (whole / 100) : UINT64_MAX;
}

size_t
dryi_doctor_count_nodes(const struct dry_pages_nodes *nodes)
{
    size_t count = 0;
    for (size_t i = 0; i < DRY_PAGES_NODES_MAX / 64; i++)
        count += (size_t)__builtin_popcountll(nodes->words[i]);
    return count;
}

bool
dryi_doctor_knows_variables(const struct dry_doctor *d)
{
    return d->options.variables != NULL;
}

const char *
dryi_doctor_variable(const struct dry_doctor *d, const char *name)
{
    const char *value = NULL;
    for (size_t i = 0; i < d->options.variable_count; i++)
        if (strcmp(d->options.variables[i].name, name) == 0)
            value = d->options.variables[i].value;
    return value;
}

bool
dryi_doctor_kernel_is_before(const struct dry_doctor *d, uint32_t major, uint32_t minor)
{
    const struct dry_doctor_machine *m = &d->machine;
    return m->kernel_major && (m->kernel_major < major ||
                               (m->kernel_major == major && m->kernel_minor < minor));
}

uint64_t
dryi_doctor_needed_pages(const struct dry_doctor *d, uint64_t page_bytes)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < d->options.need_count; i++) {
        uint64_t bytes = d->options.needs_bytes[i];
        uint64_t pages = bytes / page_bytes + (bytes % page_bytes != 0);
        sum = dryi_add_saturating(sum, pages);
    }
    return sum;
}

bool
dryi_doctor_has_gpu_purpose(const struct dry_doctor *d)
{
    return d->options.purpose != DRY_DOCTOR_CPU;
}
