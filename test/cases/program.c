/* SPDX-License-Identifier: Apache-2.0 */

#include "cases/program_state.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

#define TIME_BEGIN INT64_C(1760000000000000) /* October 2025 */
#define REQUEST_US 7                         /* between two requests of a busy program */
#define COMPAT "2.11" /* the release whose rules all cases follow */

void
program_fail(struct program *p, enum dry_status status)
{
    if (p->status == DRY_OK)
        p->status = status;
    p->is_over = true;
}

bool
program_is_over(const struct program *p)
{
    return p->is_over;
}

struct random *
program_random(struct program *p)
{
    return &p->random;
}

unsigned
program_variant(const struct program *p)
{
    return p->label->variant;
}

bool
program_is_without(const struct program *p, enum dry_cause cause)
{
    return p->label->without == cause;
}

/* --- states ------------------------------------------------------------------------------- */

void
program_in(struct program *p, const char *outer_frames)
{
    p->outer_frames = outer_frames;
}

void
program_at(struct program *p, const char *inner_frames)
{
    p->stack = program_make_stack(p, inner_frames, p->outer_frames);
}

void
program_at_backward_of(struct program *p, const char *forward_frames)
{
    p->stack = program_make_backward_stack(
        p,
        "at::native::empty_cuda@??:0; at::_ops::empty_strided::call@??:0; "
        "torch::autograd::Engine::evaluate_function@??:0; "
        "torch::autograd::Engine::thread_main@??:0",
        forward_frames);
}

void
program_on(struct program *p, uint64_t stream)
{
    p->stream = stream;
}

void
program_tag(struct program *p, const char *user_metadata)
{
    p->user_metadata =
        dry_trace_add_string(p->builder, user_metadata, strlen(user_metadata));
}

void
program_wait(struct program *p, int64_t us)
{
    p->time_us += us;
}

static void
annotate(struct program *p, const char *name, const char *stage)
{
    struct dry_trace_annotation annotation = {
        .time_us = p->time_us,
        .name = dry_trace_add_string(p->builder, name, strlen(name)),
        .stage = dry_trace_add_string(p->builder, stage, strlen(stage)),
        .extra = DRY_NONE,
        .device = p->device,
    };
    if (!p->label->has_no_events && program_has_fields_of(p, 4))
        dry_trace_add_annotation(p->builder, &annotation);
}

/* An exception ends scopes too, but none begins after it. */
void
program_begin_scope(struct program *p, const char *name)
{
    if (p->is_over)
        return;
    p->open_scopes++;
    annotate(p, name, "START");
}

void
program_end_scope(struct program *p, const char *name)
{
    if (p->open_scopes == 0)
        return;
    p->open_scopes--;
    annotate(p, name, "END");
}

/* --- requests ----------------------------------------------------------------------------- */

uint32_t
program_take(struct program *p, uint64_t bytes)
{
    if (p->is_over)
        return NO_TENSOR;
    if (!dryi_memory_grow(&p->memory, &p->tensors, &p->tensor_capacity,
                          p->tensor_count + 1, sizeof *p->tensors)) {
        program_fail(p, DRY_ERR_MEMORY);
        return NO_TENSOR;
    }
    struct tensor *tensor = &p->tensors[p->tensor_count];
    *tensor = (struct tensor){.stack = p->stack};
    p->time_us += REQUEST_US;
    truth_note_request(p);
    enum dry_status status = dryi_torch_alloc(p->place, bytes, p->stream, &tensor->block);
    if (status == DRY_ERR_NO_SPACE) {
        truth_note_moment(p, bytes);
        p->is_over = true;
        return NO_TENSOR;
    }
    if (status != DRY_OK) {
        program_fail(p, status);
        return NO_TENSOR;
    }
    tensor->is_alive = true;
    return (uint32_t)p->tensor_count++;
}

