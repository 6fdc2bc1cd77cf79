/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_RANDOM_PROGRAM_H
#define TEST_RANDOM_PROGRAM_H

/* Programs that a seed decides, as plain traces, and settings to run them under. */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/trace.h>

/* Up to 620 requests on up to three streams, some of them in private pools; simple: one
 * stream, no pools. */
struct dry_trace *random_program_make(uint64_t seed, bool is_simple);

/* An option string for PYTORCH_CUDA_ALLOC_CONF. */
const char *random_program_conf(uint64_t seed);

#endif
