/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_EXPLAIN_RECOMMEND_H
#define DRYI_EXPLAIN_RECOMMEND_H

/*
 * A search under way. recommend.c decides what is tried in which order, recommend_judge.c
 * runs a candidate and holds it against the best, recommend_prove.c asks the other releases,
 * recommend_result.c makes verdicts of it.
 */

#include <drystone/recommend.h>

#include "explain/settings/demand.h"
#include "explain/settings/setting.h"

struct dryi_tried {
    struct dryi_setting setting;
    bool has_setting;            /* false: recorded settings that cannot be put as one */
    struct dryi_torch_conf conf; /* what is in force, `kept` included */
    char own[DRYI_SETTING_BYTES];
    char text[DRYI_CONF_BYTES]; /* `kept` and `own` */
    bool was_proved;            /* the other releases were asked ... */
    bool is_refuted;            /* ... and by the rules of one it does not help */
    struct dry_candidate result;
};

struct dry_recommendation {
    struct dry_memory memory;
    struct dry_recommend_summary summary; /* indexes are of `tried` until the end */
    struct dryi_tried *tried;             /* in the order of the search, [0] recorded */
    size_t tried_count, tried_capacity;
    struct dry_candidate *candidates; /* sorted; tried_count of them */
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
    char kept_unlimited[DRYI_KEPT_BYTES]; /* without a fraction, which needs a capacity */
    uint32_t rows;                        /* of rules that may have been the program's */
    unsigned release;                     /* no setting is tried that is younger */
    unsigned oldest;                      /* release that may have made the record */
    size_t last;                          /* what was just tried; SIZE_MAX: it was not */
    struct dry_error *err;
};

#define DRYI_RECORDED 0u
#define DRYI_CAPACITY_STEP (UINT64_C(2) << 20)

/*
 * All of these: DRY_END when the runs are used up, which is no failure; else OK or a failure
 * with search->err filled.
 */

/* The recorded settings, which everything is held against. */
enum dry_status dryi_recommend_try_recorded(struct dryi_recommend_search *search);
/* A candidate, unless it may not be proposed or places as an earlier one does. */
enum dry_status dryi_recommend_try(struct dryi_recommend_search *search,
                                   const struct dryi_setting *setting);
/* Search the smallest device of something tried. */
enum dry_status dryi_recommend_narrow(struct dryi_recommend_search *search, size_t index);

/*
 * Write the option string of something tried, for a device of `capacity`: a fraction that was
 * recorded needs a limit to be one of.
 */
void dryi_recommend_write_conf(const struct dryi_recommend_search *search, size_t index,
                               uint64_t capacity, char conf[DRYI_CONF_BYTES]);

/* Can nothing be better than the best by enough? */
bool dryi_recommend_is_won(const struct dryi_recommend_search *search);
/* Likewise, and nothing stands against the best, so that no other is worth knowing. */
bool dryi_recommend_is_done(const struct dryi_recommend_search *search);

/* The figure that is to be low: smallest device or peak; UINT64_MAX: not known. */
uint64_t dryi_recommend_measure(const struct dry_recommend_summary *summary,
                                const struct dry_candidate *candidate);
/*
 * The bytes that STABLE may reserve: the device's capacity, or else no more than the
 * recorded did.
 */
uint64_t dryi_recommend_allowance(const struct dry_recommend_summary *summary,
                                  const struct dry_candidate *recorded);
/* Fewer retries, or as many and noticeably less driver time. */
bool dryi_recommend_is_steadier(const struct dry_candidate *a,
                                const struct dry_candidate *b);

/*
 * Does it spare half the retries or more on the device that retries proved, in as little
 * memory? A retry waits for all streams and asks the driver anew. A fraction is of a room
 * known to the byte, which retries do not tell.
 */
bool dryi_recommend_spares_retries(const struct dry_recommend_summary *summary,
                                   const struct dry_candidate *recorded,
                                   const struct dry_candidate *candidate);

/* Does it add retries on the device that retries proved? Then it is no help there. */
bool dryi_recommend_adds_retries(const struct dry_recommend_summary *summary,
                                 const struct dry_candidate *recorded,
                                 const struct dry_candidate *candidate);

/* Why nothing can be said about settings, or NULL. Requires that the recorded ones ran. */
const char *dryi_recommend_evidence_gap(const struct dryi_recommend_search *search);

/* Did the device have room for the recorded OOM's request? Then a fraction forbade it. */
bool dryi_recommend_is_limited(const struct dryi_recommend_search *search);

/* Set gains and verdicts, of what was tried so far. */
void dryi_recommend_judge_all(struct dryi_recommend_search *search);
/* Does `a` come before `b` in the result? */
bool dryi_recommend_is_before(const struct dry_recommend_summary *summary,
                              const struct dry_candidate *a,
                              const struct dry_candidate *b);
/*
 * Run what is to be named by the rules of the other releases. What does not help by some is
 * named no longer, and the next becomes the best. OK or a failure.
 */
enum dry_status dryi_recommend_prove(struct dryi_recommend_search *search);

/* Gains, verdicts, order, outcome. False: no memory. */
bool dryi_recommend_conclude(struct dryi_recommend_search *search);

#endif
