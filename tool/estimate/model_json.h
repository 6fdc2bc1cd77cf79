/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_MODEL_JSON_H
#define TOOL_MODEL_JSON_H

/*
 * A model's configuration as it lies on disk.
 *
 * Two shapes are read: the config.json of Hugging Face's Transformers, as it is, and a list
 * of layers of a convolutional net. The first is that of the families in model_family.c, and
 * whatever uses their keys. Keys that nobody knows are left alone; an object "drystone" says what a configuration does
 * not. drystone-estimate(1) has the keys.
 *
 * Errors     FORMAT: no JSON, or a value that cannot be, with the path of its key; LIMIT: more
 *            layers than an estimate takes.
 */

#include <stddef.h>

#include <drystone/estimate.h>

#define MODEL_FAMILY_BYTES 40
#define MODEL_NOTES_MAX 6
#define MODEL_NOTE_BYTES 160

struct model_json {
    struct dry_model model; /* its conv are the list below */
    struct dry_conv_layer *conv;
    char unknown_family
        [MODEL_FAMILY_BYTES]; /* printable; "": we know it, or it has none */
    char notes[MODEL_NOTES_MAX][MODEL_NOTE_BYTES]; /* what the estimate leaves out */
    size_t note_count;
};

/* `json` is there to be finished in any case. */
enum dry_status model_json_parse(const char *text, size_t length, struct model_json *json,
                                 struct dry_error *err);
/* Read a file; "-" is standard input. SYSTEM: it cannot be read. */
enum dry_status model_json_read(const char *path, struct model_json *json,
                                struct dry_error *err);
void model_json_finish(struct model_json *json);

#endif
