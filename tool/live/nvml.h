/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_NVML_H
#define TOOL_NVML_H

/*
 * The driver's view: devices, their memory, and the memory of each process. NVML is
 * loaded at run time; without NVML there are no devices. Texts are truncated to the
 * arrays.
 *
 * Threads    One at a time.
 * Units      Bytes; NVML_UNKNOWN if the driver does not report a value.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NVML_DEVICES_MAX 64u
#define NVML_PROCESSES_MAX 1024u /* per device; further ones are not listed */
#define NVML_UNKNOWN UINT64_MAX

struct nvml_process {
    uint64_t process; /* process ID in the initial namespace */
    uint64_t bytes;
};

struct nvml_device {
    char name[96], uuid[48];
    uint64_t total, used;
    struct nvml_process *processes; /* owned by the device */
    size_t process_count;
};

struct nvml;

/* Load and initialize NVML. NULL: absent or refused; *why is a constant text. */
struct nvml *nvml_open(const char **why);
void nvml_close(struct nvml *nvml);

/* Read all devices again. A device that has disappeared reports NVML_UNKNOWN. Cost: two
   calls per device. */
void nvml_sample(struct nvml *nvml);
size_t nvml_count(const struct nvml *nvml);
/* Return device `i`, valid until the next nvml_sample(). */
const struct nvml_device *nvml_device(const struct nvml *nvml, size_t i);

#endif
