/* SPDX-License-Identifier: Apache-2.0 */

/* Cost: one self-check per row of rules except the recorded one's; each ends at its first mismatch.
   The replay keeps the answer, so this happens once. releases.h has the idea. */
#include "replay/releases.h"

#include "place/torch/torch.h"
#include "replay/replay_state.h"

unsigned
dryi_release_number(const char *release)
{
    unsigned part[2] = {0, 0};
    const char *at = release;
    for (unsigned i = 0; i < 2; i++) {
        const char *begin = at;
        for (; *at >= '0' && *at <= '9' && at - begin < 4; at++)
            part[i] = part[i] * 10 + (unsigned)(*at - '0');
        if (at == begin || (i == 0 && *at++ != '.'))
            return 0;
    }
    return part[0] * 100 + (part[1] < 100 ? part[1] : 99);
}

/* --- fields in the file ------------------------------------------------------------------- */

struct sign {
    const char *release, *what;
};

/* Return the note of the device's first event, or NULL if the file has none. */
static const struct dry_note *
first_note(const struct dry_replay *r)
{
    const struct dry_trace_view *v = r->view;
    size_t first = r->device->first_event;
    if (r->device->event_count == 0 || v->note[first] == DRY_NONE)
        return NULL;
    return dry_trace_note(r->trace, v->note[first]);
}

/*
 * Find the newest field in a snapshot, which tells the oldest possible release. The pull requests
 * that added the fields: pytorch#165490 (2025-10), #152707 (2025-05), #129072 (2024-06), #112266
 * (2023-10), #96995 (2023-03).
 */
static struct sign
find_sign(const struct dry_replay *r)
{
    const struct dry_trace_view *v = r->view;
    const struct dry_note *note = first_note(r);
    if (v->kind != DRY_TRACE_SNAPSHOT)
        return (struct sign){"2.0", ""};
    if (note && note->user_metadata != DRY_NONE)
        return (struct sign){"2.10", "user_metadata in its events"};
    if (note && note->compile_context != DRY_NONE)
        return (struct sign){"2.8", "compile_context in its events"};
    if (v->annotation_count > 0)
        return (struct sign){"2.4", "external_annotations"};
    if (r->device->event_count > 0 && !(note && note->flags & DRY_NOTE_NO_TIME))
        return (struct sign){"2.2", "time_us in its events"};
    if (v->settings.known)
        return (struct sign){"2.1", "allocator_settings"};
    return (struct sign){"2.0", ""};
}

/* --- rules that reproduce the record ------------------------------------------------------ */

static enum dry_status
try_row(struct dry_replay *r, const struct dryi_torch_rules *rules, bool *is_exact,
        struct dry_error *err)
{
    struct dryi_self_check_subject subject = {
        .initial_layout = &r->initial_layout,
        .conf = &r->recorded_conf,
        .rules = rules,
        .progress = r->options.progress,
        .progress_self = r->options.progress_self,
        .is_trial = true,
    };
    struct dryi_self_check_outcome outcome;
    enum dry_status status = dryi_self_check_run(&r->program, &subject, &outcome, err);
    *is_exact = status == DRY_OK && outcome.check.exact;
    return status == DRY_ERR_FORMAT ? DRY_OK : status;
}

/* Remove the rows of rules that do not reproduce the record. */
static enum dry_status
keep_exact_rows(struct dry_replay *r, uint32_t *rows, struct dry_error *err)
{
    size_t count;
    const struct dryi_torch_rules *all = dryi_torch_rules_all(&count);
    enum dry_status status = DRY_OK;
    for (size_t i = 0; i < count && status == DRY_OK; i++) {
        bool is_exact = &all[i] == r->rules;
        if (!is_exact && *rows & UINT32_C(1) << i)
            status = try_row(r, &all[i], &is_exact, err);
        if (!is_exact)
            *rows &= ~(UINT32_C(1) << i);
    }
    return status;
}

/* --- the range of releases ---------------------------------------------------------------- */

/* Return the rows of rules used by releases from `release` on. */
static uint32_t
rows_from(const char *release)
{
    size_t count;
    const struct dryi_torch_rules *all = dryi_torch_rules_all(&count);
    uint32_t rows = 0;
    for (size_t i = 0; i < count; i++) {
        if (dryi_release_number(all[i].last) >= dryi_release_number(release))
            rows |= UINT32_C(1) << i;
    }
    return rows;
}

static void
set_range(struct dry_releases *releases, uint32_t rows, const char *not_before)
{
    size_t count;
    const struct dryi_torch_rules *all = dryi_torch_rules_all(&count);
    unsigned first = (unsigned)__builtin_ctz(rows);
    unsigned last = 31 - (unsigned)__builtin_clz(rows);
    bool is_later =
        dryi_release_number(not_before) > dryi_release_number(all[first].release);
    if (dryi_release_number(not_before) < dryi_release_number(all[first].release))
        releases->not_before = ""; /* the rules exclude older
                                      releases than the field does */
    releases->first = is_later ? not_before : all[first].release;
    releases->last = all[last].last;
    releases->has_gap = rows >> first != (UINT32_C(2) << (last - first)) - 1;
}

static enum dry_status
find(struct dry_replay *r, struct dry_error *err)
{
    struct dry_releases *found = &r->releases;
    struct sign sign = find_sign(r);
    *found = (struct dry_releases){.not_before = sign.what};
    uint32_t rows = rows_from(sign.release);
    if (r->check.possible && r->check.exact) {
        uint32_t exact = rows;
        enum dry_status status = keep_exact_rows(r, &exact, err);
        if (status != DRY_OK)
            return status;
        found->reproduces = exact != 0;
        rows = exact ? exact : rows; /* no row is left if fields of
                                        several releases are mixed */
    }
    set_range(found, rows, sign.release);
    r->release_rows = rows;
    return DRY_OK;
}

/* Use the release that the caller named. */
static void
take_named(struct dry_replay *r)
{
    size_t count;
    const struct dryi_torch_rules *all = dryi_torch_rules_all(&count);
    r->releases = (struct dry_releases){.first = r->options.compat,
                                        .last = r->options.compat,
                                        .reproduces = r->check.possible && r->check.exact,
                                        .not_before = ""};
    r->release_rows = UINT32_C(1) << (r->rules - all);
}

enum dry_status
dryi_replay_find_rows(struct dry_replay *replay, struct dry_releases *releases,
                      uint32_t *rows, struct dry_error *err)
{
    enum dry_status status = DRY_OK;
    if (replay->release_rows == 0 && replay->options.compat)
        take_named(replay);
    else if (replay->release_rows == 0)
        status = find(replay, err);
    if (status != DRY_OK)
        return status;
    *releases = replay->releases;
    *rows = replay->release_rows;
    return DRY_OK;
}

enum dry_status
dry_replay_find_releases(struct dry_replay *replay, struct dry_releases *releases,
                         struct dry_error *err)
{
    uint32_t rows;
    return dryi_replay_find_rows(replay, releases, &rows, err);
}
