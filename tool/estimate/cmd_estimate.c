/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone estimate`: the device memory that a model needs, from its configuration. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <drystone/card.h>
#include <drystone/estimate.h>

#include "base/command.h"
#include "base/report.h"
#include "estimate/estimate_options.h"
#include "estimate/estimate_report.h"
#include "estimate/model_json.h"

static const char about_text[] =
    "MODEL is a config.json of Transformers, a list of layers over images, or a name of "
    "--list. Weights, gradients, states, activations and logits line by line, each with "
    "its formula; the peak of every phase by a replay of PyTorch's allocator; what fits.";

struct session {
    struct estimate_values values;
    const char *name;
    struct model_json file;
    struct dry_estimate *estimate;
    struct estimate_report report;
    struct remedies remedies;
};

/* --- the card ---------------------------------------------------------------------------- */

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

/* --- the model ---------------------------------------------------------------------------- */

/* Check the model with default options. If that fails, the error is in the file, not in
   the options. */
static int
check_file(struct session *s)
{
    struct dry_run_setup plain;
    struct dry_estimate *estimate = NULL;
    struct dry_error err;
    dry_run_setup_init(&plain);
    plain.sequence = 1;
    plain.is_inference = s->file.model.quantization != DRY_QUANTIZATION_NONE;
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
    dry_model_init(&s->file.model);
    if (dry_model_find(s->name, &s->file.model) == DRY_OK)
        return EXIT_FINE;
    enum dry_status status = model_json_read(s->name, &s->file, &err);
    if (status == DRY_ERR_SYSTEM && !strpbrk(s->name, "./") && access(s->name, F_OK) != 0)
        return report_unknown(s->name);
    return status == DRY_OK ? check_file(s) : report_error("estimate", s->name, &err);
}

/* --- the work ----------------------------------------------------------------------------- */

/* Map a setup field in the library's message to the option that the user typed. */
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
        {"interleave", "virtual-pipeline"},
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
    if (err->offset != DRY_NO_OFFSET &&
        s->values.setup.conf) /* --conf is the only text with offsets */
        return report_usage("estimate", "--conf '%s': %s", s->values.setup.conf,
                            err->text);
    return report_error("estimate", s->name, err);
}

static int
fit(struct session *s, enum dry_fit what, uint64_t step, uint64_t *value)
{
    struct dry_run_setup setup = s->values.setup;
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
    uint64_t step = s->values.setup.context > 64 ? s->values.setup.context : 64;
    int code;
    if (!r->capacity_bytes)
        return EXIT_FINE;
    if (s->values.setup.is_inference)
        return fit(s, DRY_FIT_REQUESTS, 1, &r->max_requests);
    code = fit(s, DRY_FIT_BATCH, 1, &r->max_batch);
    r->sequence_step = step;
    if (code == EXIT_FINE && s->file.model.kind != DRY_MODEL_CONV)
        code = fit(s, DRY_FIT_SEQUENCE, step, &r->max_sequence);
    return code;
}

static int
find_remedies(struct session *s)
{
    struct estimate_report *r = &s->report;
    struct dry_error err;
    if (!r->capacity_bytes ||
        dry_estimate_get_summary(s->estimate)->device_bytes <= r->capacity_bytes)
        return EXIT_FINE;
    struct remedies_limits limits = {r->capacity_bytes, r->max_batch, r->max_requests};
    if (remedies_find(&s->remedies, &s->file.model, &s->values.setup, &limits, &err) !=
        DRY_OK)
        return report_error("estimate", s->name, &err);
    r->remedies = &s->remedies;
    return EXIT_FINE;
}

static int
show(struct session *s)
{
    struct estimate_report *r = &s->report;
    r->name = s->name;
    r->model = &s->file.model;
    r->unknown_family = s->file.unknown_family;
    r->notes = s->file.notes;
    r->note_count = s->file.note_count;
    r->setup = &s->values.setup;
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

/* Choose the sequence length without --seq: the library's default, but not more than the
   model's positions. */
static void
choose_sequence(struct session *s)
{
    struct dry_run_setup plain;
    uint64_t positions = s->file.model.positions;
    if (s->values.setup.sequence)
        return;
    dry_run_setup_init(&plain);
    s->values.setup.sequence =
        positions && positions < plain.sequence ? positions : plain.sequence;
}

static int
estimate(struct session *s)
{
    struct dry_error err;
    int code = s->file.model.kind == DRY_MODEL_CONV
                   ? estimate_values_check_conv(&s->values)
                   : EXIT_FINE;
    if (code != EXIT_FINE)
        return code;
    if (s->values.chain && s->values.setup.pipeline > 1)
        return report_usage("estimate", "--chain is for a model without a pipeline");
    if (s->values.chain && s->file.model.encoder_layers)
        return report_usage("estimate", "--chain is for one stack of layers, without an "
                                        "encoder beside it");
    choose_sequence(s);
    enum dry_status status =
        dry_estimate_create(&s->file.model, &s->values.setup, NULL, &s->estimate, &err);
    if (status != DRY_OK)
        return report_setup(s, &err);
    code = s->values.chain ? EXIT_FINE : find_largest(s);
    if (code == EXIT_FINE && !s->values.chain)
        code = find_remedies(s);
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
        printf("  %-13s %7.2f GiB\n", card->name, gib);
    }
    return EXIT_FINE;
}

static int
run(int argc, char **argv)
{
    struct session s = {.name = NULL};
    struct option_list operands = {0};
    int code;
    estimate_values_init(&s.values);
    if (options_parse(&command_estimate, argc, argv, &s.values, &operands, &code)) {
        if (s.values.list)
            code =
                argc > 2 ? report_usage("estimate", "--list goes alone") : list_names();
        else
            code = options_expect_one_file(&command_estimate, &operands);
        if (!s.values.list && code == EXIT_FINE) {
            s.name = operands.values[0];
            code = estimate_values_read(&s.values);
            if (code == EXIT_FINE)
                code = read_card(&s);
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
    .options = estimate_option_specs,
    .option_count = ESTIMATE_OPTION_COUNT,
    .run = run,
};
