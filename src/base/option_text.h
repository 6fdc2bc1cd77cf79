/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_OPTION_TEXT_H
#define DRYI_OPTION_TEXT_H

/*
 * Options as text: NAME:VALUE, separated by commas outside brackets. Blanks around a name or a value
 * are dropped, and empty options are passed over. Results are the same in every locale.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/status.h>

/* A part of a text, without a zero at its end. */
struct dryi_option_word {
    const char *text;
    size_t length;
};

bool dryi_option_is(struct dryi_option_word word, const char *text);
/* Read True, true, 1, False, false or 0. */
bool dryi_option_read_switch(struct dryi_option_word word, bool *value);
/* Read digits alone, times `unit`, at most `most`. Nothing is written on failure. */
bool dryi_option_read_number(struct dryi_option_word word, uint64_t unit, uint64_t most,
                             uint64_t *value);

enum dryi_option_answer {
    DRYI_OPTION_TAKEN,
    DRYI_OPTION_REFUSED, /* the name is known, and cannot have the value */
    DRYI_OPTION_UNKNOWN,
};

struct dryi_option_reader {
    enum dryi_option_answer (*take)(void *self, struct dryi_option_word name,
                                    struct dryi_option_word value);
    void *self;
    const char *refused, *unknown; /* what an error says behind "option 'NAME:VALUE': " */
};

/*
 * Hand the options to the reader, one after the other. ARGUMENT, with the offset of the option: the
 * reader did not take it, or it has no colon.
 */
DRY_CHECK_RESULT enum dry_status dryi_option_text_read(
    const char *text, size_t length, const struct dryi_option_reader *reader,
    struct dry_error *err);

#endif
