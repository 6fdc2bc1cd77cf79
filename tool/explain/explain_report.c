/* SPDX-License-Identifier: Apache-2.0 */
/* See explain_report.h. The text is here, the JSON in explain_json.c. */
#include "explain/explain_print.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/table.h"
#include "base/term.h"
#include "record/provenance.h"

#define CACHE_BYTES_MIN (UINT64_C(64) << 20) /* a smaller cache is not worth a word */
#define NAME_COLUMNS 18                      /* width of the figures' names at the top */

void
explain_print_item(const struct explain_printer *p, const char *mark, const char *format,
                   ...)
{
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    int column = printf("  %s", mark);
    int width = p->term.width < 100 ? p->term.width : 100;
    if (column < EXPLAIN_INDENT)
        column += printf("%*s", EXPLAIN_INDENT - column, "");
    term_print_wrapped(stdout, text, column, width);
}

void
explain_print_heading(const struct explain_printer *p, const char *text)
{
    printf("\n%s%s%s\n", term_style(&p->term, TERM_BOLD), text,
           term_style(&p->term, TERM_PLAIN));
}

/* --- the verdict -------------------------------------------------------------------------- */

static const char *
describe_cause(const struct dry_explanation_view *v, enum dry_cause cause)
{
    static const char *const words[DRY_CAUSE_COUNT] = {
        "nothing is wrong",
        "capacity: it does not fit, however it is laid out",
        "fragmentation: the bytes are free, but in pieces",
        "stranded memory: the bytes are free where this request may not go",
        "pending frees: the bytes waited for other streams",
        "a limit: the device had room, but PyTorch was not allowed it",
        "other memory: the device is full of what PyTorch did not allocate",
        "a leak: every step leaves memory behind",
        "a spike: this step asks for far more than any before it",
        "imbalance: this device holds far more than the others",
        "an overflow: the recording has lost who holds the memory",
        "unknown: the recording does not carry a verdict",
        "near the limit: it ran, but only because requests were tried again",
    };
    if (cause == DRY_CAUSE_CAPACITY && v->short_bytes == 0) /* of what follows */
        return "capacity: little more would fit, however it is laid out";
    return words[cause];
}

/* Return the bytes that the best setting saves in a run that did not fail; 0: none. */
static uint64_t
saved_bytes(const struct dry_explanation_view *v)
{
    for (size_t i = 0; i < v->change_count; i++) {
        const struct dry_change *c = &v->changes[i];
        if (c->kind == DRY_CHANGE_SETTING && c->has_gain && c->gain_bytes > 0)
            return (uint64_t)c->gain_bytes;
    }
    return 0;
}

/* Write the verdict as a sentence with the figures that justify the verdict. */
static void
say_verdict(const struct dry_explanation_view *v, char *text, size_t capacity)
{
    char number[TERM_NUMBER_BYTES], pieces[TERM_NUMBER_BYTES];
    enum dry_cause cause = v->findings[0].cause;
    uint64_t saved = saved_bytes(v);
    size_t retries = v->check->retry_count;
    if (cause == DRY_CAUSE_NEAR_LIMIT)
        snprintf(text, capacity,
                 "near the limit: %s retr%s a synchronisation and the driver's calls",
                 term_format_count(retries, number),
                 retries == 1 ? "y, which cost" : "ies, each costs");
    else if (cause == DRY_CAUSE_NONE && saved > 0)
        snprintf(text, capacity, "nothing failed, but a setting would save %s",
                 term_format_bytes(saved, number));
    else if (cause == DRY_CAUSE_FRAGMENTATION && v->moment_kind != DRY_MOMENT_AT_OOM &&
             v->state->releasable > v->findings[0].bytes)
        snprintf(text, capacity,
                 "an unused cache: %s are free as whole segments, %s in pieces",
                 term_format_bytes(v->state->releasable, number),
                 term_format_bytes(v->findings[0].bytes, pieces));
    else if (cause == DRY_CAUSE_FRAGMENTATION && v->moment_kind != DRY_MOMENT_AT_OOM)
        snprintf(text, capacity, "fragmentation: %s of %s are free, but in pieces",
                 term_format_bytes(v->findings[0].bytes, pieces),
                 term_format_bytes(v->state->reserved, number));
    else if (cause == DRY_CAUSE_UNKNOWN && v->findings[0].note[0])
        snprintf(text, capacity, "unknown: %s", v->findings[0].note);
    else if (cause == DRY_CAUSE_NONE && v->state->releasable > CACHE_BYTES_MIN &&
             v->state->releasable > v->state->reserved / 4)
        snprintf(text, capacity,
                 "nothing is wrong; %s of cache are free as whole segments",
                 term_format_bytes(v->state->releasable, number));
    else
        snprintf(text, capacity, "%s", describe_cause(v, cause));
}

