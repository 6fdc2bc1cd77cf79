/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STANDIN_SETUP_H
#define STANDIN_SETUP_H

/*
 * The thing that is stood in for: the card, how many of it, how time passes. Read once a process from
 * DRYSTONE_STANDIN, "name=NVIDIA H100;total=85017755648;capability=9.0;...": words that are not
 * known are an error that ends the process, for a wrong card would be a wrong answer.
 */

#include <stdbool.h>
#include <stdint.h>

struct standin_setup {
    char name[64];
    int device_count;
    uint64_t total_bytes;   /* as cudaMemGetInfo says */
    uint64_t context_bytes; /* taken before the program's first allocation */
    int major, minor;       /* compute capability */
    int sm_count;
    int threads_per_sm;
    uint64_t shared_per_sm, shared_per_block, shared_per_block_max; /* bytes */
    uint64_t l2_bytes;
    int cuda_version;        /* as cudaRuntimeGetVersion says: 13020 */
    int cudnn_version;       /* as cudnnGetVersion says: 92600 */
    int nccl_version;        /* as ncclGetVersion says: 23007 */
    bool is_descending;      /* later allocations lie lower */
    bool is_late;            /* work is done only when somebody waits for it */
    bool pins;               /* memory of the host that is registered is locked (mlock) */
    uint64_t copy_bytes_max; /* a copy beyond it brings nothing */
    char report[4096];       /* where what was called is written at exit; "": nowhere */
};

const struct standin_setup *standin_setup(void);

#endif
