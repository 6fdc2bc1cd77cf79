/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_TORCH_CONF_H
#define TEST_TORCH_CONF_H

#include <string.h>

#include "place/torch/torch.h"

/* Compare field by field: padding between fields does not count. */
static inline bool
is_same_conf(const struct dryi_torch_conf *x, const struct dryi_torch_conf *y)
{
    return x->large_segment_size == y->large_segment_size &&
           x->max_split_size == y->max_split_size &&
           x->max_non_split_rounding_size == y->max_non_split_rounding_size &&
           memcmp(x->roundup_power2_divisions, y->roundup_power2_divisions,
                  sizeof x->roundup_power2_divisions) == 0 &&
           !(x->garbage_collection_threshold < y->garbage_collection_threshold) &&
           !(x->garbage_collection_threshold > y->garbage_collection_threshold) &&
           x->expandable_segments == y->expandable_segments &&
           !(x->expandable_reserve_fraction < y->expandable_reserve_fraction) &&
           !(x->expandable_reserve_fraction > y->expandable_reserve_fraction) &&
           x->expandable_reserve_bytes == y->expandable_reserve_bytes &&
           !(x->per_process_memory_fraction < y->per_process_memory_fraction) &&
           !(x->per_process_memory_fraction > y->per_process_memory_fraction) &&
           x->throw_on_cudamalloc_oom == y->throw_on_cudamalloc_oom;
}

#endif
