/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STANDIN_SETUP_H
#define STANDIN_SETUP_H

/*
 * The card to emulate: its model, the number of devices, and how time passes. Read once in a
 * process from DRYSTONE_STANDIN, "name=NVIDIA H100;total=85017755648;capability=9.0;...". Unknown
 * keys end the process, because a wrong card would give wrong results.
 */

#include <stdbool.h>
#include <stdint.h>

struct standin_setup {
    char name[64];
    int device_count;
    uint64_t total_bytes;   /* the total of cudaMemGetInfo */
    uint64_t limit_bytes;   /* the bytes that a device gives; 0: total_bytes */
    uint64_t context_bytes; /* taken before the program's first allocation */
    int major, minor;       /* compute capability */
    int sm_count;
    int threads_per_sm;
    uint64_t shared_per_sm, shared_per_block, shared_per_block_max; /* bytes */
    uint64_t l2_bytes;
    int cuda_version;        /* result of cudaRuntimeGetVersion: 13020 */
    int cudnn_version;       /* result of cudnnGetVersion: 92600 */
    int nccl_version;        /* result of ncclGetVersion: 23007 */
    bool is_descending;      /* later allocations have lower addresses */
    bool is_late;            /* work completes only when the program waits for it */
    bool pins;               /* registered host memory is locked (mlock) */
    uint64_t copy_bytes_max; /* larger copies to a device zero their target */
    char report[4096];       /* file prefix of the report at exit; "": no report */
};

const struct standin_setup *standin_setup(void);

#endif
