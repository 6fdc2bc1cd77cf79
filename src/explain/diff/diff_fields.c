/* SPDX-License-Identifier: Apache-2.0 */

/* The tables of <drystone/diff.h>. */

#include <drystone/diff.h>

/* clang-format off */
#define CELL(...) DRY_FIELD_OF(struct dry_diff_cell, __VA_ARGS__)
#define ROW(...) DRY_FIELD_OF(struct dry_diff_row, __VA_ARGS__)
#define FACT(...) DRY_FIELD_OF(struct dry_diff_fact, __VA_ARGS__)
#define ALWAYS DRY_KNOWN_ALWAYS, 0

static const struct dry_field cells[] = {
    CELL("subject", U32, NONE, subject, ALWAYS, false, "an index in subjects"),
    CELL("bytes", U64, BYTES, bytes, ALWAYS, true, "what it holds"),
    CELL("count", U32, COUNT, count, ALWAYS, false, "how many blocks"),
    CELL("line", U64, NONE, line, DRY_KNOWN_IF_ABOVE_0, offsetof(struct dry_diff_cell, line), false,
         "the line in its source; null: none"),
};
static const struct dry_field rows[] = {
    ROW("spread_bytes", U64, BYTES, spread, ALWAYS, true, "the most less the least"),
    ROW("min_bytes", U64, BYTES, min, ALWAYS, false, "the least", "min"),
    ROW("median_bytes", U64, BYTES, median, ALWAYS, false, "the median, the lower of two", "median"),
    ROW("max_bytes", U64, BYTES, max, ALWAYS, false, "the most", "max"),
    ROW("outlier", U32, NONE, outlier, ALWAYS, false, "the subject farthest from the median, an index in subjects"),
};
static const struct dry_field facts[] = {
    FACT("name", TEXT, NONE, name, ALWAYS, false, "which setting or count"),
    FACT("equal", BOOL, NONE, is_equal, ALWAYS, false, "whether it is equal, as far as it is known"),
    FACT("known", BOOL, NONE, is_known, ALWAYS, false, "whether it is known of all"),
};
/* clang-format on */

struct dry_fields
dry_diff_get_fields(enum dry_diff_part part)
{
    const struct dry_fields parts[] = {DRY_FIELDS_OF(cells), DRY_FIELDS_OF(rows),
                                       DRY_FIELDS_OF(facts)};
    return parts[part];
}
