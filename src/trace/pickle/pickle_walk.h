/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PICKLE_WALK_H
#define DRYI_PICKLE_WALK_H

/*
 * The walk over a pickle: its stack, its memo, and what values become.
 *
 * A value is a 64-bit integer (pickle_value.h); an open dict or list is the index of an
 * object. The keys of a filled dict tell its role, and its value becomes the record: an
 * event that is already in the columns, a frame's id, a block's row. The object is
 * reused, so memory follows what is open, not what was read.
 *
 * A value below 2^32 is also its own memo entry, so the memo has four bytes per entry.
 * Larger values go through a side table. When an object becomes a record, its memo entry
 * becomes that, too.
 *
 * W1  An object that has become something and is not shared is free; no value names it.
 * W2  An object is shared once it was fetched from the memo or is in the memo twice.
 * W3  A container that another one holds is sealed and never filled again. So a cycle
 *     cannot close: its last edge would have to start at a sealed container.
 * W4  Rows (events, blocks, segments, annotations) are used once: by their list.
 */

#include "base/map.h"
#include "trace/model/trace.h"
#include "trace/pickle/pickle_value.h"

/* A dict, list or tuple. A list of consecutive rows holds only the first and a count. */
struct dryi_object {
    uint64_t *items; /* dict: key, value, key, value ... */
    size_t capacity, count;
    size_t first_row; /* list of rows: first of them */
    uint64_t settled; /* the value that a shared object became; 0: none yet */
    uint32_t memo;    /* its index in the memo, or DRY_NONE */
    uint32_t next_free;
    enum dryi_value_kind kind;     /* DICT, LIST or TUPLE */
    enum dryi_value_kind row_kind; /* list of rows: EVENT ..., else NONE */
    uint32_t depth;                /* nesting depth of its items */
    bool is_shared, is_sealed;
};

/* A use of a block. In files of 2023, blocks have a list of these instead of frames. */
struct dryi_pickle_history {
    uint64_t real_size; /* requested bytes */
    uint32_t stack;
};

/* A container that is being written as opcodes, and the index of its next item. */
struct dryi_level {
    uint64_t container;
    size_t next;
    size_t first; /* begin of its opcodes in `extra` */
};

struct dryi_mark {
    size_t value_count; /* height of the stack below the mark */
    size_t wide_count;
};

/* A list of frames, recognised by the bytes that fetch them (pickle_run.h). */
struct dryi_pickle_run {
    uint32_t from, length; /* in dryi_pickle_runs.bytes, with APPENDS */
    uint32_t stack;
    uint32_t next; /* run that followed this one, or DRY_NONE */
    uint32_t era;  /* valid only if equal to runs.era */
};

struct dryi_pickle_runs {
    struct dryi_pickle_run *runs, *last;
    unsigned char *bytes;
    size_t byte_count, byte_capacity;
    uint32_t era, turn;
};

/* Rows that a list has claimed. At the end, these must be all rows. */
struct dryi_covered {
    size_t events, segments, blocks, annotations;
};

struct dryi_pickle_walk {
    struct dryi_input *in;
    struct dry_trace_builder *builder;
    struct dry_trace *trace;
    struct dry_memory memory;
    struct dry_error *err;
    uint64_t op_offset; /* offset of the current opcode, for error texts */

    uint64_t *values;
    size_t value_count, value_capacity;
    size_t floor; /* values below this are under a mark */
    struct dryi_mark *marks;
    size_t mark_count, mark_capacity;
    size_t depth_max, string_bytes_max;

    struct dryi_map escaped; /* strings that are not UTF-8 -> escaped ones */
    bool has_bytes;          /* some strings are opaque bytes */
    uint32_t text_id;        /* last text of an event, or DRY_NONE */

    uint32_t *memo;
    size_t memo_count, memo_capacity;
    uint64_t *far_values;
    size_t far_count, far_capacity;

    struct dryi_object *objects;
    size_t object_count, object_capacity;
    uint32_t first_free; /* head of the list through next_free; DRY_NONE if empty */

    uint64_t *wides; /* dropped when the dict that uses them ends */
    size_t wide_count, wide_capacity;
    size_t wides_kept; /* the memo or an object uses those below */

    struct dryi_pickle_history *histories;
    size_t history_count, history_capacity;
    uint32_t *frame_ids; /* frames of the stack being read */
    size_t frame_id_capacity;
    struct dryi_map texts;  /* string -> its frame (pickle_forward.c) */
    struct dryi_map joined; /* own stack << 32 | forward stack -> both */
    struct dryi_pickle_runs runs;

    char *extra; /* opcodes of the current dict's unknown keys */
    size_t extra_count, extra_capacity;
    uint64_t extra_total;
    struct dryi_level *levels;
    size_t level_capacity;

    struct dry_lane lane; /* last lane, whose id is lane_id */
    uint32_t lane_id;
    struct dry_note note;
    uint32_t note_id;
    struct dryi_covered covered;
};

#endif
