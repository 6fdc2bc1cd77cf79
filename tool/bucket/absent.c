/* SPDX-License-Identifier: Apache-2.0 */
/* Replace object.c in builds without expat or libcurl's headers: opening fails. */
#include "base/fail.h"
#include "bucket/listing.h"
#include "bucket/object.h"

static enum dry_status
refuse(struct dry_error *err)
{
    return fail_at(err, DRY_ERR_UNSUPPORTED, DRY_NO_OFFSET,
                   "this build reads no objects, which expat and libcurl's headers are "
                   "needed for");
}

enum dry_status
object_open(const char *path, struct object **object, struct dry_error *err)
{
    (void)path;
    (void)object;
    return refuse(err);
}

uint64_t
object_get_bytes(const struct object *object)
{
    (void)object;
    return 0;
}

uint64_t
object_get_stamp(const struct object *object)
{
    (void)object;
    return 0;
}

enum dry_status
object_read(struct object *object, void *buffer, size_t capacity, size_t *got,
            struct dry_error *err)
{
    (void)object;
    (void)buffer;
    (void)capacity;
    *got = 0;
    return refuse(err);
}

void
object_close(struct object *object)
{
    (void)object;
}

enum dry_status
listing_visit(const struct listing *listing, struct dry_error *err)
{
    (void)listing;
    return refuse(err);
}
