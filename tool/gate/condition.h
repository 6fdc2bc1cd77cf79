/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_CONDITION_H
#define TOOL_CONDITION_H

/*
 * A condition on one of a command's figures, as a pipeline writes it:
 *
 *     reserved_peak > 70GiB            retries != 0
 *     reserved_peak > baseline + 2%    peak >= baseline + 512MiB
 *
 * A figure is a number that a command can name. A baseline is the same figure of an earlier
 * run. The text of a condition is hostile input.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum figure_unit { FIGURE_BYTES, FIGURE_COUNT };

/* A figure that a command knows. */
struct figure_kind {
    const char *name;
    enum figure_unit unit;
    bool is_watched; /* more of it than in a baseline is worse */
};
#define FIGURE_UNKNOWN UINT64_MAX

enum relation {
    RELATION_ABOVE,
    RELATION_ABOVE_OR_EQUAL,
    RELATION_BELOW,
    RELATION_BELOW_OR_EQUAL,
    RELATION_EQUAL,
    RELATION_UNEQUAL,
};

struct condition {
    size_t figure; /* an index of the kinds */
    enum relation relation;
    bool is_of_baseline; /* the bound is the baseline and what follows */
    bool is_less;        /* that is taken away, not added */
    uint64_t bytes;      /* bytes or a count: the bound, or what is added to a baseline */
    uint32_t percent_hundredths; /* of the baseline; likewise added */
};

#define CONDITION_WHY_BYTES 400

/*
 * Read `text` as a condition on one of the `count` kinds. False: it is none, and `why` says
 * what is wrong and what was expected.
 */
bool condition_parse(const char *text, const struct figure_kind *kinds, size_t count,
                     struct condition *condition, char why[CONDITION_WHY_BYTES]);

/* Return the bound; sums beyond 64 bits stay at the largest, differences at 0. */
uint64_t condition_bound(const struct condition *condition, uint64_t baseline);

/* Tell whether the condition holds for `value`. */
bool condition_holds(const struct condition *condition, uint64_t value,
                     uint64_t baseline);

#endif
