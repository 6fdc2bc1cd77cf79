/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_INTERN_H
#define DRYI_INTERN_H

/*
 * Equal byte strings become equal numbers.
 *
 * One arena of bytes, one table of (offset, hash), one open-addressing index. Ids count
 * from 0 in order of first appearance and never change. Strings, frames, stacks (arrays of
 * frame ids) and small records are all interned by this one structure; every entry begins
 * 8-byte aligned, so a record may be read in place.
 *
 * Cost: O(length) a look-up; 20 bytes an entry beside its own bytes.
 * Bound: 2^32 - 1 entries; more is reported as no memory.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>

#define DRYI_INTERN_NONE UINT32_MAX

struct dryi_intern {
    struct dry_memory memory;
    char *bytes;
    size_t byte_count, byte_capacity;
    uint64_t *begins; /* offsets into bytes; the unpadded lengths stand beside them */
    size_t begin_capacity;
    uint32_t *lengths;
    size_t length_capacity;
    uint32_t *hashes;
    size_t hash_capacity;
    uint32_t *slots; /* id + 1, 0 is empty */
    size_t slot_count;
    uint32_t count;
    uint64_t seed; /* of the hash */
};

void dryi_intern_init(struct dryi_intern *in, const struct dry_memory *memory);
void dryi_intern_finish(struct dryi_intern *in);

/* The id of these bytes, new or known; DRYI_INTERN_NONE when there is no memory. */
uint32_t dryi_intern_put(struct dryi_intern *in, const void *bytes, size_t length);

/* The id of these bytes if they are known, else DRYI_INTERN_NONE. */
uint32_t dryi_intern_find(const struct dryi_intern *in, const void *bytes, size_t length);

/*
 * The bytes of an id, followed by at least one zero byte; valid until the next put.
 * *length, if not NULL, is set.
 */
const void *dryi_intern_get(const struct dryi_intern *in, uint32_t id, size_t *length);

/* Give back the index: no more puts will come. */
void dryi_intern_seal(struct dryi_intern *in);

#endif
