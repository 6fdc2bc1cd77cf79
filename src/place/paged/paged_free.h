/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_FREE_H
#define DRYI_PLACE_PAGED_FREE_H

/* Frees. A free allocates no memory, and calls the device only for events. */

#include "place/paged/record/paged_state.h"

/* Implement the functions of the same names in place.h. */
enum dry_status dryi_paged_free(void *self, dryi_block block);
enum dry_status dryi_paged_record_stream(void *self, dryi_block block, uint64_t stream);
/* Free a block in use. SYSTEM: an event could not be recorded; the block stays in use. */
enum dry_status dryi_paged_free_used(struct dryi_paged *p, uint32_t block);
/* Free a pending block whose uses are all complete. */
void dryi_paged_complete(struct dryi_paged *p, uint32_t block);
/* Record the events of frees that captures deferred. Does nothing while a capture is active. */
void dryi_paged_release_held(struct dryi_paged *p);

#endif
