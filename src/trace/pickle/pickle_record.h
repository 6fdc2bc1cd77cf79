/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PICKLE_RECORD_H
#define DRYI_PICKLE_RECORD_H

/*
 * Turn dicts into the records of a snapshot. The keys of a dict tell its role; each role
 * has a function. A function takes the pairs of a dict, as keys and values in turn, and
 * sets *value to the record. Events and frames are in pickle_event.c, the whole snapshot
 * in pickle_top.c, all others in pickle_segment.c.
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

/* Take a dict as the record that its keys name. *value is NONE if they name no record. */
enum dry_status dryi_roles_take(struct dryi_pickle_walk *w, const uint64_t *pairs,
                                size_t pair_count, uint64_t *value);

/* Take the final value of the pickle as the whole trace. */
enum dry_status dryi_top_take(struct dryi_pickle_walk *w, uint64_t value);

/*
 * An event whose keys are being read. Two readers set the fields in the order of the
 * keys: pickle_event.c from a dict's pairs, pickle_straight.c from bytes.
 */
struct dryi_fields {
    struct dry_event event;
    struct dry_lane lane;
    struct dry_note note;
    struct dryi_owner owner;
    uint64_t action;            /* the value */
    uint64_t addr, device_free; /* the values; DRYI_NO_WORD if the key is missing */
    uint32_t forward;           /* a stack, still apart from the event's; DRY_NONE */
    bool has_size, has_stream;
};
/* Marks a missing value: no value is encoded like this. */
#define DRYI_NO_WORD UINT64_MAX

/* Begin an event without keys. */
void dryi_fields_begin(struct dryi_pickle_walk *w, struct dryi_fields *f);
/* Intern the lane and note of an event, and append it. *value is set to the event. */
enum dry_status dryi_fields_append(struct dryi_pickle_walk *w, struct dryi_fields *f,
                                   uint64_t *value);

#endif
