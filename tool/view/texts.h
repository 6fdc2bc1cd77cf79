/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_TEXTS_H
#define TOOL_TEXTS_H

/*
 * Texts in a pack, each once: the columns `text` and `text_from`. A text has the number of its
 * first occurrence.
 *
 * A string of a trace is found by its number there; a text that was made is found by its bytes, in
 * a table that is twice as large as it is full.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/trace.h>

#include "view/pack.h"

struct texts {
    const struct dry_trace *trace;
    struct pack *pack;
    unsigned text, from; /* columns */
    uint32_t *number_of; /* by string of the trace: the text, or DRY_NONE */
    uint32_t *slots;     /* by hash: a text that was made, or DRY_NONE */
    size_t slot_count, made_count;
    uint32_t count;
};

/* Add the two columns to `pack`. False: no memory. texts_finish() is due in any case. */
bool texts_init(struct texts *t, const struct dry_trace *trace, struct pack *pack);
void texts_finish(struct texts *t);

/* Return the number of a string of the trace; DRY_NONE for DRY_NONE. */
uint32_t texts_find_string(struct texts *t, uint32_t string);
/* Return the number of these bytes. A want of memory is the pack's, pack.h. */
uint32_t texts_find(struct texts *t, const char *bytes, size_t length);

#endif
