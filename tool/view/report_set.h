/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_REPORT_SET_H
#define TOOL_REPORT_SET_H

/*
 * The answers in a report, added by importance until the byte budget is spent:
 *
 *     1. the verdict, the facts and the steps of each file; the whole timeline, the map and
 *        the owners of each device at its failure, its peak and its end; curves under the
 *        settings that `sweep` found best
 *     2. every level of tiles around these moments, then the other tiles, level by level
 *     3. pages of events, those around these moments first
 *
 * Sentences about omissions go into the answer `about`.
 */

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "base/progress.h"
#include "view/html.h"
#include "view/view.h"

#define REPORT_CURVES_MAX 6 /* per file, under other settings */
#define REPORT_SENTENCES_MAX 4
#define REPORT_SENTENCE_BYTES 128

struct report_set {
    struct view *view;
    struct progress *progress;
    size_t budget, used; /* bytes of texts and keys */
    struct html_answers answers;
    json_t *recommended; /* JSON of `sweep` for the current file; NULL: none */
    bool is_what_if;     /* include the replays of `sweep` */
    bool has_recordings; /* the page can make all other answers: 2 and 3 are left to it */
    bool has_failed;     /* memory ran out */
    size_t tiles_wanted, tiles_kept, events_wanted, events_kept, maps_wanted, maps_kept;
    char sentences[REPORT_SENTENCES_MAX][REPORT_SENTENCE_BYTES];
    const char *sentence_list[REPORT_SENTENCES_MAX];
    size_t sentence_count;
};

/* Choose the answers. False: memory ran out. Call report_set_finish() in any case. */
bool report_set_fill(struct report_set *set);
void report_set_finish(struct report_set *set);

#endif
