/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STANDIN_NCCL_H
#define STANDIN_NCCL_H

/*
 * NCCL: communicators of any size, of which this process is one rank and no other is there.
 *
 * Every operation succeeds and is work on its stream. It leaves the data that it would leave if
 * all ranks had the data of this one: an all-gather repeats this rank's part. A rank that is
 * received from has nothing to give, so its data stays as it was.
 *
 *     member    a communicator, seen by one rank
 *     slot      the part of a buffer that belongs to one rank
 *     group     operations between ncclGroupStart and ncclGroupEnd: they happen together
 *
 * NCCL's own buffers are not accounted for: they are a constant of a card and a release.
 *
 * Sources   Names, numbers and documented semantics of NCCL's public header.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "standin.h"

enum nccl_result {
    NCCL_OK = 0,
    NCCL_CUDA_ERROR = 1,
    NCCL_SYSTEM_ERROR = 2,
    NCCL_BAD_ARGUMENT = 4
};

struct nccl_member {
    int rank, size;
    int device;
    bool is_split; /* its size is an upper bound: nobody told the true one */
};

/* The bytes of `count` elements of a type, as NCCL numbers them. */
uint64_t nccl_bytes(uint64_t count, int type);

#endif
