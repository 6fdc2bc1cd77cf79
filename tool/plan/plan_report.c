/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as text: its cost, what each range keeps, and the methods compared. */
#include "plan/plan_report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/command.h"
#include "base/report.h"
#include "base/table.h"

#define ITEM_COLUMN 12
#define ITEM_WIDTH 80
#define ROWS_MAX 40
#define GROUP_MIN 3   /* repetitions of a pattern needed to print it as one row */
#define PATTERN_MAX 4 /* items in a repeated pattern, at most */
#define INDENT_MAX 8

/* --- words -------------------------------------------------------------------------------- */

const char *
plan_format_time(uint64_t ns, char text[TERM_NUMBER_BYTES])
{
    if (ns < 1000)
        snprintf(text, TERM_NUMBER_BYTES, "%" PRIu64 " ns", ns);
    else if (ns < 1000000)
        snprintf(text, TERM_NUMBER_BYTES, "%.4g us", (double)ns / 1e3);
    else if (ns < 1000000000)
        snprintf(text, TERM_NUMBER_BYTES, "%.4g ms", (double)ns / 1e6);
    else if (ns < UINT64_C(120000000000))
        snprintf(text, TERM_NUMBER_BYTES, "%.4g s", (double)ns / 1e9);
    else
        term_format_time(ns / 1000, text);
    return text;
}

const char *
plan_format_share(uint64_t part, uint64_t whole, char text[TERM_NUMBER_BYTES])
{
    double percent = 100.0 * (double)part / (double)whole;
    if (whole == 0)
        snprintf(text, TERM_NUMBER_BYTES, "-");
    else if (part == 0)
        snprintf(text, TERM_NUMBER_BYTES, "0 %%");
    else
        snprintf(text, TERM_NUMBER_BYTES, percent < 9.995 ? "%.2f %%" : "%.1f %%",
                 percent);
    return text;
}

const char *
plan_format_where(const struct dry_chain *chain, enum dry_plan_phase phase,
                  uint64_t stage, char text[PLAN_WHERE_BYTES])
{
    char name[CHAIN_NAME_BYTES];
    if (phase == DRY_PHASE_STEP || stage >= dry_chain_get_count(chain)) {
        snprintf(text, PLAN_WHERE_BYTES, "the optimizer's step");
        return text;
    }
    chain_stage_name(chain, (size_t)stage, name);
    snprintf(text, PLAN_WHERE_BYTES, "the %s of stage %" PRIu64 "%s%s%s",
             phase == DRY_PHASE_RECOMPUTE ? "second forward" : dry_phase_name(phase),
             stage, *name ? " (" : "", name, *name ? ")" : "");
    return text;
}

void
plan_print_item(const char *word, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    printf("%-*s", ITEM_COLUMN, word);
    term_print_wrapped(stdout, text, ITEM_COLUMN, ITEM_WIDTH);
}

/* --- the head ----------------------------------------------------------------------------- */

static void
print_chain(const struct plan_report *r)
{
    const struct dry_chain_frame *frame = dry_chain_get_frame(r->input->chain);
    char count[TERM_NUMBER_BYTES], time[TERM_NUMBER_BYTES], bytes[TERM_NUMBER_BYTES];
    size_t stages = dry_chain_get_count(r->input->chain);
    struct term term;
    term_init(&term, stdout);
    term_print_subject(&term, r->file, TERM_BOLD,
                       "%s stage%s, %s a step without checkpoints",
                       term_format_count(stages, count), stages == 1 ? "" : "s",
                       plan_format_time(dry_chain_get_time(r->input->chain), time));
    plan_print_item(
        "always", "%s are there whatever the plan",
        term_format_bytes(frame->persistent_bytes + frame->input_bytes, bytes));
}

static void
print_budget(const struct plan_report *r)
{
    const struct chain_budget *f = &r->input->budget;
    char budget[TERM_NUMBER_BYTES], device[TERM_NUMBER_BYTES], aside[TERM_NUMBER_BYTES];
    if (!plan_report_has_limit(r)) {
        plan_print_item("budget", "none is given");
        return;
    }
    term_format_bytes(r->summary.budget_bytes, budget);
    if (!f->is_given || f->bytes != r->summary.budget_bytes ||
        f->bytes == f->device_bytes) {
        plan_print_item("budget", "%s", budget);
        return;
    }
    plan_print_item("budget", "%s: the device's %s less %s kept aside", budget,
                    term_format_bytes(f->device_bytes, device),
                    term_format_bytes(f->device_bytes - f->bytes, aside));
}

