/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuDNN's graph API: a store of attributes.
 *
 * A part is its kind and a list of attributes, each with the bytes that were written. An attribute
 * that refers to other parts holds references to them, so that a program may destroy its own
 * handle to a part first. A program that reads a part creates a handle, which is then made to
 * refer to that part. Heuristics return one engine configuration, made when it is read. Lists have
 * tens of attributes at most, so they are searched linearly.
 *
 * B1  An attribute that was never written reads as count 0, and nothing is stored to its reader.
 * B2  A part lives as long as a handle or another part refers to it; parts form no circle.
 * B3  The program writes a part before it lets others refer to it. Afterwards only this library
 *     writes to it, under the lock.
 */
#include <stdlib.h>
#include <string.h>

#include "dnn.h"
#include "stream.h"

enum attribute_type { TYPE_PART = 15 };

struct attribute {
    int name, type;
    int64_t count;
    void *values; /* `count` values; for TYPE_PART: struct dnn_part * */
    struct attribute *next;
};

struct dnn_part {
    int kind;
    int references;
    struct attribute *first;
    struct dnn_part *next; /* next part to be freed, once unreferenced */
};

/* The program's handle: a descriptor. */
struct descriptor {
    struct dnn_part *part;
};

/* --- parts ---------------------------------------------------------------------------------- */

static struct dnn_part *
create_part(int kind)
{
    struct dnn_part *part = calloc(1, sizeof *part);
    if (part)
        *part = (struct dnn_part){.kind = kind, .references = 1};
    return part;
}

static struct dnn_part *
retain(struct dnn_part *part)
{
    __atomic_fetch_add(&part->references, 1, __ATOMIC_RELAXED);
    return part;
}

/* Drop a reference. If it was the last, push the part to the list `doomed`. Returns the list. */
static struct dnn_part *
doom(struct dnn_part *part, struct dnn_part *doomed)
{
    if (__atomic_sub_fetch(&part->references, 1, __ATOMIC_ACQ_REL) > 0)
        return doomed;
    part->next = doomed;
    return part;
}

static struct dnn_part *
free_attribute(struct attribute *attribute, struct dnn_part *doomed)
{
    struct dnn_part **parts = attribute->values;
    for (int64_t i = 0; attribute->type == TYPE_PART && i < attribute->count; i++)
        doomed = doom(parts[i], doomed);
    free(attribute->values);
    free(attribute);
    return doomed;
}

/* Free the parts of a list, and those that only they referred to. */
static void
free_parts(struct dnn_part *doomed)
{
    while (doomed) {
        struct dnn_part *part = doomed;
        doomed = part->next;
        for (struct attribute *a = part->first, *next; a; a = next) {
            next = a->next;
            doomed = free_attribute(a, doomed);
        }
        free(part);
    }
}

static void
release(struct dnn_part *part)
{
    free_parts(doom(part, NULL));
}

/* --- attributes ----------------------------------------------------------------------------- */

/* Return the bytes of a value; the table is in the order of cuDNN's type numbers. */
static size_t
value_size(int type)
{
    static const unsigned char sizes[] = {
        8, 4, 1, 8, 4, 8, 8, 4, 4, 4, 4, 4, 4, 4, 4, 8, 4, 4, 4, 4, 4, 4, 4, 4, 1, 4, 16,
    };
    return type >= 0 && type < (int)sizeof sizes ? sizes[type] : 4;
}

static struct attribute *
find(const struct dnn_part *part, int name)
{
    struct attribute *a = part->first;
    while (a && a->name != name)
        a = a->next;
    return a;
}

static void
drop(struct dnn_part *part, int name)
{
    struct attribute **at = &part->first;
    while (*at && (*at)->name != name)
        at = &(*at)->next;
    struct attribute *old = *at;
    if (!old)
        return;
    *at = old->next;
    free_parts(free_attribute(old, NULL));
}

