/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_ANSWERS_H
#define TOOL_ANSWERS_H

/* One function per question; view.c maps keys to them. False: memory ran out. */

#include "base/child.h"
#include "view/view.h"

bool answer_about(const struct view *view, struct answer *answer);
bool answer_stacks(const struct view *view, const struct view_file *file,
                   struct answer *answer);
/* Requires level < levels, and index < 2^level. */
bool answer_tile(struct view_device *device, uint32_t level, uint32_t index,
                 struct answer *answer);
/* answer_map() and answer_owners() require a moment of the device. */
bool answer_map(struct view_device *device, uint32_t moment, struct answer *answer);
bool answer_owners(const struct view_device *device, uint32_t moment,
                   struct answer *answer);
/* A page beyond the last one is an empty answer. */
bool answer_events(const struct view_device *device, uint32_t page,
                   struct answer *answer);
/* Answer with the curve under the settings `conf`, which is untrusted. False: it cannot
   be replayed. */
bool answer_reserved(const struct view_device *device, const char *conf,
                     struct answer *answer);
/* Run a command on a file in a child process, with --json or as text; *answer is the
   output. False: the command failed. Requires that the parent's streams are flushed. */
bool answer_command(const struct command *command, const char *path, bool is_json,
                    struct answer *answer);
/* Take the output of a child that is over, and close the child. Returns false if the
   child failed. */
bool answer_take(struct child *child, struct answer *answer);

/* Return the first moment of a tile, which is the end of the previous one. */
uint32_t tile_begin(const struct view_device *device, uint32_t level, uint32_t index);

/* The table alloc_... of a pack. An allocation gets a row when it is first referenced. */
struct alloc_rows {
    struct pack *pack;
    struct view_device *device;
    unsigned first; /* index of the table's first column */
    uint32_t count;
};
void alloc_rows_begin(struct alloc_rows *rows, struct pack *pack,
                      struct view_device *device);
/* Return the row of allocation `number`, adding one if necessary. */
uint32_t alloc_rows_find(struct alloc_rows *rows, uint32_t number);
/* Reset device->row_of for the next pack. */
void alloc_rows_end(struct alloc_rows *rows);

/* Make an answer from JSON, and release `root`. False: memory ran out. */
struct json_t;
bool answer_json(struct json_t *root, struct answer *answer);

#endif
