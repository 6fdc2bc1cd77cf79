/* SPDX-License-Identifier: Apache-2.0 */
#include <drystone/cause.h>

#include <stddef.h>

const char *
dry_cause_name(enum dry_cause cause)
{
    static const char *const names[DRY_CAUSE_COUNT] = {
        "none",         "capacity", "fragmentation", "stranded",  "pending",  "limit",
        "other-memory", "leak",     "spike",         "imbalance", "overflow", "unknown",
    };
    size_t index = (size_t)cause;
    return index < DRY_CAUSE_COUNT ? names[index] : "unknown";
}
