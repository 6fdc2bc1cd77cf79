// SPDX-License-Identifier: Apache-2.0
// Converts a figure of the library to PyTorch's Stat, whose type moved between releases.
#pragma once

#include <drystone/stats.h>

namespace shim
{

// Add a pool's figure. Peaks of several pools may occur at different moments, so their sum is an
// upper bound of the common peak.
template <class Stat>
void
add_figure(Stat *to, const struct dry_stat &from)
{
    to->current += from.current;
    to->peak += from.peak;
    to->allocated += from.allocated;
    to->freed += from.freed;
}

} // namespace shim
