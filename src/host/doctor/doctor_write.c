/* SPDX-License-Identifier: Apache-2.0 */

/* The complete list of files that a change may name, and of the words that it may write
   to each. */
#include <string.h>

#include <drystone/doctor.h>

#include "base/ascii.h"
#include "base/bits.h"

#define THP "/sys/kernel/mm/transparent_hugepage/"

enum form {
    FORM_NUMBER,
    FORM_ENABLED, /* always, madvise, inherit, never */
    FORM_DEFRAG,  /* always, defer, defer+madvise, madvise, never */
    FORM_SHMEM,   /* always, within_size, advise, never, deny, force */
};

/* '#' matches a number of at most 10 digits without leading zeros. */
static const struct {
    const char *path;
    enum form form;
} writable[] = {
    {"/sys/kernel/mm/hugepages/hugepages-#kB/nr_hugepages", FORM_NUMBER},
    {"/sys/devices/system/node/node#/hugepages/hugepages-#kB/nr_hugepages", FORM_NUMBER},
    {THP "enabled", FORM_ENABLED},
    {THP "defrag", FORM_DEFRAG},
    {THP "shmem_enabled", FORM_SHMEM},
    {THP "hugepages-#kB/enabled", FORM_ENABLED},
    {THP "khugepaged/defrag", FORM_NUMBER},
    {"/proc/sys/kernel/numa_balancing", FORM_NUMBER},
    {"/proc/sys/vm/compaction_proactiveness", FORM_NUMBER},
    {"/proc/sys/vm/extfrag_threshold", FORM_NUMBER},
    {"/proc/sys/vm/hugetlb_optimize_vmemmap", FORM_NUMBER},
    {"/proc/sys/vm/max_map_count", FORM_NUMBER},
    {"/proc/sys/vm/min_free_kbytes", FORM_NUMBER},
    {"/proc/sys/vm/overcommit_memory", FORM_NUMBER},
    {"/proc/sys/vm/swappiness", FORM_NUMBER},
    {"/proc/sys/vm/zone_reclaim_mode", FORM_NUMBER},
};

static const char *const enabled_values[] = {"always", "madvise", "inherit", "never",
                                             NULL};
static const char *const defrag_values[] = {"always",  "defer", "defer+madvise",
                                            "madvise", "never", NULL};
static const char *const shmem_values[] = {"always", "within_size", "advise", "never",
                                           "deny",   "force",       NULL};

static const char *const *
get_values(enum form form)
{
    switch (form) {
    case FORM_ENABLED:
        return enabled_values;
    case FORM_DEFRAG:
        return defrag_values;
    case FORM_SHMEM:
        return shmem_values;
    case FORM_NUMBER:
        break;
    }
    return NULL;
}

/* Return the number of digits, at most `max` and without a leading zero; 0: no match. */
static size_t
number_length(const char *text, size_t max)
{
    size_t n = 0;
    while (n <= max && dryi_is_digit(text[n]))
        n++;
    return n > max || (n > 1 && text[0] == '0') ? 0 : n;
}

static int
is_path(const char *path, const char *form)
{
    for (; *form; form++) {
        size_t n = *form == '#' ? number_length(path, 10) : (size_t)(*path == *form);
        if (n == 0)
            return 0;
        path += n;
    }
    return *path == '\0';
}

static bool
is_value(const char *value, enum form form)
{
    const char *const *values = get_values(form);
    if (!values) {
        size_t n = number_length(value, 18);
        return n > 0 && value[n] == '\0';
    }
    for (; *values; values++)
        if (strcmp(value, *values) == 0)
            return true;
    return false;
}

bool
dry_doctor_may_write(const char *path, const char *value)
{
    for (size_t i = 0; i < sizeof writable / sizeof *writable; i++)
        if (is_path(path, writable[i].path))
            return is_value(value, writable[i].form);
    return false;
}
