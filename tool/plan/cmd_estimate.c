/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone estimate`: what a model needs of a device's memory, from its configuration. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <drystone/estimate.h>

#include "base/command.h"
#include "base/report.h"
#include "plan/estimate_report.h"
#include "plan/model_json.h"

struct values {
    const char *precision, *optimizer, *step, *attention, *checkpointing, *targets, *card,
        *conf;
    int64_t batch, sequence, accumulation, zero, data, tensor, pipeline, interleave,
        context, expert, stage, lora, requests, mask_bytes;
    uint64_t driver, communication;
    bool sequence_parallel, no_dropout, composed_norm, repeated_kv, index_add,
        bucket_view, inference, layers, chain, list, json;
};

#define AT(name) offsetof(struct values, name)

static const struct option_spec specs[] = {
    {"batch", 'b', "N", OPTION_INT, AT(batch),
     .help = "sequences, or images, of one forward on one device; default 1"},
    {"seq", 's', "N", OPTION_INT, AT(sequence),
     .help = "tokens of a sequence; default 2048, or the model's positions if there are "
             "fewer"},
    {"accumulation", 0, "N", OPTION_INT, AT(accumulation),
     .help = "microbatches a step; default 1"},
    {"precision", 'p', "NAME", OPTION_STRING, AT(precision),
     .help = "fp32, tf32, amp (autocast), bf16 (all of it), mixed (16 bits and master "
             "weights), "
             "megatron (mixed, with gradients in fp32); default amp, of inference bf16"},
    {"optimizer", 'o', "NAME", OPTION_STRING, AT(optimizer),
     .help = "adamw, adam, amsgrad, sgd, momentum, adamw-8bit, adafactor, adagrad, "
             "rmsprop, lion "
             "or muon; default adamw"},
    {"step", 0, "KIND", OPTION_STRING, AT(step),
     .help = "foreach, fused or loop: how the optimizer steps; default foreach"},
    {"attention", 0, "KIND", OPTION_STRING, AT(attention),
     .help = "flash, eager, or eager-fp32 (Transformers' eager); default flash"},
    {"checkpointing", 'c', "KIND", OPTION_STRING, AT(checkpointing),
     .help = "none, selective, full, every:N (each Nth layer) or sqrt:N (N equal "
             "segments); N "
             "may "
             "be left out; default none"},
    {"zero", 'z', "N", OPTION_INT, AT(zero),
     .help =
         "stage of ZeRO, 0 to 3, over the data-parallel devices; FSDP is 3; default 0"},
    {"data", 'd', "N", OPTION_INT, AT(data), .help = "data-parallel devices; default 1"},
    {"tensor", 't', "N", OPTION_INT, AT(tensor),
     .help = "tensor-parallel devices; default 1"},
    {"sequence-parallel", 0, NULL, OPTION_FLAG, AT(sequence_parallel),
     .help = "norms and sums are split among the tensor-parallel devices, too"},
    {"pipeline", 0, "N", OPTION_INT, AT(pipeline),
     .help = "stages of a pipeline; default 1"},
    {"interleave", 0, "N", OPTION_INT, AT(interleave),
     .help = "chunks of the model on a stage of the pipeline; default 1"},
    {"stage", 0, "N", OPTION_INT, AT(stage),
     .help = "the stage of the pipeline that it is about, from 0; default: the fullest"},
    {"context", 0, "N", OPTION_INT, AT(context),
     .help = "devices that share a sequence; default 1"},
    {"expert", 0, "N", OPTION_INT, AT(expert),
     .help = "devices, of the data-parallel ones, that share the experts; default 1"},
    {"lora", 0, "RANK", OPTION_INT, AT(lora),
     .help = "train adapters of this rank alone"},
    {"lora-targets", 0, "LIST", OPTION_STRING, AT(targets),
     .help = "matrices with adapters: q,k,v,o,gate,up,down or all; default q,v"},
    {"no-dropout", 0, NULL, OPTION_FLAG, AT(no_dropout),
     .help = "whatever the configuration says"},
    {"composed-norm", 0, NULL, OPTION_FLAG, AT(composed_norm),
     .help = "RMS norms of single operations, as in Transformers"},
    {"repeated-kv", 0, NULL, OPTION_FLAG, AT(repeated_kv),
     .help = "keys and values are copied to all heads before attention"},
    {"index-add", 0, NULL, OPTION_FLAG, AT(index_add),
     .help = "what experts make is summed by index_add_, as in Transformers' Mixtral"},
    {"bucket-view", 0, NULL, OPTION_FLAG, AT(bucket_view),
     .help = "DDP with gradient_as_bucket_view=True"},
    {"mask-bytes", 0, "N", OPTION_INT, AT(mask_bytes),
     .help = "bytes an element of a dropout mask; default 1, as on a GPU"},
    {"inference", 0, NULL, OPTION_FLAG, AT(inference),
     .help = "weights and a KV cache, no training"},
    {"requests", 'r', "N", OPTION_INT, AT(requests),
     .help = "of inference, each of --seq tokens; default 1"},
    {"card", 0, "CARD", OPTION_STRING, AT(card),
     .help =
         "a name of --list or a size: what it leaves, the largest batch and sequence"},
    {"conf", 0, "STR", OPTION_STRING, AT(conf),
     .help = "PYTORCH_CUDA_ALLOC_CONF that the allocator is replayed with"},
    {"driver", 0, "SIZE", OPTION_SIZE, AT(driver),
     .help = "the driver's context; default 512MiB, which is assumed"},
    {"communication", 0, "SIZE", OPTION_SIZE, AT(communication),
     .help =
         "buffers of communication, a degree of parallelism; default 256MiB, assumed"},
    {"layers", 'l', NULL, OPTION_FLAG, AT(layers),
     .help = "also print what a layer saves, tensor by tensor"},
    {"chain", 0, NULL, OPTION_FLAG, AT(chain),
     .help =
         "print the model as a chain for drystone plan, with times by what is computed"},
    {"list", 0, NULL, OPTION_FLAG, AT(list),
     .help = "print the names of models and cards"},
    {"json", 0, NULL, OPTION_FLAG, AT(json),
     .help = "print JSON, schema drystone.estimate/1, see drystone-estimate(1)"},
};

static const char about_text[] =
    "MODEL is a config.json of Transformers, a list of layers over images, or a name of "
    "--list. Weights, gradients, states, activations and logits line by line, each with "
    "its formula; the peak of every phase by a replay of PyTorch's allocator; what fits.";

struct session {
    struct values values;
    const char *name;
    struct model_json file;
    struct dry_run_setup setup;
    struct dry_estimate *estimate;
    struct estimate_report report;
};

/* --- the command line --------------------------------------------------------------------- */

static const char *
precision_at(unsigned i)
{
    return i < DRY_PRECISION_COUNT ? dry_precision_name((enum dry_precision)i) : NULL;
}

static const char *
optimizer_at(unsigned i)
{
    return i < DRY_OPTIMIZER_COUNT ? dry_optimizer_name((enum dry_optimizer)i) : NULL;
}

static const char *
step_at(unsigned i)
{
    return i < DRY_STEP_KIND_COUNT ? dry_step_kind_name((enum dry_step_kind)i) : NULL;
}

static const char *
attention_at(unsigned i)
{
    return i < DRY_ATTENTION_COUNT ? dry_attention_name((enum dry_attention)i) : NULL;
}

static const char *
checkpointing_at(unsigned i)
{
    return i < DRY_CHECKPOINTING_COUNT ? dry_checkpointing_name((enum dry_checkpointing)i)
                                       : NULL;
}

/* The index of `word` among names; what is wrong is said, with a suggestion. */
static int
find_word(const char *option, const char *word, size_t length, name_function *name_at,
          unsigned *found)
{
    struct suggestion s = {.word = word};
    for (unsigned i = 0; name_at(i); i++) {
        if (strlen(name_at(i)) == length && memcmp(name_at(i), word, length) == 0) {
            *found = i;
            return EXIT_FINE;
        }
        suggestion_consider(&s, name_at(i));
    }
    char expected[SUGGESTION_BYTES];
    return report_usage("estimate", "--%s %s: there is no such%s", option, word,
                        suggestion_write(&s, name_at, expected));
}

static int
read_words(struct session *s)
{
    const struct values *v = &s->values;
    unsigned precision = v->inference ? DRY_PRECISION_BF16 : DRY_PRECISION_AMP;
    unsigned optimizer = 0, step = 0, attention = 0;
    const struct {
        const char *option, *word;
        name_function *name_at;
        unsigned *found;
    } words[] = {
        {"precision", v->precision, precision_at, &precision},
        {"optimizer", v->optimizer, optimizer_at, &optimizer},
        {"step", v->step, step_at, &step},
        {"attention", v->attention, attention_at, &attention},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!words[i].word)
            continue;
        int code = find_word(words[i].option, words[i].word, strlen(words[i].word),
                             words[i].name_at, words[i].found);
        if (code != EXIT_FINE)
            return code;
    }
    s->setup.precision = (enum dry_precision)precision;
    s->setup.optimizer = (enum dry_optimizer)optimizer;
    s->setup.step = (enum dry_step_kind)step;
    s->setup.attention = (enum dry_attention)attention;
    return EXIT_FINE;
}

/* "full", "every:3", "sqrt". */
static int
read_checkpointing(struct session *s)
{
    const char *text = s->values.checkpointing;
    unsigned kind = 0;
    if (!text)
        return EXIT_FINE;
    size_t length = strcspn(text, ":");
    int code = find_word("checkpointing", text, length, checkpointing_at, &kind);
    if (code != EXIT_FINE)
        return code;
    s->setup.checkpointing = (enum dry_checkpointing)kind;
    if (!text[length])
        return EXIT_FINE;
    char *end;
    unsigned long long count = strtoull(text + length + 1, &end, 10);
    bool takes_count = kind == DRY_CHECKPOINTING_EVERY || kind == DRY_CHECKPOINTING_SQRT;
    if (!takes_count || *end || text[length + 1] < '1' || text[length + 1] > '9' ||
        count > UINT32_MAX)
        return report_usage("estimate", "--checkpointing %s: expected every:N or sqrt:N",
                            text);
    s->setup.checkpoint_count = count;
    return EXIT_FINE;
}

static int
read_targets(struct session *s)
{
    static const char *const names[] = {"q", "k", "v", "o", "gate", "up", "down", "all"};
    const char *at = s->values.targets;
    uint32_t targets = 0;
    while (at && *at) {
        size_t length = strcspn(at, ","), i = 0;
        while (i < 8 && (strlen(names[i]) != length || memcmp(names[i], at, length) != 0))
            i++;
        if (i == 8)
            return report_usage("estimate",
                                "--lora-targets %s: expected q,k,v,o,gate,up,down or all",
                                s->values.targets);
        targets |= i == 7 ? DRY_LORA_ALL : UINT32_C(1) << i;
        at += length + (at[length] == ',');
    }
    if (targets)
        s->setup.lora_targets = targets;
    return EXIT_FINE;
}

static int
read_numbers(struct session *s)
{
    const struct values *v = &s->values;
    struct dry_run_setup *u = &s->setup;
    uint64_t zero = 0, mask = u->mask_bytes;
    u->stage = DRY_STAGE_WORST;
    const struct {
        const char *name;
        int64_t value, low;
        uint64_t *to; /* has the default */
    } numbers[] = {
        {"batch", v->batch, 1, &u->batch},
        {"seq", v->sequence, 1, &u->sequence},
        {"accumulation", v->accumulation, 1, &u->accumulation},
        {"zero", v->zero, 0, &zero},
        {"data", v->data, 1, &u->data},
        {"tensor", v->tensor, 1, &u->tensor},
        {"pipeline", v->pipeline, 1, &u->pipeline},
        {"interleave", v->interleave, 1, &u->interleave},
        {"context", v->context, 1, &u->context},
        {"expert", v->expert, 1, &u->expert},
        {"stage", v->stage, 0, &u->stage},
        {"lora", v->lora, 0, &u->lora_rank},
        {"requests", v->requests, 1, &u->requests},
        {"mask-bytes", v->mask_bytes, 1, &mask},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i].value == NO_NUMBER)
            continue;
        if (numbers[i].value < numbers[i].low)
            return report_usage("estimate", "--%s %lld: expected %lld or more",
                                numbers[i].name, (long long)numbers[i].value,
                                (long long)numbers[i].low);
        *numbers[i].to = (uint64_t)numbers[i].value;
    }
    if (zero > 3 || mask > 8)
        return report_usage("estimate",
                            zero > 3 ? "--zero %lld: expected 0 to 3"
                                     : "--mask-bytes %lld: expected 1 to 8",
                            (long long)(zero > 3 ? v->zero : v->mask_bytes));
    u->zero = (uint32_t)zero;
    u->mask_bytes = (uint32_t)mask;
    return EXIT_FINE;
}

/* --- what goes with what ------------------------------------------------------------------ */

static int
refuse_misuse(const struct option_misuse *all, size_t count)
{
    return options_refuse_misuse(&command_estimate, all, count);
}

/* Of training alone; experts of inference are spread over the data-parallel devices, too. */
static int
check_inference(const struct values *v)
{
    static const char why[] = "of training: it goes with no --inference";
    const struct option_misuse all[] = {
        {"batch", v->batch != NO_NUMBER, "of training: inference has --requests"},
        {"accumulation", v->accumulation != NO_NUMBER, why},
        {"optimizer", v->optimizer != NULL, why},
        {"step", v->step != NULL, why},
        {"checkpointing", v->checkpointing != NULL, why},
        {"zero", v->zero != NO_NUMBER, why},
        {"data", v->data != NO_NUMBER && v->expert == NO_NUMBER,
         "of training, or of --expert: replicas that serve do not share memory"},
        {"sequence-parallel", v->sequence_parallel, why},
        {"no-dropout", v->no_dropout, why},
        {"mask-bytes", v->mask_bytes != NO_NUMBER, why},
        {"bucket-view", v->bucket_view, why},
        {"chain", v->chain, why},
    };
    return v->inference ? refuse_misuse(all, sizeof all / sizeof *all) : EXIT_FINE;
}

/* It is printed as JSON, without a step and without outside, but in the card's budget. */
static int
check_chain(const struct values *v)
{
    const struct option_misuse all[] = {
        {"json", v->json, "what --chain prints anyway"},
        {"layers", v->layers, "of the report: --chain prints none"},
        {"checkpointing", v->checkpointing != NULL,
         "what a plan decides: it goes with no --chain"},
        {"conf", v->conf != NULL, "of the report: --chain prints none"},
        {"driver", v->driver != NOT_GIVEN && !v->card, "of --chain with --card only"},
        {"communication", v->communication != NOT_GIVEN && !v->card,
         "of --chain with --card only"},
    };
    return v->chain ? refuse_misuse(all, sizeof all / sizeof *all) : EXIT_FINE;
}

static int
check_degrees(const struct values *v, const struct dry_run_setup *u)
{
    bool is_one = u->data == 1 && u->tensor == 1 && u->pipeline == 1 && u->context == 1 &&
                  u->expert == 1;
    const struct option_misuse all[] = {
        {"requests", v->requests != NO_NUMBER && !v->inference, "of --inference"},
        {"lora-targets", v->targets && u->lora_rank == 0, "of --lora"},
        {"zero", v->zero > 0 && u->data == 1, "of --data: one device has all of it"},
        {"bucket-view", v->bucket_view && (u->data == 1 || u->zero > 0),
         "of --data without --zero, which is DDP"},
        {"sequence-parallel", v->sequence_parallel && u->tensor == 1, "of --tensor"},
        {"interleave", v->interleave != NO_NUMBER && u->pipeline == 1, "of --pipeline"},
        {"stage", v->stage != NO_NUMBER && u->pipeline == 1, "of --pipeline"},
        {"mask-bytes", v->mask_bytes != NO_NUMBER && v->no_dropout,
         "of dropout: it goes with no --no-dropout"},
        {"communication", v->communication != NOT_GIVEN && is_one,
         "of several devices: --data, --tensor, --pipeline, --context"},
    };
    return refuse_misuse(all, sizeof all / sizeof *all);
}

/* What only transformers have; degrees and checkpointing the library refuses. */
static int
check_conv(const struct values *v, const struct dry_model *model)
{
    static const char why[] = "of transformers: this is a list of layers";
    const struct option_misuse all[] = {
        {"seq", v->sequence != NO_NUMBER, why},
        {"attention", v->attention != NULL, why},
        {"composed-norm", v->composed_norm, why},
        {"repeated-kv", v->repeated_kv, why},
        {"index-add", v->index_add, why},
        {"inference", v->inference, why},
        {"lora", v->lora != NO_NUMBER, why},
        {"chain", v->chain, why},
    };
    return model->kind == DRY_MODEL_CONV ? refuse_misuse(all, sizeof all / sizeof *all)
                                         : EXIT_FINE;
}

static int
check_use(const struct session *s)
{
    int code = check_inference(&s->values);
    if (code == EXIT_FINE)
        code = check_chain(&s->values);
    return code == EXIT_FINE ? check_degrees(&s->values, &s->setup) : code;
}

static int
read_card(struct session *s)
{
    const char *card = s->values.card;
    const struct dry_card *known = card ? dry_card_find(card) : NULL;
    if (!card)
        return EXIT_FINE;
    s->report.card = known ? known->name : NULL;
    if (known)
        s->report.capacity_bytes = known->usable_bytes;
    else if (!options_parse_size(card, &s->report.capacity_bytes) ||
             s->report.capacity_bytes == 0 || s->report.capacity_bytes > INT64_MAX)
        return report_usage("estimate",
                            "--card %s: neither a card of drystone estimate --list nor a "
                            "size",
                            card);
    return EXIT_FINE;
}

static int
read_options(struct session *s)
{
    const struct values *v = &s->values;
    dry_run_setup_init(&s->setup);
    s->setup.has_sequence_parallel = v->sequence_parallel;
    s->setup.has_no_dropout = v->no_dropout;
    s->setup.has_composed_norm = v->composed_norm;
    s->setup.has_repeated_kv = v->repeated_kv;
    s->setup.has_index_add = v->index_add;
    s->setup.has_bucket_view = v->bucket_view;
    s->setup.is_inference = v->inference;
    s->setup.conf = v->conf;
    if (v->driver != NOT_GIVEN)
        s->setup.context_bytes = v->driver;
    if (v->communication != NOT_GIVEN)
        s->setup.communication_bytes = v->communication;
    int code = read_words(s);
    if (code == EXIT_FINE)
        code = read_checkpointing(s);
    if (code == EXIT_FINE)
        code = read_targets(s);
    if (code == EXIT_FINE)
        code = read_numbers(s);
    if (code == EXIT_FINE)
        code = check_use(s);
    return code == EXIT_FINE ? read_card(s) : code;
}

/* --- the model ---------------------------------------------------------------------------- */

/* What a file contradicts itself in is the file's fault, whatever the options. */
static int
check_file(struct session *s)
{
    struct dry_run_setup plain;
    struct dry_estimate *estimate = NULL;
    struct dry_error err;
    dry_run_setup_init(&plain);
    plain.sequence = 1;
    enum dry_status status =
        dry_estimate_create(&s->file.model, &plain, NULL, &estimate, &err);
    dry_estimate_destroy(estimate);
    if (status == DRY_OK)
        return EXIT_FINE;
    err.status = status == DRY_ERR_ARGUMENT ? DRY_ERR_FORMAT : status;
    return report_error("estimate", s->name, &err);
}

static int
report_unknown(const char *name)
{
    struct suggestion s = {.word = name};
    for (size_t i = 0; dry_model_get_name(i); i++)
        suggestion_consider(&s, dry_model_get_name(i));
    return report_failure("estimate", name, EXIT_INPUT,
                          "neither a file nor a model of drystone estimate --list%s%s%s",
                          s.best ? "; did you mean " : "", s.best ? s.best : "",
                          s.best ? "?" : "");
}

static int
find_model(struct session *s)
{
    struct dry_error err;
    if (dry_model_find(s->name, &s->file.model) == DRY_OK)
        return EXIT_FINE;
    enum dry_status status = model_json_read(s->name, &s->file, &err);
    if (status == DRY_ERR_SYSTEM && !strpbrk(s->name, "./") && access(s->name, F_OK) != 0)
        return report_unknown(s->name);
    return status == DRY_OK ? check_file(s) : report_error("estimate", s->name, &err);
}

/* --- the work ----------------------------------------------------------------------------- */

/* The library names fields of its setup; who typed options is told of those. */
static const char *
find_option(const char *text, size_t *length)
{
    static const struct {
        const char *field, *option;
    } names[] = {
        {"batch", "batch"},
        {"sequence", "seq"},
        {"accumulation", "accumulation"},
        {"checkpoint_count", "checkpointing"},
        {"checkpointing", "checkpointing"},
        {"data", "data"},
        {"tensor", "tensor"},
        {"pipeline", "pipeline"},
        {"context", "context"},
        {"expert", "expert"},
        {"interleave", "interleave"},
        {"stage", "stage"},
        {"requests", "requests"},
        {"lora_rank", "lora"},
        {"context_bytes", "driver"},
        {"communication_bytes", "communication"},
    };
    *length = strspn(text, "abcdefghijklmnopqrstuvwxyz_");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i].field) == *length &&
            strncmp(names[i].field, text, *length) == 0)
            return names[i].option;
    }
    return NULL;
}

static int
report_setup(const struct session *s, const struct dry_error *err)
{
    size_t length;
    const char *option = find_option(err->text, &length);
    bool is_refused = err->status == DRY_ERR_ARGUMENT || err->status == DRY_ERR_LIMIT;
    if (is_refused && option)
        return report_usage("estimate", "--%s%s", option, err->text + length);
    if (err->offset != DRY_NO_OFFSET && s->setup.conf) /* the only text that is parsed */
        return report_usage("estimate", "--conf '%s': %s", s->setup.conf, err->text);
    return report_error("estimate", s->name, err);
}

static int
fit(struct session *s, enum dry_fit what, uint64_t step, uint64_t *value)
{
    struct dry_run_setup setup = s->setup;
    struct dry_error err;
    setup.capacity_bytes = s->report.capacity_bytes;
    if (dry_estimate_fit(&s->file.model, &setup, what, step, value, &err) == DRY_OK)
        return EXIT_FINE;
    return report_setup(s, &err);
}

static int
find_largest(struct session *s)
{
    struct estimate_report *r = &s->report;
    uint64_t step = s->setup.context > 64 ? s->setup.context : 64;
    int code;
    if (!r->capacity_bytes)
        return EXIT_FINE;
    if (s->setup.is_inference)
        return fit(s, DRY_FIT_REQUESTS, 1, &r->max_requests);
    code = fit(s, DRY_FIT_BATCH, 1, &r->max_batch);
    r->sequence_step = step;
    if (code == EXIT_FINE && s->file.model.kind != DRY_MODEL_CONV)
        code = fit(s, DRY_FIT_SEQUENCE, step, &r->max_sequence);
    return code;
}

static int
show(struct session *s)
{
    struct estimate_report *r = &s->report;
    r->name = s->name;
    r->model = &s->file.model;
    r->unknown_family = s->file.unknown_family;
    r->setup = &s->setup;
    r->estimate = s->estimate;
    r->has_units = s->values.layers;
    if (s->values.chain)
        return estimate_report_print_chain(r);
    if (s->values.json)
        return estimate_report_print_json(r);
    if (!estimate_report_print(r))
        return report_failure("estimate", s->name, EXIT_MACHINE,
                              "no memory for the table");
    return EXIT_FINE;
}

static int
estimate(struct session *s)
{
    struct dry_error err;
    uint64_t positions = s->file.model.positions;
    int code = check_conv(&s->values, &s->file.model);
    if (code != EXIT_FINE)
        return code;
    if (s->values.chain && s->setup.pipeline > 1)
        return report_usage("estimate", "--chain is of a model without a pipeline");
    if (s->values.sequence == NO_NUMBER && positions && positions < s->setup.sequence)
        s->setup.sequence = positions;
    enum dry_status status =
        dry_estimate_create(&s->file.model, &s->setup, NULL, &s->estimate, &err);
    if (status != DRY_OK)
        return report_setup(s, &err);
    code = s->values.chain ? EXIT_FINE : find_largest(s);
    if (code == EXIT_FINE)
        code = show(s);
    if (s->values.chain)
        return code;
    uint64_t needed = dry_estimate_get_summary(s->estimate)->device_bytes;
    if (code == EXIT_FINE && s->report.capacity_bytes &&
        needed > s->report.capacity_bytes)
        code = EXIT_FOUND;
    return code;
}

static int
list_names(void)
{
    printf("models:\n");
    for (size_t i = 0; dry_model_get_name(i); i++)
        printf("  %s\n", dry_model_get_name(i));
    printf("\ncards, and what their drivers report as the total, about:\n");
    for (size_t i = 0; dry_card_get(i); i++) {
        const struct dry_card *card = dry_card_get(i);
        double gib = (double)card->usable_bytes / (double)(UINT64_C(1) << 30);
        printf("  %-12s %7.2f GiB\n", card->name, gib);
    }
    return EXIT_FINE;
}

static int
run(int argc, char **argv)
{
    struct session s = {.values = {.batch = NO_NUMBER,
                                   .sequence = NO_NUMBER,
                                   .accumulation = NO_NUMBER,
                                   .zero = NO_NUMBER,
                                   .data = NO_NUMBER,
                                   .tensor = NO_NUMBER,
                                   .pipeline = NO_NUMBER,
                                   .interleave = NO_NUMBER,
                                   .context = NO_NUMBER,
                                   .expert = NO_NUMBER,
                                   .stage = NO_NUMBER,
                                   .lora = NO_NUMBER,
                                   .requests = NO_NUMBER,
                                   .mask_bytes = NO_NUMBER,
                                   .driver = NOT_GIVEN,
                                   .communication = NOT_GIVEN}};
    struct option_list operands = {0};
    int code;
    if (options_parse(&command_estimate, argc, argv, &s.values, &operands, &code)) {
        if (s.values.list)
            code =
                argc > 2 ? report_usage("estimate", "--list goes alone") : list_names();
        else
            code = options_expect_one_file(&command_estimate, &operands);
        if (!s.values.list && code == EXIT_FINE) {
            s.name = operands.values[0];
            code = read_options(&s);
            if (code == EXIT_FINE)
                code = find_model(&s);
            if (code == EXIT_FINE)
                code = estimate(&s);
        }
    }
    dry_estimate_destroy(s.estimate);
    model_json_finish(&s.file);
    options_finish(&command_estimate, &s.values, &operands);
    return code;
}

const struct command command_estimate = {
    .name = "estimate",
    .summary = "the memory that training or serving a model needs",
    .usage = "[options] MODEL",
    .about = about_text,
    .examples = "drystone estimate llama-2-7b --batch 1 --seq 4096 --card h100-80\n"
                "drystone estimate config.json --zero 3 --data 8 --checkpointing full\n"
                "drystone estimate llama-2-70b --inference --requests 16 --tensor 8\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .run = run,
};
