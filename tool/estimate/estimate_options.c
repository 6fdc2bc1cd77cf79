/* SPDX-License-Identifier: Apache-2.0 */
/* See estimate_options.h. */
#include "estimate/estimate_options.h"

#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/report.h"

#define AT(member) offsetof(struct estimate_values, member)

static const char training[] = "for training: it does not go with --inference";
static const char unprinted[] = "for the report, which --chain does not print";
static const char card_only[] = "for --chain only together with --card";
static const char ddp[] = "for --data without --zero, which is DDP";

const struct option_spec estimate_option_specs[ESTIMATE_OPTION_COUNT] = {
    {"batch", 0, "N", OPTION_INT, AT(setup.batch),
     .help = "sequences, or images, of one forward on one device; default 1", .min = 1,
     .refuses = {{"inference", "for training: inference has --requests"}}},
    {"seq", 0, "N", OPTION_INT, AT(setup.sequence),
     .help = "tokens of a sequence; default 2048, or the model's positions if there are "
             "fewer",
     .min = 1},
    {"accumulation", 0, "N", OPTION_INT, AT(setup.accumulation),
     .help = "microbatches a step; default 1", .min = 1,
     .refuses = {{"inference", training}}},
    {"precision", 0, "NAME", OPTION_STRING, AT(precision),
     .help = "fp32, tf32, amp (autocast), bf16 (all of it), mixed (16 bits and master "
             "weights), megatron (mixed, with gradients in fp32); default amp, of "
             "inference bf16"},
    {"optimizer", 0, "NAME", OPTION_STRING, AT(optimizer),
     .help = "adamw, adam, amsgrad, sgd, momentum, adamw-8bit, adafactor, adagrad, "
             "rmsprop, lion or muon; default adamw",
     .refuses = {{"inference", training}}},
    {"step", 0, "KIND", OPTION_STRING, AT(step),
     .help = "foreach, fused or loop: how the optimizer steps; default foreach",
     .refuses = {{"inference", training}}},
    {"attention", 0, "KIND", OPTION_STRING, AT(attention),
     .help = "flash, eager, or eager-fp32 (Transformers' eager); default flash"},
    {"checkpointing", 0, "KIND", OPTION_STRING, AT(checkpointing),
     .help = "none, selective, full, every:N (each Nth layer) or sqrt:N (N equal "
             "parts); N may be left out; default none",
     .refuses = {{"inference", training},
                 {"chain", "what a plan decides: it does not go with --chain"}}},
    {"zero", 'z', "N", OPTION_INT, AT(zero),
     .help =
         "stage of ZeRO, 0 to 3, over the data-parallel devices; FSDP is 3; default 0",
     .max = 3, .refuses = {{"inference", training}}},
    {"data", 0, "N", OPTION_INT, AT(setup.data),
     .help = "data-parallel devices; default 1", .min = 1,
     .refuses =
         {{"inference",
           "for training, or for --expert: replicas that serve do not share memory"}},
     .unless = "expert"},
    {"tensor", 0, "N", OPTION_INT, AT(setup.tensor),
     .help = "tensor-parallel devices; default 1", .min = 1},
    {"sequence-parallel", 0, NULL, OPTION_FLAG, AT(setup.has_sequence_parallel),
     .help = "norms and sums are split among the tensor-parallel devices, too",
     .needs = {"tensor", "for --tensor alone"}, .refuses = {{"inference", training}}},
    {"pipeline", 0, "N", OPTION_INT, AT(setup.pipeline),
     .help = "stages of a pipeline; default 1", .min = 1},
    {"virtual-pipeline", 0, "N", OPTION_INT, AT(setup.interleave),
     .help = "chunks of the model on a stage of the pipeline; default 1", .min = 1,
     .needs = {"pipeline", "for --pipeline alone"}},
    {"stage", 0, "N", OPTION_INT, AT(setup.stage),
     .help = "the stage of the pipeline that it is about, from 0; default: the fullest",
     .max = NO_MAX, .needs = {"pipeline", "for --pipeline alone"}},
    {"context", 0, "N", OPTION_INT, AT(setup.context),
     .help = "devices that share a sequence; default 1", .min = 1},
    {"expert", 0, "N", OPTION_INT, AT(setup.expert),
     .help = "devices, of the data-parallel ones, that share the experts; default 1",
     .min = 1},
    {"lora", 0, "RANK", OPTION_INT, AT(setup.lora_rank),
     .help = "train adapters of this rank alone", .max = NO_MAX},
    {"lora-targets", 0, "LIST", OPTION_STRING, AT(targets),
     .help = "matrices with adapters: q,k,v,o,gate,up,down or all; default q,v",
     .needs = {"lora", "for --lora alone"}},
    {"no-dropout", 0, NULL, OPTION_FLAG, AT(setup.has_no_dropout),
     .help = "whatever the configuration says", .refuses = {{"inference", training}}},
    {"composed-norm", 0, NULL, OPTION_FLAG, AT(setup.has_composed_norm),
     .help = "RMS norms of single operations, as in Transformers"},
    {"repeated-kv", 0, NULL, OPTION_FLAG, AT(setup.has_repeated_kv),
     .help = "keys and values are copied to all heads before attention"},
    {"index-add", 0, NULL, OPTION_FLAG, AT(setup.has_index_add),
     .help = "what experts make is summed by index_add_, as in Transformers' Mixtral"},
    {"bucket-view", 0, NULL, OPTION_FLAG, AT(setup.has_bucket_view),
     .help = "DDP with gradient_as_bucket_view=True", .needs = {"data", ddp},
     .refuses = {{"inference", training}, {"zero", ddp}}},
    {"mask-bytes", 0, "N", OPTION_INT, AT(mask_bytes),
     .help = "bytes an element of a dropout mask; default 1, as on a GPU", .min = 1,
     .max = 8,
     .refuses = {{"inference", training},
                 {"no-dropout", "for dropout: it does not go with --no-dropout"}}},
    {"inference", 0, NULL, OPTION_FLAG, AT(setup.is_inference),
     .help = "weights and a KV cache, no training"},
    {"requests", 0, "N", OPTION_INT, AT(setup.requests),
     .help = "of inference, each of --seq tokens; default 1", .min = 1,
     .needs = {"inference", "for --inference alone"}},
    {"card", 0, "CARD", OPTION_STRING, AT(card),
     .help =
         "a name of --list or a size: what it leaves, the largest batch and sequence"},
    {"conf", 0, "STR", OPTION_STRING, AT(setup.conf),
     .help = "PYTORCH_CUDA_ALLOC_CONF that the allocator is replayed with",
     .refuses = {{"chain", unprinted}}},
    {"driver", 0, "SIZE", OPTION_SIZE, AT(setup.context_bytes),
     .help = "the driver's context; default 512MiB, which is assumed",
     .refuses = {{"chain", card_only}}, .unless = "card"},
    {"communication", 0, "SIZE", OPTION_SIZE, AT(setup.communication_bytes),
     .help = "buffers of communication, a degree of parallelism; default 256MiB, assumed",
     .needs = {"data tensor pipeline context expert",
               "for several devices: --data, --tensor, --pipeline, --context"},
     .refuses = {{"chain", card_only}}, .unless = "card"},
    {"layers", 0, NULL, OPTION_FLAG, AT(layers),
     .help = "also print what a layer saves, tensor by tensor",
     .refuses = {{"chain", unprinted}}},
    {"chain", 0, NULL, OPTION_FLAG, AT(chain),
     .help =
         "print the model as a chain for drystone plan, with times by what is computed",
     .refuses = {{"inference", training}}},
    {"list", 0, NULL, OPTION_FLAG, AT(list),
     .help = "print the names of models and cards"},
    {"json", 0, NULL, OPTION_FLAG, AT(json),
     .help = "print JSON, schema drystone.estimate/1, see drystone-estimate(1)",
     .refuses = {{"chain", "what --chain prints anyway"}}},
};

