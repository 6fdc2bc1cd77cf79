/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_ALLOC_H
#define DRYI_PLACE_PAGED_ALLOC_H

#include "place/paged/record/paged_state.h"

/* Implement `alloc` of place.h. paged.h has dryi_paged_cache_alloc(). */
enum dry_status dryi_paged_alloc(void *self, uint64_t size, uint64_t stream,
                                 dryi_block *block);

#endif
