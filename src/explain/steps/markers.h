/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_EXPLAIN_MARKERS_H
#define DRYI_EXPLAIN_MARKERS_H

/*
 * Steps by what the program says. Annotations (record_function scopes) come first:
 *
 *     1  names that count        ProfilerStep#12, "step 12", iteration_12: begins at START
 *     2  one name, again and again, with a word for a step in it: "train_step"
 *     3  Optimizer.step#AdamW.step: a step ends at END
 *     4  Optimizer.zero_grad#..., then a data loader's __next__: begins at START
 *
 * then user_metadata of events that counts upwards: "step 12", "iteration=12", "12".
 * Two marks at different moments are the least.
 */

#include <stdbool.h>

#include <drystone/timeline.h>

struct dryi_markers {
    struct dry_memory memory;
    bool is_metadata;  /* else annotations */
    uint32_t name;     /* string of the trace: a specimen; DRY_NONE: no markers */
    uint32_t *moments; /* ascending, all different */
    size_t count, capacity;
    bool ends_last; /* the last of them is the end of a step, known by its END */
};

DRY_CHECK_RESULT enum dry_status dryi_markers_init(struct dryi_markers *markers,
                                                   const struct dry_timeline *timeline,
                                                   uint32_t until,
                                                   const struct dry_memory *memory,
                                                   struct dry_error *err);
void dryi_markers_finish(struct dryi_markers *markers);

/* The scope of an annotation, in moments: begin <= m < end. */
struct dryi_scope {
    uint32_t begin, end;
};

/*
 * The scopes of this device whose name holds a word, in the file's order; where they nest,
 * the outermost. One that does not end lasts for ever.
 */
struct dryi_scopes {
    struct dry_memory memory;
    struct dryi_scope *rows;
    size_t count, capacity;
};

DRY_CHECK_RESULT enum dry_status dryi_scopes_init(struct dryi_scopes *scopes,
                                                  const struct dry_timeline *timeline,
                                                  const char *word,
                                                  const struct dry_memory *memory,
                                                  struct dry_error *err);
void dryi_scopes_finish(struct dryi_scopes *scopes);

#endif
