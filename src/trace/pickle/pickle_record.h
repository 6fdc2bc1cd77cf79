/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PICKLE_RECORD_H
#define DRYI_PICKLE_RECORD_H

/*
 * The records of a snapshot, one function a role, and the role of a dict, known by its keys.
 * Each function takes the pairs of a dict, two words a pair, and sets *value to the record's
 * word. Events and frames are in pickle_event.c, the snapshot as a whole in pickle_top.c, all
 * others in pickle_segment.c.
 */

#include "trace/pickle/pickle_field.h"

enum dry_status dryi_event_take(struct dryi_pickle_walk *w, const uint64_t *pairs,
                                size_t pair_count, uint64_t *value);
enum dry_status dryi_frame_take(struct dryi_pickle_walk *w, const uint64_t *pairs,
                                size_t pair_count, uint64_t *value);
enum dry_status dryi_block_take(struct dryi_pickle_walk *w, const uint64_t *pairs,
                                size_t pair_count, uint64_t *value);
enum dry_status dryi_history_take(struct dryi_pickle_walk *w, const uint64_t *pairs,
                                  size_t pair_count, uint64_t *value);
enum dry_status dryi_segment_take(struct dryi_pickle_walk *w, const uint64_t *pairs,
                                  size_t pair_count, uint64_t *value);
enum dry_status dryi_annotation_take(struct dryi_pickle_walk *w, const uint64_t *pairs,
                                     size_t pair_count, uint64_t *value);

/* Take the dict as the record that its keys say it is; NONE if they say nothing we know. */
enum dry_status dryi_roles_take(struct dryi_pickle_walk *w, const uint64_t *pairs,
                                size_t pair_count, uint64_t *value);

/* Take the value that the pickle ends with as the whole trace. */
enum dry_status dryi_top_take(struct dryi_pickle_walk *w, uint64_t value);

/*
 * An event between its keys and its row. Two readers set its fields in the order of the
 * keys: the one of a dict's pairs (pickle_event.c), the one of bytes (pickle_straight.c).
 */
struct dryi_fields {
    struct dry_event event;
    struct dry_lane lane;
    struct dry_note note;
    struct dryi_owner owner;
    uint64_t action;            /* the word */
    uint64_t addr, device_free; /* the words; DRYI_NO_WORD if the key did not come */
    bool has_size, has_stream;
};
/* No value has this word. */
#define DRYI_NO_WORD UINT64_MAX

/* Begin an event without any key. */
void dryi_fields_begin(struct dryi_pickle_walk *w, struct dryi_fields *f);
/* Append the event whose fields are all set but its note's and lane's ids; *value is it. */
enum dry_status dryi_fields_append(struct dryi_pickle_walk *w, struct dryi_fields *f,
                                   uint64_t *value);

#endif
