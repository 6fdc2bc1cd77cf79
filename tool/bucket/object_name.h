/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_OBJECT_NAME_H
#define TOOL_OBJECT_NAME_H

/*
 * The name of an object: s3://BUCKET/KEY. A bucket is a store's folder, an object a file in it,
 * its key any bytes but zero. The key stands in the name as it is, without escapes.
 *
 * Threads    Any.
 */

#include <stdbool.h>

#include <drystone/status.h>

#define OBJECT_BUCKET_BYTES 256

struct object_name {
    char
        bucket[OBJECT_BUCKET_BYTES]; /* letters, digits, and ".", "-", "_" between them */
    const char *key;                 /* the end of the text that was split; "": none */
};

/* Tell whether a path is such a name, right or wrong. A folder "s3:" is "./s3:". */
bool object_is_name(const char *path);

/* FORMAT: the bucket's name is none. */
DRY_CHECK_RESULT enum dry_status object_name_split(const char *path,
                                                   struct object_name *name,
                                                   struct dry_error *err);

#endif
