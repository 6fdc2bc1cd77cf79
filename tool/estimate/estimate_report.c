/* SPDX-License-Identifier: Apache-2.0 */
/* See estimate_report.h. */
#include "estimate/estimate_report.h"

#include <drystone/card.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <drystone/card.h>

#include "base/command.h"
#include "base/json_out.h"
#include "base/table.h"
#include "base/term.h"

/* The column where texts begin, after the word in the margin. */
#define COLUMN 12
/* Longer formulas are printed as numbers only. */
#define FORMULA_COLUMNS 37u

struct view {
    struct term term;
    const struct estimate_report *r;
    const struct dry_estimate_summary *summary;
    const struct dry_estimate_row *rows;
    size_t row_count;
    const struct dry_estimate_unit *units;
    size_t unit_count;
};

static void
view_init(struct view *v, const struct estimate_report *r)
{
    term_init(&v->term, stdout);
    v->r = r;
    v->summary = dry_estimate_get_summary(r->estimate);
    v->rows = dry_estimate_get_rows(r->estimate, &v->row_count);
    v->units = dry_estimate_get_units(r->estimate, &v->unit_count);
}

__attribute__((format(printf, 3, 4))) static void
print_item(const struct view *v, const char *word, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    printf("%-*s", COLUMN, word);
    term_print_wrapped(stdout, text, COLUMN, v->term.is_terminal ? v->term.width : 80);
}

static unsigned long long
ull(uint64_t x)
{
    return (unsigned long long)x;
}

/* --- head --------------------------------------------------------------------------------- */

static void
print_model(const struct view *v)
{
    const struct dry_model *m = v->r->model;
    const struct dry_estimate_summary *s = v->summary;
    char all[TERM_NUMBER_BYTES], active[TERM_NUMBER_BYTES], trained[TERM_NUMBER_BYTES];
    term_print_subject(&v->term, v->r->name, TERM_BOLD, "%s parameter%s",
                       term_format_count(s->parameter_count, all),
                       s->parameter_count == 1 ? "" : "s");
    if (m->kind == DRY_MODEL_CONV)
        print_item(v, "model", "%zu layer%s over images of %llu x %llu x %llu",
                   m->conv_count, m->conv_count == 1 ? "" : "s", ull(m->channels),
                   ull(m->height), ull(m->width));
    else
        print_item(v, "model", "%s, %llu layer%s of %llu, %llu head%s, vocabulary %llu",
                   dry_model_kind_name(m->kind), ull(m->layers),
                   m->layers == 1 ? "" : "s", ull(m->hidden), ull(m->heads),
                   m->heads == 1 ? "" : "s", ull(m->vocab));
    if (m->encoder_layers)
        print_item(v, "", "it attends to an encoder of %llu layer%s",
                   ull(m->encoder_layers), m->encoder_layers == 1 ? "" : "s");
    if (*v->r->unknown_family)
        print_item(v, "family",
                   "%s is not known: assuming the architecture of %s, by its keys",
                   v->r->unknown_family, m->norm == DRY_NORM_RMS ? "Llama" : "GPT-2");
    for (size_t i = 0; i < v->r->note_count; i++)
        print_item(v, i ? "" : "left out", "%s", v->r->notes[i]);
    if (s->active_parameter_count < s->parameter_count && m->experts)
        print_item(v, "", "a token meets %s of them",
                   term_format_count(s->active_parameter_count, active));
    if (s->trained_count < s->parameter_count)
        print_item(v, "", "%s %s trained", term_format_count(s->trained_count, trained),
                   s->trained_count == 1 ? "is" : "are");
}

/* Write the parallel degrees greater than 1, separated by commas. */
static void
describe_degrees(const struct dry_run_setup *s, char *text, size_t capacity)
{
    const struct {
        const char *name;
        uint64_t degree;
    } degrees[] = {{"data", s->data},         {"tensor", s->tensor},
                   {"pipeline", s->pipeline}, {"interleave", s->interleave},
                   {"context", s->context},   {"expert", s->expert}};
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof degrees / sizeof *degrees; i++) {
        if (degrees[i].degree < 2 || used >= capacity)
            continue;
        int n = snprintf(text + used, capacity - used, "%s%s %llu", used ? ", " : "",
                         degrees[i].name, ull(degrees[i].degree));
        used += n > 0 ? (size_t)n : 0;
    }
}