/* Say what the plan's class guarantees. */
static const char *
describe_class(enum dry_plan_class plan_class)
{
    static const char *const texts[DRY_CLASS_COUNT] = {
        [DRY_CLASS_RULE] = "made by a rule; a better one may exist",
        [DRY_CLASS_ONE_LEVEL] = "the best plan without nested ranges, within the gap",
        [DRY_CLASS_NESTED] =
            "the best plan with nested ranges up to the window, within the gap",
        [DRY_CLASS_OPTIMAL] = "no plan of any kind is faster",
    };
    return plan_class < DRY_CLASS_COUNT ? texts[plan_class] : "";
}

static void
print_trust(const struct plan_report *r)
{
    const struct dry_plan_summary *s = &r->summary;
    char least[TERM_NUMBER_BYTES], time[TERM_NUMBER_BYTES], gap[TERM_NUMBER_BYTES];
    char where[PLAN_WHERE_BYTES], tables[64] = "", bytes[TERM_NUMBER_BYTES];
    if (s->slots)
        snprintf(tables, sizeof tables, "; %" PRIu32 " slots, tables of %s", s->slots,
                 term_format_bytes(s->table_bytes, bytes));
    plan_print_item("plan", "%s, class %s: %s%s", dry_method_name(s->method),
                    dry_plan_class_name(s->plan_class), describe_class(s->plan_class),
                    tables);
    uint64_t over = s->cost.time_ns > s->bound_ns ? s->cost.time_ns - s->bound_ns : 0;
    plan_print_item("bound", "no plan of %s takes less than %s; the gap is %s",
                    s->plan_class == DRY_CLASS_RULE ? "any kind" : "its class",
                    plan_format_time(s->bound_ns, time),
                    plan_format_share(over, s->bound_ns, gap));
    plan_format_where(r->input->chain, s->floor_phase, s->floor_stage, where);
    plan_print_item("least", "%s is the smallest budget of this method: %s binds it",
                    term_format_bytes(s->floor_bytes, least), where);
}

static void
print_cost(const struct plan_report *r)
{
    const struct dry_plan_cost *c = &r->summary.cost;
    char peak[TERM_NUMBER_BYTES], share[TERM_NUMBER_BYTES], held[TERM_NUMBER_BYTES];
    char time[TERM_NUMBER_BYTES], extra[TERM_NUMBER_BYTES], more[TERM_NUMBER_BYTES];
    char where[PLAN_WHERE_BYTES], of_budget[64] = "", again[64] = "options alone";
    char count[TERM_NUMBER_BYTES];
    if (plan_report_has_limit(r))
        snprintf(of_budget, sizeof of_budget, ", %s of the budget",
                 plan_format_share(c->peak_bytes, r->summary.budget_bytes, share));
    plan_format_where(r->input->chain, c->peak_phase, c->peak_stage, where);
    plan_print_item("peak", "%s%s, in %s", term_format_bytes(c->peak_bytes, peak),
                    of_budget, where);
    plan_print_item("held", "%s between forward and backward",
                    term_format_bytes(c->held_bytes, held));
    if (c->recomputed_count > 0)
        snprintf(again, sizeof again, "%s stage%s recomputed",
                 term_format_count(c->recomputed_count, count),
                 c->recomputed_count == 1 ? "" : "s");
    if (c->extra_ns == 0 && c->recomputed_count == 0)
        plan_print_item("time", "%s a step, nothing is recomputed",
                        plan_format_time(c->time_ns, time));
    else
        plan_print_item("time", "%s a step, %s or %s more: %s",
                        plan_format_time(c->time_ns, time),
                        plan_format_time(c->extra_ns, extra),
                        plan_format_share(c->extra_ns, c->base_ns, more), again);
}

/* Print the hashes, and a note if the file's own hashes differ: the plan is for another
   chain, or was edited. */
