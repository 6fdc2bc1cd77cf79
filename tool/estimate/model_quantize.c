/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read "quantization_config": matrices of fewer bits. Unknown methods are refused, and so
 * are known methods' formats whose sizes are unknown. Modules exempted in another way
 * than the format's default get a note.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/term.h"
#include "estimate/model_reader.h"

/* Tell whether a module is not a linear layer, or counts as 16 bits in any case. */
static bool
is_never_quantized(const char *name)
{
    static const char *const ends[] = {"gate",  "router", "embed_tokens", "norm",
                                       "embed", "score",  "wte"};
    const char *last = strrchr(name, '.');
    char word[32];
    size_t length = 0;
    last = last ? last + 1 : name;
    for (; *last && length + 1 < sizeof word; last++) {
        if (isalpha((unsigned char)*last) || *last == '_')
            word[length++] = *last;
    }
    word[length] = '\0';
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t end = strlen(ends[i]);
        if (length >= end && strcmp(word + length - end, ends[i]) == 0)
            return true;
    }
    return false;
}

/* Add a note about exempt modules that the estimate nevertheless counts as quantized. */
static void
read_left_out(struct model_reader *r, const char *key, struct dry_model *m)
{
    const json_t *list = model_get(r, key), *item;
    size_t index, others = 0;
    char text[48] = "";
    if (list && !json_is_array(list))
        model_refuse(r, key, "a list of texts", list);
    json_array_foreach(list, index, item)
    {
        const char *name = json_string_value(item);
        bool is_head = name && strstr(name, "lm_head");
        if (is_head)
            m->is_head_quantized = false;
        if (!name || is_head || is_never_quantized(name))
            continue;
        if (others++ == 0)
            term_make_printable(text, sizeof text, name, strlen(name));
    }
    if (others && !m->are_experts_quantized_only)
        model_note(r, "%s: %s%s stays wide, and is counted in fewer bits", key, text,
                   others > 1 ? " and others" : "");
}

static void
read_bits(struct model_reader *r, struct dry_model *m, const char *bits,
          const char *group)
{
    const json_t *value = model_get(r, group);
    model_read_number(r, bits, &m->quantization_bits);
    if (value && json_is_integer(value) && json_integer_value(value) == -1)
        m->quantization_group = 0;
    else
        model_read_number(r, group, &m->quantization_group);
}

static void
read_awq(struct model_reader *r, struct dry_model *m)
{
    const char *version = model_read_text(r, "version");
    bool has_zeros = true;
    m->quantization = DRY_QUANTIZATION_AWQ;
    m->quantization_bits = 4;
    m->quantization_group = 128;
    read_bits(r, m, "w_bit", "q_group_size");
    read_bits(r, m, "bits", "group_size");
    model_read_bool(r, "zero_point", &has_zeros);
    if (!has_zeros)
        model_refuse(r, "zero_point", "true", model_get(r, "zero_point"));
    if (version && strcasecmp(version, "gemm") != 0)
        model_refuse(r, "version", "gemm", model_get(r, "version"));
    read_left_out(r, "modules_to_not_convert", m);
}

static void
read_gptq(struct model_reader *r, struct dry_model *m)
{
    m->quantization = DRY_QUANTIZATION_GPTQ;
    m->quantization_bits = 4;
    m->quantization_group = 128;
    read_bits(r, m, "bits", "group_size");
    model_read_bool(r, "lm_head", &m->is_head_quantized);
    const char *format = model_read_text(r, "checkpoint_format");
    if (format && strcmp(format, "gptq") != 0 && strcmp(format, "gptq_v2") != 0)
        model_refuse(r, "checkpoint_format", "gptq or gptq_v2",
                     model_get(r, "checkpoint_format"));
    if (model_get(r, "modules_in_block_to_quantize"))
        model_note(r, "modules_in_block_to_quantize: the others stay wide, and are "
                      "counted in fewer bits");
}

static void
read_bitsandbytes(struct model_reader *r, struct dry_model *m)
{
    bool is_4 = false, is_8 = false, is_double = false;
    model_read_bool(r, "load_in_4bit", &is_4);
    model_read_bool(r, "_load_in_4bit", &is_4);
    model_read_bool(r, "load_in_8bit", &is_8);
    model_read_bool(r, "_load_in_8bit", &is_8);
    model_read_bool(r, "bnb_4bit_use_double_quant", &is_double);
    if (is_4 == is_8)
        model_refuse(r, "load_in_4bit", "true, or load_in_8bit",
                     model_get(r, "load_in_4bit"));
    m->quantization = is_8        ? DRY_QUANTIZATION_INT8
                      : is_double ? DRY_QUANTIZATION_NF4_DOUBLE
                                  : DRY_QUANTIZATION_NF4;
    read_left_out(r, "llm_int8_skip_modules", m);
}

