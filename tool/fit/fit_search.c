/* SPDX-License-Identifier: Apache-2.0 */
/* See fit_search.h. */
#include "fit/fit_search.h"

#include <math.h>

#include "base/command.h"

#define STRENGTH_RUNS 4 /* most runs of one change with a strength */
#define LEAST_RUNS 2    /* runs of one where few are left */
#define LEAST_SHARE 200 /* a change that saves less than this share of the peak is left */

/* --- sets --------------------------------------------------------------------------------- */

static size_t
count_changes(const struct fit_set *set)
{
    size_t count = 0;
    for (size_t i = 0; i < FIT_OFFERS_MAX; i++)
        count += set->value[i] > 0;
    return count;
}

static bool
is_same(const struct fit_set *a, const struct fit_set *b)
{
    for (size_t i = 0; i < FIT_OFFERS_MAX; i++) {
        if (a->value[i] != b->value[i])
            return false;
    }
    return true;
}

enum fit_numbers
fit_set_numbers(const struct fit_search *s, const struct fit_set *set)
{
    enum fit_numbers worst = FIT_SAME;
    for (size_t i = 0; i < s->offer_count; i++) {
        if (set->value[i] > 0 && s->offers[i].numbers > worst)
            worst = s->offers[i].numbers;
    }
    return worst;
}

/* Tell whether a change may be tried together with those that keep numbers. */
static bool
is_switch(const struct fit_offer *offer)
{
    return offer->value_count == 1 && offer->numbers == FIT_SAME;
}

/* --- runs --------------------------------------------------------------------------------- */

static const struct fit_row *
find_row(const struct fit_search *s, const struct fit_set *set)
{
    for (size_t i = 0; i < s->row_count; i++) {
        if (is_same(&s->rows[i].set, set))
            return &s->rows[i];
    }
    return NULL;
}

/* Run a set, or find its row. *row is NULL if no runs are left. */
static int
try_set(struct fit_search *s, const struct fit_set *set, const struct fit_row **row)
{
    *row = find_row(s, set);
    if (*row || s->runs_left <= 0 || s->row_count == FIT_RUNS_MAX)
        return EXIT_FINE;
    s->runs_left--;
    struct fit_row *next = &s->rows[s->row_count];
    *next = (struct fit_row){.set = *set};
    int code = s->run(s->self, set, &next->result);
    if (code == EXIT_FINE) {
        s->row_count++;
        *row = next;
    }
    return code;
}

static bool
has_saved(const struct fit_search *s, const struct fit_row *row)
{
    return row && row->result.is_known && row->result.is_applied &&
           row->result.peak + s->peak / LEAST_SHARE < s->peak;
}

/* Tell whether a change alone could not be made, or ended the program. */
static bool
has_failed(const struct fit_search *s, size_t index)
{
    for (size_t i = 0; i < s->row_count; i++) {
        const struct fit_row *row = &s->rows[i];
        if (row->set.value[index] > 0 && count_changes(&row->set) == 1 &&
            !(row->result.is_known && row->result.is_applied))
            return true;
    }
    return false;
}

static bool
has_fit(const struct fit_search *s, enum fit_numbers numbers)
{
    for (size_t i = 0; i < s->row_count; i++) {
        if (s->rows[i].result.fits && fit_set_numbers(s, &s->rows[i].set) <= numbers)
            return true;
    }
    return false;
}

/* Tell whether a change can take from what holds the peak now. */
static bool
may_help(const struct fit_search *s, const struct fit_offer *offer)
{
    switch (offer->helps) {
    case FIT_STEP:
        return s->peaks_in_step;
    case FIT_BACKWARD:
    case FIT_EVALUATION:
        return !s->peaks_in_step;
    case FIT_ANY:
        break;
    }
    return true;
}

/* Try each switch alone, and add those that save to *base. */
static int
try_switches(struct fit_search *s, struct fit_set *base)
{
    int code = EXIT_FINE;
    for (size_t i = 0; i < s->offer_count && code == EXIT_FINE; i++) {
        struct fit_set set = {.value = {[0] = 0}};
        const struct fit_row *row;
        if (!is_switch(&s->offers[i]) || !may_help(s, &s->offers[i]))
            continue;
        set.value[i] = 1;
        code = try_set(s, &set, &row);
        if (code == EXIT_FINE && has_saved(s, row))
            base->value[i] = 1;
    }
    return code;
}

static uint64_t
find_peak(const struct fit_search *s, const struct fit_set *set)
{
    const struct fit_row *row = find_row(s, set);
    return row && row->result.is_known ? row->result.peak : s->peak;
}

