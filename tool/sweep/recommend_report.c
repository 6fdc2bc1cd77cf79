/* SPDX-License-Identifier: Apache-2.0 */
/* See recommend_report.h. Sections: head, table, recommendation, JSON. */
#include "sweep/recommend_report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/command.h"
#include "base/json_out.h"
#include "base/table.h"
#include "base/term.h"
#include "record/provenance.h"

/* The column at which the text of the head and of the recommendation begins. */
#define COLUMN 12

struct view {
    struct term term;
    const struct recommend_report *report;
    const struct dry_recommend_summary *summary;
    const struct dry_candidate *candidates;
    size_t count;
    const struct dry_replay_check *check;
    const struct dry_replay_recorded *recorded;
};

static void
view_init(struct view *v, const struct recommend_report *r)
{
    term_init(&v->term, stdout);
    v->report = r;
    v->summary = dry_recommend_get_summary(r->recommendation);
    v->candidates = dry_recommend_get_candidates(r->recommendation, &v->count);
    v->check = dry_replay_get_check(r->replay);
    v->recorded = dry_replay_get_recorded(r->replay);
}

/* Print a word in the margin and a wrapped text. */
__attribute__((format(printf, 3, 4))) static void
print_item(const struct view *v, const char *word, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    printf("%-*s", COLUMN, word);
    term_print_wrapped(stdout, text, COLUMN, v->term.is_terminal ? v->term.width : 80);
}

/* --- head --------------------------------------------------------------------------------- */

static void
print_trust(const struct view *v)
{
    const struct dry_replay_check *c = v->check;
    char releases[120], reason[sizeof c->reason];
    provenance_say_releases(&v->summary->releases, releases, sizeof releases);
    if (c->possible && c->exact)
        print_item(v, "self-check", "%sexact%s: %s", term_style(&v->term, TERM_GREEN),
                   term_style(&v->term, TERM_PLAIN), releases);
    else if (c->possible)
        print_item(v, "self-check",
                   "%snot exact%s by the rules of PyTorch %s, see drystone replay: all "
                   "figures below are approximate",
                   term_style(&v->term, TERM_RED), term_style(&v->term, TERM_PLAIN),
                   c->compat);
    else {
        term_make_printable(reason, sizeof reason, c->reason, strlen(c->reason));
        print_item(v, "self-check", "%snot possible%s: %s: all figures below are %s",
                   term_style(&v->term, TERM_YELLOW), term_style(&v->term, TERM_PLAIN),
                   reason, v->summary->approximate ? "approximate" : "unchecked");
    }
}

static void
print_goal(const struct view *v)
{
    static const char *const texts[DRY_GOAL_COUNT] = {
        "",
        "fit: the smallest device on which it does not fail",
        "peak: the lowest peak of reserved memory",
        "stable: the fewest retries, then the least driver time",
    };
    char capacity[TERM_NUMBER_BYTES], high[TERM_NUMBER_BYTES];
    const struct dry_recommend_summary *s = v->summary;
    bool is_limited = s->capacity_bytes != UINT64_MAX;
    print_item(v, "goal", "%s; %s%s", texts[s->goal],
               is_limited ? "the device has " : "no limit is given or recorded",
               is_limited ? term_format_bytes(s->capacity_bytes, capacity) : "");
    if (s->capacity_high_bytes > 0)
        print_item(
            v, "",
            "proved by %s retr%s in the recording: that much or more, and less than "
            "%s",
            term_format_count(s->recorded_retries, capacity),
            s->recorded_retries == 1 ? "y" : "ies",
            term_format_bytes(s->capacity_high_bytes, high));
}

