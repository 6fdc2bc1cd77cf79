/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explain a plan in words: what the peak consists of, which stage causes it, and why no
 * smaller budget works. Then what larger budgets buy, and when checkpoints stop helping.
 */
#include <stdio.h>
#include <string.h>

#include "base/command.h"
#include "base/report.h"
#include "plan/plan_report.h"
#include "plan/plan_timeline.h"

/* The peak's step, and the bytes held when that step began. */
struct finder {
    uint64_t peak_bytes;
    uint64_t held_bytes, at_peak_bytes;
    bool is_found;
};

static void
find_peak(void *self, const struct dry_plan_step *step)
{
    struct finder *f = self;
    if (!f->is_found && step->needed_bytes == f->peak_bytes) {
        f->is_found = true;
        f->at_peak_bytes = f->held_bytes;
    }
    f->held_bytes = step->held_bytes;
}

static enum dry_status
measure_peak(const struct plan_report *r, struct finder *f, struct dry_error *err)
{
    const struct dry_plan_observer observer = {.step = find_peak, .self = f};
    struct dry_plan_cost cost;
    *f = (struct finder){.peak_bytes = r->summary.cost.peak_bytes,
                         .held_bytes = plan_held_at_first(r->input->chain)};
    return dry_plan_evaluate(r->input->chain, r->items, r->item_count, &observer, &cost,
                             err);
}

/* Print what the peak consists of: constant bytes, bytes held for other stages, and the
   stage's own. */
static int
explain_peak(const struct plan_report *r)
{
    const struct dry_plan_cost *c = &r->summary.cost;
    const struct dry_chain_frame *frame = dry_chain_get_frame(r->input->chain);
    char always[TERM_NUMBER_BYTES], held[TERM_NUMBER_BYTES], own[TERM_NUMBER_BYTES];
    char where[PLAN_WHERE_BYTES];
    struct finder f;
    struct dry_error err;
    if (measure_peak(r, &f, &err) != DRY_OK)
        return report_error("plan", r->file, &err);
    uint64_t fixed = frame->persistent_bytes + frame->input_bytes;
    uint64_t before = f.at_peak_bytes > fixed ? f.at_peak_bytes - fixed : 0;
    uint64_t rest = c->peak_bytes > fixed + before ? c->peak_bytes - fixed - before : 0;
    plan_format_where(r->input->chain, c->peak_phase, c->peak_stage, where);
    if (c->peak_phase == DRY_PHASE_STEP)
        plan_print_item(
            "the peak",
            "is the optimizer's step, when all activations are gone: weights, "
            "states and gradients are what it needs. More checkpoints would "
            "cost time and lower nothing; a fused optimizer, or states and "
            "gradients in parts on several devices, would.");
    else
        plan_print_item(
            "the peak",
            "is in %s: %s that are always there, %s held by then, and %s that "
            "it needs while it runs.",
            where, term_format_bytes(fixed, always), term_format_bytes(before, held),
            term_format_bytes(rest, own));
    return EXIT_FINE;
}

/* Tell whether a stage has no output, such as a loss. */
static bool
has_no_output(const struct plan_report *r, size_t stage)
{
    return dry_chain_get_stage(r->input->chain, stage)->output_bytes == 0;
}

/* Print which stage determines the least budget, and what would lower it. */
static void
explain_floor(const struct plan_report *r)
{
    const struct dry_plan_summary *s = &r->summary;
    size_t count = dry_chain_get_count(r->input->chain);
    char least[TERM_NUMBER_BYTES], where[PLAN_WHERE_BYTES];
    plan_format_where(r->input->chain, s->floor_phase, s->floor_stage, where);
    term_format_bytes(s->floor_bytes, least);
    if (s->floor_phase == DRY_PHASE_STEP)
        plan_print_item("the least",
                        "is %s, for %s: no activation is there then, so checkpoints do "
                        "not lower it.",
                        least, where);
    else
        plan_print_item("the least",
                        "is %s, for %s, with all other stages keeping as little as plans "
                        "of this method can.%s",
                        least, where,
                        s->floor_stage + 1 == count && has_no_output(r, count - 1)
                            ? " The last stage most often is the loss with its logits: "
                              "computed in parts, it would need less."
                            : "");
    if (s->cost.peak_bytes <= s->floor_bytes && r->outcome == PLAN_FITS)
        plan_print_item("", "The plan is there already.");
}

