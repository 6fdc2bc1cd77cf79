/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone explain --json`: schema drystone.explain/1, see drystone-explain(1). */

#include "base/fields.h"
#include "base/json_out.h"
#include "explain/explain_print.h"

static json_t *
make_terms(const struct dry_proof_term *terms, unsigned count)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < count; i++)
        json_array_append_new(list, json_pack("{s:s, s:o}", "name", terms[i].name,
                                              "bytes", json_out_number(terms[i].bytes)));
    return list;
}

/* Make what a change would have bought; null: unknown. */
static json_t *
effect_of(const struct dry_effect *e)
{
    if (!e->is_known)
        return json_null();
    return json_pack("{s:I, s:s, s:o, s:b}", "headroom_bytes",
                     (json_int_t)e->headroom_bytes, "lasting",
                     dry_lasting_name(e->lasting), "steps",
                     json_out_known(e->lasting == DRY_LASTING_STEPS, e->steps),
                     "replayed", e->is_replayed);
}

static json_t *
make_findings(const struct dry_explanation_view *v)
{
    json_t *list = json_array();
    for (size_t i = 0; i < v->finding_count; i++) {
        const struct dry_finding *f = &v->findings[i];
        json_t *proofs = json_array();
        for (unsigned k = 0; k < f->proof_count; k++) {
            const struct dry_proof *p = &f->proofs[k];
            char relation[2] = {p->relation, '\0'};
            json_array_append_new(
                proofs, json_pack("{s:o, s:s, s:o, s:o, s:o}", "left",
                                  make_terms(p->left, p->left_count), "relation",
                                  relation, "right", make_terms(p->right, p->right_count),
                                  "left_bytes", json_out_number(p->left_sum),
                                  "right_bytes", json_out_number(p->right_sum)));
        }
        json_array_append_new(
            list, json_pack("{s:s, s:i, s:b, s:b, s:o, s:o, s:o, s:o}", "cause",
                            dry_cause_name(f->cause), "confidence_percent", f->confidence,
                            "assumed", f->is_assumed, "tied", f->is_tied, "bytes",
                            json_out_number(f->bytes), "effect", effect_of(&f->effect),
                            "proofs", proofs, "note", json_out_filled(f->note)));
    }
    return list;
}

static json_t *
make_owners(const struct dry_explanation_view *v)
{
    size_t count;
    const struct dry_owner *owners = dry_owners_get(v->owners, &count);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct dry_owner *o = &owners[i];
        json_array_append_new(
            list, json_pack("{s:o, s:o, s:o, s:o, s:I, s:o}", "line",
                            json_out_text(o->name, o->name_length), "operation",
                            o->what_length ? json_out_text(o->what, o->what_length)
                                           : json_null(),
                            "bytes", json_out_number(o->bytes), "requested_bytes",
                            json_out_number(o->requested), "count", (json_int_t)o->count,
                            "largest_bytes", json_out_number(o->largest)));
    }
    return list;
}

static json_t *
make_siblings(const struct dry_explanation_view *v)
{
    json_t *list = json_array();
    for (size_t i = 0; i < v->sibling_count; i++) {
        const struct dry_sibling *s = &v->siblings[i];
        json_array_append_new(
            list,
            json_pack("{s:i, s:b, s:b, s:o, s:o, s:o, s:I}", "device", (int)s->device,
                      "subject", s->is_subject, "oom", s->has_oom, "peak_bytes",
                      json_out_number(s->peak_bytes), "held_bytes",
                      json_out_number(s->held_bytes), "typical_bytes",
                      json_out_number(s->typical_bytes), "done", (json_int_t)s->done));
    }
    return list;
}

static json_t *
make_caveats(uint32_t caveats)
{
    json_t *list = json_array();
    for (uint32_t bit = 1; bit < 1u << DRY_CAVEAT_COUNT; bit <<= 1) {
        if (caveats & bit)
            json_array_append_new(list, json_string(dry_caveat_name(bit)));
    }
    return list;
}

/* Add figures of a replayed setting and those of the recorded settings; null: unknown. */
static void
add_figures(json_t *to, const struct dry_change *c)
{
    bool is_setting = c->kind == DRY_CHANGE_SETTING;
    bool has_devices = c->runs_on_bytes > 0 && c->recorded_runs_on_bytes > 0;
    json_object_set_new(to, "since", json_out_filled(c->since));
    json_object_set_new(to, "recorded_reserved_peak_bytes",
                        json_out_known(is_setting, c->recorded_peak_bytes));
    json_object_set_new(to, "runs_on_bytes",
                        json_out_known(has_devices, c->runs_on_bytes));
    json_object_set_new(to, "recorded_runs_on_bytes",
                        json_out_known(has_devices, c->recorded_runs_on_bytes));
    json_object_set_new(to, "retries", json_out_known(is_setting, c->retries));
    json_object_set_new(to, "recorded_retries",
                        json_out_known(is_setting, c->recorded_retries));
    json_object_set_new(to, "gain_bytes",
                        c->has_gain ? json_integer((json_int_t)c->gain_bytes)
                                    : json_null());
}

static json_t *
make_change(const struct dry_explanation_view *v, const struct dry_change *c)
{
    bool is_setting = c->kind == DRY_CHANGE_SETTING;
    bool has_gap = c->kind == DRY_CHANGE_NO_EVIDENCE;
    json_t *change = json_pack(
        "{s:s, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o}", "kind",
        dry_change_kind_name(c->kind), "setting", json_out_string(c->setting), "caveats",
        make_caveats(c->caveats), "removes_oom", c->removes_oom, "effect",
        effect_of(&c->effect), "bytes", json_out_number(c->bytes), "reserved_peak_bytes",
        json_out_known(is_setting, c->peak_bytes), "oom_at_event",
        json_out_known(c->oom_event != DRY_EVENT_NONE, c->oom_event), "reason",
        json_out_string(has_gap ? explain_get_evidence_gap(v) : NULL));
    if (change)
        add_figures(change, c);
    return change;
}

static json_t *
make_changes(const struct dry_explanation_view *v)
{
    json_t *list = json_array();
    for (size_t i = 0; i < v->change_count; i++) {
        const struct dry_change *c = &v->changes[i];
        json_array_append_new(list, make_change(v, c));
    }
    return list;
}

static json_t *
make_oom(const struct explain_report *r)
{
    const struct dry_explanation_view *v = r->view;
    if (v->moment_kind != DRY_MOMENT_AT_OOM)
        return json_null();
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:I, s:I, s:o, s:o}", "request_bytes",
        json_out_number(v->request_bytes), "request_line",
        json_out_filled(v->request_line), "device_free_bytes",
        json_out_number(v->device_free_bytes), "budget_bytes",
        json_out_number(v->budget_bytes), "short_bytes", json_out_number(v->short_bytes),
        "other_bytes", json_out_known(r->is_total_known, v->other_bytes), "number",
        (json_int_t)v->oom_number, "next_event",
        json_out_known(v->next_oom_event != DRY_EVENT_NONE, v->next_oom_event), "count",
        (json_int_t)v->oom_count, "freed_after", (json_int_t)v->freed_after,
        "end_active_bytes", json_out_number(v->end_active_bytes), "end_reserved_bytes",
        json_out_number(v->end_reserved_bytes));
}

static json_t *
make_categories(const struct dry_explanation_view *v)
{
    json_t *object = json_object();
    for (unsigned c = 0; c < DRY_CATEGORY_COUNT; c++)
        json_object_set_new(
            object, dry_category_name((enum dry_category)c),
            json_pack("{s:o, s:i}", "bytes", json_out_number(v->category_bytes[c]),
                      "confidence_percent", (int)v->category_confidence[c]));
    return object;
}

static json_t *
make_step(const struct dry_explanation_view *v)
{
    if (v->step == DRY_NONE)
        return json_null();
    return json_pack("{s:I, s:I, s:o, s:o, s:s}", "index", (json_int_t)v->step,
                     "allocations", (json_int_t)v->step_done,
                     "allocations_of_a_whole_step",
                     json_out_known(v->step_whole > 0, v->step_whole),
                     "active_peak_bytes_of_a_whole_step",
                     json_out_known(v->step_whole > 0, v->step_whole_peak_bytes),
                     "source", dry_steps_source_name(dry_steps_get_source(v->steps)));
}

static json_t *
make_trust(const struct dry_explanation_view *v)
{
    return json_pack("{s:s, s:b, s:b, s:o, s:I, s:o, s:o, s:o, s:I}", "level",
                     dry_trust_name(v->trust), "checked", v->check->possible, "exact",
                     v->check->exact, "reason",
                     v->check->possible ? json_null() : json_out_string(v->check->reason),
                     "unmatched_frees", (json_int_t)v->unmatched_frees,
                     "carried_over_bytes", json_out_number(v->carried_over_bytes),
                     "covered_bytes", json_out_number(v->covered_bytes),
                     "unexplained_bytes", json_out_number(v->unexplained_bytes),
                     "time_reversals", (json_int_t)v->time_reversals);
}

static json_t *
make_releases(const struct explain_report *r)
{
    const struct dry_releases *of = &r->view->releases;
    if (r->is_simulated)
        return json_null();
    return json_pack("{s:s, s:s, s:b, s:b, s:o}", "first", of->first, "last", of->last,
                     "reproduces", of->reproduces, "has_gap", of->has_gap, "not_before",
                     json_out_filled(of->not_before));
}

/* Make the bounds of the device's capacity that OOMs and retries imply; null if there
   were none. */
static json_t *
make_capacity(const struct explain_report *r)
{
    const struct dry_replay_recorded *rec = dry_replay_get_recorded(r->replay);
    if (rec->capacity_high_bytes == 0)
        return json_null();
    return json_pack("{s:o, s:o}", "low_bytes", json_out_number(rec->capacity_low_bytes),
                     "high_bytes", json_out_number(rec->capacity_high_bytes));
}

static json_t *
make_moment(const struct dry_explanation_view *v)
{
    bool has_event = v->event != SIZE_MAX;
    return json_pack("{s:s, s:o, s:I}", "kind", dry_moment_kind_name(v->moment_kind),
                     "event", json_out_known(has_event, v->event), "time_us",
                     (json_int_t)v->time_us);
}

int
explain_report_print_json(const char *command, const struct explain_report *r)
{
    const struct dry_explanation_view *v = r->view;
    json_t *root = json_pack(
        "{s:s, s:o, s:i, s:I, s:b, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o, "
        "s:o, s:o, s:o, s:o}",
        "schema", "drystone.explain/1", "file", json_out_string(r->file), "device",
        (int)v->device, "devices", (json_int_t)r->device_count, "simulated",
        r->is_simulated, "verdict", dry_cause_name(v->findings[0].cause), "moment",
        make_moment(v), "state",
        fields_add_json(json_object(), dry_state_get_fields(), v->state), "oom",
        make_oom(r), "findings", make_findings(v), "owners", make_owners(v), "categories",
        make_categories(v), "step", make_step(v), "siblings", make_siblings(v),
        "projected_bytes", json_out_known(v->projected_bytes > 0, v->projected_bytes),
        "changes", make_changes(v), "trust", make_trust(v), "releases", make_releases(r),
        "capacity", make_capacity(r), "recorded_reserved_peak_bytes",
        json_out_known(r->recorded_reserved_bytes > 0, r->recorded_reserved_bytes));
    return json_out_print(command, root);
}
