/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPORT_SVG_H
#define TOOL_EXPORT_SVG_H

/* The picture of --view map: the memory of a device at its moment. */

struct export_job;
struct writer;

void export_svg_write_map(const struct export_job *job, struct writer *w);

#endif
