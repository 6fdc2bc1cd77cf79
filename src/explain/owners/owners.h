/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_OWNERS_H
#define DRYI_OWNERS_H

#include <drystone/owners.h>

#include "explain/site/site.h"

/* Create owners as dry_owners_create() does, but with existing sites of the trace. The sites
   must outlive the owners. */
enum dry_status dryi_owners_create(const struct dry_timeline *timeline,
                                   const struct dry_owners_options *options,
                                   const struct dryi_sites *sites,
                                   struct dry_owners **owners, struct dry_error *err);

#endif
