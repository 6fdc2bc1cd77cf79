/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An NVML with the devices and processes that a file tells of, DRY_TEST_NVML:
 *
 *     device TOTAL USED UUID NAME
 *     process DEVICE PID BYTES
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define DEVICES_MAX 8
#define USES_MAX 512

struct memory {
    unsigned long long total, free, used;
};

struct use {
    unsigned process;
    unsigned long long bytes;
    unsigned instance, compute_instance;
};

static struct device {
    struct memory memory;
    char uuid[64], name[64];
    struct use uses[USES_MAX];
    unsigned use_count;
} devices[DEVICES_MAX];
static unsigned device_count;

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlShutdown(void);
EXPORT int nvmlDeviceGetCount_v2(unsigned *count);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle);
EXPORT int nvmlDeviceGetName(const struct device *device, char *text, unsigned room);
EXPORT int nvmlDeviceGetUUID(const struct device *device, char *text, unsigned room);
EXPORT int nvmlDeviceGetMemoryInfo(const struct device *device, struct memory *memory);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(const struct device *device,
                                                   unsigned *count, struct use *uses);

static void
read_line(const char *line)
{
    struct device d = {0};
    struct use u = {0};
    unsigned at;
    if (device_count < DEVICES_MAX &&
        sscanf(line, "device %llu %llu %63s %63[^\n]", &d.memory.total, &d.memory.used,
               d.uuid, d.name) == 4)
        devices[device_count++] = d;
    else if (sscanf(line, "process %u %u %llu", &at, &u.process, &u.bytes) == 3 &&
             at < device_count && devices[at].use_count < USES_MAX)
        devices[at].uses[devices[at].use_count++] = u;
}

int
nvmlInit_v2(void)
{
    char line[256];
    const char *path = getenv("DRY_TEST_NVML");
    FILE *file = path ? fopen(path, "re") : NULL;
    if (!file)
        return 1;
    while (fgets(line, sizeof line, file))
        read_line(line);
    fclose(file);
    return 0;
}

int
nvmlShutdown(void)
{
    return 0;
}

int
nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = device_count;
    return 0;
}

int
nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle)
{
    *handle = &devices[index];
    return 0;
}

int
nvmlDeviceGetName(const struct device *device, char *text, unsigned room)
{
    snprintf(text, room, "%s", device->name);
    return 0;
}

int
nvmlDeviceGetUUID(const struct device *device, char *text, unsigned room)
{
    snprintf(text, room, "%s", device->uuid);
    return 0;
}

int
nvmlDeviceGetMemoryInfo(const struct device *device, struct memory *memory)
{
    *memory = device->memory;
    return 0;
}

int
nvmlDeviceGetComputeRunningProcesses_v3(const struct device *device, unsigned *count,
                                        struct use *uses)
{
    memcpy(uses, device->uses, device->use_count * sizeof *uses);
    *count = device->use_count;
    return 0;
}