static void
print_recorded(const struct view *v)
{
    char conf[256], live[TERM_NUMBER_BYTES], request[TERM_NUMBER_BYTES],
        after[TERM_NUMBER_BYTES];
    const struct dry_recommend_summary *s = v->summary;
    term_make_printable(conf, sizeof conf, v->recorded->conf, strlen(v->recorded->conf));
    print_item(v, "recorded", "settings: %s%s",
               conf[0]                                    ? conf
               : strcmp(v->recorded->place, "torch") == 0 ? "default"
                                                          : "not PyTorch's",
               strlen(v->recorded->conf) >= sizeof conf ? "..." : "");
    if (strcmp(v->recorded->place, "torch") != 0)
        print_item(
            v, "",
            "recorded by another allocator than PyTorch's: the rows are what "
            "PyTorch's would do, and its default stands for the recorded settings");
    if (s->kept_is_lost)
        print_item(v, "",
                   "which could not be taken apart: no option of it is kept in "
                   "the candidates");
    else if (s->kept[0])
        print_item(v, "", "kept in every candidate: %s", s->kept);
    if (!s->oom_recorded)
        return;
    print_item(v, "", "out of memory at event %zu: %s in use, %s asked for",
               v->recorded->oom_event, term_format_bytes(s->oom_live_bytes, live),
               term_format_bytes(s->oom_request_bytes, request));
    if (v->check->oom_count > 1)
        print_item(v, "",
                   "the first of %s failures: a setting helps here only if it gets past "
                   "all of them (drystone explain looks at one)",
                   term_format_count(v->check->oom_count, after));
    print_item(
        v, "",
        "the program unwound then: what it would have gone on to need is not in the "
        "recording (%s event%s after it)",
        term_format_count(s->events_after_oom, after),
        s->events_after_oom == 1 ? "" : "s");
    if (!s->oom_comes_back && s->capacity_bytes != UINT64_MAX)
        print_item(v, "",
                   "begun on an empty device the recorded settings do not run out: "
                   "the cause is older than the window, and the rows below prove "
                   "little");
}

/* Print how all rows begin: on an empty device, with the blocks in use before the window.
   The recorded settings may thus reserve less here than in the record. */
static void
print_beginning(const struct view *v)
{
    const struct dry_recommend_summary *s = v->summary;
    const struct dry_run *run = &v->candidates[s->recorded].run;
    char peak[TERM_NUMBER_BYTES], recorded[TERM_NUMBER_BYTES];
    if (v->check->event_count == 0)
        print_item(v, "note",
                   "the file holds no events: the rows show how what is in use "
                   "could be packed, not what a program would do");
    if (!s->begins_warm) {
        print_item(v, "begins",
                   "cold: the window holds the first steps and what is "
                   "allocated only there");
        return;
    }
    term_format_bytes(run->reserved_peak_bytes, peak);
    term_format_bytes(s->as_recorded_peak_bytes, recorded);
    if (s->as_recorded_peak_bytes == 0 || s->capacity_bytes != UINT64_MAX ||
        strcmp(peak, recorded) == 0)
        print_item(v, "begins",
                   "warm; every row begins on an empty device with what was "
                   "in use before the window");
    else
        print_item(
            v, "begins",
            "warm; every row begins on an empty device with what was in use before "
            "the window: the recorded settings reserve %s then, %s in the recording",
            peak, recorded);
}

static void
print_floor(const struct view *v)
{
    const struct dry_recommend_summary *s = v->summary;
    char floor[TERM_NUMBER_BYTES];
    term_format_bytes(s->floor_bytes, floor);
    if (s->floor_event == SIZE_MAX)
        print_item(v, "in use",
                   "%s at the peak, before the first event: no settings run "
                   "on less",
                   floor);
    else
        print_item(v, "in use", "%s at the peak, at event %zu: no settings run on less",
                   floor, s->floor_event);
}

