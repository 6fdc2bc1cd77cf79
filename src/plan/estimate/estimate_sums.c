/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sums that both the step and the rows use: forwards under way at once, the length of
 * segments, and the bytes of a cache and of one token's logits.
 */
#include "plan/estimate/estimate_inside.h"

/*
 * One forward, one backward (Narayanan et al., arXiv:2104.04473): stage r of p holds p -
 * r microbatches. With m chunks a device it holds (m - 1) p + 2 (p - r - 1) + 1 forwards
 * of chunks.
 */
uint64_t
dryi_flights(const struct dry_estimate *e)
{
    const struct dry_run_setup *s = &e->setup;
    uint64_t behind = s->pipeline - 1 - s->stage;
    uint64_t most = s->interleave == 1
                        ? behind + 1
                        : (s->interleave - 1) * s->pipeline + 2 * behind + 1;
    uint64_t wanted = dryi_product(s->accumulation, s->interleave);
    return s->pipeline == 1 || s->is_inference ? 1 : wanted < most ? wanted : most;
}

uint64_t
dryi_cache_bytes(const struct dry_estimate *e, bool is_global)
{
    const struct dry_model *m = &e->model;
    struct dryi_symbols symbols = e->symbols;
    char text[DRY_FORMULA_BYTES];
    uint64_t bytes;
    if (!is_global && m->window && m->window < e->setup.sequence)
        symbols.values['s'] = m->window;
    dryi_formula_eval(&symbols, m->kv_rank ? "j s e Q" : "2 g d s e Q / t", &bytes, text);
    return bytes;
}

uint64_t
dryi_token_logits(const struct dry_estimate *e)
{
    char text[DRY_FORMULA_BYTES];
    uint64_t bytes;
    dryi_formula_eval(&e->symbols, "4 Q V / t", &bytes, text);
    return e->model.has_no_head ? 0 : bytes;
}

uint64_t
dryi_segment_layers(const struct dry_estimate *e, uint64_t layers)
{
    uint64_t count = e->setup.checkpoint_count;
    switch (e->setup.checkpointing) {
    case DRY_CHECKPOINTING_NONE:
    case DRY_CHECKPOINTING_SELECTIVE:
        return 0;
    case DRY_CHECKPOINTING_FULL:
    case DRY_CHECKPOINTING_EVERY:
        return 1;
    case DRY_CHECKPOINTING_SQRT:
        break;
    }
    count = count ? count : dryi_isqrt_up(layers);
    return layers ? dryi_ceil_div(layers, count < layers ? count : layers) : 0;
}
