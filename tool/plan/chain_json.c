/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two conventions have to be translated. The tensors that autograd saves include a
 * module's input and not always its output; a chain counts the output and not the input.
 * A stage's bytes therefore depend on its neighbour's output, so the first of several
 * equal stages may differ from the others. Gradients that the backward allocates belong
 * to stages. Gradients that no stage claims are charged for the whole step, which never
 * underestimates.
 */
#include "plan/chain_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/grow.h"
#include "base/json_in.h"
#include "base/term.h"
#include "plan/chain_keep.h"

#define OPTION_COPIES_MAX UINT64_C(1000000) /* options * repetitions, over all stages */

static const char *const chain_keys[] = {"format",     "name",  "budget",
                                         "persistent", "input", "convention",
                                         "stages",     "loss",  NULL};
static const char *const budget_keys[] = {"device", "reserve", "fragmentation", NULL};
static const char *const persistent_keys[] = {"params",  "grads",          "optimizer",
                                              "buffers", "step_transient", NULL};
static const char *const grads_keys[] = {"bytes", "alloc", NULL};
static const char *const input_keys[] = {"bytes", "grad", NULL};
static const char *const stage_keys[] = {"name",
                                         "repeat",
                                         "fwd",
                                         "bwd",
                                         "out",
                                         "grad_out",
                                         "saved",
                                         "saved_has_input",
                                         "saved_has_output",
                                         "fwd_tmp",
                                         "bwd_tmp",
                                         "grads",
                                         "storages",
                                         "recomputable",
                                         "rng",
                                         "options",
                                         "operations",
                                         NULL};
static const char *const option_keys[] = {
    "id",      "saved",   "saved_has_input", "saved_has_output", "recompute",
    "fwd_tmp", "bwd_tmp", "offload",         "policy",           NULL};
static const char *const loss_keys[] = {"fwd", "bwd",   "saved", "saved_has_input",
                                        "tmp", "grads", NULL};

struct reader {
    struct json_in in;
    struct chain_file *file;
    const struct dry_memory *memory;
    bool is_autograd;
    bool are_grads_lazy;
    bool has_grads_total;
    uint64_t grads_total, grads_claimed;
    uint64_t previous_output; /* the input of the stage being read */
    uint64_t stage_count, option_copies;
    struct chain_keep_used keep_used;
    size_t policy_capacity;
};

/* Facts of a stage that the conversion needs in addition to struct dry_stage. */
struct stage_form {
    uint64_t repeat;
    bool has_input, has_output; /* saved bytes include the input, the output */
    uint64_t saved_bytes;       /* the value in the file */
    struct dry_stage_option options[DRY_STAGE_OPTIONS_MAX];
    uint64_t option_saved[DRY_STAGE_OPTIONS_MAX];
    bool option_has_input[DRY_STAGE_OPTIONS_MAX];
    bool option_has_output[DRY_STAGE_OPTIONS_MAX];
    size_t written_count;   /* options from the file; those made from `keep` follow */
    struct chain_keep keep; /* options made from "operations" */
};

/* Read one of two words; true means the second. An absent key gives `absent`. */
static bool
read_choice(struct reader *r, const struct json_at *object, const char *key,
            const char *const words[2], bool absent)
{
    struct json_at at = json_in_key(object, key);
    const char *word = json_in_text(&r->in, at, words[absent]);
    if (strcmp(word, words[0]) != 0 && strcmp(word, words[1]) != 0)
        json_in_fail(&r->in, &at, "expected \"%s\" or \"%s\", found \"%.40s\"", words[0],
                     words[1], word);
    return strcmp(word, words[1]) == 0;
}

static void
add_to(struct reader *r, const struct json_at *at, uint64_t *sum, uint64_t bytes)
{
    if (__builtin_add_overflow(*sum, bytes, sum) || *sum > INT64_MAX)
        json_in_fail(&r->in, at, "the sum is beyond 63 bits");
}

/* --- the frame ---------------------------------------------------------------------------- */

