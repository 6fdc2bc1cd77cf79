/* SPDX-License-Identifier: Apache-2.0 */
/* See fit_report.h. */
#include "fit/fit_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/report.h"
#include "base/table.h"
#include "base/term.h"
#include "dryrun/verdict.h"

#define COLUMN 12

/* --- text --------------------------------------------------------------------------------- */

/* Write the operations that a change adds to those of a step: "+9 %". */
static void
write_work(const struct fit_work *w, const struct fit_result *r, char *text,
           size_t capacity)
{
    if (!(w->base.work > 0) || !(r->work > 0)) {
        snprintf(text, capacity, "?");
        return;
    }
    double more = 100 * (r->work - w->base.work) / w->base.work;
    bool is_none = more > -0.05 && more < 0.05;
    snprintf(text, capacity, is_none ? "0 %%" : "%+.*f %%", more > -1 && more < 1 ? 1 : 0,
             more);
}

static void
print_head(const struct fit_work *w, const struct term *term)
{
    const char *card = w->request.card->name, *word = w->fits ? "fits" : "does not fit";
    char text[DRY_CONDITION_BYTES + 300], peak[TERM_NUMBER_BYTES],
        limit[TERM_NUMBER_BYTES], spare[TERM_NUMBER_BYTES];
    term_format_bytes(w->base.peak, peak);
    if (w->fits)
        snprintf(text, sizeof text, "%s%s reserved at the peak, %s to spare",
                 w->whole.condition, peak,
                 term_format_bytes(trial_spare_bytes(w->limit, w->base.peak), spare));
    else
        snprintf(text, sizeof text, "it needs %s, and the card has %s for PyTorch%s%s%s",
                 peak, term_format_bytes(w->limit, limit),
                 *w->pass ? "; the peak is in: " : "", w->pass,
                 w->is_guess ? "; sizes are a guess, see drystone dry-run" : "");
    fprintf(term->out, "%s%s%s: %s%s%s  ", term_style(term, TERM_BOLD), card,
            term_style(term, TERM_PLAIN),
            term_style(term, w->fits ? TERM_GREEN : TERM_RED), word,
            term_style(term, TERM_PLAIN));
    term_print_wrapped(term->out, text, (int)(strlen(card) + strlen(word)) + 4,
                       term->width);
}

static const char *
write_seconds(double seconds, char text[TERM_NUMBER_BYTES])
{
    if (!(seconds > 0))
        snprintf(text, TERM_NUMBER_BYTES, "?");
    else
        snprintf(text, TERM_NUMBER_BYTES, seconds < 1 ? "%.3f s" : "%.2f s", seconds);
    return text;
}

/* Tell whether an answer copies over the link. */
static bool
is_linked(const struct fit_work *w, const size_t *ranked, size_t count)
{
    bool is = false;
    for (size_t i = 0; i < count; i++)
        is |= w->search.rows[ranked[i]].result.link_bytes > 0;
    return is;
}

static bool
print_fits(const struct fit_work *w, const size_t *ranked, size_t count,
           const struct term *term)
{
    struct table table;
    char text[TERM_NUMBER_BYTES + 20], columns[80];
    bool has_link = is_linked(w, ranked, count);
    bool has_speed = fit_work_step_seconds(w, &w->base) > 0;
    snprintf(columns, sizeof columns, "># =change >peak >to_spare >work %s%s<numbers",
             has_link ? ">link " : "", has_speed ? ">step " : "");
    table_init(&table, columns);
    for (size_t i = 0; i < count; i++) {
        const struct fit_row *row = &w->search.rows[ranked[i]];
        snprintf(text, sizeof text, "%zu", i + 1);
        table_add(&table, text);
        table_add(&table, w->notes[ranked[i]].label);
        table_add(&table, term_format_bytes(row->result.peak, text));
        table_add(&table,
                  term_format_bytes(trial_spare_bytes(w->limit, row->result.peak), text));
        write_work(w, &row->result, text, sizeof text);
        table_add(&table, text);
        if (has_link)
            table_add(&table, term_format_bytes(row->result.link_bytes, text));
        if (has_speed)
            table_add(&table,
                      write_seconds(fit_work_step_seconds(w, &row->result), text));
        table_add(&table, fit_numbers_name(fit_set_numbers(&w->search, &row->set)));
    }
    fprintf(term->out, "\nfits with, each by a dry run\n");
    table.is_bounded = true;
    return table_print(&table, term);
}

static bool
print_conditions(const struct fit_work *w, const size_t *ranked, size_t count,
                 const struct term *term)
{
    struct dry_condition rows[FIT_RUNS_MAX];
    char numbers[FIT_RUNS_MAX][8];
    for (size_t i = 0; i < count; i++) {
        snprintf(numbers[i], sizeof numbers[i], "%zu", i + 1);
        rows[i] = (struct dry_condition){numbers[i], w->notes[ranked[i]].condition};
    }
    return dry_report_print_conditions(rows, count, term);
}

