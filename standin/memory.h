/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STANDIN_MEMORY_H
#define STANDIN_MEMORY_H

/*
 * Memory of devices: an account, and address space that costs nothing until it is touched.
 *
 * Each device has one region of addresses of this process, zero pages that the kernel makes when
 * something is written. Ranges are cut from it in steps of 2 MiB, the lowest that fits first, or
 * downwards in chunks of 32 MiB where the card's driver does so. Writes are noted, so that a
 * block that is handed out again can be made zero at the price of what was written alone.
 *
 * M1  Ranges of a device do not overlap and lie in its region, sorted by address.
 * M2  used_bytes is the sum of what ranges and handles take; it never exceeds the total.
 * M3  Every byte of a region outside the dirty intervals is 0.
 *
 * Threads   The lock is held by the caller (standin.h), but for the copies.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "standin.h"

#define STANDIN_PAGE (UINT64_C(2) << 20)

enum range_kind {
    RANGE_DEVICE,   /* cudaMalloc */
    RANGE_MANAGED,  /* cudaMallocManaged */
    RANGE_POOLED,   /* cudaMallocAsync */
    RANGE_RESERVED, /* addresses alone, cuMemAddressReserve */
    RANGE_HOST,     /* cudaHostAlloc */
    RANGE_REGISTERED,
};

struct range {
    uint64_t address, size;
    enum range_kind kind;
    int device;
};

/* Take `size` bytes of `device` as a range of this kind; the address is a multiple of 2 MiB. */
enum cuda_error standin_alloc(int device, uint64_t size, enum range_kind kind,
                              uint64_t *address);
/* Give the range back that begins at `address`. INVALID_VALUE: none does. */
enum cuda_error standin_free(uint64_t address);
/* Note memory of the host that the program registered or was given. */
enum cuda_error standin_add_host(uint64_t address, uint64_t size, enum range_kind kind);
/* The range that contains `address`; NULL: none. */
const struct range *standin_find(uint64_t address);
/* The device whose region contains `address`; -1: it is the host's. */
int standin_device_of(uint64_t address);

/* Account for memory without addresses (cuMemCreate). False: there is not so much. */
bool standin_take(int device, uint64_t bytes);
void standin_give(int device, uint64_t bytes);
uint64_t standin_used(int device);

/* --- bytes ---------------------------------------------------------------------------------- */

/*
 * Copy. Between devices, or to one, not more than setup's `copy_bytes_max`: a larger copy
 * leaves zeros. The lock is not held.
 */
void standin_copy(uint64_t to, uint64_t from, uint64_t bytes);
void standin_set(uint64_t at, int value, uint64_t bytes);
/* Note that memory of a device was written. The lock is held. */
void standin_touch(uint64_t address, uint64_t bytes);
/* Make memory of a device zero; only what was written costs anything. The lock is held. */
void standin_wipe(uint64_t address, uint64_t bytes);

#endif
