/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_ORDER_H
#define DRYI_PLACE_PAGED_ORDER_H

/* Ordering between streams: up to which epoch of another stream each stream is ordered after it. */

#include "place/paged/record/paged_state.h"

/* Return the epoch of `on` up to which `stream` is ordered after `on`; 0: not ordered. */
uint64_t dryi_paged_known_epoch(const struct dryi_paged *p, uint32_t stream, uint32_t on);
/* Record that `stream` is ordered after `epoch` of `on`. False: out of memory. */
bool dryi_paged_learn(struct dryi_paged *p, uint32_t stream, uint32_t on, uint64_t epoch);
/* Forget all orders of a stream. */
void dryi_paged_orders_forget(struct dryi_paged *p, uint32_t stream);
/*
 * Tell the forecast of an ordering that the program made itself: periods repeat, so the forecast
 * can rely on the same ordering later.
 */
void dryi_paged_tell_forecast(struct dryi_paged *p, uint32_t from, uint32_t to,
                              uint64_t epoch);

#endif
