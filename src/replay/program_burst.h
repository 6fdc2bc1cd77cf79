/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PROGRAM_BURST_H
#define DRYI_PROGRAM_BURST_H

/* Bursts: consecutive segment_free and segment_unmap events, and their cause: a retry on a full
   device, empty_cache(), or the end of a pool. program.h has the rules. */

#include "replay/program_build.h"

/* Handle a segment event: it begins or continues a burst, or adds to the reserved bytes. */
void dryi_burst_segment(struct dryi_build *b, uint32_t i);

/* End the burst, if any, before event `event`; an alloc may be the request that caused it. */
void dryi_burst_end(struct dryi_build *b, uint32_t event, bool is_alloc);

/* Handle an OOM event: the burst before it was its retry. */
void dryi_burst_oom(struct dryi_build *b, uint32_t i);

/* Tell retries from empty_cache(). Requires the window's peak of reserved bytes. */
void dryi_bursts_settle(struct dryi_program *p);

#endif