void
estimate_values_init(struct estimate_values *values)
{
    *values = (struct estimate_values){.card = NULL};
    dry_run_setup_init(&values->setup);
    values->setup.sequence = 0;
    values->mask_bytes = values->setup.mask_bytes;
}

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

/* Find `word` among the names. Returns EXIT_FINE and *found, or an exit code after an
   error message with a suggestion. */
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
read_names(struct estimate_values *v)
{
    unsigned precision = v->setup.is_inference ? DRY_PRECISION_BF16 : DRY_PRECISION_AMP;
    unsigned optimizer = 0, step = 0, attention = 0;
    const struct {
        const char *option, *word;
        name_function *name_at;
        unsigned *found;
    } choices[] = {
        {"precision", v->precision, precision_at, &precision},
        {"optimizer", v->optimizer, optimizer_at, &optimizer},
        {"step", v->step, step_at, &step},
        {"attention", v->attention, attention_at, &attention},
    };
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        if (!choices[i].word)
            continue;
        int code = find_word(choices[i].option, choices[i].word, strlen(choices[i].word),
                             choices[i].name_at, choices[i].found);
        if (code != EXIT_FINE)
            return code;
    }
    v->setup.precision = (enum dry_precision)precision;
    v->setup.optimizer = (enum dry_optimizer)optimizer;
    v->setup.step = (enum dry_step_kind)step;
    v->setup.attention = (enum dry_attention)attention;
    return EXIT_FINE;
}

