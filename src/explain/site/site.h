/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_SITE_H
#define DRYI_SITE_H

/*
 * The site of a request: for each stack of a trace its owner, the outermost frame of the owner's
 * kind, and the operation. Computed once per trace, then read only.
 *
 * The owner is the innermost frame of the best kind in the stack (enum dryi_code): the user's code,
 * else a package's, else compiled code, PyTorch's Python files, Python's library. In a stack
 * without Python it is the node of the backward graph, else other C++ code. Without these, the
 * operation or the first frame with a name is the owner.
 *
 * In the backward pass, PyTorch may know for which line of the forward pass it allocates. Then only
 * the frames of the forward pass (DRY_FRAME_FORWARD) can own, as "backward of models.py:174".
 *
 * The operation (`what`) is the outermost one below all Python frames: the one that the innermost
 * Python line called. PyTorch lists inlined Python frames after those of the thread's C++ bottom,
 * so only C++ frames before the first Python frame count. Without an operation, `what` is the
 * innermost Python function below the owner that is no wrapper.
 *
 * Cost: O(frames + lengths of the stacks) time; 24 bytes per frame, 16 per stack, 48 per file.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/trace.h>

#include "base/intern.h"
#include "explain/site/label.h"
#include "explain/site/path.h"

struct dryi_frame_site {
    uint32_t path;                    /* index in `paths` */
    uint32_t place;                   /* equal for frames with the
                                         same file, line and name */
    uint32_t function;                /* equal for frames with the same file and name */
    uint32_t name_begin, name_length; /* range of the frame's name to show */
    uint32_t what;                    /* the operation that the frame
                                         names, in `words`; DRY_NONE */
    uint8_t code;                     /* enum dryi_code */
    uint8_t operation;                /* enum dryi_operation */
};

struct dryi_site {
    uint32_t owner;     /* frame; DRY_NONE if the stack is empty */
    uint32_t outermost; /* the outermost frame with the owner's `code` */
    uint32_t what;      /* index in `words`; DRY_NONE */
};

struct dryi_sites {
    struct dry_memory memory;
    const struct dry_trace *trace;
    const struct dry_trace_view *view;
    struct dryi_path *paths;
    uint32_t path_count;
    size_t path_capacity;
    struct dryi_frame_site *frames;
    struct dryi_site *stacks;
    struct dryi_intern words;
};

/* Compute all sites. The caller finishes `sites` even after an error. The trace must
   outlive them. Errors: MEMORY. */
enum dry_status dryi_sites_init(struct dryi_sites *sites, const struct dry_trace *trace,
                                const struct dry_memory *memory, struct dry_error *err);
void dryi_sites_finish(struct dryi_sites *sites);

/* Return the text of an operation, as "aten::relu"; "" for DRY_NONE. */
const char *dryi_sites_what(const struct dryi_sites *sites, uint32_t what,
                            size_t *length);

/* Append "models.py:174 update_nodes", "models.py update_nodes" or "models.py", after "backward of "
   if the frame is of the forward pass. */
void dryi_sites_write_line(const struct dryi_sites *sites, uint32_t frame,
                           struct dryi_label *label);
void dryi_sites_write_function(const struct dryi_sites *sites, uint32_t frame,
                               struct dryi_label *label);
void dryi_sites_write_module(const struct dryi_sites *sites, uint32_t frame,
                             struct dryi_label *label);
/* Append only the function's name. */
void dryi_sites_write_name(const struct dryi_sites *sites, uint32_t frame,
                           struct dryi_label *label);

/* Write "models.py:174 update_nodes (aten::relu)", truncated to `capacity` with its zero.
   Returns the length written. */
size_t dryi_sites_name_stack(const struct dryi_sites *sites, uint32_t stack, char *text,
                             size_t capacity);

/* Append the user's frames, innermost first, joined by " < "; the owner if there are none. */
void dryi_sites_write_stack(const struct dryi_sites *sites, uint32_t stack,
                            struct dryi_label *label);

#endif
