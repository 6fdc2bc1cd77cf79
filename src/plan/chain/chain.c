/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Chains: stages one after another. Every field is checked when its stage is added, so
 * planners need no checks.
 *
 * A stage's shape is its fields in a fixed order, as 64-bit little-endian values. Equal
 * shapes are interned as one kind, by which planners recognize runs of equal stages. The
 * chain's hash is computed from the shapes in order.
 */
#include <drystone/chain.h>

#include <string.h>

#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/siphash.h"
#include "plan/chain/chain_state.h"

#define BITS63 (UINT64_MAX >> 1)
#define FIELDS_MAX (10u + 6u * DRY_STAGE_OPTIONS_MAX)

/* Hashes are written to files and compared between machines: the key never changes. */
static const struct dryi_siphash_key hash_key = {UINT64_C(0x647279636861696e), 1};

struct shape {
    unsigned char bytes[FIELDS_MAX * 8];
    size_t size;
};

static void
put_word(struct shape *shape, uint64_t word)
{
    for (unsigned i = 0; i < 8; i++)
        shape->bytes[shape->size++] = (unsigned char)(word >> 8 * i);
}

uint64_t
dryi_plan_hash_word(uint64_t hash, uint64_t word)
{
    struct shape two = {.size = 0};
    put_word(&two, hash);
    put_word(&two, word);
    return dryi_siphash(&hash_key, two.bytes, two.size);
}

static void
put_stage(struct shape *shape, const struct dry_stage *stage)
{
    put_word(shape, stage->forward_ns);
    put_word(shape, stage->backward_ns);
    put_word(shape, stage->output_bytes);
    put_word(shape, stage->gradient_bytes);
    put_word(shape, stage->saved_bytes);
    put_word(shape, stage->forward_tmp_bytes);
    put_word(shape, stage->backward_tmp_bytes);
    put_word(shape, stage->grads_bytes);
    put_word(shape, stage->is_fixed);
    put_word(shape, stage->option_count);
    for (size_t i = 0; i < stage->option_count; i++) {
        const struct dry_stage_option *option = &stage->options[i];
        put_word(shape, option->saved_bytes);
        put_word(shape, option->recompute_ns);
        put_word(shape, option->backward_tmp_bytes);
        put_word(shape, option->offload_bytes);
    }
    /*
     * After all others, so that hashes of options without a forward_tmp of their own stay
     * the same.
     */
    for (uint32_t k = 1; k <= stage->option_count; k++) {
        uint64_t tmp = dryi_stage_forward_tmp(stage, k);
        if (tmp == stage->forward_tmp_bytes)
            continue;
        put_word(shape, k);
        put_word(shape, tmp);
    }
}

static uint64_t
hash_frame(const struct dry_chain_frame *frame)
{
    struct shape shape = {.size = 0};
    put_word(&shape, frame->persistent_bytes);
    put_word(&shape, frame->input_bytes);
    put_word(&shape, frame->input_gradient_bytes);
    put_word(&shape, frame->step_bytes);
    return dryi_siphash(&hash_key, shape.bytes, shape.size);
}

/* --- checks ------------------------------------------------------------------------------- */

/* The stage that is checked, for error texts. */
struct subject {
    size_t index;
    const char *name;
    struct dry_error *err;
};

struct field {
    const char *name;
    uint64_t value;
};

static enum dry_status
check_fields(const struct subject *who, const struct field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (fields[i].value > BITS63)
            return dryi_fail(who->err, DRY_ERR_LIMIT,
                             "stage %zu (%.60s): %s is %llu, which is more than 63 bits",
                             who->index, who->name, fields[i].name,
                             (unsigned long long)fields[i].value);
    }
    return DRY_OK;
}

