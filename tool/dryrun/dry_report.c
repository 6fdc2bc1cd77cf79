/* SPDX-License-Identifier: Apache-2.0 */
/* The idea stands in dry_report.h. Figures that are assumed are marked as such. */
#include "dryrun/dry_report.h"

#include <stdio.h>

#include "base/command.h"
#include "base/json_out.h"
#include "base/table.h"
#include "base/term.h"

#define CALLS_SHOWN 6

static const struct facts_process *
main_process(const struct dry_report *r)
{
    return &r->facts->processes[r->facts->main];
}

enum dry_outcome
dry_report_outcome(const struct dry_report *r)
{
    const struct facts_process *p = main_process(r);
    if (r->verdict->has_oom || p->has_oom)
        return DRY_FITS_NOT;
    return p->error || (r->status != 0 && !p->stopped) ? DRY_NOT_KNOWN : DRY_FITS;
}

/* The part of the card that PyTorch can have. */
static uint64_t
room_of(const struct dry_card *card)
{
    return card->usable_bytes - card->context_bytes;
}

/* --- for people --------------------------------------------------------------------------- */

static void
print_head(const struct dry_report *r, const struct term *term)
{
    static const struct {
        const char *word, *text;
        enum term_style style;
    } outcomes[] = {
        [DRY_FITS] = {"FITS", "", TERM_GREEN},
        [DRY_FITS_NOT] = {"DOES NOT FIT", "out of memory, with ", TERM_RED},
        [DRY_NOT_KNOWN] = {"NOT KNOWN", "something else ended it, with ", TERM_YELLOW},
    };
    const struct dry_card *card = r->launch->card;
    enum dry_outcome outcome = dry_report_outcome(r);
    uint64_t peak = main_process(r)->reserved_peak;
    char reserved[TERM_NUMBER_BYTES], spare[TERM_NUMBER_BYTES], total[TERM_NUMBER_BYTES];
    term_format_bytes(peak, reserved);
    term_format_bytes(card->usable_bytes, total);
    fprintf(term->out, "%s%s%s: %s%s%s  %s%s of %s reserved at the peak",
            term_style(term, TERM_BOLD), card->name, term_style(term, TERM_PLAIN),
            term_style(term, outcomes[outcome].style), outcomes[outcome].word,
            term_style(term, TERM_PLAIN), outcomes[outcome].text, reserved, total);
    if (outcome == DRY_FITS)
        fprintf(
            term->out, ", %s to spare",
            term_format_bytes(room_of(card) > peak ? room_of(card) - peak : 0, spare));
    fprintf(term->out, "\n");
}

static void
print_row(const struct term *term, const char *name, uint64_t bytes, const char *text)
{
    char number[TERM_NUMBER_BYTES];
    fprintf(term->out, "  %-10s %12s  ", name, term_format_bytes(bytes, number));
    term_print_wrapped(term->out, text, 27, term->width);
}

static void
print_sums(const struct dry_report *r, const struct term *term)
{
    const struct facts_process *p = main_process(r);
    fprintf(term->out, "\n");
    print_row(term, "requested", p->requested_peak,
              "what tensors asked for, at the peak");
    print_row(term, "allocated", p->allocated_peak,
              "in blocks of the allocator, at the peak");
    print_row(term, "reserved", p->reserved_peak, "taken from the card, at the peak");
    print_row(term, "context", r->launch->card->context_bytes,
              "taken by CUDA itself: assumed, a constant of the card");
    if (r->late && r->late->process_count > 0)
        print_row(term, "late", r->late->processes[r->late->main].reserved_peak,
                  "reserved if every stream lags until somebody waits for it");
}

