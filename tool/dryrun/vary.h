/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_VARY_H
#define TOOL_VARY_H

/*
 * Words of a command with placeholders: "--batch {BATCH}".
 *
 *     --vary BATCH=8,16 --vary LENGTH=512,1024     four combinations
 *
 *     struct vary vary;
 *     code = vary_read(&vary, "dry-run", specs, arguments);
 *     for (size_t i = 0; i < vary.combination_count; i++) {
 *         struct option_list filled;
 *         if (vary_fill(&vary, i, arguments, &filled)) ...
 *         vary_free(&filled);
 *     }
 *     vary_finish(&vary);
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/options.h"

#define VARY_NAMES_MAX 8
#define VARY_COMBINATIONS_MAX 1000
#define VARY_LABEL_BYTES 160

struct vary_name {
    char *name;    /* owned; `values` point into this buffer */
    char **values; /* owned array */
    size_t count;
};

struct vary {
    struct vary_name names[VARY_NAMES_MAX];
    size_t name_count;
    size_t combination_count; /* product of the counts; 1 without names */
};

/*
 * Read "NAME=VALUE,VALUE" from each spec. Returns EXIT_USAGE after a message if a spec
 * has another form, or a name occurs twice or in no word; EXIT_INPUT, if a value is not UTF-8.
 * Call vary_finish() in any case.
 */
int vary_read(struct vary *vary, const char *command, const struct option_list *specs,
              const struct option_list *arguments);
void vary_finish(struct vary *vary);

/* Return the value of a name in combination `index`; the last name varies fastest. */
const char *vary_value(const struct vary *vary, size_t index, size_t name);
/* Return the combination of every name's value number `row`. All names must have so many. */
size_t vary_together(const struct vary *vary, size_t row);
/* Write a combination's label: "BATCH=8 LENGTH=512". */
void vary_label(const struct vary *vary, size_t index, char label[VARY_LABEL_BYTES]);

/* Copy the words, with placeholders replaced by the combination's values. False: memory
   ran out. The caller frees the copy with vary_free(). */
bool vary_fill(const struct vary *vary, size_t index, const struct option_list *arguments,
               struct option_list *filled);
/* Fill one placeholder, like vary_fill(); an empty name: copy the words. */
bool vary_fill_one(const char *name, const char *value,
                   const struct option_list *arguments, struct option_list *filled);
void vary_free(struct option_list *filled);
/* Tell whether a word contains the placeholder "{name}". */
bool vary_has_place(const struct option_list *arguments, const char *name);
/* Tell whether `length` bytes of `text` are a name: letters, digits and '_', not starting
   with a digit. */
bool vary_is_name(const char *text, size_t length);

#endif
