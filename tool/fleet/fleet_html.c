/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page of a job: viewer/fleet.html with its data, see doc/design/viewer.md. It always
 * has all of --json. The lines and steps of ranks follow, RANKS_AN_ANSWER ranks in each
 * answer, the most important first, until the page's byte limit is reached.
 */
#include "fleet/fleet_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/drystone.h>

#include "base/command.h"
#include "base/fields.h"
#include "base/json_out.h"
#include "base/report.h"
#include "view/html.h"

#define RANKS_AN_ANSWER 64
#define KEY_BYTES 32
#define LEFT_OUT_BYTES 96
#define LEFT_OUT_MAX 3

struct fleet_html {
    const struct fleet_report *report;
    struct html_answers answers;
    size_t budget, used; /* bytes of the answers and their keys */
    size_t *order;       /* files that count, the most important first */
    size_t order_count;
    bool *is_taken; /* the file is in `order` */
    char left_out[LEFT_OUT_MAX][LEFT_OUT_BYTES];
    const char *left_out_list[LEFT_OUT_MAX];
    size_t left_out_count;
    bool has_failed; /* memory ran out */
};

/* --- answers ------------------------------------------------------------------------------ */

static char *
pack_json(json_t *root, size_t *length)
{
    char *text = json_out_dump(root, JSON_COMPACT | JSON_REAL_PRECISION(15));
    char *packed =
        text ? html_pack((const unsigned char *)text, strlen(text), length) : NULL;
    free(text);
    return packed;
}

/*
 * Add `root` under `key` if its packed text takes at most `most` bytes. Releases `root`.
 * Returns false if it was not added.
 */
static bool
keep(struct fleet_html *p, const char *key, json_t *root, size_t most)
{
    size_t length = 0;
    char *text = pack_json(root, &length);
    size_t bytes = length + strlen(key) + 8;
    bool is_kept = text && bytes <= most;
    if (!text || (is_kept && !html_answers_add(&p->answers, key, text, length)))
        p->has_failed = true;
    if (!is_kept || p->has_failed) {
        free(text);
        return false;
    }
    p->used += bytes;
    return true;
}

static size_t
left(const struct fleet_html *p)
{
    return p->used < p->budget ? p->budget - p->used : 0;
}

/* --- the order of ranks ------------------------------------------------------------------- */

static void
take(struct fleet_html *p, size_t file)
{
    const struct fleet_judgement *j = p->report->judgement;
    if (file == FLEET_NONE || p->is_taken[file] || j->members[file].use != FLEET_USED)
        return;
    p->is_taken[file] = true;
    p->order[p->order_count++] = file;
}

/* Order the ranks: first failure, those that differ, largest of each group, the rest. */
static bool
order_ranks(struct fleet_html *p)
{
    const struct fleet_judgement *j = p->report->judgement;
    p->order = calloc(j->count + 1, sizeof *p->order);
    p->is_taken = calloc(j->count + 1, sizeof *p->is_taken);
    if (!p->order || !p->is_taken)
        return false;
    take(p, j->first_failure);
    for (size_t i = 0; i < j->finding_count; i++)
        take(p, j->findings[i].file);
    for (size_t i = 0; i < j->group_count; i++)
        take(p, j->groups[i].largest);
    for (size_t i = 0; i < j->count; i++)
        take(p, i);
    return true;
}

/* --- what groups hold --------------------------------------------------------------------- */

