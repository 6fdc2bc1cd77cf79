/* SPDX-License-Identifier: Apache-2.0 */
/* Ownership is described in arrow_hold.h. A release costs O(children). */
#include "trace/arrow/arrow_hold.h"

#include "base/assert.h"
#include "base/memory.h"

struct schema_hold {
    struct dry_memory memory;
    struct ArrowSchema children[DRYI_ARROW_CHILDREN_MAX];
    struct ArrowSchema *pointers[DRYI_ARROW_CHILDREN_MAX];
    struct ArrowSchema dictionary;
};

struct array_hold {
    struct dry_memory memory;
    void *owned[DRYI_ARROW_BUFFERS_MAX];
    size_t owned_bytes[DRYI_ARROW_BUFFERS_MAX];
    const void *buffers[DRYI_ARROW_BUFFERS_MAX];
    struct ArrowArray children[DRYI_ARROW_CHILDREN_MAX];
    struct ArrowArray *pointers[DRYI_ARROW_CHILDREN_MAX];
    struct ArrowArray dictionary;
};

static void
release_schema(struct ArrowSchema *schema)
{
    struct schema_hold *hold = schema->private_data;
    struct dry_memory memory = hold->memory;
    for (int64_t i = 0; i < schema->n_children; i++)
        if (hold->children[i].release)
            hold->children[i].release(&hold->children[i]);
    if (hold->dictionary.release)
        hold->dictionary.release(&hold->dictionary);
    schema->release = NULL;
    dryi_memory_free(&memory, hold, 1, sizeof *hold);
}

bool
dryi_arrow_schema_begin(struct ArrowSchema *schema, const char *format, const char *name,
                        const struct dry_memory *memory)
{
    *schema = (struct ArrowSchema){.format = format, .name = name};
    struct schema_hold *hold = dryi_memory_zalloc(memory, 1, sizeof *hold);
    if (!hold)
        return false;
    hold->memory = *memory;
    schema->children = hold->pointers;
    schema->private_data = hold;
    schema->release = release_schema;
    return true;
}

struct ArrowSchema *
dryi_arrow_schema_add(struct ArrowSchema *schema)
{
    struct schema_hold *hold = schema->private_data;
    DRYI_ASSERT(schema->n_children < DRYI_ARROW_CHILDREN_MAX);
    struct ArrowSchema *child = &hold->children[schema->n_children];
    hold->pointers[schema->n_children++] = child;
    return child;
}

struct ArrowSchema *
dryi_arrow_schema_add_dictionary(struct ArrowSchema *schema)
{
    struct schema_hold *hold = schema->private_data;
    schema->dictionary = &hold->dictionary;
    return schema->dictionary;
}

static void
release_array(struct ArrowArray *array)
{
    struct array_hold *hold = array->private_data;
    struct dry_memory memory = hold->memory;
    for (int64_t i = 0; i < array->n_children; i++)
        if (hold->children[i].release)
            hold->children[i].release(&hold->children[i]);
    if (hold->dictionary.release)
        hold->dictionary.release(&hold->dictionary);
    for (size_t i = 0; i < DRYI_ARROW_BUFFERS_MAX; i++)
        dryi_memory_free(&memory, hold->owned[i], hold->owned_bytes[i], 1);
    array->release = NULL;
    dryi_memory_free(&memory, hold, 1, sizeof *hold);
}

bool
dryi_arrow_array_begin(struct ArrowArray *array, uint64_t length, unsigned buffer_count,
                       const struct dry_memory *memory)
{
    DRYI_ASSERT(buffer_count <= DRYI_ARROW_BUFFERS_MAX);
    *array = (struct ArrowArray){.length = (int64_t)length, .n_buffers = buffer_count};
    struct array_hold *hold = dryi_memory_zalloc(memory, 1, sizeof *hold);
    if (!hold)
        return false;
    hold->memory = *memory;
    array->buffers = hold->buffers;
    array->children = hold->pointers;
    array->private_data = hold;
    array->release = release_array;
    return true;
}

void *
dryi_arrow_array_take(struct ArrowArray *array, unsigned buffer, uint64_t count,
                      size_t element_bytes)
{
    struct array_hold *hold = array->private_data;
    DRYI_ASSERT(buffer < array->n_buffers && !hold->owned[buffer]);
    if (count > (SIZE_MAX - 1) / element_bytes)
        return NULL;
    size_t bytes = (size_t)count * element_bytes;
    bytes += bytes == 0; /* Arrow wants a non-NULL address for an empty buffer, too */
    void *taken = dryi_memory_zalloc(&hold->memory, bytes, 1);
    if (!taken)
        return NULL;
    hold->owned[buffer] = taken;
    hold->owned_bytes[buffer] = bytes;
    hold->buffers[buffer] = taken;
    return taken;
}

void *
dryi_arrow_array_buffer(struct ArrowArray *array, unsigned buffer)
{
    struct array_hold *hold = array->private_data;
    DRYI_ASSERT(buffer < array->n_buffers && hold->owned[buffer]);
    return hold->owned[buffer];
}

struct ArrowArray *
dryi_arrow_array_add(struct ArrowArray *array)
{
    struct array_hold *hold = array->private_data;
    DRYI_ASSERT(array->n_children < DRYI_ARROW_CHILDREN_MAX);
    struct ArrowArray *child = &hold->children[array->n_children];
    hold->pointers[array->n_children++] = child;
    return child;
}

struct ArrowArray *
dryi_arrow_array_add_dictionary(struct ArrowArray *array)
{
    struct array_hold *hold = array->private_data;
    array->dictionary = &hold->dictionary;
    return array->dictionary;
}
