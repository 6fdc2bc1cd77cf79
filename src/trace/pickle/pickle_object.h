/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PICKLE_OBJECT_H
#define DRYI_PICKLE_OBJECT_H

/*
 * The containers of a pickle while they are open: made, shared, turned into what they are,
 * and used again (W1, W2).
 */

#include "base/assert.h"
#include "trace/pickle/pickle_walk.h"

/* The object of a dict, list or tuple. */
static inline struct dryi_object *
dryi_object_get(const struct dryi_pickle_walk *w, uint64_t value)
{
    size_t index = (size_t)dryi_value_payload(value);
    DRYI_ASSERT(index < w->object_count);
    DRYI_ASSERT(w->objects[index].kind == dryi_value_kind(value));
    return &w->objects[index];
}

/* True for a dict, list or tuple, whose payload is the index of an object. */
static inline bool
dryi_value_is_object(uint64_t value)
{
    enum dryi_value_kind kind = dryi_value_kind(value);
    return kind >= DRYI_VALUE_DICT && kind <= DRYI_VALUE_TUPLE;
}

/* True for an event, a block ... and a used list of them: each is used once (W4). */
static inline bool
dryi_value_is_row(uint64_t value)
{
    return dryi_value_kind(value) >= DRYI_VALUE_EVENT;
}

/* Make an empty container. */
enum dry_status dryi_object_new(struct dryi_pickle_walk *w, enum dryi_value_kind kind,
                                uint64_t *value);
/* True if so many more containers may be made. */
bool dryi_object_has_room(const struct dryi_pickle_walk *w, uint32_t count);
/* The parts of a dict, list of items, or tuple; false if it is none, or one of rows. */
bool dryi_object_items(const struct dryi_pickle_walk *w, uint64_t value,
                       enum dryi_value_kind kind, const uint64_t **items, size_t *count);
/* True for a list with nothing in it. */
bool dryi_object_is_empty_list(const struct dryi_pickle_walk *w, uint64_t value);
/* Make the word for the memo; a word above 32 bits goes to `far_words`. */
enum dry_status dryi_memo_entry(struct dryi_pickle_walk *w, uint64_t value,
                                uint32_t *entry);
/* Turn an object into `what`, in the memo too, and free it if it can be (W1). */
enum dry_status dryi_object_become(struct dryi_pickle_walk *w, uint64_t value,
                                   uint64_t what);
/* Keep the number in `wides` that the value refers to beyond the dict at work. */
void dryi_object_keep_wide(struct dryi_pickle_walk *w, uint64_t value);
/* Note that the value was put in the memo at `index`. */
void dryi_object_note_memo(struct dryi_pickle_walk *w, uint64_t value, uint32_t index);
/* Note that the value was fetched from the memo (W2). */
void dryi_object_share(struct dryi_pickle_walk *w, uint64_t value);
/*
 * The result of a container that has become something; for all others the value itself.
 */
uint64_t dryi_object_settled(const struct dryi_pickle_walk *w, uint64_t value);
/* Free a container that nothing refers to any more; false if something does. */
bool dryi_object_release(struct dryi_pickle_walk *w, uint64_t value);
/* Let a container be filled again, unless it is shared: the one that held it is done. */
void dryi_object_unseal(struct dryi_pickle_walk *w, uint64_t value);

#endif