static void
print_setup(const struct view *v)
{
    const struct dry_run_setup *s = v->r->setup;
    char degrees[128];
    describe_degrees(s, degrees, sizeof degrees);
    if (s->is_inference)
        print_item(v, "inference", "%llu request%s of %llu token%s, %s", ull(s->requests),
                   s->requests == 1 ? "" : "s", ull(s->sequence),
                   s->sequence == 1 ? "" : "s", dry_precision_name(s->precision));
    else if (v->r->model->kind == DRY_MODEL_CONV)
        print_item(v, "training", "batch %llu, %s, %s", ull(s->batch),
                   dry_precision_name(s->precision), dry_optimizer_name(s->optimizer));
    else
        print_item(v, "training",
                   "batch %llu, sequence %llu, %s, %s, %s attention, checkpointing %s",
                   ull(s->batch), ull(s->sequence), dry_precision_name(s->precision),
                   dry_optimizer_name(s->optimizer), dry_attention_name(s->attention),
                   dry_checkpointing_name(s->checkpointing));
    if (s->accumulation > 1)
        print_item(v, "", "%llu microbatches a step, %llu held at once",
                   ull(s->accumulation), ull(v->summary->flight_count));
    if (degrees[0])
        print_item(v, "", "%s%s%s", degrees, s->zero ? ", ZeRO " : "",
                   s->zero == 1   ? "1"
                   : s->zero == 2 ? "2"
                   : s->zero == 3 ? "3"
                                  : "");
    if (s->pipeline > 1)
        print_item(v, "", "of stage %llu of the pipeline%s", ull(v->summary->stage),
                   s->stage == DRY_STAGE_WORST ? ", the fullest" : "");
}

/* --- rows --------------------------------------------------------------------------------- */

static const char *
short_formula(const char *formula)
{
    const char *numbers = strstr(formula, " = ");
    return strlen(formula) > FORMULA_COLUMNS && numbers ? numbers + 3 : formula;
}

static bool
print_rows(const struct view *v)
{
    struct table t;
    char bytes[TERM_NUMBER_BYTES];
    table_init(&t, "<row >bytes <formula");
    for (size_t i = 0; i < v->row_count; i++) {
        const struct dry_estimate_row *row = &v->rows[i];
        if (row->group == DRY_GROUP_REFERENCE)
            continue;
        table_add(&t, row->name);
        table_add(&t, term_format_bytes(row->bytes, bytes));
        table_add(&t, short_formula(row->formula));
    }
    return table_print(&t, &v->term);
}

static bool
print_phases(const struct view *v)
{
    struct table t;
    char bytes[TERM_NUMBER_BYTES];
    table_init(&t, "<phase >requested >allocated >reserved");
    for (int i = 0; i < DRY_ESTIMATE_PHASE_COUNT; i++) {
        const struct dry_estimate_peak *p = &v->summary->phases[i];
        if (p->requested_bytes == 0)
            continue;
        table_add(&t, dry_estimate_phase_name((enum dry_estimate_phase)i));
        table_add(&t, term_format_bytes(p->requested_bytes, bytes));
        table_add(&t, term_format_bytes(p->allocated_bytes, bytes));
        table_add(&t, term_format_bytes(p->reserved_bytes, bytes));
    }
    return table_print(&t, &v->term);
}

/* Print the groups alive at the peak, largest first. */
static void
print_parts(const struct view *v)
{
    const struct dry_estimate_peak *p = &v->summary->phases[v->summary->peak_phase];
    char text[512], bytes[TERM_NUMBER_BYTES];
    bool is_said[DRY_GROUP_COUNT] = {false};
    size_t used = 0;
    text[0] = '\0';
    for (int n = 0; n < DRY_GROUP_COUNT && used < sizeof text; n++) {
        int most = -1;
        for (int g = 0; g < DRY_GROUP_COUNT; g++) {
            if (!is_said[g] && p->parts[g] && (most < 0 || p->parts[g] > p->parts[most]))
                most = g;
        }
        if (most < 0)
            break;
        is_said[most] = true;
        int length = snprintf(text + used, sizeof text - used, "%s%s %s", n ? ", " : "",
                              dry_group_name((enum dry_estimate_group)most),
                              term_format_bytes(p->parts[most], bytes));
        used += length > 0 ? (size_t)length : 0;
    }
    print_item(v, "there then", "%s", text);
}

