/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_GPU_SUITE_H
#define TEST_GPU_SUITE_H

#include <drystone/device.h>

#include "driver.h"

/* Run every check; how many failed. A line each on stdout. */
int gpu_suite(const struct gpu *gpu, struct dry_device device);

#endif
