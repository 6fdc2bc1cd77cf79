/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_CASES_MODEL_H
#define TEST_CASES_MODEL_H

/*
 * A decoder-only transformer in bfloat16 with Adam in float32, as far as its memory goes:
 * what forward saves, what backward gives back in reverse order, what the first optimizer
 * step adds.
 *
 *     model_load(p, &m);
 *     while (!program_is_over(p))
 *         model_step(p, &m);      forward, loss, backward, optimizer, zero_grad
 */

#include "cases/program.h"

#define LAYERS_MAX 40
#define SAVED_MAX 12 /* tensors a layer saves for backward */
#define WEIGHTS 4    /* large matrices a layer has */

struct model {
    unsigned layers, heads;
    uint64_t hidden, vocab;
    uint64_t batch, length; /* of the step under way */
    bool has_optimizer;     /* false: plain SGD, no state */

    /* From here on the functions' own. */
    uint32_t saved[LAYERS_MAX][SAVED_MAX];
    uint32_t grads[LAYERS_MAX][WEIGHTS + 1];
    uint32_t embedding_grad;
    uint32_t input, logits, loss;
    bool has_state;
};

/* Bytes of one activation of batch x length x hidden. */
uint64_t model_unit(const struct model *m);

void model_load(struct program *p, struct model *m);
void model_forward(struct program *p, struct model *m);
void model_backward(struct program *p, struct model *m);
void model_optimize(struct program *p, struct model *m);
void model_step(struct program *p, struct model *m);

#endif
