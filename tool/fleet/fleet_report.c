/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report as text. Its length does not grow with the ranks: groups, findings and
 * sampled steps are shown, and the rest is counted. --all shows everything.
 */
#include "fleet/fleet_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/table.h"
#include "base/term.h"
#include "fleet/fleet_phrases.h"
#include "fleet/rank_name.h"

#define FINDINGS_SHOWN 16
#define GROUPS_SHOWN 16
#define FILES_SHOWN 8
#define STEPS_SHOWN 8
#define GAPS_SHOWN 8
#define COLUMN 13 /* column at which text after a rank begins */

/* --- fragments of lines ------------------------------------------------------------------- */

static void
print_more(size_t count, const char *what)
{
    if (count > 0)
        printf("  ... and %zu more %s%s; --all shows them\n", count, what,
               count == 1 ? "" : "s");
}

static size_t
count_shown(const struct fleet_report *r, size_t count, size_t limit)
{
    return r->shows_all || count < limit ? count : limit;
}

/* Print "  rank 17    text" and wrap the text. */
static void
print_about(const struct term *term, const char *who, const char *text)
{
    if (term_columns(who) > COLUMN - 3) {
        printf("  %s\n%*s", who, COLUMN, "");
    } else {
        printf("  %s%*s", who, (int)(COLUMN - 2 - term_columns(who)), "");
    }
    term_print_wrapped(stdout, text, COLUMN, term->width);
}

static void
print_line_of_source(const struct term *term, const char *line)
{
    char text[1100];
    if (!*line)
        return;
    term_make_printable(text, sizeof text, line, strlen(line));
    printf("%*s", COLUMN, "");
    term_print_name(stdout, text, COLUMN, term->width);
}

/* --- head --------------------------------------------------------------------------------- */

static void
print_head(const struct fleet_report *r, const struct term *term)
{
    const struct fleet_judgement *j = r->judgement;
    term_print_subject(
        term, r->subject, TERM_BOLD, "%zu file%s, %zu rank%s in %zu group%s", j->count,
        j->count == 1 ? "" : "s", j->used_count, j->used_count == 1 ? "" : "s",
        j->group_count, j->group_count == 1 ? "" : "s");
}

/* --- findings ----------------------------------------------------------------------------- */

static void
print_findings(const struct fleet_report *r, const struct term *term)
{
    const struct fleet_judgement *j = r->judgement;
    size_t shown = count_shown(r, j->finding_count, FINDINGS_SHOWN);
    printf("\n%sWhat differs%s\n\n", term_style(term, TERM_BOLD),
           term_style(term, TERM_PLAIN));
    if (j->finding_count == 0)
        printf("  nothing: %s\n", fleet_say_nothing(r));
    for (size_t i = 0; i < shown; i++) {
        const struct fleet_finding *f = &j->findings[i];
        char who[FLEET_WHO_BYTES], text[FLEET_TEXT_BYTES];
        if (f->file != FLEET_NONE)
            fleet_phrase_rank(j, f->file, who);
        else
            snprintf(who, sizeof who, "group %zu", f->group);
        fleet_phrase_finding(j, f, text);
        print_about(term, who, text);
        print_line_of_source(term, f->line);
    }
    print_more(j->finding_count - shown, "finding");
}

/* --- groups ------------------------------------------------------------------------------- */

static void
add_group(const struct fleet_report *r, struct table *t, size_t number)
{
    const struct fleet_judgement *j = r->judgement;
    const struct fleet_group *g = &j->groups[number];
    char text[FLEET_RANKS_BYTES], bytes[TERM_NUMBER_BYTES];
    snprintf(text, sizeof text, "%zu", number);
    table_add(t, text);
    fleet_phrase_ranks(j, g, text);
    table_add(t, text);
    table_add(t, term_format_count(g->count, bytes));
    table_add(t, term_format_bytes(g->reserved.median, bytes));
    table_add(t, term_format_bytes(j->ranks[g->largest].row->reserved_peak, bytes));
    table_add(t, g->top_place == UINT32_MAX ? "" : j->lines.names[g->top_place]);
}

