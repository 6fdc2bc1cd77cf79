/* SPDX-License-Identifier: Apache-2.0 */
/* The lock, the device and the last error of a thread, the texts of errors. */
#include "standin.h"

#include <pthread.h>

#include "setup.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int device;
static __thread enum cuda_error last;

void
standin_lock(void)
{
    pthread_mutex_lock(&lock);
}

void
standin_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

int
standin_device(void)
{
    return device;
}

enum cuda_error
standin_set_device(int wanted)
{
    if (wanted < 0 || wanted >= standin_setup()->device_count)
        return CUDA_INVALID_DEVICE;
    device = wanted;
    return CUDA_OK;
}

enum cuda_error
standin_note(enum cuda_error error)
{
    if (error != CUDA_OK)
        last = error;
    return error;
}

enum cuda_error
standin_last(bool take)
{
    enum cuda_error found = last;
    if (take)
        last = CUDA_OK;
    return found;
}

static const struct {
    enum cuda_error error;
    const char *name, *text;
} errors[] = {
    {CUDA_OK, "cudaSuccess", "no error"},
    {CUDA_INVALID_VALUE, "cudaErrorInvalidValue", "invalid argument"},
    {CUDA_NO_MEMORY, "cudaErrorMemoryAllocation", "out of memory"},
    {CUDA_INVALID_DEVICE, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {CUDA_INVALID_HANDLE, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {CUDA_NOT_FOUND, "cudaErrorSymbolNotFound", "named symbol not found"},
    {CUDA_NOT_READY, "cudaErrorNotReady", "device not ready"},
    {CUDA_PEER_ALREADY, "cudaErrorPeerAccessAlreadyEnabled",
     "peer access is already enabled"},
    {CUDA_ALREADY_REGISTERED, "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {CUDA_NOT_REGISTERED, "cudaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {CUDA_NOT_SUPPORTED, "cudaErrorNotSupported", "operation not supported"},
    {CUDA_CAPTURE_UNSUPPORTED, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {CUDA_CAPTURE_INVALIDATED, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {CUDA_CAPTURE_UNJOINED, "cudaErrorStreamCaptureUnjoined",
     "capturing stream has unjoined work"},
    {CUDA_UNKNOWN, "cudaErrorUnknown", "unknown error"},
};

static size_t
find_error(int error)
{
    size_t i = 0, count = sizeof errors / sizeof *errors;
    while (i + 1 < count && (int)errors[i].error != error)
        i++;
    return i;
}

const char *
standin_error_name(int error)
{
    return errors[find_error(error)].name;
}

const char *
standin_error_text(int error)
{
    return errors[find_error(error)].text;
}
