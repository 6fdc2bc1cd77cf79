/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of layers over images as one unit. Convolutions, linear layers, batch norms and
 * pools save their input, as autograd does. A ReLU saves its output, a max pool also the
 * indices of the maxima. A tensor that two layers save exists once: the earlier layer,
 * whose backward is later, frees it.
 */
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "plan/estimate/estimate_inside.h"

struct image {
    uint64_t channels, height, width;
};

struct walk {
    struct dry_estimate *e;
    struct image *images; /* [layer + 1]; 0: the input */
    uint32_t *ops;        /* operations that made the images, by layer + 1 */
    size_t layer;
};

static enum dry_status
fail_layer(struct walk *w, const char *what)
{
    return w->e->status =
               dryi_fail(w->e->err, DRY_ERR_ARGUMENT, "layers[%zu]: %s", w->layer, what);
}

/*
 * Find the index in `images` and `ops` of the tensor that a layer reads. Returns false if
 * no earlier layer made it.
 */
static bool
find_source(const struct walk *w, int64_t from, size_t *at)
{
    if (from == DRY_CONV_PREVIOUS)
        from = (int64_t)w->layer - 1;
    if (from < DRY_CONV_IMAGES || from >= (int64_t)w->layer)
        return false;
    *at = (size_t)(from + 1);
    return true;
}

/*
 * (size + 2 padding - dilation (kernel - 1) - 1) / stride + 1; 0: the window is too
 * large.
 */
static uint64_t
slide(uint64_t size, const struct dry_conv_layer *l)
{
    uint64_t dilation = l->dilation ? l->dilation : 1;
    uint64_t is_pool = l->kind == DRY_CONV_MAX_POOL || l->kind == DRY_CONV_AVG_POOL;
    uint64_t stride = l->stride ? l->stride : is_pool ? l->kernel : 1;
    uint64_t window = dryi_sum(dryi_product(dilation, l->kernel - 1), 1);
    uint64_t padded = dryi_sum(size, dryi_product(2, l->padding));
    return padded < window ? 0 : (padded - window) / stride + 1;
}

static uint64_t
count_elements(const struct image *i)
{
    return dryi_product(i->channels, dryi_product(i->height, i->width));
}

static bool
make_output(struct walk *w, const struct dry_conv_layer *l, const struct image *in,
            const struct image *with, struct image *out)
{
    *out = *in;
    switch (l->kind) {
    case DRY_CONV_CONV:
    case DRY_CONV_MAX_POOL:
    case DRY_CONV_AVG_POOL:
        if (l->kernel == 0)
            return fail_layer(w, "kernel: expected 1 or more") == DRY_OK;
        out->height = slide(in->height, l);
        out->width = slide(in->width, l);
        out->channels = l->kind == DRY_CONV_CONV ? l->channels : in->channels;
        if (l->kind == DRY_CONV_CONV && in->channels % (l->groups ? l->groups : 1))
            return fail_layer(w, "groups: do not divide the channels") == DRY_OK;
        break;
    case DRY_CONV_GLOBAL_POOL:
        out->height = out->width = 1;
        break;
    case DRY_CONV_FLATTEN:
        *out = (struct image){count_elements(in), 1, 1};
        break;
    case DRY_CONV_LINEAR:
        out->channels = l->channels;
        break;
    case DRY_CONV_ADD:
        if (memcmp(in, with, sizeof *in) != 0)
            return fail_layer(w, "the two that it adds have different sizes") == DRY_OK;
        break;
    case DRY_CONV_CONCAT:
        if (in->height != with->height || in->width != with->width)
            return fail_layer(w, "the two that it joins have different sizes") == DRY_OK;
        out->channels = dryi_sum(in->channels, with->channels);
        break;
    case DRY_CONV_NORM:
    case DRY_CONV_RELU:
    case DRY_CONV_SILU:
    case DRY_CONV_DROPOUT:
        break;
    }
    if (count_elements(out) == 0)
        return fail_layer(w, "nothing is left of the image") == DRY_OK;
    return true;
}

static void
set_image(struct dry_estimate *e, const struct image *i)
{
    e->symbols.values['C'] = i->channels;
    e->symbols.values['H'] = i->height;
    e->symbols.values['W'] = i->width;
}

/* Save a layer's input. The first saver stays, because its backward comes last. */
static void
save_input(struct walk *w, uint32_t input, uint32_t op)
{
    if (w->e->status == DRY_OK && dryi_op_at(w->e, input)->saver == DRYI_NO_OP)
        dryi_op_save(w->e, input, op);
}