static void
print_hashes(const struct plan_report *r)
{
    const struct plan_file *f = r->judged;
    uint64_t chain = dry_chain_get_hash(r->input->chain);
    const char *note = "";
    if (f && f->has_input_hash && f->input_hash != chain)
        note = "; the plan was made for ANOTHER chain";
    else if (f && f->has_plan_hash && f->plan_hash != r->summary.hash)
        note = "; the plan was CHANGED since its hash was made";
    plan_print_item("hashes", "chain %016" PRIx64 ", plan %016" PRIx64 "%s", chain,
                    r->summary.hash, note);
}

/* --- the table of ranges ------------------------------------------------------------------ */

struct sums {
    uint64_t held, again;
};

static void
add_stage_sums(const struct dry_chain *chain, const struct dry_plan_item *item,
               struct sums *sums)
{
    for (uint32_t i = item->first; i <= item->last; i++) {
        const struct dry_stage *s = dry_chain_get_stage(chain, i);
        if (item->kind == DRY_PLAN_CHECKPOINT) {
            sums->held += i == item->last ? s->output_bytes : 0;
            sums->again += s->forward_ns;
        } else if (item->option == 0) {
            sums->held += s->saved_bytes;
        } else {
            const struct dry_stage_option *o = &s->options[item->option - 1];
            sums->held += o->saved_bytes - o->offload_bytes;
            sums->again += o->recompute_ns;
        }
    }
}

/* Items printed as one row: a pattern of at most PATTERN_MAX items, repeated `count`
   times. Neighbouring saved items share a row whatever their lengths. */
struct group {
    size_t begin, end;
    size_t pattern, count;
};

static bool
is_saved_alike(const struct dry_plan_item *a, const struct dry_plan_item *b)
{
    return a->kind == DRY_PLAN_SAVE && b->kind == DRY_PLAN_SAVE && a->option == b->option;
}

static bool
is_alike(const struct dry_plan_item *a, const struct dry_plan_item *b)
{
    return a->kind == b->kind && a->option == b->option &&
           a->last - a->first == b->last - b->first && a->inner_count == 0 &&
           b->inner_count == 0;
}

static size_t
count_repeats(const struct plan_report *r, size_t begin, size_t end, size_t pattern)
{
    size_t i = begin + pattern;
    while (i < end && is_alike(&r->items[i], &r->items[i - pattern]))
        i++;
    return (i - begin) / pattern;
}

static struct group
find_group(const struct plan_report *r, size_t begin, size_t end)
{
    struct group best = {.begin = begin, .end = begin + 1, .pattern = 1, .count = 1};
    while (best.end < end && is_saved_alike(&r->items[begin], &r->items[best.end]))
        best.end++;
    for (size_t pattern = 1; pattern <= PATTERN_MAX && pattern <= end - begin;
         pattern++) {
        size_t count = count_repeats(r, begin, end, pattern);
        bool is_plain = pattern == 1 && r->items[begin].kind == DRY_PLAN_SAVE;
        if (is_plain || count < GROUP_MIN || count * pattern <= best.end - begin)
            continue;
        best = (struct group){begin, begin + count * pattern, pattern, count};
    }
    return best;
}

/* Write what an item keeps: "save", "checkpoint" or "option sac:attn"; in a repeated
   pattern with its number of stages. */
static size_t
write_kept(const struct plan_report *r, const struct dry_plan_item *item, char *text,
           size_t capacity)
{
    char name[CHAIN_NAME_BYTES];
    if (item->kind == DRY_PLAN_CHECKPOINT || item->option == 0)
        return (size_t)snprintf(text, capacity, "%s",
                                item->kind == DRY_PLAN_CHECKPOINT ? "checkpoint"
                                                                  : "save");
    const struct dry_stage *s = dry_chain_get_stage(r->input->chain, item->first);
    const char *id = s->options[item->option - 1].name;
    term_make_printable(name, sizeof name, id ? id : "", id ? strlen(id) : 0);
    return (size_t)snprintf(text, capacity, "option %s", name);
}

static void
add_kept(struct table *t, const struct plan_report *r, const struct group *g)
{
    char text[PATTERN_MAX * (CHAIN_NAME_BYTES + 32)];
    size_t used = 0;
    if (g->count == 1) {
        write_kept(r, &r->items[g->begin], text, sizeof text);
        table_add(t, text);
        return;
    }
    used = (size_t)snprintf(text, sizeof text, "%zu x ", g->count);
    for (size_t i = 0; i < g->pattern; i++) {
        const struct dry_plan_item *item = &r->items[g->begin + i];
        if (i > 0)
            used += (size_t)snprintf(text + used, sizeof text - used, ", ");
        used += write_kept(r, item, text + used, sizeof text - used);
        used += (size_t)snprintf(text + used, sizeof text - used, " %" PRIu32,
                                 item->last - item->first + 1);
    }
    table_add(t, text);
}

