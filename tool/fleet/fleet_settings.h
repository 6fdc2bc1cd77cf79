/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FLEET_SETTINGS_H
#define TOOL_FLEET_SETTINGS_H

/*
 * One setting of the allocator for the whole job. A job has one PYTORCH_CUDA_ALLOC_CONF, so
 * it must help somewhere and harm nowhere. The ranks that decide are those that ran out of
 * memory and the largest of each group. Each is searched as `drystone sweep` does; what
 * helps one of them is then replayed on those whose search left it out.
 *
 *     count = fleet_settings_choose(judgement, files);
 *     texts[i] = fleet_settings_make(path of files[i], memory_bytes_max);
 *     fleet_settings_read(texts[i], strlen(texts[i]), &searches[i], &err);
 *     wish_count = fleet_settings_wish(searches, count, wishes);
 *     texts[i] = fleet_settings_try(path of files[i], memory_bytes_max, wishes, wish_count);
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
#define FLEET_DECIDERS_OOM 4 /* of them at most, if groups want the rest */
#define FLEET_CANDIDATES_MAX 128

/* Write the files that decide. Returns how many. */
size_t fleet_settings_choose(const struct fleet_judgement *judgement,
                             size_t files[FLEET_DECIDERS_MAX]);

/*
 * Search on the file at `path`. The text, JSON of drystone.fleet.settings/1, is the caller's
 * to free; what is wrong with the file stands in it. NULL: no memory.
 */
char *fleet_settings_make(const char *path, uint64_t memory_bytes_max);

/* A setting that was replayed on one rank. */
struct fleet_candidate {
    const char *label, *conf, *since; /* as struct dry_candidate has them */
    enum dry_verdict verdict;
    bool is_allowed, is_recorded;
    uint32_t caveats;
    uint64_t peak_bytes; /* reserved */
    bool has_gain;
    uint64_t gain_bytes; /* 0 if it costs */
    bool gets_past;      /* the recorded out-of-memory */
};

struct fleet_search {
    bool is_there; /* false: it failed, see `why` */
    const char *why;
    enum dry_outcome outcome;
    uint64_t short_bytes; /* CAPACITY: what no setting can give */
    size_t candidate_count;
    struct fleet_candidate *candidates;
    char *texts; /* where the texts lie */
};

/* Read a search, hostile input. FORMAT: it is none. `search` is there to be finished. */
enum dry_status fleet_settings_read(const char *text, size_t length,
                                    struct fleet_search *search, struct dry_error *err);
void fleet_settings_finish(struct fleet_search *search);

/* Settings that help one rank, and that another's search left out. */
#define FLEET_WISHES_MAX 6

/*
 * Write the settings that help some rank and are to be tried on others, the best of each
 * rank first. They belong to the searches. Returns how many.
 */
size_t fleet_settings_wish(const struct fleet_search *searches, size_t count,
                           const struct fleet_candidate *wishes[FLEET_WISHES_MAX]);

/*
 * Replay the file at `path` under each wish. The text is as fleet_settings_make() has it. A
 * setting that costs 64 MiB and 1 % more at the peak than the recorded one is worse.
 */
char *fleet_settings_try(const char *path, uint64_t memory_bytes_max,
                         const struct fleet_candidate *const *wishes, size_t wish_count);

/* Add to `search` the candidates of `trial` that it lacks. False: no memory. */
bool fleet_settings_add(struct fleet_search *search, const struct fleet_search *trial);

enum fleet_decision_kind {
    FLEET_DECISION_CHANGE,
    FLEET_DECISION_KEEP,        /* no setting gains enough anywhere */
    FLEET_DECISION_DISAGREE,    /* what helps one rank harms another */
    FLEET_DECISION_CAPACITY,    /* no setting helps the ranks that ran out of memory */
    FLEET_DECISION_NO_EVIDENCE, /* no search could tell settings apart */
};

struct fleet_decision {
    enum fleet_decision_kind kind;
    const struct fleet_candidate *candidate; /* CHANGE: of the first rank that it helps */
    size_t helped_count;                     /* ranks that it helps */
    size_t judged_count;         /* ranks on which settings could be told apart */
    uint64_t gain_min, gain_max; /* over the helped */
};

/* Decide by `count` searches, a pure function of these. */
void fleet_settings_decide(const struct fleet_search *searches, size_t count,
                           struct fleet_decision *decision);

/* "change", "keep", "disagree", "capacity", "no-evidence". */
const char *fleet_decision_name(enum fleet_decision_kind kind);

#endif