/* A strength that was run; 0: "not made". */
struct point {
    size_t at;
    uint64_t peak;
};

/* Return where the line through two points comes down to `limit`, between `low` and `high`; the
   middle, if it does not fall. */
static size_t
follow_line(struct point a, struct point b, uint64_t limit, size_t low, size_t high)
{
    double guess = (double)low + (double)(high - low) / 2;
    if (b.at > a.at && b.peak < a.peak)
        guess = (double)a.at + ((double)a.peak - (double)limit) /
                                   (double)(a.peak - b.peak) * (double)(b.at - a.at);
    /* the next whole strength above the line */
    size_t at = guess < (double)low     ? low
                : guess >= (double)high ? high - 1
                                        : (size_t)guess + 1;
    return at <= low ? low + 1 : at < high ? at : high - 1;
}

/* Look for the weakest strength of offer `index` that fits together with `base`, in at most `most`
   new runs; first as if the strongest took all memory. */
static int
try_strengths(struct fit_search *s, size_t index, const struct fit_set *base, int most)
{
    const uint64_t base_peak = find_peak(s, base);
    const size_t strongest = s->offers[index].value_count;
    const struct point zero = {.peak = base_peak}, all = {.at = strongest, .peak = 0};
    struct point low = zero, high = {.at = strongest + 1};
    bool has_high = false;
    const size_t rows_before = s->row_count;
    while (s->row_count < rows_before + (size_t)most && low.at + 1 < high.at) {
        struct fit_set set = *base;
        const struct fit_row *row;
        struct point from = has_high ? low : zero;
        struct point to = has_high ? high : low.at > 0 ? low : all;
        set.value[index] = follow_line(from, to, s->limit, low.at, high.at);
        int code = try_set(s, &set, &row);
        if (code != EXIT_FINE || !row || !row->result.is_known || !row->result.is_applied)
            return code;
        struct point point = {set.value[index], row->result.peak};
        if (row->result.fits) {
            high = point;
            has_high = true;
        } else {
            if (point.at > 1 && point.peak >= base_peak)
                break; /* it takes nothing away */
            low = point;
        }
    }
    return EXIT_FINE;
}

/* --- the search --------------------------------------------------------------------------- */

/* Tell whether offer `index` was run at its strongest with `base`, or fits with it. */
static bool
is_decided(const struct fit_search *s, size_t index, const struct fit_set *base)
{
    for (size_t i = 0; i < s->row_count; i++) {
        struct fit_set set = s->rows[i].set;
        bool is_its = set.value[index] > 0;
        bool is_last = set.value[index] == s->offers[index].value_count;
        set.value[index] = 0;
        if (is_its && is_same(&set, base) && (is_last || s->rows[i].result.fits))
            return true;
    }
    return false;
}

/* Tell whether an offer is one to look for a strength of, with `base`. Beside changes nobody knows
   which pass holds the peak. */
static bool
is_open(const struct fit_search *s, size_t index, enum fit_numbers numbers,
        const struct fit_set *base)
{
    const struct fit_offer *offer = &s->offers[index];
    return offer->numbers == numbers && !is_switch(offer) && !has_failed(s, index) &&
           (count_changes(base) > 0 || may_help(s, offer)) && !is_decided(s, index, base);
}

/* Try the changes of one kind: all strengths, and changes of numbers. Each has its share of the runs
   that are left. */
static int
try_kind(struct fit_search *s, enum fit_numbers numbers, const struct fit_set *base)
{
    int code = EXIT_FINE, open_count = 0;
    for (size_t i = 0; i < s->offer_count; i++)
        open_count += is_open(s, i, numbers, base);
    for (size_t i = 0; i < s->offer_count && code == EXIT_FINE; i++) {
        if (!is_open(s, i, numbers, base))
            continue;
        int share = s->runs_left / (open_count > 0 ? open_count : 1);
        int most = share < LEAST_RUNS ? LEAST_RUNS : share;
        code = try_strengths(s, i, base, most < STRENGTH_RUNS ? most : STRENGTH_RUNS);
        open_count--;
    }
    return code;
}

/* Add the strongest value of each offer up to a kind. */
static void
add_all(const struct fit_search *s, enum fit_numbers numbers, struct fit_set *set)
{
    for (size_t i = 0; i < s->offer_count; i++) {
        if (s->offers[i].numbers <= numbers && !has_failed(s, i))
            set->value[i] = s->offers[i].value_count;
    }
}

