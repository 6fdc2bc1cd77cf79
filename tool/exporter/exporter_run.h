/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPORTER_RUN_H
#define TOOL_EXPORTER_RUN_H

/* `drystone live --listen` and `--metrics`: export programs' memory to Prometheus. */

#include "exporter/exporter.h"

/* Serve until ^C or SIGTERM on `listen`, "127.0.0.1:9432" or "unix:PATH". If `listen` is
   NULL, print the metrics once. Returns an exit code. */
int exporter_run(const char *listen, const struct exporter_options *options);

#endif
