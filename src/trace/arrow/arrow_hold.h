/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_ARROW_HOLD_H
#define DRYI_ARROW_HOLD_H

/*
 * The structs of Arrow's C data interface, each with what it owns.
 *
 * A hold is the private_data of one struct: the structs below it, and an array's buffers.
 * Somebody may move a child away (copy the struct, and mark the old one released), so a
 * child owns a hold of its own and its release touches that alone.
 *
 * A struct is released as far as it was made: after a failure, its release gives back
 * everything.
 */

#include <stdbool.h>

#include <drystone/arrow.h>

#define DRYI_ARROW_CHILDREN_MAX 14
#define DRYI_ARROW_BUFFERS_MAX 3

/*
 * Begin a schema without children. `format` and `name` are literals. Returns false if
 * memory ran out; then schema->release is NULL.
 */
bool dryi_arrow_schema_begin(struct ArrowSchema *schema, const char *format,
                             const char *name, const struct dry_memory *memory);
/* Return the next child, or the dictionary, of a schema: zeroed, for its own begin. */
struct ArrowSchema *dryi_arrow_schema_add(struct ArrowSchema *schema);
struct ArrowSchema *dryi_arrow_schema_add_dictionary(struct ArrowSchema *schema);

/*
 * Begin an array of `length` with `buffer_count` buffers, which are NULL. Returns false if
 * memory ran out; then array->release is NULL.
 */
bool dryi_arrow_array_begin(struct ArrowArray *array, uint64_t length,
                            unsigned buffer_count, const struct dry_memory *memory);
/* Take a zeroed buffer of `count` elements; NULL if memory ran out. */
void *dryi_arrow_array_take(struct ArrowArray *array, unsigned buffer, uint64_t count,
                            size_t element_bytes);
/* Return a buffer that was taken, to write to. */
void *dryi_arrow_array_buffer(struct ArrowArray *array, unsigned buffer);
/* Return the next child, or the dictionary, of an array: zeroed, for its own begin. */
struct ArrowArray *dryi_arrow_array_add(struct ArrowArray *array);
struct ArrowArray *dryi_arrow_array_add_dictionary(struct ArrowArray *array);

#endif
