/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_SHIMS_H
#define TOOL_SHIMS_H

/*
 * Makes what a wheel's libraries look for in place of NVIDIA's: exactly the symbols that these
 * libraries want and nobody has, and a library of every name that they need.
 *
 * libdrystone-unwritten.so has the symbols that the stand-in has not. A library of each name,
 * libcudart.so.13 and so on, has no symbols, only the versions that are wanted of it. Each
 * needs the stand-in and libdrystone-unwritten.so: every symbol is found through it.
 */

#include <drystone/status.h>

struct shims_wish {
    const char *wheel;   /* the folder torch/lib */
    const char *standin; /* libdrystone-standin.so */
    const char *folder;  /* where they go; there already */
};

/*
 * Make them all. *preload is what LD_PRELOAD has to be, to be freed. Errors: FORMAT (a file of
 * the wheel is broken), UNSUPPORTED (no CUDA in the wheel, or another machine's), SYSTEM, MEMORY.
 */
DRY_CHECK_RESULT enum dry_status shims_make(const struct shims_wish *wish, char **preload,
                                            struct dry_error *err);

#endif
