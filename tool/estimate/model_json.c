/* SPDX-License-Identifier: Apache-2.0 */
/* See model_json.h. Only the first wrong value is reported. */
#include "estimate/model_json.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/fail.h"
#include "base/json_in.h"
#include "estimate/model_reader.h"

/* --- lists of layers ---------------------------------------------------------------------- */

static void
read_source(struct model_reader *r, const char *key, int64_t *layer)
{
    const json_t *value = model_get(r, key);
    if (!value)
        return;
    json_int_t found = json_is_integer(value) ? json_integer_value(value) : -2;
    if (found < DRY_CONV_IMAGES || found > DRY_CONV_LAYERS_MAX)
        model_refuse(r, key, "a layer, from 0, or -1 for the images", value);
    else
        *layer = found;
}

static void
read_layer(struct model_reader *r, struct dry_conv_layer *l)
{
    const char *type = model_read_text(r, "type");
    unsigned kind = 0;
    *l = (struct dry_conv_layer){.from = DRY_CONV_PREVIOUS, .with = DRY_CONV_PREVIOUS};
    while (type && kind < DRY_CONV_KIND_COUNT &&
           strcmp(dry_conv_kind_name((enum dry_conv_kind)kind), type) != 0)
        kind++;
    if (!type || kind == DRY_CONV_KIND_COUNT) {
        model_refuse(r, "type",
                     "conv, norm, relu, silu, maxpool, avgpool, globalpool, add, "
                     "concat, flatten, linear or dropout",
                     model_get(r, "type"));
        return;
    }
    l->kind = (enum dry_conv_kind)kind;
    read_source(r, "from", &l->from);
    read_source(r, "with", &l->with);
    model_read_number(r, "channels", &l->channels);
    model_read_number(r, "kernel", &l->kernel);
    model_read_number(r, "stride", &l->stride);
    model_read_number(r, "padding", &l->padding);
    model_read_number(r, "groups", &l->groups);
    model_read_number(r, "dilation", &l->dilation);
    model_read_bool(r, "bias", &l->has_bias);
    bool has_matrix = l->kind == DRY_CONV_CONV || l->kind == DRY_CONV_LINEAR;
    if (has_matrix && l->channels == 0)
        model_refuse(r, "channels", "a whole number of 1 or more",
                     model_get(r, "channels"));
}

static void
read_layers(struct model_reader *r, json_t *list, struct model_json *json)
{
    size_t count = json_array_size(list);
    json_t *outer = r->object;
    if (count == 0 || count > DRY_CONV_LAYERS_MAX) {
        r->status =
            fail_at(r->err, count ? DRY_ERR_LIMIT : DRY_ERR_FORMAT, DRY_NO_OFFSET,
                    "layers: expected 1 to %u, found %zu", DRY_CONV_LAYERS_MAX, count);
        return;
    }
    json->conv = calloc(count, sizeof *json->conv);
    if (!json->conv) {
        r->status = fail_memory(r->err, "no memory for layers");
        return;
    }
    for (size_t i = 0; i < count && r->status == DRY_OK; i++) {
        char path[MODEL_PATH_BYTES];
        json_t *layer = json_array_get(list, i);
        snprintf(path, sizeof path, "layers[%zu].", i);
        model_enter(r, layer, path);
        if (json_is_object(layer))
            read_layer(r, &json->conv[i]);
        else
            model_refuse(r, "type", "an object around it", layer);
    }
    model_enter(r, outer, "");
    json->model.conv = json->conv;
    json->model.conv_count = count;
}

static void
read_conv(struct model_reader *r, json_t *list, struct model_json *json)
{
    static const struct model_number numbers[] = {
        {{"channels", NULL}, MODEL_FIELD(channels), true},
        {{"height", NULL}, MODEL_FIELD(height), true},
        {{"width", NULL}, MODEL_FIELD(width), true},
    };
    json->model.kind = DRY_MODEL_CONV;
    read_layers(r, list, json);
    for (size_t i = 0; i < 3 && r->status == DRY_OK; i++)
        model_read_named(r, &numbers[i], &json->model);
}

/* --- files -------------------------------------------------------------------------------- */

enum dry_status
model_json_parse(const char *text, size_t length, struct model_json *json,
                 struct dry_error *err)
{
    json_t *root;
    *json = (struct model_json){0};
    dry_model_init(&json->model);
    enum dry_status status = json_in_parse(text, length, &root, err);
    if (status != DRY_OK)
        return status;
    struct model_reader r = {.object = root, .err = err};
    json_t *list = json_is_object(root) ? model_get(&r, "layers") : NULL;
    const char *format = json_string_value(json_object_get(root, "format"));
    if (!json_is_object(root))
        r.status = fail_at(err, DRY_ERR_FORMAT, DRY_NO_OFFSET,
                           "expected an object, the configuration of a model");
    else if (format && strncmp(format, "ckpt-", 5) == 0)
        r.status = fail_at(err, DRY_ERR_FORMAT, DRY_NO_OFFSET,
                           "format: expected the configuration of a model, found "
                           "\"%.40s\", which drystone plan reads",
                           format);
    else if (json_is_array(list))
        read_conv(&r, list, json);
    else
        model_read_transformer(&r, &json->model);
    json_decref(root);
    memcpy(json->unknown_family, r.unknown_family, sizeof json->unknown_family);
    memcpy(json->notes, r.notes, sizeof json->notes);
    json->note_count = r.note_count;
    return r.status;
}

enum dry_status
model_json_read(const char *path, struct model_json *json, struct dry_error *err)
{
    char *text;
    size_t length;
    *json = (struct model_json){0};
    enum dry_status status = json_in_read_file(path, &text, &length, err);
    if (status != DRY_OK)
        return status;
    status = model_json_parse(text, length, json, err);
    free(text);
    return status;
}

void
model_json_finish(struct model_json *json)
{
    free(json->conv);
    *json = (struct model_json){0};
}
