/* SPDX-License-Identifier: Apache-2.0 */
/* See dry_report.h. This file prints text; assumed figures are marked. */
#include "dryrun/dry_report.h"

#include <stdio.h>
#include <string.h>

#include "base/table.h"

#define CALLS_SHOWN 6
#define GUESSES_SHOWN 8
#define FILES_SHOWN 5
#define OWNERS_SHOWN 5
#define SETTINGS_SHOWN 3
#define CARDS_SHOWN 5 /* the smallest cards that fit */
#define COLUMN 12     /* at which values begin, after the row's name */

static const struct {
    const char *word;
    enum term_style style;
} outcomes[] = {
    [TRIAL_FITS] = {"fits", TERM_GREEN},
    [TRIAL_FITS_NOT] = {"does not fit", TERM_RED},
    [TRIAL_FITS_NOT_HOST] = {"does not fit the host", TERM_RED},
    [TRIAL_NOT_KNOWN] = {"not known", TERM_YELLOW},
};

const char *
dry_report_outcome_name(enum trial_outcome outcome, bool is_unseen)
{
    return outcome == TRIAL_FITS && is_unseen ? "fits so far" : outcomes[outcome].word;
}

enum term_style
dry_report_style(enum trial_outcome outcome)
{
    return outcomes[outcome].style;
}

const struct trial_verdict *
dry_report_find_cards(const struct dry_report *r)
{
    const struct trial *t = r->boundless ? r->boundless : r->trial;
    bool has_figure = trial_main(t)->reserved_peak > 0;
    /* an engine fills any card: another one is another run */
    bool is_engine = trial_find_engine(t) != NULL;
    return t->verdict.card_count > 0 && has_figure && !is_engine ? &t->verdict : NULL;
}

/* --- the answer --------------------------------------------------------------------------- */

/* Print that the card cannot run this torch, which no figure matters beside. */
static void
print_kernels(const struct dry_report *r, const struct term *term)
{
    const json_t *lack = json_object_get(trial_main(r->trial)->json, "no_kernels");
    if (json_is_string(lack))
        fprintf(term->out, "%s: this torch does not run there: %s\n",
                r->trial->launch.request.card->name, json_string_value(lack));
}

void
dry_report_write_condition(const struct trial *t, char *text, size_t capacity)
{
    bool is_crowded = trial_together_bytes(t) > t->launch.request.card->usable_bytes;
    char safe[300] = "";
    const struct facts_process *engine = trial_find_engine(t);
    const char *assumed = engine ? engine->engine.assumed : NULL;
    const char *unseen = engine ? NULL : trial_find_unseen(t);
    bool has_ended_early = trial_main(t)->repeats != NULL;
    bool is_by_chance = trial_main(t)->is_by_chance && !unseen && !engine;
    if (unseen)
        term_make_printable(safe, sizeof safe, unseen, strlen(unseen));
    snprintf(text, capacity, "%s%s%s%s%s%s%s%s%s%s%s", unseen ? "as far as it ran: " : "",
             safe,
             unseen            ? "; "
             : engine          ? "when ready, if memory outside PyTorch is as assumed; "
             : has_ended_early ? "if later turns repeat those that ran; "
                               : "",
             is_by_chance ? "if chance makes no larger steps; " : "",
             assumed ? "if " : "", assumed ? assumed : "", assumed ? "; " : "",
             trial_guesses(t) ? "if the guesses are right; " : "",
             is_crowded ? "if its processes do not peak together; " : "",
             trial_is_card_close(t) ? "if cuDNN's workspaces are as modelled; " : "",
             trial_is_host_close(t) ? "if no look at the host missed its peak; " : "");
}

/* Return "1, 3: if ..." for the rows that share a condition, of which `row` is the first. The caller
   frees it. NULL: memory ran out. */
