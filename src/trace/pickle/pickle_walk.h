/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PICKLE_WALK_H
#define DRYI_PICKLE_WALK_H

/*
 * The walk over a pickle: what stands on its stack, and what it turns into.
 *
 * A value is one 64-bit word: a kind in the low five bits and a payload above. Small things
 * are their payload (an integer, a string's id); a dict or list that is still being filled
 * is the index of an object. As soon as a dict is filled its keys say what it is, and the
 * word becomes the thing itself: an event that already lies in the columns, a frame's id, a
 * block's row. Its object is used again, so that memory follows what is open, not what was
 * read.
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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "trace/model/trace.h"

enum dryi_value_kind {
    DRYI_VALUE_NONE,
    DRYI_VALUE_BOOL,
    DRYI_VALUE_INT,       /* 59 bits, signed, in the payload */
    DRYI_VALUE_STRING,    /* id */
    DRYI_VALUE_BYTES,     /* id of a string */
    DRYI_VALUE_BYTEARRAY, /* id of a string */
    DRYI_VALUE_PAIR,      /* a tuple of two integers of 29 bits */
    DRYI_VALUE_FRAME,     /* id */
    DRYI_VALUE_STACK,     /* id: a list of frames, complete */
    DRYI_VALUE_EXTRA,     /* id of a string: something unknown, rendered as opcodes */
    DRYI_VALUE_WIDE_INT,  /* index of 64 bits in `wides`, signed */
    DRYI_VALUE_WIDE_UINT, /* the same, above INT64_MAX */
    DRYI_VALUE_FLOAT,     /* the same, a double */
    /* From here on a fetch from the memo is special. */
    DRYI_VALUE_DICT, /* index of an object, as the next two */
    DRYI_VALUE_LIST,
    DRYI_VALUE_TUPLE,
    DRYI_VALUE_FAR,   /* only in the memo: the word is in `far_words` */
    DRYI_VALUE_EVENT, /* rows; in the memo without their number (W4) */
    DRYI_VALUE_BLOCK,
    DRYI_VALUE_SEGMENT,
    DRYI_VALUE_ANNOTATION,
    DRYI_VALUE_HISTORY,
    DRYI_VALUE_ROWS, /* a list of rows that was used */
};
#define DRYI_VALUE_KIND_BITS 5
#define DRYI_VALUE_KIND_MASK UINT64_C(31)
#define DRYI_PAIR_BITS 29

static inline uint64_t
dryi_value(enum dryi_value_kind kind, uint64_t payload)
{
    return payload << DRYI_VALUE_KIND_BITS | (uint64_t)kind;
}

static inline enum dryi_value_kind
dryi_value_kind(uint64_t value)
{
    return (enum dryi_value_kind)(value & DRYI_VALUE_KIND_MASK);
}

static inline uint64_t
dryi_value_payload(uint64_t value)
{
    return value >> DRYI_VALUE_KIND_BITS;
}

static inline bool
dryi_value_is(uint64_t value, enum dryi_value_kind kind)
{
    return dryi_value_kind(value) == kind;
}

/* "a string", "an event" ... for error texts. */
const char *dryi_value_noun(uint64_t value);

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
struct dryi_history {
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

/* Rows that stand where they belong; at the end that must be all of them. */
struct dryi_covered {
    size_t events, segments, blocks, annotations;
};

struct dryi_walk {
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