static int
compare_held(const void *a, const void *b)
{
    const struct fleet_held *x = a, *y = b;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Collect what the ranks of a group hold, sorted by place. NULL: memory ran out. */
static struct fleet_held *
gather(const struct fleet_judgement *j, const struct fleet_group *g, size_t *count)
{
    size_t used = 0;
    *count = 0;
    for (size_t i = 0; i < g->count; i++) {
        size_t more;
        fleet_lines_get(&j->lines, g->members[i], &more);
        *count += more;
    }
    struct fleet_held *all = calloc(*count + 1, sizeof *all);
    for (size_t i = 0; all && i < g->count; i++) {
        size_t more;
        const struct fleet_held *held = fleet_lines_get(&j->lines, g->members[i], &more);
        if (more > 0)
            memcpy(all + used, held, more * sizeof *all);
        used += more;
    }
    if (all)
        qsort(all, *count, sizeof *all, compare_held);
    return all;
}

/* Make [place, median bytes, holders] of each place that half of a group holds. */
static json_t *
make_medians(const struct fleet_judgement *j, const struct fleet_group *g)
{
    size_t count;
    struct fleet_held *all = gather(j, g, &count);
    json_t *list = all ? json_array() : NULL;
    size_t middle = (g->count - 1) / 2;
    for (size_t i = 0, end; list && i < count; i = end) {
        for (end = i + 1; end < count && all[end].place == all[i].place; end++)
            continue;
        size_t zeros = g->count - (end - i); /* ranks that hold nothing at this place */
        if (middle >= zeros)
            list = json_out_append(
                list, json_pack("[I, o, I]", (json_int_t)all[i].place,
                                json_out_number(all[i + middle - zeros].bytes),
                                (json_int_t)(end - i)));
    }
    free(all);
    return list;
}

static json_t *
make_group_lines(const struct fleet_judgement *j)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < j->group_count; i++)
        list = json_out_append(
            list, j->groups[i].count > 1 ? make_medians(j, &j->groups[i]) : json_null());
    return list;
}

/* --- what ranks hold ---------------------------------------------------------------------- */

static json_t *
make_lines(const struct fleet_judgement *j, size_t file)
{
    const struct fleet_row *row = j->ranks[file].row;
    size_t count;
    const struct fleet_held *held = fleet_lines_get(&j->lines, file, &count);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        list = json_out_append(list, json_pack("[I, o, o]", (json_int_t)held[i].place,
                                               json_out_number(held[i].bytes),
                                               json_out_number(held[i].count)));
    json_t *growth =
        row->growth.bytes_per_step == 0
            ? json_null()
            : fields_add_json(json_object(), fleet_growth_fields, &row->growth);
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "lines", list, "rest_bytes",
                     json_out_number(row->rest_bytes), "conf", json_out_string(row->conf),
                     "steps", json_out_number(row->step_count), "growth", growth);
}

/* Make [step of the first peak, peaks ...] of a rank. */
static json_t *
make_peaks(const struct fleet_judgement *j, size_t file)
{
    const struct fleet_row *row = j->ranks[file].row;
    json_int_t first =
        j->is_from_end ? 1 - (json_int_t)row->peak_count : (json_int_t)row->first_peak;
    json_t *list = json_out_append(json_array(), json_integer(first));
    for (size_t i = 0; list && i < row->peak_count; i++)
        list = json_out_append(list, json_out_number(row->peaks[i]));
    return list;
}

/* Add an answer for each run of ranks until one does not fit. Returns the ranks added. */
static size_t
keep_runs(struct fleet_html *p, const char *name,
          json_t *(*make)(const struct fleet_judgement *j, size_t file))
{
    bool fits = true;
    size_t kept = 0;
    for (size_t i = 0; fits && i < p->order_count; i += RANKS_AN_ANSWER) {
        size_t end =
            p->order_count - i < RANKS_AN_ANSWER ? p->order_count : i + RANKS_AN_ANSWER;
        json_t *list = json_array();
        for (size_t k = i; list && k < end; k++)
            list = json_out_append(list, make(p->report->judgement, p->order[k]));
        char key[KEY_BYTES];
        snprintf(key, sizeof key, "%s/%zu", name, i / RANKS_AN_ANSWER);
        fits = keep(p, key, list, left(p));
        kept += fits ? end - i : 0;
    }
    return kept;
}

static void
say_left_out(struct fleet_html *p, const char *what, size_t kept)
{
    char *text = p->left_out[p->left_out_count];
    if (kept == p->order_count)
        return;
    snprintf(text, LEFT_OUT_BYTES, "%s of %zu of %zu ranks", what, p->order_count - kept,
             p->order_count);
    p->left_out_list[p->left_out_count++] = text;
}

/* --- about the page ----------------------------------------------------------------------- */

static json_t *
make_indices(const size_t *values, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        list = json_out_append(list, json_integer((json_int_t)values[i]));
    return list;
}

static json_t *
make_texts(const char *const *texts, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        list = json_out_append(list, json_out_string(texts[i]));
    return list;
}

