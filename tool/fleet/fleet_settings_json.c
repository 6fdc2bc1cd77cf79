/* SPDX-License-Identifier: Apache-2.0 */
/* Search the settings of one rank, write the result as JSON, read it back strictly. */
#include <stdlib.h>
#include <string.h>

#include <drystone/drystone.h>

#include "base/fail.h"
#include "base/json_out.h"
#include "fleet/fleet_in.h"
#include "fleet/fleet_settings.h"
#include "fleet/fleet_study.h"

/* --- writing JSON ------------------------------------------------------------------------- */

static json_t *
make_candidate(const struct dry_candidate *c)
{
    bool saves = c->has_gain && c->gain_bytes > 0;
    return json_pack("{s:o, s:o, s:o, s:s, s:b, s:b, s:I, s:o, s:b, s:o, s:b}", "label",
                     json_out_string(c->label), "conf", json_out_string(c->conf), "since",
                     json_out_string(c->since), "verdict", dry_verdict_name(c->verdict),
                     "allowed", (int)c->is_allowed, "recorded", (int)c->is_recorded,
                     "caveats", (json_int_t)c->caveats, "peak_bytes",
                     json_out_number(c->run.reserved_peak_bytes), "has_gain",
                     (int)c->has_gain, "gain_bytes",
                     json_out_number(saves ? (uint64_t)c->gain_bytes : 0), "gets_past",
                     (int)c->run.gets_past);
}

static json_t *
make_search(const struct dry_recommendation *rec)
{
    size_t count;
    const struct dry_candidate *candidates = dry_recommend_get_candidates(rec, &count);
    const struct dry_recommend_summary *s = dry_recommend_get_summary(rec);
    json_t *list = json_array();
    for (size_t i = 0; list && i < count && i < FLEET_CANDIDATES_MAX; i++)
        list = json_out_append(list, make_candidate(&candidates[i]));
    bool lacks = s->outcome == DRY_OUTCOME_CAPACITY && s->floor_bytes > s->capacity_bytes;
    return json_pack("{s:s, s:s, s:s, s:o, s:o}", "schema", "drystone.fleet.settings/1",
                     "why", "", "outcome", dry_outcome_name(s->outcome), "short_bytes",
                     json_out_number(lacks ? s->floor_bytes - s->capacity_bytes : 0),
                     "candidates", list);
}

static json_t *
make_failure(const char *why)
{
    return json_pack("{s:s, s:o, s:s, s:i, s:[]}", "schema", "drystone.fleet.settings/1",
                     "why", json_out_string(why), "outcome",
                     dry_outcome_name(DRY_OUTCOME_NO_EVIDENCE), "short_bytes", 0,
                     "candidates");
}

static enum dry_status
search(const struct fleet_study *study, json_t **root, struct dry_error *err)
{
    const struct dry_replay_recorded *recorded = dry_replay_get_recorded(study->replay);
    struct dry_recommendation *rec = NULL;
    struct dry_recommend_options options;
    dry_recommend_options_init(&options);
    if (recorded->oom)
        options.past_event = recorded->oom_event;
    enum dry_status status = dry_recommend_create(study->replay, &options, &rec, err);
    if (status == DRY_OK)
        *root = make_search(rec);
    dry_recommend_destroy(rec);
    return status;
}

char *
fleet_settings_make(const char *path, uint64_t memory_bytes_max)
{
    struct fleet_study study;
    struct dry_error err;
    json_t *root = NULL;
    enum dry_status status = fleet_study_open(&study, path, memory_bytes_max, &err);
    if (status == DRY_OK && !study.is_empty)
        status = search(&study, &root, &err);
    else if (status == DRY_OK)
        root = make_failure("it has no events and no segments");
    if (status != DRY_OK && status != DRY_ERR_MEMORY)
        root = make_failure(err.text);
    fleet_study_close(&study);
    char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    return text;
}

/* --- trials ------------------------------------------------------------------------------- */

#define SLACK_BYTES (UINT64_C(64) << 20)

static enum dry_verdict
judge_run(const struct dry_run *usual, const struct dry_run *run)
{
    uint64_t slack = usual->reserved_peak_bytes / 100;
    slack = slack > SLACK_BYTES ? slack : SLACK_BYTES;
    if (run->oom && !usual->oom)
        return DRY_VERDICT_FAILS;
    bool is_worse = run->reserved_peak_bytes > usual->reserved_peak_bytes &&
                    run->reserved_peak_bytes - usual->reserved_peak_bytes > slack;
    return is_worse ? DRY_VERDICT_WORSE : DRY_VERDICT_NO_GAIN;
}

