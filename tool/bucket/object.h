/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_OBJECT_H
#define TOOL_OBJECT_H

/*
 * An object of a store, read from its first byte to its last without a copy on disk.
 *
 * After a temporary network failure, reading resumes at the same byte of the same version
 * (ETag), or fails. So an object that was read to its end is, byte for byte, one version
 * of the object.
 *
 * Ownership  open / close.
 * Errors     SYSTEM: store or network; FORMAT: name or environment; UNSUPPORTED: this
 *            build or system has no libcurl. The text tells the reason, but no secrets.
 * Memory     Less than 4 MiB, whatever the object's size, plus libcurl and what it loads.
 * Threads    One at a time for an object.
 */

#include <stddef.h>
#include <stdint.h>

#include <drystone/status.h>

struct object;

/* Open s3://BUCKET/KEY (object_name.h). bucket.h tells how the store is found. */
DRY_CHECK_RESULT enum dry_status object_open(const char *path, struct object **object,
                                             struct dry_error *err);
uint64_t object_get_bytes(const struct object *object);
/* Return a hash of the version's ETag, which changes with the object. */
uint64_t object_get_stamp(const struct object *object);
/* Read 1 to `capacity` bytes; *got is 0 at the end. */
DRY_CHECK_RESULT enum dry_status object_read(struct object *object, void *buffer,
                                             size_t capacity, size_t *got,
                                             struct dry_error *err);
/* Close an object, which may be NULL. */
void object_close(struct object *object);

#endif
