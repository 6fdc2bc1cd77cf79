/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPORTER_LABEL_H
#define TOOL_EXPORTER_LABEL_H

/*
 * Prometheus labels from untrusted texts.
 *
 * A value is cut to EXPORTER_LABEL_BYTES, between characters; control characters and
 * broken UTF-8 become '?'. Labels of pages are taken only if their key is on a list,
 * because every new key or value creates a series in the database.
 */

#include <stddef.h>
#include <stdio.h>

#define EXPORTER_LABEL_BYTES 128

/* Write `,key="text"`, or nothing for an empty text. */
void exporter_label(FILE *out, const char *key, const char *text);

/* Write a label from at most `length` bytes. */
void exporter_label_part(FILE *out, const char *key, const char *text, size_t length);

/*
 * Write a page's labels, "pod=train-0,namespace=ml", as `,exported_pod="train-0"` and so
 * on: those on the list, once each, in the list's order. Prometheus renames clashing
 * labels to exported_* too, so the name does not depend on how the target is discovered.
 */
void exporter_page_labels(FILE *out, const char *labels);

#endif
