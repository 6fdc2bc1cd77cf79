/* SPDX-License-Identifier: Apache-2.0 */

/* The idea stands in assert.h: the one place where the library prints, and where it ends. */

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void
dryi_assert_failed(const char *file, int line, const char *invariant)
{
    fprintf(stderr, "drystone: %s:%d: broken invariant: %s\n", file, line, invariant);
    abort();
}