void
chain_budget_read(struct json_in *in, const struct json_at *root,
                  struct chain_budget *budget)
{
    struct json_at at = json_in_key(root, "budget");
    *budget = (struct chain_budget){.is_given = at.value != NULL};
    if (!at.value || !json_in_object(in, &at, budget_keys))
        return;
    uint64_t aside = json_in_unsigned_or(in, json_in_key(&at, "reserve"), 0),
             kept = 1000000;
    budget->device_bytes = json_in_unsigned(in, json_in_key(&at, "device"));
    kept -= json_in_millionths(in, json_in_key(&at, "fragmentation"));
    if (aside > budget->device_bytes)
        json_in_fail(in, &at, "the reserve is more than the device");
    uint64_t rest = budget->device_bytes - aside;
    budget->bytes = rest / 1000000 * kept + rest % 1000000 * kept / 1000000;
}

static void
read_grads(struct reader *r, const struct json_at *persistent)
{
    static const char *const words[] = {"static", "lazy"};
    struct json_at at = json_in_key(persistent, "grads");
    r->are_grads_lazy = true;
    if (!at.value || !json_in_object(&r->in, &at, grads_keys))
        return;
    r->has_grads_total = true;
    r->grads_total = json_in_unsigned(&r->in, json_in_key(&at, "bytes"));
    r->are_grads_lazy = read_choice(r, &at, "alloc", words, true);
}

/* Subtract the gradients that stages claim from the total in "grads". All stages have to
   be read for that. */
static void
claim_grads(struct reader *r, const struct json_at *root)
{
    const struct json_at stages = json_in_key(root, "stages");
    struct json_at stage, grads;
    for (size_t i = 0; i < json_in_list(&r->in, &stages); i++) {
        stage = json_in_element(&stages, i);
        grads = json_in_key(&stage, "grads");
        uint64_t bytes = json_in_unsigned_or(&r->in, grads, 0);
        uint64_t repeat = json_in_unsigned_or(&r->in, json_in_key(&stage, "repeat"), 1);
        if (__builtin_mul_overflow(bytes, repeat, &bytes))
            bytes = UINT64_MAX;
        add_to(r, &grads, &r->grads_claimed, bytes);
    }
    const struct json_at loss = json_in_key(root, "loss");
    grads = json_in_key(&loss, "grads");
    add_to(r, &grads, &r->grads_claimed, json_in_unsigned_or(&r->in, grads, 0));
    const struct json_at persistent = json_in_key(root, "persistent");
    grads = json_in_key(&persistent, "grads");
    if (r->has_grads_total && r->grads_claimed > r->grads_total)
        json_in_fail(&r->in, &grads, "the stages' grads are more than these bytes");
}

static void
read_frame(struct reader *r, const struct json_at *root, struct dry_chain_frame *frame)
{
    struct chain_file *f = r->file;
    struct json_at at = json_in_key(root, "persistent");
    struct json_at input = json_in_key(root, "input");
    r->are_grads_lazy = true;
    if (at.value && json_in_object(&r->in, &at, persistent_keys)) {
        f->params_bytes = json_in_unsigned_or(&r->in, json_in_key(&at, "params"), 0);
        f->optimizer_bytes =
            json_in_unsigned_or(&r->in, json_in_key(&at, "optimizer"), 0);
        f->buffers_bytes = json_in_unsigned_or(&r->in, json_in_key(&at, "buffers"), 0);
        frame->step_bytes =
            json_in_unsigned_or(&r->in, json_in_key(&at, "step_transient"), 0);
        read_grads(r, &at);
    }
    claim_grads(r, root);
    if (r->in.status == DRY_OK && r->has_grads_total)
        f->grads_bytes = r->grads_total - (r->are_grads_lazy ? r->grads_claimed : 0);
    add_to(r, &at, &frame->persistent_bytes, f->params_bytes);
    add_to(r, &at, &frame->persistent_bytes, f->grads_bytes);
    add_to(r, &at, &frame->persistent_bytes, f->optimizer_bytes);
    add_to(r, &at, &frame->persistent_bytes, f->buffers_bytes);
    if (input.value && json_in_object(&r->in, &input, input_keys)) {
        frame->input_bytes = json_in_unsigned(&r->in, json_in_key(&input, "bytes"));
        frame->input_gradient_bytes =
            json_in_unsigned_or(&r->in, json_in_key(&input, "grad"), 0);
    }
    r->previous_output = frame->input_bytes;
}

