/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPORTER_ACCEPT_H
#define TOOL_EXPORTER_ACCEPT_H

/*
 * Choose a format by a request's Accept header (RFC 9110: media ranges with weights).
 * OpenMetrics is chosen if the client names it, with version 1.0.0 or none, and does not
 * weight plain text higher.
 */

#include "exporter/exporter_text.h"

/* Return the format for `accept`; NULL (no header): Prometheus' own. */
enum exporter_format exporter_accept(const char *accept);

#endif
