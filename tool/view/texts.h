/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_TEXTS_H
#define TOOL_TEXTS_H

/*
 * Texts in a pack without duplicates: columns `text` and `text_from`. Texts are numbered
 * by first occurrence.
 *
 * A trace's string is looked up by its index in the trace. Other texts are looked up by
 * their bytes, in a hash table at most half full.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/trace.h>

#include "view/pack.h"

struct texts {
    const struct dry_trace *trace;
    struct pack *pack;
    unsigned text, from; /* indices of the columns */
    uint32_t *number_of; /* text of each string of the trace, or DRY_NONE */
    uint32_t *slots;     /* hash table: a text, or DRY_NONE */
    size_t slot_count, made_count;
    uint32_t count;
};

/* Add the columns to `pack`. False: memory ran out. Call texts_finish() in any case. */
bool texts_init(struct texts *t, const struct dry_trace *trace, struct pack *pack);
void texts_finish(struct texts *t);

/* Return the text of a trace's string; DRY_NONE for DRY_NONE. */
uint32_t texts_find_string(struct texts *t, uint32_t string);
/* Return the text with these bytes, adding one if necessary. If memory runs out, the pack
   fails (pack.h). */
uint32_t texts_find(struct texts *t, const char *bytes, size_t length);

#endif
