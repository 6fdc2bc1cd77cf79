/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PICKLE_STACK_H
#define DRYI_PICKLE_STACK_H

/*
 * The stack of the machine that a pickle is a program for: an array of words, and the marks
 * that stand in it. `floor` is the height of the innermost mark; no opcode takes a value
 * from below it. Large numbers lie in `wides`, a stack beside it.
 */

#include "base/fail.h"
#include "base/memory.h"
#include "trace/pickle/pickle_walk.h"

/* "opcode SETITEM finds too few values on the stack". */
enum dry_status dryi_stack_fail_underflow(struct dryi_pickle_walk *w, const char *opcode);

/* Make room for a value; false if there is no memory. */
bool dryi_stack_grow(struct dryi_pickle_walk *w);

static inline enum dry_status
dryi_stack_push(struct dryi_pickle_walk *w, uint64_t value)
{
    if (w->value_count == w->value_capacity && !dryi_stack_grow(w))
        return dryi_fail_memory(w->err, "the stack");
    w->values[w->value_count++] = value;
    return DRY_OK;
}

/* Push a number that is no payload: 64 bits of an integer or a double, by its kind. */
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

/* Push a mark; LIMIT beyond those that nesting needs. */
enum dry_status dryi_stack_push_mark(struct dryi_pickle_walk *w);

/* True if so many more marks may be pushed. */
bool dryi_stack_has_room(const struct dryi_pickle_walk *w, size_t count);

/* Take off the innermost mark; its values are values[*first..*first + *count). */
enum dry_status dryi_stack_pop_mark(struct dryi_pickle_walk *w, const char *opcode,
                                    size_t *first, size_t *count);

/* The same, with a value under the mark that takes what stands above it. */
enum dry_status dryi_stack_pop_items(struct dryi_pickle_walk *w, const char *opcode,
                                     size_t *first, size_t *count);

/* Give back the numbers above the first `count` that only the dict now done needed. */
void dryi_stack_drop_wides(struct dryi_pickle_walk *w, size_t count);

#endif
