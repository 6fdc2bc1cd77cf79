/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_OBJECT_H
#define TOOL_OBJECT_H

/*
 * An object of a store, read from its first byte to its last without a copy on disk.
 *
 * A failure of the network that may pass is mended: reading goes on at the byte that was
 * reached, of the same version of the object (its ETag), or fails. So an object that was read
 * to its end is, byte for byte, what it was at one time.
 *
 * Ownership  open / close.
 * Errors     SYSTEM: the store, the network; FORMAT: the name, the environment; UNSUPPORTED:
 *            this build or this system has no libcurl. The text says it all; it has no
 *            secrets.
 * Memory     Less than 4 MiB beside libcurl and what libcurl opens, whatever the object.
 * Threads    One at a time. Objects are apart.
 */

#include <stddef.h>
#include <stdint.h>

#include <drystone/status.h>

struct object;

/* `path` is s3://BUCKET/KEY, see object_name.h; bucket.h says where it is sought. */
DRY_CHECK_RESULT enum dry_status object_open(const char *path, struct object **object,
                                             struct dry_error *err);
uint64_t object_get_bytes(const struct object *object);
/* Return a hash of its version's name: another one after a change. */
uint64_t object_get_stamp(const struct object *object);
/* Sets *got to 1..capacity bytes, or to 0 at the end. */
DRY_CHECK_RESULT enum dry_status object_read(struct object *object, void *buffer,
                                             size_t capacity, size_t *got,
                                             struct dry_error *err);
/* NULL is fine. */
void object_close(struct object *object);

#endif