static void
add_names(struct table *t, const struct plan_report *r, uint32_t first, uint32_t last)
{
    char a[CHAIN_NAME_BYTES], b[CHAIN_NAME_BYTES], text[2 * CHAIN_NAME_BYTES + 8];
    chain_stage_name(r->input->chain, first, a);
    chain_stage_name(r->input->chain, last, b);
    if (strcmp(a, b) == 0)
        table_add(t, a);
    else {
        snprintf(text, sizeof text, "%s to %s", a, b);
        table_add(t, text);
    }
}

static void
add_row(struct table *t, const struct plan_report *r, const struct group *g, size_t depth)
{
    uint32_t first = r->items[g->begin].first, last = r->items[g->end - 1].last;
    char text[TERM_NUMBER_BYTES + 2 * INDENT_MAX];
    struct sums sums = {0};
    for (size_t i = g->begin; i < g->end; i++)
        add_stage_sums(r->input->chain, &r->items[i], &sums);
    int indent = 2 * (int)(depth < INDENT_MAX ? depth : INDENT_MAX);
    if (first == last)
        snprintf(text, sizeof text, "%*s%" PRIu32, indent, "", first);
    else
        snprintf(text, sizeof text, "%*s%" PRIu32 "-%" PRIu32, indent, "", first, last);
    table_add(t, text);
    add_kept(t, r, g);
    table_add(t, term_format_bytes(sums.held, text));
    table_add(t, sums.again ? plan_format_time(sums.again, text) : "-");
    add_names(t, r, first, last);
}

/* The ends of the ranges that contain the current item, outermost first. */
#define ENDS_MAX 64

struct walk {
    size_t ends[ENDS_MAX];
    size_t depth; /* may exceed ENDS_MAX: rows are not indented that deep */
};

static void
leave_ranges(struct walk *w, size_t i)
{
    while (w->depth > 0 && w->depth <= ENDS_MAX && i >= w->ends[w->depth - 1])
        w->depth--;
}

/* Print the table of ranges, at most ROWS_MAX rows. If rows are cut, print the stage
   where the cut begins. */
static int
print_table(const struct plan_report *r)
{
    struct term term;
    struct table t;
    struct walk w = {0};
    size_t row_count = 0, i = 0;
    term_init(&term, stdout);
    table_init(&t, "<stages <kept >held >recompute <names");
    for (; i < r->item_count && row_count < ROWS_MAX; row_count++) {
        leave_ranges(&w, i);
        size_t end =
            w.depth > 0 && w.depth <= ENDS_MAX ? w.ends[w.depth - 1] : r->item_count;
        struct group group = find_group(r, i, end);
        add_row(&t, r, &group, w.depth);
        if (r->items[i].inner_count > 0 && w.depth < ENDS_MAX)
            w.ends[w.depth++] = i + 1 + r->items[i].inner_count;
        i = group.end;
    }
    printf("\n");
    if (!table_print(&t, &term))
        return report_failure("plan", r->file, EXIT_MACHINE, "no memory for the table");
    if (i < r->item_count)
        printf("  (more from stage %" PRIu32 " on: --json has them all)\n",
               r->items[i].first);
    return EXIT_FINE;
}

/* --- methods compared --------------------------------------------------------------------- */

static void
add_method(struct table *t, const struct plan_row *row, bool has_limit)
{
    const struct dry_plan_summary *s = &row->summary;
    char text[TERM_NUMBER_BYTES];
    table_add(t, dry_method_name(row->method));
    if (!row->is_made) {
        for (int i = 0; i < 6; i++)
            table_add(t, "-");
        return;
    }
    table_add(t, !has_limit ? "-" : row->fits ? "yes" : "NO");
    table_add(t, row->fits ? term_format_bytes(s->cost.peak_bytes, text) : "-");
    table_add(t, row->fits ? term_format_bytes(s->cost.held_bytes, text) : "-");
    table_add(t, row->fits ? plan_format_share(s->cost.extra_ns, s->cost.base_ns, text)
                           : "-");
    table_add(t, term_format_bytes(s->floor_bytes, text));
    table_add(t, row->fits ? dry_plan_class_name(s->plan_class) : "-");
}