static void
print_where(const struct explain_printer *p)
{
    const struct dry_explanation_view *v = p->view;
    char number[TERM_NUMBER_BYTES];
    const char *style =
        term_style(&p->term, v->moment_kind == DRY_MOMENT_AT_OOM ? TERM_RED : TERM_BOLD);
    switch (v->moment_kind) {
    case DRY_MOMENT_AT_OOM:
        printf("%sOUT OF MEMORY%s at event %zu", style, term_style(&p->term, TERM_PLAIN),
               v->event);
        break;
    case DRY_MOMENT_AT_PEAK:
        printf("%sAt the peak%s, after event %zu", style,
               term_style(&p->term, TERM_PLAIN), v->event);
        break;
    case DRY_MOMENT_AT_EVENT:
        printf("%sAfter event %zu%s", style, v->event, term_style(&p->term, TERM_PLAIN));
        break;
    case DRY_MOMENT_AT_END:
        printf("%sAt the end%s", style, term_style(&p->term, TERM_PLAIN));
        if (v->event != SIZE_MAX)
            printf(", after event %zu", v->event);
        else
            printf(": the segments alone are known");
        break;
    }
    if (v->event != SIZE_MAX && v->time_us > 0)
        printf(" (+%s)", term_format_time((uint64_t)v->time_us, number));
    printf("\n");
}

static void
print_verdict(const struct explain_printer *p)
{
    const struct dry_explanation_view *v = p->view;
    const struct dry_finding *f = &v->findings[0];
    enum term_style style = f->cause == DRY_CAUSE_NONE         ? TERM_GREEN
                            : f->cause == DRY_CAUSE_NEAR_LIMIT ? TERM_YELLOW
                                                               : TERM_RED;
    char verdict[240];
    say_verdict(v, verdict, sizeof verdict);
    printf("%sVERDICT%s  ", term_style(&p->term, style),
           term_style(&p->term, TERM_PLAIN));
    term_print_wrapped(stdout, verdict, 9, p->term.width);
    for (size_t i = 1; i < v->finding_count; i++) {
        bool is_end = f->cause == DRY_CAUSE_LEAK || f->cause == DRY_CAUSE_SPIKE ||
                      f->cause == DRY_CAUSE_IMBALANCE || f->cause == DRY_CAUSE_OVERFLOW ||
                      f->cause == DRY_CAUSE_OTHER_MEMORY;
        const char *word = v->findings[i].cause == DRY_CAUSE_CAPACITY && is_end
                               ? "so that:"
                               : "besides:";
        printf("%-9s", word);
        char text[160];
        snprintf(text, sizeof text, "%s%s", describe_cause(v, v->findings[i].cause),
                 v->findings[i].is_assumed ? " (assumed)"
                 : v->findings[i].is_tied  ? " (as much: the sums differ by under 2 %)"
                                           : "");
        term_print_wrapped(stdout, text, 9, p->term.width);
    }
}

/* --- the figures -------------------------------------------------------------------------- */

__attribute__((format(printf, 4, 5))) static void
print_figure(const struct explain_printer *p, const char *name, uint64_t bytes,
             const char *format, ...)
{
    char number[TERM_NUMBER_BYTES], text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    printf("  %-*s%11s  ", NAME_COLUMNS, name, term_format_bytes(bytes, number));
    char safe[600];
    term_make_printable(safe, sizeof safe, text, strlen(text));
    term_print_name(stdout, safe, NAME_COLUMNS + 15, p->term.width);
}

static void
print_oom_figures(const struct explain_printer *p)
{
    const struct dry_explanation_view *v = p->view;
    char number[TERM_NUMBER_BYTES];
    print_figure(p, "asked for", v->request_bytes, "%s",
                 v->request_line[0] ? v->request_line : "by a line that is not recorded");
    print_figure(p, "free on the device", v->device_free_bytes,
                 "so PyTorch could have had %s",
                 term_format_bytes(v->budget_bytes, number));
    if (v->short_bytes > 0)
        print_figure(p, "short by", v->short_bytes, "for this request alone");
    else
        print_figure(p, "left over",
                     v->budget_bytes - v->state->active - v->request_bytes,
                     "in sum: it would have fitted");
    if (v->other_bytes > 0)
        print_figure(p, "not PyTorch's", v->other_bytes, "the rest of the device");
}

