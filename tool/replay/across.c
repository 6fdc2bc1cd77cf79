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

/* Receives the decisions of a run: keeps all hashes, or one decision. */
struct decisions {
    uint64_t *hashes;
    size_t count, capacity;
    size_t wanted; /* index of the decision that is kept; SIZE_MAX: keep hashes */
    struct dry_decision *kept;
};

_Static_assert(sizeof(struct dry_decision) == 8 + 4 * sizeof(uint64_t),
               "it is hashed whole, so it has no padding");

static enum dry_status
take_decision(void *self, const struct dry_decision *decision, struct dry_error *err)
{
    struct decisions *d = self;
    if (d->wanted == SIZE_MAX) {
        uint64_t *hashes = grow(d->hashes, d->count, &d->capacity, sizeof *hashes);
        if (!hashes)
            return fail_memory(err, "no memory for decisions");
        d->hashes = hashes;
        d->hashes[d->count] = fnv_add(FNV_BEGIN, decision, sizeof *decision);
    }
    if (d->count == d->wanted)
        *d->kept = *decision;
    d->count++;
    return DRY_OK;
}

static enum dry_status
run_rules(struct dry_replay *replay, const struct dry_run_options *options,
          const struct across_rules *rules, struct decisions *d, struct dry_run *run,
          struct dry_error *err)
{
    struct dry_decision_sink sink = {.take = take_decision, .self = d};
    struct dry_run_options o = *options;
    o.compat = rules->release.version;
    o.begin_anew = true;
    o.decisions = &sink;
    return dry_replay_run(replay, &o, run, err);
}

/* Repeat a run to get one decision. */
static enum dry_status
find_decision(struct dry_replay *replay, const struct dry_run_options *options,
              const struct across_rules *rules, size_t index,
              struct dry_decision *decision, struct dry_error *err)
{
    struct decisions d = {.wanted = index, .kept = decision};
    struct dry_run_options o = *options;
    struct dry_run run;
    o.find_capacity = false;
    *decision = (struct dry_decision){.action = DRY_ACTION_OTHER};
    return run_rules(replay, &o, rules, &d, &run, err);
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
        find_decision(replay, options, &a->rules[i - 1], n, &r->before, err);
    return status == DRY_OK ? find_decision(replay, options, r, n, &r->now, err) : status;
}

enum dry_status
across_run(struct across *a, struct dry_replay *replay,
           const struct dry_run_options *options, struct dry_error *err)
{
    struct decisions both[2] = {{0}}; /* the preceding rules', and those of `r` */
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

#define DESCRIBED_BYTES 128

/* Write a decision as a readable text. */
static void
describe(const struct dry_decision *d, char text[DESCRIBED_BYTES])
{
    char size[TERM_NUMBER_BYTES], at[TERM_NUMBER_BYTES];
    term_format_bytes(d->size_bytes, size);
    if (d->action == DRY_ACTION_ALLOC)
        snprintf(text, DESCRIBED_BYTES,
                 "request %" PRIu64 " gets %s at %s of segment %" PRIu32, d->request,
                 size, term_format_bytes(d->offset_bytes, at), d->segment);
    else if (d->action == DRY_ACTION_SEGMENT_ALLOC)
        snprintf(text, DESCRIBED_BYTES, "a new segment of %s", size);
    else if (d->action == DRY_ACTION_SEGMENT_MAP || d->action == DRY_ACTION_SEGMENT_UNMAP)
        snprintf(text, DESCRIBED_BYTES, "%s %s segment %" PRIu32, size,
                 d->action == DRY_ACTION_SEGMENT_MAP ? "more mapped in" : "unmapped in",
                 d->segment);
    else if (d->action == DRY_ACTION_SEGMENT_FREE)
        snprintf(text, DESCRIBED_BYTES, "segment %" PRIu32 " is given back", d->segment);
    else if (d->action == DRY_ACTION_FREE_REQUESTED)
        snprintf(text, DESCRIBED_BYTES, "the free of request %" PRIu64, d->request);
    else if (d->action == DRY_ACTION_OOM)
        snprintf(text, DESCRIBED_BYTES, "out of memory, asked for %s", size);
    else
        snprintf(text, DESCRIBED_BYTES, "the end");
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
    char peak[TERM_NUMBER_BYTES + 1], was[DESCRIBED_BYTES];
    char is[DESCRIBED_BYTES], count[TERM_NUMBER_BYTES];
    char text[2 * DESCRIBED_BYTES + 64];
    printf("  %-5s %s reserved at the peak", r->release.version,
           write_difference(before->run.reserved_peak_bytes, r->run.reserved_peak_bytes,
                            peak));
    if (r->run.oom != before->run.oom)
        printf(", %s", r->run.oom ? "out of memory now" : "no longer out of memory");
    printf(":\n        ");
    term_print_wrapped(stdout, r->release.change, 8, 80);
    describe(&r->before, was);
    describe(&r->now, is);
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

/* Make the decision's line, see drystone-replay(1), without its newline. */
static json_t *
make_decision(const struct dry_decision *decision)
{
    char line[DRY_DECISION_BYTES];
    dry_decision_write(decision, line);
    line[strcspn(line, "\n")] = '\0';
    return json_out_string(line);
}

static json_t *
make_rules(const struct across_rules *r, const struct across_rules *before)
{
    json_int_t was = (json_int_t)before->run.reserved_peak_bytes;
    json_int_t is = (json_int_t)r->run.reserved_peak_bytes;
    json_t *first = json_null();
    if (r->differs)
        first =
            json_pack("{s:I, s:o, s:o}", "decision", (json_int_t)r->decision, "before",
                      make_decision(&r->before), "now", make_decision(&r->now));
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