/* --- stages ------------------------------------------------------------------------------- */

/* A list of named storages: "saved" is the sum of their bytes, and each name counts once.
   A transformer block has tens of storages; the limit bounds the time for sorting. */
#define STORAGES_MAX 4096

static int
compare_storages(const void *a, const void *b)
{
    json_t *const *x = a, *const *y = b;
    return strcmp(json_string_value(json_array_get(*x, 0)),
                  json_string_value(json_array_get(*y, 0)));
}

static bool
check_storage(struct reader *r, const struct json_at *pair)
{
    struct json_at name = json_in_element(pair, 0), bytes = json_in_element(pair, 1);
    if (json_in_list(&r->in, pair) != 2 || !json_is_string(name.value))
        json_in_fail(&r->in, pair, "a pair [name, bytes] is expected");
    json_in_unsigned(&r->in, bytes);
    return r->in.status == DRY_OK;
}

static uint64_t
sum_storages(struct reader *r, const struct json_at *list, json_t **sorted, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        struct json_at pair = json_in_element(list, i);
        if (!check_storage(r, &pair))
            return 0;
        sorted[i] = pair.value;
    }
    qsort(sorted, count, sizeof *sorted, compare_storages);
    for (size_t i = 0; i < count; i++) {
        const json_t *bytes = json_array_get(sorted[i], 1);
        bool is_same = i > 0 && compare_storages(&sorted[i - 1], &sorted[i]) == 0;
        if (is_same && !json_equal(bytes, json_array_get(sorted[i - 1], 1)))
            json_in_fail(&r->in, list, "a storage is there twice, with two sizes");
        if (!is_same)
            add_to(r, list, &sum, (uint64_t)json_integer_value(bytes));
    }
    return sum;
}

static uint64_t
read_storages(struct reader *r, const struct json_at *list)
{
    size_t count = json_in_list(&r->in, list);
    if (count == 0)
        return 0;
    if (count > STORAGES_MAX) {
        json_in_fail(&r->in, list, "%zu storages, more than %d", count, STORAGES_MAX);
        return 0;
    }
    json_t **sorted = calloc(count, sizeof(json_t *));
    if (!sorted) {
        r->in.status = fail_memory(r->in.err, "no memory for a stage");
        return 0;
    }
    uint64_t sum = sum_storages(r, list, sorted, count);
    free(sorted);
    return sum;
}

/* Read "saved", or the sum of "storages". If both are given, they must agree. */
static uint64_t
read_saved(struct reader *r, const struct json_at *stage)
{
    struct json_at saved = json_in_key(stage, "saved");
    struct json_at storages = json_in_key(stage, "storages");
    if (!storages.value)
        return json_in_unsigned(&r->in, saved);
    uint64_t sum = read_storages(r, &storages);
    if (json_in_unsigned_or(&r->in, saved, sum) != sum)
        json_in_fail(&r->in, &saved, "the storages are %llu bytes",
                     (unsigned long long)sum);
    return sum;
}

static void
read_option(struct reader *r, const struct json_at *at, struct stage_form *form, size_t i)
{
    struct dry_stage_option *option = &form->options[i];
    struct json_at id = json_in_key(at, "id"), policy = json_in_key(at, "policy");
    if (!json_in_object(&r->in, at, option_keys))
        return;
    option->name = json_in_text(&r->in, id, "");
    if (!*option->name)
        json_in_fail(&r->in, &id, "a name is needed, it stands in plans");
    for (size_t k = 0; k < i && r->in.status == DRY_OK; k++) {
        if (strcmp(form->options[k].name, option->name) == 0)
            json_in_fail(&r->in, &id, "two options of a stage have this name");
    }
    form->option_saved[i] = json_in_unsigned(&r->in, json_in_key(at, "saved"));
    form->option_has_input[i] =
        json_in_flag(&r->in, json_in_key(at, "saved_has_input"), form->has_input);
    form->option_has_output[i] =
        json_in_flag(&r->in, json_in_key(at, "saved_has_output"), form->has_output);
    option->recompute_ns = json_in_time(&r->in, json_in_key(at, "recompute"));
    option->offload_bytes = json_in_unsigned_or(&r->in, json_in_key(at, "offload"), 0);
    chain_policy_check(&r->in, &policy);
}