static enum dry_status
check_numbers(const struct subject *who, const struct dry_stage *stage)
{
    const struct field fields[] = {
        {"forward_ns", stage->forward_ns},
        {"backward_ns", stage->backward_ns},
        {"output_bytes", stage->output_bytes},
        {"gradient_bytes", stage->gradient_bytes},
        {"saved_bytes", stage->saved_bytes},
        {"forward_tmp_bytes", stage->forward_tmp_bytes},
        {"backward_tmp_bytes", stage->backward_tmp_bytes},
        {"grads_bytes", stage->grads_bytes},
    };
    enum dry_status status = check_fields(who, fields, sizeof fields / sizeof *fields);
    if (status != DRY_OK)
        return status;
    if (stage->saved_bytes < stage->output_bytes)
        return dryi_fail(who->err, DRY_ERR_ARGUMENT,
                         "stage %zu (%.60s): saved_bytes, %llu, is less than "
                         "output_bytes, %llu, which is part of it",
                         who->index, who->name, (unsigned long long)stage->saved_bytes,
                         (unsigned long long)stage->output_bytes);
    return DRY_OK;
}

static enum dry_status
check_option(const struct subject *who, const struct dry_stage *stage, size_t k)
{
    const struct dry_stage_option *option = &stage->options[k];
    const struct field fields[] = {
        {"an option's saved_bytes", option->saved_bytes},
        {"an option's recompute_ns", option->recompute_ns},
        {"an option's backward_tmp_bytes", option->backward_tmp_bytes},
        {"an option's offload_bytes", option->offload_bytes},
        {"an option's forward_tmp_bytes",
         option->has_forward_tmp ? option->forward_tmp_bytes : 0},
    };
    enum dry_status status = check_fields(who, fields, sizeof fields / sizeof *fields);
    if (status != DRY_OK)
        return status;
    if (option->saved_bytes < stage->output_bytes)
        return dryi_fail(who->err, DRY_ERR_ARGUMENT,
                         "stage %zu (%.60s), option %zu: saved_bytes, %llu, is less than "
                         "the stage's output_bytes, %llu",
                         who->index, who->name, k + 1,
                         (unsigned long long)option->saved_bytes,
                         (unsigned long long)stage->output_bytes);
    if (option->offload_bytes > option->saved_bytes - stage->output_bytes)
        return dryi_fail(who->err, DRY_ERR_ARGUMENT,
                         "stage %zu (%.60s), option %zu: offload_bytes, %llu, is more "
                         "than it saves beside its output, which the next stage wants",
                         who->index, who->name, k + 1,
                         (unsigned long long)option->offload_bytes);
    return DRY_OK;
}

static enum dry_status
check_stage(const struct subject *who, const struct dry_stage *stage)
{
    enum dry_status status = check_numbers(who, stage);
    if (status != DRY_OK)
        return status;
    if (stage->option_count > DRY_STAGE_OPTIONS_MAX)
        return dryi_fail(who->err, DRY_ERR_LIMIT,
                         "stage %zu (%.60s): option_count is %zu, at most %u are allowed",
                         who->index, who->name, stage->option_count,
                         DRY_STAGE_OPTIONS_MAX);
    if (stage->option_count && !stage->options)
        return dryi_fail(who->err, DRY_ERR_ARGUMENT,
                         "stage %zu (%.60s): option_count is %zu, options is NULL",
                         who->index, who->name, stage->option_count);
    for (size_t k = 0; k < stage->option_count && status == DRY_OK; k++)
        status = check_option(who, stage, k);
    return status;
}

/* --- sums --------------------------------------------------------------------------------- */

struct sums {
    uint64_t bytes, work, time;
};

/* Add count * value to *sum. Returns false if the sum exceeds 63 bits. */
static bool
add_times(uint64_t *sum, uint64_t value, uint64_t count)
{
    uint64_t product;
    return !__builtin_mul_overflow(value, count, &product) &&
           !__builtin_add_overflow(*sum, product, sum) && *sum <= BITS63;
}

