/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_MODEL_FAMILY_H
#define TOOL_MODEL_FAMILY_H

/*
 * Families of models: what Transformers' classes do and their configuration need not say.
 *
 * Source     Transformers' configuration_*.py and modeling_*.py, of 4.57.
 */

#include <stdbool.h>

#include "estimate/model_reader.h"

struct model_family {
    const char *type; /* of "model_type" */
    bool is_encoder, is_gated, is_rms, is_tied, has_bias, has_qkv_bias, has_positions;
    bool is_parallel, has_qk_norm, has_dropout, has_router_bias;
    bool is_pre_norm; /* of an encoder: its norms stand before the sums (ViT) */
    bool has_one_norm, has_no_norm_bias, has_own_output_norms, has_sinks, has_shared_gate;
    bool has_head_bias, has_embedding_norm, has_encoder;
    bool has_windows;               /* a window is of some layers alone */
    enum dry_activation activation; /* GELU: SILU where it is gated, but for Gemma */
    uint64_t heads, kv_heads, head_dim,
        vocab; /* that may be left unsaid; 0: they may not */
    /* Read the sizes in the place of the common keys; NULL: those are read. */
    void (*read_sizes)(struct model_reader *r, struct dry_model *m);
    /* Read what this family alone has, after all else; NULL: nothing. */
    void (*read_rest)(struct model_reader *r, struct dry_model *m);
};

/*
 * Find the family of the reader's object. Another type is taken as Llama where its keys say
 * RMSNorm, else as GPT-2 without positions, and named in the reader.
 */
struct model_family model_family_find(struct model_reader *r);
/* Set the model's fields that the family decides. */
void model_family_apply(const struct model_family *f, struct dry_model *m);

#endif