static void
print_head(const struct view *v)
{
    char count[TERM_NUMBER_BYTES], gain[TERM_NUMBER_BYTES];
    term_print_subject(&v->term, v->report->file, TERM_BOLD,
                       "device %" PRId32 ", %s event%s", v->recorded->device,
                       term_format_count(v->check->event_count, count),
                       v->check->event_count == 1 ? "" : "s");
    print_trust(v);
    print_goal(v);
    print_recorded(v);
    print_beginning(v);
    print_floor(v);
    print_item(v, "searched", "%zu run%s of the program; less than %s is no gain",
               v->summary->run_count, v->summary->run_count == 1 ? "" : "s",
               term_format_bytes(v->summary->min_gain_bytes, gain));
}

/* --- table -------------------------------------------------------------------------------- */

static const char *
get_label(const struct dry_candidate *c)
{
    if (c->is_recorded)
        return "recorded settings";
    return c->label[0] ? c->label : "default";
}

/* Format the memory saved; as in JSON, a loss is negative. */
static const char *
format_gain(const struct dry_candidate *c, char text[TERM_NUMBER_BYTES + 1])
{
    if (!c->has_gain || c->run.oom || c->is_recorded)
        return "-";
    uint64_t size =
        c->gain_bytes < 0 ? -(uint64_t)c->gain_bytes : (uint64_t)c->gain_bytes;
    text[0] = '-';
    term_format_bytes(size, text + 1);
    return c->gain_bytes < 0 ? text : text + 1;
}

/* Format the smallest sufficient device. "<" marks a bound: the search stopped early. */
static const char *
format_device(const struct view *v, const struct dry_candidate *c,
              char text[TERM_NUMBER_BYTES + 1])
{
    if (c->runs_on_bytes == 0 ||
        (c->runs_on_bytes == v->summary->capacity_bytes && !c->has_gain))
        return "-";
    bool is_exact =
        c->runs_on_bytes - c->fails_on_bytes <= v->summary->capacity_step_bytes;
    text[0] = '<';
    term_format_bytes(c->runs_on_bytes, text + 1);
    return is_exact ? text + 1 : text;
}

static void
add_row(struct table *t, const struct view *v, const struct dry_candidate *c)
{
    static const char *const verdicts[DRY_VERDICT_COUNT] = {"BEST", "good", "no gain",
                                                            "worse", "OOM"};
    char text[TERM_NUMBER_BYTES + 1];
    table_add(t, verdicts[c->verdict]);
    if (v->summary->goal == DRY_GOAL_FIT)
        table_add(t, format_device(v, c, text));
    else
        table_add(t, term_format_bytes(c->run.reserved_peak_bytes, text));
    table_add(t, format_gain(c, text));
    table_add(t, term_format_count((uint64_t)c->run.stats.num_alloc_retries, text));
    table_add(t, term_format_time(c->run.driver_time_ns / 1000, text));
    table_add(t, get_label(c));
}

static bool
print_table(const struct view *v)
{
    struct table t;
    table_init(&t, v->summary->goal == DRY_GOAL_FIT
                       ? "<verdict >runs_on >gain >retries >driver =settings"
                       : "<verdict >peak >gain >retries >driver =settings");
    t.is_bounded = true;
    size_t shown = v->count < v->report->row_max ? v->count : v->report->row_max;
    bool is_cut = v->summary->recorded >= shown;
    for (size_t i = 0; i < shown - is_cut; i++)
        add_row(&t, v, &v->candidates[i]);
    if (is_cut)
        add_row(&t, v, &v->candidates[v->summary->recorded]);
    bool ok = table_print(&t, &v->term);
    if (ok && shown < v->count)
        printf("  (%zu more: --rows 0 and --json have them all)\n", v->count - shown);
    return ok;
}

/* --- recommendation ----------------------------------------------------------------------- */

static int64_t
count_calls(const struct dry_candidate *c)
{
    return c->run.stats.num_device_alloc + c->run.stats.num_device_free;
}

