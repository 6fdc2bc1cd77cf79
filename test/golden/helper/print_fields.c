/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_fields: the tables of members, the keys of statistics and the library's lists of words, as
 * one JSON object.
 */
#include <stdio.h>

#include <drystone/categories.h>
#include <drystone/cause.h>
#include <drystone/diff.h>
#include <drystone/doctor.h>
#include <drystone/estimate.h>
#include <drystone/explanation.h>
#include <drystone/graph.h>
#include <drystone/live.h>
#include <drystone/message.h>
#include <drystone/owners.h>
#include <drystone/pages.h>
#include <drystone/plan.h>
#include <drystone/recommend.h>
#include <drystone/replay.h>
#include <drystone/state.h>
#include <drystone/stats.h>
#include <drystone/steps.h>
#include <drystone/timeline.h>
#include <drystone/trace.h>

#include "explain/steps_report.h"

static const char *const types[] = {
    [DRY_FIELD_BOOL] = "bool", [DRY_FIELD_U64] = "u64",   [DRY_FIELD_I64] = "i64",
    [DRY_FIELD_SIZE] = "size", [DRY_FIELD_TEXT] = "text", [DRY_FIELD_CHARS] = "chars",
    [DRY_FIELD_U32] = "u32",   [DRY_FIELD_REAL] = "real"};

static const char *const units[] = {
    [DRY_UNIT_NONE] = "none",      [DRY_UNIT_BYTES] = "bytes",
    [DRY_UNIT_COUNT] = "count",    [DRY_UNIT_TOTAL] = "total",
    [DRY_UNIT_NANOSECONDS] = "ns", [DRY_UNIT_MICROSECONDS] = "us",
    [DRY_UNIT_EVENT] = "event",    [DRY_UNIT_SHARE] = "share"};

static void
print_table(const char *name, struct dry_fields fields)
{
    static bool has_one;
    printf("%s\n\"%s\": {", has_one ? "," : "", name);
    has_one = true;
    for (size_t i = 0; i < fields.count; i++) {
        const struct dry_field *f = &fields.list[i];
        printf("%s\n  \"%s\": {\"type\": \"%s\", \"unit\": \"%s\", \"is_always\": %s, "
               "\"meaning\": \"%s\"}",
               i ? "," : "", f->key, types[f->type], units[f->unit],
               f->known == DRY_KNOWN_ALWAYS ? "true" : "false", f->meaning);
    }
    printf("}");
}

static void
print_key(void *self, const char *key, int64_t value)
{
    size_t *count = self;
    (void)value;
    printf("%s\"%s\"", (*count)++ ? ",\n  " : "", key);
}

