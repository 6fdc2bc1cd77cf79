/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_RUN_LIBRARY_H
#define TOOL_RUN_LIBRARY_H

/*
 * The places of libraries that replace malloc: a virtual environment, conda's, what
 * LD_LIBRARY_PATH names, the home, and the folders of distributions, Debian's of an
 * architecture included. In each of them lib/ and the folders that pip makes are looked at.
 */

#include "run/run_machine.h"

/*
 * Fill machine->libraries; its `variable` is set. The first place that has a library wins,
 * and in it the highest version. Only a shared ELF object of this program's own
 * architecture is taken, whose path the loader can be told (LD_PRELOAD knows no quoting).
 */
void run_libraries_find(struct run_machine *machine, const char *root);

#endif
