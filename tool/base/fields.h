/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FIELDS_H
#define TOOL_FIELDS_H

/* Results as JSON and as rows of a text table, written and read by their tables of fields (<drystone/field.h>). An
   unknown value is null; nanoseconds are written as microseconds with a fraction. */

#include <jansson.h>

#include <drystone/field.h>

#include "base/json_in.h"
#include "base/table.h"

/* Define the function of a WORD by the one that names the values of its enum. */
#define FIELDS_WORD(word, name, type)                                                    \
    static const char *word(unsigned value)                                              \
    {                                                                                    \
        return name((type)value);                                                        \
    }

/* Add all fields of `object` to `made` and return `made`. If `made` is NULL or memory
   runs out, `made` is released and the result is NULL. */
json_t *fields_add_json(json_t *made, struct dry_fields fields, const void *object);
/*
 * Read all fields from `object` into `into`, which the caller has set to zero. Texts are copied
 * to *texts, which moves on behind them; their JSON's length bounds them. NULL: texts stay
 * unchanged, as do arrays of characters. A missing key is a failure. null leaves a member
 * unchanged, but a text becomes "" and the number of an event SIZE_MAX.
 */
void fields_read_json(struct json_in *in, const struct json_at *object,
                      struct dry_fields fields, void *into, char **texts);

/* Initialize a table with the columns `before`, those of the fields with a heading, and
   `after`; see table_init(). */
void fields_init_table(struct table *table, const char *before, struct dry_fields fields,
                       const char *after);
/* Add the cells of these columns; "-" stands for what is not known. */
void fields_add_cells(struct table *table, struct dry_fields fields, const void *object);

#endif
