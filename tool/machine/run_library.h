/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_RUN_LIBRARY_H
#define TOOL_RUN_LIBRARY_H

/*
 * Where the libraries lie that replace malloc: in a virtual environment, in conda's, in what
 * LD_LIBRARY_PATH names, under the home, and where distributions put them, Debian's folders
 * of an architecture included; there in lib/ and in the folders that pip makes.
 */

#include "machine/run_machine.h"

/*
 * Fills machine->libraries; its `variable` is set. The first place that has one wins, and in
 * it the highest version. Taken is only a shared ELF object of this program's own
 * architecture, whose path the loader can be told (LD_PRELOAD knows no quoting).
 */
void run_libraries_find(struct run_machine *machine, const char *root);

#endif
