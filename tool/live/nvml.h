/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_NVML_H
#define TOOL_NVML_H

/*
 * The driver's knowledge: the devices, their memory, and how much each process has. NVML is opened
 * at run time; a machine without it has no devices. Texts are the driver's, cut to the room.
 *
 * Threads    One at a time.
 * Units      Bytes; NVML_UNKNOWN where the driver does not tell.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NVML_DEVICES_MAX 64u
#define NVML_PROCESSES_MAX 1024u /* of a device; more are not listed */
#define NVML_UNKNOWN UINT64_MAX

struct nvml_process {
    uint64_t process; /* as the machine counts processes */
    uint64_t bytes;
};

struct nvml_device {
    char name[96], uuid[48];
    uint64_t total, used;
    struct nvml_process *processes; /* of the device's own array */
    size_t process_count;
};

struct nvml;

/* Open the driver's library. NULL: there is none, or it refuses; *why says which, a constant. */
struct nvml *nvml_open(const char **why);
void nvml_close(struct nvml *nvml);

/* Ask again. A device that has gone answers NVML_UNKNOWN. Cost: two calls a device. */
void nvml_look(struct nvml *nvml);
size_t nvml_count(const struct nvml *nvml);
/* Valid until the next nvml_look(). */
const struct nvml_device *nvml_device(const struct nvml *nvml, size_t i);

#endif
