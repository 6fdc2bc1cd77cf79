/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrices in fewer bits: the bytes of everything that a format stores for a matrix. The
 * shapes are those of the tensors that AutoAWQ, AutoGPTQ, bitsandbytes,
 * compressed-tensors and Transformers' FP8 and MXFP4 write.
 */
#include "base/fail.h"
#include "plan/estimate/estimate_inside.h"

#define WORD_BITS 32u     /* elements are packed into 32-bit integers */
#define NF4_BLOCK 64u     /* elements that share a scale */
#define NF4_TABLE 64u     /* bytes of the table of the 16 values of a code */
#define NESTED_BLOCK 256u /* scales that share a second scale */
#define NESTED_TABLE 1024u
#define MXFP4_BLOCK 32u

bool
dryi_is_quantized(const struct dry_model *model, const struct dryi_param *param)
{
    return model->quantization != DRY_QUANTIZATION_NONE && param->is_linear &&
           (param->is_expert || !model->are_experts_quantized_only);
}

/* Return the bytes of `elements` of `bits` each, in whole 32-bit integers. */
static uint64_t
packed(uint64_t elements, uint64_t bits)
{
    return dryi_product(dryi_ceil_div(dryi_product(elements, bits), WORD_BITS), 4);
}

static uint64_t
count_groups(const struct dry_model *m, uint64_t in)
{
    return dryi_ceil_div(in, m->quantization_group ? m->quantization_group : in);
}

/* Return the bytes of AWQ or GPTQ: `words`, which are the matrix's own, zero points and scales. */
static uint64_t
grouped(const struct dry_model *m, const struct dryi_param *p, uint64_t words)
{
    uint64_t groups = count_groups(m, p->cols);
    uint64_t zeros = dryi_product(groups, packed(p->rows, m->quantization_bits));
    uint64_t scales = dryi_product(groups, dryi_product(p->rows, 2));
    return dryi_sum(words, dryi_sum(zeros, scales));
}

/*
 * Return the bytes of rows packed with a 2-byte scale for each group, and the shape in two int64.
 */
static uint64_t
compressed(const struct dry_model *m, const struct dryi_param *p)
{
    uint64_t groups = count_groups(m, p->cols);
    uint64_t words = dryi_product(p->rows, packed(p->cols, m->quantization_bits));
    uint64_t scales = dryi_product(dryi_product(p->rows, groups), 2);
    uint64_t zeros = m->has_zero_points
                         ? dryi_product(groups, packed(p->rows, m->quantization_bits))
                         : 0;
    return dryi_sum(dryi_sum(words, scales), dryi_sum(zeros, 16));
}

/*
 * Return half a byte for each element, and scales: in fp32, or in 8 bits with scales and
 * an offset of their own.
 */
static uint64_t
nf4(uint64_t elements, bool is_double)
{
    uint64_t scales = dryi_ceil_div(elements, NF4_BLOCK), bytes = dryi_product(scales, 4);
    if (is_double)
        bytes =
            dryi_sum(scales, dryi_ceil_div(scales, NESTED_BLOCK) * 4 + 4 + NESTED_TABLE);
    return dryi_sum(dryi_ceil_div(elements, 2), dryi_sum(bytes, NF4_TABLE));
}

static uint64_t
blocks(const struct dry_model *m, const struct dryi_param *p)
{
    uint64_t rows = m->quantization_rows ? m->quantization_rows : 128;
    uint64_t cols = m->quantization_cols ? m->quantization_cols : 128;
    return dryi_product(dryi_ceil_div(p->rows, rows), dryi_ceil_div(p->cols, cols));
}

static uint64_t
one_matrix(const struct dry_model *m, const struct dryi_param *p)
{
    uint64_t n = dryi_product(p->rows, p->cols), bits = m->quantization_bits;
    switch (m->quantization) {
    case DRY_QUANTIZATION_AWQ:
        return grouped(m, p, dryi_product(p->cols, packed(p->rows, bits)));
    case DRY_QUANTIZATION_GPTQ:
        return dryi_sum(grouped(m, p, dryi_product(p->rows, packed(p->cols, bits))),
                        dryi_product(p->cols, 4));
    case DRY_QUANTIZATION_NF4:
    case DRY_QUANTIZATION_NF4_DOUBLE:
        return nf4(n, m->quantization == DRY_QUANTIZATION_NF4_DOUBLE);
    case DRY_QUANTIZATION_INT8:
        return dryi_sum(n, dryi_product(p->rows, 4));
    case DRY_QUANTIZATION_FP8_BLOCK:
        return dryi_sum(n, dryi_product(blocks(m, p), 4));
    case DRY_QUANTIZATION_ROW:
        return dryi_sum(n, dryi_product(p->rows, 2));
    case DRY_QUANTIZATION_TENSOR:
        return dryi_sum(n, 2);
    case DRY_QUANTIZATION_PACKED:
        return compressed(m, p);
    case DRY_QUANTIZATION_MXFP4:
        return dryi_sum(dryi_ceil_div(n, 2),
                        dryi_product(p->rows, dryi_ceil_div(p->cols, MXFP4_BLOCK)));
    case DRY_QUANTIZATION_NONE:
        break;
    }
    return dryi_product(n, 2);
}

uint64_t
dryi_quantized_bytes(const struct dry_model *model, const struct dryi_param *param)
{
    uint64_t bytes = one_matrix(model, param);
    bytes = dryi_sum(bytes, model->has_input_scales ? 2 : 0);
    return dryi_product(bytes, param->count);
}

/* Return whether long inputs need the matrix in 16 bits, which then exists during the product. */
static bool
is_widened(enum dry_quantization quantization)
{
    return quantization == DRY_QUANTIZATION_AWQ ||
           quantization == DRY_QUANTIZATION_GPTQ ||
           quantization == DRY_QUANTIZATION_NF4 ||
           quantization == DRY_QUANTIZATION_NF4_DOUBLE;
}

uint64_t
dryi_widened_bytes(const struct dry_estimate *e)
{
    uint64_t most = 0;
    for (size_t i = 0; i < e->param_count && is_widened(e->model.quantization); i++) {
        const struct dryi_param *p = &e->params[i];
        uint64_t one = dryi_ceil_div(p->elements, p->is_expert ? p->count : 1);
        if (dryi_is_quantized(&e->model, p) && one > most)
            most = one;
    }
    return dryi_product(most, dryi_widths_get(e->setup.precision).activation);
}

enum dry_status
dryi_quantization_check(const struct dry_model *m, struct dry_error *err)
{
    uint64_t bits = m->quantization_bits;
    bool has_bits = m->quantization == DRY_QUANTIZATION_AWQ ||
                    m->quantization == DRY_QUANTIZATION_GPTQ ||
                    m->quantization == DRY_QUANTIZATION_PACKED;
    if (has_bits && bits != 2 && bits != 3 && bits != 4 && bits != 8)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "quantization_bits: expected 2, 3, 4 or 8, found %llu",
                         (unsigned long long)bits);
    if (m->quantization == DRY_QUANTIZATION_MXFP4 && m->experts == 0)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "quantization: mxfp4 is of experts, and there are none");
    return DRY_OK;
}
