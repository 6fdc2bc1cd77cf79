/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PICKLE_STACK_H
#define DRYI_PICKLE_STACK_H

/*
 * The value stack of the pickle machine: an array of values, and the marks in it. `floor`
 * is the height of the innermost mark; no opcode takes a value from below that. Large
 * numbers are in `wides`, a second stack.
 */

#include "base/fail.h"
#include "base/memory.h"
#include "trace/pickle/pickle_walk.h"

/* Fail with "opcode SETITEM finds too few values on the stack". */
enum dry_status dryi_stack_fail_underflow(struct dryi_pickle_walk *w, const char *opcode);

/* Make space for a value. Returns false if memory ran out. */
bool dryi_stack_grow(struct dryi_pickle_walk *w);

static inline enum dry_status
dryi_stack_push(struct dryi_pickle_walk *w, uint64_t value)
{
    if (w->value_count == w->value_capacity && !dryi_stack_grow(w))
        return dryi_fail_memory(w->err, "the stack");
    w->values[w->value_count++] = value;
    return DRY_OK;
}

/* Push a 64-bit integer or double, which no payload can hold. */
enum dry_status dryi_stack_push_wide(struct dryi_pickle_walk *w,
                                     enum dryi_value_kind kind, uint64_t bits);

static inline enum dry_status
dryi_stack_push_int(struct dryi_pickle_walk *w, int64_t number)
{
    uint64_t value = dryi_value(DRYI_VALUE_INT, (uint64_t)number);
    if ((int64_t)value >> DRYI_VALUE_KIND_BITS == number)
        return dryi_stack_push(w, value);
    return dryi_stack_push_wide(w, DRYI_VALUE_WIDE_INT, (uint64_t)number);
}

/* Push a mark. Returns LIMIT if nesting exceeds the option's depth. */
enum dry_status dryi_stack_push_mark(struct dryi_pickle_walk *w);

/* Return true if `count` more marks may be pushed. */
bool dryi_stack_has_room(const struct dryi_pickle_walk *w, size_t count);

/* Pop the innermost mark. Its values are values[*first..*first + *count). */
enum dry_status dryi_stack_pop_mark(struct dryi_pickle_walk *w, const char *opcode,
                                    size_t *first, size_t *count);

/* Pop the innermost mark. Requires a container under it, which takes its values. */
enum dry_status dryi_stack_pop_items(struct dryi_pickle_walk *w, const char *opcode,
                                     size_t *first, size_t *count);

/* Drop the numbers above the first `count`, except those kept beyond the current dict. */
void dryi_stack_drop_wides(struct dryi_pickle_walk *w, size_t count);

#endif
