/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_CUDA_SHARE_H
#define DRYI_CUDA_SHARE_H

/* The calls of <drystone/device.h> that share memory with another process. */

#include "device/cuda/cuda_state.h"

enum dry_status dryi_cuda_name_range(void *self, uint64_t address,
                                     struct dry_range_name *name);
enum dry_status dryi_cuda_open_range(void *self, const struct dry_range_name *name,
                                     uint64_t *address);
enum dry_status dryi_cuda_close_range(void *self, uint64_t address);
enum dry_status dryi_cuda_export_pages(void *self, uint64_t address, size_t count,
                                       uint64_t page, int *descriptors);
enum dry_status dryi_cuda_import_pages(void *self, const int *descriptors, size_t count,
                                       uint64_t page, uint64_t *address);

#endif
