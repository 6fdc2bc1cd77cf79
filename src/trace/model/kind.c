/* SPDX-License-Identifier: Apache-2.0 */
/* This table holds the properties of each kind of trace. A new format adds one row. */
#include "trace/model/kind.h"

static const struct dryi_kind kinds[] = {
    [DRY_TRACE_SNAPSHOT] = {.name = "snapshot",
                            .text = "PyTorch memory snapshot",
                            .has_addresses = true},
    [DRY_TRACE_PLAIN] = {.name = "plain", .text = "plain trace"},
    [DRY_TRACE_RMM] = {.name = "rmm", .text = "RMM log"},
    [DRY_TRACE_LIFETIMES] = {.name = "lifetimes", .text = "lifetimes"},
    [DRY_TRACE_BUILT] = {.name = "built", .text = "trace", .has_addresses = true},
    [DRY_TRACE_BFC] = {.name = "bfc",
                       .text = "map of the BFC allocator, without events",
                       .has_addresses = true,
                       .is_foreign = true},
    [DRY_TRACE_KINETO] =
        {.name = "kineto",
         .text = "memory events of PyTorch's profiler, without segments, stacks "
                 "and requests"},
    [DRY_TRACE_NSIGHT] =
        {.name = "nsight",
         .text =
             "allocations from CUDA's driver, recorded by Nsight Systems; blocks inside "
             "are not recorded, so no settings can be tried",
         .has_addresses = true,
         .is_of_driver = true,
         .is_foreign = true},
};

const struct dryi_kind *
dryi_kind_get(enum dry_trace_kind kind)
{
    bool is_known = (unsigned)kind < sizeof kinds / sizeof *kinds;
    return &kinds[is_known ? kind : DRY_TRACE_BUILT];
}

const char *
dry_trace_kind_name(enum dry_trace_kind kind)
{
    return dryi_kind_get(kind)->name;
}

const char *
dry_trace_kind_text(enum dry_trace_kind kind)
{
    return dryi_kind_get(kind)->text;
}
