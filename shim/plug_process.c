/* SPDX-License-Identifier: Apache-2.0 */
#include "plug_process.h"

#include <pthread.h>

#include "nvml.h"

static struct nvml nvml;
static pthread_once_t nvml_once = PTHREAD_ONCE_INIT;

static void
open_nvml(void)
{
    nvml = nvml_open();
}

/* The driver's functions; a CUdevice is an int, and 0 is success. */
struct driver {
    int (*get_device)(int *device, int index);
    int (*get_bus)(char *bus, int capacity, int device);
};

uint64_t
plug_process_bytes(int index)
{
    char bus[32];
    int device;
    struct driver driver;
    void *library = pthread_once(&nvml_once, open_nvml) == 0
                        ? dlopen("libcuda.so.1", RTLD_LAZY)
                        : NULL;
    if (!library)
        return 0;
    nvml_look_up(library, "cuDeviceGet", &driver.get_device);
    nvml_look_up(library, "cuDeviceGetPCIBusId", &driver.get_bus);
    uint64_t bytes = 0;
    if (driver.get_device && driver.get_bus && driver.get_device(&device, index) == 0 &&
        driver.get_bus(bus, sizeof bus, device) == 0)
        bytes = nvml_process_bytes(&nvml, bus);
    dlclose(library);
    return bytes;
}
