/* SPDX-License-Identifier: Apache-2.0 */

/*
 * NVML with the devices of a text file, named by DRY_TEST_NVML and read at each call:
 *
 *     device NAME UUID TOTAL USED     ('_' for spaces)
 *     process DEVICE PID BYTES
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES_MAX 16
#define PROCESSES_MAX 64
#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, TOO_SMALL = 7, UNKNOWN = 999 };

struct memory {
    unsigned long long total, free, used;
};

struct process {
    unsigned pid;
    unsigned long long bytes;
    unsigned instance, compute_instance;
};

struct facts {
    unsigned device_count, process_count;
    char names[DEVICES_MAX][96], uuids[DEVICES_MAX][96];
    struct memory memory[DEVICES_MAX];
    unsigned of[PROCESSES_MAX]; /* the device */
    struct process processes[PROCESSES_MAX];
};

static int
read_facts(struct facts *f)
{
    const char *path = getenv("DRY_TEST_NVML");
    FILE *file = path ? fopen(path, "re") : NULL;
    char line[512];
    memset(f, 0, sizeof *f);
    if (!file)
        return UNKNOWN;
    while (fgets(line, sizeof line, file)) {
        unsigned n = f->device_count, k = f->process_count;
        if (n < DEVICES_MAX &&
            sscanf(line, "device %95s %95s %llu %llu", f->names[n], f->uuids[n],
                   &f->memory[n].total, &f->memory[n].used) == 4)
            f->device_count++;
        else if (k < PROCESSES_MAX &&
                 sscanf(line, "process %u %u %llu", &f->of[k], &f->processes[k].pid,
                        &f->processes[k].bytes) == 3)
            f->process_count++;
    }
    (void)fclose(file);
    return SUCCESS;
}

/* A device is its number and one. */
static unsigned
number_of(const void *device)
{
    return (unsigned)((const char *)device - (const char *)1);
}

EXPORT int
nvmlInit_v2(void)
{
    struct facts f;
    return read_facts(&f);
}

EXPORT int
nvmlShutdown(void)
{
    return SUCCESS;
}

EXPORT int
nvmlDeviceGetCount_v2(unsigned *count)
{
    struct facts f;
    int code = read_facts(&f);
    *count = f.device_count;
    return code;
}

EXPORT int
nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = (char *)1 + index;
    return SUCCESS;
}

static int
copy(const char *from, char *to, unsigned capacity)
{
    (void)snprintf(to, capacity, "%s", from);
    for (; *to; to++)
        *to = (char)(*to == '_' ? ' ' : *to);
    return SUCCESS;
}

EXPORT int
nvmlDeviceGetName(void *device, char *text, unsigned capacity)
{
    struct facts f;
    return read_facts(&f) ? UNKNOWN : copy(f.names[number_of(device)], text, capacity);
}

EXPORT int
nvmlDeviceGetUUID(void *device, char *text, unsigned capacity)
{
    struct facts f;
    return read_facts(&f) ? UNKNOWN : copy(f.uuids[number_of(device)], text, capacity);
}

EXPORT int
nvmlDeviceGetMemoryInfo(void *device, struct memory *memory)
{
    struct facts f;
    int code = read_facts(&f);
    unsigned n = number_of(device);
    if (code || n >= f.device_count)
        return UNKNOWN;
    *memory = f.memory[n];
    memory->free = memory->total - memory->used;
    return SUCCESS;
}

EXPORT int
nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                        struct process *processes)
{
    struct facts f;
    unsigned capacity = *count;
    *count = 0;
    if (read_facts(&f))
        return UNKNOWN;
    for (unsigned i = 0; i < f.process_count; i++)
        if (f.of[i] == number_of(device)) {
            if (*count == capacity)
                return TOO_SMALL;
            processes[(*count)++] = f.processes[i];
        }
    return SUCCESS;
}
