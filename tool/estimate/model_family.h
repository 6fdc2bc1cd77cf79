/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_MODEL_FAMILY_H
#define TOOL_MODEL_FAMILY_H

/*
 * Families of models: properties of Transformers' classes that a configuration may omit.
 *
 * Source     configuration_*.py and modeling_*.py of Transformers 4.57.
 */

#include <stdbool.h>

#include "estimate/model_reader.h"

struct model_family {
    const char *type; /* value of "model_type" */
    bool is_encoder, is_gated, is_rms, is_tied, has_bias, has_qkv_bias, has_positions;
    bool is_parallel, has_qk_norm, has_dropout, has_router_bias;
    bool is_pre_norm; /* encoders: norms precede the residual sums (ViT) */
    bool has_one_norm, has_no_norm_bias, has_own_output_norms, has_sinks, has_shared_gate;
    bool has_head_bias, has_embedding_norm, has_encoder;
    bool has_windows;               /* only some layers have the window */
    enum dry_activation activation; /* default; GELU: SILU if gated, except in Gemma */
    uint64_t heads, kv_heads, head_dim,
        vocab; /* defaults; 0: the configuration must have the value */
    /* Reads the sizes instead of the common keys; NULL: use the common keys. */
    void (*read_sizes)(struct model_reader *r, struct dry_model *m);
    /* Reads the family's own keys, after all others; NULL: none. */
    void (*read_rest)(struct model_reader *r, struct dry_model *m);
};

/* Find the family of the reader's object. An unknown type is treated as Llama if its keys
   mention RMSNorm, else as GPT-2 without positions, and is recorded in the reader. */
struct model_family model_family_find(struct model_reader *r);
/* Set the model's fields that the family determines. */
void model_family_apply(const struct model_family *f, struct dry_model *m);

#endif
