// SPDX-License-Identifier: Apache-2.0
// A figure of the library's as PyTorch's Stat, whose type moved between releases.
#pragma once

#include <drystone/stats.h>

namespace shim
{

// Add a pool's figure. Peaks of several pools need not be of one moment: the sum is no less than
// the peak of all.
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