static void
print_figures(const struct explain_printer *p)
{
    const struct dry_explanation_view *v = p->view;
    const struct dry_state *s = v->state;
    char a[TERM_NUMBER_BYTES], b[TERM_NUMBER_BYTES], c[TERM_NUMBER_BYTES];
    size_t count = 0;
    for (size_t i = 0; i < s->block_count; i++)
        count += s->blocks[i].state != DRY_BLOCK_INACTIVE;
    printf("\n");
    print_figure(p, "reserved", s->reserved, "= active + releasable + stranded");
    print_figure(p, "  active", s->active, "in %s block%s; %s of it is rounding",
                 term_format_count(count, a), count == 1 ? "" : "s",
                 term_format_bytes(s->rounding, b));
    if (s->pending > 0)
        print_figure(p, "    pending", s->pending, "of it: freed, waiting for streams");
    print_figure(p, "  releasable", s->releasable,
                 "free; given back before anything fails");
    print_figure(p, "  stranded", s->stranded, "%s",
                 s->private_free
                     ? "free, but beside something in use, or in private pools"
                     : "free, but beside something in use");
    if (v->moment_kind == DRY_MOMENT_AT_OOM)
        print_oom_figures(p);
    if (v->unexplained_bytes > 0)
        print_figure(p, "unexplained", v->unexplained_bytes,
                     "alive by the events, but outside of every known segment");
    if (v->freed_after > 0 && v->end_active_bytes < s->active / 2)
        explain_print_item(p, "",
                           "%s block%s given back after it; the end of the file shows "
                           "%s active of %s reserved: that is not what failed.",
                           term_format_count(v->freed_after, a),
                           v->freed_after == 1 ? " was" : "s were",
                           term_format_bytes(v->end_active_bytes, b),
                           term_format_bytes(v->end_reserved_bytes, c));
}

/* --- why ---------------------------------------------------------------------------------- */

static size_t
add_terms(char *text, size_t capacity, const struct dry_proof_term *terms, unsigned count,
          const uint64_t *sum)
{
    char number[TERM_NUMBER_BYTES];
    size_t used = 0;
    for (unsigned i = 0; i < count && used < capacity; i++)
        used +=
            (size_t)snprintf(text + used, capacity - used, "%s%s %s", i > 0 ? " + " : "",
                             term_format_bytes(terms[i].bytes, number), terms[i].name);
    if (count > 1 && sum && used < capacity)
        used += (size_t)snprintf(text + used, capacity - used, " = %s",
                                 term_format_bytes(*sum, number));
    return used < capacity ? used : capacity;
}

static void
print_proof(const struct explain_printer *p, const struct dry_proof *proof)
{
    char left[240], right[240];
    bool is_equation = proof->relation == '=';
    add_terms(left, sizeof left, proof->left, proof->left_count,
              is_equation ? NULL : &proof->left_sum);
    add_terms(right, sizeof right, proof->right, proof->right_count,
              is_equation ? NULL : &proof->right_sum);
    bool is_short = strlen(left) + strlen(right) + 3 + EXPLAIN_INDENT < 80;
    explain_print_item(p, "  ", "%s%s%c %s", left, is_short ? " " : "\n", proof->relation,
                       right);
}

static void
print_findings(const struct explain_printer *p)
{
    const struct dry_explanation_view *v = p->view;
    if (v->findings[0].cause == DRY_CAUSE_NONE)
        return;
    explain_print_heading(p, "why");
    for (size_t i = 0; i < v->finding_count; i++) {
        const struct dry_finding *f = &v->findings[i];
        if (f->cause == DRY_CAUSE_UNKNOWN)
            explain_print_item(p, "", "%s", dry_cause_name(f->cause));
        else
            explain_print_item(p, "", "%s (%u %% sure%s)", dry_cause_name(f->cause),
                               f->confidence,
                               f->is_assumed ? ", from an assumed size" : "");
        for (unsigned k = 0; k < f->proof_count; k++)
            print_proof(p, &f->proofs[k]);
        if (f->note[0])
            explain_print_item(p, "  ", "%s%s", f->note,
                               f->is_assumed ? "; state it with --gpu-total" : "");
    }
}

/* --- who ---------------------------------------------------------------------------------- */

static void
add_owner(struct table *t, const struct dry_owner *o, uint64_t total)
{
    char number[TERM_NUMBER_BYTES], text[256];
    table_add(t, term_format_bytes(o->bytes, number));
    snprintf(text, sizeof text, "%.1f %%",
             total ? 100.0 * (double)o->bytes / (double)total : 0.0);
    table_add(t, text);
    table_add(t, term_format_count(o->count, number));
    table_add(t, term_format_bytes(o->largest, number));
    term_make_printable(text, sizeof text, o->name, o->name_length);
    size_t used = strlen(text);
    if (o->what_length > 0 && used + 4 < sizeof text)
        snprintf(text + used, sizeof text - used, " (%.*s)", (int)o->what_length,
                 o->what);
    table_add(t, text);
}