/* Print the names of the first `count` values of an enum. */
#define PRINT_WORDS(what, count)                                                         \
    do {                                                                                 \
        printf("%s\n  \"" #what "\": [", is_first ? "" : ",");                           \
        for (unsigned i = 0; i < (count); i++)                                           \
            printf("%s\"%s\"", i ? ", " : "", dry_##what##_name(i));                     \
        printf("]");                                                                     \
        is_first = false;                                                                \
    } while (0)

static const char *
dry_one_caveat_name(unsigned i)
{
    return dry_caveat_name(UINT32_C(1) << i);
}

static void
print_words(void)
{
    bool is_first = true;
    PRINT_WORDS(action, DRY_ACTION_COUNT);
    PRINT_WORDS(attention, DRY_ATTENTION_COUNT);
    PRINT_WORDS(category, DRY_CATEGORY_COUNT);
    PRINT_WORDS(cause, DRY_CAUSE_COUNT);
    PRINT_WORDS(change_kind, DRY_CHANGE_NO_EVIDENCE + 1);
    PRINT_WORDS(checkpointing, DRY_CHECKPOINTING_COUNT);
    PRINT_WORDS(doctor_purpose, DRY_DOCTOR_PURPOSE_COUNT);
    PRINT_WORDS(doctor_topic, DRY_DOCTOR_TOPIC_COUNT);
    PRINT_WORDS(doctor_verdict, DRY_DOCTOR_VERDICT_COUNT);
    PRINT_WORDS(estimate_phase, DRY_ESTIMATE_PHASE_COUNT);
    PRINT_WORDS(graph_method, DRY_GRAPH_METHOD_COUNT);
    PRINT_WORDS(group, DRY_GROUP_COUNT);
    PRINT_WORDS(message_backend, DRY_MESSAGE_BACKEND_COUNT);
    PRINT_WORDS(message_equation, DRY_MESSAGE_EQUATION_COUNT);
    PRINT_WORDS(message_form, DRY_MESSAGE_FORM_COUNT);
    PRINT_WORDS(message_quantity, DRY_MESSAGE_QUANTITY_COUNT);
    PRINT_WORDS(message_reason, DRY_MESSAGE_REASON_COUNT);
    PRINT_WORDS(method, DRY_METHOD_COUNT);
    PRINT_WORDS(model_kind, DRY_MODEL_KIND_COUNT);
    PRINT_WORDS(moment_kind, DRY_MOMENT_AT_END + 1);
    PRINT_WORDS(one_caveat, DRY_CAVEAT_COUNT);
    PRINT_WORDS(optimizer, DRY_OPTIMIZER_COUNT);
    PRINT_WORDS(outcome, DRY_OUTCOME_COUNT);
    PRINT_WORDS(owner_key, DRY_OWNER_KEY_COUNT);
    PRINT_WORDS(pages_kind, DRY_PAGES_POOL + 1);
    PRINT_WORDS(pass, DRY_PASS_COUNT);
    PRINT_WORDS(phase, DRY_PHASE_COUNT);
    PRINT_WORDS(plan_class, DRY_CLASS_COUNT);
    PRINT_WORDS(precision, DRY_PRECISION_COUNT);
    PRINT_WORDS(quantization, DRY_QUANTIZATION_COUNT);
    PRINT_WORDS(step_kind, DRY_STEP_KIND_COUNT);
    PRINT_WORDS(steps_source, DRY_STEPS_PERIODICITY + 1);
    PRINT_WORDS(trust, DRY_TRUST_LOW + 1);
    PRINT_WORDS(verdict, DRY_VERDICT_COUNT);
}

int
main(void)
{
    const struct dry_stats stats = {.num_ooms = 0};
    size_t count = 0;
    printf("{\"tables\": {");
    print_table("state", dry_state_get_fields());
    print_table("run", dry_run_get_fields(DRY_RUN_WHOLE));
    print_table("packed", dry_run_get_fields(DRY_RUN_PACKED));
    print_table("steady", dry_run_get_fields(DRY_RUN_STEADY));
    print_table("order", dry_run_get_fields(DRY_RUN_ORDER));
    print_table("check", dry_replay_check_get_fields());
    print_table("live", dry_live_get_fields(DRY_LIVE_FIGURES));
    print_table("detail", dry_live_get_fields(DRY_LIVE_DETAIL));
    print_table("lane", dry_live_get_fields(DRY_LIVE_LANE));
    print_table("recorded", dry_replay_recorded_get_fields());
    print_table("step", dry_step_get_fields(DRY_STEP_WHOLE));
    print_table("growth", dry_growth_get_fields());
    print_table("steps_totals", steps_totals_get_fields());
    print_table("diff_cell", dry_diff_get_fields(DRY_DIFF_CELL));
    print_table("diff_row", dry_diff_get_fields(DRY_DIFF_ROW));
    print_table("diff_fact", dry_diff_get_fields(DRY_DIFF_FACT));
    printf("},\n\"stats\": [");
    dry_stats_visit(&stats, print_key, &count);
    printf("],\n\"words\": {");
    print_words();
    printf("}}\n");
    return 0;
}
