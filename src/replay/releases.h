/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_REPLAY_RELEASES_H
#define DRYI_REPLAY_RELEASES_H

/* Find the releases that may have made a record. A snapshot does not name its release, but some
   fields exist only from a release on, and the addresses agree only with some releases' rules. */

#include <drystone/replay.h>

/* Call dry_replay_find_releases(), and set bit i of *rows for each possible row i of
   dryi_torch_rules_all(). */
DRY_CHECK_RESULT enum dry_status dryi_replay_find_rows(struct dry_replay *replay,
                                                       struct dry_releases *releases,
                                                       uint32_t *rows,
                                                       struct dry_error *err);

/* Return a release as 100 * major + minor: 211 for 2.11 and 2.11.1; 0 for other text. */
unsigned dryi_release_number(const char *release);

#endif
