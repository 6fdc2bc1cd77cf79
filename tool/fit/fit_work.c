/* SPDX-License-Identifier: Apache-2.0 */
/* See fit_work.h. */
#include "fit/fit_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/report.h"
#include "base/term.h"
#include "dryrun/dry_report.h"

#define BRIEF_EVENTS 100000 /* more take seconds; runs of a few steps have less */
#define SHORT_STEPS_MAX 8   /* a peak behind them is looked for by whole runs */
#define LINK_WORK 4000.     /* 100 TFLOPS and 25 GB/s are assumed */
#define COUNTED_STEPS 3     /* drystone.fit counts the work of the second step */

/* Take the result of a run from its trial. */
static void
take(const struct trial *t, struct fit_result *result, struct fit_note *note)
{
    const struct facts_process *p = trial_main(t);
    const json_t *fit = json_object_get(p->json, "fit");
    const json_t *flops = json_object_get(fit, "flops");
    json_int_t link = json_integer_value(json_object_get(fit, "link_bytes"));
    result->is_known = trial_outcome(t) != TRIAL_NOT_KNOWN && p->is_counted;
    result->fits = trial_outcome(t) == TRIAL_FITS && p->is_counted;
    result->peak = p->reserved_peak;
    result->work = json_number_value(flops);
    result->link_bytes = link > 0 ? (uint64_t)link : 0;
    note->seconds += p->seconds;
    note->condition[0] = '\0';
    if (result->fits)
        dry_report_write_condition(t, note->condition, sizeof note->condition);
    if (!result->is_known) {
        char end[TRIAL_END_BYTES];
        trial_tell_end(t, end);
        term_make_printable(note->why, sizeof note->why, end, strcspn(end, "\n"));
        if (p->error)
            facts_write_error(p, strcspn(p->error, "\n"), note->why, sizeof note->why);
    }
}

/* Run once, on a card that gives more than it has, or as it is. A run with changes tells its peak
   alone. */
static int
run_once(struct fit_work *w, const char *changes, bool is_boundless, struct trial *t,
         struct fit_note *note)
{
    w->run_count++;
    *t = (struct trial){.launch = {.request = w->request}};
    t->launch.request.is_brief = note != &w->whole;
    if (t->launch.request.is_brief)
        t->launch.request.event_max = BRIEF_EVENTS;
    t->launch.request.output = LAUNCH_OUTPUT_HIDDEN;
    t->launch.request.changes = changes;
    t->launch.request.is_boundless = is_boundless;
    if (note->is_short)
        t->launch.request.step_max = w->short_steps;
    t->launch.request.title = note->label;
    return trial_run(t);
}

/* Tell whether a run that reserves more than the card has may fit: the allocator returns what it
   keeps before memory runs out. A replay of the history tells that it cannot. */
static int
find_near(const struct fit_work *w, const struct trial *t, bool *is_near)
{
    const struct facts_process *p = trial_main(t);
    struct trial_check check = {.is_exact = false};
    *is_near = p->allocated_peak <= w->limit && w->run_count < w->run_max;
    if (!*is_near || !p->snapshot)
        return EXIT_FINE;
    int code = trial_verdict_check(w->request.command, p->snapshot, w->limit, &check);
    bool is_cut = check.event_count >= t->launch.request.event_max;
    *is_near = !check.is_exact || is_cut || check.fits;
    return code;
}

