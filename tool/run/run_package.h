/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_RUN_PACKAGE_H
#define TOOL_RUN_PACKAGE_H

/*
 * The Python package that belongs to this command, in a build, an installation or a wheel. Python
 * imports the sitecustomize of a folder of it, the hook, if that folder is on PYTHONPATH.
 */

#include "run/run_machine.h"

/* Set machine->command and machine->hook to absolute paths; "" for one that is not there. */
void run_package_find(struct run_machine *machine);

#endif