static json_t *
make_findings(const struct fleet_judgement *j)
{
    json_t *list = json_array();
    for (size_t i = 0; i < j->finding_count; i++) {
        char text[FLEET_TEXT_BYTES];
        fleet_phrase_finding(j, &j->findings[i], text);
        list = json_out_append(list, json_out_string(text));
    }
    return list;
}

static json_t *
make_ranks(const struct fleet_judgement *j)
{
    json_t *list = json_array();
    for (size_t i = 0; i < j->group_count; i++) {
        char text[FLEET_RANKS_BYTES];
        fleet_phrase_ranks(j, &j->groups[i], text);
        list = json_out_append(list, json_out_string(text));
    }
    return list;
}

/* Make the sentences of the text report, null for those that it lacks. */
static json_t *
make_sentences(const struct fleet_report *r)
{
    const struct fleet_judgement *j = r->judgement;
    char layout[FLEET_TEXT_BYTES], failure[FLEET_TEXT_BYTES], settings[FLEET_TEXT_BYTES],
        advice[FLEET_TEXT_BYTES];
    bool has_failure = j->first_failure != FLEET_NONE;
    fleet_phrase_layout(j, layout);
    fleet_say_advice(r, advice);
    if (has_failure)
        fleet_say_failure(r, failure);
    if (r->is_searched)
        fleet_say_settings(r, settings);
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "layout", json_out_filled(layout),
                     "failure", has_failure ? json_out_string(failure) : json_null(),
                     "settings", r->is_searched ? json_out_string(settings) : json_null(),
                     "advice", json_out_string(advice), "nothing",
                     j->finding_count == 0 ? json_out_string(fleet_say_nothing(r))
                                           : json_null());
}

static json_t *
make_about(const struct fleet_html *p)
{
    const struct fleet_judgement *j = p->report->judgement;
    return json_pack("{s:s, s:s, s:i, s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "schema",
                     "drystone.fleet.page/1", "version", DRY_VERSION, "ranks_an_answer",
                     RANKS_AN_ANSWER, "compared", (int)fleet_judge_compares(j), "order",
                     make_indices(p->order, p->order_count), "places",
                     make_texts(j->lines.names, j->lines.place_count), "findings",
                     make_findings(j), "group_ranks", make_ranks(j), "sentences",
                     make_sentences(p->report), "left_out",
                     make_texts(p->left_out_list, p->left_out_count));
}

/* Reserve the bytes of `about`, added last, when it is known what was left out. */
static void
set_aside_about(struct fleet_html *p)
{
    size_t length = 0;
    free(pack_json(make_about(p), &length));
    length += (size_t)LEFT_OUT_MAX * LEFT_OUT_BYTES * 2;
    p->budget = p->budget > length ? p->budget - length : 0;
}

static bool
fill(struct fleet_html *p)
{
    const struct fleet_report *r = p->report;
    if (!order_ranks(p))
        return false;
    set_aside_about(p);
    keep(p, "fleet", fleet_report_make_json(r), SIZE_MAX);
    if (!keep(p, "groups", make_group_lines(r->judgement), left(p)))
        p->left_out_list[p->left_out_count++] = "what groups hold";
    say_left_out(p, "the lines", keep_runs(p, "lines", make_lines));
    say_left_out(p, "the steps", keep_runs(p, "peaks", make_peaks));
    keep(p, "about", make_about(p), SIZE_MAX);
    return !p->has_failed;
}

int
fleet_report_write_html(const struct fleet_report *r, const char *path,
                        uint64_t max_bytes)
{
    uint64_t written = 0;
    struct fleet_html p = {
        .report = r,
        .budget = max_bytes > fleet_html.length ? max_bytes - fleet_html.length : 0};
    int code =
        fill(&p)
            ? html_write(&fleet_html, "fleet", path, &p.answers, NULL, &written)
            : report_failure("fleet", NULL, EXIT_MACHINE, "no memory for the HTML file");
    if (code == EXIT_FINE)
        html_say_written(path, written, p.left_out_list, p.left_out_count);
    html_answers_finish(&p.answers);
    free(p.order);
    free(p.is_taken);
    return code;
}
