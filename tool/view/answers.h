/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_ANSWERS_H
#define TOOL_ANSWERS_H

/* One function a question; view.c tells which is asked. False: no memory. */

#include "base/child.h"
#include "view/view.h"

bool answer_about(const struct view *view, struct answer *answer);
bool answer_stacks(const struct view *view, const struct view_file *file,
                   struct answer *answer);
/* Requires level < levels, and index < 2^level. */
bool answer_tile(struct view_device *device, uint32_t level, uint32_t index,
                 struct answer *answer);
/* These two require a moment of the device. */
bool answer_map(struct view_device *device, uint32_t moment, struct answer *answer);
bool answer_owners(const struct view_device *device, uint32_t moment,
                   struct answer *answer);
/* A page beyond the last one is empty. */
bool answer_events(const struct view_device *device, uint32_t page,
                   struct answer *answer);
/* The curve under the settings `conf`, which may be anything. False: it cannot be replayed. */
bool answer_reserved(const struct view_device *device, const char *conf,
                     struct answer *answer);
/*
 * Run a command on a file in a child, with --json or for its text; what it prints is *answer.
 * False: it ended badly, too. Requires that what was printed before is flushed.
 */
bool answer_command(const struct command *command, const char *path, bool is_json,
                    struct answer *answer);
/* End a child that is over, and take what it printed for an answer. False: it ended badly. */
bool answer_take(struct child *child, struct answer *answer);

/* The first moment of a tile; that of the next one is its end. */
uint32_t tile_begin(const struct view_device *device, uint32_t level, uint32_t index);

/*
 * The table alloc_… of a pack, in which each allocation has a row when it is first spoken of.
 */
struct alloc_rows {
    struct pack *pack;
    struct view_device *device;
    unsigned first; /* column */
    uint32_t count;
};
void alloc_rows_begin(struct alloc_rows *rows, struct pack *pack,
                      struct view_device *device);
/* Return the row of the timeline's allocation `number`. */
uint32_t alloc_rows_find(struct alloc_rows *rows, uint32_t number);
/* Forget the rows, so that the next pack begins anew. */
void alloc_rows_end(struct alloc_rows *rows);

/* Make an answer of a JSON text, and release `root`. False: no memory. */
struct json_t;
bool answer_json(struct json_t *root, struct answer *answer);

#endif
