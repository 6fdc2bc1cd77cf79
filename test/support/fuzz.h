/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_FUZZ_H
#define TEST_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/*
 * Run one input. libFuzzer and fuzz/standalone.c call this; each fuzz/fuzz_NAME.c defines
 * it once.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Bytes as choices: the things made of them are small and mean something. */
struct fuzz_bytes {
    const uint8_t *data;
    size_t left;
};

/* Take the next byte; 0 when they are used up. */
static inline uint8_t
fuzz_next_byte(struct fuzz_bytes *in)
{
    if (!in->left)
        return 0;
    in->left--;
    return *in->data++;
}

static inline void
fuzz_require(bool condition)
{
    if (!condition)
        abort();
}

#endif