static void
print_peak(const struct view *v)
{
    const struct dry_estimate_summary *s = v->summary;
    char peak[TERM_NUMBER_BYTES], reserved[TERM_NUMBER_BYTES], outside[TERM_NUMBER_BYTES],
        all[TERM_NUMBER_BYTES];
    print_item(v, "peak",
               "%s allocated, in the phase %s: phases follow one another, so the peak is "
               "the largest phase, not the sum of the rows",
               term_format_bytes(s->allocated_bytes, peak),
               dry_estimate_phase_name(s->peak_phase));
    print_parts(v);
    print_item(v, "device", "%s%s%s: %s reserved, %s outside of the allocator",
               term_style(&v->term, TERM_BOLD), term_format_bytes(s->device_bytes, all),
               term_style(&v->term, TERM_PLAIN),
               term_format_bytes(s->reserved_bytes, reserved),
               term_format_bytes(s->outside_bytes, outside));
}

/* --- the field's formulas ----------------------------------------------------------------- */

static void
print_references(const struct view *v)
{
    char bytes[TERM_NUMBER_BYTES], held[TERM_NUMBER_BYTES];
    bool is_first = true;
    for (size_t i = 0; i < v->row_count; i++) {
        const struct dry_estimate_row *row = &v->rows[i];
        if (row->group != DRY_GROUP_REFERENCE)
            continue;
        print_item(v, is_first ? "compare" : "", "%s: %s, %s", row->name,
                   term_format_bytes(row->bytes, bytes), row->source);
        is_first = false;
    }
    if (!is_first)
        print_item(v, "", "activations here: %s",
                   term_format_bytes(v->summary->activation_bytes, held));
}

/* --- cards -------------------------------------------------------------------------------- */

static void
print_cards(const struct view *v)
{
    char text[1024];
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; dry_card_get(i) && used < sizeof text; i++) {
        const struct dry_card *card = dry_card_get(i);
        if (card->usable_bytes < v->summary->device_bytes)
            continue;
        int n = snprintf(text + used, sizeof text - used, "%s%s", used ? ", " : "",
                         card->name);
        used += n > 0 ? (size_t)n : 0;
    }
    print_item(v, "fits on", "%s", used ? text : "no card that we know");
}

static void
print_value(const struct view *v, const char *what, uint64_t most, const char *beside)
{
    if (most)
        print_item(v, "", "largest %s: %llu%s", what, ull(most), beside);
    else
        print_item(v, "", "largest %s: none fits", what);
}

static void
print_fit(const struct view *v)
{
    const struct estimate_report *r = v->r;
    char usable[TERM_NUMBER_BYTES], beside[96];
    bool fits = v->summary->device_bytes <= r->capacity_bytes;
    print_item(v, fits ? "fits on" : "too big for", "%s%s%s usable",
               r->card ? r->card : "", r->card ? ": " : "",
               term_format_bytes(r->capacity_bytes, usable));
    if (r->setup->is_inference) {
        snprintf(beside, sizeof beside, ", of %llu token%s each", ull(r->setup->sequence),
                 r->setup->sequence == 1 ? "" : "s");
        print_value(v, "number of requests", r->max_requests, beside);
        return;
    }
    if (r->model->kind == DRY_MODEL_CONV) {
        print_value(v, "batch", r->max_batch, "");
        return;
    }
    snprintf(beside, sizeof beside, ", at sequence %llu", ull(r->setup->sequence));
    print_value(v, "batch", r->max_batch, beside);
    snprintf(beside, sizeof beside, ", at batch %llu, in steps of %llu",
             ull(r->setup->batch), ull(r->sequence_step));
    print_value(v, "sequence", r->max_sequence, beside);
}

/* Print the table of changes that would make the model fit. */
static bool
print_remedies(const struct view *v)
{
    const struct remedies *all = v->r->remedies;
    struct table t;
    char bytes[TERM_NUMBER_BYTES], devices[TERM_NUMBER_BYTES];
    if (!all)
        return true;
    printf("\n");
    table_init(&t, "<change >devices >each <fits");
    for (size_t i = 0; i < all->count; i++) {
        const struct remedy *r = &all->all[i];
        table_add(&t, r->text);
        table_add(&t, term_format_count(r->devices, devices));
        table_add(&t, term_format_bytes(r->device_bytes, bytes));
        table_add(&t, r->fits ? "yes" : "no");
    }
    bool done = table_print(&t, &v->term);
    printf("\n");
    return done;
}

