/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_EXPLAIN_MARKERS_H
#define DRYI_EXPLAIN_MARKERS_H

/*
 * Find steps by the program's own marks. Annotations (record_function scopes) come first:
 *
 *     1  names that count        ProfilerStep#12, "step 12", iteration_12: begins at START
 *     2  one name, again and again, with a word for a step in it: "train_step"
 *     3  Optimizer.step#AdamW.step: a step ends at END
 *     4  Optimizer.zero_grad#..., then a data loader's __next__: begins at START
 *
 * then user_metadata of events with ascending numbers: "step 12", "iteration=12", "12". Steps need
 * marks at two or more different moments.
 */

#include <stdbool.h>

#include <drystone/timeline.h>

struct dryi_markers {
    struct dry_memory memory;
    bool is_metadata;  /* marks are user_metadata; false: annotations */
    uint32_t name;     /* an example, as string of the trace; DRY_NONE: no marks found */
    uint32_t *moments; /* ascending, no duplicates */
    size_t count, capacity;
    bool ends_last; /* the last moment is the END mark of the last step */
};

DRY_CHECK_RESULT enum dry_status dryi_markers_init(struct dryi_markers *markers,
                                                   const struct dry_timeline *timeline,
                                                   uint32_t until,
                                                   const struct dry_memory *memory,
                                                   struct dry_error *err);
void dryi_markers_finish(struct dryi_markers *markers);

/* The moments m of an annotation's scope: begin <= m < end. */
struct dryi_scope {
    uint32_t begin, end;
};

/* The scopes of this device whose name contains a word, in file order. Only the outermost of nested
   scopes are kept. A scope without an end extends to the end of the trace. */
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
