/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The destructor of a capsule. It may run while a consumer's exception is pending, and
 * Python code would lose the exception, so it is written in C. The library does not link
 * Python: both functions are looked up in the running program.
 */
#include <stddef.h>

#include <drystone/tensor.h>

#include "os/library.h"

typedef int is_valid_function(void *capsule, const char *name);
typedef void *get_pointer_function(void *capsule, const char *name);

void
dry_tensor_drop_capsule(void *capsule)
{
    static const char versioned[] = "dltensor_versioned", legacy[] = "dltensor";
    is_valid_function *is_valid =
        (is_valid_function *)dryi_library_find(NULL, "PyCapsule_IsValid");
    get_pointer_function *get_pointer =
        (get_pointer_function *)dryi_library_find(NULL, "PyCapsule_GetPointer");
    if (!is_valid || !get_pointer)
        return;
    if (is_valid(capsule, versioned)) {
        struct dry_dlpack_versioned *managed = get_pointer(capsule, versioned);
        managed->deleter(managed);
    } else if (is_valid(capsule, legacy)) {
        struct dry_dlpack_legacy *managed = get_pointer(capsule, legacy);
        managed->deleter(managed);
    }
}