/* --- units -------------------------------------------------------------------------------- */

static bool
print_unit(const struct view *v, const struct dry_estimate_unit *unit)
{
    struct table t;
    char bytes[TERM_NUMBER_BYTES], count[TERM_NUMBER_BYTES];
    if (unit->count == 0 || unit->tensor_count == 0)
        return true;
    printf("\n%s%s%s, %llu here, %s parameter%s, saves %s\n",
           term_style(&v->term, TERM_BOLD), unit->name, term_style(&v->term, TERM_PLAIN),
           ull(unit->count), term_format_count(unit->parameter_count, count),
           unit->parameter_count == 1 ? "" : "s",
           term_format_bytes(unit->saved_bytes, bytes));
    table_init(&t, "<tensor >bytes <formula");
    for (size_t i = 0; i < unit->tensor_count; i++) {
        table_add(&t, unit->tensors[i].name);
        table_add(&t, term_format_bytes(unit->tensors[i].bytes, bytes));
        table_add(&t, short_formula(unit->tensors[i].formula));
    }
    return table_print(&t, &v->term);
}

bool
estimate_report_print(const struct estimate_report *report)
{
    struct view v;
    view_init(&v, report);
    print_model(&v);
    print_setup(&v);
    printf("\n");
    if (!print_rows(&v))
        return false;
    printf("\n");
    if (!print_phases(&v))
        return false;
    printf("\n");
    print_peak(&v);
    if (report->capacity_bytes)
        print_fit(&v);
    else
        print_cards(&v);
    if (!print_remedies(&v))
        return false;
    print_references(&v);
    for (size_t i = 0; report->has_units && i < v.unit_count; i++) {
        if (!print_unit(&v, &v.units[i]))
            return false;
    }
    return true;
}

/* --- JSON --------------------------------------------------------------------------------- */

static json_t *
make_notes(const struct estimate_report *r)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < r->note_count; i++)
        list = json_out_append(list, json_out_string(r->notes[i]));
    return list;
}

static json_t *
make_rows(const struct view *v)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < v->row_count; i++) {
        const struct dry_estimate_row *row = &v->rows[i];
        list = json_out_append(
            list,
            json_pack("{s:s, s:s, s:o, s:o, s:s}", "group", dry_group_name(row->group),
                      "name", row->name, "bytes", json_out_number(row->bytes), "formula",
                      json_out_string(row->formula), "source", row->source));
    }
    return list;
}

static json_t *
make_tensors(const struct dry_estimate_unit *unit)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < unit->tensor_count; i++) {
        const struct dry_estimate_tensor *t = &unit->tensors[i];
        list = json_out_append(list, json_pack("{s:s, s:o, s:o}", "name", t->name,
                                               "bytes", json_out_number(t->bytes),
                                               "formula", json_out_string(t->formula)));
    }
    return list;
}

static json_t *
make_units(const struct view *v)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < v->unit_count; i++) {
        const struct dry_estimate_unit *u = &v->units[i];
        list = json_out_append(
            list, json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "name", u->name, "count",
                            json_out_number(u->count), "parameters",
                            json_out_number(u->parameter_count), "saved_bytes",
                            json_out_number(u->saved_bytes), "input_bytes",
                            json_out_number(u->input_bytes), "tensors", make_tensors(u)));
    }
    return list;
}

static json_t *
make_parts(const struct dry_estimate_peak *p)
{
    json_t *parts = json_object();
    for (int g = 0; g < DRY_GROUP_COUNT; g++) {
        if (p->parts[g])
            json_object_set_new(parts, dry_group_name((enum dry_estimate_group)g),
                                json_out_number(p->parts[g]));
    }
    return parts;
}

