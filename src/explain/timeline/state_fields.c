/* SPDX-License-Identifier: Apache-2.0 */

/* The table of <drystone/state.h>. */

#include <drystone/state.h>

/* clang-format off */
#define SUM(key, member, is_worse, meaning)                                              \
    DRY_FIELD_OF(struct dry_state, key, U64, BYTES, member, DRY_KNOWN_ALWAYS, 0, is_worse, meaning)

static const struct dry_field sums[] = {
    SUM("reserved_bytes", reserved, false, "active, releasable and stranded"),
    SUM("active_bytes", active, false, "allocated and pending"),
    SUM("allocated_bytes", allocated, false, "in use by the program"),
    SUM("pending_bytes", pending, false, "freed, and waiting for a stream"),
    SUM("requested_bytes", requested, false, "what the program asked for, of the active bytes"),
    SUM("rounding_bytes", rounding, false, "active, but not requested"),
    SUM("releasable_bytes", releasable, false, "free, and the driver could have them back"),
    SUM("stranded_bytes", stranded, true, "free, in a segment that is partly used or in a private pool"),
    SUM("private_free_bytes", private_free, false, "of the stranded bytes: in private pools"),
};
/* clang-format on */

struct dry_fields
dry_state_get_fields(void)
{
    return DRY_FIELDS_OF(sums);
}