static bool
print_groups(const struct fleet_report *r, const struct term *term)
{
    const struct fleet_judgement *j = r->judgement;
    char text[FLEET_TEXT_BYTES];
    struct table t;
    size_t shown = count_shown(r, j->group_count, GROUPS_SHOWN);
    if (j->group_count == 0)
        return true;
    printf("\n%sGroups%s: ranks that hold alike, line by line\n\n",
           term_style(term, TERM_BOLD), term_style(term, TERM_PLAIN));
    table_init(&t, ">group <ranks >count >reserved >most <held_most_at");
    t.is_bounded = true;
    for (size_t g = 0; g < shown; g++)
        add_group(r, &t, g);
    bool done = table_print(&t, term);
    print_more(j->group_count - shown, "group");
    fleet_phrase_layout(j, text);
    if (*text) {
        printf("\n  ");
        term_print_wrapped(stdout, text, 2, term->width);
    }
    return done;
}

/* --- ranks, with --all -------------------------------------------------------------------- */

/* Add cause and trust. High trust is normal and not shown. Unknown ranks show a name. */
static void
add_verdict(struct table *t, const struct fleet_row *row, const char *name)
{
    char text[160];
    bool is_high = row->trust == DRY_TRUST_HIGH;
    snprintf(text, sizeof text, "%s%s%s%s%s%s%s", row->oom.is_there ? "oom, " : "",
             dry_cause_name(row->cause), is_high ? "" : ", ",
             is_high ? "" : dry_trust_name(row->trust), is_high ? "" : " trust",
             *name ? ": " : "", name);
    table_add(t, text);
}

static void
add_rank(const struct fleet_judgement *j, struct table *t, size_t file)
{
    const struct fleet_row *row = j->ranks[file].row;
    char who[FLEET_WHO_BYTES], bytes[TERM_NUMBER_BYTES];
    fleet_phrase_rank(j, file, who);
    bool is_known = j->ranks[file].rank != RANK_UNKNOWN;
    table_add(t, is_known ? who + strlen("rank ") : "-");
    table_add(t, term_format_bytes(row->reserved_peak, bytes));
    table_add(t, term_format_bytes(row->allocated_peak, bytes));
    table_add(t, term_format_bytes(row->at.releasable, bytes));
    table_add(t, term_format_bytes(row->at.stranded, bytes));
    table_add(t, term_format_count(row->retries, bytes));
    add_verdict(t, row, is_known ? "" : who);
}

static bool
print_ranks(const struct fleet_report *r, const struct term *term)
{
    const struct fleet_judgement *j = r->judgement;
    struct table t;
    if (!r->shows_all)
        return true;
    printf("\n%sRanks%s: peaks, and what was free at the moment that is judged\n\n",
           term_style(term, TERM_BOLD), term_style(term, TERM_PLAIN));
    table_init(&t, "<rank >reserved >allocated >cached >stranded >retries <verdict");
    t.is_bounded = true;
    for (size_t i = 0; i < j->count; i++) {
        if (j->members[i].use == FLEET_USED)
            add_rank(j, &t, i);
    }
    return table_print(&t, term);
}

/* --- files -------------------------------------------------------------------------------- */

static void
print_unused(const struct fleet_report *r, const struct term *term, size_t file)
{
    const struct fleet_judgement *j = r->judgement;
    const struct fleet_member *m = &j->members[file];
    char path[1024], other[400] = "", text[1024];
    term_make_printable(path, sizeof path, j->ranks[file].path,
                        strlen(j->ranks[file].path));
    if (m->other != FLEET_NONE)
        term_make_printable(other, sizeof other, j->ranks[m->other].path,
                            strlen(j->ranks[m->other].path));
    if (m->use == FLEET_SAME_CONTENT)
        snprintf(text, sizeof text, "the same bytes as %s", other);
    else if (m->use == FLEET_SAME_RANK)
        snprintf(text, sizeof text, "another file of its rank counts: %s", other);
    else
        snprintf(text, sizeof text, "%s", j->ranks[file].row->why);
    printf("  ");
    term_print_name(stdout, path, 2, term->width);
    printf("    ");
    term_print_name(stdout, text, 4, term->width);
}

static void
print_gaps(const struct fleet_report *r, const struct term *term)
{
    const struct fleet_judgement *j = r->judgement;
    size_t shown = count_shown(r, j->gap_count, GAPS_SHOWN), missing = 0;
    if (j->gap_count == 0)
        return;
    for (size_t i = 0; i < j->gap_count; i++)
        missing += (size_t)j->gaps[i].to - j->gaps[i].from + 1;
    printf("\n%sNo file%s of %zu rank%s below the highest:", term_style(term, TERM_BOLD),
           term_style(term, TERM_PLAIN), missing, missing == 1 ? "" : "s");
    for (size_t i = 0; i < shown; i++) {
        printf("%s %" PRIu32, i % 6 == 0 && i > 0 ? "\n " : "", j->gaps[i].from);
        if (j->gaps[i].to > j->gaps[i].from)
            printf("-%" PRIu32, j->gaps[i].to);
        printf("%s", i + 1 < j->gap_count ? "," : "");
    }
    printf("%s\n", shown < j->gap_count ? " ..." : "");
}