static bool
add_sums(struct sums *sums, const struct dry_stage *stage, uint64_t count)
{
    uint64_t saved = stage->saved_bytes, again = 0;
    uint64_t tmp = dryi_max(stage->forward_tmp_bytes, stage->backward_tmp_bytes);
    for (uint32_t k = 1; k <= stage->option_count; k++) {
        saved = dryi_max(saved, dryi_stage_saved_by(stage, k));
        tmp = dryi_max(tmp, dryi_stage_forward_tmp(stage, k));
        tmp = dryi_max(tmp, dryi_stage_backward_tmp(stage, k));
        again = dryi_max(again, stage->options[k - 1].recompute_ns);
    }
    return add_times(&sums->bytes, saved, count) && add_times(&sums->bytes, tmp, count) &&
           add_times(&sums->bytes, stage->gradient_bytes, count) &&
           add_times(&sums->bytes, stage->grads_bytes, count) &&
           add_times(&sums->time, stage->forward_ns, count) &&
           add_times(&sums->time, stage->backward_ns, count) &&
           add_times(&sums->work, stage->forward_ns, count) &&
           add_times(&sums->work, stage->backward_ns, count) &&
           add_times(&sums->work, again, count);
}

static bool
add_frame(uint64_t *sum, const struct dry_chain_frame *frame)
{
    return add_times(sum, frame->persistent_bytes, 1) &&
           add_times(sum, frame->input_bytes, 1) &&
           add_times(sum, frame->input_gradient_bytes, 1) &&
           add_times(sum, frame->step_bytes, 1);
}

/* --- copies ------------------------------------------------------------------------------- */

static const char *
copy_text(char **at, const char *text)
{
    if (!text)
        return NULL;
    size_t size = strlen(text) + 1;
    char *copy = memcpy(*at, text, size);
    *at += size;
    return copy;
}

