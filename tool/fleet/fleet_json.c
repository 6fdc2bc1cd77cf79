/* SPDX-License-Identifier: Apache-2.0 */
/* The report as JSON. Everything is in it, even without --all. */

#include "base/fields.h"
#include "base/json_out.h"
#include "fleet/fleet_report.h"
#include "fleet/rank_name.h"

static json_t *
make_index(size_t index)
{
    return index == FLEET_NONE ? json_null() : json_integer((json_int_t)index);
}

/* --- ranks -------------------------------------------------------------------------------- */

static json_t *
make_figures(const struct fleet_row *row)
{
    if (row->state != FLEET_ROW_FINE)
        return json_null();
    return fields_add_json(json_pack("{s:b}", "oom", (int)row->oom.is_there),
                           fleet_row_fields, row);
}

static json_t *
make_rank(const struct fleet_judgement *j, size_t i)
{
    const struct fleet_rank *rank = &j->ranks[i];
    const struct fleet_member *m = &j->members[i];
    return json_pack(
        "{s:o, s:o, s:s, s:o, s:o, s:o, s:b, s:o}", "path", json_out_string(rank->path),
        "rank", rank->rank == RANK_UNKNOWN ? json_null() : json_integer(rank->rank),
        "use", fleet_use_name(m->use), "why", json_out_filled(rank->row->why), "other",
        make_index(m->other), "group", make_index(m->group), "differs", (int)m->differs,
        "figures", make_figures(rank->row));
}

static json_t *
make_ranks(const struct fleet_judgement *j)
{
    json_t *list = json_array();
    for (size_t i = 0; i < j->count; i++)
        list = json_out_append(list, make_rank(j, i));
    return list;
}

/* --- groups, findings, steps, gaps -------------------------------------------------------- */

static json_t *
make_groups(const struct fleet_judgement *j)
{
    json_t *list = json_array();
    for (size_t i = 0; i < j->group_count; i++) {
        const struct fleet_group *g = &j->groups[i];
        json_t *members = json_array();
        for (size_t k = 0; k < g->count; k++)
            members = json_out_append(members, make_index(g->members[k]));
        json_t *top = g->top_place == UINT32_MAX
                          ? json_null()
                          : json_out_string(j->lines.names[g->top_place]);
        list = json_out_append(
            list,
            json_pack("{s:o, s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "files",
                      members, "layout", fleet_layout_name(g->layout), "stride",
                      (json_int_t)g->stride, "active_peak_median",
                      json_out_number(g->active.median), "active_peak_mad",
                      json_out_number(g->active.mad), "reserved_peak_median",
                      json_out_number(g->reserved.median), "reserved_peak_mad",
                      json_out_number(g->reserved.mad), "largest", make_index(g->largest),
                      "top_line", top, "top_bytes", json_out_number(g->top_bytes)));
    }
    return list;
}

static json_t *
make_finding(const struct fleet_finding *f)
{
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "kind",
                     fleet_finding_name(f->kind), "file", make_index(f->file), "group",
                     make_index(f->group), "bytes", json_out_number(f->bytes), "usual",
                     json_out_number(f->usual), "line", json_out_filled(f->line));
}

static json_t *
make_findings(const struct fleet_judgement *j)
{
    json_t *list = json_array();
    for (size_t i = 0; i < j->finding_count; i++)
        list = json_out_append(list, make_finding(&j->findings[i]));
    return list;
}

static json_t *
make_steps(const struct fleet_judgement *j)
{
    json_t *list = json_array();
    for (size_t i = 0; i < j->step_count; i++) {
        const struct fleet_step *s = &j->steps[i];
        list = json_out_append(
            list,
            json_pack("{s:I, s:I, s:o, s:o, s:o, s:o}", "step", (json_int_t)s->step,
                      "ranks", (json_int_t)s->rank_count, "min", json_out_number(s->min),
                      "median", json_out_number(s->median), "max",
                      json_out_number(s->max), "max_file", make_index(s->max_file)));
    }
    return json_pack("{s:s, s:o}", "aligned", j->is_from_end ? "last" : "first", "steps",
                     list);
}

static json_t *
make_gaps(const struct fleet_judgement *j)
{
    json_t *list = json_array();
    for (size_t i = 0; i < j->gap_count; i++)
        list = json_out_append(list, json_pack("[I, I]", (json_int_t)j->gaps[i].from,
                                               (json_int_t)j->gaps[i].to));
    return list;
}

/* --- failure, settings, advice ------------------------------------------------------------ */

static json_t *
make_failure(const struct fleet_judgement *j)
{
    if (j->first_failure == FLEET_NONE)
        return json_null();
    return fields_add_json(json_pack("{s:o, s:b}", "file", make_index(j->first_failure),
                                     "by_clock", (int)j->is_first_by_clock),
                           fleet_oom_fields, &j->ranks[j->first_failure].row->oom);
}

static json_t *
make_candidates(const struct fleet_search *search)
{
    json_t *list = json_array();
    for (size_t i = 0; i < search->candidate_count; i++)
        list =
            json_out_append(list, fields_add_json(json_object(), fleet_candidate_fields,
                                                  &search->candidates[i]));
    return list;
}

static json_t *
make_deciders(const struct fleet_report *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->decider_count; i++) {
        const struct fleet_search *s = &r->searches[i];
        list = json_out_append(list, json_pack("{s:o, s:o, s:s, s:o}", "file",
                                               make_index(r->deciders[i]), "why",
                                               json_out_filled(s->why), "outcome",
                                               dry_outcome_name(s->outcome), "candidates",
                                               make_candidates(s)));
    }
    return list;
}

static json_t *
make_settings(const struct fleet_report *r)
{
    const struct fleet_decision *d = &r->decision;
    const struct dry_candidate *c = d->candidate;
    if (!r->is_searched)
        return json_null();
    return json_pack("{s:s, s:o, s:o, s:I, s:I, s:o, s:o, s:o}", "decision",
                     fleet_decision_name(d->kind), "conf",
                     json_out_string(c ? c->conf : NULL), "since",
                     json_out_filled(c ? c->since : NULL), "helped",
                     (json_int_t)d->helped_count, "judged", (json_int_t)d->judged_count,
                     "gain_min", json_out_known(c != NULL, d->gain_min), "gain_max",
                     json_out_known(c != NULL, d->gain_max), "files", make_deciders(r));
}

static json_t *
make_advice(const struct fleet_advice *a)
{
    return json_pack("{s:s, s:o, s:o}", "kind", fleet_advice_name(a->kind), "finding",
                     a->finding ? make_finding(a->finding) : json_null(), "short_bytes",
                     json_out_number(a->short_bytes));
}

json_t *
fleet_report_make_json(const struct fleet_report *r)
{
    const struct fleet_judgement *j = r->judgement;
    return json_pack("{s:s, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "schema",
                     "drystone.fleet/1", "job", json_out_string(r->subject), "used",
                     (json_int_t)j->used_count, "files", make_ranks(j), "groups",
                     make_groups(j), "findings", make_findings(j), "timeline",
                     make_steps(j), "missing", make_gaps(j), "first_failure",
                     make_failure(j), "settings", make_settings(r), "advice",
                     make_advice(&r->advice));
}
