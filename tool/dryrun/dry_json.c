/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON form of dry_report.h: drystone.dry-run/1, see drystone-dry-run(1). */
#include <stdint.h>

#include "base/json_out.h"
#include "dryrun/dry_report.h"

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
make_cards(const struct trial_verdict *v)
{
    json_t *cards = json_array();
    for (size_t i = 0; v && i < v->card_count; i++) {
        const struct trial_verdict_card *row = &v->cards[i];
        json_array_append_new(
            cards,
            json_pack("{s:s, s:o, s:o, s:b, s:o, s:o}", "card", row->card->name,
                      "total_bytes", json_out_number(row->card->usable_bytes),
                      "room_bytes", json_out_number(row->torch_bytes), "fits", row->fits,
                      "reserved_peak_bytes", json_out_known(row->fits, row->reserved),
                      "num_alloc_retries", json_out_known(row->fits, row->retries)));
    }
    return cards;
}

static json_t *
make_settings(const struct dry_explanation_view *v)
{
    json_t *settings = json_array();
    for (size_t i = 0; v && i < v->change_count; i++) {
        const struct dry_change *c = &v->changes[i];
        if (c->kind == DRY_CHANGE_SETTING)
            json_array_append_new(
                settings, json_pack("{s:s, s:o, s:o}", "conf", c->setting,
                                    "reserved_peak_bytes", json_out_number(c->peak_bytes),
                                    "less_bytes", json_out_number(c->bytes)));
    }
    return settings;
}

static json_t *
make_moment(const struct trial *t)
{
    const struct dry_explanation_view *v = t->verdict.view;
    if (!v || v->event == SIZE_MAX)
        return json_null();
    uint32_t step = dry_report_step(t);
    const char *line = v->request_line[0] ? v->request_line : v->last_line;
    return json_pack(
        "{s:s, s:s, s:o, s:o, s:s}", "kind", dry_moment_kind_name(v->moment_kind), "pass",
        dry_pass_name(v->last_pass), "step", json_out_known(step != DRY_NONE, step),
        "line", line[0] && line[0] != '(' ? json_out_string(line) : json_null(), "cause",
        dry_cause_name(v->findings[0].cause));
}

static json_t *
make_processes(const struct facts *facts)
{
    json_t *processes = json_array();
    for (size_t i = 0; i < facts->process_count; i++) {
        const struct facts_process *p = &facts->processes[i];
        json_object_set_new(p->json, "exact", json_boolean(p->is_exact));
        json_object_del(p->json, "fit"); /* drystone-fit(1) alone tells it */
        json_array_append(processes, p->json);
    }
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
make_reserved(const struct trial *t)
{
    return t ? json_out_number(trial_main(t)->reserved_peak) : json_null();
}

static json_t *
make_bracket(const struct dry_report *r)
{
    if (!r->late && !r->other_order && !r->unfinished)
        return json_null();
    return json_pack("{s:o, s:o, s:o}", "early_reserved_peak_bytes",
                     make_reserved(r->trial), "late_reserved_peak_bytes",
                     make_reserved(r->late), "other_order_reserved_peak_bytes",
                     make_reserved(r->other_order));
}

static json_t *
make_needs(const struct dry_report *r)
{
    if (!r->boundless || r->boundless->facts.process_count == 0)
        return json_null();
    const struct facts_process *p = trial_main(r->boundless);
    return json_pack("{s:o, s:o}", "reserved_peak_bytes",
                     json_out_number(p->reserved_peak), "allocated_peak_bytes",
                     json_out_number(p->allocated_peak));
}

/* Make a peak of the main process; null if its allocator keeps no statistics. */
static json_t *
make_peak(const struct facts_process *p, uint64_t bytes)
{
    return json_out_known(p->is_counted, bytes);
}

/* Make the exception that ended the program, or what else did. */
static json_t *
make_error(const struct trial *t)
{
    char end[TRIAL_END_BYTES];
    const char *error = trial_main(t)->error;
    trial_tell_end(t, end);
    return error                                 ? json_out_string(error)
           : trial_outcome(t) == TRIAL_NOT_KNOWN ? json_out_string(end)
                                                 : json_null();
}

/* Make what a serving engine says of its memory; null: there was none. */
static json_t *
make_engine(const struct trial *t)
{
    const struct facts_process *p = trial_find_engine(t);
    json_t *engine = p ? json_copy(json_object_get(p->json, "engine")) : json_null();
    unsigned count = t->launch.engine_count;
    bool is_whole = !p || json_object_set_new(engine, "engines",
                                              json_out_known(count > 0, count)) == 0;
    if (!is_whole)
        json_decref(engine);
    return is_whole ? engine : NULL;
}

static json_t *
make_fits(const struct dry_report *r)
{
    enum trial_outcome outcome = trial_outcome(r->trial);
    return outcome == TRIAL_NOT_KNOWN ? json_null() : json_boolean(outcome == TRIAL_FITS);
}

static json_t *
make_host(const struct trial *t)
{
    const struct host_use *use = &t->launch.host;
    struct trial_host host = trial_find_host(t);
    uint64_t limit = t->launch.request.host_bytes;
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "peak_bytes",
                     json_out_known(host.peak_bytes > 0, host.peak_bytes), "limit_bytes",
                     json_out_known(limit > 0, limit), "pinned_peak_bytes",
                     json_out_number(host.pinned_bytes), "shared_peak_bytes",
                     json_out_number(use->shared_bytes), "workers",
                     json_out_number(use->child_count), "workers_peak_bytes",
                     json_out_number(use->children_bytes), "worker_peak_bytes",
                     json_out_number(use->child_bytes));
}

json_t *
dry_report_make_json(const struct dry_report *r)
{
    const struct trial *t = r->trial;
    const struct facts_process *p = trial_main(t);
    uint64_t together = trial_together_bytes(t);
    uint64_t more = trial_find_convolutions(t).more_bytes;
    return json_pack(
        "{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o, "
        "s:o, "
        "s:o, s:o, s:b, s:o, s:o, s:o, s:s?, s:s?, s:i}",
        "fits", make_fits(r), "card", t->launch.request.card->name, "reserved_peak_bytes",
        make_peak(p, p->reserved_peak), "allocated_peak_bytes",
        make_peak(p, p->allocated_peak), "requested_peak_bytes",
        make_peak(p, p->requested_peak), "context_bytes_assumed",
        json_out_number(t->launch.request.card->context_bytes), "nccl_bytes_assumed",
        json_out_number(p->nccl_bytes), "room_bytes",
        json_out_number(trial_torch_bytes(t->launch.request.card, p->nccl_bytes)),
        "convolutions_more_bytes", json_out_known(more > 0, more), "needs", make_needs(r),
        "moment", make_moment(t), "self_check", make_check(&t->verdict.check), "bracket",
        make_bracket(r), "unvouched", make_calls(&t->facts), "settings",
        make_settings(r->boundless ? r->boundless->verdict.view : t->verdict.view),
        "cards", make_cards(dry_report_find_cards(r)), "history_lost",
        json_boolean(t->verdict.is_cut), "processes", make_processes(&t->facts), "error",
        make_error(t), "guessed", trial_guesses(t) != NULL, "together_peak_bytes",
        json_out_known(together > 0, together), "host", make_host(t), "engine",
        make_engine(t), "unseen", trial_find_unseen(t), "snapshot", r->snapshot,
        "exit_status", t->status);
}