static void
give(struct program *p, uint32_t tensor)
{
    struct tensor *t = &p->tensors[tensor];
    if (!t->is_alive)
        return;
    p->time_us += 1;
    enum dry_status status = dryi_torch_free(p->place, t->block);
    if (status != DRY_OK)
        program_fail(p, status);
    t->is_alive = false;
}

void
program_give(struct program *p, uint32_t tensor)
{
    if (!p->is_over && tensor != NO_TENSOR)
        give(p, tensor);
}

void
program_give_all(struct program *p, uint32_t *tensors, size_t count)
{
    while (count-- > 0) {
        program_give(p, tensors[count]);
        tensors[count] = NO_TENSOR;
    }
}

uint32_t
program_keep(struct program *p, uint32_t tensor)
{
    if (tensor != NO_TENSOR)
        p->tensors[tensor].is_kept = true;
    return tensor;
}

void
program_record_stream(struct program *p, uint32_t tensor, uint64_t stream)
{
    if (p->is_over || tensor == NO_TENSOR)
        return;
    enum dry_status status =
        dryi_torch_record_stream(p->place, p->tensors[tensor].block, stream);
    if (status != DRY_OK)
        program_fail(p, status);
}

void
program_finish_stream(struct program *p, uint64_t stream)
{
    if (!p->is_over)
        dry_sim_complete_stream(p->sim, stream);
}

void
program_empty_cache(struct program *p)
{
    if (p->is_over)
        return;
    enum dry_status status =
        dryi_torch_empty_cache(p->place, (struct dryi_pool_id){0, 0});
    if (status != DRY_OK)
        program_fail(p, status);
}

void
program_begin_pool(struct program *p, uint64_t a, uint64_t b)
{
    if (p->is_over)
        return;
    p->pool = (struct dryi_pool_id){a, b};
    enum dry_status status = dryi_torch_begin_pool(p->place, p->pool);
    if (status != DRY_OK)
        program_fail(p, status);
}

void
program_end_pool(struct program *p, uint64_t a, uint64_t b)
{
    if (p->is_over)
        return;
    enum dry_status status = dryi_torch_end_pool(p->place, (struct dryi_pool_id){a, b});
    p->pool = (struct dryi_pool_id){0, 0};
    if (status != DRY_OK)
        program_fail(p, status);
}

/* Another device had the OOM: the truth is about that one. */
static bool
is_past_the_moment(const struct program *p)
{
    return p->truth.has_oom && p->truth.device != p->device;
}

void
program_end_step(struct program *p)
{
    struct dry_stats stats;
    if (p->is_over || p->step_count == CASE_STEPS_MAX || is_past_the_moment(p))
        return;
    dryi_torch_get_stats(p->place, &stats);
    p->truth.step_live_bytes[p->step_count++] =
        (uint64_t)stats.allocated_bytes.all.current;
    p->truth.step_count = p->step_count;
}

void
program_unwind(struct program *p, bool all)
{
    if (p->oom_index == SIZE_MAX || p->status != DRY_OK)
        return;
    program_in(p, "<module>@train.py:171");
    program_at(p, "clear_frames@traceback.py:76");
    for (size_t i = p->tensor_count; i-- > 0;) {
        if (all || !p->tensors[i].is_kept)
            give(p, (uint32_t)i);
    }
}

void
program_catch(struct program *p)
{
    if (p->status == DRY_OK)
        p->is_over = false;
}

/* --- devices ------------------------------------------------------------------------------ */

static enum dry_status
make_place(struct program *p, struct dry_error *err)
{
    const struct labelled_case *label = p->label;
    struct dry_sim_options sim_options;
    dry_sim_options_init(&sim_options);
    sim_options.capacity_bytes = label->total_bytes - label->other_bytes;
    sim_options.total_bytes = label->total_bytes;
    enum dry_status status = dry_sim_create(&sim_options, &p->sim, err);
    if (status != DRY_OK)
        return status;
    struct dryi_torch_options options = {
        .conf = p->conf,
        .rules = dryi_torch_rules_find(COMPAT),
        .device = dry_sim_get_device(p->sim),
        .observer = {.event = program_record, .self = p},
    };
    status = dryi_torch_create(&options, &p->place, err);
    if (status == DRY_OK && label->fraction > 0)
        status = dryi_torch_set_fraction(p->place, label->fraction);
    return status;
}

