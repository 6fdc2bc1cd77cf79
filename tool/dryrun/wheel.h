/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_WHEEL_H
#define TOOL_WHEEL_H

/*
 * The PyTorch of a program: its folder, its release, and its CUDA version.
 *
 * The program's own Python interpreter reports where torch is and what torch requires.
 * The release and CUDA version are read from torch/version.py, because importing torch
 * takes seconds.
 */

#define WHEEL_PATH_BYTES 4096
#define WHEEL_PACKAGES_BYTES 65536

struct wheel {
    char python[WHEEL_PATH_BYTES];
    char folder[WHEEL_PATH_BYTES]; /* folder of the package torch */
    /* Folders of packages, where extensions may lie; each ends with a newline. The working
       folder and Python's own library are left out. */
    char packages[WHEEL_PACKAGES_BYTES];
    char version[64];
    int cuda_version; /* 13020 means 13.2 */
    /* Versions that torch requires, or else the newest known; 91002 means 9.10.2. */
    int cudnn_version, nccl_version;
};

/* Find the torch that the program uses; `word` is the first word of the program's
   command. `command` is ours, for messages. Returns an exit_code. */
int wheel_find(struct wheel *wheel, const char *command, const char *word);

#endif
