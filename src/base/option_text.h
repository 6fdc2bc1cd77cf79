/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_OPTION_TEXT_H
#define DRYI_OPTION_TEXT_H

/* Options as text: NAME:VALUE, separated by commas outside brackets. Blanks around names and values
   are removed; empty options are skipped. Independent of the locale. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/status.h>

/* A slice of a text, not zero-terminated. */
struct dryi_option_word {
    const char *text;
    size_t length;
};

/* Return the length of the first option of a text: up to the first comma outside brackets.
   PyTorch's tables contain commas. */
size_t dryi_option_length(const char *text, size_t length);
bool dryi_option_is(struct dryi_option_word word, const char *text);
/* Accept True, true, 1, False, false and 0. For other text, return false
   and set *value to false. */
bool dryi_option_read_switch(struct dryi_option_word word, bool *value);
/* Read decimal digits and multiply by `unit`. Returns false, with *value unchanged, if there are
   other characters or the result exceeds `most`. */
bool dryi_option_read_number(struct dryi_option_word word, uint64_t unit, uint64_t most,
                             uint64_t *value);

enum dryi_option_answer {
    DRYI_OPTION_TAKEN,
    DRYI_OPTION_REFUSED, /* known name, invalid value */
    DRYI_OPTION_UNKNOWN,
};

struct dryi_option_reader {
    enum dryi_option_answer (*take)(void *self, struct dryi_option_word name,
                                    struct dryi_option_word value);
    void *self;
    const char *refused, *unknown; /* error texts after "option 'NAME:VALUE': " */
};

/* Pass each option to the reader in order. Returns ARGUMENT, with the option's offset, for the
   first option that has no colon or that the reader does not take. */
DRY_CHECK_RESULT enum dry_status dryi_option_text_read(
    const char *text, size_t length, const struct dryi_option_reader *reader,
    struct dry_error *err);

#endif