/* Try what keeps numbers, up to a kind: alone, with the switches, and all at once. */
static int
try_up_to(struct fit_search *s, enum fit_numbers numbers, const struct fit_set *base)
{
    const struct fit_set none = {.value = {0}};
    struct fit_set all = none;
    const struct fit_row *row;
    int code = try_kind(s, numbers, &none);
    if (code == EXIT_FINE && count_changes(base) > 0 && !has_fit(s, numbers))
        code = try_kind(s, numbers, base);
    add_all(s, numbers, &all);
    if (code == EXIT_FINE && count_changes(&all) > 0 && !has_fit(s, numbers))
        code = try_set(s, &all, &row);
    return code;
}

/* Run the best answer without each of its changes. Offers come in the order of their cost, so the
   last goes first. */
static int
thin_best(struct fit_search *s)
{
    size_t ranked[FIT_RUNS_MAX];
    int code = EXIT_FINE;
    if (fit_search_rank(s, ranked) == 0)
        return code;
    struct fit_set set = s->rows[ranked[0]].set;
    for (size_t i = s->offer_count; i-- > 0 && code == EXIT_FINE;) {
        struct fit_set less = set;
        const struct fit_row *row;
        if (set.value[i] == 0 || count_changes(&set) == 1)
            continue;
        less.value[i] = 0;
        code = try_set(s, &less, &row);
        if (code == EXIT_FINE && row && row->result.fits)
            set = less;
    }
    return code;
}

int
fit_search_run(struct fit_search *s)
{
    struct fit_set base = {.value = {0}};
    const struct fit_row *row;
    int code = try_switches(s, &base);
    if (code == EXIT_FINE && count_changes(&base) > 1 && !has_fit(s, FIT_SAME))
        code = try_set(s, &base, &row);
    for (int numbers = FIT_SAME; numbers <= FIT_OTHER && code == EXIT_FINE; numbers++)
        code = try_up_to(s, (enum fit_numbers)numbers, &base);
    return code == EXIT_FINE ? thin_best(s) : code;
}

/* --- the result --------------------------------------------------------------------------- */

/* Return the operations of a step; more than any, if they are not known. */
static double
get_work(const struct fit_row *row)
{
    return row->result.work > 0 ? row->result.work : HUGE_VAL;
}

/* Tell whether `a` costs no more than `b` in anything, and its changes are among b's. */
static bool
is_better(const struct fit_search *s, const struct fit_row *a, const struct fit_row *b)
{
    bool is_part = true, is_less = false;
    for (size_t i = 0; i < s->offer_count; i++) {
        is_part &= a->set.value[i] == 0 || b->set.value[i] > 0;
        is_less |= a->set.value[i] < b->set.value[i];
    }
    return is_part && is_less && get_work(a) <= get_work(b) &&
           a->result.link_bytes <= b->result.link_bytes;
}

/* The work of a step, and what the card could have computed while the link copied. */
static double
get_price(const struct fit_search *s, const struct fit_row *row)
{
    return get_work(row) + s->link_work * (double)row->result.link_bytes;
}

/* Tell whether `a` comes before `b`: by numbers, price, the count of changes, the peak. */
static bool
is_before(const struct fit_search *s, const struct fit_row *a, const struct fit_row *b)
{
    enum fit_numbers x = fit_set_numbers(s, &a->set), y = fit_set_numbers(s, &b->set);
    if (x != y)
        return x < y;
    double p = get_price(s, a), q = get_price(s, b);
    if (p < q || q < p)
        return p < q;
    if (count_changes(&a->set) != count_changes(&b->set))
        return count_changes(&a->set) < count_changes(&b->set);
    return a->result.peak < b->result.peak;
}

static bool
is_needless(const struct fit_search *s, size_t index)
{
    for (size_t i = 0; i < s->row_count; i++) {
        if (i != index && s->rows[i].result.fits &&
            is_better(s, &s->rows[i], &s->rows[index]))
            return true;
    }
    return false;
}

size_t
fit_search_rank(const struct fit_search *s, size_t ranked[FIT_RUNS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < s->row_count; i++) {
        if (!s->rows[i].result.fits || is_needless(s, i))
            continue;
        size_t at = count++;
        for (; at > 0 && is_before(s, &s->rows[i], &s->rows[ranked[at - 1]]); at--)
            ranked[at] = ranked[at - 1];
        ranked[at] = i;
    }
    return count;
}

size_t
fit_search_nearest(const struct fit_search *s)
{
    size_t nearest = SIZE_MAX;
    for (size_t i = 0; i < s->row_count; i++) {
        const struct fit_result *result = &s->rows[i].result;
        if (result->is_known && result->is_applied &&
            (nearest == SIZE_MAX || result->peak < s->rows[nearest].result.peak))
            nearest = i;
    }
    return nearest;
}
