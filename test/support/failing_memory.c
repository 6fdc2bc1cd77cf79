/* SPDX-License-Identifier: Apache-2.0 */
#include "support/failing_memory.h"

#include <stdio.h>
#include <stdlib.h>

static void *
resize(void *self, void *old, size_t old_bytes, size_t new_bytes)
{
    struct failing_memory *fm = self;
    if (new_bytes > old_bytes) {
        fm->requests++;
        if (fm->left == 0 || fm->failed) { /* once out of memory, out of memory */
            fm->failed = true;
            return NULL;
        }
        fm->left--;
    }
    void *fresh = NULL;
    if (new_bytes == 0)
        free(old);
    else if (!(fresh = realloc(old, new_bytes)))
        abort(); /* the test machine itself has no memory */
    fm->live_bytes = fm->live_bytes - (old ? old_bytes : 0) + new_bytes;
    if (fm->live_bytes > fm->peak_bytes)
        fm->peak_bytes = fm->live_bytes;
    return fresh;
}

struct dry_memory
failing_memory_init(struct failing_memory *fm, size_t n)
{
    *fm = (struct failing_memory){.left = n};
    return (struct dry_memory){.resize = resize, .self = fm};
}

void
failing_memory_finish(struct failing_memory *fm)
{
    if (fm->live_bytes) {
        fprintf(stderr, "%zu bytes were not given back\n", fm->live_bytes);
        abort();
    }
}
