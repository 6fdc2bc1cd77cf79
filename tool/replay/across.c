/* SPDX-License-Identifier: Apache-2.0 */
/* The idea is in across.h. Memory: 8 bytes for each decision of two runs. */
#include "replay/across.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/fail.h"
#include "base/fnv.h"
#include "base/grow.h"
#include "base/json_out.h"
#include "base/report.h"
#include "base/term.h"

/* --- the releases ------------------------------------------------------------------------- */

static int
add_release(struct across *a, const char *version, size_t length)
{
    struct across_release *r = &a->releases[a->release_count];
    char shown[64];
    term_make_printable(shown, sizeof shown, version, length);
    if (a->release_count == ACROSS_RELEASES_MAX)
        return report_usage("replay", "--across takes at most %d releases",
                            ACROSS_RELEASES_MAX);
    snprintf(r->version, sizeof r->version, "%.*s", (int)(length < 64 ? length : 64),
             version);
    if (length >= sizeof r->version || !dry_replay_find_release(r->version, &r->rules) ||
        r->rules >= ACROSS_RULES_MAX)
        return report_usage("replay",
                            "--across: '%s' is not a release of PyTorch whose rules are "
                            "known; expected a list such as 2.9,2.12,2.15",
                            shown);
    a->release_count++;
    return EXIT_FINE;
}

int
across_parse(const char *text, struct across *a)
{
    *a = (struct across){.first = SIZE_MAX};
    int code = EXIT_FINE;
    for (const char *at = text; code == EXIT_FINE;) {
        at += strspn(at, " ");
        size_t length = strcspn(at, ", ");
        code = add_release(a, at, length);
        at += length;
        at += strspn(at, " ");
        if (*at != ',')
            break;
        at++;
    }
    for (size_t i = 0; i < a->release_count; i++) {
        size_t rules = a->releases[i].rules;
        a->first = rules < a->first ? rules : a->first;
        a->last = rules > a->last ? rules : a->last;
    }
    return code;
}

/* --- decisions ---------------------------------------------------------------------------- */

/* Receives the decisions of a run: keeps all hashes, or the text of one decision. */
struct decisions {
    uint64_t *hashes;
    size_t count, capacity;
    uint64_t hash; /* of the current line */
    size_t wanted; /* index of the decision whose text is kept; SIZE_MAX: keep hashes */
    char *line;
    size_t used;
};

static enum dry_status
end_line(struct decisions *d, struct dry_error *err)
{
    if (d->wanted == SIZE_MAX) {
        uint64_t *hashes = grow(d->hashes, d->count, &d->capacity, sizeof *hashes);
        if (!hashes)
            return fail_memory(err, "no memory for decisions");
        d->hashes = hashes;
        d->hashes[d->count] = d->hash;
    }
    d->count++;
    d->hash = FNV_BEGIN;
    return DRY_OK;
}

static enum dry_status
write_decisions(void *self, const void *bytes, size_t count, struct dry_error *err)
{
    struct decisions *d = self;
    const char *text = bytes;
    for (size_t i = 0; i < count; i++) {
        if (text[i] == '\n') {
            enum dry_status status = end_line(d, err);
            if (status != DRY_OK)
                return status;
            continue;
        }
        d->hash = fnv_add(d->hash, &text[i], 1);
        if (d->count == d->wanted && d->used + 1 < ACROSS_DECISION_BYTES)
            d->line[d->used++] = text[i];
    }
    return DRY_OK;
}

static enum dry_status
run_rules(struct dry_replay *replay, const struct dry_run_options *options,
          const struct across_rules *rules, struct decisions *d, struct dry_run *run,
          struct dry_error *err)
{
    struct dry_sink sink = {.write = write_decisions, .self = d};
    struct dry_run_options o = *options;
    o.compat = rules->release.version;
    o.begin_anew = true;
    o.decisions = &sink;
    d->hash = FNV_BEGIN;
    return dry_replay_run(replay, &o, run, err);
}

/* Repeat a run to get the text of one decision. */
static enum dry_status
tell_decision(struct dry_replay *replay, const struct dry_run_options *options,
              const struct across_rules *rules, size_t decision, char *line,
              struct dry_error *err)
{
    struct decisions d = {.wanted = decision, .line = line};
    struct dry_run_options o = *options;
    struct dry_run run;
    o.find_capacity = false;
    line[0] = '\0';
    enum dry_status status = run_rules(replay, &o, rules, &d, &run, err);
    line[d.used] = '\0';
    return status;
}

static enum dry_status
compare(struct across *a, size_t i, struct dry_replay *replay,
        const struct dry_run_options *options, const struct decisions both[2],
        struct dry_error *err)
{
    const struct decisions *before = &both[0], *now = &both[1];
    struct across_rules *r = &a->rules[i];
    size_t n = 0;
    while (n < before->count && n < now->count && before->hashes[n] == now->hashes[n])
        n++;
    r->has_before = true;
    r->differs = n < before->count || n < now->count;
    r->decision = n;
    if (!r->differs)
        return DRY_OK;
    enum dry_status status =
        tell_decision(replay, options, &a->rules[i - 1], n, r->before, err);
    return status == DRY_OK ? tell_decision(replay, options, r, n, r->now, err) : status;
}