static void
print_run(const struct dry_report *r, const struct term *term)
{
    const struct facts_process *p = main_process(r);
    const struct dry_replay_check *check = &r->verdict->check;
    char text[400], done[TERM_NUMBER_BYTES], all[TERM_NUMBER_BYTES];
    snprintf(text, sizeof text, "torch %s, %llu step%s in %.1f s; %s",
             p->torch ? p->torch : "?", (unsigned long long)p->step_count,
             p->step_count == 1 ? "" : "s", p->seconds,
             p->stopped ? p->stopped
             : p->error ? "ended by an exception"
                        : "ran to its end");
    fprintf(term->out, "\nrun         ");
    term_print_wrapped(term->out, text, 12, term->width);
    fprintf(term->out, "self-check  ");
    if (check->possible)
        fprintf(term->out, "%s by the rules of PyTorch %s: %s of %s addresses\n",
                check->exact ? "exact" : "not exact", check->compat,
                term_format_count(check->alloc_matched, done),
                term_format_count(check->alloc_count, all));
    else
        term_print_wrapped(term->out, check->reason, 12, term->width);
    if (p->error) {
        fprintf(term->out, "error       ");
        term_print_wrapped(term->out, p->error, 12, term->width);
    }
}

static bool
print_processes(const struct dry_report *r, const struct term *term)
{
    struct table table;
    char text[TERM_NUMBER_BYTES];
    if (r->facts->process_count < 2)
        return true;
    fprintf(term->out, "\n");
    table_init(&table, ">rank >steps >allocated >reserved <result");
    for (size_t i = 0; i < r->facts->process_count; i++) {
        const struct facts_process *p = &r->facts->processes[i];
        snprintf(text, sizeof text, "%lld", (long long)p->rank);
        table_add(&table, p->rank == NO_NUMBER ? "-" : text);
        table_add(&table, term_format_count(p->step_count, text));
        table_add(&table, term_format_bytes(p->allocated_peak, text));
        table_add(&table, term_format_bytes(p->reserved_peak, text));
        table_add(&table, p->has_oom ? "out of memory" : "fits");
    }
    bool is_printed = table_print(&table, term);
    table_finish(&table);
    return is_printed;
}

static bool
print_cards(const struct dry_report *r, const struct term *term)
{
    struct table table;
    char text[TERM_NUMBER_BYTES];
    if (r->verdict->card_count == 0)
        return true;
    fprintf(term->out, "\ncards, each by a replay of the same requests\n");
    table_init(&table, "<card >memory <result >reserved >to_spare >retries");
    for (size_t i = 0; i < r->verdict->card_count; i++) {
        const struct dry_verdict_card *row = &r->verdict->cards[i];
        table_add(&table, row->card->name);
        table_add(&table, term_format_bytes(row->card->usable_bytes, text));
        table_add(&table, row->fits ? "fits" : "out of memory");
        table_add(&table, row->fits ? term_format_bytes(row->reserved, text) : "-");
        table_add(&table,
                  row->fits ? term_format_bytes(row->room - row->reserved, text) : "-");
        table_add(&table, row->fits ? term_format_count(row->retries, text) : "-");
    }
    bool is_printed = table_print(&table, term);
    table_finish(&table);
    return is_printed;
}

/* Functions that were called and nobody wrote, and the hook's notes. */
static void
print_doubts(const struct dry_report *r, const struct term *term)
{
    const struct facts *facts = r->facts;
    const json_t *notes = json_object_get(main_process(r)->json, "notes");
    size_t shown = facts->call_count < CALLS_SHOWN ? facts->call_count : CALLS_SHOWN;
    char text[1200] = "";
    size_t used = 0;
    for (size_t i = 0; i < shown && used < sizeof text - 80; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.60s (%llu)",
                                 i ? ", " : "", facts->calls[i].name,
                                 (unsigned long long)facts->calls[i].count);
    if (facts->call_count > shown)
        snprintf(text + used, sizeof text - used, ", and %zu more",
                 facts->call_count - shown);
    if (shown > 0) {
        fprintf(term->out,
                "\nnot vouched for: functions that succeed and do nothing here\n  ");
        term_print_wrapped(term->out, text, 2, term->width);
    }
    for (size_t i = 0; i < json_array_size(notes); i++) {
        fprintf(term->out, "note: ");
        term_print_wrapped(term->out, json_string_value(json_array_get(notes, i)), 6,
                           term->width);
    }
}

