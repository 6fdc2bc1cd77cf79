/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PICKLE_FIELD_H
#define DRYI_PICKLE_FIELD_H

/* Take the values of a record's keys. A wrong type is refused with FORMAT and a text. */

#include "trace/pickle/pickle_key.h"
#include "trace/pickle/pickle_walk.h"

/* The record whose keys are taken, named in error texts: "event 12". */
struct dryi_owner {
    const char *what;
    size_t row;       /* DRYI_NO_ROW if there is only one */
    uint32_t unknown; /* DRY_UNKNOWN_..._KEY; DRY_NONE: do not count */
};
#define DRYI_NO_ROW SIZE_MAX

struct dryi_rows {
    size_t first, count;
};

/* Return the value's type for error texts: "a string", "an event" ... */
const char *dryi_value_noun(uint64_t value);
/* Refuse a value: "event 12: `size` is a string, expected an integer". */
enum dry_status dryi_field_refuse(struct dryi_pickle_walk *w,
                                  const struct dryi_owner *owner, enum dryi_key key,
                                  uint64_t value, const char *expected);
/* Refuse a list item: "event 12: `frames` holds an integer, expected only frames". */
enum dry_status dryi_field_refuse_item(struct dryi_pickle_walk *w,
                                       const struct dryi_owner *owner, enum dryi_key key,
                                       uint64_t item, enum dryi_value_kind expected);
/* Refuse a record that lacks a key: "event 12: no `size`". */
enum dry_status dryi_field_miss(struct dryi_pickle_walk *w,
                                const struct dryi_owner *owner, enum dryi_key key);
/* Get an integer as 64 bits in two's complement. Returns false for other values. */
bool dryi_field_int(const struct dryi_pickle_walk *w, uint64_t value, uint64_t *bits);
enum dry_status dryi_field_take_int(struct dryi_pickle_walk *w,
                                    const struct dryi_owner *owner, enum dryi_key key,
                                    uint64_t value, uint64_t *bits);
enum dry_status dryi_field_take_bool(struct dryi_pickle_walk *w,
                                     const struct dryi_owner *owner, enum dryi_key key,
                                     uint64_t value, bool *flag);
/* Take a pool id: a tuple or list of two integers. */
enum dry_status dryi_field_take_pool(struct dryi_pickle_walk *w,
                                     const struct dryi_owner *owner, enum dryi_key key,
                                     uint64_t value, struct dry_lane *lane);
enum dry_status dryi_field_take_lane(struct dryi_pickle_walk *w,
                                     const struct dry_lane *lane, uint32_t *id);
/* Take a list of frames as a stack; the list's value becomes that stack. */
enum dry_status dryi_field_take_stack(struct dryi_pickle_walk *w,
                                      const struct dryi_owner *owner, enum dryi_key key,
                                      uint64_t value, uint32_t *stack);
/*
 * Take forward_frames, a list of strings or of frames, as a stack. pickle_forward.c has the idea.
 * The list's value becomes that stack.
 */
enum dry_status dryi_forward_take(struct dryi_pickle_walk *w,
                                  const struct dryi_owner *owner, uint64_t value,
                                  uint32_t *forward);
/* Append the frames of `forward` to *stack; DRY_NONE for `forward` leaves it as it is. */
enum dry_status dryi_forward_join(struct dryi_pickle_walk *w, uint32_t forward,
                                  uint32_t *stack);
/* Take a list of rows as a range. Each list can be taken once. */
enum dry_status dryi_field_take_rows(struct dryi_pickle_walk *w,
                                     const struct dryi_owner *owner, enum dryi_key key,
                                     uint64_t value, enum dryi_value_kind kind,
                                     struct dryi_rows *rows);

#endif