static void
add_rest(struct table *t, const struct dry_owner *owners, size_t from, size_t count,
         uint64_t total)
{
    struct dry_owner rest = {.name = "", .what = ""};
    char name[64], number[TERM_NUMBER_BYTES];
    if (from >= count)
        return;
    for (size_t i = from; i < count; i++) {
        rest.bytes += owners[i].bytes;
        rest.count += owners[i].count;
        rest.largest =
            owners[i].largest > rest.largest ? owners[i].largest : rest.largest;
    }
    snprintf(name, sizeof name, "(%s other%s)", term_format_count(count - from, number),
             count - from == 1 ? "" : "s");
    rest.name = name;
    rest.name_length = strlen(name);
    add_owner(t, &rest, total);
}

static void
print_owners(struct explain_printer *p)
{
    size_t count;
    const struct dry_owner *owners = dry_owners_get(p->view->owners, &count);
    uint64_t total = dry_owners_total(p->view->owners);
    size_t shown = count < p->report->row_max ? count : p->report->row_max;
    if (count == 0)
        return;
    explain_print_heading(p, "who held it");
    struct table t;
    table_init(&t, ">bytes >share >count >largest <line");
    t.is_bounded = true;
    for (size_t i = 0; i < shown; i++)
        add_owner(&t, &owners[i], total);
    add_rest(&t, owners, shown, count, total);
    p->failed |= !table_print(&t, &p->term);
}

static void
print_categories(const struct explain_printer *p)
{
    const struct dry_explanation_view *v = p->view;
    char text[400], number[TERM_NUMBER_BYTES];
    size_t used = 0;
    uint64_t known = 0;
    for (unsigned c = 1; c < DRY_CATEGORY_COUNT; c++)
        known += v->category_bytes[c];
    if (known == 0)
        return;
    for (unsigned c = 0; c < DRY_CATEGORY_COUNT && used < sizeof text; c++) {
        /* start at 1, so the category "unknown" (0) comes last */
        unsigned i = (c + 1) % DRY_CATEGORY_COUNT;
        if (v->category_bytes[i] == 0)
            continue;
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s%s %s", used ? ", " : "",
                             dry_category_name((enum dry_category)i),
                             term_format_bytes(v->category_bytes[i], number));
        if (i != DRY_CATEGORY_UNKNOWN && used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, " (%u %%)",
                                     v->category_confidence[i]);
    }
    explain_print_item(p, "", "What it is for (and how sure): %s.", text);
}

/* --- elsewhere ---------------------------------------------------------------------------- */

static void
print_siblings(struct explain_printer *p)
{
    const struct dry_explanation_view *v = p->view;
    char number[TERM_NUMBER_BYTES], text[64];
    if (v->sibling_count < 2)
        return;
    explain_print_heading(p, "the same code on the other devices");
    struct table t;
    table_init(&t, "<device >peak >at_these_lines >each >done <");
    for (size_t i = 0; i < v->sibling_count; i++) {
        const struct dry_sibling *s = &v->siblings[i];
        snprintf(text, sizeof text, "%d", (int)s->device);
        table_add(&t, text);
        table_add(&t, term_format_bytes(s->peak_bytes, number));
        table_add(&t, term_format_bytes(s->held_bytes, number));
        table_add(&t, term_format_bytes(s->typical_bytes, number));
        table_add(&t, term_format_count(s->done, number));
        table_add(&t, s->is_subject ? (s->has_oom ? "<- out of memory" : "<- this one")
                      : s->has_oom  ? "out of memory"
                                    : "");
    }
    p->failed |= !table_print(&t, &p->term);
    if (v->projected_bytes > 0)
        explain_print_item(p, "",
                           "At the pace of the fullest of them this device would have "
                           "needed about %s.",
                           term_format_bytes(v->projected_bytes, number));
}

