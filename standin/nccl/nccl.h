/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STANDIN_NCCL_H
#define STANDIN_NCCL_H

/*
 * NCCL: communicators of any size, of which this process is one rank.
 *
 * Every operation succeeds and is work on its stream. Messages bring what other ranks of the same
 * machine give, if it is little (nccl_mail.h). All else is as if all ranks had the data of
 * this one: an all-gather repeats this rank's part. Data of a rank that is in no process, or
 * that is much, stays as it was where it is received.
 *
 *     member    a communicator, seen by one rank
 *     slot      the part of a buffer that belongs to one rank
 *     group     operations between ncclGroupStart and ncclGroupEnd: they happen together
 *
 * NCCL's own buffers are an assumption: 688 MiB a communicator, 544 of two ranks, as measured on
 * four A100 with NVLink (NVIDIA/nccl#964), and 70 for one rank alone, as measured on an H100 with
 * NCCL 2.28.9. Their number of channels decides: slower links take less, an all-to-all among
 * eight H100 took 3.3 GB more (#1685).
 *
 * Sources   Names, numbers and documented semantics of NCCL's public header.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nccl_mail.h"
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
    bool is_split;         /* its size is an upper bound: nobody told the true one */
    uint64_t id;           /* the same for all of its ranks */
    uint64_t child_count;  /* communicators made of it */
    uint64_t buffer_bytes; /* taken from the device */
    struct nccl_box *box;  /* NULL: nothing comes from other processes */
};

/* The bytes of `count` elements of a type, as NCCL numbers them. */
uint64_t nccl_bytes(uint64_t count, int type);

#endif
