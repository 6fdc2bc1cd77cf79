/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_FUZZ_H
#define TEST_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* What libFuzzer and fuzz/standalone.c call; each fuzz/fuzz_NAME.c defines it once. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
