/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_DRY_VERDICT_H
#define TOOL_DRY_VERDICT_H

/*
 * The meaning of a dry run: is the snapshot exact, why and where was the peak or the failure,
 * and what would other cards do.
 *
 * The snapshot is PyTorch's own. It is replayed like any other, once as it was recorded, some
 * times under other settings, and once for each card with what that card has left beside a
 * context.
 */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/card.h>
#include <drystone/explanation.h>
#include <drystone/replay.h>

#include "record/study.h"

struct trial_verdict_card {
    const struct dry_card *card;
    uint64_t room; /* what a context leaves */
    bool fits;
    uint64_t reserved; /* at the peak of its replay, if it fits */
    uint64_t retries;  /* of requests, each with a synchronisation */
};

struct trial_verdict {
    struct study study;
    struct dry_explanation *explanation; /* NULL: the snapshot has no events */
    const struct dry_explanation_view *view;
    struct dry_replay_check check;
    bool has_oom;
    bool is_cut; /* the history lost its beginning: no other card or setting is told */
    /* Blocks waited for other streams when they were freed: late events change the peak. */
    bool has_deferred;
    /* The smallest first; none if it ran out of memory: its later needs are not known. */
    struct trial_verdict_card *cards;
    size_t card_count;
};

/* Return the part of a card that PyTorch can have: what a context and NCCL leave. */
uint64_t trial_room(const struct dry_card *card, uint64_t nccl_bytes);

/* What the snapshot itself does not say. */
struct trial_verdict_wish {
    const char *command, *path;
    uint64_t nccl_bytes; /* NCCL takes them of each card */
    uint64_t event_max;  /* of the history; as many are there if some were lost */
};

/* Read the snapshot. Returns an exit_code; trial_verdict_finish() is due. */
int trial_verdict_make(struct trial_verdict *verdict,
                       const struct trial_verdict_wish *wish);
/* Replay the busiest device of `path` as it was recorded, and nothing else. An exit_code. */
int trial_verdict_check(const char *command, const char *path, bool *is_exact);
void trial_verdict_finish(struct trial_verdict *verdict);

#endif
