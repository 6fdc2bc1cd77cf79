/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STANDIN_NCCL_H
#define STANDIN_NCCL_H

/*
 * NCCL: communicators of any size, of which this process is one rank.
 *
 * Every operation succeeds and is work on its stream. Messages carry small data between
 * ranks on the same machine (nccl_mail.h). Otherwise results are as if all ranks had this
 * rank's data: an all-gather repeats this rank's slot. If the sender does not exist, or
 * the data is large, the receiver's buffer keeps its bytes, which are unknown from then on.
 *
 *     member    a communicator, as one rank sees it
 *     slot      the range of a buffer that belongs to one rank
 *     group     operations between ncclGroupStart and ncclGroupEnd: they happen together
 *
 * What NCCL takes for itself is an assumption: 70 MiB for a process's first communicator on
 * a device, as measured on an H100 with one rank and NCCL 2.28.9; then what was measured on
 * four A100 with NVLink (NVIDIA/nccl#964), 688 MiB a communicator, 544 of two ranks, less
 * these 70. Since NCCL 2.22 a communicator connects at its first operation, and takes its
 * buffers then. One rank alone has none. Their number of channels decides: slower links take
 * less, an all-to-all among eight H100 took 3.3 GB more (#1685).
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
    bool is_split;         /* `size` is an upper bound: the true size is unknown */
    uint64_t id;           /* the same for all of its ranks */
    uint64_t child_count;  /* communicators derived from it */
    uint64_t buffer_bytes; /* taken from the device, once it is connected */
    struct nccl_box *box;  /* NULL: no messages with other processes */
};

/* Return the bytes of `count` elements of a type, by NCCL's type numbers. */
uint64_t nccl_bytes(uint64_t count, int type);

/* Connect a communicator at its first operation, and put work on the stream. Returns NCCL_OK, or
   NCCL_CUDA_ERROR if the device is full. */
int nccl_work(struct nccl_member *member, void *stream);

#endif
