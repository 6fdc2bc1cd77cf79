/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_MODEL_READER_H
#define TOOL_MODEL_READER_H

/*
 * Read a configuration's values (model_reader.c). A reader is positioned in one object,
 * knows its JSON path, and keeps the first error. Notes name parts of the configuration
 * that the estimate does not cover.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "estimate/model_json.h"

#define MODEL_PATH_BYTES 64

struct model_reader {
    json_t *object;
    char path[MODEL_PATH_BYTES]; /* prefix of keys: "", "text_config.", "layers[3]." */
    char unknown_family[MODEL_FAMILY_BYTES];
    char notes[MODEL_NOTES_MAX][MODEL_NOTE_BYTES];
    size_t note_count;
    struct dry_error *err;
    enum dry_status status;
};

/* Record that `key` has a wrong value, unless an error is recorded already. */
void model_refuse(struct model_reader *r, const char *key, const char *expected,
                  const json_t *found);
/* Return a value; NULL if the key is missing or null. */
json_t *model_get(const struct model_reader *r, const char *key);
/* Read a number from 0 to 2^40. False: missing or refused. */
bool model_read_number(struct model_reader *r, const char *key, uint64_t *number);
/* Read a boolean; *is is unchanged if the key is missing. */
void model_read_bool(struct model_reader *r, const char *key, bool *is);
/* Return a text; NULL: missing or refused. */
const char *model_read_text(struct model_reader *r, const char *key);

/* A number that models store under different keys. is_needed: must be at least 1. */
struct model_number {
    const char *keys[4];
    size_t offset; /* offset of the uint64_t in struct dry_model */
    bool is_needed;
};
#define MODEL_FIELD(name) offsetof(struct dry_model, name)
void model_read_named(struct model_reader *r, const struct model_number *n,
                      struct dry_model *model);

/* Add a note of printable text; notes beyond MODEL_NOTES_MAX are dropped. */
__attribute__((format(printf, 2, 3))) void model_note(struct model_reader *r,
                                                      const char *format, ...);

/* Move the reader to another object, whose JSON path is `path`. */
void model_enter(struct model_reader *r, json_t *object, const char *path);

/* Read a Transformers configuration (model_transformer.c). */
void model_read_transformer(struct model_reader *r, struct dry_model *model);
/* Read the quantization, if there is one (model_quantize.c). */
void model_read_quantization(struct model_reader *r, struct dry_model *model);

#endif
