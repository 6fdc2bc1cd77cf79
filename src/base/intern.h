/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_INTERN_H
#define DRYI_INTERN_H

/*
 * Map equal byte strings to equal ids.
 *
 * Ids count from 0 in order of first appearance and never change. Strings, frames, stacks (arrays
 * of frame ids) and small records use this structure. All bytes are in one array. Every entry
 * begins 8-byte aligned, so a record can be read in place.
 *
 * Cost: O(length) per look-up; 20 bytes per entry, plus its own bytes. Limit: 2^32 - 1 entries;
 * beyond that, a put fails as if memory had run out.
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
    uint64_t *begins; /* each entry's offset into bytes, 8-byte aligned */
    size_t begin_capacity;
    uint32_t *lengths;
    size_t length_capacity;
    uint32_t *hashes;
    size_t hash_capacity;
    uint32_t *slots; /* hash table of id + 1; 0 marks an empty slot */
    size_t slot_count;
    uint32_t count;
    uint64_t seed; /* the hash's seed, derived from the object's address */
};

void dryi_intern_init(struct dryi_intern *in, const struct dry_memory *memory);
void dryi_intern_finish(struct dryi_intern *in);

/* Return the id of these bytes; add them if they are new. DRYI_INTERN_NONE: out of memory. */
uint32_t dryi_intern_put(struct dryi_intern *in, const void *bytes, size_t length);

/* Return the id of these bytes, DRYI_INTERN_NONE if they were never put. */
uint32_t dryi_intern_find(const struct dryi_intern *in, const void *bytes, size_t length);

/* Return the bytes of an id, followed by at least one zero byte. They are valid until the next put.
   Sets *length unless `length` is NULL. */
const void *dryi_intern_get(const struct dryi_intern *in, uint32_t id, size_t *length);

/* Free the index. No put may follow; look-ups then scan all entries. */
void dryi_intern_seal(struct dryi_intern *in);

#endif
