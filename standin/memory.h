/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STANDIN_MEMORY_H
#define STANDIN_MEMORY_H

/*
 * Memory of devices: its accounting, and address space that costs nothing until it is touched.
 *
 * Each device has one region of this process's addresses: zero pages that the kernel allocates on
 * the first write. Ranges are cut from it in steps of 2 MiB, the lowest that fits first, or
 * downwards in chunks of 32 MiB if the card's driver does so. Writes are recorded, so that zeroing
 * a block costs only what was written.
 *
 * M1  Ranges of a device do not overlap and lie in its region, sorted by address.
 * M2  used_bytes is the sum of what ranges and handles take; it never exceeds the total.
 * M3  Every byte of a region outside the dirty intervals is 0.
 * M4  The known intervals hold what a real device would: bytes from the host, zeros that were
 *     set, and what the hook computed from such. All else is a guess, mostly 0.
 *
 * Threads   The lock is held by the caller (standin.h), except for the copies.
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
    RANGE_RESERVED, /* only addresses: cuMemAddressReserve */
    RANGE_HOST,     /* cudaHostAlloc */
    RANGE_REGISTERED,
};

struct range {
    uint64_t address, size;
    enum range_kind kind;
    int device;
};

/* Allocate `size` bytes of `device` as a range of this kind, aligned to 2 MiB. */
enum cuda_error standin_alloc(int device, uint64_t size, enum range_kind kind,
                              uint64_t *address);
/* Free the range that begins at `address`. INVALID_VALUE: there is none. */
enum cuda_error standin_free(uint64_t address);
/* Record host memory that the program registered or was given. */
enum cuda_error standin_add_host(uint64_t address, uint64_t size, enum range_kind kind);
/* Return the range that contains `address`; NULL: none. */
const struct range *standin_find(uint64_t address);
/* Return the device whose region contains `address`; -1: it is a host address. */
int standin_find_device(uint64_t address);

/* Account for memory without addresses (cuMemCreate). Returns false if the device is full. */
bool standin_take(int device, uint64_t bytes);
void standin_give(int device, uint64_t bytes);
uint64_t standin_used(int device);

/* --- bytes ---------------------------------------------------------------------------------- */

/*
 * Copy `bytes`. If the target is a device and they exceed setup's `copy_bytes_max`, the
 * target is zeroed instead. Pinned memory gets pages only for what was written on a device.
 * Takes the lock.
 */
void standin_copy(uint64_t to, uint64_t from, uint64_t bytes);
void standin_set(uint64_t at, int value, uint64_t bytes);
/* Record that device memory was written, with what a real device would hold or with a guess.
   Requires the lock. */
void standin_touch(uint64_t address, uint64_t bytes, bool is_known);
/* Record that a real device would hold other bytes here, which nobody knows. Requires the lock. */
void standin_forget(uint64_t address, uint64_t bytes);
/* Return whether all these bytes are known (M4). Requires the lock. */
bool standin_knows(uint64_t address, uint64_t bytes);
/* Return what the written pages take. Requires the lock. */
uint64_t standin_dirty_bytes(void);

/* Memory of the host, of this process. */
struct host_account {
    uint64_t pinned, pinned_peak; /* bytes of RANGE_HOST and RANGE_REGISTERED */
    uint64_t
        untouched; /* bytes of `pinned` without a page here; a real driver makes all */
    uint64_t dirty_peak; /* host memory that device memory took: the written pages */
};

/* Fill the account. Requires the lock. */
void standin_account(struct host_account *account);
/* Zero device memory; only what was written costs anything. Requires the lock. */
void standin_wipe(uint64_t address, uint64_t bytes);

/* --- sets of addresses (intervals.c) --------------------------------------------------------- */

struct interval {
    uint64_t begin, end;
};

/* One array of intervals, sorted, apart from one another. */
struct intervals {
    struct interval *items;
    size_t count, capacity;
    uint64_t bytes; /* the sum of all */
};

/* Return `array` with room for one more than `count` items. Running out of memory ends the
   process. */
void *standin_grow(void *array, size_t *capacity, size_t count, size_t item);
/* Return the index of the first interval that ends after `at`. */
size_t standin_intervals_find(const struct intervals *set, uint64_t at);
void standin_intervals_add(struct intervals *set, uint64_t begin, uint64_t end);
void standin_intervals_cut(struct intervals *set, uint64_t begin, uint64_t end);
/* Return whether the set has all of [begin, end). */
bool standin_intervals_have(const struct intervals *set, uint64_t begin, uint64_t end);

#endif
