/* SPDX-License-Identifier: Apache-2.0 */
/* The idea is in object_name.h. A bucket's name becomes part of a host or a path. */
#include "bucket/object_name.h"

#include <string.h>

#include "base/fail.h"

static const char scheme[] = "s3://";
static const char alnum[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

bool
object_is_name(const char *path)
{
    return strncmp(path, scheme, sizeof scheme - 1) == 0;
}

static bool
is_bucket(const char *bytes, size_t length)
{
    size_t used = 0;
    if (length < 1 || length >= OBJECT_BUCKET_BYTES || !strchr(alnum, bytes[0]))
        return false;
    while (used < length && (strchr(alnum, bytes[used]) || strchr(".-_", bytes[used])))
        used++;
    return used == length;
}

enum dry_status
object_name_split(const char *path, struct object_name *name, struct dry_error *err)
{
    const char *bucket = path + sizeof scheme - 1;
    size_t length = strcspn(bucket, "/");
    if (!object_is_name(path) || !is_bucket(bucket, length))
        return fail_at(err, DRY_ERR_FORMAT, DRY_NO_OFFSET,
                       "no name of an object: s3://BUCKET/KEY was expected, a bucket of "
                       "letters, digits, \".\", \"-\" and \"_\"");
    memcpy(name->bucket, bucket, length);
    name->bucket[length] = '\0';
    name->key = bucket + length + (bucket[length] == '/');
    return DRY_OK;
}