static void
print_legend(const struct fit_work *w, const size_t *ranked, size_t count,
             const struct term *term)
{
    char text[300], seconds[TERM_NUMBER_BYTES];
    bool has_rows = false;
    for (size_t i = 0; i < count; i++)
        has_rows |=
            fit_set_numbers(&w->search, &w->search.rows[ranked[i]].set) == FIT_ROWS;
    snprintf(text, sizeof text,
             "work: a step's matrix products, convolutions and attention%s%s%s%s",
             is_linked(w, ranked, count) ? "; link: bytes that it copies" : "",
             fit_work_step_seconds(w, &w->base) > 0
                 ? "; step: by the card's speeds; as it is, "
                 : "",
             fit_work_step_seconds(w, &w->base) > 0
                 ? write_seconds(fit_work_step_seconds(w, &w->base), seconds)
                 : "",
             has_rows ? "; row means: the same numbers if the loss is a mean over rows"
                      : "");
    fprintf(term->out, "  ");
    term_print_wrapped(term->out, text, 2, term->width);
}

/* Print the runs that ended below the program's own peak and above the card. */
static bool
print_measured(const struct fit_work *w, const struct term *term)
{
    struct table table;
    char text[TERM_NUMBER_BYTES];
    size_t count = 0;
    table_init(&table, "=change >peak >saves");
    for (size_t i = 0; i < w->search.row_count; i++) {
        const struct fit_result *r = &w->search.rows[i].result;
        if (r->fits || !r->is_known || !r->is_applied)
            continue;
        table_add(&table, w->notes[i].label);
        table_add(&table, term_format_bytes(r->peak, text));
        table_add(&table,
                  term_format_bytes(trial_spare_bytes(w->base.peak, r->peak), text));
        count++;
    }
    if (count == 0) {
        table_finish(&table);
        return true;
    }
    fprintf(term->out, "\nmeasured, and not enough\n");
    table.is_bounded = true;
    return table_print(&table, term);
}

static void
print_reason(const char *what, const char *why, bool *has_title, const struct term *term)
{
    char text[2 * FIT_LABEL_BYTES + 4], safe[2 * FIT_LABEL_BYTES + 4];
    if (!*has_title)
        fprintf(term->out, "\nnot possible\n");
    *has_title = true;
    snprintf(text, sizeof text, "%s: %s", what, why);
    term_make_printable(safe, sizeof safe, text, strlen(text));
    fprintf(term->out, "  ");
    term_print_wrapped(term->out, safe, 4, term->width);
}

static void
print_failed(const struct fit_work *w, const struct term *term)
{
    bool has_title = false;
    const char *name;
    json_t *why;
    for (size_t i = 0; i < w->search.row_count; i++) {
        const struct fit_result *r = &w->search.rows[i].result;
        if (!r->is_known || !r->is_applied)
            print_reason(w->notes[i].label, w->notes[i].why, &has_title, term);
    }
    json_object_foreach(w->refused, name, why)
    {
        print_reason(name, json_string_value(why), &has_title, term);
    }
}

static void
print_nearest(const struct fit_work *w, const struct term *term)
{
    char text[FIT_LABEL_BYTES + 120], missing[TERM_NUMBER_BYTES];
    size_t nearest = fit_search_nearest(&w->search);
    if (nearest == SIZE_MAX)
        snprintf(text, sizeof text, "no change could be made");
    else
        snprintf(text, sizeof text, "nothing that was tried is enough; %s misses %s",
                 w->notes[nearest].label,
                 term_format_bytes(
                     trial_spare_bytes(w->search.rows[nearest].result.peak, w->limit),
                     missing));
    fprintf(term->out, "\n%-*s", COLUMN, "nearest");
    term_print_wrapped(term->out, text, COLUMN, term->width);
}

bool
fit_report_print(const struct fit_work *w, const char *path)
{
    struct term term;
    size_t ranked[FIT_RUNS_MAX], count = fit_search_rank(&w->search, ranked);
    double seconds = w->whole.seconds;
    bool is_printed = true;
    term_init(&term, stdout);
    print_head(w, &term);
    if (w->fits)
        return true;
    if (count > 0) {
        is_printed = print_fits(w, ranked, count, &term);
        is_printed &= print_conditions(w, ranked, count, &term);
        print_legend(w, ranked, count, &term);
    } else {
        print_nearest(w, &term);
    }
    is_printed = print_measured(w, &term) && is_printed;
    print_failed(w, &term);
    for (size_t i = 0; i < w->search.row_count; i++)
        seconds += w->notes[i].seconds;
    printf("\n%d run%s in %.0f s\n", w->run_count, w->run_count == 1 ? "" : "s", seconds);
    if (count > 0) {
        char text[240], safe[120];
        term_make_printable(safe, sizeof safe, path, strlen(path));
        snprintf(text, sizeof text,
                 "drystone fit --apply 1 -- PROGRAM runs it so, by %s; --patch 1 prints "
                 "a diff",
                 safe);
        term_print_wrapped(stdout, text, 0, term.width);
    }
    return is_printed;
}

