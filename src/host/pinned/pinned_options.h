/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PINNED_OPTIONS_H
#define DRYI_HOST_PINNED_OPTIONS_H

/* The options of a pinned cache; the text form is public. */

#include <drystone/pinned.h>

/* Take the caller's options over the defaults, if create accepts them. */
DRY_CHECK_RESULT enum dry_status dryi_pinned_options_take(
    const struct dry_pinned_options *from, struct dry_pinned_options *options,
    struct dry_error *err);

#endif