static void
read_options(struct reader *r, const struct json_at *stage, struct dry_stage *to,
             struct stage_form *form)
{
    struct json_at list = json_in_key(stage, "options");
    size_t count = json_in_list(&r->in, &list);
    if (count > DRY_STAGE_OPTIONS_MAX) {
        json_in_fail(&r->in, &list, "%zu options, more than %u", count,
                     DRY_STAGE_OPTIONS_MAX);
        return;
    }
    for (size_t i = 0; i < count && r->in.status == DRY_OK; i++) {
        struct json_at at = json_in_element(&list, i);
        form->options[i] = (struct dry_stage_option){.name = ""};
        read_option(r, &at, form, i);
        form->options[i].has_forward_tmp = true;
        form->options[i].forward_tmp_bytes = json_in_unsigned_or(
            &r->in, json_in_key(&at, "fwd_tmp"), to->forward_tmp_bytes);
        form->options[i].backward_tmp_bytes = json_in_unsigned_or(
            &r->in, json_in_key(&at, "bwd_tmp"), to->backward_tmp_bytes);
    }
    to->options = form->options;
    to->option_count = form->written_count = count;
}

/* --- operations --------------------------------------------------------------------------- */

static const char *const keep_names[CHAIN_KEEP_POINTS_MAX] = {
    "keep:1", "keep:2", "keep:3", "keep:4", "keep:5", "keep:6", "keep:7", "keep:8"};

/* Append a policy to the file, which then owns the policy. */
static void
add_policy(struct reader *r, const struct chain_policy *policy)
{
    struct chain_file *f = r->file;
    struct chain_policy *grown =
        grow(f->policies, f->policy_count, &r->policy_capacity, sizeof *f->policies);
    if (!grown) {
        r->in.status = fail_memory(r->in.err, "no memory for a stage");
        return;
    }
    f->policies = grown;
    json_incref(policy->policy);
    f->policies[f->policy_count++] = *policy;
}

static void
add_keep_option(struct reader *r, struct dry_stage *to, struct stage_form *form, size_t k)
{
    const struct chain_keep_point *point = &form->keep.points[k];
    struct dry_stage_option *option = &form->options[to->option_count++];
    const struct chain_policy policy = {.first = r->stage_count,
                                        .count = form->repeat,
                                        .option = to->option_count,
                                        .policy = point->policy};
    *option = (struct dry_stage_option){.name = keep_names[k],
                                        .recompute_ns = point->recompute_ns,
                                        .forward_tmp_bytes = to->forward_tmp_bytes,
                                        .has_forward_tmp = true,
                                        .backward_tmp_bytes = to->backward_tmp_bytes};
    /* Charge all bytes of the whole stage, which never underestimates. Tensors that are
       not kept may live through the forward, recomputed ones through the backward. */
    option->forward_tmp_bytes += point->less_bytes;
    option->backward_tmp_bytes += point->recomputed_bytes;
    add_policy(r, &policy);
}

static void
read_operations(struct reader *r, const struct json_at *stage, struct dry_stage *to,
                struct stage_form *form)
{
    const struct json_at list = json_in_key(stage, "operations");
    const struct json_at options = json_in_key(stage, "options");
    chain_keep_read(&r->in, &list, r->memory, &r->keep_used, &form->keep);
    if (r->in.status != DRY_OK || !list.value)
        return;
    for (size_t i = 0; i < to->option_count; i++) {
        if (strncmp(form->options[i].name, "keep:", 5) == 0)
            json_in_fail(&r->in, &options, "names with keep: are those of operations");
    }
    if (to->option_count + form->keep.count > DRY_STAGE_OPTIONS_MAX)
        json_in_fail(&r->in, &list, "with its options they make more than %u",
                     DRY_STAGE_OPTIONS_MAX);
    for (size_t k = 0; k < form->keep.count && r->in.status == DRY_OK; k++)
        add_keep_option(r, to, form, k);
    chain_keep_finish(&form->keep);
}

