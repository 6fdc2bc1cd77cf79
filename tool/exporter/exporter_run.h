/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPORTER_RUN_H
#define TOOL_EXPORTER_RUN_H

/* `drystone live --listen` and `--metrics`: the memory of running programs, for Prometheus. */

#include "exporter/exporter.h"

/*
 * Serve until ^C or SIGTERM on `listen`, "127.0.0.1:9432" or "unix:PATH"; if that is NULL,
 * print the text once. Returns an exit code.
 */
int exporter_run(const char *listen, const struct exporter_options *options);

#endif
