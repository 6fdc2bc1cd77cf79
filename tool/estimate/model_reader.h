/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_MODEL_READER_H
#define TOOL_MODEL_READER_H

/*
 * The values of a configuration (model_reader.c): a reader stands in one object, knows the path to it, and
 * keeps the first value that was wrong. A note says what is in the file and not in the
 * estimate.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "estimate/model_json.h"

#define MODEL_PATH_BYTES 64

struct model_reader {
    json_t *object;
    char path[MODEL_PATH_BYTES]; /* "", "text_config.", "layers[3]." */
    char unknown_family[MODEL_FAMILY_BYTES];
    char notes[MODEL_NOTES_MAX][MODEL_NOTE_BYTES];
    size_t note_count;
    struct dry_error *err;
    enum dry_status status;
};

/* Keep as the failure that `key` was expected to be something else, if it is the first. */
void model_refuse(struct model_reader *r, const char *key, const char *expected,
                  const json_t *found);
/* Return a value; NULL where a key is missing or says null. */
json_t *model_get(const struct model_reader *r, const char *key);
/* Read a number of 0 to 2^40; false: there is none, or it was refused. */
bool model_read_number(struct model_reader *r, const char *key, uint64_t *number);
/* Read true or false; *is stays if nothing is said. */
void model_read_bool(struct model_reader *r, const char *key, bool *is);
/* Return a text; NULL: there is none, or it was refused. */
const char *model_read_text(struct model_reader *r, const char *key);

/* A number that goes by one of several names; is_needed: of 1 or more. */
struct model_number {
    const char *keys[4];
    size_t offset; /* in struct dry_model */
    bool is_needed;
};
#define MODEL_FIELD(name) offsetof(struct dry_model, name)
void model_read_named(struct model_reader *r, const struct model_number *n,
                      struct dry_model *model);

/* Add a note, of printable text; those beyond the last place are left out. */
__attribute__((format(printf, 2, 3))) void model_note(struct model_reader *r,
                                                      const char *format, ...);

/* Go on in another object, with the path to it. */
void model_enter(struct model_reader *r, json_t *object, const char *path);

/* Read a configuration of Transformers (model_transformer.c). */
void model_read_transformer(struct model_reader *r, struct dry_model *model);
/* Set what a configuration says of matrices in fewer bits (model_quantize.c). */
void model_read_quantization(struct model_reader *r, struct dry_model *model);

#endif