/* Check the operations' bytes: at most what the stage saves in addition to its output. */
static void
convert_operations(struct reader *r, const struct json_at *at,
                   const struct dry_stage *stage, struct stage_form *form)
{
    const struct json_at list = json_in_key(at, "operations");
    uint64_t beside = stage->saved_bytes - stage->output_bytes;
    if (r->in.status == DRY_OK && form->keep.read_bytes > beside)
        json_in_fail(&r->in, &list,
                     "%llu bytes that the backward reads, and the stage saves %llu "
                     "beside its output",
                     (unsigned long long)form->keep.read_bytes,
                     (unsigned long long)beside);
    if (r->in.status != DRY_OK)
        return;
    for (size_t i = form->written_count; i < stage->option_count; i++)
        form->options[i].saved_bytes =
            stage->saved_bytes - form->keep.points[i - form->written_count].less_bytes;
}

/* --- into the chain ----------------------------------------------------------------------- */

/* Return the bytes saved, counting the output and not the input, in either convention. */
static uint64_t
convert_saved(struct reader *r, const struct json_at *at, const struct dry_saved *seen)
{
    uint64_t bytes = r->is_autograd ? dry_stage_saved(seen) : seen->bytes;
    struct json_at saved = json_in_key(at, "saved");
    if (bytes == UINT64_MAX)
        json_in_fail(&r->in, &saved, "%llu is less than its input's %llu",
                     (unsigned long long)seen->bytes,
                     (unsigned long long)seen->input_bytes);
    else if (bytes < seen->output_bytes)
        json_in_fail(&r->in, &saved, "%llu is less than its output's %llu",
                     (unsigned long long)bytes, (unsigned long long)seen->output_bytes);
    else if (bytes > INT64_MAX)
        json_in_fail(&r->in, &saved, "with the output it is beyond 63 bits");
    return bytes;
}

/* Add `repeat` stages whose input has r->previous_output bytes. */
static void
add_stage(struct reader *r, const struct json_at *at, struct dry_stage *stage,
          struct stage_form *form, uint64_t repeat)
{
    const struct json_at options = json_in_key(at, "options");
    struct dry_saved seen = {.bytes = form->saved_bytes,
                             .input_bytes = r->previous_output,
                             .output_bytes = stage->output_bytes,
                             .has_input = form->has_input,
                             .has_output = form->has_output};
    stage->saved_bytes = convert_saved(r, at, &seen);
    for (size_t i = 0; i < form->written_count && r->in.status == DRY_OK; i++) {
        struct json_at option = json_in_element(&options, i);
        seen.bytes = form->option_saved[i];
        seen.has_input = form->option_has_input[i];
        seen.has_output = form->option_has_output[i];
        form->options[i].saved_bytes = convert_saved(r, &option, &seen);
    }
    convert_operations(r, at, stage, form);
    if (r->in.status != DRY_OK)
        return;
    enum dry_status status =
        dry_chain_add(r->file->chain, stage, (size_t)repeat, r->in.err);
    if (status == DRY_ERR_ARGUMENT) /* stages that contradict each other are an error of
                                       the file, not of the caller */
        status = r->in.err->status = DRY_ERR_FORMAT;
    r->in.status = status;
    r->previous_output = stage->output_bytes;
}

/* Check the number of stages and options before memory is allocated for them. */
static void
count_stages(struct reader *r, const struct json_at *at, const struct dry_stage *stage,
             uint64_t repeat)
{
    struct json_at times = json_in_key(at, "repeat");
    if (repeat == 0)
        json_in_fail(&r->in, &times, "0 is no number of stages");
    if (repeat > DRY_CHAIN_STAGES_MAX - r->stage_count) {
        json_in_fail(&r->in, times.value ? &times : at,
                     "more than the %u stages that a chain may have",
                     DRY_CHAIN_STAGES_MAX);
        return;
    }
    r->stage_count += repeat;
    r->option_copies += repeat * stage->option_count;
    if (r->option_copies > OPTION_COPIES_MAX)
        json_in_fail(&r->in, at, "more than %llu options in all",
                     (unsigned long long)OPTION_COPIES_MAX);
}

