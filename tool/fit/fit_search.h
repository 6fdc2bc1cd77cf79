/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FIT_SEARCH_H
#define TOOL_FIT_SEARCH_H

/*
 * Search changes with which a program fits, in a limited number of runs.
 *
 *     struct fit_search search = {.offers = offers, .offer_count = count, .limit = bytes,
 *                                 .peak = bytes, .runs_left = 13, .run = run, .self = self};
 *     code = fit_search_run(&search);
 *     ... search.rows[i].result
 *
 * A change with one value is a switch; one with several has a strength, weakest first. The order:
 * switches that keep numbers, each alone; strengths, weakened until they just fit; both together;
 * changes of numbers; all. A row is a run: nothing is predicted, except which value to try next.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIT_OFFERS_MAX 24
#define FIT_RUNS_MAX 100

/* The effect of a change on the numbers that the program computes. */
enum fit_numbers {
    FIT_SAME, /* the same gradients, to rounding */
    FIT_ROWS, /* the same if a loss is a mean over rows, without a BatchNorm */
    FIT_OTHER,
};

enum fit_pass { FIT_ANY, FIT_BACKWARD, FIT_STEP, FIT_EVALUATION };

/* A change, as the search knows it. */
struct fit_offer {
    enum fit_numbers numbers;
    enum fit_pass helps; /* the pass whose memory it reduces */
    size_t value_count;  /* at least 1 */
};

/* Changes that are made together: of each offer the number of its value, from 1; 0: not made. */
struct fit_set {
    size_t value[FIT_OFFERS_MAX];
};

struct fit_result {
    bool is_known;       /* the program ran to an end that tells its memory */
    bool is_applied;     /* every change was made */
    bool fits;           /* requires both */
    uint64_t peak;       /* bytes */
    double work;         /* floating-point operations of a step; 0: not known */
    uint64_t link_bytes; /* copied between host and card in a step, for the change */
};

struct fit_row {
    struct fit_set set;
    struct fit_result result;
};

struct fit_search {
    const struct fit_offer *offers;
    size_t offer_count;   /* at most FIT_OFFERS_MAX */
    uint64_t limit, peak; /* bytes: of the card, and of the program without changes */
    bool peaks_in_step;   /* the optimizer's step holds the peak */
    double link_work;     /* operations that the card does while a byte is copied */
    int runs_left;        /* at most FIT_RUNS_MAX */
    /* Run the program with changes. Returns an exit_code; all but EXIT_FINE end the search. */
    int (*run)(void *self, const struct fit_set *set, struct fit_result *result);
    void *self;
    /* The result. */
    struct fit_row rows[FIT_RUNS_MAX];
    size_t row_count;
};

/* Search. Returns the last exit_code of `run`. */
int fit_search_run(struct fit_search *search);
/* Return what the strictest of a set's changes does to numbers. */
enum fit_numbers fit_set_numbers(const struct fit_search *search,
                                 const struct fit_set *set);
/* Write the indices of rows that fit, the best first, without those that another row makes
   needless. Returns their count. */
size_t fit_search_rank(const struct fit_search *search, size_t ranked[FIT_RUNS_MAX]);
/* Return the row that came nearest to the limit; SIZE_MAX: no run is known. */
size_t fit_search_nearest(const struct fit_search *search);

#endif
