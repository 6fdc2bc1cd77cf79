/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_OBJECT_NAME_H
#define TOOL_OBJECT_NAME_H

/*
 * Split the name of an object, s3://BUCKET/KEY. A bucket is a store's top folder, and an
 * object is a file in it. A key has any bytes but zero, and the name has them without
 * escapes.
 *
 * Threads    Any.
 */

#include <stdbool.h>

#include <drystone/status.h>

#define OBJECT_BUCKET_BYTES 256

struct object_name {
    char bucket[OBJECT_BUCKET_BYTES]; /* letters, digits; inside also ".", "-", "_" */
    const char *key; /* points into the text that was split; "" if none */
};

/* Return true if a path begins with s3://. A local folder "s3:" must be "./s3:". */
bool object_is_name(const char *path);

/* Split a path. Returns FORMAT if the bucket's name is invalid. */
DRY_CHECK_RESULT enum dry_status object_name_split(const char *path,
                                                   struct object_name *name,
                                                   struct dry_error *err);

#endif
