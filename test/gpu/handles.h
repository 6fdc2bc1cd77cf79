/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_GPU_HANDLES_H
#define TEST_GPU_HANDLES_H

/* What handles of several sizes cost the driver, and how fast memory mapped by them is. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "driver.h"

#define GPU_HANDLE_SIZES 3

enum gpu_handle_call {
    GPU_HANDLE_CREATE,
    GPU_HANDLE_MAP,
    GPU_HANDLE_ACCESS,
    GPU_HANDLE_UNMAP,
    GPU_HANDLE_RELEASE,
    GPU_HANDLE_CALLS
};

/* Medians; 0: not to be had. */
struct gpu_handle_row {
    uint64_t handle_bytes;
    uint64_t call_ns[GPU_HANDLE_CALLS];
    uint64_t span_bytes;              /* of each of two spans of whole handles */
    uint64_t copy_ns, set_ns;         /* of one span to the other, of one span */
    uint64_t touch_ns, touched_count; /* 64 bytes each 2 MiB */
};

struct gpu_handles {
    const struct gpu *gpu;
    uint64_t span_bytes; /* at most */
    struct gpu_handle_row rows[GPU_HANDLE_SIZES];
};

/* Fill the rows, as far as there is memory. */
void gpu_handles_measure(struct gpu_handles *handles);
void gpu_handles_print(const struct gpu_handles *handles);
/* Write ,"handles":[...]. */
void gpu_handles_write(const struct gpu_handles *handles, FILE *file);

#endif
