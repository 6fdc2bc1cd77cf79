/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPORTER_LABEL_H
#define TOOL_EXPORTER_LABEL_H

/*
 * Labels of Prometheus out of texts that nobody vouches for.
 *
 * A value has at most EXPORTER_LABEL_BYTES of what was given, cut between characters; control
 * characters and broken UTF-8 become '?'. A page's own labels are taken only if the key is on a
 * list, for each new key or value is a new series in the database.
 */

#include <stddef.h>
#include <stdio.h>

#define EXPORTER_LABEL_BYTES 128

/* Write `,key="text"`. An empty text is no label, and writes nothing. */
void exporter_label(FILE *out, const char *key, const char *text);

/* The same for at most `length` bytes of a text. */
void exporter_label_part(FILE *out, const char *key, const char *text, size_t length);

/*
 * Write the labels of a page, "pod=train-0,namespace=ml", as `,exported_pod="train-0"` and so
 * on: those on the list, each once, in the list's order. The name is the one that Prometheus
 * gives to labels that its own would hide, so it is the same however the target is found.
 */
void exporter_page_labels(FILE *out, const char *labels);

#endif
