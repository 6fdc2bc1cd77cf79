/* SPDX-License-Identifier: Apache-2.0 */
/* The section of the explanation that suggests changes. */
#include <stdio.h>
#include <string.h>

#include "explain/explain_print.h"
#include "record/provenance.h"

static void
print_caveats(const struct explain_printer *p, uint32_t caveats)
{
    for (uint32_t bit = 1; bit != 0 && bit < 1u << DRY_CAVEAT_COUNT; bit <<= 1) {
        if (caveats & bit)
            explain_print_item(p, "     ", "but: %s", dry_caveat_text(bit));
    }
}

/* Say what a change buys at the failure, and how long that lasts. */
static void
print_effect(const struct explain_printer *p, const struct dry_effect *e)
{
    char bytes[TERM_NUMBER_BYTES], steps[TERM_NUMBER_BYTES], text[160];
    if (!e->is_known || (e->headroom_bytes < 0 && !e->is_replayed))
        return;
    const char *bound = e->is_replayed ? "" : "up to ";
    term_format_bytes((uint64_t)e->headroom_bytes, bytes);
    if (e->headroom_bytes < 0)
        snprintf(text, sizeof text, "replayed: the request fails all the same");
    else if (e->lasting == DRY_LASTING_RECORDING)
        snprintf(text, sizeof text, "leaves %s%s free; nothing else grows", bound, bytes);
    else if (e->lasting == DRY_LASTING_LITTLE)
        snprintf(
            text, sizeof text,
            "puts the failure off by %s%s: the program was still adding, and how much "
            "more it needs was not recorded",
            bound, bytes);
    else if (e->lasting == DRY_LASTING_UNKNOWN)
        snprintf(text, sizeof text, "leaves %s%s free", bound, bytes);
    else if (e->steps == 0)
        snprintf(
            text, sizeof text,
            "puts the failure off by %s%s: by the recorded growth, less than one step",
            bound, bytes);
    else
        snprintf(text, sizeof text,
                 "leaves %s%s free: %s%s step%s of the recorded growth", bound, bytes,
                 bound, term_format_count(e->steps, steps), e->steps == 1 ? "" : "s");
    explain_print_item(p, "     ", "%s", text);
}

/* Append the change in retries: "; 2 retries instead of 39". */
static void
add_retries(const struct dry_change *c, char *text, size_t capacity)
{
    char now[TERM_NUMBER_BYTES], before[TERM_NUMBER_BYTES];
    size_t used = strlen(text);
    if (c->retries == c->recorded_retries || c->recorded_fails)
        return;
    snprintf(text + used, capacity - used, "; %s retr%s instead of %s",
             term_format_count(c->retries, now), c->retries == 1 ? "y" : "ies",
             term_format_count(c->recorded_retries, before));
}

/* Write what the replay with a changed setting showed about a failure. */
static void
say_rescue(const struct dry_change *c, char *text, size_t capacity)
{
    char peak[TERM_NUMBER_BYTES], before[TERM_NUMBER_BYTES];
    if (c->oom_event != DRY_EVENT_NONE)
        snprintf(text, capacity,
                 "replayed: gets past this failure, but not past the one at event %zu",
                 c->oom_event);
    else if (c->has_gain && c->recorded_runs_on_bytes > 0)
        snprintf(text, capacity,
                 "replayed: gets past this failure and runs on %s; the recorded settings "
                 "need %s",
                 term_format_bytes(c->runs_on_bytes, peak),
                 term_format_bytes(c->recorded_runs_on_bytes, before));
    else
        snprintf(
            text, capacity,
            "replayed: gets past this failure, %s reserved at the peak; the recorded "
            "settings fail with %s",
            term_format_bytes(c->peak_bytes, peak),
            term_format_bytes(c->recorded_peak_bytes, before));
}

/* Say what the replay saves, and against what. If the record begins warm, its own figures are
   others: a replay begins without the cache of then. */
static void
say_saving(const struct explain_printer *p, const struct dry_change *c, char *text,
           size_t capacity)
{
    bool is_warm = dry_recommend_get_summary(p->view->settings)->begins_warm;
    const char *replayed = is_warm ? "replayed from an empty device" : "replayed";
    char now[TERM_NUMBER_BYTES], before[TERM_NUMBER_BYTES], gain[TERM_NUMBER_BYTES];
    bool is_device = c->runs_on_bytes > 0 && c->recorded_runs_on_bytes > 0;
    term_format_bytes(is_device ? c->runs_on_bytes : c->peak_bytes, now);
    term_format_bytes(is_device ? c->recorded_runs_on_bytes : c->recorded_peak_bytes,
                      before);
    if (c->has_gain && c->gain_bytes > 0)
        snprintf(text, capacity, "%s: %s %s instead of %s, %s less", replayed,
                 is_device ? "runs on" : "reserves", now, before,
                 term_format_bytes((uint64_t)c->gain_bytes, gain));
    else if (c->recorded_fails)
        snprintf(text, capacity,
                 "replayed: %s %s; begun on an empty device of that size the recorded "
                 "settings do not get through",
                 is_device ? "runs on" : "reserves", now);
    else
        snprintf(text, capacity, "%s: %s %s, the recorded settings %s", replayed,
                 is_device ? "runs on" : "reserves", now, before);
    add_retries(c, text, capacity);
}