/* Run the program with changes, and a second time on the card, if it may fit there. */
static int
run_changed(struct fit_work *w, json_t *changes, bool looks, struct fit_result *result,
            struct fit_note *note, struct trial *t)
{
    struct trial again;
    char *variable = fit_offers_make_variable(changes, looks, true);
    *t = (struct trial){.status = 0};
    if (!variable) {
        report_memory(w->request.command, NULL);
        return EXIT_MACHINE;
    }
    int code = run_once(w, variable, true, t, note);
    if (code == EXIT_FINE)
        take(t, result, note);
    bool is_near = false;
    if (code == EXIT_FINE && result->is_known && !result->fits)
        code = find_near(w, t, &is_near);
    if (code == EXIT_FINE && is_near) {
        code = run_once(w, variable, false, &again, note);
        struct fit_result second = *result;
        if (code == EXIT_FINE)
            take(&again, &second, note);
        if (code == EXIT_FINE && second.fits)
            *result = second;
        trial_finish(&again);
    }
    free(variable);
    return code;
}

/* Fill the program's placeholders for a run. */
static int
fill_words(struct fit_work *w, size_t combination)
{
    vary_free(&w->filled);
    if (!vary_fill(w->vary, combination, w->words, &w->filled))
        return report_memory(w->request.command, NULL);
    w->request.arguments = &w->filled;
    return EXIT_FINE;
}

/* Run a set. A program that fails with a change is a result, too. */
static int
try_set(struct fit_work *w, const struct fit_set *set, struct fit_result *result,
        struct fit_note *note)
{
    struct trial t;
    note->why[0] = '\0';
    int code = fill_words(w, fit_offers_find_words(&w->offers, w->vary, set));
    if (code != EXIT_FINE)
        return code;
    code =
        run_changed(w, fit_offers_make_changes(&w->offers, set), false, result, note, &t);
    if (code == EXIT_INPUT)
        snprintf(note->why, sizeof note->why, "the program failed before it used a GPU");
    if (code == EXIT_FINE && result->is_known) {
        const json_t *fit = json_object_get(trial_main(&t)->json, "fit");
        result->is_applied = fit_offers_check(&w->offers, set, fit, note->why);
        result->fits &= result->is_applied;
    }
    trial_finish(&t);
    return code == EXIT_INPUT ? EXIT_FINE : code;
}

static int
run_set(void *self, const struct fit_set *set, struct fit_result *result)
{
    struct fit_work *w = self;
    struct fit_note *note = &w->notes[w->search.row_count];
    *note = (struct fit_note){.is_short = w->short_steps > 0};
    fit_offers_write(&w->offers, set, note->label);
    int before = w->run_count;
    int code = try_set(w, set, result, note);
    w->search.runs_left -= w->run_count - before - 1; /* the search counts one */
    return code;
}

/* Return the best answer whose run was short; SIZE_MAX: none. */
static size_t
find_short(const struct fit_work *w)
{
    size_t ranked[FIT_RUNS_MAX], count = fit_search_rank(&w->search, ranked);
    for (size_t i = 0; i < count; i++) {
        if (w->notes[ranked[i]].is_short)
            return ranked[i];
    }
    return SIZE_MAX;
}

/* Run the answers whole. *is_refuted tells whether one of them does not fit then. */
static int
run_whole(struct fit_work *w, bool *is_refuted)
{
    int code = EXIT_FINE;
    size_t row;
    *is_refuted = false;
    while (code == EXIT_FINE && w->run_count < w->run_max &&
           (row = find_short(w)) != SIZE_MAX) {
        struct fit_result result = {.is_known = false};
        w->notes[row].is_short = false;
        code = try_set(w, &w->search.rows[row].set, &result, &w->notes[row]);
        if (code == EXIT_FINE)
            w->search.rows[row].result = result;
        *is_refuted |= !result.fits;
    }
    return code;
}

/* Search, and run the answers whole. The search goes on if one does not fit then, and knows what its
   whole run needed. */
static int
search_and_check(struct fit_work *w)
{
    int kept = w->short_steps > 0 ? w->run_max / 4 : 0; /* runs for the answers */
    bool is_refuted;
    int code;
    do {
        w->search.runs_left = w->run_max - w->run_count - kept;
        code = fit_search_run(&w->search);
        if (code == EXIT_FINE)
            code = run_whole(w, &is_refuted);
        kept = 1;
    } while (code == EXIT_FINE && is_refuted && w->run_count < w->run_max);
    return code;
}

