/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PICKLE_WALK_H
#define DRYI_PICKLE_WALK_H

/*
 * The walk over a pickle: what stands on its stack, and what it turns into.
 *
 * A value is one word (pickle_value.h); the word of an open dict or list is the index of
 * an object. A dict that is filled is known by its keys, and the word becomes the thing
 * itself: an event that already lies in the columns, a frame's id, a block's row. Its
 * object is used again, so that memory follows what is open, not what was read.
 *
 * A word below 2^32 is at the same time its own entry in the memo, which is therefore four
 * bytes a memoised object; larger words go through a side table. When an object becomes
 * something, its memo entry becomes it too.
 *
 * W1  An object that has become something and is not shared is free; no word refers to it.
 * W2  An object is shared once it was fetched from the memo or stands there twice.
 * W3  A container that another one holds is sealed and never filled again. So a cycle
 *     cannot close: its last edge would have to start at a sealed container.
 * W4  Rows (events, blocks, segments, annotations) are used once: by the list they are in.
 */

#include "base/map.h"
#include "trace/model/trace.h"
#include "trace/pickle/pickle_value.h"

/* A dict, list or tuple. Lists of rows that follow each other are only counted. */
struct dryi_object {
    uint64_t *items; /* of a dict: key, value, key, value ... */
    size_t capacity, count;
    size_t first_row; /* of a list of rows */
    uint64_t settled; /* what a shared one became; 0: nothing yet */
    uint32_t memo;    /* its place there, DRY_NONE if none */
    uint32_t next_free;
    enum dryi_value_kind kind;     /* DICT, LIST or TUPLE */
    enum dryi_value_kind row_kind; /* EVENT ... in a list of rows, else NONE */
    uint32_t depth;                /* of what it holds */
    bool is_shared, is_sealed;
};

/* Blocks of 2023 hold a list of these instead of frames. */
struct dryi_pickle_history {
    uint64_t real_size; /* as requested */
    uint32_t stack;
};

/* A container that is being written out, and the next of its items. */
struct dryi_level {
    uint64_t container;
    size_t next;
    size_t first; /* byte of `extra` where it begins */
};

struct dryi_mark {
    size_t value_count; /* the stack's height under the mark */
    size_t wide_count;
};

/* A list of frames, by the bytes that fetch them: pickle_run.h. */
struct dryi_pickle_run {
    uint32_t from, length; /* in dryi_pickle_runs.bytes; the APPENDS included */
    uint32_t stack;
    uint32_t next; /* the run that came behind it, DRY_NONE if none did */
    uint32_t era;  /* it holds only in this one */
};

struct dryi_pickle_runs {
    struct dryi_pickle_run *runs, *last;
    unsigned char *bytes;
    size_t byte_count, byte_capacity;
    uint32_t era, turn;
};

/* Rows that stand where they belong; at the end that must be all of them. */
struct dryi_covered {
    size_t events, segments, blocks, annotations;
};

struct dryi_pickle_walk {
    struct dryi_input *in;
    struct dry_trace_builder *builder;
    struct dry_trace *trace;
    struct dry_memory memory;
    struct dry_error *err;
    uint64_t op_offset; /* of the opcode at work, for error texts */

    uint64_t *values;
    size_t value_count, value_capacity;
    size_t floor; /* values below it lie under a mark */
    struct dryi_mark *marks;
    size_t mark_count, mark_capacity;
    size_t depth_max, string_bytes_max;

    struct dryi_map escaped; /* strings that were no UTF-8 -> as they are kept */
    bool has_bytes;          /* opaque bytes lie among the strings */
    uint32_t text_id; /* the last string that was written in an event, or DRY_NONE */

    uint32_t *memo;
    size_t memo_count, memo_capacity;
    uint64_t *far_words;
    size_t far_count, far_capacity;

    struct dryi_object *objects;
    size_t object_count, object_capacity;
    uint32_t first_free; /* chained by next_free, DRY_NONE ends it */

    uint64_t *wides; /* given back when the dict they are in is done */
    size_t wide_count, wide_capacity;
    size_t wides_kept; /* those below are in the memo or an object */

    struct dryi_pickle_history *histories;
    size_t history_count, history_capacity;
    uint32_t *frame_ids; /* of the stack at work */
    size_t frame_id_capacity;
    struct dryi_pickle_runs runs;

    char *extra; /* the unknown keys of the dict at work, as opcodes */
    size_t extra_count, extra_capacity;
    uint64_t extra_total;
    struct dryi_level *levels;
    size_t level_capacity;

    struct dry_lane lane; /* the last one met, and its id */
    uint32_t lane_id;
    struct dry_note note;
    uint32_t note_id;
    struct dryi_covered covered;
};

#endif
