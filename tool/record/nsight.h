/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_NSIGHT_H
#define TOOL_NSIGHT_H

/*
 * Read the memory events of an SQLite file that Nsight Systems exported.
 *
 * The table CUDA_GPU_MEMORY_USAGE_EVENTS has a row for each allocation and free that a process asked
 * the driver for. Each allocation of device memory becomes a segment with one block. All processes of
 * a GPU share its timeline; the stack of an event names the process. Host and managed memory is left
 * out, because neither belongs to one device.
 *
 * Ownership  The caller owns the trace.
 * Errors     FORMAT for a file that is no such export or is damaged, LIMIT for too many rows, SYSTEM.
 * Threads    One call a path.
 * Units      Bytes, nanoseconds in the file.
 */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/status.h>
#include <drystone/trace.h>

#define NSIGHT_NOTE_BYTES 512

/* Return true if the bytes are the beginning of an SQLite file. */
bool nsight_is_database(const unsigned char *bytes, size_t count);

/*
 * Read the file `path` as a trace of kind NSIGHT, in at most memory_bytes_max. `note` tells what was
 * left out and what the file lacks.
 */
DRY_CHECK_RESULT enum dry_status nsight_read(const char *path, uint64_t memory_bytes_max,
                                             struct dry_trace **trace,
                                             char note[NSIGHT_NOTE_BYTES],
                                             struct dry_error *err);

#endif
