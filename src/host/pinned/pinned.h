/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PINNED_H
#define DRYI_HOST_PINNED_H

/* Creates a pinned cache on a given pin; for tests and other makers. */

#include <drystone/pinned.h>

#include "host/pinned/pin.h"

/* Create a cache on `pin`. On success the cache owns the pin, and destroy finishes it. */
DRY_CHECK_RESULT enum dry_status dryi_pinned_create(
    const struct dry_pinned_options *options, const struct dryi_pin *pin,
    struct dry_pinned **pinned, struct dry_error *err);

#endif
