/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STANDIN_H
#define STANDIN_H

/*
 * An emulated CUDA: what all of its libraries share.
 *
 * A program that was built for CUDA runs unmodified on it. Kernels do nothing. Everything that
 * affects memory is real: what is allocated, in which order, on which stream, and how much the
 * device has. Each process has one setup. It comes from the variable DRYSTONE_STANDIN, which the
 * launcher writes (setup.h).
 *
 *     card      the emulated model: its memory and the properties that programs ask for
 *     range     addresses of a device, or of the host's registered memory (memory.h)
 *     stream    ordered work; all of it is done at once, or only when the program waits (stream.h)
 *     capture   work that is put into a graph and not run (stream.h)
 *     unwritten a function that a program's libraries need and that is not implemented: it
 *               returns 0 and is counted (unwritten.c)
 *
 * Two relatives are for tests only: strict/, a driver that refuses and counts what no correct
 * program does, and over_device/, a runtime for PyTorch's allocator over a dry_device.
 *
 * Threads   One lock for all; every exported function takes it where it accesses shared state.
 * Sources   Names and documented semantics of CUDA's public interfaces; nothing of their code.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

/* Results, by the numbers of the runtime, the driver and NVML. */
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

/* Take and release the lock of all shared state. */
void standin_lock(void);
void standin_unlock(void);

/* Return the current device of this thread. */
int standin_device(void);
enum cuda_error standin_set_device(int device);

/* Store an error as this thread's last error, and return it. */
enum cuda_error standin_note(enum cuda_error error);
/* Return this thread's last error; with `take`, also clear it. */
enum cuda_error standin_last(bool take);

/* Return the name of an error, or its description; unknown numbers have both. */
const char *standin_error_name(int error);
const char *standin_error_text(int error);

/* Count a function that was looked up but is not implemented; `name` is copied. */
void standin_note_name(const char *name);

#endif
