/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_PINNED_OPS_H
#define TEST_PINNED_OPS_H

/*
 * Programs on the pinned cache against a model, chosen by a seed or by bytes; a finding fails
 * the test under way, or ends the process.
 */
#include <stddef.h>
#include <stdint.h>

#include <drystone/pinned.h>

void pinned_ops_run_seed(uint64_t seed, enum dry_pinned_mode mode);
/* The first byte chooses the mode, what follows everything else. */
void pinned_ops_run_bytes(const uint8_t *data, size_t size);

#endif
