/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PROGRAM_BURST_H
#define DRYI_PROGRAM_BURST_H

/*
 * Bursts: segment_free and segment_unmap in a row, and what caused them: a retry of a full
 * device, empty_cache(), a pool that ended (the rules stand in program.h).
 */

#include "replay/program_build.h"

/* Take a segment event: it begins or continues a burst, or grows what is reserved. */
void dryi_burst_segment(struct dryi_build *b, uint32_t i);

/* End the burst, if there is one, before event `event`; an alloc may be what it was for. */
void dryi_burst_end(struct dryi_build *b, uint32_t event, bool is_alloc);

/* Take an OOM event: the burst before it was its ladder. */
void dryi_burst_oom(struct dryi_build *b, uint32_t i);

/* Tell retries from empty_cache(), now that the highest mark is known. */
void dryi_bursts_settle(struct dryi_program *p);

#endif