static void
print_progress(const struct explain_printer *p)
{
    const struct dry_explanation_view *v = p->view;
    char a[TERM_NUMBER_BYTES], b[TERM_NUMBER_BYTES];
    if (v->step == DRY_NONE || v->moment_kind != DRY_MOMENT_AT_OOM)
        return;
    bool is_marked = dry_steps_get_source(v->steps) != DRY_STEPS_PERIODICITY;
    char peak[TERM_NUMBER_BYTES];
    if (v->step_whole > 0)
        explain_print_item(
            p, "",
            "It was in step %u%s, %s allocation%s into it; the whole step before "
            "made %s and reached %s.",
            v->step, is_marked ? "" : " of a rhythm", term_format_count(v->step_done, a),
            v->step_done == 1 ? "" : "s", term_format_count(v->step_whole, b),
            term_format_bytes(v->step_whole_peak_bytes, peak));
}

/* --- trust -------------------------------------------------------------------------------- */

static void
print_trust(const struct explain_printer *p)
{
    const struct dry_explanation_view *v = p->view;
    const struct dry_replay_check *c = v->check;
    char carried[TERM_NUMBER_BYTES], text[500];
    uint64_t active = dry_owners_total(v->owners);
    size_t used = 0;
    char releases[120] = "";
    if (c->possible && c->exact)
        provenance_say_releases(&v->releases, releases, sizeof releases);
    if (releases[0])
        used += (size_t)snprintf(text, sizeof text, "the replay is exact: %s", releases);
    else if (c->possible)
        used += (size_t)snprintf(text, sizeof text, "the replay is not exact");
    else
        used += (size_t)snprintf(text, sizeof text, "not checked: %s", c->reason);
    if (c->assumed_count > 0)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "; %zu frees taken as complete: free_completed was not "
                                 "recorded",
                                 c->assumed_count);
    snprintf(text + used, sizeof text - used,
             "; %u free%s allocation; stacks for %.0f %% of the active bytes; "
             "%s from before the recording%s",
             v->unmatched_frees,
             v->unmatched_frees == 1 ? " without its" : "s without their",
             active ? 100.0 * (double)v->covered_bytes / (double)active : 100.0,
             term_format_bytes(v->carried_over_bytes, carried),
             v->time_reversals ? "; times go backwards" : "");
    char safe[500];
    term_make_printable(safe, sizeof safe, text, strlen(text));
    const char *style =
        term_style(&p->term, v->trust == DRY_TRUST_HIGH ? TERM_GREEN : TERM_YELLOW);
    printf("\n%s%s trust%s\n", style, dry_trust_name(v->trust),
           term_style(&p->term, TERM_PLAIN));
    explain_print_item(p, "", "%s", safe);
}

/* Print the number and the events of the other failures, if there are several. */
static void
print_failures(const struct explain_printer *p)
{
    const struct dry_explanation_view *v = p->view;
    const struct dry_timeline_view *t = dry_timeline_get_view(p->report->timeline);
    if (v->oom_count < 2)
        return;
    bool has_next = v->next_oom_event != DRY_EVENT_NONE;
    if (v->oom_number > 0)
        printf("         number %u of %u", v->oom_number, v->oom_count);
    else
        printf("         it ran out of memory %u times", v->oom_count);
    printf("; the %s: --at %zu\n", has_next ? "next" : "first",
           has_next ? v->next_oom_event : t->first_event + t->oom_event);
}

static void
print_header(const struct explain_printer *p)
{
    const struct explain_report *r = p->report;
    char number[TERM_NUMBER_BYTES], of[32] = "";
    size_t events = dry_timeline_get_view(r->timeline)->event_count;
    if (r->device_count > 1)
        snprintf(of, sizeof of, " of %zu", r->device_count);
    term_print_subject(&p->term, r->file, TERM_PLAIN, "device %d%s, %s %sevent%s",
                       (int)p->view->device, of, term_format_count(events, number),
                       r->is_simulated ? "simulated " : "", events == 1 ? "" : "s");
    if (r->is_simulated)
        printf("requests alone, placed by PyTorch's rules on a simulated device\n");
    if (dry_trace_get_view(r->trace)->is_of_driver)
        term_print_wrapped(stdout, dry_trace_kind_text(DRY_TRACE_NSIGHT), 0,
                           p->term.width);
    if (r->recorded_reserved_bytes)
        printf("the profiler itself saw at most %s reserved\n",
               term_format_bytes(r->recorded_reserved_bytes, number));
    print_where(p);
    print_failures(p);
}

bool
explain_report_print(const struct explain_report *report)
{
    struct explain_printer p = {.report = report, .view = report->view};
    term_init(&p.term, stdout);
    print_header(&p);
    print_verdict(&p);
    print_figures(&p);
    print_findings(&p);
    print_owners(&p);
    print_categories(&p);
    print_progress(&p);
    print_siblings(&p);
    explain_print_changes(&p);
    print_trust(&p);
    return !p.failed;
}
