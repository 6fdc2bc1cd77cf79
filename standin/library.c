/* SPDX-License-Identifier: Apache-2.0 */
/* library.h explains the design. Numbers of cudaDataType are those of CUDA's library_types.h. */
#include "library.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "stream.h"

enum library_status
library_create(void **object, size_t size)
{
    *object = calloc(1, size);
    if (!*object)
        abort();
    return LIBRARY_OK;
}

enum library_status
library_work(struct library_handle *handle)
{
    standin_work(handle->stream);
    return LIBRARY_OK;
}

void
library_zero(void *result, size_t bytes)
{
    if (result && standin_find_device((uintptr_t)result) < 0)
        memset(result, 0, bytes);
}

void
library_put(void *result, const void *value, size_t bytes)
{
    standin_copy((uintptr_t)result, (uintptr_t)value, bytes);
}

enum library_status
library_put_size(int *to, int64_t size)
{
    if (size > INT_MAX)
        return LIBRARY_INVALID;
    *to = (int)size;
    return LIBRARY_OK;
}

/* The bytes of an element of each cudaDataType, and whether it is complex. */
static const struct {
    unsigned char bytes;
    bool is_complex;
} types[] = {
    [0] = {4, false},  [1] = {8, false},  [2] = {2, false},  [3] = {1, false},
    [4] = {8, true},   [5] = {16, true},  [6] = {4, true},   [7] = {2, true},
    [8] = {1, false},  [9] = {2, true},   [10] = {4, false}, [11] = {8, true},
    [12] = {4, false}, [13] = {8, true},  [14] = {2, false}, [15] = {4, true},
    [20] = {2, false}, [21] = {4, true},  [22] = {2, false}, [23] = {4, true},
    [24] = {8, false}, [25] = {16, true}, [26] = {8, false}, [27] = {16, true},
};

size_t
library_element(int type)
{
    bool is_known = type >= 0 && (size_t)type < sizeof types / sizeof *types;
    return is_known && types[type].bytes ? types[type].bytes : 1;
}

bool
library_is_complex(int type)
{
    return type >= 0 && (size_t)type < sizeof types / sizeof *types &&
           types[type].is_complex;
}