/* Write an attribute, replacing its old value. `values` are copied; parts are retained. */
static int
put(struct dnn_part *part, int name, int type, int64_t count, const void *values)
{
    size_t bytes = (size_t)count * value_size(type);
    struct attribute *made = malloc(sizeof *made);
    void *copy = calloc(1, bytes ? bytes : 1);
    if (!made || !copy) {
        free(made);
        free(copy);
        return DNN_NO_HOST_MEMORY;
    }
    if (bytes)
        memcpy(copy, values, bytes);
    for (int64_t i = 0; type == TYPE_PART && i < count; i++)
        retain(((struct dnn_part **)copy)[i]);
    drop(part, name);
    *made = (struct attribute){name, type, count, copy, part->first};
    part->first = made;
    return DNN_OK;
}

/* Write the parts that descriptors refer to, up to the first NULL descriptor. */
static int
put_descriptors(struct dnn_part *part, int name, int64_t count,
                struct descriptor *const *descriptors)
{
    struct dnn_part **parts = calloc((size_t)count + 1, sizeof *parts);
    if (!parts)
        return DNN_NO_HOST_MEMORY;
    int64_t found = 0;
    while (found < count && descriptors[found]) {
        parts[found] = descriptors[found]->part;
        found++;
    }
    int status = put(part, name, TYPE_PART, found, parts);
    free(parts);
    return status;
}

int
dnn_part_kind(const struct dnn_part *part)
{
    return part->kind;
}

const struct dnn_part *
dnn_part_child(const struct dnn_part *part, int name, int64_t index)
{
    const struct attribute *a = find(part, name);
    if (!a || a->type != TYPE_PART || index >= a->count)
        return NULL;
    return ((struct dnn_part **)a->values)[index];
}

const int64_t *
dnn_part_numbers(const struct dnn_part *part, int name, int64_t *count)
{
    const struct attribute *a = find(part, name);
    if (!a || value_size(a->type) != sizeof(int64_t) || a->type == TYPE_PART)
        return NULL;
    *count = a->count;
    return a->values;
}

int
dnn_part_type(const struct dnn_part *part)
{
    const struct attribute *a = find(part, DNN_TENSOR_TYPE);
    int type = -1;
    if (a && a->count == 1 && value_size(a->type) == sizeof type)
        memcpy(&type, a->values, sizeof type);
    return type;
}

/* --- attributes that the library writes ----------------------------------------------------- */

enum { TYPE_INT64 = 3, TYPE_INT32 = 23 };

/*
 * Make the engine configuration that heuristics propose for their graph; its one engine
 * is number 0.
 */
static struct dnn_part *
propose(const struct dnn_part *heuristics)
{
    const struct dnn_part *graph = dnn_part_child(heuristics, DNN_HEURISTICS_GRAPH, 0);
    struct dnn_part *config = create_part(DNN_ENGINE_CONFIG);
    struct dnn_part *engine = create_part(DNN_ENGINE);
    bool is_good = config && engine;
    if (is_good) {
        put(engine, DNN_ENGINE_INDEX, TYPE_INT64, 1, &(int64_t){0});
        put(config, DNN_CONFIG_ENGINE, TYPE_PART, 1, &engine);
        if (graph)
            put(engine, DNN_ENGINE_GRAPH, TYPE_PART, 1, &graph);
    }
    if (engine)
        release(engine);
    if (config && !is_good)
        release(config);
    return is_good ? config : NULL;
}

/* Return the graph of a plan or a configuration; NULL: none was written. */
static const struct dnn_part *
get_graph(const struct dnn_part *part)
{
    const struct dnn_part *config = part, *engine;
    if (part->kind == DNN_PLAN)
        config = dnn_part_child(part, DNN_PLAN_CONFIG, 0);
    engine = config ? dnn_part_child(config, DNN_CONFIG_ENGINE, 0) : NULL;
    return engine ? dnn_part_child(engine, DNN_ENGINE_GRAPH, 0) : NULL;
}

