/* SPDX-License-Identifier: Apache-2.0 */

/* The idea is in pickle_stack.h. Every operation is O(1). */
#include "trace/pickle/pickle_stack.h"

/* Marks allowed in addition to the nesting depth of unknown values. */
#define MARK_COUNT_MIN 16u

enum dry_status
dryi_stack_fail_underflow(struct dryi_pickle_walk *w, const char *opcode)
{
    return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                        "opcode %s finds too few values on the stack", opcode);
}

bool
dryi_stack_grow(struct dryi_pickle_walk *w)
{
    return dryi_memory_grow(&w->memory, &w->values, &w->value_capacity,
                            w->value_count + 1, sizeof *w->values);
}

enum dry_status
dryi_stack_push_wide(struct dryi_pickle_walk *w, enum dryi_value_kind kind, uint64_t bits)
{
    if (!dryi_memory_grow(&w->memory, &w->wides, &w->wide_capacity, w->wide_count + 1,
                          sizeof *w->wides))
        return dryi_fail_memory(w->err, "large numbers");
    w->wides[w->wide_count++] = bits;
    return dryi_stack_push(w, dryi_value(kind, w->wide_count - 1));
}

bool
dryi_stack_has_room(const struct dryi_pickle_walk *w, size_t count)
{
    return w->mark_count + count <= w->depth_max + MARK_COUNT_MIN;
}

enum dry_status
dryi_stack_push_mark(struct dryi_pickle_walk *w)
{
    if (!dryi_stack_has_room(w, 1))
        return dryi_fail_at(w->err, DRY_ERR_LIMIT, w->op_offset, "%zu open marks",
                            w->mark_count);
    if (!dryi_memory_grow(&w->memory, &w->marks, &w->mark_capacity, w->mark_count + 1,
                          sizeof *w->marks))
        return dryi_fail_memory(w->err, "marks");
    w->marks[w->mark_count++] = (struct dryi_mark){w->value_count, w->wide_count};
    w->floor = w->value_count;
    return DRY_OK;
}

enum dry_status
dryi_stack_pop_mark(struct dryi_pickle_walk *w, const char *opcode, size_t *first,
                    size_t *count)
{
    if (w->mark_count == 0)
        return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                            "opcode %s without a MARK", opcode);
    *first = w->marks[--w->mark_count].value_count;
    *count = w->value_count - *first;
    w->floor = w->mark_count ? w->marks[w->mark_count - 1].value_count : 0;
    return DRY_OK;
}

enum dry_status
dryi_stack_pop_items(struct dryi_pickle_walk *w, const char *opcode, size_t *first,
                     size_t *count)
{
    enum dry_status status = dryi_stack_pop_mark(w, opcode, first, count);
    if (status == DRY_OK && *first == w->floor)
        return dryi_stack_fail_underflow(w, opcode);
    return status;
}

void
dryi_stack_drop_wides(struct dryi_pickle_walk *w, size_t count)
{
    if (count < w->wides_kept)
        count = w->wides_kept;
    if (count < w->wide_count)
        w->wide_count = count;
}
