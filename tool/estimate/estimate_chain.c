/* SPDX-License-Identifier: Apache-2.0 */
/* Write a model as a chain for `drystone plan`: bytes as estimated, times from FLOPs. */
#include <stdio.h>
#include <string.h>

#include "base/command.h"
#include "base/json_out.h"
#include "estimate/estimate_report.h"

/* Assumed speed. A plan depends only on the ratios of times. */
#define FLOPS_A_US 1e8 /* 100 TFLOP/s */

static uint64_t
sum_rows(const struct dry_estimate *estimate, enum dry_estimate_group group,
         const char *name)
{
    size_t count;
    uint64_t sum = 0;
    const struct dry_estimate_row *rows = dry_estimate_get_rows(estimate, &count);
    for (size_t i = 0; i < count; i++) {
        if (rows[i].group == group && (!name || strcmp(rows[i].name, name) == 0))
            sum += rows[i].bytes;
    }
    return sum;
}

static json_t *
make_stage(const struct dry_estimate_unit *u)
{
    double us = (double)u->forward_flops / FLOPS_A_US;
    return json_pack(
        "{s:s, s:o, s:f, s:f, s:o, s:o, s:b, s:b, s:o, s:o, s:o}", "name", u->name,
        "repeat", json_out_number(u->count), "fwd", us, "bwd", 2 * us, "out",
        json_out_number(u->output_bytes), "saved", json_out_number(u->saved_bytes),
        "saved_has_input", u->saves_input, "saved_has_output", 0, "fwd_tmp",
        json_out_number(u->forward_tmp_bytes), "bwd_tmp",
        json_out_number(u->backward_tmp_bytes), "grads", json_out_number(u->grads_bytes));
}

static json_t *
make_loss(const struct dry_estimate_unit *u)
{
    double us = (double)u->forward_flops / FLOPS_A_US;
    uint64_t tmp = u->forward_tmp_bytes > u->backward_tmp_bytes ? u->forward_tmp_bytes
                                                                : u->backward_tmp_bytes;
    return json_pack("{s:f, s:f, s:o, s:b, s:o, s:o}", "fwd", us, "bwd", 2 * us, "saved",
                     json_out_number(u->saved_bytes), "saved_has_input", u->saves_input,
                     "tmp", json_out_number(tmp), "grads",
                     json_out_number(u->grads_bytes));
}

static json_t *
make_persistent(const struct estimate_report *r)
{
    const struct dry_estimate_summary *s = dry_estimate_get_summary(r->estimate);
    const struct dry_estimate *e = r->estimate;
    bool is_static =
        r->setup->accumulation > 1 || r->setup->precision == DRY_PRECISION_MASTER;
    uint64_t buffers = sum_rows(e, DRY_GROUP_TEMPORARY, "workspaces of cuBLAS") +
                       sum_rows(e, DRY_GROUP_TEMPORARY, "weights cast by autocast") +
                       sum_rows(e, DRY_GROUP_TEMPORARY, "buckets of DDP");
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:{s:o, s:s}}", "params", json_out_number(s->weight_bytes),
        "optimizer", json_out_number(s->optimizer_bytes), "buffers",
        json_out_number(buffers), "step_transient",
        json_out_number(sum_rows(e, DRY_GROUP_TEMPORARY, "the optimizer's step")),
        "grads", "bytes", json_out_number(s->gradient_bytes), "alloc",
        is_static ? "static" : "lazy");
}

static json_t *
make_stages(const struct dry_estimate_unit *units, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i + 1 < count; i++) {
        if (units[i].count)
            list = json_out_append(list, make_stage(&units[i]));
    }
    return list;
}

/* Make the budget. The reserve is capped at the card's memory, so a card too small for
   the driver leaves 0 bytes to the plan. */
static json_t *
make_budget(uint64_t capacity, uint64_t outside)
{
    return json_pack("{s:o, s:o}", "device", json_out_number(capacity), "reserve",
                     json_out_number(outside < capacity ? outside : capacity));
}

int
estimate_report_print_chain(const struct estimate_report *report)
{
    size_t count;
    const struct dry_estimate_unit *units =
        dry_estimate_get_units(report->estimate, &count);
    const struct dry_estimate_summary *s = dry_estimate_get_summary(report->estimate);
    json_t *root = json_pack(
        "{s:s, s:o, s:o, s:{s:o}, s:s, s:o, s:o}", "format", "ckpt-chain/1", "name",
        json_out_string(report->name), "persistent", make_persistent(report), "input",
        "bytes", json_out_number(units[0].input_bytes), "convention", "autograd",
        "stages", make_stages(units, count), "loss", make_loss(&units[count - 1]));
    if (root && report->capacity_bytes &&
        json_object_set_new(root, "budget",
                            make_budget(report->capacity_bytes, s->outside_bytes)) != 0) {
        json_decref(root);
        root = NULL;
    }
    return json_out_print("estimate", root);
}
