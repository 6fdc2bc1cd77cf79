/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FNV_H
#define TOOL_FNV_H

/*
 * FNV-1a, 64 bits: a hash of short texts for stamps and fingerprints. It is not
 * collision-resistant against an attacker. record/byte_hash.h hashes whole files.
 *
 *     hash = fnv_add(FNV_BEGIN, bytes, count);
 *     hash = fnv_add(hash, more, more_count);
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FNV_BEGIN UINT64_C(0xcbf29ce484222325)

static inline uint64_t
fnv_add(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static inline uint64_t
fnv_add_text(uint64_t hash, const char *text)
{
    return fnv_add(hash, text, strlen(text));
}

#endif