/* Tell whether `p` needs more bytes than `than` and saves at least a tenth of the extra
   time. Smaller savings are not worth mentioning. */
static bool
saves_time(const struct dry_plan_cost *than, const struct dry_plan_cost *p)
{
    return p->peak_bytes > than->peak_bytes && p->extra_ns < than->extra_ns &&
           than->extra_ns - p->extra_ns >= than->extra_ns / 10;
}

static bool
saves_bytes(const struct plan_report *r, const struct dry_plan_cost *p)
{
    const struct dry_plan_cost *c = &r->summary.cost;
    const struct dry_chain_frame *frame = dry_chain_get_frame(r->input->chain);
    uint64_t fixed = frame->persistent_bytes + frame->input_bytes;
    uint64_t tenth = c->peak_bytes > fixed ? (c->peak_bytes - fixed) / 10 : 0;
    return p->peak_bytes < c->peak_bytes && c->peak_bytes - p->peak_bytes >= tenth;
}

/* Find the nearest plans on the curve with less memory and with less time. */
static void
find_neighbours(const struct plan_report *r, const struct dry_plan_cost **below,
                const struct dry_plan_cost **above)
{
    *below = *above = NULL;
    for (size_t i = 0; i < r->point_count; i++) {
        const struct dry_plan_cost *p = &r->points[i].cost;
        if (saves_bytes(r, p))
            *below = p;
        if (!*above && saves_time(&r->summary.cost, p))
            *above = p;
    }
}

static void
explain_point(const struct plan_report *r, const char *word, const char *what,
              const struct dry_plan_cost *p)
{
    char peak[TERM_NUMBER_BYTES], share[TERM_NUMBER_BYTES], now[TERM_NUMBER_BYTES];
    const struct dry_plan_cost *c = &r->summary.cost;
    plan_print_item(word, "%s %s: %s more time instead of %s.", what,
                    term_format_bytes(p->peak_bytes, peak),
                    plan_format_share(p->extra_ns, p->base_ns, share),
                    plan_format_share(c->extra_ns, c->base_ns, now));
}

static void
explain_budgets(const struct plan_report *r)
{
    const struct dry_plan_cost *below, *above, *last;
    if (r->point_count == 0)
        return;
    find_neighbours(r, &below, &above);
    last = &r->points[r->point_count - 1].cost;
    if (above)
        explain_point(r, "more", "a tenth of the extra time is saved from", above);
    if (above && last != above && last->extra_ns == 0)
        explain_point(r, "all", "nothing is recomputed from", last);
    if (below)
        explain_point(r, "less", "a tenth of the activations' bytes is gone at", below);
    if (!above && r->summary.cost.extra_ns == 0)
        plan_print_item("more", "memory saves no time: nothing is recomputed.");
}

static void
explain_rest(const struct plan_report *r)
{
    const struct dry_plan_summary *s = &r->summary;
    char rest[TERM_NUMBER_BYTES];
    if (plan_report_has_limit(r) && s->cost.peak_bytes < s->budget_bytes)
        plan_print_item("unused",
                        "%s of the budget; with it no plan that was found is faster.",
                        term_format_bytes(s->budget_bytes - s->cost.peak_bytes, rest));
}

/* If nothing fits, print the cost of the least budget, and from which budget on nothing
   is recomputed. */
static void
explain_price(const struct plan_report *r)
{
    char bytes[TERM_NUMBER_BYTES], share[TERM_NUMBER_BYTES];
    if (r->point_count == 0)
        return;
    const struct dry_plan_cost *first = &r->points[0].cost;
    const struct dry_plan_cost *last = &r->points[r->point_count - 1].cost;
    plan_print_item("its price", "is %s more time, with a peak of %s.",
                    plan_format_share(first->extra_ns, first->base_ns, share),
                    term_format_bytes(first->peak_bytes, bytes));
    if (last->extra_ns == 0)
        plan_print_item("all", "nothing is recomputed from %s.",
                        term_format_bytes(last->peak_bytes, bytes));
}

int
plan_explain_print(const struct plan_report *r)
{
    int code = EXIT_FINE;
    printf("\n");
    if (r->outcome != PLAN_NONE)
        code = explain_peak(r);
    if (code == EXIT_FINE && !r->judged)
        explain_floor(r);
    if (r->outcome == PLAN_NONE)
        explain_price(r);
    if (code == EXIT_FINE && r->outcome == PLAN_FITS && !r->judged) {
        explain_rest(r);
        explain_budgets(r);
    }
    return code;
}