static size_t
size_of_text(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

/*
 * Replace the stage's pointers by those of a copy that the chain owns. Returns false if
 * memory ran out.
 */
static bool
copy_stage(struct dry_chain *chain, struct dry_stage *stage)
{
    size_t options = stage->option_count * sizeof *stage->options;
    size_t size = options + size_of_text(stage->name);
    for (size_t k = 0; k < stage->option_count; k++)
        size += size_of_text(stage->options[k].name);
    if (size == 0) {
        stage->options = NULL;
        return true;
    }
    if (!dryi_memory_grow(&chain->memory, &chain->copies, &chain->copy_capacity,
                          chain->copy_count + 1, sizeof *chain->copies))
        return false;
    struct dry_stage_option *to = dryi_memory_zalloc(&chain->memory, size, 1);
    if (!to)
        return false;
    chain->copies[chain->copy_count++] = (struct dryi_chain_copy){to, size};
    char *text = (char *)to + options;
    stage->name = copy_text(&text, stage->name);
    for (size_t k = 0; k < stage->option_count; k++) {
        to[k] = stage->options[k];
        to[k].name = copy_text(&text, stage->options[k].name);
    }
    stage->options = stage->option_count ? to : NULL;
    return true;
}

static void
drop_last_copy(struct dry_chain *chain)
{
    const struct dryi_chain_copy *copy = &chain->copies[--chain->copy_count];
    dryi_memory_free(&chain->memory, copy->bytes, copy->size, 1);
}

/* --- the chain ---------------------------------------------------------------------------- */

enum dry_status
dry_chain_create(const struct dry_chain_frame *frame, const struct dry_memory *memory,
                 struct dry_chain **chain, struct dry_error *err)
{
    static const struct dry_chain_frame nothing = {0};
    struct dry_memory m = dryi_memory_or_default(memory);
    uint64_t sum = 0;
    frame = frame ? frame : &nothing;
    if (!add_frame(&sum, frame))
        return dryi_fail(err, DRY_ERR_LIMIT, "the frame's bytes are more than 63 bits");
    struct dry_chain *c = dryi_memory_zalloc(&m, 1, sizeof *c);
    if (!c)
        return dryi_fail_memory(err, "a chain");
    c->memory = m;
    c->frame = *frame;
    c->bytes_sum = sum;
    c->hash = hash_frame(frame);
    dryi_intern_init(&c->shapes, &c->memory);
    *chain = c;
    return DRY_OK;
}

void
dry_chain_destroy(struct dry_chain *chain)
{
    if (!chain)
        return;
    struct dry_memory memory = chain->memory;
    while (chain->copy_count)
        drop_last_copy(chain);
    dryi_memory_free(&memory, chain->copies, chain->copy_capacity, sizeof *chain->copies);
    dryi_memory_free(&memory, chain->stages, chain->capacity, sizeof *chain->stages);
    dryi_memory_free(&memory, chain->kinds, chain->kind_capacity, sizeof *chain->kinds);
    dryi_intern_finish(&chain->shapes);
    dryi_memory_free(&memory, chain, 1, sizeof *chain);
}

static enum dry_status
check_repeat(const struct dry_chain *chain, const struct subject *who, size_t repeat)
{
    if (repeat == 0)
        return dryi_fail(who->err, DRY_ERR_ARGUMENT, "stage %zu (%.60s): repeat is 0",
                         who->index, who->name);
    if (repeat > DRY_CHAIN_STAGES_MAX - chain->count)
        return dryi_fail(
            who->err, DRY_ERR_LIMIT,
            "stage %zu (%.60s): repeat is %zu; a chain has at most %u stages", who->index,
            who->name, repeat, DRY_CHAIN_STAGES_MAX);
    return DRY_OK;
}

/* Append the stage after all checks. Cannot fail. */
static void
append(struct dry_chain *chain, const struct dry_stage *stage, uint32_t kind,
       uint64_t shape_hash, size_t repeat)
{
    for (size_t i = 0; i < repeat; i++) {
        chain->stages[chain->count] = *stage;
        chain->kinds[chain->count++] = kind;
        chain->hash = dryi_plan_hash_word(chain->hash, shape_hash);
    }
}

enum dry_status
dry_chain_add(struct dry_chain *chain, const struct dry_stage *stage, size_t repeat,
              struct dry_error *err)
{
    struct subject who = {chain->count, stage->name ? stage->name : "no name", err};
    struct sums sums = {chain->bytes_sum, chain->work_sum, chain->time_sum};
    enum dry_status status = check_repeat(chain, &who, repeat);
    if (status == DRY_OK)
        status = check_stage(&who, stage);
    if (status != DRY_OK)
        return status;
    if (!add_sums(&sums, stage, repeat))
        return dryi_fail(err, DRY_ERR_LIMIT,
                         "stage %zu (%.60s), %zu times: with it the chain's bytes or "
                         "times are more than 63 bits",
                         who.index, who.name, repeat);
    struct dry_stage own = *stage; /* may point into chain->stages, which moves */
    struct shape shape = {.size = 0};
    put_stage(&shape, &own);
    size_t copies = chain->copy_count;
    uint32_t kind = dryi_intern_put(&chain->shapes, shape.bytes, shape.size);
    if (kind == DRYI_INTERN_NONE || !copy_stage(chain, &own) ||
        !dryi_memory_grow(&chain->memory, &chain->stages, &chain->capacity,
                          chain->count + repeat, sizeof *chain->stages) ||
        !dryi_memory_grow(&chain->memory, &chain->kinds, &chain->kind_capacity,
                          chain->count + repeat, sizeof *chain->kinds)) {
        if (chain->copy_count > copies)
            drop_last_copy(chain);
        return dryi_fail_memory(err, "a chain's stages");
    }
    append(chain, &own, kind, dryi_siphash(&hash_key, shape.bytes, shape.size), repeat);
    chain->bytes_sum = sums.bytes;
    chain->work_sum = sums.work;
    chain->time_sum = sums.time;
    return DRY_OK;
}

const struct dry_chain_frame *
dry_chain_get_frame(const struct dry_chain *chain)
{
    return &chain->frame;
}

size_t
dry_chain_get_count(const struct dry_chain *chain)
{
    return chain->count;
}

const struct dry_stage *
dry_chain_get_stage(const struct dry_chain *chain, size_t index)
{
    return index < chain->count ? &chain->stages[index] : NULL;
}

uint64_t
dry_chain_get_time(const struct dry_chain *chain)
{
    return chain->time_sum;
}

uint64_t
dry_chain_get_hash(const struct dry_chain *chain)
{
    return chain->hash;
}

uint64_t
dry_stage_saved(const struct dry_saved *saved)
{
    uint64_t input = saved->has_input ? saved->input_bytes : 0;
    uint64_t output = saved->has_output ? 0 : saved->output_bytes, sum;
    if (input > saved->bytes ||
        __builtin_add_overflow(saved->bytes - input, output, &sum))
        return UINT64_MAX;
    return sum;
}