/* Read --checkpointing: "full", "every:3", "sqrt". */
static int
read_checkpointing(struct estimate_values *v)
{
    const char *text = v->checkpointing;
    unsigned kind = 0;
    if (!text)
        return EXIT_FINE;
    size_t length = strcspn(text, ":");
    int code = find_word("checkpointing", text, length, checkpointing_at, &kind);
    if (code != EXIT_FINE)
        return code;
    v->setup.checkpointing = (enum dry_checkpointing)kind;
    if (!text[length])
        return EXIT_FINE;
    char *end;
    unsigned long long count = strtoull(text + length + 1, &end, 10);
    bool takes_count = kind == DRY_CHECKPOINTING_EVERY || kind == DRY_CHECKPOINTING_SQRT;
    if (!takes_count || *end || text[length + 1] < '1' || text[length + 1] > '9' ||
        count > UINT32_MAX)
        return report_usage("estimate", "--checkpointing %s: expected every:N or sqrt:N",
                            text);
    v->setup.checkpoint_count = count;
    return EXIT_FINE;
}

static int
read_targets(struct estimate_values *v)
{
    static const char *const names[] = {"q", "k", "v", "o", "gate", "up", "down", "all"};
    const char *at = v->targets;
    uint32_t targets = 0;
    while (at && *at) {
        size_t length = strcspn(at, ","), i = 0;
        while (i < 8 && (strlen(names[i]) != length || memcmp(names[i], at, length) != 0))
            i++;
        if (i == 8)
            return report_usage("estimate",
                                "--lora-targets %s: expected q,k,v,o,gate,up,down or all",
                                v->targets);
        targets |= i == 7 ? DRY_LORA_ALL : UINT32_C(1) << i;
        at += length + (at[length] == ',');
    }
    if (targets)
        v->setup.lora_targets = targets;
    return EXIT_FINE;
}

int
estimate_values_read(struct estimate_values *v)
{
    int code = read_names(v);
    if (code == EXIT_FINE)
        code = read_checkpointing(v);
    if (code == EXIT_FINE)
        code = read_targets(v);
    if (code != EXIT_FINE)
        return code;
    v->setup.zero = (uint32_t)v->zero;
    v->setup.mask_bytes = (uint32_t)v->mask_bytes;
    if (v->zero > 0 && v->setup.data == 1)
        return report_usage("estimate",
                            "--zero is for --data alone: one device has all of it");
    return EXIT_FINE;
}

int
estimate_values_check_conv(const struct estimate_values *v)
{
    static const char why[] = "for transformers: this is a list of layers";
    const struct dry_run_setup *u = &v->setup;
    const struct option_misuse all[] = {
        {"seq", u->sequence != 0, why},
        {"attention", v->attention != NULL, why},
        {"composed-norm", u->has_composed_norm, why},
        {"repeated-kv", u->has_repeated_kv, why},
        {"index-add", u->has_index_add, why},
        {"inference", u->is_inference, why},
        {"lora", u->lora_rank != 0, why},
        {"chain", v->chain, why},
    };
    return options_refuse_misuse(&command_estimate, all, sizeof all / sizeof *all);
}