/* --- JSON --------------------------------------------------------------------------------- */

/* Return {NAME: VALUE, ...} of the program's placeholders in a row. */
static json_t *
make_words(const struct fit_work *w, const struct fit_set *set)
{
    size_t combination = fit_offers_find_words(&w->offers, w->vary, set);
    json_t *words = json_object();
    for (size_t i = 0; i < w->vary->name_count && words; i++) {
        const char *value = vary_value(w->vary, combination, i);
        if (json_object_set_new(words, w->vary->names[i].name, json_string(value)) != 0) {
            json_decref(words);
            words = NULL;
        }
    }
    return words;
}

/* Return a number; null: it is not known. */
static json_t *
make_real(double value)
{
    return value > 0 ? json_real(value) : json_null();
}

static json_t *
make_row(const struct fit_work *w, size_t i)
{
    const struct fit_row *row = &w->search.rows[i];
    const struct fit_result *r = &row->result;
    const struct fit_note *note = &w->notes[i];
    bool is_answer = r->is_known && r->is_applied;
    return json_pack("{s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:f}",
                     "change", json_out_string(note->label), "changes",
                     fit_offers_make_changes(&w->offers, &row->set), "words",
                     make_words(w, &row->set), "by_hand",
                     fit_offers_make_hand(&w->offers, &row->set), "fits", r->fits,
                     "peak_bytes", json_out_known(is_answer, r->peak), "operations",
                     make_real(r->work), "link_bytes", json_out_number(r->link_bytes),
                     "step_seconds", make_real(fit_work_step_seconds(w, r)), "numbers",
                     fit_numbers_key(fit_set_numbers(&w->search, &row->set)), "condition",
                     json_out_filled(note->condition), "why", json_out_filled(note->why),
                     "seconds", note->seconds);
}

json_t *
fit_report_make_json(const struct fit_work *w)
{
    size_t ranked[FIT_RUNS_MAX], count = fit_search_rank(&w->search, ranked);
    json_t *fits = json_array(), *rest = json_array();
    for (size_t i = 0; i < count; i++)
        fits = json_out_append(fits, make_row(w, ranked[i]));
    for (size_t i = 0; i < w->search.row_count; i++) {
        bool is_ranked = false;
        for (size_t k = 0; k < count; k++)
            is_ranked |= ranked[k] == i;
        if (!is_ranked)
            rest = json_out_append(rest, make_row(w, i));
    }
    return json_pack(
        "{s:s, s:b, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:o, s:o, s:o}", "schema",
        "drystone.fit/1", "fits", w->fits, "card", w->request.card->name, "limit_bytes",
        json_out_number(w->limit), "peak_bytes", json_out_number(w->base.peak), "pass",
        json_out_filled(w->pass), "operations", make_real(w->base.work), "step_seconds",
        make_real(fit_work_step_seconds(w, &w->base)), "condition",
        json_out_filled(w->whole.condition), "runs", w->run_count, "fits_with", fits,
        "others", rest, "refused", w->refused ? json_incref(w->refused) : json_object());
}

int
fit_report_read(const char *command, const char *path, int64_t number, json_t **row)
{
    char *text = NULL;
    size_t length;
    json_t *root = NULL;
    struct dry_error err;
    *row = NULL;
    bool is_read = json_in_read_file(path, &text, &length, &err) == DRY_OK &&
                   json_in_parse(text, length, &root, &err) == DRY_OK;
    free(text);
    if (!is_read)
        return report_error(command, path, &err);
    const char *schema = json_string_value(json_object_get(root, "schema"));
    const json_t *fits = json_object_get(root, "fits_with");
    json_t *found = json_array_get(fits, (size_t)(number - 1));
    bool is_whole = json_is_object(json_object_get(found, "changes")) &&
                    json_is_string(json_object_get(found, "change"));
    int code = EXIT_FINE;
    if (!schema || strcmp(schema, "drystone.fit/1") != 0)
        code = report_failure(command, path, EXIT_INPUT, "not a file of drystone fit");
    else if (found && !is_whole)
        code = report_failure(command, path, EXIT_INPUT,
                              "fits_with, row %lld: expected changes and a text",
                              (long long)number);
    else if (!found)
        code = report_failure(command, path, EXIT_INPUT,
                              "no change %lld: it has %zu that fit", (long long)number,
                              json_array_size(fits));
    else
        *row = json_incref(found);
    json_decref(root);
    return code;
}
