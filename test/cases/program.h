/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_CASES_PROGRAM_H
#define TEST_CASES_PROGRAM_H

/*
 * A program that takes and gives back tensors by PyTorch's rules, and is recorded.
 *
 *     program_in(p, "train_step@train.py:58; main@train.py:131");
 *     program_at(p, "linear@model.py:63");
 *     uint32_t x = program_take(p, 64 * MIB);
 *     program_at(p, "forward@model.py:70");
 *     program_give(p, x);
 *
 * Where a request comes from is a state: `program_in` names the outer frames, `program_at`
 * the inner ones, innermost first, as "name@file:line" with "; " between. Stream, pool,
 * metadata and time are states too.
 *
 * The first request that fails ends the program: from then on takes answer NO_TENSOR and
 * everything else does nothing, so that a script needs no checks beyond leaving its loops.
 * Then program_unwind() does what an exception does to local variables. A lack of host
 * memory is kept and comes out of case_make().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/cause.h>

#include "support/random.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

#define NO_TENSOR UINT32_MAX

struct program;

/* Whether there was an OOM (or no host memory), so that loops can end. */
bool program_is_over(const struct program *p);

void program_in(struct program *p, const char *outer_frames);
void program_at(struct program *p, const char *inner_frames);
/* As the autograd thread does: C++ frames alone, and those of the forward pass if the program
   detects anomalies. */
void program_at_backward_of(struct program *p, const char *forward_frames);

uint32_t program_take(struct program *p, uint64_t bytes);
void program_give(struct program *p, uint32_t tensor);
/* The same for `count` tensors from the last to the first; each becomes NO_TENSOR. */
void program_give_all(struct program *p, uint32_t *tensors, size_t count);
/* Referenced from outside the functions that unwind: a model, an optimizer, a cache. */
uint32_t program_keep(struct program *p, uint32_t tensor);

void program_on(struct program *p, uint64_t stream); /* takes are for this stream */
void program_record_stream(struct program *p, uint32_t tensor, uint64_t stream);
void program_finish_stream(struct program *p, uint64_t stream);

void program_empty_cache(struct program *p);
void program_begin_pool(struct program *p, uint64_t a, uint64_t b);
void program_end_pool(struct program *p, uint64_t a, uint64_t b);

void program_tag(struct program *p, const char *user_metadata); /* "" for none */
void program_begin_scope(struct program *p, const char *name);  /* record_function */
void program_end_scope(struct program *p, const char *name);
void program_wait(struct program *p, int64_t us);
void program_end_step(struct program *p);

/* Go on on the next device, from the beginning of time: devices ran side by side. */
void program_next_device(struct program *p);

/* After an OOM: locals go, the youngest first; with `all`, kept tensors too. */
void program_unwind(struct program *p, bool all);

/* Then: the program has caught the exception and goes on. */
void program_catch(struct program *p);

struct random *program_random(struct program *p);
/* Return the variant of the case, and whether the program is the twin without the cause. */
unsigned program_variant(const struct program *p);
bool program_is_without(const struct program *p, enum dry_cause cause);

#endif