/* Write ", with 2 retries": on so small a device, the run waits for the driver. */
static void
add_retries(const struct view *v, const struct dry_candidate *c, char *text,
            size_t capacity)
{
    char count[TERM_NUMBER_BYTES];
    text[0] = '\0';
    if (v->summary->goal == DRY_GOAL_FIT && c->runs_on_retries > 0)
        snprintf(text, capacity, ", with %s %s",
                 term_format_count(c->runs_on_retries, count),
                 c->runs_on_retries == 1 ? "retry" : "retries");
}

/* Return the figure that the goal optimizes. If the smallest device is unknown because
   runs ended early, return the reserved peak. */
static uint64_t
get_figure(const struct view *v, const struct dry_candidate *c, bool *is_device)
{
    *is_device = v->summary->goal == DRY_GOAL_FIT && c->runs_on_bytes > 0;
    return *is_device ? c->runs_on_bytes : c->run.reserved_peak_bytes;
}

/* Print what `best` gains in the goal's figure. */
static void
print_because(const struct view *v, const struct dry_candidate *best)
{
    const struct dry_candidate *recorded = &v->candidates[v->summary->recorded];
    char gain[TERM_NUMBER_BYTES], value[TERM_NUMBER_BYTES], retries[64];
    bool is_device;
    term_format_bytes(get_figure(v, best, &is_device), value);
    const char *does = is_device ? "runs on" : "reserves";
    add_retries(v, best, retries, sizeof retries);
    if (recorded->run.oom)
        print_item(v, "because", "it %s %s%s; the recorded settings run out of memory%s",
                   does, value, retries,
                   v->summary->oom_recorded ? "" : ", begun on an empty device");
    else if (best->has_gain && best->gain_bytes > 0)
        print_item(v, "because", "it %s %s%s, %s less than the recorded settings", does,
                   value, retries, term_format_bytes((uint64_t)best->gain_bytes, gain));
    else
        print_item(v, "because",
                   "it %s %s%s, and what the recorded settings set gains %s", does, value,
                   retries, best->is_default ? "no more" : "less");
}

/* Print the driver work that `best` needs, compared with the recorded settings. */
static void
print_cost(const struct view *v, const struct dry_candidate *best)
{
    const struct dry_candidate *recorded = &v->candidates[v->summary->recorded];
    char calls[TERM_NUMBER_BYTES], a[TERM_NUMBER_BYTES], b[TERM_NUMBER_BYTES];
    char retries[80] = "";
    int64_t more = count_calls(best) - count_calls(recorded);
    int64_t waits = best->run.stats.num_alloc_retries;
    int64_t waited = recorded->run.stats.num_alloc_retries;
    if (recorded->run.oom)
        return; /* not comparable: the recorded run ended early */
    term_format_count((uint64_t)(more < 0 ? -more : more), calls);
    if (waits != waited)
        snprintf(retries, sizeof retries, ", retries: %" PRId64 " instead of %" PRId64,
                 waits, waited);
    print_item(v, "cost", "%s%s device call%s, %s of driver time instead of %s%s",
               more ? calls : "as many",
               more < 0   ? " fewer"
               : more > 0 ? " more"
                          : "",
               more == 1 || more == -1 ? "" : "s",
               term_format_time(best->run.driver_time_ns / 1000, a),
               term_format_time(recorded->run.driver_time_ns / 1000, b), retries);
}

static void
print_margin(const struct view *v)
{
    const struct dry_recommend_summary *s = v->summary;
    char margin[TERM_NUMBER_BYTES], capacity[TERM_NUMBER_BYTES];
    if (s->capacity_bytes == UINT64_MAX)
        return;
    print_item(v, "margin", "%s of the device's %s",
               term_format_bytes(s->margin_bytes, margin),
               term_format_bytes(s->capacity_bytes, capacity));
}

