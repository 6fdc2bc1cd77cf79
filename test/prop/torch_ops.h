/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_TORCH_OPS_H
#define TEST_TORCH_OPS_H

/*
 * Bytes as a program that uses place/torch.
 *
 * The first OPS_HEADER bytes choose options, rules, device and addresses; each three
 * bytes after them are one call. torch_ops_run() makes every call on the real place over
 * the simulated device and on the naive model (torch_model.h), compares status, address,
 * events, all statistics and the whole layout after each, and has the place check its own
 * invariants. At the first difference it says what differs and aborts.
 *
 * Any bytes are a valid program, so the same function serves the property test, the
 * fuzzer and the files of test/corpus/torch_ops/. DRY_OPS_TRACE=1 in the environment
 * prints calls.
 */

#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>

#define OPS_HEADER 8

void torch_ops_run(const uint8_t *data, size_t size);

/*
 * The same program on the place alone, with `memory` for its records and its device:
 * calls may fail for want of memory, and then nothing may have changed. With `call` <
 * UINT64_MAX, the call-th device call that can fail does.
 */
void torch_ops_run_alone(const uint8_t *data, size_t size,
                         const struct dry_memory *memory, uint64_t call);

#endif