    struct dryi_history *histories;
    size_t history_count, history_capacity;
    uint32_t *frame_ids; /* of the stack at work */
    size_t frame_id_capacity;

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

/* The keys we know are the first strings of a trace from a pickle, in this order. */
enum dryi_key {
    DRYI_KEY_ACTION,
    DRYI_KEY_ADDR,
    DRYI_KEY_SIZE,
    DRYI_KEY_STREAM,
    DRYI_KEY_TIME_US,
    DRYI_KEY_FRAMES,
    DRYI_KEY_FORWARD_FRAMES,
    DRYI_KEY_COMPILE_CONTEXT,
    DRYI_KEY_USER_METADATA,
    DRYI_KEY_POOL_ID,
    DRYI_KEY_DEVICE_FREE,
    DRYI_KEY_NAME,
    DRYI_KEY_FILENAME,
    DRYI_KEY_LINE,
    DRYI_KEY_ADDRESS,
    DRYI_KEY_REQUESTED_SIZE,
    DRYI_KEY_STATE,
    DRYI_KEY_HISTORY,
    DRYI_KEY_REAL_SIZE,
    DRYI_KEY_DEVICE,
    DRYI_KEY_TOTAL_SIZE,
    DRYI_KEY_ALLOCATED_SIZE,
    DRYI_KEY_ACTIVE_SIZE,
    DRYI_KEY_SEGMENT_TYPE,
    DRYI_KEY_SEGMENT_POOL_ID,
    DRYI_KEY_IS_EXPANDABLE,
    DRYI_KEY_BLOCKS,
    DRYI_KEY_STAGE,
    DRYI_KEY_SEGMENTS,
    DRYI_KEY_DEVICE_TRACES,
    DRYI_KEY_TRACES,
    DRYI_KEY_ALLOCATOR_SETTINGS,
    DRYI_KEY_EXTERNAL_ANNOTATIONS,
    DRYI_KEY_HOST_SEGMENTS,
    DRYI_KEY_HOST_TRACES,
    DRYI_KEY_CONF,
    DRYI_KEY_MAX_SPLIT_SIZE,
    DRYI_KEY_GC_THRESHOLD,
    DRYI_KEY_EXPANDABLE_SEGMENTS,
    DRYI_KEY_ROUNDUP,
    DRYI_KEY_COUNT,
    /* And values that are compared. */
    DRYI_TEXT_LARGE = DRYI_KEY_COUNT,
    DRYI_TEXT_SMALL,
    DRYI_TEXT_INACTIVE,
    DRYI_TEXT_ACTIVE,
    DRYI_TEXT_PENDING_FREE,
    DRYI_TEXT_AWAITING_FREE,
    DRYI_TEXT_COUNT, /* here begin the names of the actions, in their order */
};

/* Put the known strings into the empty table. */
enum dry_status dryi_walk_init_keys(struct dryi_walk *w);
/* The key's text. */
const char *dryi_key_text(enum dryi_key key);
/* The known key of a value; DRYI_KEY_COUNT for all others. */
static inline enum dryi_key
dryi_value_key(uint64_t value)
{
    uint64_t id = dryi_value_payload(value);
    if (!dryi_value_is(value, DRYI_VALUE_STRING) || id >= DRYI_KEY_COUNT)
        return DRYI_KEY_COUNT;
    return (enum dryi_key)id;
}

/* pickle_object.c: containers. */
enum dry_status dryi_object_new(struct dryi_walk *w, enum dryi_value_kind kind,
                                uint64_t *value);
enum dry_status dryi_object_append(struct dryi_walk *w, uint64_t list,
                                   const uint64_t *values, size_t count);
/* Fill a dict; *dict becomes what it turns out to be. `pairs` is two words a pair. */
enum dry_status dryi_object_fill(struct dryi_walk *w, uint64_t *dict,
                                 const uint64_t *pairs, size_t pair_count);
enum dry_status dryi_object_make_tuple(struct dryi_walk *w, const uint64_t *values,
                                       size_t count, uint64_t *tuple);
/* Who holds the key at work, for error texts: "event 12". */
struct dryi_owner {
    const char *what;
    size_t row;       /* DRYI_NO_ROW: there is only one */
    uint32_t unknown; /* DRY_UNKNOWN_..._KEY, or DRY_NONE: not to be counted */
};
#define DRYI_NO_ROW SIZE_MAX

struct dryi_rows {
    size_t first, count;
};

/* A list of frames as a stack. */
enum dry_status dryi_object_take_stack(struct dryi_walk *w,
                                       const struct dryi_owner *owner, enum dryi_key key,
                                       uint64_t value, uint32_t *stack);
/* A list of rows as a range; the list is used up. */
enum dry_status dryi_object_take_rows(struct dryi_walk *w, const struct dryi_owner *owner,
                                      enum dryi_key key, uint64_t value,
                                      enum dryi_value_kind kind, struct dryi_rows *rows);
/* The parts of a dict, list of items, or tuple; false if it is none, or one of rows. */
bool dryi_object_items(const struct dryi_walk *w, uint64_t value,
                       enum dryi_value_kind kind, const uint64_t **items, size_t *count);
/* Whether it is a list with nothing in it. */
bool dryi_object_is_empty_list(const struct dryi_walk *w, uint64_t value);
/* The word for the memo. */
enum dry_status dryi_memo_entry(struct dryi_walk *w, uint64_t value, uint32_t *entry);
/* An object is `what` from now on, in the memo too, and is free if it can be (W1). */
enum dry_status dryi_object_become(struct dryi_walk *w, uint64_t value, uint64_t what);
/* The value may outlive the dict at work: so must what it refers to in `wides`. */
void dryi_object_keep_wide(struct dryi_walk *w, uint64_t value);
/* The value was put in the memo at `index`. */
void dryi_object_note_memo(struct dryi_walk *w, uint64_t value, uint32_t index);
/* The value was fetched from the memo (W2). */
void dryi_object_share(struct dryi_walk *w, uint64_t value);
/* What a container has become, else the value itself. */
uint64_t dryi_object_settled(const struct dryi_walk *w, uint64_t value);
/* Free a container that nothing refers to any more; false if something does. */
bool dryi_object_release(struct dryi_walk *w, uint64_t value);
/* The container that held this one is done. */
void dryi_object_unseal(struct dryi_walk *w, uint64_t value);

/* pickle_roles.c: what a dict is, by its keys. VALUE_NONE: nothing we know. */
enum dry_status dryi_roles_take(struct dryi_walk *w, const uint64_t *pairs,
                                size_t pair_count, uint64_t *value);

/* "event 12: `size` is a string, expected an integer". */
enum dry_status dryi_roles_refuse(struct dryi_walk *w, const struct dryi_owner *owner,
                                  enum dryi_key key, uint64_t value,
                                  const char *expected);
/* "event 12: `frames` holds an integer, expected only frames". */
enum dry_status dryi_roles_refuse_item(struct dryi_walk *w,
                                       const struct dryi_owner *owner, enum dryi_key key,
                                       uint64_t item, enum dryi_value_kind expected);
/* "event 12: no `size`". */
enum dry_status dryi_roles_miss(struct dryi_walk *w, const struct dryi_owner *owner,
                                enum dryi_key key);
/* Integers are taken as 64 bits in two's complement. */
bool dryi_roles_int(const struct dryi_walk *w, uint64_t value, uint64_t *bits);
enum dry_status dryi_roles_take_int(struct dryi_walk *w, const struct dryi_owner *owner,
                                    enum dryi_key key, uint64_t value, uint64_t *bits);
enum dry_status dryi_roles_take_bool(struct dryi_walk *w, const struct dryi_owner *owner,
                                     enum dryi_key key, uint64_t value, bool *flag);
/* A pool id: two integers in a tuple or list. */
enum dry_status dryi_roles_take_pool(struct dryi_walk *w, const struct dryi_owner *owner,
                                     enum dryi_key key, uint64_t value,
                                     struct dry_lane *lane);
enum dry_status dryi_roles_take_lane(struct dryi_walk *w, const struct dry_lane *lane,
                                     uint32_t *id);
/* pickle_event.c, pickle_segment.c */
enum dry_status dryi_event_take(struct dryi_walk *w, const uint64_t *pairs,
                                size_t pair_count, uint64_t *value);
enum dry_status dryi_frame_take(struct dryi_walk *w, const uint64_t *pairs,
                                size_t pair_count, uint64_t *value);
enum dry_status dryi_block_take(struct dryi_walk *w, const uint64_t *pairs,
                                size_t pair_count, uint64_t *value);
enum dry_status dryi_history_take(struct dryi_walk *w, const uint64_t *pairs,
                                  size_t pair_count, uint64_t *value);
enum dry_status dryi_segment_take(struct dryi_walk *w, const uint64_t *pairs,
                                  size_t pair_count, uint64_t *value);
enum dry_status dryi_annotation_take(struct dryi_walk *w, const uint64_t *pairs,
                                     size_t pair_count, uint64_t *value);

/* pickle_top.c: the value that the pickle ends with. */
enum dry_status dryi_top_take(struct dryi_walk *w, uint64_t value);

/*
 * pickle_extra.c: keys unknown to us, kept as opcodes.
 *
 * begin, add for each pair, end: *extra is a string's id, DRY_NONE without pairs. An added
 * key is counted as unknown unless it is one we know (whose value we could not keep).
 */
void dryi_extra_begin(struct dryi_walk *w);
enum dry_status dryi_extra_add(struct dryi_walk *w, const struct dryi_owner *owner,
                               uint64_t key, uint64_t value);
enum dry_status dryi_extra_end(struct dryi_walk *w, uint32_t *extra);

#endif
