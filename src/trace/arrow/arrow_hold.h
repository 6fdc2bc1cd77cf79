/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_ARROW_HOLD_H
#define DRYI_ARROW_HOLD_H

/*
 * The structs of Arrow's C data interface, with the memory that each owns.
 *
 * A hold is the private_data of one struct: its child structs, and the buffers of an
 * array. A consumer may move a child away (copy the struct and mark the old one
 * released). So a child owns a hold of its own, and its release frees only that.
 *
 * A release works on a half-made struct: after a failure it frees what was made.
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
/*
 * Allocate buffer number `buffer` with `count` zeroed elements. Returns NULL if memory
 * ran out; the array owns the buffer.
 */
void *dryi_arrow_array_take(struct ArrowArray *array, unsigned buffer, uint64_t count,
                            size_t element_bytes);
/* Return a buffer that dryi_arrow_array_take() made, for writing. */
void *dryi_arrow_array_buffer(struct ArrowArray *array, unsigned buffer);
/* Return the next child, or the dictionary, of an array: zeroed, for its own begin. */
struct ArrowArray *dryi_arrow_array_add(struct ArrowArray *array);
struct ArrowArray *dryi_arrow_array_add_dictionary(struct ArrowArray *array);

#endif