static void
print_setting(const struct explain_printer *p, const char *mark,
              const struct dry_change *c)
{
    char effect[300];
    if (c->removes_oom)
        say_rescue(c, effect, sizeof effect);
    else
        say_saving(p, c, effect, sizeof effect);
    explain_print_item(p, mark, "PYTORCH_CUDA_ALLOC_CONF=%s (%s)",
                       c->setting[0] ? c->setting : "''", effect);
    print_effect(p, &c->effect);
    if (c->since[0] && c->caveats & DRY_CAVEAT_RELEASE)
        explain_print_item(p, "     ", "needs PyTorch %s: the file may be of %s",
                           c->since, p->view->releases.first);
    print_caveats(p, c->caveats & ~DRY_CAVEAT_RELEASE);
}

static const char *
describe_change(enum dry_change_kind kind)
{
    switch (kind) {
    case DRY_CHANGE_OWNERS:
        return "The lines above and the request must shrink%s: a smaller batch or "
               "sequence, lower precision, sharding.";
    case DRY_CHANGE_CHECKPOINT:
        return "Recompute activations (torch.utils.checkpoint): %s of them are alive "
               "here.";
    case DRY_CHANGE_LEAK:
        return "Let go of what earlier steps left behind: %s here (drystone steps names "
               "the lines).";
    case DRY_CHANGE_BALANCE:
        return "Split the work evenly: about %s for each device.";
    case DRY_CHANGE_LIMIT:
        return "Raise the memory fraction: the device has %s more.";
    case DRY_CHANGE_OTHER:
        return "Free %s of what is not PyTorch's: other processes, NCCL, CUDA contexts, "
               "libraries that allocate by themselves.";
    case DRY_CHANGE_STREAMS:
        return "Free %s earlier: wait for the other stream before the tensors go, or use "
               "them on one stream (record_stream keeps them until it is done).";
    case DRY_CHANGE_POOL:
        return "%s lie free where this request may not go: allocate on the same stream, "
               "share one graph pool, or empty the other before.";
    case DRY_CHANGE_RECORD:
        return "%s are of unknown lines: record again from the program's start, "
               "with a larger max_entries.";
    case DRY_CHANGE_SETTING:
    case DRY_CHANGE_NO_SETTING:
    case DRY_CHANGE_NO_EVIDENCE:
        break;
    }
    return NULL;
}

static void
print_no_setting(const struct explain_printer *p, const char *mark,
                 const struct dry_change *c)
{
    char number[TERM_NUMBER_BYTES];
    size_t count = 0;
    if (c->bytes > 0) {
        explain_print_item(p, mark,
                           "No allocator setting can help: packed without a gap, %s "
                           "would still be missing.",
                           term_format_bytes(c->bytes, number));
        return;
    }
    if (p->view->settings)
        dry_recommend_get_candidates(p->view->settings, &count);
    explain_print_item(
        p, mark,
        "No allocator setting helps: %zu %s replayed (drystone sweep shows "
        "%s).",
        count, count == 1 ? "was" : "were", count == 1 ? "it" : "them");
}

const char *
explain_get_evidence_gap(const struct dry_explanation_view *v)
{
    return v->settings ? dry_recommend_get_summary(v->settings)->evidence_gap
                       : "the file holds no events";
}

static void
print_no_evidence(const struct explain_printer *p, const char *mark)
{
    explain_print_item(
        p, mark,
        "The recording says nothing about allocator settings: %s. " PROVENANCE_RECORD_IT,
        explain_get_evidence_gap(p->view));
}

/* Print a change to the program, and the setting whose replay simulates the change. */
static void
print_program_change(const struct explain_printer *p, const char *mark,
                     const struct dry_change *c)
{
    char number[TERM_NUMBER_BYTES], amount[TERM_NUMBER_BYTES + 40], text[400], safe[400];
    const char *words = describe_change(c->kind), *gap = strstr(words, "%s");
    term_format_bytes(c->bytes, number);
    if (c->kind != DRY_CHANGE_OWNERS)
        snprintf(amount, sizeof amount, "%s", number);
    else if (c->bytes > 0)
        snprintf(amount, sizeof amount, " by at least %s together, for this request",
                 number);
    else
        snprintf(amount, sizeof amount, ", by how much was not recorded");
    snprintf(text, sizeof text, "%.*s%s%s%s", (int)(gap - words), words, amount, gap + 2,
             c->removes_oom ? " That removes the failure." : "");
    explain_print_item(p, mark, "%s", text);
    print_effect(p, &c->effect);
    if (!c->setting)
        return;
    term_make_printable(safe, sizeof safe, c->setting, strlen(c->setting));
    explain_print_item(p, "     ", "replayed with PYTORCH_CUDA_ALLOC_CONF=%s",
                       safe[0] ? safe : "''");
    if (c->removes_oom && c->oom_event != DRY_EVENT_NONE)
        explain_print_item(p, "     ", "but not past the failure at event %zu",
                           c->oom_event);
}

void
explain_print_changes(const struct explain_printer *p)
{
    const struct dry_explanation_view *v = p->view;
    if (v->change_count == 0)
        return;
    explain_print_heading(p, "what to change");
    for (size_t i = 0; i < v->change_count; i++) {
        const struct dry_change *c = &v->changes[i];
        char mark[24];
        snprintf(mark, sizeof mark, "%zu. ", i + 1);
        if (c->kind == DRY_CHANGE_SETTING)
            print_setting(p, mark, c);
        else if (c->kind == DRY_CHANGE_NO_SETTING)
            print_no_setting(p, mark, c);
        else if (c->kind == DRY_CHANGE_NO_EVIDENCE)
            print_no_evidence(p, mark);
        else
            print_program_change(p, mark, c);
    }
    if (v->moment_kind == DRY_MOMENT_AT_OOM && v->oom_count > 1 && v->settings)
        explain_print_item(p, "",
                           "Settings were judged for this failure alone; drystone sweep "
                           "looks for one that gets past all %u.",
                           v->oom_count);
}
