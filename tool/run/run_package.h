/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_RUN_PACKAGE_H
#define TOOL_RUN_PACKAGE_H

/*
 * The Python package that belongs to this command: of a build, an installation or a
 * wheel. Its hook folder has a sitecustomize, which Python imports if PYTHONPATH has the
 * folder.
 */

#include "run/run_machine.h"

/* Set machine->command and machine->hook to absolute paths, or to "" if not found. */
void run_package_find(struct run_machine *machine);

#endif