enum dry_status
across_run(struct across *a, struct dry_replay *replay,
           const struct dry_run_options *options, struct dry_error *err)
{
    struct decisions both[2] = {{0}}; /* of the preceding rules, and of these */
    enum dry_status status = DRY_OK;
    for (size_t i = a->first; i <= a->last && status == DRY_OK; i++) {
        struct across_rules *r = &a->rules[i];
        both[1] = (struct decisions){.wanted = SIZE_MAX};
        *r = (struct across_rules){.release = DRY_INIT(struct dry_replay_release)};
        dry_replay_get_release(i, &r->release);
        status = run_rules(replay, options, r, &both[1], &r->run, err);
        if (status == DRY_OK && i > a->first)
            status = compare(a, i, replay, options, both, err);
        free(both[0].hashes);
        both[0] = both[1];
    }
    free(both[0].hashes);
    return status;
}

/* --- text --------------------------------------------------------------------------------- */

/* Write a decision's line, see drystone-replay(1), as a readable text. */
static void
describe(const char *line, char text[ACROSS_DECISION_BYTES])
{
    char what[32] = "", size[TERM_NUMBER_BYTES], at[TERM_NUMBER_BYTES];
    unsigned long long n[4] = {0};
    /* NOLINTNEXTLINE(cert-err34-c): the line was written by the replay */
    sscanf(line, "%31s %llu %llu %llu %llu", what, &n[0], &n[1], &n[2], &n[3]);
    if (strcmp(what, "alloc") == 0)
        snprintf(text, ACROSS_DECISION_BYTES,
                 "request %llu gets %s at %s of segment %llu", n[0],
                 term_format_bytes(n[3], size), term_format_bytes(n[2], at), n[1]);
    else if (strcmp(what, "segment_alloc") == 0)
        snprintf(text, ACROSS_DECISION_BYTES, "a new segment of %s",
                 term_format_bytes(n[1], size));
    else if (strcmp(what, "segment_map") == 0 || strcmp(what, "segment_unmap") == 0)
        snprintf(text, ACROSS_DECISION_BYTES, "%s %s segment %llu",
                 term_format_bytes(n[2], size),
                 what[8] == 'm' ? "more mapped in" : "unmapped in", n[0]);
    else if (strcmp(what, "segment_free") == 0)
        snprintf(text, ACROSS_DECISION_BYTES, "segment %llu is given back", n[0]);
    else if (strcmp(what, "free") == 0)
        snprintf(text, ACROSS_DECISION_BYTES, "the free of request %llu", n[0]);
    else if (strcmp(what, "oom") == 0)
        snprintf(text, ACROSS_DECISION_BYTES, "out of memory, asked for %s",
                 term_format_bytes(n[0], size));
    else
        snprintf(text, ACROSS_DECISION_BYTES, "the end");
}

/* Write "+2.10 GiB", "-512.00 MiB" or "as much". */
static const char *
write_difference(uint64_t before, uint64_t now, char text[TERM_NUMBER_BYTES + 1])
{
    text[0] = now > before ? '+' : '-';
    if (now == before)
        return "as much";
    term_format_bytes(now > before ? now - before : before - now, text + 1);
    return text;
}

static void
print_difference(const struct across_rules *r, const struct across_rules *before)
{
    char peak[TERM_NUMBER_BYTES + 1], was[ACROSS_DECISION_BYTES];
    char is[ACROSS_DECISION_BYTES], count[TERM_NUMBER_BYTES];
    char text[2 * ACROSS_DECISION_BYTES + 64];
    printf("  %-5s %s reserved at the peak", r->release.version,
           write_difference(before->run.reserved_peak_bytes, r->run.reserved_peak_bytes,
                            peak));
    if (r->run.oom != before->run.oom)
        printf(", %s", r->run.oom ? "out of memory now" : "no longer out of memory");
    printf(":\n        ");
    term_print_wrapped(stdout, r->release.change, 8, 80);
    describe(r->before, was);
    describe(r->now, is);
    snprintf(text, sizeof text, "first at decision %s: %s, instead of %s",
             term_format_count(r->decision + 1, count), is, was);
    printf("        ");
    term_print_wrapped(stdout, text, 8, 80);
}

void
across_print(const struct across *a)
{
    bool is_any = false;
    printf("\nwhat changed\n");
    for (size_t i = a->first; i <= a->last; i++) {
        const struct across_rules *r = &a->rules[i];
        if (r->has_before && r->differs) {
            print_difference(r, &a->rules[i - 1]);
            is_any = true;
        }
    }
    if (!is_any)
        printf("  nothing: every release places this program alike\n");
    for (size_t i = 0; i < a->release_count; i++) {
        const struct across_release *r = &a->releases[i];
        const char *rules = a->rules[r->rules].release.version;
        if (strcmp(rules, r->version) != 0)
            printf("  %s has the rules of %s\n", r->version, rules);
    }
}

/* --- JSON --------------------------------------------------------------------------------- */

static json_t *
make_rules(const struct across_rules *r, const struct across_rules *before)
{
    json_int_t was = (json_int_t)before->run.reserved_peak_bytes;
    json_int_t is = (json_int_t)r->run.reserved_peak_bytes;
    json_t *first = json_null();
    if (r->differs)
        first =
            json_pack("{s:I, s:o, s:o}", "decision", (json_int_t)r->decision, "before",
                      json_out_string(r->before), "now", json_out_string(r->now));
    return json_pack("{s:s, s:s, s:b, s:I, s:o}", "release", r->release.version, "change",
                     r->release.change, "differs", (int)r->differs,
                     "reserved_peak_difference_bytes", is - was, "first", first);
}

json_t *
across_make_json(const struct across *a)
{
    json_t *list = json_array();
    for (size_t i = a->first + 1; list && i <= a->last; i++)
        list = json_out_append(list, make_rules(&a->rules[i], &a->rules[i - 1]));
    return list;
}