bool
dry_report_print(const struct dry_report *r)
{
    struct term term;
    term_init(&term, stdout);
    print_head(r, &term);
    print_sums(r, &term);
    print_run(r, &term);
    bool is_printed = print_processes(r, &term) && print_cards(r, &term);
    print_doubts(r, &term);
    fprintf(term.out, "\nsnapshot    %s\n", r->snapshot);
    fprintf(term.out, "            drystone top %s: who holds the peak\n", r->snapshot);
    fprintf(term.out, "            drystone recommend %s: other settings\n", r->snapshot);
    return is_printed;
}

/* --- for machines ------------------------------------------------------------------------- */

static json_t *
make_check(const struct dry_replay_check *check)
{
    return json_pack("{s:b, s:b, s:s?, s:o, s:o, s:o, s:o}", "possible", check->possible,
                     "exact", check->exact, "compat", check->compat, "addresses",
                     json_out_number(check->alloc_count), "addresses_matched",
                     json_out_number(check->alloc_matched), "segment_events",
                     json_out_number(check->segment_event_count), "matched",
                     json_out_number(check->segment_event_matched));
}

static json_t *
make_cards(const struct dry_verdict *v)
{
    json_t *cards = json_array();
    for (size_t i = 0; i < v->card_count; i++) {
        const struct dry_verdict_card *row = &v->cards[i];
        json_array_append_new(
            cards, json_pack("{s:s, s:o, s:o, s:b, s:o, s:o}", "card", row->card->name,
                             "total_bytes", json_out_number(row->card->usable_bytes),
                             "room_bytes", json_out_number(row->room), "fits", row->fits,
                             "reserved_peak_bytes",
                             row->fits ? json_out_number(row->reserved) : json_null(),
                             "num_alloc_retries",
                             row->fits ? json_out_number(row->retries) : json_null()));
    }
    return cards;
}

static json_t *
make_processes(const struct facts *facts)
{
    json_t *processes = json_array();
    for (size_t i = 0; i < facts->process_count; i++)
        json_array_append(processes, facts->processes[i].json);
    return processes;
}

static json_t *
make_calls(const struct facts *facts)
{
    json_t *calls = json_array();
    for (size_t i = 0; i < facts->call_count; i++)
        json_array_append_new(calls,
                              json_pack("{s:s, s:o}", "function", facts->calls[i].name,
                                        "calls", json_out_number(facts->calls[i].count)));
    return calls;
}

static json_t *
make_bracket(const struct dry_report *r)
{
    if (!r->late || r->late->process_count == 0)
        return json_null();
    return json_pack("{s:o, s:o}", "early_reserved_peak_bytes",
                     json_out_number(main_process(r)->reserved_peak),
                     "late_reserved_peak_bytes",
                     json_out_number(r->late->processes[r->late->main].reserved_peak));
}

static json_t *
make_fits(const struct dry_report *r)
{
    enum dry_outcome outcome = dry_report_outcome(r);
    return outcome == DRY_NOT_KNOWN ? json_null() : json_boolean(outcome == DRY_FITS);
}

int
dry_report_print_json(const struct dry_report *r)
{
    const struct facts_process *p = main_process(r);
    json_t *root = json_pack(
        "{s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:i}",
        "schema", "drystone.dry-run/1", "fits", make_fits(r), "card",
        r->launch->card->name, "reserved_peak_bytes", json_out_number(p->reserved_peak),
        "allocated_peak_bytes", json_out_number(p->allocated_peak),
        "requested_peak_bytes", json_out_number(p->requested_peak),
        "context_bytes_assumed", json_out_number(r->launch->card->context_bytes),
        "self_check", make_check(&r->verdict->check), "bracket", make_bracket(r),
        "unvouched", make_calls(r->facts), "cards", make_cards(r->verdict), "processes",
        make_processes(r->facts), "snapshot", r->snapshot, "exit_status", r->status);
    return json_out_print("dry-run", root);
}
