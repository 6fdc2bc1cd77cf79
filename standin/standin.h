/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STANDIN_H
#define STANDIN_H

/*
 * A CUDA that is not there: what all of its libraries share.
 *
 * A program that was built for CUDA runs unmodified on it. Kernels do nothing; all that decides
 * about memory is real: what is allocated, in which order, on which stream, and how much the
 * device has. There is one of it a process. It comes from the variable DRYSTONE_STANDIN, which
 * the launcher writes (setup.h).
 *
 *     card      the model that is stood in for: its memory and what programs ask of it
 *     range     addresses of a device, or of the host's registered memory (memory.h)
 *     stream    work in order; all of it is done at once, or only when somebody waits (stream.h)
 *     capture   what is put into a graph and not run (stream.h)
 *     unwritten a function that a program's libraries want, and that nobody here wrote: it
 *               returns 0 and is counted (unwritten.c)
 *
 * Two kin stand beside it, for tests alone: strict/, a driver that refuses and counts what no
 * correct program does, and over_device/, a runtime for PyTorch's allocator over a dry_device.
 *
 * Threads   One lock for all; every exported function takes it where it looks at what is shared.
 * Sources   Names and documented semantics of CUDA's public interfaces; nothing of their code.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

/* Results, as the runtime, the driver and NVML number them. */
enum cuda_error {
    CUDA_OK = 0,
    CUDA_INVALID_VALUE = 1,
    CUDA_NO_MEMORY = 2,
    CUDA_INVALID_DEVICE = 101,
    CUDA_INVALID_CONTEXT = 201,
    CUDA_INVALID_HANDLE = 400,
    CUDA_NOT_FOUND = 500,
    CUDA_NOT_READY = 600,
    CUDA_PEER_ALREADY = 704,
    CUDA_ALREADY_REGISTERED = 712,
    CUDA_NOT_REGISTERED = 713,
    CUDA_NOT_SUPPORTED = 801,
    CUDA_CAPTURE_UNSUPPORTED = 900,
    CUDA_CAPTURE_INVALIDATED = 901,
    CUDA_CAPTURE_UNJOINED = 904,
    CUDA_UNKNOWN = 999,
};

#define STANDIN_DEVICES_MAX 16

/* Take and give the lock of everything shared. */
void standin_lock(void);
void standin_unlock(void);

/* The device of this thread. */
int standin_device(void);
enum cuda_error standin_set_device(int device);

/* Remember an error for cudaGetLastError(), of this thread; returns it. */
enum cuda_error standin_note(enum cuda_error error);
/* The last one that was noted; `take`: and forget it. */
enum cuda_error standin_last(bool take);

/* The name of an error, and a sentence about it; of unknown numbers, too. */
const char *standin_error_name(int error);
const char *standin_error_text(int error);

/* Count a function that somebody looked up and nobody wrote; `name` is copied. */
void standin_note_name(const char *name);

#endif
