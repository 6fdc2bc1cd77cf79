/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_NATIVE_H
#define TEST_NATIVE_H

/*
 * PyTorch's own caching allocator, the "native" backend as its wheels carry it, on a device of
 * ours: what place/torch has to be equal to, and what the benches print beside it.
 *
 * native_start() once in a process, which it lasts as long as. One thread but for alloc and
 * free, which several may call at once where the device allows it. Streams are 0 and multiples
 * of 8: PyTorch takes other numbers for its own.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <drystone/pool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ends the process where what has to be is not. */
static inline void
native_need(int condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "native: %s\n", what);
    exit(2);
}

/* The device of the stand-in runtime; before native_start(). */
void native_set_device(struct dry_device device);
/* What the stand-in driver says to whatever it does not do. */
int native_refuse(void);

/* With these options (PYTORCH_CUDA_ALLOC_CONF). ARGUMENT: PyTorch refused them. */
enum dry_status native_start(const char *conf);

/* NO_SPACE: out of memory; SYSTEM: anything else that PyTorch threw. */
enum dry_status native_alloc(uint64_t size, uint64_t stream, uint64_t *address);
void native_free(uint64_t address);
void native_record_stream(uint64_t address, uint64_t stream);
/* Before 2.8 not while a private pool is begun: it ends the process. */
void native_empty_cache(void);
void native_set_fraction(double fraction);

/*
 * Made if it is not there, with those of these flags of <drystone/pool.h> that this release has,
 * which are returned; a user more.
 */
unsigned native_open_pool(struct dry_pool_id id, unsigned flags);
/* All streams' requests go to it; a user more. */
void native_begin_pool(struct dry_pool_id id);
void native_end_pool(struct dry_pool_id id);
/* A user less. */
void native_release_pool(struct dry_pool_id id);

void native_reset_peaks(void);
/* What this release does not count is left alone. */
void native_get_stats(struct dry_stats *stats);

/* As dry_pool_walk(); contexts are DRY_NONE. */
void native_walk(void (*visit)(void *self, const struct dry_pool_segment *segment,
                               const struct dry_pool_part *parts, size_t count),
                 void *self);

/* What PyTorch said when something failed last. */
const char *native_last_text(void);

#ifdef __cplusplus
}
#endif

#endif