static void
read_stage(struct reader *r, const struct json_at *at, struct stage_form *form)
{
    struct dry_stage stage = {0};
    if (!json_in_object(&r->in, at, stage_keys))
        return;
    stage.name = json_in_text(&r->in, json_in_key(at, "name"), NULL);
    stage.forward_ns = json_in_time(&r->in, json_in_key(at, "fwd"));
    stage.backward_ns = json_in_time(&r->in, json_in_key(at, "bwd"));
    stage.output_bytes = json_in_unsigned(&r->in, json_in_key(at, "out"));
    stage.gradient_bytes =
        json_in_unsigned_or(&r->in, json_in_key(at, "grad_out"), stage.output_bytes);
    stage.forward_tmp_bytes = json_in_unsigned_or(&r->in, json_in_key(at, "fwd_tmp"), 0);
    stage.backward_tmp_bytes = json_in_unsigned_or(&r->in, json_in_key(at, "bwd_tmp"), 0);
    stage.grads_bytes =
        r->are_grads_lazy ? json_in_unsigned_or(&r->in, json_in_key(at, "grads"), 0) : 0;
    stage.is_fixed = !json_in_flag(&r->in, json_in_key(at, "recomputable"), true);
    /* only the plan's executor needs "rng" */
    (void)json_in_flag(&r->in, json_in_key(at, "rng"), false);
    form->repeat = json_in_unsigned_or(&r->in, json_in_key(at, "repeat"), 1);
    form->has_input = json_in_flag(&r->in, json_in_key(at, "saved_has_input"), true);
    form->has_output = json_in_flag(&r->in, json_in_key(at, "saved_has_output"), false);
    form->saved_bytes = read_saved(r, at);
    read_options(r, at, &stage, form);
    read_operations(r, at, &stage, form);
    count_stages(r, at, &stage, form->repeat);
    if (r->in.status != DRY_OK)
        return;
    /* The first repetition's input is the previous stage's output; the others' input is
       this stage's own output. */
    add_stage(r, at, &stage, form, 1);
    if (form->repeat > 1 && r->in.status == DRY_OK)
        add_stage(r, at, &stage, form, form->repeat - 1);
}

/* Read the loss, a last stage without an output. Its input counts in the stage before. */
static void
read_loss(struct reader *r, const struct json_at *at, struct stage_form *form)
{
    struct dry_stage stage = {.name = "loss"};
    if (!json_in_object(&r->in, at, loss_keys))
        return;
    stage.forward_ns = json_in_time(&r->in, json_in_key(at, "fwd"));
    stage.backward_ns = json_in_time(&r->in, json_in_key(at, "bwd"));
    stage.forward_tmp_bytes = json_in_unsigned_or(&r->in, json_in_key(at, "tmp"), 0);
    stage.backward_tmp_bytes = stage.forward_tmp_bytes;
    stage.grads_bytes =
        r->are_grads_lazy ? json_in_unsigned_or(&r->in, json_in_key(at, "grads"), 0) : 0;
    form->saved_bytes = json_in_unsigned_or(&r->in, json_in_key(at, "saved"), 0);
    form->has_input = json_in_flag(&r->in, json_in_key(at, "saved_has_input"), false);
    form->has_output = false;
    form->written_count = 0;
    form->keep = (struct chain_keep){0};
    count_stages(r, at, &stage, 1);
    if (r->in.status == DRY_OK)
        add_stage(r, at, &stage, form, 1);
}

static void
read_stages(struct reader *r, const struct json_at *root)
{
    const struct json_at stages = json_in_key(root, "stages");
    const struct json_at loss = json_in_key(root, "loss");
    struct stage_form *form = calloc(1, sizeof *form);
    if (!form) {
        r->in.status = fail_memory(r->in.err, "no memory for a chain");
        return;
    }
    if (!stages.value)
        json_in_fail(&r->in, &stages, "is missing");
    size_t count = json_in_list(&r->in, &stages);
    for (size_t i = 0; i < count && r->in.status == DRY_OK; i++) {
        struct json_at stage = json_in_element(&stages, i);
        read_stage(r, &stage, form);
    }
    if (loss.value && r->in.status == DRY_OK)
        read_loss(r, &loss, form);
    if (r->stage_count == 0)
        json_in_fail(&r->in, &stages, "there is no stage");
    free(form);
}