/* Write an attribute that programs can only read. Called before each read. */
static int
complete(struct dnn_part *part, int name)
{
    int64_t bytes;
    struct dnn_part *config;
    int status;
    switch (name) {
    case DNN_HEURISTICS_RESULTS:
        config = propose(part);
        status = config ? put(part, name, TYPE_PART, 1, &config) : DNN_NO_HOST_MEMORY;
        if (config)
            release(config);
        return status;
    case DNN_PLAN_WORKSPACE:
    case DNN_CONFIG_WORKSPACE:
        bytes = (int64_t)dnn_graph_workspace(get_graph(part));
        return put(part, name, TYPE_INT64, 1, &bytes);
    case DNN_GRAPH_ENGINE_COUNT:
        return put(part, name, TYPE_INT64, 1, &(int64_t){1});
    case DNN_CONFIG_SHARED_MEMORY:
        return put(part, name, TYPE_INT32, 1, &(int32_t){0});
    default:
        return DNN_OK;
    }
}

/* --- the interface -------------------------------------------------------------------------- */

EXPORT int
cudnnBackendCreateDescriptor(int kind, struct descriptor **descriptor)
{
    *descriptor = calloc(1, sizeof **descriptor);
    struct dnn_part *part = *descriptor ? create_part(kind) : NULL;
    if (!part) {
        free(*descriptor);
        *descriptor = NULL;
        return DNN_NO_HOST_MEMORY;
    }
    (*descriptor)->part = part;
    return DNN_OK;
}

EXPORT int
cudnnBackendDestroyDescriptor(struct descriptor *descriptor)
{
    if (descriptor)
        release(descriptor->part);
    free(descriptor);
    return DNN_OK;
}

EXPORT int
cudnnBackendInitialize(struct descriptor *descriptor)
{
    (void)descriptor;
    return DNN_OK;
}

EXPORT int
cudnnBackendFinalize(struct descriptor *descriptor)
{
    (void)descriptor;
    return DNN_OK;
}

EXPORT int
cudnnBackendSetAttribute(struct descriptor *descriptor, int name, int type, int64_t count,
                         const void *values)
{
    if (!descriptor || count < 0 || (count > 0 && !values))
        return DNN_BAD_PARAM;
    if (type == TYPE_PART)
        return put_descriptors(descriptor->part, name, count, values);
    return put(descriptor->part, name, type, count, values);
}

/* Make the reader's descriptors refer to the parts of an attribute. */
static void
hand_out(const struct attribute *attribute, int64_t count,
         struct descriptor *const *descriptors)
{
    struct dnn_part **parts = attribute->values;
    for (int64_t i = 0; i < count && descriptors[i]; i++) {
        struct dnn_part *old = descriptors[i]->part;
        descriptors[i]->part = retain(parts[i]);
        release(old);
    }
}

static int
get(struct dnn_part *part, int name, int type, int64_t wanted, int64_t *count,
    void *values)
{
    int status = complete(part, name);
    if (status != DNN_OK)
        return status;
    const struct attribute *a = find(part, name);
    int64_t found = a && a->type == type ? a->count : 0;
    if (count)
        *count = found;
    found = found < wanted ? found : wanted;
    if (found <= 0 || !values)
        return DNN_OK;
    if (type == TYPE_PART)
        hand_out(a, found, values);
    else
        memcpy(values, a->values, (size_t)found * value_size(type));
    return DNN_OK;
}

EXPORT int
cudnnBackendGetAttribute(struct descriptor *descriptor, int name, int type,
                         int64_t wanted, int64_t *count, void *values)
{
    if (!descriptor)
        return DNN_BAD_PARAM;
    standin_lock();
    int status = get(descriptor->part, name, type, wanted, count, values);
    standin_unlock();
    return status;
}

EXPORT int
cudnnBackendExecute(struct dnn_handle *handle)
{
    standin_work(handle->stream);
    return DNN_OK;
}
