/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_REPLACEMENTS_H
#define TOOL_REPLACEMENTS_H

/*
 * Write replacements for NVIDIA's libraries: the symbols that the wheel's libraries and
 * extensions of other packages import and no library of the wheel exports, and a library
 * for every name they need.
 *
 * libdrystone-unwritten.so holds the symbols that the stand-in lacks. The libraries for
 * each name, such as libcudart.so.13, have no symbols, only the versions required of
 * them. Each needs the stand-in and libdrystone-unwritten.so, which resolve every symbol.
 */

#include <drystone/status.h>

struct replacements_request {
    const char *wheel; /* the wheel's folder torch/lib */
    /* Folders with other packages, each ended by a newline. Files that are no libraries of the
       wheel's machine are passed over there. */
    const char *packages;
    const char *standin; /* path of libdrystone-standin.so */
    const char *folder;  /* existing folder for the written libraries */
};

/*
 * Write all libraries. *preload is the value for LD_PRELOAD, which the caller frees.
 * Errors: FORMAT (a malformed file in the wheel), UNSUPPORTED (a wheel without CUDA or
 * for another processor), SYSTEM, LIMIT (packages with too many files or symbols), MEMORY.
 */
DRY_CHECK_RESULT enum dry_status replacements_make(
    const struct replacements_request *request, char **preload, struct dry_error *err);

#endif