static void
read_fp8(struct model_reader *r, struct dry_model *m)
{
    const json_t *block = model_get(r, "weight_block_size");
    const char *scheme = model_read_text(r, "activation_scheme");
    m->quantization = DRY_QUANTIZATION_FP8_BLOCK;
    if (!block)
        m->quantization = DRY_QUANTIZATION_TENSOR;
    m->has_input_scales = scheme && strcmp(scheme, "static") == 0;
    json_int_t rows = json_integer_value(json_array_get(block, 0));
    json_int_t cols = json_integer_value(json_array_get(block, 1));
    if (block && (json_array_size(block) != 2 || rows < 1 || cols < 1))
        model_refuse(r, "weight_block_size", "two numbers of 1 or more", block);
    m->quantization_rows = (uint64_t)rows;
    m->quantization_cols = (uint64_t)cols;
    read_left_out(r, "modules_to_not_convert", m);
}

static void
read_mxfp4(struct model_reader *r, struct dry_model *m)
{
    m->quantization = DRY_QUANTIZATION_MXFP4;
    m->are_experts_quantized_only = true;
    read_left_out(r, "modules_to_not_convert", m);
}

/* Read the weights of a compressed-tensors group: the bits, and what shares a scale. */
static void
read_weights(struct model_reader *r, struct dry_model *m, bool is_packed)
{
    const char *strategy = model_read_text(r, "strategy");
    bool is_symmetric = true, is_tensor = strategy && strcmp(strategy, "tensor") == 0;
    bool is_row = strategy && strcmp(strategy, "channel") == 0;
    bool is_group = strategy && strcmp(strategy, "group") == 0;
    m->quantization_bits = 8;
    read_bits(r, m, "num_bits", "group_size");
    model_read_bool(r, "symmetric", &is_symmetric);
    m->has_zero_points = !is_symmetric;
    m->quantization = is_packed   ? DRY_QUANTIZATION_PACKED
                      : is_tensor ? DRY_QUANTIZATION_TENSOR
                                  : DRY_QUANTIZATION_ROW;
    if (is_packed ? !is_row && !is_group : !is_row && !is_tensor)
        model_refuse(r, "strategy", is_packed ? "group or channel" : "channel or tensor",
                     model_get(r, "strategy"));
    if (!is_packed && m->quantization_bits != 8)
        model_refuse(r, "num_bits", "8", model_get(r, "num_bits"));
    if (!is_packed && !is_symmetric)
        model_refuse(r, "symmetric", "true", model_get(r, "symmetric"));
}

/* Read compressed-tensors. Only a single group is supported: all linear layers are
   quantized alike. */
static void
read_compressed(struct model_reader *r, struct dry_model *m)
{
    const char *format = model_read_text(r, "format");
    json_t *groups = model_get(r, "config_groups"), *outer = r->object;
    json_t *group = json_object_iter_value(json_object_iter(groups));
    json_t *weights = json_object_get(group, "weights");
    json_t *inputs = json_object_get(group, "input_activations");
    bool is_packed = format && strcmp(format, "pack-quantized") == 0;
    bool is_plain = format && (strcmp(format, "float-quantized") == 0 ||
                               strcmp(format, "int-quantized") == 0 ||
                               strcmp(format, "naive-quantized") == 0);
    if (!is_packed && !is_plain)
        model_refuse(r, "format", "pack-, float-, int- or naive-quantized",
                     model_get(r, "format"));
    if (json_object_size(groups) != 1 || !json_is_object(weights)) {
        model_refuse(r, "config_groups", "one group, with its weights", groups);
        return;
    }
    m->is_head_quantized = true; /* read_left_out() clears this for an ignored head */
    r->object = weights;
    read_weights(r, m, is_packed);
    r->object = outer;
    const json_t *dynamic = json_object_get(inputs, "dynamic");
    m->has_input_scales = json_is_object(inputs) && !json_is_true(dynamic);
    read_left_out(r, "ignore", m);
}

void
model_read_quantization(struct model_reader *r, struct dry_model *m)
{
    static const struct {
        const char *method;
        void (*read)(struct model_reader *r, struct dry_model *m);
    } methods[] = {
        {"awq", read_awq}, {"gptq", read_gptq},   {"bitsandbytes", read_bitsandbytes},
        {"fp8", read_fp8}, {"mxfp4", read_mxfp4}, {"compressed-tensors", read_compressed},
    };
    json_t *object = model_get(r, "quantization_config"), *outer = r->object;
    char path[MODEL_PATH_BYTES];
    if (!object)
        return;
    if (!json_is_object(object)) {
        model_refuse(r, "quantization_config", "an object", object);
        return;
    }
    memcpy(path, r->path, sizeof path);
    r->object = object;
    snprintf(r->path, sizeof r->path, "quantization_config.");
    const char *method = model_read_text(r, "quant_method");
    size_t i = 0, count = sizeof methods / sizeof *methods;
    while (method && i < count && strcmp(methods[i].method, method) != 0)
        i++;
    if (method && i < count)
        methods[i].read(r, m);
    else
        model_refuse(r, "quant_method",
                     "awq, gptq, bitsandbytes, fp8, mxfp4 or compressed-tensors",
                     model_get(r, "quant_method"));
    r->object = outer;
    memcpy(r->path, path, sizeof path);
}