static void
print_caveats(const struct view *v, const struct dry_candidate *c)
{
    const char *word = "caveats";
    for (uint32_t bit = 1; bit < 1u << DRY_CAVEAT_COUNT; bit <<= 1) {
        if (!(c->caveats & bit))
            continue;
        if (bit == DRY_CAVEAT_RELEASE)
            print_item(v, word,
                       "needs PyTorch %s: the file may be of %s, which refuses it",
                       c->since, v->summary->releases.first);
        else
            print_item(v, word, "%s", dry_caveat_text(bit));
        word = "";
    }
    if (c->since[0] && !(c->caveats & DRY_CAVEAT_RELEASE))
        print_item(v, word, "needs PyTorch %s", c->since);
}

/* Print the best candidate with other caveats, in case those of `best` are
   unacceptable. */
static void
print_next_best(const struct view *v, const struct dry_candidate *best)
{
    for (size_t i = 0; i < v->count; i++) {
        const struct dry_candidate *c = &v->candidates[i];
        if (c->verdict == DRY_VERDICT_GOOD && c->is_proved &&
            c->caveats != best->caveats) {
            print_item(v, "next best", "%s", get_label(c));
            return;
        }
    }
}

static void
print_change(const struct view *v)
{
    const struct dry_candidate *best = &v->candidates[v->summary->best];
    printf("recommendation: %s%s%s\n", term_style(&v->term, TERM_GREEN), get_label(best),
           term_style(&v->term, TERM_PLAIN));
    print_because(v, best);
    print_cost(v, best);
    print_margin(v);
    print_next_best(v, best);
    print_caveats(v, best);
    if (best->conf[0])
        printf("\n  export PYTORCH_CUDA_ALLOC_CONF='%s'\n", best->conf);
    else
        printf("\n  unset PYTORCH_CUDA_ALLOC_CONF\n");
}

static void
print_keep(const struct view *v)
{
    const struct dry_recommend_summary *s = v->summary;
    const struct dry_candidate *recorded = &v->candidates[s->recorded];
    bool is_device;
    uint64_t figure = get_figure(v, recorded, &is_device);
    char value[TERM_NUMBER_BYTES], floor[TERM_NUMBER_BYTES], spare[TERM_NUMBER_BYTES];
    printf("recommendation: keep the recorded settings\n");
    if (s->oom_recorded && !s->oom_comes_back && s->capacity_bytes != UINT64_MAX)
        print_item(
            v, "because",
            "begun empty they do not run out: what was missing was lost before the "
            "window; a recording from the program's start would show how");
    else if (s->goal == DRY_GOAL_STABLE)
        print_item(v, "because",
                   "nothing that was tried has fewer retries or noticeably "
                   "less driver time in as little memory");
    else
        print_item(
            v, "because",
            "they %s %s, of which %s are in use at the peak; the %s between is all "
            "that settings could save, and none that was tried saves enough",
            is_device ? "run on" : "reserve", term_format_bytes(figure, value),
            term_format_bytes(s->floor_bytes, floor),
            term_format_bytes(figure > s->floor_bytes ? figure - s->floor_bytes : 0,
                              spare));
    print_margin(v);
    print_caveats(v, recorded);
}

/* Print that the record cannot distinguish settings, and how to make one that can. */
static void
print_no_evidence(const struct view *v)
{
    printf("no evidence: the recording says nothing about settings\n");
    print_item(v, "because", "%s", v->summary->evidence_gap);
    print_item(v, "do", PROVENANCE_RECORD_IT);
}

static void
print_limit(const struct view *v)
{
    printf("%sno setting of placement helps%s\n", term_style(&v->term, TERM_RED),
           term_style(&v->term, TERM_PLAIN));
    print_item(v, "because",
               "the device had room for the request that failed: a memory fraction "
               "forbade it (drystone explain)");
}