static void
add_params(struct walk *w, const struct dry_conv_layer *l, const struct image *in)
{
    uint64_t groups = l->groups ? l->groups : 1;
    struct dryi_param p = {.name = "weight", .rows = l->channels};
    if (l->kind == DRY_CONV_CONV)
        p.cols = dryi_product(in->channels / groups, dryi_product(l->kernel, l->kernel));
    else if (l->kind == DRY_CONV_LINEAR)
        p.cols = in->channels;
    else
        p.rows = in->channels; /* the weights of a norm */
    if (p.cols == 0 && l->kind != DRY_CONV_NORM)
        return;
    dryi_param_add(w->e, &p);
    p.cols = 0;
    if (l->kind == DRY_CONV_NORM || l->has_bias)
        dryi_param_add(w->e, &p);
}

/* Add what a layer saves in addition to its tensors, before the operation that saves it. */
static void
add_extra(struct walk *w, enum dry_conv_kind kind)
{
    struct dry_estimate *e = w->e;
    if (kind == DRY_CONV_NORM)
        dryi_op_aux(e, "norm statistics", "8 C");
    if (kind == DRY_CONV_MAX_POOL)
        dryi_op_aux(e, "places of maxima", "8 b C H W");
    if (kind == DRY_CONV_DROPOUT)
        dryi_op_aux(e, "mask", "m b C H W");
}

static bool
saves_input(enum dry_conv_kind kind)
{
    return kind == DRY_CONV_CONV || kind == DRY_CONV_NORM || kind == DRY_CONV_SILU ||
           kind == DRY_CONV_MAX_POOL || kind == DRY_CONV_AVG_POOL ||
           kind == DRY_CONV_LINEAR;
}

static void
add_layer(struct walk *w, const struct dry_conv_layer *l)
{
    struct dry_estimate *e = w->e;
    bool has_two = l->kind == DRY_CONV_ADD || l->kind == DRY_CONV_CONCAT;
    size_t from = 0, with = 0;
    struct image out;
    if (!find_source(w, l->from, &from) || (has_two && !find_source(w, l->with, &with))) {
        fail_layer(w, "it reads a layer that is not before it");
        return;
    }
    if (!make_output(w, l, &w->images[from], &w->images[with], &out))
        return;
    uint32_t input = w->ops[from];
    w->images[w->layer + 1] = out;
    w->ops[w->layer + 1] = input;
    if (l->kind == DRY_CONV_FLATTEN)
        return; /* the output is a view of the same tensor */
    set_image(e, &out);
    add_extra(w, l->kind);
    uint32_t op = dryi_op_add(e, dry_conv_kind_name(l->kind), "e b C H W");
    if (e->status != DRY_OK)
        return;
    add_params(w, l, &w->images[from]);
    w->ops[w->layer + 1] = op;
    dryi_op_use(e, input, op);
    if (has_two)
        dryi_op_use(e, w->ops[with], op);
    if (saves_input(l->kind))
        save_input(w, input, op);
    if (l->kind == DRY_CONV_RELU)
        dryi_op_save(e, op, op);
}

/*
 * Build the loss. The last layer's output is the logits, which stay allocated; their
 * logarithms are saved.
 */
static void
end_conv(struct walk *w, size_t layers)
{
    struct dry_estimate *e = w->e;
    uint32_t last = w->ops[layers];
    set_image(e, &w->images[layers]);
    uint32_t logarithms = dryi_op_add(e, "log-probabilities", "4 b C H W");
    dryi_op_save(e, logarithms, logarithms);
    uint32_t loss = dryi_op_add(e, "loss", "4");
    if (e->status != DRY_OK)
        return;
    dryi_op_use(e, last, logarithms);
    dryi_op_at(e, logarithms)->group = DRY_GROUP_LOSS;
    dryi_op_at(e, loss)->group = DRY_GROUP_LOSS;
}

static void
walk_layers(struct walk *w)
{
    struct dry_estimate *e = w->e;
    w->images[0] = (struct image){e->model.channels, e->model.height, e->model.width};
    set_image(e, &w->images[0]);
    uint32_t input = dryi_op_add(e, "images", "e b C H W");
    if (e->status == DRY_OK)
        dryi_op_at(e, input)->grad_bytes = 0;
    for (w->layer = 0; w->layer < e->model.conv_count && e->status == DRY_OK; w->layer++)
        add_layer(w, &e->model.conv[w->layer]);
    if (e->status == DRY_OK)
        end_conv(w, e->model.conv_count);
}

void
dryi_build_conv(struct dry_estimate *e)
{
    size_t count = e->model.conv_count + 1;
    struct walk w = {.e = e};
    dryi_unit_begin(e, "network");
    w.images = dryi_memory_zalloc(&e->memory, count, sizeof *w.images);
    w.ops = dryi_memory_zalloc(&e->memory, count, sizeof *w.ops);
    if (w.images && w.ops)
        walk_layers(&w);
    else
        e->status = dryi_fail_memory(e->err, "the layers of a model");
    dryi_memory_free(&e->memory, w.images, count, sizeof *w.images);
    dryi_memory_free(&e->memory, w.ops, count, sizeof *w.ops);
    dryi_unit_end(e);
}
