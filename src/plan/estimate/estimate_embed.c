/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The units before layers: tables of tokens and positions, patches of images (ViT), and two
 * convolutions over sound (Whisper); and the bridge between an encoder and its decoder.
 */
#include "plan/estimate/estimate_inside.h"

static void
add_table(struct dry_estimate *e, const char *name, uint64_t rows, uint64_t cols,
          bool is_split)
{
    struct dryi_param table = {.name = name,
                               .rows = rows,
                               .cols = cols,
                               .split = is_split ? e->setup.tensor : 1,
                               .is_frozen = e->setup.lora_rank > 0};
    if (rows)
        dryi_param_add(e, &table);
}

/* Add a convolution's matrix and bias to the operation added last. */
static void
add_filter(struct dry_estimate *e, const char *name, uint64_t cols)
{
    add_table(e, name, e->model.hidden, cols, false);
    add_table(e, "bias", e->model.hidden, 0, false);
}

static uint32_t
add_input(struct dry_estimate *e, const char *name, const char *size)
{
    uint32_t input = dryi_op_add(e, name, size);
    dryi_op_save(e, input, 1);
    if (e->status == DRY_OK)
        dryi_op_at(e, input)->grad_bytes = 0;
    return input;
}

/* Build the embedding of token numbers, a sum of table look-ups. */
static uint32_t
embed_tokens(struct dry_estimate *e)
{
    bool has_encoder = e->model.encoder_layers > 0;
    add_input(e, "token numbers", "8 b s / c");
    uint32_t sum = dryi_op_add(e, "embeddings", "o b s h / c r");
    add_table(e, "tokens", e->model.vocab, e->model.hidden, true);
    add_table(e, "positions", has_encoder ? 0 : e->model.positions, e->model.hidden,
              false);
    add_table(e, "token types", e->model.token_types, e->model.hidden, false);
    if (has_encoder)
        add_table(e, "position buckets", e->model.position_buckets, e->model.heads,
                  false);
    return sum;
}

/*
 * Build the embedding of image patches, which a convolution makes. The first token is a parameter.
 */
static uint32_t
embed_patches(struct dry_estimate *e)
{
    const struct dry_model *m = &e->model;
    add_input(e, "images", "4 b C H W");
    uint32_t patches = dryi_op_add(e, "patches", "e b s h / c r");
    add_filter(e, "patch", dryi_product(m->channels, dryi_product(m->patch, m->patch)));
    uint32_t sum = dryi_op_add(e, "embeddings", "o b s h / c r");
    add_table(e, "positions", m->positions, m->hidden, false);
    add_table(e, "first token", 1, m->hidden, false);
    dryi_op_use(e, patches, sum);
    return sum;
}

/*
 * Build the embedding of sound. It has two frames for each token of the encoder, because
 * the second convolution has a stride of 2. The decoder's table is added here, since the
 * head and the bridge share it.
 */
static uint32_t
embed_sound(struct dry_estimate *e)
{
    const struct dry_model *m = &e->model;
    add_input(e, "sound", "2 e b s C");
    uint32_t first = dryi_op_add(e, "convolved", "2 e b s h / r");
    add_table(e, "tokens", m->vocab, m->hidden, true);
    add_filter(e, "convolution 1", dryi_product(3, m->audio_channels));
    uint32_t wide = dryi_op_add(e, "convolved, activation", "2 e b s h / r");
    dryi_op_save(e, first, wide);
    uint32_t second = dryi_op_add(e, "convolved again", "e b s h / r");
    add_filter(e, "convolution 2", dryi_product(3, m->hidden));
    dryi_op_save(e, wide, second);
    uint32_t sum = dryi_op_add(e, "embeddings", "o b s h / r");
    add_table(e, "source positions", dryi_source_tokens(e), m->hidden, false);
    dryi_op_save(e, second, sum);
    return sum;
}

static uint32_t
drop_some(struct dry_estimate *e, uint32_t sum)
{
    if (!dryi_has_dropout(e))
        return sum;
    dryi_op_aux(e, "embedding mask", "m b s h / c r");
    uint32_t output = dryi_op_add(e, "embeddings, dropped", "o b s h / c r");
    dryi_op_use(e, sum, output);
    return output;
}

void
dryi_build_embedding(struct dry_estimate *e)
{
    static const struct dryi_norm_names names = {
        "embedding norm statistics", "embedding norm input, fp32",
        "embedding norm, normalized", "embedding norm output"};
    struct dryi_unit *unit = dryi_unit_begin(e, "embedding");
    unit->count = e->setup.stage == 0;
    uint32_t sum = e->model.patch            ? embed_patches(e)
                   : e->model.audio_channels ? embed_sound(e)
                                             : embed_tokens(e);
    if (e->model.has_embedding_norm)
        sum = dryi_build_norm(e, sum, &names);
    drop_some(e, sum);
    dryi_unit_end(e);
}

/*
 * Build the bridge: norm the encoder's states (M tokens), keep them for all decoder
 * layers, and embed the decoder's tokens.
 */
void
dryi_build_bridge(struct dry_estimate *e)
{
    static const struct dryi_norm_names names = {
        "encoder norm statistics", "encoder norm input, fp32", "encoder norm, normalized",
        "states of the encoder"};
    uint64_t tokens = e->symbols.values['s'];
    dryi_unit_begin(e, "bridge");
    e->symbols.values['s'] = e->symbols.values['M'];
    uint32_t input = dryi_op_add(e, "input", "o b s h / c r");
    uint32_t states = dryi_build_norm(e, input, &names);
    e->symbols.values['s'] = tokens;
    uint32_t sum = dryi_op_add(e, "embeddings", "o b s h / c r");
    add_table(e, "positions", e->model.positions, e->model.hidden, false);
    add_table(e, "position buckets", e->model.position_buckets, e->model.heads, false);
    if (e->status == DRY_OK)
        dryi_op_at(e, sum)->is_tied = e->setup.lora_rank == 0;
    drop_some(e, sum);
    uint32_t last =
        e->status == DRY_OK ? (uint32_t)e->units[e->unit_count - 1].op_count - 1 : 0;
    dryi_op_use(e, states, last);
    dryi_op_save(e, states, last);
    dryi_unit_end(e);
}
