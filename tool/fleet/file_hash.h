/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FILE_HASH_H
#define TOOL_FILE_HASH_H

#include <stdint.h>

/*
 * Hash the bytes of the file at `path` by XXH64 with seed 0, as `xxhsum -H64` does; *length
 * counts them. Equal files are found, no forger is stopped: compare the length as well. A file
 * that cannot be read is as far as it could be. Cost: a reading of the file, from the cache if
 * it was just read or will be.
 */
uint64_t file_hash(const char *path, uint64_t *length);

#endif
