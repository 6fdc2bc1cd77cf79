/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_SITE_H
#define DRYI_SITE_H

/*
 * The site of a request: for each stack of a trace its owner, the outermost frame of the
 * same kind, and the operation. Made once for a trace, then only read.
 *
 * The owner is the innermost frame of the best kind there is (enum dryi_code): the user's
 * own code, else a package's, else what a compiler made, PyTorch's Python files, Python's
 * library. The owner of a stack without Python is the node of the backward graph, else
 * C++ of somebody else, else the operation, else the first frame with a name.
 *
 * The operation ("what") is the outermost one below all Python frames: what the innermost
 * line of Python called. PyTorch lists inlined Python frames behind those of the thread's
 * C++ bottom, so only the C++ frames before the first Python frame are looked at. Without
 * one it is the innermost Python function below the owner that is no wrapper.
 *
 * Cost: O(frames + lengths of the stacks); 24 bytes a frame, 16 a stack, 48 a file.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/trace.h>

#include "base/intern.h"
#include "explain/site/label.h"
#include "explain/site/path.h"

struct dryi_frame_site {
    uint32_t path;                    /* in the paths */
    uint32_t place;                   /* equal for frames of equal file, line and name */
    uint32_t function;                /* equal for frames of equal file and name */
    uint32_t name_begin, name_length; /* in the frame's name: what to show of it */
    uint32_t what;                    /* the operation it names, in the words; DRY_NONE */
    uint8_t code;                     /* enum dryi_code */
    uint8_t operation;                /* enum dryi_operation */
};

struct dryi_site {
    uint32_t owner;     /* frame; DRY_NONE for a stack without frames */
    uint32_t outermost; /* the outermost frame of the owner's kind */
    uint32_t what;      /* in the words; DRY_NONE */
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

/* MEMORY. `sites` is the caller's to finish in any case. The trace must outlive it. */
enum dry_status dryi_sites_init(struct dryi_sites *sites, const struct dry_trace *trace,
                                const struct dry_memory *memory, struct dry_error *err);
void dryi_sites_finish(struct dryi_sites *sites);

/* "aten::relu"; "" and 0 for DRY_NONE. */
const char *dryi_sites_what(const struct dryi_sites *sites, uint32_t what,
                            size_t *length);

/* Append "models.py:174 update_nodes", "models.py update_nodes", "models.py". */
void dryi_sites_write_line(const struct dryi_sites *sites, uint32_t frame,
                           struct dryi_label *label);
void dryi_sites_write_function(const struct dryi_sites *sites, uint32_t frame,
                               struct dryi_label *label);
void dryi_sites_write_module(const struct dryi_sites *sites, uint32_t frame,
                             struct dryi_label *label);
/* Append the name of its function alone. */
void dryi_sites_write_name(const struct dryi_sites *sites, uint32_t frame,
                           struct dryi_label *label);

/* "models.py:174 update_nodes (aten::relu)", cut to `capacity` with its zero; its length. */
size_t dryi_sites_name_stack(const struct dryi_sites *sites, uint32_t stack, char *text,
                             size_t capacity);

/* Append the user's frames, innermost first, joined by " < "; without any, the owner. */
void dryi_sites_write_stack(const struct dryi_sites *sites, uint32_t stack,
                            struct dryi_label *label);

#endif