static char *
write_shared(const struct dry_condition *rows, size_t count, size_t row)
{
    const char *condition = rows[row].text;
    size_t length, size = strlen(condition);
    char *text = NULL;
    FILE *out = open_memstream(&text, &length);
    for (size_t i = row; out && i < count; i++)
        if (strcmp(rows[i].text, condition) == 0)
            fprintf(out, "%s%s", i > row ? ", " : "", rows[i].label);
    if (out) /* without its "; " */
        fprintf(out, ": %.*s", (int)(size > 2 ? size - 2 : size), condition);
    if (out && fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

bool
dry_report_print_conditions(const struct dry_condition *rows, size_t count,
                            const struct term *term)
{
    for (size_t i = 0; i < count; i++) {
        bool is_new = *rows[i].text != '\0';
        for (size_t k = 0; k < i; k++)
            is_new &= strcmp(rows[k].text, rows[i].text) != 0;
        char *text = is_new ? write_shared(rows, count, i) : NULL;
        if (is_new && !text)
            return false;
        if (text) {
            fprintf(term->out, "  ");
            term_print_wrapped(term->out, text, 2, term->width);
        }
        free(text);
    }
    return true;
}

/* Write what the host lacks. */
static void
write_host(const struct trial *t, char *text, size_t capacity)
{
    char peak[TERM_NUMBER_BYTES], limit[TERM_NUMBER_BYTES];
    snprintf(text, capacity, "it takes %s of the host's %s; the card: ",
             term_format_bytes(trial_find_host(t).peak_bytes, peak),
             term_format_bytes(t->launch.request.host_bytes, limit));
}

/* Write the figures of the answer. */
static void
write_figures(const struct trial *t, char *text, size_t capacity)
{
    const struct dry_card *card = t->launch.request.card;
    const struct facts_process *p = trial_main(t);
    uint64_t torch_bytes = trial_torch_bytes(card, p->nccl_bytes);
    char reserved[TERM_NUMBER_BYTES], spare[TERM_NUMBER_BYTES], total[TERM_NUMBER_BYTES];
    char end[TRIAL_END_BYTES] = "out of memory", rest[TERM_NUMBER_BYTES + 40] = "";
    bool fits = trial_outcome(t) == TRIAL_FITS || trial_outcome(t) == TRIAL_FITS_NOT_HOST;
    bool is_beyond = trial_outcome(t) == TRIAL_FITS_NOT && !trial_has_oom(t);
    if (trial_outcome(t) == TRIAL_NOT_KNOWN)
        trial_tell_end(t, end);
    if (fits)
        snprintf(
            rest, sizeof rest, ", %s to spare",
            term_format_bytes(trial_spare_bytes(torch_bytes, p->reserved_peak), spare));
    if (is_beyond)
        snprintf(rest, sizeof rest, ", and the context and NCCL leave %s",
                 term_format_bytes(torch_bytes, spare));
    snprintf(text, capacity, "%s%s%s of %s reserved at the peak%s",
             fits || is_beyond ? "" : end, fits || is_beyond ? "" : ", with ",
             term_format_bytes(p->reserved_peak, reserved),
             term_format_bytes(card->usable_bytes, total), rest);
}

static void
print_head(const struct dry_report *r, const struct term *term)
{
    const char *card = r->trial->launch.request.card->name;
    enum trial_outcome outcome = trial_outcome(r->trial);
    char condition[DRY_CONDITION_BYTES] = "", figures[TRIAL_END_BYTES + 200],
         words[sizeof figures], text[sizeof condition + sizeof figures];
    fprintf(term->out, "%s%s%s: %s%s%s  ", term_style(term, TERM_BOLD), card,
            term_style(term, TERM_PLAIN), term_style(term, outcomes[outcome].style),
            outcomes[outcome].word, term_style(term, TERM_PLAIN));
    if (outcome == TRIAL_FITS)
        dry_report_write_condition(r->trial, condition, sizeof condition);
    if (outcome == TRIAL_FITS_NOT_HOST)
        write_host(r->trial, condition, sizeof condition);
    if (dry_report_write_engine(r->trial, words, sizeof words))
        term_make_printable(figures, sizeof figures, words, strlen(words));
    else if (trial_main(r->trial)->is_counted)
        write_figures(r->trial, figures, sizeof figures);
    else
        snprintf(figures, sizeof figures,
                 "what it reserves is not known: its allocator counts nothing");
    snprintf(text, sizeof text, "%s%s", condition, figures);
    term_print_wrapped(term->out, text,
                       (int)(strlen(card) + strlen(outcomes[outcome].word)) + 4,
                       term->width);
    dry_report_print_engine(r->trial, term);
}

/* Print where unknown numbers decided, which makes the answer above a guess. */
static void
print_guesses(const struct dry_report *r, const struct term *term)
{
    const json_t *guesses = trial_guesses(r->trial);
    size_t count = json_array_size(guesses);
    if (count == 0)
        return;
    fprintf(term->out,
            "a guess: sizes or branches follow from numbers that no kernel computed\n");
    for (size_t i = 0; i < count && i < GUESSES_SHOWN; i++) {
        const json_t *guess = json_array_get(guesses, i);
        const char *line = json_string_value(json_object_get(guess, "line")),
                   *what = json_string_value(json_object_get(guess, "what"));
        char text[400], safe[300];
        term_make_printable(safe, sizeof safe, line ? line : "", line ? strlen(line) : 0);
        snprintf(text, sizeof text, "%s (%.20s)", safe, what ? what : "?");
        fprintf(term->out, "  ");
        term_print_wrapped(term->out, text, 2, term->width);
    }
    if (count > GUESSES_SHOWN)
        fprintf(term->out, "  and %zu more lines\n", count - GUESSES_SHOWN);
}

static void
print_row(const struct term *term, const char *name, uint64_t bytes, const char *text)
{
    char number[TERM_NUMBER_BYTES];
    fprintf(term->out, "  %-10s %12s  ", name, term_format_bytes(bytes, number));
    term_print_wrapped(term->out, text, 27, term->width);
}

/* Print what the program takes of the host. */
static void
print_host(const struct trial *t, const struct term *term)
{
    const struct host_use *use = &t->launch.host;
    struct trial_host host = trial_find_host(t);
    char text[200], one[TERM_NUMBER_BYTES];
    if (host.peak_bytes == 0)
        return; /* not known */
    print_row(term, "host", host.peak_bytes,
              "of the host, at the peak: measured here, without CUDA's own part");
    if (host.pinned_bytes > 0)
        print_row(term, "pinned", host.pinned_bytes,
                  "of it pinned by the program: exact");
    if (use->shared_bytes > 0)
        print_row(term, "shared", use->shared_bytes, "of it shared memory");
    if (use->child_count == 0)
        return;
    snprintf(text, sizeof text,
             "of it by %zu process%s at once that the program started, %s the largest",
             use->child_count, use->child_count == 1 ? "" : "es",
             term_format_bytes(use->child_bytes, one));
    print_row(term, "workers", use->children_bytes, text);
}

/* Print how far the models of convolutions may be off. */
static void
print_convolutions(const struct trial *t, const struct term *term)
{
    struct trial_convolutions found = trial_find_convolutions(t);
    char text[200];
    snprintf(text, sizeof text,
             "more that convolutions may take, whose workspaces are modelled: %s",
             found.source);
    if (found.more_bytes > 0)
        print_row(term, "cudnn", found.more_bytes, text);
}

static void
print_sums(const struct dry_report *r, const struct term *term)
{
    const struct facts_process *p = trial_main(r->trial);
    fprintf(term->out, "\n");
    if (p->is_counted) {
        print_row(term, "requested", p->requested_peak,
                  "what tensors asked for, at the peak");
        print_row(term, "allocated", p->allocated_peak,
                  "in blocks of the allocator, at the peak");
        print_row(term, "reserved", p->reserved_peak, "taken from the card, at the peak");
    }
    print_row(term, "context", r->trial->launch.request.card->context_bytes,
              "taken by CUDA itself: assumed, a constant of the card");
    if (p->nccl_bytes > 0)
        print_row(term, "nccl", p->nccl_bytes,
                  "taken by NCCL itself: assumed, 70 MiB and 618 a communicator that was "
                  "used, 474 of two");
    print_convolutions(r->trial, term);
    uint64_t together = trial_together_bytes(r->trial);
    if (together > 0)
        print_row(term, "together", together,
                  "taken by the processes of a device if they peak at once");
    if (r->late && r->late->facts.process_count > 0)
        print_row(term, "late", trial_main(r->late)->reserved_peak,
                  "reserved if every stream lags until somebody waits for it");
    if (r->other_order && r->other_order->facts.process_count > 0)
        print_row(term, "other way", trial_main(r->other_order)->reserved_peak,
                  "reserved if the driver hands out addresses in the other order");
    if (r->boundless && r->boundless->facts.process_count > 0)
        print_row(term, "needs", trial_main(r->boundless)->reserved_peak,
                  "reserved at the peak of a run with unlimited memory");
    if (r->unfinished)
        fprintf(term->out, "  %-10s %12s  %s\n", r->unfinished, "not known", r->reason);
    print_host(r->trial, term);
}

static void
print_line(const struct term *term, const char *name, const char *text)
{
    fprintf(term->out, "%-*s", COLUMN, name);
    term_print_wrapped(term->out, text, COLUMN, term->width);
}

uint32_t
dry_report_step(const struct trial *trial)
{
    const struct facts_process *p = trial_main(trial);
    return p->step_count > 0 ? (uint32_t)p->peak_step : trial->verdict.view->step;
}

/* Print the step, the pass and the source line of the peak or failure. */
static void
print_moment(const struct dry_report *r, const struct term *term)
{
    static const char *const passes[DRY_PASS_COUNT] = {
        "", "forward pass", "backward pass", "optimizer's update"};
    const struct dry_explanation_view *v = r->trial->verdict.view;
    bool is_oom = v && v->moment_kind == DRY_MOMENT_AT_OOM;
    char text[600], line[300];
    if (!v || v->event == SIZE_MAX || r->trial->verdict.is_cut)
        return;
    const char *name = is_oom && v->request_line[0] ? v->request_line : v->last_line;
    term_make_printable(line, sizeof line, name, strlen(name));
    size_t used = (size_t)snprintf(text, sizeof text, "%s", passes[v->last_pass]);
    uint32_t step = dry_report_step(r->trial);
    if (step != DRY_NONE)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s %u",
                                 used ? " of step" : "step", step);
    bool is_engine = v->last_pass == DRY_PASS_BACKWARD && strncmp(line, "torch/", 6) == 0;
    /* the owner is a line of the user's code */
    if (line[0] && line[0] != '(' && !is_engine)
        snprintf(text + used, sizeof text - used, "%s%s", used ? ", at " : "", line);
    else if (v->last_pass == DRY_PASS_BACKWARD)
        snprintf(text + used, sizeof text - used, ", where autograd runs no Python");
    print_line(term, is_oom ? "failed in" : "peak in", text);
}

static void
print_error(const struct term *term, const struct facts_process *p)
{
    char text[600];
    facts_write_error(p, strlen(p->error), text, sizeof text);
    print_line(term, "error", text);
}

static void
print_run(const struct dry_report *r, const struct term *term)
{
    const struct facts_process *p = trial_main(r->trial);
    const struct trial_verdict *v = &r->trial->verdict;
    char text[700], end[TRIAL_END_BYTES], done[TERM_NUMBER_BYTES], all[TERM_NUMBER_BYTES];
    trial_tell_end(r->trial, end);
    fprintf(term->out, "\n");
    print_moment(r, term);
    if (v->has_oom && v->view) {
        snprintf(text, sizeof text, "%s%s%s", dry_cause_name(v->view->findings[0].cause),
                 v->view->findings[0].note[0] ? ": " : "", v->view->findings[0].note);
        print_line(term, "cause", text);
    }
    if (p->error)
        print_error(term, p);
    snprintf(text, sizeof text, "torch %s, %llu step%s in %.1f s; %s",
             p->torch ? p->torch : "?", (unsigned long long)p->step_count,
             p->step_count == 1 ? "" : "s", p->seconds,
             p->stopped                                   ? p->stopped
             : trial_outcome(r->trial) == TRIAL_NOT_KNOWN ? end
             : p->error                                   ? "an exception ended it"
             : p->repeats                                 ? p->repeats
                                                          : "ran to its end");
    if (!p->stopped && p->repeats && trial_outcome(r->trial) != TRIAL_NOT_KNOWN)
        strncat(text, "; its loops ended early", sizeof text - strlen(text) - 1);
    print_line(term, "run", text);
    if (v->check.possible)
        snprintf(text, sizeof text, "%s: %s of %s addresses replay",
                 v->check.exact
                     ? trial_guesses(r->trial) ? "exact, for these numbers" : "exact"
                     : "not exact",
                 term_format_count(v->check.alloc_matched, done),
                 term_format_count(v->check.alloc_count, all));
    else
        snprintf(text, sizeof text, "%s",
                 v->check.reason[0] ? v->check.reason : "the program left no snapshot");
    print_line(term, "self-check", text);
    if (v->is_cut) {
        snprintf(text, sizeof text,
                 "the last %s events alone are kept: lines, settings and cards need "
                 "the whole, which --events raises",
                 term_format_count(r->trial->launch.request.event_max, all));
        print_line(term, "history", text);
    }
}

/* --- tables ------------------------------------------------------------------------------- */

static bool
print_owners(const struct dry_report *r, const struct term *term)
{
    const struct dry_explanation_view *v = r->trial->verdict.view;
    struct table table;
    char text[300], number[TERM_NUMBER_BYTES];
    size_t count = 0;
    const struct dry_owner *owners = v ? dry_owners_get(v->owners, &count) : NULL;
    if (count == 0 || r->trial->verdict.is_cut)
        return true;
    fprintf(term->out, "\nwho holds it then\n");
    table_init(&table, ">bytes >share <line");
    table.is_bounded = true;
    uint64_t total = dry_owners_total(v->owners);
    for (size_t i = 0; i < count && i < OWNERS_SHOWN; i++) {
        const struct dry_owner *o = &owners[i];
        table_add(&table, term_format_bytes(o->bytes, number));
        snprintf(text, sizeof text, "%.1f %%",
                 total ? 100.0 * (double)o->bytes / (double)total : 0.0);
        table_add(&table, text);
        size_t used = term_make_printable(text, sizeof text, o->name, o->name_length);
        if (o->what_length > 0 && used < sizeof text)
            snprintf(text + used, sizeof text - used, " (%.*s)", (int)o->what_length,
                     o->what);
        table_add(&table, text);
    }
    return table_print(&table, term);
}

/* Return the explanation whose settings to print. After a failure that is the boundless
   run's: only its trace holds all of the program's requests. */
static const struct dry_explanation_view *
find_settings(const struct dry_report *r)
{
    const struct trial *t = r->boundless ? r->boundless : r->trial;
    return t->verdict.view;
}

static bool
print_settings(const struct dry_report *r, const struct term *term)
{
    const struct dry_explanation_view *v = find_settings(r);
    struct table table;
    char number[TERM_NUMBER_BYTES];
    size_t shown = 0;
    uint64_t torch_bytes = trial_torch_bytes(r->trial->launch.request.card,
                                             trial_main(r->trial)->nccl_bytes);
    table_init(&table, ">reserved >less <setting <");
    table.is_bounded = true;
    for (size_t i = 0; v && i < v->change_count && shown < SETTINGS_SHOWN; i++) {
        const struct dry_change *c = &v->changes[i];
        if (c->kind != DRY_CHANGE_SETTING)
            continue;
        table_add(&table, term_format_bytes(c->peak_bytes, number));
        table_add(&table, term_format_bytes(c->bytes, number));
        table_add(&table, c->setting);
        table_add(&table, c->peak_bytes <= torch_bytes ? "fits" : "does not fit");
        shown++;
    }
    bool is_printed = true;
    if (shown > 0) {
        fprintf(term->out,
                "\nPYTORCH_CUDA_ALLOC_CONF, each by a replay of the same requests\n");
        is_printed = table_print(&table, term);
    } else if (v && !r->trial->verdict.is_cut) {
        fprintf(term->out, "\nno other setting of the allocator needs less\n");
    }
    table_finish(&table);
    return is_printed;
}

static bool
print_processes(const struct dry_report *r, const struct term *term)
{
    const struct facts *facts = &r->trial->facts;
    struct table table;
    char text[TERM_NUMBER_BYTES];
    if (facts->process_count < 2)
        return true;
    fprintf(term->out, "\n");
    table_init(&table, ">rank >steps >allocated >reserved <self-check <result");
    for (size_t i = 0; i < facts->process_count; i++) {
        const struct facts_process *p = &facts->processes[i];
        snprintf(text, sizeof text, "%lld", (long long)p->rank);
        table_add(&table, p->rank == NO_NUMBER ? "-" : text);
        table_add(&table, term_format_count(p->step_count, text));
        table_add(&table, term_format_bytes(p->allocated_peak, text));
        table_add(&table, term_format_bytes(p->reserved_peak, text));
        table_add(&table, p->is_exact ? "exact" : p->snapshot ? "not exact" : "-");
        table_add(&table, p->has_oom ? "out of memory" : p->error ? "failed" : "fits");
    }
    return table_print(&table, term);
}

/* Print the smallest cards that fit. Larger cards fit too and are only counted. */
static bool
print_cards(const struct dry_report *r, const struct term *term)
{
    const struct trial_verdict *v = dry_report_find_cards(r);
    struct table table;
    char text[TERM_NUMBER_BYTES];
    size_t fitting = 0, shown = 0;
    for (size_t i = 0; v && i < v->card_count; i++)
        fitting += v->cards[i].fits;
    if (!v)
        return true;
    fprintf(term->out, "\ncards, each by a replay of the same requests: %zu of %zu fit\n",
            fitting, v->card_count);
    table_init(&table, "<card >memory >reserved >to_spare >retries <");
    for (size_t i = 0; i < v->card_count && shown < CARDS_SHOWN; i++) {
        const struct trial_verdict_card *row = &v->cards[i];
        if (!row->fits)
            continue;
        table_add(&table, row->card->name);
        table_add(&table, term_format_bytes(row->card->usable_bytes, text));
        table_add(&table, term_format_bytes(row->reserved, text));
        table_add(&table, term_format_bytes(
                              trial_spare_bytes(row->torch_bytes, row->reserved), text));
        table_add(&table, term_format_count(row->retries, text));
        table_add(&table, row->card->caveat ? row->card->caveat : "");
        shown++;
    }
    if (shown == 0) {
        table_finish(&table);
        return true;
    }
    bool is_printed = table_print(&table, term);
    if (fitting > shown)
        fprintf(term->out, "  and %zu larger ones\n", fitting - shown);
    return is_printed;
}

/* --- the end ------------------------------------------------------------------------------ */

/* Print a file that the program would have changed. */
static void
print_file(const struct term *term, const char *path, bool is_first)
{
    char safe[300], text[400];
    term_make_printable(safe, sizeof safe, path ? path : "", path ? strlen(path) : 0);
    snprintf(text, sizeof text, "%s%s", safe,
             is_first ? ": left as it was before the run, see --write" : "");
    print_line(term, is_first ? "files" : "", text);
}

/* Print the doubts: calls of CUDA functions that the stand-in does not implement, and
   notes of the hook. */
static void
print_doubts(const struct dry_report *r, const struct term *term)
{
    const struct facts *facts = &r->trial->facts;
    const json_t *notes = json_object_get(trial_main(r->trial)->json, "notes");
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
    const json_t *files = json_object_get(trial_main(r->trial)->json, "files");
    for (size_t i = 0; i < json_array_size(files) && i < FILES_SHOWN; i++)
        print_file(term, json_string_value(json_array_get(files, i)), i == 0);
    if (json_array_size(files) > FILES_SHOWN)
        fprintf(term->out, "%*sand %zu more\n", COLUMN, "",
                json_array_size(files) - FILES_SHOWN);
    for (size_t i = 0; i < json_array_size(notes); i++)
        print_line(term, i == 0 ? "note" : "",
                   json_string_value(json_array_get(notes, i)));
}

bool
dry_report_print(const struct dry_report *r)
{
    struct term term;
    term_init(&term, stdout);
    print_kernels(r, &term);
    print_head(r, &term);
    print_guesses(r, &term);
    print_sums(r, &term);
    print_run(r, &term);
    bool has_figure = trial_main(r->trial)->reserved_peak > 0;
    bool is_printed =
        print_processes(r, &term) &&
        (!has_figure || (print_owners(r, &term) && dry_report_print_modules(r, &term) &&
                         print_settings(r, &term) && print_cards(r, &term)));
    print_doubts(r, &term);
    if (r->snapshot) {
        const char *verb = trial_outcome(r->trial) == TRIAL_FITS_NOT ? "explain" : "top";
        fprintf(term.out, "\n%-*s", COLUMN, "snapshot");
        term_print_text(term.out, r->snapshot, strlen(r->snapshot));
        fprintf(term.out, "\n%*sdrystone %s ", COLUMN, "", verb);
        term_print_text(term.out, r->snapshot, strlen(r->snapshot));
        fputc('\n', term.out);
    }
    return is_printed;
}
