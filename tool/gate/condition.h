/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_CONDITION_H
#define TOOL_CONDITION_H

/*
 * A condition on a figure of a command, as a pipeline writes it:
 *
 *     reserved_peak > 70GiB            retries != 0
 *     reserved_peak > baseline + 2%    peak >= baseline + 512MiB
 *
 * A figure is a number with a unit or a truth (0 or 1) in the command's tables of fields, by its
 * key; `_bytes` at the key's end may be left out. An event's number is none. A baseline is the same figure of an earlier run. The text of a
 * condition is hostile input.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/field.h>

/* The tables of a command, and where a figure is in them. */
#define FIGURES_TABLES_MAX 3
struct figures {
    struct dry_fields tables[FIGURES_TABLES_MAX];
    size_t table_count;
};
struct figure {
    size_t table;
    const struct dry_field *field;
};
#define FIGURE_UNKNOWN UINT64_MAX
#define FIGURE_NAME_BYTES 64

/* Step to the next figure; begin with {0}. False: there is none. */
bool figures_next(const struct figures *figures, struct figure *at);
/* The key without `_bytes`. Returns `name`. */
const char *figure_write_name(const struct figure *figure, char name[FIGURE_NAME_BYTES]);
/* The value in an object of the figure's table, microseconds for times; FIGURE_UNKNOWN. */
uint64_t figure_get(const struct figure *figure, const void *object);

enum relation {
    RELATION_ABOVE,
    RELATION_ABOVE_OR_EQUAL,
    RELATION_BELOW,
    RELATION_BELOW_OR_EQUAL,
    RELATION_EQUAL,
    RELATION_UNEQUAL,
};

struct condition {
    struct figure figure;
    enum relation relation;
    bool is_of_baseline;         /* the bound is relative to the baseline */
    bool is_less;                /* subtract from the baseline, not add */
    uint64_t bytes;              /* bytes or count: the bound, or the distance */
    uint32_t percent_hundredths; /* distance in 1/100 % of the baseline */
};

#define CONDITION_WHY_BYTES 1000

/*
 * Read `text` as a condition on one of the figures. False: it is none, and `why` says what is
 * wrong and what was expected.
 */
bool condition_parse(const char *text, const struct figures *figures,
                     struct condition *condition, char why[CONDITION_WHY_BYTES]);

/* Return the bound. Sums saturate at UINT64_MAX, differences at 0. */
uint64_t condition_bound(const struct condition *condition, uint64_t baseline);

/* Return true if the condition holds for `value`. Requires that both are known. */
bool condition_holds(const struct condition *condition, uint64_t value,
                     uint64_t baseline);

#endif