static void
print_no_help(const struct view *v)
{
    const struct dry_recommend_summary *s = v->summary;
    char capacity[TERM_NUMBER_BYTES], floor[TERM_NUMBER_BYTES], rest[TERM_NUMBER_BYTES];
    bool is_capacity = s->outcome == DRY_OUTCOME_CAPACITY;
    uint64_t difference = is_capacity ? s->floor_bytes - s->capacity_bytes
                                      : s->capacity_bytes - s->floor_bytes;
    bool is_one = v->check->oom_count < 2;
    printf("%sno setting %s%s\n", term_style(&v->term, TERM_RED),
           is_one ? "helps" : "gets past all failures", term_style(&v->term, TERM_PLAIN));
    term_format_bytes(s->floor_bytes, floor);
    term_format_bytes(s->capacity_bytes, capacity);
    term_format_bytes(difference, rest);
    if (is_capacity)
        print_item(
            v, "because",
            "%s are in use at the peak and the device has %s: %s are missing under "
            "any settings",
            floor, capacity, rest);
    else
        print_item(v, "because",
                   "all that was tried runs out of memory, though %s in use at the peak "
                   "would leave %s of the device's %s",
                   floor, rest, capacity);
    const struct dry_candidate *recorded = &v->candidates[s->recorded];
    char need[TERM_NUMBER_BYTES];
    if (recorded->runs_on_bytes)
        print_item(v, "needed", "%s under the recorded settings",
                   term_format_bytes(recorded->runs_on_bytes, need));
}

bool
recommend_report_print(const struct recommend_report *report)
{
    struct view v;
    view_init(&v, report);
    print_head(&v);
    printf("\n");
    if (!print_table(&v))
        return false;
    printf("\n");
    if (v.summary->outcome == DRY_OUTCOME_CHANGE)
        print_change(&v);
    else if (v.summary->outcome == DRY_OUTCOME_KEEP)
        print_keep(&v);
    else if (v.summary->outcome == DRY_OUTCOME_NO_EVIDENCE)
        print_no_evidence(&v);
    else if (v.summary->outcome == DRY_OUTCOME_LIMIT)
        print_limit(&v);
    else
        print_no_help(&v);
    return true;
}

int
recommend_report_exit_code(const struct recommend_report *report)
{
    enum dry_outcome outcome = dry_recommend_get_summary(report->recommendation)->outcome;
    bool is_hopeless = outcome == DRY_OUTCOME_NONE || outcome == DRY_OUTCOME_CAPACITY ||
                       outcome == DRY_OUTCOME_LIMIT;
    return is_hopeless ? EXIT_FOUND : EXIT_FINE;
}

/* --- JSON --------------------------------------------------------------------------------- */

static json_t *
make_caveats(uint32_t caveats)
{
    json_t *list = json_array();
    for (uint32_t bit = 1; bit < 1u << DRY_CAVEAT_COUNT; bit <<= 1) {
        if (caveats & bit)
            json_array_append_new(list,
                                  json_pack("{s:s, s:s}", "name", dry_caveat_name(bit),
                                            "text", dry_caveat_text(bit)));
    }
    return list;
}

static json_t *
make_candidate(const struct dry_candidate *c)
{
    const struct dry_run *run = &c->run;
    return json_pack(
        "{s:o, s:o, s:s, s:b, s:b, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I,"
        " s:I, s:I, s:f, s:o, s:o, s:b}",
        "conf", json_out_string(c->conf), "label", json_out_string(c->label), "verdict",
        dry_verdict_name(c->verdict), "recorded", c->is_recorded, "default",
        c->is_default, "allowed", c->is_allowed, "oom", run->oom, "oom_at_event",
        json_out_known(run->oom, run->oom_event), "oom_bytes",
        json_out_known(run->oom, run->oom_size), "reserved_peak_bytes",
        json_out_number(run->reserved_peak_bytes), "allocated_peak_bytes",
        json_out_number(run->allocated_peak_bytes), "gain_bytes",
        c->has_gain ? json_integer((json_int_t)c->gain_bytes) : json_null(),
        "runs_on_bytes", json_out_known(c->runs_on_bytes > 0, c->runs_on_bytes),
        "fails_on_bytes", json_out_known(c->fails_on_bytes > 0, c->fails_on_bytes),
        "runs_on_retries", json_out_known(c->runs_on_bytes > 0, c->runs_on_retries),
        "num_alloc_retries", (json_int_t)run->stats.num_alloc_retries, "num_device_alloc",
        (json_int_t)run->stats.num_device_alloc, "num_device_free",
        (json_int_t)run->stats.num_device_free, "driver_time_us",
        (double)run->driver_time_ns / 1000.0, "since", json_out_filled(c->since),
        "caveats", make_caveats(c->caveats), "proved", c->is_proved);
}

