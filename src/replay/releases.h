/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_REPLAY_RELEASES_H
#define DRYI_REPLAY_RELEASES_H

/*
 * The releases that may have made a record. A snapshot does not name its release. It holds
 * fields that only came with some release, and its addresses agree with some releases'
 * rules.
 */

#include <drystone/replay.h>

/* dry_replay_find_releases(); bit i of *rows stands for row i of dryi_torch_rules_all(). */
DRY_CHECK_RESULT enum dry_status dryi_replay_find_rows(struct dry_replay *replay,
                                                       struct dry_releases *releases,
                                                       uint32_t *rows,
                                                       struct dry_error *err);

/* 2.11 and 2.11.1 are 211; what is no release is 0. */
unsigned dryi_release_number(const char *release);

#endif
