/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Configurations as Transformers writes them, families by their keys: what comes of it are the
 * parameters that are known; lists of layers; what cannot be, with the path of its key.
 */
#include "support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "estimate/model_json.h"

static uint64_t
count_parameters(const struct dry_model *model)
{
    struct dry_run_setup setup;
    struct dry_estimate *estimate = NULL;
    struct dry_error err = {.text = ""};
    dry_run_setup_init(&setup);
    setup.sequence = 8;
    if (dry_estimate_create(model, &setup, NULL, &estimate, &err) != DRY_OK)
        fail_msg("%s", err.text);
    uint64_t count = dry_estimate_get_summary(estimate)->parameter_count;
    dry_estimate_destroy(estimate);
    return count;
}

static void
parse(const char *text, struct model_json *json)
{
    struct dry_error err = {.text = ""};
    if (model_json_parse(text, strlen(text), json, &err) != DRY_OK)
        fail_msg("%s", err.text);
}

static void
families_have_their_parameters(void **state)
{
    (void)state;
    static const struct {
        uint64_t count;
        const char *text;
    } known[] = {
        {124439808, "{\"model_type\": \"gpt2\", \"activation_function\": \"gelu_new\","
                    " \"n_embd\": 768, \"n_head\": 12, \"n_layer\": 12, \"n_ctx\": 1024,"
                    " \"n_positions\": 1024, \"vocab_size\": 50257, \"n_inner\": null,"
                    " \"resid_pdrop\": 0.1, \"architectures\": [\"GPT2LMHeadModel\"]}"},
        {6738415616, "{\"model_type\": \"llama\", \"hidden_size\": 4096,"
                     " \"intermediate_size\": 11008, \"num_hidden_layers\": 32,"
                     " \"num_attention_heads\": 32, \"vocab_size\": 32000,"
                     " \"tie_word_embeddings\": false}"},
        {46702792704, "{\"model_type\": \"mixtral\", \"hidden_size\": 4096,"
                      " \"intermediate_size\": 14336, \"num_hidden_layers\": 32,"
                      " \"num_attention_heads\": 32, \"num_key_value_heads\": 8,"
                      " \"num_local_experts\": 8, \"num_experts_per_tok\": 2,"
                      " \"vocab_size\": 32000}"},
        {7615616512, "{\"model_type\": \"qwen2\", \"hidden_size\": 3584,"
                     " \"intermediate_size\": 18944, \"num_hidden_layers\": 28,"
                     " \"num_attention_heads\": 28, \"num_key_value_heads\": 4,"
                     " \"vocab_size\": 152064}"},
        {162322944, "{\"model_type\": \"gpt_neox\", \"hidden_size\": 768,"
                    " \"intermediate_size\": 3072, \"num_hidden_layers\": 12,"
                    " \"num_attention_heads\": 12, \"vocab_size\": 50304}"},
        {109482240, "{\"model_type\": \"bert\", \"hidden_size\": 768,"
                    " \"intermediate_size\": 3072, \"num_hidden_layers\": 12,"
                    " \"num_attention_heads\": 12, \"vocab_size\": 30522,"
                    " \"max_position_embeddings\": 512, \"type_vocab_size\": 2,"
                    " \"architectures\": [\"BertModel\"]}"},
        /* Without the pooler; a matrix, two norms' rows and the bias of the logits more. */
        {109514298, "{\"model_type\": \"bert\", \"hidden_size\": 768,"
                    " \"intermediate_size\": 3072, \"num_hidden_layers\": 12,"
                    " \"num_attention_heads\": 12, \"vocab_size\": 30522,"
                    " \"max_position_embeddings\": 512, \"type_vocab_size\": 2,"
                    " \"architectures\": [\"BertForMaskedLM\"]}"},
        {6738415616,
         "{\"text_config\": {\"model_type\": \"llama\", \"hidden_size\": 4096,"
         " \"intermediate_size\": 11008, \"num_hidden_layers\": 32,"
         " \"num_attention_heads\": 32, \"vocab_size\": 32000}}"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct model_json json;
        parse(known[i].text, &json);
        uint64_t count = count_parameters(&json.model);
        if (count != known[i].count)
            fail_msg("%zu: %llu", i, (unsigned long long)count);
        model_json_finish(&json);
    }
}

/* A head may be as wide as it likes; the two norms of queries and keys have its width. */
static void
keys_that_are_given_win(void **state)
{
    (void)state;
    struct model_json json;
    parse("{\"model_type\": \"qwen3\", \"hidden_size\": 64, \"head_dim\": 32,"
          " \"intermediate_size\": 128, \"num_hidden_layers\": 2, \"vocab_size\": 100,"
          " \"num_attention_heads\": 4, \"num_key_value_heads\": 2,"
          " \"tie_word_embeddings\": true, \"attention_dropout\": 0.5,"
          " \"use_sliding_window\": false, \"sliding_window\": 16}",
          &json);
    uint64_t layer = 64 * 128 + 2 * 64 * 64 + 128 * 64 + 3 * 64 * 128 + 2 * 64 + 2 * 32;
    assert_true(count_parameters(&json.model) == 2 * layer + 100 * 64 + 64);
    assert_true(json.model.has_dropout && json.model.window == 0);
    assert_string_equal(json.unknown_family, "");
    model_json_finish(&json);
}

/* As Llama where a key says so; and who reads is told. */
static void
families_that_are_not_known_are_named(void **state)
{
    (void)state;
    struct model_json json;
    parse(
        "{\"model_type\": \"new\\u001b\", \"hidden_size\": 64, \"num_hidden_layers\": 2,"
        " \"num_attention_heads\": 4, \"vocab_size\": 100, \"rms_norm_eps\": 1e-6,"
        " \"is_encoder_decoder\": false}",
        &json);
    assert_string_equal(json.unknown_family, "new?");
    assert_true(json.model.is_gated && json.model.norm == DRY_NORM_RMS);
    model_json_finish(&json);
}

static void
our_object_says_the_rest(void **state)
{
    (void)state;
    struct model_json json;
    parse(
        "{\"hidden_size\": 64, \"num_hidden_layers\": 2, \"num_attention_heads\": 4,"
        " \"vocab_size\": 100, \"drystone\": {\"norm\": \"rms\", \"gated\": true,"
        " \"qkv_bias\": false, \"out_bias\": false, \"mlp_bias\": false, \"tied\": true,"
        " \"activation\": \"relu\", \"positions\": 32, \"dropout\": true}}",
        &json);
    uint64_t layer = 4 * 64 * 64 + 3 * 64 * 256 + 2 * 64;
    assert_true(count_parameters(&json.model) == 2 * layer + 132 * 64 + 64);
    assert_int_equal(json.model.activation, DRY_ACT_RELU);
    assert_true(json.model.has_dropout);
    model_json_finish(&json);
}

static void
lists_of_layers_are_read(void **state)
{
    (void)state;
    char path[512];
    const char *data = getenv("DRY_TEST_DATA");
    struct model_json json;
    struct dry_error err = {.text = ""};
    assert_non_null(data);
    snprintf(path, sizeof path, "%s/models/resnet18.json", data);
    assert_int_equal(model_json_read(path, &json, &err), DRY_OK);
    assert_int_equal(json.model.kind, DRY_MODEL_CONV);
    assert_true(count_parameters(&json.model) == 11689512);
    model_json_finish(&json);
    snprintf(path, sizeof path, "%s/models/no-such", data);
    assert_int_equal(model_json_read(path, &json, &err), DRY_ERR_SYSTEM);
    model_json_finish(&json);
}

#define LLAMA                                                                            \
    "{\"model_type\": \"qwen2\", \"num_hidden_layers\": 2, \"hidden_size\": 256,"        \
    " \"num_attention_heads\": 4, \"vocab_size\": 100, \"intermediate_size\": 512"

/* Return the bytes of the weights in inference, in bf16 where they are not quantized. */
static uint64_t
weigh(const struct dry_model *model)
{
    struct dry_run_setup setup;
    struct dry_estimate *estimate = NULL;
    struct dry_error err = {.text = ""};
    dry_run_setup_init(&setup);
    setup.sequence = 8;
    setup.precision = DRY_PRECISION_BF16;
    setup.is_inference = true;
    if (dry_estimate_create(model, &setup, NULL, &estimate, &err) != DRY_OK)
        fail_msg("%s", err.text);
    uint64_t bytes = dry_estimate_get_summary(estimate)->weight_bytes;
    dry_estimate_destroy(estimate);
    return bytes;
}

/* The matrices of two layers: four of 256 by 256, three of 512 by 256, 1 310 720 elements. */
static void
quantized_matrices_have_the_bytes_of_their_format(void **state)
{
    (void)state;
    const uint64_t rest = 2 * (2 * 100 * 256 + 5 * 256 + 2 * 3 * 256);
    static const struct {
        const char *text;
        uint64_t bytes;
    } known[] = {
        {"\"quant_method\": \"awq\", \"bits\": 4, \"group_size\": 64",
         655360 + 1310720 / 64 / 2 + 1310720 / 64 * 2},
        {"\"quant_method\": \"gptq\", \"bits\": 8, \"group_size\": -1",
         1310720 + 2 * (5 * 256 + 2 * 512) * 3 + 2 * (6 * 256 + 512) * 4},
        {"\"quant_method\": \"bitsandbytes\", \"load_in_4bit\": true",
         655360 + 1310720 / 64 * 4 + 14 * 64},
        {"\"quant_method\": \"bitsandbytes\", \"load_in_4bit\": true,"
         " \"bnb_4bit_use_double_quant\": true",
         655360 + 1310720 / 64 + 1310720 / 64 / 256 * 4 + 14 * (64 + 1024 + 4)},
        {"\"quant_method\": \"bitsandbytes\", \"load_in_8bit\": true",
         1310720 + 2 * (5 * 256 + 2 * 512) * 4},
        {"\"quant_method\": \"fp8\", \"weight_block_size\": [128, 128]",
         1310720 + 1310720 / 128 / 128 * 4},
        {"\"quant_method\": \"compressed-tensors\", \"format\": \"float-quantized\","
         " \"ignore\": [\"lm_head\"], \"config_groups\": {\"a\": {\"weights\":"
         " {\"num_bits\": 8, \"strategy\": \"channel\"}}}",
         1310720 + 2 * (5 * 256 + 2 * 512) * 2},
        {"\"quant_method\": \"compressed-tensors\", \"format\": \"pack-quantized\","
         " \"ignore\": [\"lm_head\"], \"config_groups\": {\"a\": {\"weights\":"
         " {\"num_bits\": 4, \"strategy\": \"group\", \"group_size\": 128}}}",
         655360 + 1310720 / 128 * 2 + 14 * 16},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char text[640];
        struct model_json json;
        snprintf(text, sizeof text, LLAMA ", \"quantization_config\": {%s}}",
                 known[i].text);
        parse(text, &json);
        uint64_t bytes = weigh(&json.model) - rest;
        if (bytes != known[i].bytes || json.note_count)
            fail_msg("%zu: %llu", i, (unsigned long long)bytes);
        model_json_finish(&json);
    }
}

/* Modules that stay wide, towers and heads of their own are said to be left out. */
static void
parts_that_are_left_out_are_noted(void **state)
{
    (void)state;
    struct model_json json;
    parse(LLAMA ", \"vision_config\": {}, \"architectures\": [\"OwnHead\"],"
                " \"quantization_config\": {\"quant_method\": \"awq\","
                " \"modules_to_not_convert\": [\"lm_head\", \"layers.0\"]}}",
          &json);
    assert_int_equal(json.note_count, 3);
    assert_non_null(strstr(json.notes[0], "vision_config"));
    assert_non_null(strstr(json.notes[1], "layers.0"));
    assert_non_null(strstr(json.notes[2], "OwnHead"));
    model_json_finish(&json);
}

static void
what_cannot_be_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *word;
    } bad[] = {
        {"", "there is nothing"},
        {"{\"format\": \"ckpt-chain/1\"}",
         "format: expected the configuration of a model"},
        {"{\"model_type\": \"bart\", \"is_encoder_decoder\": true}",
         "is_encoder_decoder: "},
        {"{\"num_hidden_layers\": 2.0}", "num_hidden_layers: expected a whole number"},
        {"[]", "expected an object"},
        {"{}", "num_hidden_layers"},
        {"{\"a\": 1, \"a\": 2}", "line "},
        {"{\"num_hidden_layers\": 1.5}", "num_hidden_layers: expected"},
        {"{\"num_hidden_layers\": 99999999999999999999}", "line "},
        {"{\"num_hidden_layers\": 1e400}", "line "},
        {"{\"num_hidden_layers\": \"\\u001b[2J\"}", "num_hidden_layers"},
        {"{\"num_hidden_layers\": 2, \"hidden_size\": 0}", "hidden_size"},
        {"{\"text_config\": {\"hidden_size\": true}}", "text_config.num_hidden_layers"},
        {"{\"num_hidden_layers\": 1, \"hidden_size\": 8, \"num_attention_heads\": 1,"
         " \"vocab_size\": 9, \"hidden_act\": \"swoosh\"}",
         "hidden_act"},
        {"{\"num_hidden_layers\": 1, \"hidden_size\": 8, \"num_attention_heads\": 1,"
         " \"vocab_size\": 9, \"attn_pdrop\": 2}",
         "attn_pdrop"},
        {"{\"num_hidden_layers\": 1, \"hidden_size\": 8, \"num_attention_heads\": 1,"
         " \"vocab_size\": 9, \"tie_word_embeddings\": 1}",
         "tie_word_embeddings"},
        {"{\"num_hidden_layers\": 1, \"hidden_size\": 8, \"num_attention_heads\": 1,"
         " \"vocab_size\": 9, \"architectures\": [3]}",
         "architectures"},
        {"{\"num_hidden_layers\": 1, \"hidden_size\": 8, \"num_attention_heads\": 1,"
         " \"vocab_size\": 9, \"drystone\": {\"norm\": \"batch\"}}",
         "drystone.norm"},
        {"{\"_class_name\": \"FluxTransformer2DModel\"}", "_class_name"},
        {"{\"model_type\": \"whisper\", \"d_model\": 8}", "encoder_layers: "},
        {LLAMA ", \"layer_types\": [\"full_attention\"], \"sliding_window\": 4}",
         "layer_types: "},
        {LLAMA ", \"quantization_config\": 4}", "quantization_config: expected"},
        {LLAMA ", \"quantization_config\": {\"quant_method\": \"hqq\"}}",
         "quantization_config.quant_method: expected awq"},
        {LLAMA ", \"quantization_config\": {\"quant_method\": \"awq\","
               " \"version\": \"gemv\"}}",
         "quantization_config.version: expected gemm"},
        {LLAMA ", \"quantization_config\": {\"quant_method\": \"bitsandbytes\"}}",
         "quantization_config.load_in_4bit: "},
        {LLAMA ", \"quantization_config\": {\"quant_method\": \"fp8\","
               " \"weight_block_size\": [128]}}",
         "quantization_config.weight_block_size: "},
        {LLAMA ", \"quantization_config\": {\"quant_method\": \"compressed-tensors\","
               " \"format\": \"marlin-24\"}}",
         "quantization_config.format: "},
        {"{\"layers\": []}", "layers"},
        {"{\"layers\": [1]}", "layers[0]"},
        {"{\"layers\": [{\"type\": \"relu\", \"from\": -5}]}", "layers[0].from"},
        {"{\"layers\": [{\"type\": \"relu\"}]}", "channels"},
        {"{\"layers\": [{\"type\": \"conv\", \"kernel\": -1}]}", "layers[0].kernel"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct model_json json;
        struct dry_error err = {.text = ""};
        enum dry_status status =
            model_json_parse(bad[i].text, strlen(bad[i].text), &json, &err);
        model_json_finish(&json);
        assert_int_equal(status, DRY_ERR_FORMAT);
        if (!strstr(err.text, bad[i].word) || strchr(err.text, '\033'))
            fail_msg("%zu: '%s' lacks '%s'", i, err.text, bad[i].word);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_have_their_parameters),
        cmocka_unit_test(keys_that_are_given_win),
        cmocka_unit_test(families_that_are_not_known_are_named),
        cmocka_unit_test(our_object_says_the_rest),
        cmocka_unit_test(lists_of_layers_are_read),
        cmocka_unit_test(quantized_matrices_have_the_bytes_of_their_format),
        cmocka_unit_test(parts_that_are_left_out_are_noted),
        cmocka_unit_test(what_cannot_be_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