/* --- the file ----------------------------------------------------------------------------- */

static void
read_format(struct reader *r, const struct json_at *root)
{
    static const char *const words[] = {"rotor", "autograd"};
    const struct json_at format = json_in_key(root, "format");
    const struct json_at stages = json_in_key(root, "stages");
    if (!json_is_object(root->value))
        json_in_fail(&r->in, root, "an object is expected");
    const char *found = json_in_text(&r->in, format, NULL);
    if (!found)
        json_in_fail(&r->in, &format,
                     "expected \"ckpt-chain/1\" or \"ckpt-graph/1\", found nothing; "
                     "see drystone-chain(5)");
    else if (strcmp(found, "ckpt-chain/1") != 0)
        json_in_fail(&r->in, &format,
                     "expected \"ckpt-chain/1\" or \"ckpt-graph/1\", found \"%.40s\"%s",
                     found,
                     strcmp(found, "ckpt-plan/1") == 0 ? ": that is for --judge" : "");
    if (!json_in_object(&r->in, root, chain_keys))
        return;
    (void)json_in_text(&r->in, json_in_key(root, "name"), NULL);
    size_t count = json_in_list(&r->in, &stages);
    if (count > DRY_CHAIN_STAGES_MAX)
        json_in_fail(&r->in, &stages, "%zu, more than the %u that a chain may have",
                     count, DRY_CHAIN_STAGES_MAX);
    r->is_autograd = read_choice(r, root, "convention", words, true);
}

static void
read_chain(struct reader *r, const struct json_at *root)
{
    struct dry_chain_frame frame = {0};
    read_format(r, root);
    if (r->in.status != DRY_OK)
        return;
    chain_budget_read(&r->in, root, &r->file->budget);
    read_frame(r, root, &frame);
    if (r->in.status == DRY_OK)
        r->in.status = dry_chain_create(&frame, r->memory, &r->file->chain, r->in.err);
    if (r->in.status == DRY_OK)
        read_stages(r, root);
}

enum dry_status
chain_json_read_tree(json_t *tree, const struct dry_memory *memory,
                     struct chain_file *file, struct dry_error *err)
{
    struct chain_file made = {0};
    struct reader r = {.in = {.err = err}, .file = &made, .memory = memory};
    const struct json_at root = {.value = tree};
    read_chain(&r, &root);
    if (r.in.status == DRY_OK)
        *file = made;
    else
        chain_file_finish(&made);
    return r.in.status;
}

enum dry_status
chain_json_read(const char *text, size_t length, const struct dry_memory *memory,
                struct chain_file *file, struct dry_error *err)
{
    json_t *tree;
    enum dry_status status = json_in_parse(text, length, &tree, err);
    if (status != DRY_OK)
        return status;
    status = chain_json_read_tree(tree, memory, file, err);
    json_decref(tree);
    return status;
}

void
chain_file_finish(struct chain_file *file)
{
    dry_chain_destroy(file->chain);
    for (size_t i = 0; i < file->policy_count; i++)
        json_decref(file->policies[i].policy);
    free(file->policies);
    *file = (struct chain_file){0};
}

const char *
chain_stage_name(const struct dry_chain *chain, size_t stage, char name[CHAIN_NAME_BYTES])
{
    const struct dry_stage *s = dry_chain_get_stage(chain, stage);
    name[0] = '\0';
    if (s && s->name)
        term_make_printable(name, CHAIN_NAME_BYTES, s->name, strlen(s->name));
    return name;
}

json_t *
chain_find_policy(const struct chain_file *file, size_t stage, size_t option)
{
    size_t low = 0, high = file->policy_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct chain_policy *p = &file->policies[middle];
        if (stage - p->first < p->count && p->option == option)
            return p->policy;
        if (p->first + p->count <= stage || (p->first <= stage && p->option < option))
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
