/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_OS_LIBRARY_H
#define DRYI_OS_LIBRARY_H

/*
 * A shared library opened at run time.
 *
 * It stays in the process for good: drivers run threads and handlers of their own, and code
 * that such a thread stands in must not go away. Opening it again is cheap.
 */

#include <stddef.h>

#include <drystone/status.h>

typedef void dryi_library_function(void);

/* UNSUPPORTED with the loader's reason in err. */
DRY_CHECK_RESULT enum dry_status dryi_library_open(const char *name, void **library,
                                                   struct dry_error *err);
void dryi_library_close(void *library);
/*
 * Find a function; NULL if there is none of this name. `library` NULL: of all that the program
 * itself links and loads for everybody.
 */
dryi_library_function *dryi_library_find(void *library, const char *name);

#endif
