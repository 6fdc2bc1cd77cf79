/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_EXPLAIN_RECOMMEND_H
#define DRYI_EXPLAIN_RECOMMEND_H

/*
 * The state of a search. recommend.c orders the candidates, recommend_judge.c runs them and
 * compares them with the best, recommend_prove.c checks them under other releases,
 * recommend_result.c derives verdicts.
 */

#include <drystone/recommend.h>

#include "explain/settings/demand.h"
#include "explain/settings/setting.h"

struct dryi_tried {
    struct dryi_setting setting;
    bool has_setting;            /* false if the recorded settings cannot be
                                    expressed as a setting */
    struct dryi_torch_conf conf; /* options in force, including `kept` */
    char own[DRYI_SETTING_BYTES];
    char text[DRYI_CONF_BYTES]; /* option string of `kept` and `own` */
    bool was_proved;            /* it was run under the other releases */
    bool is_refuted;            /* it does not help under one of them */
    struct dry_candidate result;
};

struct dry_recommendation {
    struct dry_memory memory;
    struct dry_recommend_summary summary; /* its indices refer to `tried` until the search
                                             ends */
    struct dryi_tried *tried;             /* sorted in the order of the search; [0]
                                             has the recorded settings */
    size_t tried_count, tried_capacity;
    struct dry_candidate *candidates; /* sorted by result; tried_count entries */
    size_t candidate_count;
    char *recorded_conf;
    size_t recorded_conf_bytes;
    char kept[DRYI_KEPT_BYTES];
};

struct dryi_recommend_search {
    struct dry_recommendation *rec;
    struct dry_replay *replay;
    const struct dryi_program *program;
    const struct dryi_torch_rules *rules;
    struct dry_recommend_options options;
    struct dryi_demand *demand;
    char kept_unlimited[DRYI_KEPT_BYTES]; /* `kept` without a memory fraction,
                                             which needs a capacity */
    uint32_t rows;                        /* rules that the program
                                             may have used, as bits */
    unsigned release;                     /* newer options are not tried */
    unsigned oldest;                      /* oldest release that may have made the
                                             record */
    size_t last;                          /* candidate of the last try;
                                             SIZE_MAX if it was not run */
    struct dry_error *err;
};

#define DRYI_RECORDED 0u
#define DRYI_CAPACITY_STEP (UINT64_C(2) << 20)

/* The calls below return DRY_END if no runs are left, which is not an error. Otherwise they return
   OK, or an error and fill search->err. */

/* Run the recorded settings, with which all candidates are compared. */
enum dry_status dryi_recommend_try_recorded(struct dryi_recommend_search *search);
/* Run a candidate, unless it is excluded or places as an earlier one does. */
enum dry_status dryi_recommend_try(struct dryi_recommend_search *search,
                                   const struct dryi_setting *setting);
/* Find the smallest capacity of the candidate at `index`. */
enum dry_status dryi_recommend_narrow(struct dryi_recommend_search *search, size_t index);
/* Find the smallest capacities of all candidates that help, to the minimum gain, so that they are
   listed by these. The least known is searched first. */
enum dry_status dryi_recommend_narrow_all(struct dryi_recommend_search *search);

/* Write a candidate's option string for a device of `capacity`. A recorded memory fraction is left
   out if the capacity is unknown. */
void dryi_recommend_write_conf(const struct dryi_recommend_search *search, size_t index,
                               uint64_t capacity, char conf[DRYI_CONF_BYTES]);

/* Return whether no setting can be sufficiently better than the best. */
bool dryi_recommend_is_won(const struct dryi_recommend_search *search);
/* Return whether the best is won and has no caveats, so that no alternative is needed. */
bool dryi_recommend_is_done(const struct dryi_recommend_search *search);

/* Return the figure to minimise: smallest capacity or peak; UINT64_MAX if unknown. */
uint64_t dryi_recommend_measure(const struct dry_recommend_summary *summary,
                                const struct dry_candidate *candidate);
/* Return the bytes that the goal STABLE may reserve: the capacity, or the recorded peak. */
uint64_t dryi_recommend_allowance(const struct dry_recommend_summary *summary,
                                  const struct dry_candidate *recorded);
/* Return whether `a` has fewer retries, or as many and noticeably less driver time. */
bool dryi_recommend_is_steadier(const struct dry_candidate *a,
                                const struct dry_candidate *b);

/*
 * Return whether the candidate avoids at least half of the retries on the device that retries
 * proved, in as little memory. A retry waits for all streams and asks the driver again. Settings
 * with a fraction need an exact capacity, which retries do not prove.
 */
bool dryi_recommend_spares_retries(const struct dry_recommend_summary *summary,
                                   const struct dry_candidate *recorded,
                                   const struct dry_candidate *candidate);

/* Return whether the candidate adds retries on the device that retries proved,
   which makes it no help. */
bool dryi_recommend_adds_retries(const struct dry_recommend_summary *summary,
                                 const struct dry_candidate *recorded,
                                 const struct dry_candidate *candidate);

/* Return why no statement about settings is possible, or NULL. Requires that the
   recorded settings ran. */
const char *dryi_recommend_evidence_gap(const struct dryi_recommend_search *search);

/* Return whether the device had space for the request of the recorded OOM: then a
   memory fraction refused it. */
bool dryi_recommend_is_limited(const struct dryi_recommend_search *search);

/* Set gains and verdicts of all candidates tried so far. */
void dryi_recommend_judge_all(struct dryi_recommend_search *search);
/* Return whether `a` comes before `b` in the result. */
bool dryi_recommend_is_before(const struct dry_recommend_summary *summary,
                              const struct dry_candidate *a,
                              const struct dry_candidate *b);
/* Run the candidates to be named under the rules of the other releases. A candidate that fails
   there is not named, and the next becomes the best. Returns OK or an error. */
enum dry_status dryi_recommend_prove(struct dryi_recommend_search *search);

/* Set gains, verdicts, order and outcome. Returns false if memory ran out. */
bool dryi_recommend_conclude(struct dryi_recommend_search *search);

#endif