static void
print_files(const struct fleet_report *r, const struct term *term)
{
    const struct fleet_judgement *j = r->judgement;
    size_t unused = j->count - j->used_count, shown = count_shown(r, unused, FILES_SHOWN);
    size_t printed = 0;
    print_gaps(r, term);
    if (unused == 0)
        return;
    printf("\n%sFiles that do not count%s: %zu\n\n", term_style(term, TERM_BOLD),
           term_style(term, TERM_PLAIN), unused);
    for (size_t i = 0; i < j->count && printed < shown; i++) {
        if (j->members[i].use == FLEET_USED)
            continue;
        print_unused(r, term, i);
        printed++;
    }
    print_more(unused - shown, "file");
}

/* --- steps -------------------------------------------------------------------------------- */

static void
add_step(const struct fleet_judgement *j, struct table *t, const struct fleet_step *s)
{
    char text[TERM_NUMBER_BYTES], who[FLEET_WHO_BYTES];
    if (j->is_from_end && s->step == 0)
        snprintf(text, sizeof text, "last");
    else
        snprintf(text, sizeof text, "%" PRId64, s->step);
    table_add(t, text);
    table_add(t, term_format_count(s->rank_count, text));
    table_add(t, term_format_bytes(s->min, text));
    table_add(t, term_format_bytes(s->median, text));
    table_add(t, term_format_bytes(s->max, text));
    fleet_phrase_rank(j, s->max_file, who);
    table_add(t, who);
}

/* Print the steps; if there are many, an even sample with the first and the last. */
static bool
print_steps(const struct fleet_report *r, const struct term *term)
{
    const struct fleet_judgement *j = r->judgement;
    size_t shown = count_shown(r, j->step_count, STEPS_SHOWN);
    struct table t;
    if (j->step_count == 0)
        return true;
    printf("\n%sSteps%s: the active peak over ranks, aligned at the %s%s\n\n",
           term_style(term, TERM_BOLD), term_style(term, TERM_PLAIN),
           j->is_from_end ? "last" : "first",
           shown < j->step_count ? "; some of them" : "");
    table_init(&t, ">step >ranks >least >median >most <held_by");
    t.is_bounded = true;
    for (size_t i = 0; i < shown; i++) {
        size_t at = shown > 1 ? i * (j->step_count - 1) / (shown - 1) : 0;
        add_step(j, &t, &j->steps[at]);
    }
    return table_print(&t, term);
}

/* --- failure and change ------------------------------------------------------------------- */

static void
print_failure(const struct fleet_report *r, const struct term *term)
{
    const struct fleet_judgement *j = r->judgement;
    char who[FLEET_WHO_BYTES], text[FLEET_TEXT_BYTES];
    if (j->first_failure == FLEET_NONE)
        return;
    fleet_phrase_rank(j, j->first_failure, who);
    fleet_say_failure(r, text);
    printf("\n%sThe first failure%s%s\n\n", term_style(term, TERM_BOLD),
           term_style(term, TERM_PLAIN),
           j->is_first_by_clock ? ", by the hosts' clocks"
                                : ": the clocks do not tell; the lowest rank");
    print_about(term, who, text);
    print_line_of_source(term, j->ranks[j->first_failure].row->oom.line);
}

static void
print_change(const struct fleet_report *r, const struct term *term)
{
    char text[FLEET_TEXT_BYTES];
    printf("\n%sWhat to change%s\n\n", term_style(term, TERM_BOLD),
           term_style(term, TERM_PLAIN));
    if (r->is_searched) {
        fleet_say_settings(r, text);
        print_about(term, "settings", text);
    }
    fleet_say_advice(r, text);
    print_about(term, "the job", text);
    if (r->advice.finding)
        print_line_of_source(term, r->advice.finding->line);
}

bool
fleet_report_print(const struct fleet_report *r)
{
    struct term term;
    term_init(&term, stdout);
    print_head(r, &term);
    if (r->judgement->used_count > 0) {
        print_findings(r, &term);
        if (!print_groups(r, &term) || !print_ranks(r, &term) || !print_steps(r, &term))
            return false;
        print_failure(r, &term);
        print_change(r, &term);
    }
    print_files(r, &term);
    return true;
}