/* Replay the program from its start under each wish, and append the results to `list`. */
static enum dry_status
try_wishes(const struct fleet_study *study, const struct fleet_candidate *const *wishes,
           size_t count, json_t *list, struct dry_error *err)
{
    struct dry_run_options options;
    struct dry_run usual;
    dry_run_options_init(&options);
    options.begin_anew = 1;
    options.capacity_bytes = 0;
    enum dry_status status = dry_replay_run(study->replay, &options, &usual, err);
    for (size_t i = 0; status == DRY_OK && i < count; i++) {
        struct dry_candidate c = {.label = wishes[i]->label,
                                  .conf = wishes[i]->conf,
                                  .since = wishes[i]->since,
                                  .is_allowed = true};
        options.conf = c.conf;
        status = dry_replay_run(study->replay, &options, &c.run, err);
        if (status == DRY_ERR_ARGUMENT) { /* this rank's release lacks the setting */
            c.verdict = DRY_VERDICT_FAILS;
            c.is_allowed = false;
            status = DRY_OK;
        } else if (status == DRY_OK) {
            c.verdict = judge_run(&usual, &c.run);
        }
        if (status == DRY_OK && json_array_append_new(list, make_candidate(&c)) != 0)
            status = fail_memory(err, "no memory");
    }
    return status;
}

char *
fleet_settings_try(const char *path, uint64_t memory_bytes_max,
                   const struct fleet_candidate *const *wishes, size_t wish_count)
{
    struct fleet_study study;
    struct dry_error err;
    json_t *list = json_array(), *root = NULL;
    enum dry_status status = fleet_study_open(&study, path, memory_bytes_max, &err);
    if (status == DRY_OK && list && !study.is_empty)
        status = try_wishes(&study, wishes, wish_count, list, &err);
    fleet_study_close(&study);
    if (status == DRY_OK)
        root =
            json_pack("{s:s, s:s, s:s, s:i, s:O}", "schema", "drystone.fleet.settings/1",
                      "why", "", "outcome", dry_outcome_name(DRY_OUTCOME_KEEP),
                      "short_bytes", 0, "candidates", list);
    else if (status != DRY_ERR_MEMORY)
        root = make_failure(err.text);
    json_decref(list);
    char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    return text;
}

/* --- reading JSON ------------------------------------------------------------------------- */

static const char *
name_verdict(unsigned i)
{
    return dry_verdict_name((enum dry_verdict)i);
}

static const char *
name_outcome(unsigned i)
{
    return dry_outcome_name((enum dry_outcome)i);
}

static void
read_candidate(struct fleet_in *r, const struct json_at *at, struct fleet_candidate *c)
{
    static const char *const keys[] = {
        "label",   "conf",       "since",    "verdict",    "allowed",   "recorded",
        "caveats", "peak_bytes", "has_gain", "gain_bytes", "gets_past", NULL};
    json_in_object(&r->in, at, keys);
    *c = (struct fleet_candidate){
        .label = fleet_in_text(r, at, "label"),
        .conf = fleet_in_text(r, at, "conf"),
        .since = fleet_in_text(r, at, "since"),
        .verdict = (enum dry_verdict)fleet_in_word(r, at, "verdict", name_verdict,
                                                   DRY_VERDICT_COUNT),
        .is_allowed = fleet_in_flag(r, at, "allowed"),
        .is_recorded = fleet_in_flag(r, at, "recorded"),
        .caveats = (uint32_t)(fleet_in_number(r, at, "caveats") & UINT32_MAX),
        .peak_bytes = fleet_in_number(r, at, "peak_bytes"),
        .has_gain = fleet_in_flag(r, at, "has_gain"),
        .gain_bytes = fleet_in_number(r, at, "gain_bytes"),
        .gets_past = fleet_in_flag(r, at, "gets_past"),
    };
}

static void
read_search(struct fleet_in *r, const struct json_at *root)
{
    static const char *const keys[] = {"schema",      "why",        "outcome",
                                       "short_bytes", "candidates", NULL};
    struct fleet_search *s = r->into;
    struct json_at list = json_in_key(root, "candidates");
    json_in_object(&r->in, root, keys);
    fleet_in_schema(r, root, "drystone.fleet.settings/1");
    s->why = fleet_in_text(r, root, "why");
    s->outcome = (enum dry_outcome)fleet_in_word(r, root, "outcome", name_outcome,
                                                 DRY_OUTCOME_COUNT);
    s->short_bytes = fleet_in_number(r, root, "short_bytes");
    s->is_there = !*s->why;
    size_t count = fleet_in_count(r, &list, FLEET_CANDIDATES_MAX);
    s->candidates = fleet_in_memory(r, count, sizeof *s->candidates);
    for (size_t i = 0; s->candidates && i < count; i++) {
        struct json_at at = json_in_element(&list, i);
        read_candidate(r, &at, &s->candidates[i]);
        s->candidate_count = i + 1;
    }
}

enum dry_status
fleet_settings_read(const char *text, size_t length, struct fleet_search *search,
                    struct dry_error *err)
{
    struct fleet_in r = {.into = search};
    *search = (struct fleet_search){.why = ""};
    enum dry_status status = fleet_in_read(&r, text, length, read_search, err);
    search->texts = r.texts;
    return status;
}

void
fleet_settings_finish(struct fleet_search *search)
{
    free(search->texts);
    free(search->candidates);
    *search = (struct fleet_search){.why = ""};
}