static json_t *
make_candidates(const struct view *v)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < v->count; i++)
        list = json_out_append(list, make_candidate(&v->candidates[i]));
    return list;
}

static json_t *
make_releases(const struct dry_releases *r)
{
    return json_pack("{s:s, s:s, s:b, s:b, s:o}", "first", r->first, "last", r->last,
                     "reproduces", r->reproduces, "has_gap", r->has_gap, "not_before",
                     json_out_filled(r->not_before));
}

static json_t *
make_trust(const struct view *v)
{
    const struct dry_recommend_summary *s = v->summary;
    return json_pack(
        "{s:b, s:b, s:b, s:s, s:b, s:o, s:o}", "possible", v->check->possible, "exact",
        v->check->exact, "approximate", s->approximate, "compat", v->check->compat,
        "begins_warm", s->begins_warm, "as_recorded_peak_bytes",
        json_out_known(s->as_recorded_peak_bytes > 0, s->as_recorded_peak_bytes),
        "releases", make_releases(&s->releases));
}

static json_t *
make_oom(const struct view *v)
{
    const struct dry_recommend_summary *s = v->summary;
    if (!s->oom_recorded)
        return json_null();
    return json_pack("{s:o, s:b, s:o, s:o, s:o, s:o}", "event",
                     json_out_number(v->recorded->oom_event), "comes_back",
                     s->oom_comes_back, "in_use_bytes",
                     json_out_number(s->oom_live_bytes), "request_bytes",
                     json_out_number(s->oom_request_bytes), "events_after",
                     json_out_number(s->events_after_oom), "count",
                     json_out_number(v->check->oom_count));
}

int
recommend_report_print_json(const struct recommend_report *report)
{
    struct view v;
    view_init(&v, report);
    const struct dry_recommend_summary *s = v.summary;
    bool has_best = s->best != SIZE_MAX, is_limited = s->capacity_bytes != UINT64_MAX;
    json_t *root = json_pack(
        "{s:s, s:o, s:i, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o,"
        " s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
        "schema", "drystone.sweep-search/1", "file", json_out_string(report->file),
        "device", (int)v.recorded->device, "events",
        json_out_number(v.check->event_count), "goal", dry_goal_name(s->goal), "outcome",
        dry_outcome_name(s->outcome), "best", json_out_known(has_best, s->best), "conf",
        has_best ? json_out_string(v.candidates[s->best].conf) : json_null(), "recorded",
        json_out_number(s->recorded), "capacity_bytes",
        json_out_known(is_limited, s->capacity_bytes), "margin_bytes",
        json_out_known(is_limited && has_best, s->margin_bytes), "floor_bytes",
        json_out_number(s->floor_bytes), "floor_event",
        json_out_known(s->floor_event != SIZE_MAX, s->floor_event), "min_gain_bytes",
        json_out_number(s->min_gain_bytes), "capacity_step_bytes",
        json_out_number(s->capacity_step_bytes), "kept", json_out_string(s->kept),
        "kept_is_lost", s->kept_is_lost, "runs", json_out_number(s->run_count), "trust",
        make_trust(&v), "oom", make_oom(&v), "candidates", make_candidates(&v),
        "capacity_high_bytes",
        json_out_known(s->capacity_high_bytes > 0, s->capacity_high_bytes), "retries",
        json_out_number(s->recorded_retries), "evidence_gap",
        json_out_string(s->evidence_gap));
    return json_out_print("sweep", root);
}