static int
print_methods(const struct plan_report *r)
{
    struct term term;
    struct table t;
    term_init(&term, stdout);
    table_init(&t, "<method <fits >peak >held >more >least <class");
    for (size_t i = 0; i < r->row_count; i++)
        add_method(&t, &r->rows[i], plan_report_has_limit(r));
    printf("\n");
    if (!table_print(&t, &term))
        return report_failure("plan", r->file, EXIT_MACHINE, "no memory for the table");
    for (size_t i = 0; i < r->row_count; i++) {
        if (!r->rows[i].is_made)
            plan_print_item(dry_method_name(r->rows[i].method), "%s", r->rows[i].why);
    }
    return EXIT_FINE;
}

/* --- the report --------------------------------------------------------------------------- */

/* Suggest nested ranges, which have a lower peak, if the chain is short enough. */
static void
print_instead(const struct plan_report *r)
{
    char extra[TERM_NUMBER_BYTES], share[TERM_NUMBER_BYTES], least[TERM_NUMBER_BYTES];
    if (!r->nested)
        return;
    const struct dry_plan_summary *s = &r->nested->summary;
    if (r->nested->fits)
        plan_print_item("instead",
                        "--method nested fits: ranges in ranges, for %s or %s more time",
                        plan_format_time(s->cost.extra_ns, extra),
                        plan_format_share(s->cost.extra_ns, s->cost.base_ns, share));
    else if (s->floor_bytes < r->summary.floor_bytes)
        plan_print_item("instead", "--method nested goes down to %s, not to this budget",
                        term_format_bytes(s->floor_bytes, least));
}

/* Report that no plan fits: the least budget, and the stage that determines it. */
static void
print_infeasible(const struct plan_report *r)
{
    const struct dry_plan_summary *s = &r->summary;
    char budget[TERM_NUMBER_BYTES], least[TERM_NUMBER_BYTES], missing[TERM_NUMBER_BYTES];
    char where[PLAN_WHERE_BYTES];
    struct term term;
    term_init(&term, stdout);
    printf("%sno plan of the method %s fits%s\n", term_style(&term, TERM_RED),
           dry_method_name(s->method), term_style(&term, TERM_PLAIN));
    plan_format_where(r->input->chain, s->floor_phase, s->floor_stage, where);
    if (s->floor_bytes > s->budget_bytes)
        plan_print_item("least", "%s, %s more than the budget's %s; %s binds it",
                        term_format_bytes(s->floor_bytes, least),
                        term_format_bytes(s->floor_bytes - s->budget_bytes, missing),
                        term_format_bytes(s->budget_bytes, budget), where);
    print_instead(r);
}

static void
print_over(const struct plan_report *r)
{
    const struct dry_plan_summary *s = &r->summary;
    char missing[TERM_NUMBER_BYTES];
    struct term term;
    if (r->outcome != PLAN_OVER)
        return;
    term_init(&term, stdout);
    printf("%sthe plan does not fit%s: %s more than the budget\n",
           term_style(&term, TERM_RED), term_style(&term, TERM_PLAIN),
           term_format_bytes(s->cost.peak_bytes - s->budget_bytes, missing));
}

static int
print_plan(const struct plan_report *r)
{
    print_over(r);
    if (!r->judged)
        print_trust(r);
    print_cost(r);
    print_hashes(r);
    return print_table(r);
}

int
plan_report_print(const struct plan_report *r)
{
    int code = EXIT_FINE;
    print_chain(r);
    print_budget(r);
    if (r->outcome == PLAN_NONE)
        print_infeasible(r);
    else
        code = print_plan(r);
    if (code == EXIT_FINE && r->rows)
        code = print_methods(r);
    if (code == EXIT_FINE && r->has_curve)
        plan_plot_curve(r);
    if (code == EXIT_FINE && r->has_timeline && r->outcome != PLAN_NONE)
        code = plan_plot_timeline(r);
    if (code == EXIT_FINE && r->has_explanation)
        code = plan_explain_print(r);
    return code;
}
