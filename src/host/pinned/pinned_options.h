/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PINNED_OPTIONS_H
#define DRYI_HOST_PINNED_OPTIONS_H

/* Validates the options of a pinned cache; dry_pinned_options_parse() is public. */

#include <drystone/pinned.h>

/* Validate the caller's options and merge them with the defaults. */
DRY_CHECK_RESULT enum dry_status dryi_pinned_options_take(
    const struct dry_pinned_options *from, struct dry_pinned_options *options,
    struct dry_error *err);

#endif
