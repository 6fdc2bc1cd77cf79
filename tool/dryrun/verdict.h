/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_DRY_VERDICT_H
#define TOOL_DRY_VERDICT_H

/*
 * The evaluation of a dry run: whether the snapshot is exact, where and why memory peaked
 * or ran out, and which other cards would do.
 *
 * PyTorch writes the snapshot. The replays use the recorded settings, other settings, and
 * each card's memory less a CUDA context.
 */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/card.h>
#include <drystone/explanation.h>
#include <drystone/replay.h>

#include "record/study.h"

struct trial_verdict_card {
    const struct dry_card *card;
    uint64_t torch_bytes; /* bytes left after a CUDA context and NCCL */
    bool fits;
    uint64_t reserved; /* peak of the replay, valid if `fits` */
    uint64_t retries;  /* retried requests; each costs a synchronisation */
};

struct trial_verdict {
    struct study study;
    struct dry_explanation *explanation; /* NULL: the snapshot has no events */
    const struct dry_explanation_view *view;
    struct dry_replay_check check;
    bool has_oom;
    bool is_cut; /* the history lacks its beginning: no other replays */
    /* Blocks were freed late because of other streams, so late events change the peak. */
    bool has_deferred;
    /* Smallest first. Empty after an OOM, because requests after the OOM are unknown. */
    struct trial_verdict_card *cards;
    size_t card_count;
};

/* Return what is left of `bytes` after `taken`; 0 if more was taken. */
uint64_t trial_spare_bytes(uint64_t bytes, uint64_t taken);
/* Return the bytes of a card that PyTorch can use: all but a context and NCCL's. */
uint64_t trial_torch_bytes(const struct dry_card *card, uint64_t nccl_bytes);

/* Inputs of the verdict that the snapshot does not contain. */
struct trial_verdict_inputs {
    const char *command, *path;
    uint64_t nccl_bytes; /* taken by NCCL on each card */
    uint64_t event_max;  /* a history of this length may lack its beginning */
};

/* Read and evaluate the snapshot. Returns an exit_code. Call trial_verdict_finish() in
   any case. */
int trial_verdict_make(struct trial_verdict *verdict,
                       const struct trial_verdict_inputs *inputs);
struct trial_check {
    bool is_exact; /* the replay has the recorded addresses */
    bool fits;     /* the requests fit `capacity` bytes; valid if is_exact */
    size_t event_count;
};

/* Replay the busiest device of `path`, with the recorded settings only; capacity 0: no limit. An
   exit_code. */
int trial_verdict_check(const char *command, const char *path, uint64_t capacity,
                        struct trial_check *check);
void trial_verdict_finish(struct trial_verdict *verdict);

#endif
