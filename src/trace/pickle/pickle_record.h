/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PICKLE_RECORD_H
#define DRYI_PICKLE_RECORD_H

/*
 * The records of a snapshot, one function a role. Each takes the pairs of a dict, two
 * words a pair, and sets *value to the record's word. Events and frames are in
 * pickle_event.c, all others in pickle_segment.c.
 */

#include "trace/pickle/pickle_walk.h"

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

#endif
