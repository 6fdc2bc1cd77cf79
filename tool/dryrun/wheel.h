/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_WHEEL_H
#define TOOL_WHEEL_H

/*
 * The torch of a program: where it lies, its release, and what it was built for.
 *
 * The program's own interpreter is asked where its torch is and what that requires. The release
 * and its CUDA are read from torch/version.py: importing takes seconds.
 */

#define WHEEL_PATH_BYTES 4096

struct wheel {
    char python[WHEEL_PATH_BYTES];
    char folder[WHEEL_PATH_BYTES]; /* of the package torch */
    char version[64];
    int cuda_version; /* 13020 is 13.2 */
    /* The libraries it requires, or the newest known; 91002 is 9.10.2. */
    int cudnn_version, nccl_version;
};

/*
 * Find the torch that `word`, the first of the program's command, runs with. Returns an
 * exit_code; `command` is ours, for messages.
 */
int wheel_find(struct wheel *wheel, const char *command, const char *word);

#endif