/* Return a number of steps after which the peak was seen; 0: the runs have to be whole. */
static int64_t
find_short_steps(const struct fit_work *w, const struct trial *t)
{
    uint32_t step = t->verdict.view ? dry_report_step(t) : DRY_NONE;
    if (step >= SHORT_STEPS_MAX || w->request.step_max > 0)
        return 0;
    return step + 2 > COUNTED_STEPS ? step + 2 : COUNTED_STEPS;
}

/* Run the program as it is, and read what can be changed. */
static int
look(struct fit_work *w)
{
    struct trial t;
    snprintf(w->whole.label, sizeof w->whole.label, "as it is");
    int code = fill_words(w, 0);
    if (code != EXIT_FINE)
        return code;
    code = run_changed(w, json_object(), true, &w->base, &w->whole, &t);
    if (code == EXIT_FINE) {
        const struct facts_process *p = trial_main(&t);
        const struct dry_explanation_view *view = t.verdict.view;
        w->limit = trial_torch_bytes(w->request.card, p->nccl_bytes);
        w->fits = w->base.fits;
        w->is_guess = trial_guesses(&t) != NULL;
        w->pass = view && view->last_pass != DRY_PASS_UNKNOWN
                      ? dry_pass_name(view->last_pass)
                      : "";
        w->short_steps = find_short_steps(w, &t);
        w->search.peaks_in_step = view && view->last_pass == DRY_PASS_UPDATE;
    }
    if (code == EXIT_INPUT || (code == EXIT_FINE && !w->base.is_known))
        launch_show_output(&t.launch);
    if (code == EXIT_FINE && !w->base.is_known) {
        code = report_failure(w->request.command, w->request.arguments->values[0],
                              EXIT_INPUT, "the program failed, and not for memory: %s",
                              w->whole.why);
    }
    if (code == EXIT_FINE && !w->fits)
        code = fit_offers_read(&w->offers, w->request.command,
                               json_object_get(trial_main(&t)->json, "fit"));
    if (code == EXIT_FINE && !w->fits)
        w->refused =
            fit_offers_read_refused(json_object_get(trial_main(&t)->json, "fit"));
    if (code == EXIT_FINE && !w->fits)
        code = fit_offers_add_words(&w->offers, w->request.command, w->vary);
    trial_finish(&t);
    return code;
}

double
fit_work_step_seconds(const struct fit_work *w, const struct fit_result *r)
{
    const struct card_speed *speed = &w->speed;
    if (speed->operations == 0 || !(r->work > 0) ||
        (r->link_bytes > 0 && speed->link_bytes == 0))
        return 0;
    double copies =
        r->link_bytes > 0 ? (double)r->link_bytes / (double)speed->link_bytes : 0;
    return r->work / (double)speed->operations + copies;
}

/* Return the operations that the card does while a byte is copied. */
static double
get_link_work(const struct card_speed *speed)
{
    if (speed->operations == 0 || speed->link_bytes == 0)
        return LINK_WORK;
    return (double)speed->operations / (double)speed->link_bytes;
}

int
fit_work_run(struct fit_work *w, int run_max)
{
    w->pass = "";
    w->run_max = run_max;
    w->limit = trial_torch_bytes(w->request.card, 0);
    int code = look(w);
    if (code != EXIT_FINE || w->fits)
        return code;
    w->search.offers = w->offers.list;
    w->search.offer_count = w->offers.count;
    w->search.limit = w->limit;
    w->search.peak = w->base.peak;
    w->search.link_work = get_link_work(&w->speed);
    w->search.run = run_set;
    w->search.self = w;
    return search_and_check(w);
}

void
fit_work_finish(struct fit_work *w)
{
    fit_offers_finish(&w->offers);
    json_decref(w->refused);
    vary_free(&w->filled);
}
