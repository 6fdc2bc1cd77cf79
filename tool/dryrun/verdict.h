/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_DRY_VERDICT_H
#define TOOL_DRY_VERDICT_H

/*
 * The meaning of a dry run: does it fit, is the snapshot exact, and what would other cards do.
 *
 * The snapshot is PyTorch's own; it is replayed like any other, once as it was recorded and
 * once for each card with what that card has left beside a context.
 */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/card.h>
#include <drystone/replay.h>

struct dry_verdict_card {
    const struct dry_card *card;
    uint64_t room; /* what a context leaves */
    bool fits;
    uint64_t reserved; /* at the peak of its replay, if it fits */
    uint64_t retries;  /* of requests, each with a synchronisation */
};

struct dry_verdict {
    struct dry_replay_check check;
    struct dry_replay_recorded recorded;
    bool has_oom;
    struct dry_verdict_card *cards;
    size_t card_count;
};

/* Read `path` and fill the verdict in. An exit_code; dry_verdict_finish() is due. */
int dry_verdict_make(struct dry_verdict *verdict, const char *command, const char *path);
void dry_verdict_finish(struct dry_verdict *verdict);

#endif
