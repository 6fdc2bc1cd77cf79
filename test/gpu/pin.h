/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_GPU_PIN_H
#define TEST_GPU_PIN_H

/* Memory of the host, registered with the GPU's driver: checks, and what it costs. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <drystone/device.h>

#include "driver.h"

#define GPU_PIN_ROWS_MAX 64

/* A size of piece, of some pages, filled by one thread or all that help. */
struct gpu_pin_row {
    const char *pages; /* "driver": cuMemHostAlloc, which fills itself */
    int is_one_thread;
    uint64_t piece_bytes;
    uint64_t fill_ns, register_ns, unpin_ns; /* medians, of the whole piece */
    /* What cuMemGetInfo took another thread meanwhile, and an event that it made. */
    uint64_t info_median_ns, info_max_ns, event_median_ns, event_max_ns;
};

struct gpu_pin {
    const struct gpu *gpu;
    struct dry_device device;
    const char *library;
    int32_t ordinal;
    uint64_t bytes_max; /* of a piece */

    /* Of a kept event, medians: on the default stream, which is idle. */
    uint64_t record_ns, query_ns;
    size_t row_count;
    struct gpu_pin_row rows[GPU_PIN_ROWS_MAX];
};

/* A line for each check on stdout; how many failed. */
int gpu_pin_suite(const struct gpu_pin *pin);
/* Fills the rows, as far as there is memory; 0, or 1 with a line on stdout. */
int gpu_pin_measure(struct gpu_pin *pin);
void gpu_pin_print(const struct gpu_pin *pin);
/* ,"pins":[...] */
void gpu_pin_write(const struct gpu_pin *pin, FILE *file);

#endif
