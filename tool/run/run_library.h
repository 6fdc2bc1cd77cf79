/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_RUN_LIBRARY_H
#define TOOL_RUN_LIBRARY_H

/*
 * Search for libraries that replace malloc: in a virtual environment, in conda's, in
 * LD_LIBRARY_PATH, under the home folder, and in the distribution's folders, multiarch
 * included. Each place is searched in lib/ and in the folders that pip creates.
 */

#include "run/run_machine.h"

/*
 * Fill machine->libraries. Requires machine->variable. The first place with a library
 * wins; within a place, the highest version. A library must be a shared ELF object for
 * this architecture, with a path that LD_PRELOAD can hold: LD_PRELOAD has no quoting.
 */
void run_libraries_find(struct run_machine *machine, const char *root);

#endif
