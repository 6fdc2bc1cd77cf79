/* SPDX-License-Identifier: Apache-2.0 */
/* Search the settings of one rank, write the result as JSON, read it back strictly. */
#include <stdlib.h>
#include <string.h>

#include <drystone/drystone.h>

#include "base/fail.h"
#include "base/fields.h"
#include "base/json_out.h"
#include "fleet/fleet_in.h"
#include "fleet/fleet_settings.h"
#include "fleet/fleet_study.h"

#define SCHEMA "drystone.fleet.settings/2"

/* --- tables ------------------------------------------------------------------------------- */

/* clang-format off */
FIELDS_WORD(name_verdict, dry_verdict_name, enum dry_verdict)
FIELDS_WORD(name_outcome, dry_outcome_name, enum dry_outcome)

#define ALWAYS DRY_KNOWN_ALWAYS, 0, false
#define CANDIDATE(...) DRY_FIELD_OF(struct dry_candidate, __VA_ARGS__)
#define CANDIDATE_IF(known, member) DRY_KNOWN_##known, offsetof(struct dry_candidate, member), false

static const struct dry_field candidate_rows[] = {
    CANDIDATE("conf", TEXT, NONE, conf, ALWAYS, "the settings"),
    CANDIDATE("label", TEXT, NONE, label, ALWAYS, "the same without what is kept"),
    CANDIDATE("since", TEXT, NONE, since, CANDIDATE_IF(IF_FILLED, since),
              "the first release that has them"),
    DRY_WORD_OF(struct dry_candidate, "verdict", verdict, name_verdict, DRY_VERDICT_COUNT, ALWAYS,
                "what they are worth"),
    CANDIDATE("allowed", BOOL, NONE, is_allowed, ALWAYS, "they may be advised"),
    CANDIDATE("recorded", BOOL, NONE, is_recorded, ALWAYS, "they are the recorded settings"),
    CANDIDATE("caveats", U32, NONE, caveats, ALWAYS, "bits of enum dry_caveat"),
    CANDIDATE("reserved_peak", U64, BYTES, run.reserved_peak_bytes, ALWAYS, "reserved at the peak"),
    CANDIDATE("gain_bytes", I64, BYTES, gain_bytes, CANDIDATE_IF(IF, has_gain),
              "saved at the peak, 0 if they cost"),
    CANDIDATE("gets_past", BOOL, NONE, run.gets_past, ALWAYS, "they get past the recorded out-of-memory"),
};
const struct dry_fields fleet_candidate_fields = {candidate_rows,
                                                  sizeof candidate_rows / sizeof *candidate_rows};

#define SEARCH(...) DRY_FIELD_OF(struct fleet_search, __VA_ARGS__)
static const struct dry_field search_rows[] = {
    SEARCH("why", TEXT, NONE, why, ALWAYS, "why the search failed"),
    DRY_WORD_OF(struct fleet_search, "outcome", outcome, name_outcome, DRY_OUTCOME_COUNT, ALWAYS,
                "the outcome of drystone sweep"),
    SEARCH("short_bytes", U64, BYTES, short_bytes, ALWAYS, "missing, whatever the settings"),
};
static const struct dry_fields search_fields = {search_rows, sizeof search_rows / sizeof *search_rows};
/* clang-format on */

/* --- writing JSON ------------------------------------------------------------------------- */

static json_t *
make_candidate(const struct dry_candidate *candidate)
{
    struct dry_candidate c = *candidate;
    c.gain_bytes = c.gain_bytes > 0 ? c.gain_bytes : 0;
    return fields_add_json(json_object(), fleet_candidate_fields, &c);
}

/* Make the document of a search. Owns `candidates` in any case. */
static json_t *
make_document(const struct fleet_search *search, json_t *candidates)
{
    return fields_add_json(
        json_pack("{s:s, s:o}", "schema", SCHEMA, "candidates", candidates),
        search_fields, search);
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
    const struct fleet_search made = {
        .why = "",
        .outcome = s->outcome,
        .short_bytes = lacks ? s->floor_bytes - s->capacity_bytes : 0,
    };
    return make_document(&made, list);
}

static json_t *
make_failure(const char *why)
{
    const struct fleet_search made = {.why = why, .outcome = DRY_OUTCOME_NO_EVIDENCE};
    return make_document(&made, json_array());
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
    return json_out_dump(root, JSON_COMPACT);
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

/* Replay the program from its start under each proposal, and append the results to `list`. */
static enum dry_status
try_proposals(const struct fleet_study *study,
              const struct dry_candidate *const *proposals, size_t count, json_t *list,
              struct dry_error *err)
{
    struct dry_run_options options;
    struct dry_run usual;
    dry_run_options_init(&options);
    options.begin_anew = 1;
    options.capacity_bytes = 0;
    enum dry_status status = dry_replay_run(study->replay, &options, &usual, err);
    for (size_t i = 0; status == DRY_OK && i < count; i++) {
        struct dry_candidate c = {.label = proposals[i]->label,
                                  .conf = proposals[i]->conf,
                                  .since = proposals[i]->since,
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
                   const struct dry_candidate *const *proposals, size_t proposal_count)
{
    struct fleet_study study;
    struct dry_error err;
    const struct fleet_search made = {.why = "", .outcome = DRY_OUTCOME_KEEP};
    json_t *list = json_array(), *root = NULL;
    enum dry_status status = fleet_study_open(&study, path, memory_bytes_max, &err);
    if (status == DRY_OK && list && !study.is_empty)
        status = try_proposals(&study, proposals, proposal_count, list, &err);
    fleet_study_close(&study);
    if (status == DRY_OK)
        root = make_document(&made, json_incref(list));
    else if (status != DRY_ERR_MEMORY)
        root = make_failure(err.text);
    json_decref(list);
    return json_out_dump(root, JSON_COMPACT);
}

/* --- reading JSON ------------------------------------------------------------------------- */

static void
read_search(struct fleet_in *r, const struct json_at *root)
{
    static const char *const keys[] = {"schema", "candidates", NULL};
    struct fleet_search *s = r->into;
    struct json_at list = json_in_key(root, "candidates");
    fleet_in_schema(r, root, SCHEMA);
    fleet_in_check_keys(r, root, search_fields, keys);
    fleet_in_fields(r, root, search_fields, s);
    s->is_there = !*s->why;
    s->candidates = fleet_in_list(r, &list, fleet_candidate_fields, sizeof *s->candidates,
                                  FLEET_CANDIDATES_MAX, &s->candidate_count);
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
