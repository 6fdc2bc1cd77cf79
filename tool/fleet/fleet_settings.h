/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FLEET_SETTINGS_H
#define TOOL_FLEET_SETTINGS_H

/*
 * Choose one allocator setting for the whole job. All ranks share a
 * PYTORCH_CUDA_ALLOC_CONF, so the setting must help some rank and harm none. The ranks
 * that decide are those that ran out of memory and the largest of each group. Each is
 * searched as `drystone sweep` does. A setting that helps one of them is then replayed on
 * those whose search left it out.
 *
 *     count = fleet_settings_choose(judgement, files);
 *     texts[i] = fleet_settings_make(path of files[i], memory_bytes_max);
 *     fleet_settings_read(texts[i], strlen(texts[i]), &searches[i], &err);
 *     proposal_count = fleet_settings_propose(searches, count, proposals);
 *     texts[i] = fleet_settings_try(path of files[i], memory_bytes_max, proposals,
 *     proposal_count);
 *     fleet_settings_read(texts[i], strlen(texts[i]), &trials[i], &err);
 *     fleet_settings_add(&searches[i], &trials[i]);
 *     fleet_settings_decide(searches, count, &decision);
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/recommend.h>

#include "fleet/fleet_judge.h"

#define FLEET_DECIDERS_MAX 8
#define FLEET_DECIDERS_OOM 4 /* limit of failed ranks if groups fill the rest */
#define FLEET_CANDIDATES_MAX 128

/* Choose the files that decide, and return their number. */
size_t fleet_settings_choose(const struct fleet_judgement *judgement,
                             size_t files[FLEET_DECIDERS_MAX]);

/*
 * Search the settings of the file at `path`. The caller frees the text, JSON of
 * drystone.fleet.settings/2; if the file is faulty, it tells why. NULL: memory ran out.
 */
char *fleet_settings_make(const char *path, uint64_t memory_bytes_max);

/* The members of struct dry_candidate that are kept of a setting, gain_bytes as 0 if it
   costs memory. */
extern const struct dry_fields fleet_candidate_fields;

struct fleet_search {
    bool is_there; /* false: the search failed, see `why` */
    const char *why;
    enum dry_outcome outcome;
    uint64_t short_bytes; /* outcome CAPACITY: bytes that no setting can save */
    size_t candidate_count;
    struct dry_candidate *candidates;
    char *texts; /* owns the texts of the search */
};

/* Read a search, which is hostile input. FORMAT: invalid. Finish `search` in any case. */
enum dry_status fleet_settings_read(const char *text, size_t length,
                                    struct fleet_search *search, struct dry_error *err);
void fleet_settings_finish(struct fleet_search *search);

/* Limit of settings that help one rank and that are tried on the others. */
#define FLEET_PROPOSALS_MAX 6

/*
 * Choose settings that help some rank and that another rank's search left out, the best
 * of each rank first. The searches own them. Returns their number.
 */
size_t fleet_settings_propose(const struct fleet_search *searches, size_t count,
                              const struct dry_candidate *proposals[FLEET_PROPOSALS_MAX]);

/*
 * Replay the file at `path` under each proposal. The text is like that of
 * fleet_settings_make(). A setting is worse than the recorded one if its peak is higher
 * by both 64 MiB and 1 %.
 */
char *fleet_settings_try(const char *path, uint64_t memory_bytes_max,
                         const struct dry_candidate *const *proposals,
                         size_t proposal_count);

/* Add to `search` the candidates of `trial` that it lacks. False: memory ran out. */
bool fleet_settings_add(struct fleet_search *search, const struct fleet_search *trial);

enum fleet_decision_kind {
    FLEET_DECISION_CHANGE,
    FLEET_DECISION_KEEP,        /* no setting saves enough on any rank */
    FLEET_DECISION_DISAGREE,    /* each setting that helps one rank harms another */
    FLEET_DECISION_CAPACITY,    /* no setting helps the ranks that ran out of memory */
    FLEET_DECISION_NO_EVIDENCE, /* no search could distinguish settings */
};

struct fleet_decision {
    enum fleet_decision_kind kind;
    const struct dry_candidate *candidate; /* CHANGE: of the first rank it helps */
    size_t helped_count;                   /* ranks that the setting helps */
    size_t judged_count;                   /* ranks whose search distinguished settings */
    uint64_t gain_min, gain_max;           /* bytes saved, over the ranks helped */
};

/* Decide on the results of `count` searches. A pure function of these. */
void fleet_settings_decide(const struct fleet_search *searches, size_t count,
                           struct fleet_decision *decision);

/* Return "change", "keep", "disagree", "capacity" or "no-evidence". */
const char *fleet_decision_name(enum fleet_decision_kind kind);

#endif
