/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_MODEL_JSON_H
#define TOOL_MODEL_JSON_H

/*
 * Read a model's configuration from a file.
 *
 * Two forms are read: the unchanged config.json of Hugging Face's Transformers, and a
 * list of layers of a convolutional net. The first covers the families in model_family.c
 * and models with the same keys. Unknown keys are ignored; an object "drystone" adds what
 * a configuration lacks. drystone-estimate(1) lists the keys.
 *
 * Errors     FORMAT: not JSON, or an impossible value, with its JSON path; LIMIT: more layers
 *            than an estimate supports.
 */

#include <stddef.h>

#include <drystone/estimate.h>

#define MODEL_FAMILY_BYTES 40
#define MODEL_NOTES_MAX 6
#define MODEL_NOTE_BYTES 160

struct model_json {
    struct dry_model model; /* `model.conv` points to `conv` */
    struct dry_conv_layer *conv;
    char unknown_family
        [MODEL_FAMILY_BYTES]; /* printable; "": known, or the file has no type */
    char notes[MODEL_NOTES_MAX][MODEL_NOTE_BYTES]; /* parts not in the estimate */
    size_t note_count;
};

/* Parse a configuration. Call model_json_finish() in any case. */
enum dry_status model_json_parse(const char *text, size_t length, struct model_json *json,
                                 struct dry_error *err);
/* Parse a file; "-" is standard input. SYSTEM: it cannot be read. */
enum dry_status model_json_read(const char *path, struct model_json *json,
                                struct dry_error *err);
void model_json_finish(struct model_json *json);

#endif
