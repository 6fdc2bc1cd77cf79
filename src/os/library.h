/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_OS_LIBRARY_H
#define DRYI_OS_LIBRARY_H

/*
 * A shared library opened at run time.
 *
 * It stays in the process for good: a driver runs threads of its own, and their code must
 * not be unmapped. Opening it again is cheap.
 */

#include <stddef.h>

#include <drystone/status.h>

typedef void dryi_library_function(void);

/* Load a library by name or path. UNSUPPORTED: not loadable; `err` has the loader's
   reason. */
DRY_CHECK_RESULT enum dry_status dryi_library_open(const char *name, void **library,
                                                   struct dry_error *err);
void dryi_library_close(void *library);
/* Find a function by name, or return NULL. With `library` NULL, search the program, the
   libraries it links, and those loaded with RTLD_GLOBAL. */
dryi_library_function *dryi_library_find(void *library, const char *name);

#endif
