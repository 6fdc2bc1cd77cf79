/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PICKLE_OBJECT_H
#define DRYI_PICKLE_OBJECT_H

/* Containers of a pickle while they are open: make, share, replace, reuse (W1, W2). */

#include "base/assert.h"
#include "trace/pickle/pickle_walk.h"

/* Return the object of a dict, list or tuple. */
static inline struct dryi_object *
dryi_object_get(const struct dryi_pickle_walk *w, uint64_t value)
{
    size_t index = (size_t)dryi_value_payload(value);
    DRYI_ASSERT(index < w->object_count);
    DRYI_ASSERT(w->objects[index].kind == dryi_value_kind(value));
    return &w->objects[index];
}

/* Return true for a dict, list or tuple: the payload is then an object's index. */
static inline bool
dryi_value_is_object(uint64_t value)
{
    enum dryi_value_kind kind = dryi_value_kind(value);
    return kind >= DRYI_VALUE_DICT && kind <= DRYI_VALUE_TUPLE;
}

/* Return true for rows (events, blocks ...) and used lists of them: used once (W4). */
static inline bool
dryi_value_is_row(uint64_t value)
{
    return dryi_value_kind(value) >= DRYI_VALUE_EVENT;
}

/* Make an empty container. Returns LIMIT if too many are open. */
enum dry_status dryi_object_new(struct dryi_pickle_walk *w, enum dryi_value_kind kind,
                                uint64_t *value);
/* Return true if `count` more containers may be made. */
bool dryi_object_has_room(const struct dryi_pickle_walk *w, uint32_t count);
/* Get a container's items. False: another kind, a list of rows, or replaced already. */
bool dryi_object_items(const struct dryi_pickle_walk *w, uint64_t value,
                       enum dryi_value_kind kind, const uint64_t **items, size_t *count);
bool dryi_object_is_empty_list(const struct dryi_pickle_walk *w, uint64_t value);
/* Encode a value for the memo. A value above 32 bits is stored in `far_values`. */
enum dry_status dryi_memo_entry(struct dryi_pickle_walk *w, uint64_t value,
                                uint32_t *entry);
/* Replace an object by `what`, in the memo too, and free it if it is not shared (W1). */
enum dry_status dryi_object_become(struct dryi_pickle_walk *w, uint64_t value,
                                   uint64_t what);
/* Keep the number in `wides` that the value refers to after the current dict ends. */
void dryi_object_keep_wide(struct dryi_pickle_walk *w, uint64_t value);
/* Record that the value is in the memo at `index`. */
void dryi_object_note_memo(struct dryi_pickle_walk *w, uint64_t value, uint32_t index);
/* Record that the value was fetched from the memo (W2). */
void dryi_object_share(struct dryi_pickle_walk *w, uint64_t value);
/* Return what a container has become; any other value is returned unchanged. */
uint64_t dryi_object_settled(const struct dryi_pickle_walk *w, uint64_t value);
/* Free a container to which no value refers. Returns false if it is shared. */
bool dryi_object_release(struct dryi_pickle_walk *w, uint64_t value);
/* Allow a container to be filled again, unless it is shared. Its parent is gone. */
void dryi_object_unseal(struct dryi_pickle_walk *w, uint64_t value);

#endif
