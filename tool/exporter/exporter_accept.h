/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPORTER_ACCEPT_H
#define TOOL_EXPORTER_ACCEPT_H

/*
 * The wishes in a request's Accept, by RFC 9110: media ranges with weights. OpenMetrics is given
 * to a client that names it, with version 1.0.0 or none, and does not like plain text better.
 */

#include "exporter/exporter_text.h"

/* NULL, without the header: Prometheus' own. */
enum exporter_format exporter_accept(const char *accept);

#endif