static enum dry_status
open_device(struct program *p, int32_t device, struct dry_error *err)
{
    p->device = device;
    p->event_count = p->tensor_count = p->step_count = 0;
    p->oom_index = SIZE_MAX;
    p->is_over = false;
    p->open_scopes = 0;
    p->time_us = TIME_BEGIN;
    p->stream = 0;
    p->pool = (struct dryi_pool_id){0, 0};
    p->outer_frames = "";
    p->stack = DRY_NONE;
    dryi_map_init(&p->places, &p->memory);
    dryi_map_init(&p->segments, &p->memory);
    dry_trace_begin_device(p->builder, device);
    return make_place(p, err);
}

static void
drop_device(struct program *p)
{
    dryi_torch_destroy(p->place);
    dry_sim_destroy(p->sim);
    p->place = NULL;
    p->sim = NULL;
    dryi_map_finish(&p->places);
    dryi_map_finish(&p->segments);
}

static void
close_device(struct program *p)
{
    if (p->status == DRY_OK) {
        truth_note_end(p);
        program_close_device(p);
    }
    drop_device(p);
}

void
program_next_device(struct program *p)
{
    if (p->status != DRY_OK)
        return;
    close_device(p);
    enum dry_status status = open_device(p, p->device + 1, NULL);
    if (status != DRY_OK)
        program_fail(p, status);
}

/* --- the whole ---------------------------------------------------------------------------- */

static enum dry_status
read_conf(struct program *p, struct dry_error *err)
{
    const char *text = p->label->conf ? p->label->conf : "";
    dryi_torch_conf_init(&p->conf);
    return dryi_torch_conf_parse(text, strlen(text), dryi_torch_rules_find(COMPAT),
                                 &p->conf, err);
}

static enum dry_status
run(struct program *p, struct dry_error *err)
{
    enum dry_status status = read_conf(p, err);
    if (status == DRY_OK)
        status = program_open_record(p, err);
    if (status != DRY_OK)
        return status;
    status = open_device(p, 0, err);
    if (status == DRY_OK) {
        p->label->run(p);
        close_device(p);
        status = p->status;
    } else {
        drop_device(p);
    }
    return status;
}

static enum dry_status
finish(struct program *p, enum dry_status status, struct dry_trace **snapshot,
       struct dry_error *err)
{
    if (status == DRY_OK) {
        status = dry_trace_builder_finish(p->builder, snapshot, err);
    } else {
        dry_trace_builder_destroy(p->builder);
        if (status == DRY_ERR_MEMORY)
            dryi_fail_memory(err, "a labelled case");
    }
    dryi_memory_free(&p->memory, p->events, p->event_capacity, sizeof *p->events);
    dryi_memory_free(&p->memory, p->tensors, p->tensor_capacity, sizeof *p->tensors);
    return status;
}

uint64_t
case_allowed_bytes(const struct case_truth *truth)
{
    return truth->limit_bytes < truth->capacity_bytes ? truth->limit_bytes
                                                      : truth->capacity_bytes;
}

enum dry_status
case_make(const struct labelled_case *label, struct dry_trace **snapshot,
          struct case_truth *truth, struct dry_error *err)
{
    struct program p = {.label = label,
                        .memory = dryi_memory_or_default(NULL),
                        .truth = {.total_bytes = label->total_bytes,
                                  .oom_event = SIZE_MAX,
                                  .limit_bytes = UINT64_MAX}};
    p.truth.capacity_bytes = label->total_bytes - label->other_bytes;
    random_init(&p.random, 1);
    enum dry_status status = finish(&p, run(&p, err), snapshot, err);
    if (status == DRY_OK && truth)
        *truth = p.truth;
    return status;
}
