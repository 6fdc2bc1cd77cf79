/* SPDX-License-Identifier: Apache-2.0 */

/* The only function in the library that prints or ends the process; see assert.h. */

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void
dryi_assert_failed(const char *file, int line, const char *invariant)
{
    fprintf(stderr, "drystone: %s:%d: broken invariant: %s\n", file, line, invariant);
    abort();
}