static json_t *
make_phases(const struct view *v)
{
    json_t *list = json_array();
    for (int i = 0; list && i < DRY_ESTIMATE_PHASE_COUNT; i++) {
        const struct dry_estimate_peak *p = &v->summary->phases[i];
        list = json_out_append(
            list, json_pack("{s:s, s:o, s:o, s:o, s:o}", "name",
                            dry_estimate_phase_name((enum dry_estimate_phase)i),
                            "requested_bytes", json_out_number(p->requested_bytes),
                            "allocated_bytes", json_out_number(p->allocated_bytes),
                            "reserved_bytes", json_out_number(p->reserved_bytes), "parts",
                            make_parts(p)));
    }
    return list;
}

static json_t *
make_setup(const struct dry_run_setup *s)
{
    return json_pack(
        "{s:b, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:o,"
        " s:o, s:b, s:o, s:o}",
        "inference", s->is_inference, "precision", dry_precision_name(s->precision),
        "optimizer", dry_optimizer_name(s->optimizer), "step",
        dry_step_kind_name(s->step), "attention", dry_attention_name(s->attention),
        "checkpointing", dry_checkpointing_name(s->checkpointing), "batch",
        json_out_number(s->batch), "sequence", json_out_number(s->sequence),
        "accumulation", json_out_number(s->accumulation), "requests",
        json_out_number(s->requests), "zero", (int)s->zero, "data",
        json_out_number(s->data), "tensor", json_out_number(s->tensor), "pipeline",
        json_out_number(s->pipeline), "interleave", json_out_number(s->interleave),
        "context", json_out_number(s->context), "expert", json_out_number(s->expert),
        "sequence_parallel", s->has_sequence_parallel, "lora_rank",
        json_out_number(s->lora_rank), "checkpoint_count",
        json_out_number(s->checkpoint_count));
}

static json_t *
make_remedies(const struct estimate_report *report)
{
    json_t *list = json_array();
    size_t count = report->remedies ? report->remedies->count : 0;
    for (size_t i = 0; list && i < count; i++) {
        const struct remedy *r = &report->remedies->all[i];
        list = json_out_append(
            list, json_pack("{s:s, s:o, s:o, s:b}", "change", r->text, "devices",
                            json_out_number(r->devices), "device_bytes",
                            json_out_number(r->device_bytes), "fits", r->fits));
    }
    return list;
}

static json_t *
make_fit(const struct view *v)
{
    const struct estimate_report *r = v->r;
    if (!r->capacity_bytes)
        return json_null();
    return json_pack("{s:s?, s:o, s:b, s:o, s:o, s:o, s:o}", "card", r->card,
                     "usable_bytes", json_out_number(r->capacity_bytes), "fits",
                     v->summary->device_bytes <= r->capacity_bytes, "max_batch",
                     json_out_known(r->max_batch > 0, r->max_batch), "max_sequence",
                     json_out_known(r->max_sequence > 0, r->max_sequence), "max_requests",
                     json_out_known(r->max_requests > 0, r->max_requests), "remedies",
                     make_remedies(r));
}

int
estimate_report_print_json(const struct estimate_report *report)
{
    struct view v;
    view_init(&v, report);
    const struct dry_estimate_summary *s = v.summary;
    json_t *root = json_pack(
        "{s:s, s:o, s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, "
        "s:o, s:o, s:o,"
        " s:o, s:o, s:o, s:o}",
        "schema", "drystone.estimate/1", "file", json_out_string(report->name), "kind",
        dry_model_kind_name(report->model->kind), "unknown_family",
        json_out_filled(report->unknown_family), "notes", make_notes(report),
        "quantization", dry_quantization_name(report->model->quantization), "parameters",
        json_out_number(s->parameter_count), "active_parameters",
        json_out_number(s->active_parameter_count), "trained_parameters",
        json_out_number(s->trained_count), "device_parameters",
        json_out_number(s->device_parameter_count), "setup", make_setup(report->setup),
        "stage", json_out_number(s->stage), "microbatches_held",
        json_out_number(s->flight_count), "peak_phase",
        dry_estimate_phase_name(s->peak_phase), "allocated_bytes",
        json_out_number(s->allocated_bytes), "reserved_bytes",
        json_out_number(s->reserved_bytes), "outside_bytes",
        json_out_number(s->outside_bytes), "device_bytes",
        json_out_number(s->device_bytes), "rows", make_rows(&v), "phases",
        make_phases(&v), "units", make_units(&v), "fit", make_fit(&v));
    return json_out_print("estimate", root);
}
