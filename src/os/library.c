/* SPDX-License-Identifier: Apache-2.0 */

/* dlopen() and dlsym(); library.h says why a library stays. */
#include "os/library.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "base/fail.h"

enum dry_status
dryi_library_open(const char *name, void **library, struct dry_error *err)
{
    void *opened = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!opened) {
        /* The text of dlerror() belongs to this thread in glibc and musl, and by POSIX
           since 2024. */
        const char *why = dlerror(); /* NOLINT(concurrency-mt-unsafe) */
        if (!why)
            why = "no reason given";
        /* glibc's messages begin with the name. */
        bool is_named = strncmp(why, name, strlen(name)) == 0;
        return dryi_fail(err, DRY_ERR_UNSUPPORTED, "cannot load %s%s%s",
                         is_named ? "" : name, is_named ? "" : ": ", why);
    }
    *library = opened;
    return DRY_OK;
}

void
dryi_library_close(void *library)
{
    if (library)
        dlclose(library);
}

dryi_library_function *
dryi_library_find(void *library, const char *name)
{
    void *symbol = dlsym(library, name);
    dryi_library_function *function = NULL;
    memcpy(&function, &symbol, sizeof function); /* ISO C has no cast between the two */
    return function;
}
